//! What commits report to those that observe a table.

use ensilo_log::call_foreign;
use ensilo_sync::sync::Condvar;

use super::watch::{WatchEnd, WatchState};
use super::{Arc, AtomicBool, Mutex, Ordering, locked};

/// What the consumers of a table share.
#[derive(Debug, Default)]
pub(crate) struct TableQueue {
    /// Whether transactions note that they write the table. Set before `is_observed`, and for ever.
    pub(super) is_noted: AtomicBool,
    pub(super) is_observed: AtomicBool,
    pub(super) state: Mutex<WatchState>,
    /// Notified when watchers are woken.
    pub(super) changed: Condvar,
}

/// An observed table that a transaction has written.
#[derive(Debug)]
pub(crate) struct WrittenTable(Arc<TableQueue>);

impl TableQueue {
    /// Returns whether the table is observed, for a transaction in whose
    /// [generation](super::Queues::generation) that is counted.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        // Relaxed: [observe].
        self.is_noted.load(Ordering::Relaxed)
    }

    /// Counts an arrival, and wakes the watchers.
    pub(super) fn wake(&self) {
        self.change(WatchState::count_arrival);
    }

    /// Returns how many arrivals were counted.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn arrivals(&self) -> u64 {
        locked(&self.state).arrivals()
    }

    pub(super) fn end(&self, end: WatchEnd) {
        self.change(|state| state.end(end));
    }

    fn change(&self, change: impl FnOnce(&mut WatchState)) {
        let mut state = locked(&self.state);
        change(&mut state);
        let wakers = state.take_wakers();
        drop(state);
        self.changed.notify_all();
        wakers.into_values().for_each(|waker| call_foreign(|| waker.wake()));
    }
}

impl WrittenTable {
    /// Notes, among what a transaction has `written`, that it has inserted or changed a row of the table.
    pub(crate) fn note(written: &mut Vec<Self>, queue: &Arc<TableQueue>) {
        if !written.iter().any(|table| Arc::ptr_eq(&table.0, queue)) {
            written.push(WrittenTable(Arc::clone(queue)));
        }
    }

    /// Reports it, after the commit.
    pub(super) fn report(&self) {
        self.0.wake();
    }
}
