//! The horizon: before it nobody needs a version that was overwritten.
//!
//! What stands in the middle of a chain, and nobody needs either, is found by way of the [long readers](LongReaders), and freed behind another
//! horizon: that of those who look at versions. A transaction keeps addresses of those that it sees, which are kept for it, and walks over
//! others. So a snapshot looks from the beginning of a statement to its end, and while it scans at one row after the other. A read-write
//! transaction looks as long as it is under way, but anew behind each tick: unless it has to rely on the address of an insert that it does not
//! see, or rows may leave memory, which are kept for nobody.
//!
//! # Memory ordering
//! `[horizon]` A transaction publishes an older horizon, has a light barrier (that of its pin), reads the stamp that it begins at, and
//! publishes this. Who derives the horizon reads the stamp of the next commit, has a heavy barrier, and looks at what is published. It sees
//! the transaction, or the transaction reads its stamp later. The stamp of a snapshot is handed out under a lock, under which the derivation
//! looks at it: as long as one can be handed out, the horizon is no later.
//!
//! Who looks reads the last tick of the epochs, publishes it, has a light barrier, and looks. Who takes something away that may be looked at
//! takes the way to it away, has a light barrier, and reads the global epoch. Who derives the horizon of looks reads the last tick, has a heavy
//! barrier, and sees what is published. A look that is not seen is behind the heavy barrier, before which everything was taken away that has
//! an epoch before that tick: otherwise that epoch would be a later one. One that is seen has found the tick done that it has published, behind
//! whose own heavy barrier the epoch is read that something has which was taken away later.

use ensilo_epoch::{Epoch, Epochs};
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::sync::{Mutex, MutexGuard};
use ensilo_sync::{CachePadded, barrier};
use std::sync::TryLockError;

use crate::long_readers::LongReaders;
use crate::planted::{Step, is_left_out};
use crate::safe_snapshot::SafeSnapshot;
use crate::stamp::{Clock, Stamp};
use crate::store::lock;
use crate::transaction_table::{Entry, TransactionTable};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Horizon {
    stamp: CachePadded<AtomicU64>,
    /// Whoever looks at versions has begun to in this epoch or later.
    looks: AtomicU64,
    /// See [`LongReaders::until`].
    in_the_way_until: AtomicU64,
    /// See [`LongReaders::ended`].
    long_readers_ended: AtomicU64,
    /// The tick of the epochs for which it was derived last.
    derived_at: AtomicU64,
    /// The stamp of the next commit by then.
    derived_from: AtomicU64,
    /// Held by whoever derives the horizon.
    readers: CachePadded<Mutex<LongReaders>>,
}

impl Horizon {
    /// Returns the horizon before the first transaction. For tests, all may count as [long readers](LongReaders).
    pub(crate) fn new(counts_all: bool) -> Self {
        // Not 0: a stamp of 0 is published by nobody.
        Horizon {
            stamp: CachePadded::new(AtomicU64::new(1)),
            looks: AtomicU64::new(0),
            in_the_way_until: AtomicU64::new(0),
            long_readers_ended: AtomicU64::new(0),
            derived_at: AtomicU64::new(0),
            derived_from: AtomicU64::new(0),
            readers: CachePadded::new(Mutex::new(LongReaders::new(counts_all))),
        }
    }

    /// Returns the horizon: every transaction that is under way, or begins, sees what was committed before it.
    #[inline]
    pub(crate) fn get(&self) -> Stamp {
        // Acquire: [horizon] those that have ended have read what they needed.
        Stamp::new(self.stamp.load(Ordering::Acquire))
    }

    /// Returns an epoch: nobody is left who looks at versions and has begun to in it or before.
    ///
    /// What nobody can find any more may be freed once this is later than the [epoch](ensilo_epoch::Participant::retire_epoch) that is read
    /// behind that.
    #[inline]
    pub(crate) fn look_horizon(&self) -> Epoch {
        // Acquire: [horizon].
        Epoch::new(self.looks.load(Ordering::Acquire))
    }

    /// Returns the tick of the epochs for which it was derived last.
    #[inline]
    pub(crate) fn tick(&self) -> Epoch {
        // Relaxed: a matter of how often somebody looks.
        Epoch::new(self.derived_at.load(Ordering::Relaxed))
    }

    /// Returns whether a version that was overwritten at this stamp, at the horizon or later, may be in the way of long readers.
    #[inline]
    pub(crate) fn may_be_in_the_way(&self, overwritten: Stamp) -> bool {
        // Relaxed: they are asked under their lock.
        overwritten.get() < self.in_the_way_until.load(Ordering::Relaxed)
    }

    /// Returns how many times long readers have ended.
    #[inline]
    pub(crate) fn long_readers_ended(&self) -> u64 {
        // Relaxed: as above.
        self.long_readers_ended.load(Ordering::Relaxed)
    }

    /// Returns the long readers, unless somebody else has them; the horizon stays where it is meanwhile.
    pub(crate) fn try_long_readers(&self) -> Option<MutexGuard<'_, LongReaders>> {
        match self.readers.try_lock() {
            Ok(readers) => Some(readers),
            // What is known of them is true at every step.
            Err(TryLockError::Poisoned(readers)) => Some(readers.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
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
            entry.publish_entering(self.get());
        }
        // [horizon] Its light barrier.
        let guard = pin();
        let begin = begin(&guard);
        entry.publish_begin(begin);
        (guard, begin)
    }

    /// Does the same for one that looks at versions from this tick on, until the place ends.
    #[inline]
    pub(crate) fn enter_and_look<G>(
        &self,
        entry: &Entry,
        tick: Epoch,
        pin: impl FnOnce() -> G,
        begin: impl FnOnce(&G) -> Stamp,
    ) -> (G, Stamp) {
        // Before the light barrier of the pin.
        entry.begin_look(tick);
        self.enter(entry, pin, begin)
    }

    /// Derives the horizon anew, once a tick of the epochs, and when many transactions have committed, unless somebody else does.
    #[inline]
    pub(crate) fn keep_up(
        &self,
        epochs: &Epochs,
        clock: &Clock,
        table: &TransactionTable,
        snapshot: &SafeSnapshot,
    ) {
        if self.is_due(epochs, clock)
            && let Some(readers) = self.try_long_readers()
            // Somebody may have done so just now.
            && self.is_due(epochs, clock)
        {
            self.derive(readers, epochs, clock, table, snapshot);
        }
    }

    /// Derives the horizon anew, behind whoever does.
    pub(crate) fn keep_up_now(
        &self,
        epochs: &Epochs,
        clock: &Clock,
        table: &TransactionTable,
        snapshot: &SafeSnapshot,
    ) {
        self.derive(lock(&self.readers), epochs, clock, table, snapshot);
    }

    #[inline]
    fn is_due(&self, epochs: &Epochs, clock: &Clock) -> bool {
        self.derived_at.load(Ordering::Relaxed) != epochs.last_tick().get()
            || clock.is_far_from(Stamp::new(self.derived_from.load(Ordering::Relaxed)))
    }

    #[cold]
    fn derive(
        &self,
        mut readers: MutexGuard<'_, LongReaders>,
        epochs: &Epochs,
        clock: &Clock,
        table: &TransactionTable,
        snapshot: &SafeSnapshot,
    ) {
        let tick = epochs.last_tick();
        // First: a snapshot that is taken behind the look at the last one is no older.
        let now = clock.now();
        let newest = snapshot.keep(epochs, clock).map_or(now, |snapshot| snapshot.min(now));
        barrier::heavy();
        let begins = readers.under_way();
        let under_way = table.look_around(begins);
        let oldest = begins.iter().copied().fold(newest, Stamp::min);
        if !under_way.some_enter {
            readers.renew(newest, clock);
        }
        readers.note_horizon(oldest);
        // AcqRel: [horizon].
        self.stamp.fetch_max(oldest.get(), Ordering::AcqRel);
        // AcqRel: [horizon].
        self.looks.fetch_max(tick.min(under_way.looks_since).get(), Ordering::AcqRel);
        self.in_the_way_until.store(readers.until().get(), Ordering::Relaxed);
        self.long_readers_ended.store(readers.ended(), Ordering::Relaxed);
        self.derived_at.store(tick.get(), Ordering::Relaxed);
        self.derived_from.store(now.get(), Ordering::Relaxed);
    }
}
