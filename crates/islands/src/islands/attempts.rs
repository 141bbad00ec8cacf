//! How often a transaction is tried.

use std::thread;
use std::time::{Duration, Instant};

use crate::commit::RefusalReason;
use crate::instance::{machine_nanos, pause_before_attempt};

/// How often a transaction that is in conflict is tried at least, and for how long.
const ATTEMPTS_MAX: u32 = 1000;
const TIME_MIN: Duration = Duration::from_secs(5);

/// How often, if each time it has waited in vain: for a vote, or for what is prepared.
const WAITS_MAX: u32 = 10;

/// The attempts of a transaction.
#[derive(Debug)]
pub(crate) struct Attempts {
    count: u32,
    begin: Instant,
    /// When the first one has begun.
    pub(crate) since: u64,
}

impl Attempts {
    pub(crate) fn begin() -> Self {
        Attempts { count: 1, begin: Instant::now(), since: machine_nanos() }
    }

    /// Returns whether another attempt may follow one that was refused so, after a pause.
    pub(crate) fn may_go_on(&mut self, reason: RefusalReason) -> bool {
        let is_over = self.count >= ATTEMPTS_MAX && self.begin.elapsed() >= TIME_MIN;
        if !reason.may_pass() || is_over {
            return false;
        }
        // These have been waited for, for a second or half of one.
        let has_waited = matches!(reason, RefusalReason::NoVote | RefusalReason::Held);
        self.count = self.count.saturating_add(if has_waited { ATTEMPTS_MAX / WAITS_MAX } else { 1 });
        thread::sleep(pause_before_attempt(self.count));
        true
    }
}
