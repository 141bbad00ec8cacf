//! Where a logger sleeps, and what wakes it.
//!
//! Nobody who rings wakes a logger that is awake, or one that will look by itself soon enough: a wake-up costs more than what it
//! is for.

use std::time::Instant;

use ensilo_epoch::Epoch;

use super::monitor::Monitor;

/// A round that all loggers make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Rounds are counted from 1.
    pub(crate) number: u64,
    /// Every commit with an earlier epoch has ended: the mark.
    pub(crate) frontier: Epoch,
    /// Whether the loggers end with this round.
    pub(crate) is_last: bool,
}

/// What a logger was rung for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Calls {
    /// Full buffers should be written.
    pub(crate) write: bool,
    /// For the leader: there may be a reason for a round.
    pub(crate) look: bool,
    /// For the others: the leader wants a round.
    pub(crate) order: Option<Order>,
    /// The log is to end.
    pub(crate) end: bool,
}

/// How a logger sleeps: who sleeps deeper is woken by less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sleep {
    Awake,
    /// Until a time before which it would not make a round in any case.
    Short,
    /// Until a time at which it makes a round if nobody is in a hurry before.
    Long,
    /// Until it is rung.
    Sound,
}

#[derive(Debug)]
struct Ringing {
    calls: Calls,
    sleep: Sleep,
}

/// Where one logger sleeps.
#[derive(Debug)]
pub(crate) struct Bell(Monitor<Ringing>);

impl Bell {
    pub(crate) fn new() -> Bell {
        Bell(Monitor::new(Ringing { calls: Calls::default(), sleep: Sleep::Awake }))
    }

    /// Leaves a call, and wakes the logger if it sleeps as deep as `depth`, or deeper.
    pub(crate) fn ring(&self, depth: Sleep, call: impl FnOnce(&mut Calls)) {
        let mut ringing = self.0.lock();
        call(&mut ringing.calls);
        if ringing.sleep != Sleep::Awake && ringing.sleep >= depth {
            // Once is enough.
            ringing.sleep = Sleep::Awake;
            drop(ringing);
            self.0.notify_one();
        }
    }

    /// Sleeps until the deadline, if there is one, and as deep as it says, or until rung; returns at once when calls were left meanwhile. Takes the calls.
    pub(crate) fn wait(&self, deadline: Option<(Instant, Sleep)>) -> Calls {
        let mut ringing = self.0.lock();
        loop {
            let calls = ringing.calls;
            let left = deadline.map(|(deadline, _)| deadline.saturating_duration_since(Instant::now()));
            if calls != Calls::default() || left.is_some_and(|left| left.is_zero()) {
                *ringing = Ringing { calls: Calls::default(), sleep: Sleep::Awake };
                return calls;
            }
            ringing.sleep = deadline.map_or(Sleep::Sound, |(_, sleep)| sleep);
            ringing = match left {
                Some(left) => self.0.wait_for(ringing, left),
                None => self.0.wait(ringing),
            };
        }
    }
}
