//! Taking a place: one atomic add.

use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::planted::{Step, is_left_out};

/// Takes `amount` numbers from a clock, none before `first`, which is the first one of the caller's epoch. Returns
/// where they begin.
///
/// The clock is raised to `first` before the add, if it is behind: so nobody takes numbers of an epoch that is
/// before the one that it has published, and which may be drained.
#[inline]
pub fn take_place(clock: &AtomicU64, first: u64, amount: u64, ordering: Ordering) -> u64 {
    // Relaxed: the clock never goes back, so that what is not behind will not be.
    if clock.load(Ordering::Relaxed) < first && !is_left_out(Step::RaiseBeforeAdd) {
        clock.fetch_max(first, ordering);
    }
    clock.fetch_add(amount, ordering)
}
