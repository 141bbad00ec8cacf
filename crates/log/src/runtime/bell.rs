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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Awake,
    /// Looks by itself at some time.
    Napping,
    /// Sleeps until somebody rings.
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

    /// Leaves a call, and wakes the logger from a nap too.
    pub(crate) fn ring(&self, call: impl FnOnce(&mut Calls)) {
        self.leave(call, |sleep| sleep != Sleep::Awake);
    }

    /// Leaves a call, and wakes the logger unless it looks by itself soon.
    pub(crate) fn ring_softly(&self, call: impl FnOnce(&mut Calls)) {
        self.leave(call, |sleep| sleep == Sleep::Sound);
    }

    fn leave(&self, call: impl FnOnce(&mut Calls), wakes: impl FnOnce(Sleep) -> bool) {
        let mut ringing = self.0.lock();
        call(&mut ringing.calls);
        if wakes(ringing.sleep) {
            // Once is enough.
            ringing.sleep = Sleep::Awake;
            drop(ringing);
            self.0.notify_one();
        }
    }

    /// Sleeps until `deadline`, if there is one, or until rung; returns at once when calls were left meanwhile. Takes the calls.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Calls {
        let mut ringing = self.0.lock();
        loop {
            let calls = ringing.calls;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if calls != Calls::default() || left.is_some_and(|left| left.is_zero()) {
                *ringing = Ringing { calls: Calls::default(), sleep: Sleep::Awake };
                return calls;
            }
            ringing.sleep = if left.is_some() { Sleep::Napping } else { Sleep::Sound };
            ringing = match left {
                Some(left) => self.0.wait_for(ringing, left),
                None => self.0.wait(ringing),
            };
        }
    }
}
