//! Where a logger sleeps, and what wakes it.
//!
//! A notification does not wake a logger that is awake, nor one that looks by itself soon enough: a wake-up
//! costs more than it brings.

use std::time::Instant;

use ensilo_epoch::Epoch;

use super::monitor::Monitor;

/// A round that all loggers make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundRequest {
    /// Rounds are counted from 1.
    pub(crate) number: u64,
    /// Every commit with an earlier epoch has ended: the mark.
    pub(crate) frontier: Epoch,
    /// Whether the loggers end with this round.
    pub(crate) is_last: bool,
}

/// What a logger was notified of since it looked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Signals {
    /// Full buffers should be written.
    pub(crate) write: bool,
    /// For the leader: there may be a reason for a round.
    pub(crate) look: bool,
    /// For the others: the leader wants a round.
    pub(crate) round: Option<RoundRequest>,
    /// The log is to end.
    pub(crate) end: bool,
}

/// How deep a logger sleeps: the deeper, the less it takes to wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sleep {
    Awake,
    /// Until a time before which it would not make a round in any case.
    Short,
    /// Until a time at which it makes a round if nobody is in a hurry before.
    Long,
    /// Until it is notified.
    Sound,
}

#[derive(Debug)]
struct NotifierState {
    signals: Signals,
    sleep: Sleep,
}

/// Where one logger sleeps.
#[derive(Debug)]
pub(crate) struct Notifier(Monitor<NotifierState>);

impl Notifier {
    pub(crate) fn new() -> Notifier {
        Notifier(Monitor::new(NotifierState { signals: Signals::default(), sleep: Sleep::Awake }))
    }

    /// Sets signals, and wakes the logger if it sleeps as deep as `depth`, or deeper.
    pub(crate) fn notify(&self, depth: Sleep, set: impl FnOnce(&mut Signals)) {
        let mut state = self.0.lock();
        set(&mut state.signals);
        if state.sleep != Sleep::Awake && state.sleep >= depth {
            // Once is enough.
            state.sleep = Sleep::Awake;
            drop(state);
            self.0.notify_one();
        }
    }

    /// Sleeps until the deadline, if there is one, and as deep as it says, or until notified. Returns the
    /// signals, at once if some were set before, and clears them.
    pub(crate) fn wait(&self, deadline: Option<(Instant, Sleep)>) -> Signals {
        let mut state = self.0.lock();
        loop {
            let signals = state.signals;
            let left = deadline.map(|(deadline, _)| deadline.saturating_duration_since(Instant::now()));
            if signals != Signals::default() || left.is_some_and(|left| left.is_zero()) {
                *state = NotifierState { signals: Signals::default(), sleep: Sleep::Awake };
                return signals;
            }
            state.sleep = deadline.map_or(Sleep::Sound, |(_, sleep)| sleep);
            state = match left {
                Some(left) => self.0.wait_for(state, left),
                None => self.0.wait(state),
            };
        }
    }
}
