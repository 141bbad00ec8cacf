//! Safe snapshots: points that a read-only transaction may read at without being tracked.
//!
//! # Source
//! The serial safety net's safe snapshots (Wang, Johnson, Fekete, Pandis, VLDB Journal 2017). A reader at stamp `s` comes after all that
//! committed before `s` and before all that commit later, if the serial order agrees. So a transaction that takes a stamp after `s` may not
//! have a successor that has committed before `s`: it aborts.

use ensilo_epoch::{Epoch, Epochs};
use ensilo_sync::Backoff;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::sync::Mutex;

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
}

#[derive(Copy, Clone, Debug)]
struct Taken {
    /// The epoch in which it was taken: in the next one another is.
    epoch: Epoch,
    stamp: Stamp,
}

impl SafeSnapshot {
    pub(crate) fn new() -> Self {
        SafeSnapshot { newest: AtomicU64::new(0), taken: Mutex::new(None) }
    }

    /// Returns a snapshot that was taken in this epoch: not a second ago, as snapshots are by their own epochs, since it
    /// would lead behind long chains of versions. The caller has published a stamp.
    pub(crate) fn current(&self, epochs: &Epochs, clock: &Clock) -> Stamp {
        let mut taken = lock(&self.taken);
        let epoch = epochs.global_epoch();
        match *taken {
            Some(Taken { epoch: for_epoch, stamp }) if for_epoch == epoch => stamp,
            _ => {
                // Relaxed: [commit-order] who takes a later stamp sees this, or the snapshot.
                self.newest.store(PENDING, Ordering::Relaxed);
                let stamp = clock.take();
                self.newest.store(stamp.get(), Ordering::Release);
                *taken = Some(Taken { epoch, stamp });
                stamp
            }
        }
    }

    /// Returns the snapshot that others may begin to read at; those of earlier epochs are forgotten.
    pub(crate) fn keep_for(&self, epochs: &Epochs) -> Option<Stamp> {
        let mut taken = lock(&self.taken);
        *taken = taken.filter(|taken| taken.epoch == epochs.global_epoch());
        taken.map(|taken| taken.stamp)
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
