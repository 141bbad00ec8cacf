//! Safe snapshots: points that a read-only transaction may read at without being tracked.
//!
//! # Source
//! The serial safety net's safe snapshots (Wang, Johnson, Fekete, Pandis, VLDB Journal 2017). A reader at stamp `s` comes after all that
//! committed before `s` and before all that commit later, if the serial order agrees. So a transaction that takes a stamp after `s` may not
//! have a successor that has committed before `s`: it aborts.

use ensilo_epoch::{Epoch, Epochs};
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::sync::Mutex;
use ensilo_sync::{Backoff, CachePadded};

use crate::planted::{Step, is_left_out};
use crate::stamp::{Clock, Stamp};
use crate::store::lock;

/// A snapshot is about to be taken.
const PENDING: u64 = 1;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct SafeSnapshot {
    /// The newest one, for those that commit.
    newest: AtomicU64,
    taken: Mutex<Option<Taken>>,
    /// How many transactions are under way that a new snapshot would be in the way of.
    read_mostly: CachePadded<AtomicU64>,
}

#[derive(Copy, Clone, Debug)]
struct Taken {
    /// The global epoch in which it was taken.
    epoch: Epoch,
    /// The snapshot epoch by then.
    snapshot_epoch: Epoch,
    stamp: Stamp,
}

impl Taken {
    /// Returns whether those that begin read at this snapshot still. As a rule that is for a moment: it leads behind chains of versions, and
    /// keeps them. Beside transactions that read mostly it is for as long as snapshots may be old; one that was current no more is so again
    /// then, unless it was forgotten, and with it what it shows.
    fn is_current(&self, epochs: &Epochs, clock: &Clock, has_read_mostly: bool) -> bool {
        if has_read_mostly {
            return self.snapshot_epoch == epochs.snapshot_epoch();
        }
        self.epoch == epochs.global_epoch() && !clock.is_far_from(self.stamp)
    }
}

impl SafeSnapshot {
    pub(crate) fn new() -> Self {
        SafeSnapshot {
            newest: AtomicU64::new(0),
            taken: Mutex::new(None),
            read_mostly: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Returns the snapshot that a transaction begins to read at. The caller has published a stamp.
    pub(crate) fn current(&self, epochs: &Epochs, clock: &Clock) -> Stamp {
        let mut taken = lock(&self.taken);
        if let Some(taken) = *taken
            && taken.is_current(epochs, clock, self.has_read_mostly())
        {
            return taken.stamp;
        }
        // Before the stamp: what has committed by then is shown.
        let (epoch, snapshot_epoch) = (epochs.global_epoch(), epochs.snapshot_epoch());
        let stamp = self.mark(clock);
        *taken = Some(Taken { epoch, snapshot_epoch, stamp });
        stamp
    }

    /// Makes a fence in the serial order, as a snapshot does: a transaction that takes a stamp from now on, and has written, has no successor that had
    /// committed before. Nobody reads there.
    pub(crate) fn fence(&self, clock: &Clock) {
        let _taken = lock(&self.taken);
        self.mark(clock);
    }

    /// Takes a stamp that those who commit later compare theirs with. The caller has `taken` locked.
    fn mark(&self, clock: &Clock) -> Stamp {
        if !is_left_out(Step::PendingSnapshot) {
            // Relaxed: [commit-order] who takes a later stamp sees this, or the snapshot.
            self.newest.store(PENDING, Ordering::Relaxed);
        }
        let stamp = clock.snapshot_stamp();
        self.newest.store(stamp.get(), Ordering::Release);
        stamp
    }

    /// Returns the snapshot that others may begin to read at; one that is no longer current is forgotten.
    pub(crate) fn keep(&self, epochs: &Epochs, clock: &Clock) -> Option<Stamp> {
        let mut taken = lock(&self.taken);
        *taken = taken.filter(|taken| taken.is_current(epochs, clock, self.has_read_mostly()));
        taken.map(|taken| taken.stamp)
    }

    /// Forgets the snapshot: whoever has begun there has published it.
    pub(crate) fn forget(&self) {
        *lock(&self.taken) = None;
    }

    /// A transaction begins that reads mostly: until it ends, no snapshot is taken that is not needed.
    pub(crate) fn begin_read_mostly(&self) {
        // Relaxed: it is a matter of speed alone.
        self.read_mostly.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_read_mostly(&self) {
        self.read_mostly.fetch_sub(1, Ordering::Relaxed);
    }

    fn has_read_mostly(&self) -> bool {
        self.read_mostly.load(Ordering::Relaxed) > 0
    }

    /// Returns whether a transaction with this successor stamp, and a later one of its own, may stand on both sides of a snapshot. The newest
    /// one speaks for those before it, also where it was taken later than the transaction's stamp.
    pub(crate) fn is_crossed(&self, successor: Stamp) -> bool {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: [commit-order] behind a stamp that was taken later.
            match self.newest.load(Ordering::Acquire) {
                PENDING => backoff.wait(),
                newest => return successor.get() < newest,
            }
        }
    }
}
