//! How long a site waits for others before it does something about that.

use std::time::{Duration, Instant};

/// A wait is noticed when it has taken this share more than it may.
const LOOKS_PER_WAIT: u32 = 8;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Patience {
    wait: Duration,
    next_look: Option<Instant>,
}

impl Patience {
    pub(super) fn new(wait: Duration) -> Self {
        Patience { wait, next_look: None }
    }

    /// Returns the moment since which somebody waits too long, once in a while.
    pub(super) fn look(&mut self, now: Instant) -> Option<Instant> {
        if self.next_look.is_some_and(|next| now < next) {
            return None;
        }
        self.next_look = Some(now + self.wait / LOOKS_PER_WAIT);
        now.checked_sub(self.wait)
    }
}
