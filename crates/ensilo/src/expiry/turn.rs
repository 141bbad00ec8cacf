//! Who removes rows of a table that have expired at the moment.

use std::sync::{Mutex, MutexGuard};

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;
use ensilo_log::is_in_foreign_code;

use crate::mutex::{lock, try_lock};
use crate::shared::DatabaseShared;
use crate::worker;

/// Held for one transaction that removes rows of a table. Another that looked meanwhile would pass over those that this one has taken out and not yet
/// removed.
#[derive(Debug)]
pub(super) struct Turn(Mutex<Epoch>);

/// A turn that is taken. It says with which epoch all that was removed before is durable.
pub(super) type TakenTurn<'a> = MutexGuard<'a, Epoch>;

impl Default for Turn {
    fn default() -> Self {
        Turn(Mutex::new(Epoch::new(0)))
    }
}

impl Turn {
    /// Waits until nobody else has it. `None` on a thread that might wait for itself: one with a transaction open, or in code of the program
    /// that is called back.
    pub(super) fn take<E: Engine>(&self, shared: &DatabaseShared<E>) -> Option<TakenTurn<'_>> {
        let may_wait = !is_in_foreign_code() && worker::check_outside_transactions(shared.id()).is_ok();
        may_wait.then(|| lock(&self.0))
    }

    /// Takes it if nobody else has it.
    pub(super) fn try_take(&self) -> Option<TakenTurn<'_>> {
        try_lock(&self.0)
    }
}
