//! Which transactions are about to give their locks back: those that have begun to commit, and wait for no lock any more.
//!
//! What such a transaction has written others see before its locks are free, and it may lose its core in between. Who meets its locks meanwhile
//! waits, however old it is: nobody waits in a circle with one that waits for nobody.
//!
//! # Memory ordering
//! Relaxed throughout. Whoever finds a lock of a transaction in a stripe sees, by the stripe's mutex, that an earlier one of its session has ended;
//! that this one commits it may see late, and gives way then as if it did not.

use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::stripe::Owner;

const PLACES: usize = if cfg!(loom) { 1 } else { 64 };

/// Stands for none: no session has this number and one.
const NONE: u64 = 0;

/// See the module's documentation. Sessions that share a place may hide each other.
#[derive(Debug)]
pub(super) struct Committing {
    places: [CachePadded<AtomicU64>; PLACES],
}

impl Committing {
    pub(super) fn new() -> Self {
        Committing { places: std::array::from_fn(|_| CachePadded::new(AtomicU64::new(NONE))) }
    }

    #[inline]
    pub(super) fn begin(&self, owner: Owner) {
        self.place(owner).store(mark_of(owner), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn end(&self, owner: Owner) {
        self.place(owner).store(NONE, Ordering::Relaxed);
    }

    /// Returns whether the transaction is known to commit.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.place(owner).load(Ordering::Relaxed) == mark_of(owner)
    }

    #[inline]
    fn place(&self, owner: Owner) -> &AtomicU64 {
        &self.places[owner.session as usize % PLACES]
    }
}

#[inline]
fn mark_of(owner: Owner) -> u64 {
    u64::from(owner.session) + 1
}
