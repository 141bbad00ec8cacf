//! How often a transaction is tried.

use std::thread;

use crate::commit::RefusalReason;
use crate::instance::{machine_nanos, pause_before_attempt};

/// How often a transaction that is in conflict is tried.
const ATTEMPTS_MAX: u32 = 1000;

/// How often, if each time it has waited in vain: for a vote, or for what is prepared.
const WAITS_MAX: u32 = 10;

/// The attempts of a transaction.
#[derive(Debug)]
pub(crate) struct Attempts {
    count: u32,
    /// When the first one has begun.
    pub(crate) since: u64,
}

impl Attempts {
    pub(crate) fn begin() -> Self {
        Attempts { count: 1, since: machine_nanos() }
    }

    /// Returns whether another attempt may follow one that was refused so, after a pause.
    pub(crate) fn may_go_on(&mut self, reason: RefusalReason) -> bool {
        if !reason.may_pass() || self.count >= ATTEMPTS_MAX {
            return false;
        }
        // These have been waited for, for a second or half of one.
        let has_waited = matches!(reason, RefusalReason::NoVote | RefusalReason::Held);
        self.count += if has_waited { ATTEMPTS_MAX / WAITS_MAX } else { 1 };
        thread::sleep(pause_before_attempt(self.count));
        true
    }
}
