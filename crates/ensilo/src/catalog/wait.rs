//! Waiting until the transactions that began before now have ended.

use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::Duration;

use ensilo_epoch::Epochs;

use crate::{Error, Result};

const FIRST_WAIT: Duration = Duration::from_micros(100);
const WAIT_MAX: Duration = Duration::from_millis(10);

/// Returns when every transaction that was under way at the call has ended. What the caller published before, every later
/// transaction sees.
///
/// The epochs say so: whoever is pinned now is pinned at an epoch not after the present one, and memory that is retired in the
/// present one would be free to go. The epochs are advanced by hand to find out soon; a few more of them do no harm.
///
/// # Errors
/// [`Error::Closed`] when `is_closed` says so meanwhile.
pub(super) fn for_older_transactions(epochs: &Epochs, is_closed: impl Fn() -> bool) -> Result<()> {
    // What was published must be visible before the epoch is read (a store, then a load).
    fence(Ordering::SeqCst);
    let now = epochs.global_epoch();
    // A transaction that begins in the second epoch from now sees what was published, and holds the horizon back no more.
    epochs.advance();
    let mut wait = FIRST_WAIT;
    loop {
        epochs.advance();
        if epochs.memory_horizon() > now {
            return Ok(());
        }
        if is_closed() {
            return Err(Error::Closed);
        }
        thread::sleep(wait);
        wait = (wait * 2).min(WAIT_MAX);
    }
}
