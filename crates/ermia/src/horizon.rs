//! The horizon: before it nobody needs a version that was overwritten.
//!
//! # Memory ordering
//! `[horizon]` A transaction publishes an older horizon, has a light barrier (that of its pin), reads the stamp that it begins at, and
//! publishes this. Who derives the horizon reads the stamp of the next commit, has a heavy barrier, and looks at what is published. It sees
//! the transaction, or the transaction reads its stamp later. The stamp of a snapshot is handed out under a lock, under which the derivation
//! looks at it: as long as one can be handed out, the horizon is no later.

use ensilo_epoch::Epochs;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::sync::Mutex;
use ensilo_sync::{CachePadded, barrier};

use crate::planted::{Step, is_left_out};
use crate::safe_snapshot::SafeSnapshot;
use crate::stamp::{Clock, Stamp};
use crate::transaction_table::{Entry, TransactionTable};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Horizon {
    stamp: CachePadded<AtomicU64>,
    /// The tick of the epochs for which it was derived last.
    derived_at: AtomicU64,
    /// The stamp of the next commit by then.
    derived_from: AtomicU64,
    deriving: Mutex<()>,
}

impl Horizon {
    pub(crate) fn new() -> Self {
        // Not 0: a stamp of 0 is published by nobody.
        Horizon {
            stamp: CachePadded::new(AtomicU64::new(1)),
            derived_at: AtomicU64::new(0),
            derived_from: AtomicU64::new(0),
            deriving: Mutex::new(()),
        }
    }

    /// Returns the horizon: every transaction that is under way, or begins, sees what was committed before it.
    #[inline]
    pub(crate) fn get(&self) -> Stamp {
        // Acquire: [horizon] those that have ended have read what they needed.
        Stamp::new(self.stamp.load(Ordering::Acquire))
    }

    /// Begins at a place of the table: `pin` pins, and `begin` returns the stamp from which on what is there stays, until the
    /// place [ends](Entry::end).
    #[inline]
    pub(crate) fn enter<G>(
        &self,
        entry: &Entry,
        pin: impl FnOnce() -> G,
        begin: impl FnOnce(&G) -> Stamp,
    ) -> (G, Stamp) {
        let _epochs = crate::region::epochs();
        if !is_left_out(Step::OlderBegin) {
            entry.publish_begin(self.get());
        }
        // [horizon] Its light barrier.
        let guard = pin();
        let begin = begin(&guard);
        entry.publish_begin(begin);
        (guard, begin)
    }

    /// Derives the horizon anew, once a tick of the epochs, and when many transactions have committed.
    #[inline]
    pub(crate) fn keep_up(
        &self,
        epochs: &Epochs,
        clock: &Clock,
        table: &TransactionTable,
        snapshot: &SafeSnapshot,
    ) {
        if self.is_due(epochs, clock) {
            self.derive(|| self.is_due(epochs, clock), epochs, clock, table, snapshot);
        }
    }

    #[inline]
    fn is_due(&self, epochs: &Epochs, clock: &Clock) -> bool {
        self.derived_at.load(Ordering::Relaxed) != epochs.last_tick().get()
            || clock.is_far_from(Stamp::new(self.derived_from.load(Ordering::Relaxed)))
    }

    /// Derives the horizon anew, unless somebody else does, or has done it so that it is no longer needed.
    #[cold]
    pub(crate) fn derive(
        &self,
        is_needed: impl Fn() -> bool,
        epochs: &Epochs,
        clock: &Clock,
        table: &TransactionTable,
        snapshot: &SafeSnapshot,
    ) {
        let Ok(_deriving) = self.deriving.try_lock() else { return };
        if !is_needed() {
            return;
        }
        let tick = epochs.last_tick();
        // First: a snapshot that is taken behind the look at the last one is no older.
        let now = clock.now();
        let newest = snapshot.keep(epochs, clock).map_or(now, |snapshot| snapshot.min(now));
        barrier::heavy();
        let oldest = table.oldest_begin().map_or(newest, |begin| begin.min(newest));
        // AcqRel: [horizon].
        self.stamp.fetch_max(oldest.get(), Ordering::AcqRel);
        self.derived_at.store(tick.get(), Ordering::Relaxed);
        self.derived_from.store(now.get(), Ordering::Relaxed);
    }
}
