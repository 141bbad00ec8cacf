//! The turn to write: a transaction whose attempts were all in vain has the stores that it writes to for itself.
//!
//! The first to update a record wins, so a transaction that updates many beside others that update single ones loses again and again. Whoever
//! has seen that happen asks that the next attempt is protected ([`Session::protect_next`](ensilo_engine::Session::protect_next)): writes of
//! others to the stores that the attempts before have written to, or would have, are refused until it has ended. There is one at a time. Those
//! that have written before may still be in its way, and it in theirs; they are soon gone, and nobody follows them.
//!
//! The turn keeps others from what would make the attempt fail, and nothing depends on it: transactions are serializable without.
//!
//! # Memory ordering
//! Relaxed, for that reason: who sees the turn late writes as if there was none.

use ensilo_engine::{Store as _, TableId};
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::store::ErmiaStore;

/// Some stores, each by a bit of its number: others may have the same bit.
#[derive(Debug, Copy, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoreBits(u64);

impl StoreBits {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn add(&mut self, store: &ErmiaStore) {
        self.0 |= Self::bit_of(store.id());
    }

    fn bit_of(store: TableId) -> u64 {
        1 << (store.0 % u64::BITS)
    }
}

/// Who has the turn is known to the session that has it; here is for which stores.
#[derive(Debug)]
pub(crate) struct WriteTurn {
    /// None while nobody has it.
    stores: CachePadded<AtomicU64>,
    /// How many have ended.
    ended: AtomicU64,
}

impl WriteTurn {
    pub(crate) fn new() -> Self {
        WriteTurn { stores: CachePadded::new(AtomicU64::new(0)), ended: AtomicU64::new(0) }
    }

    /// Takes the turn for these stores, at least one. Returns `false` while another one has it.
    pub(crate) fn take(&self, stores: StoreBits) -> bool {
        debug_assert!(!stores.is_empty());
        self.stores.compare_exchange(0, stores.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Gives the turn back.
    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.stores.store(0, Ordering::Relaxed);
    }

    /// Returns the number of the turn that is taken, if one is.
    pub(crate) fn number(&self) -> Option<u64> {
        let is_taken = self.stores.load(Ordering::Relaxed) != 0;
        is_taken.then(|| self.ended.load(Ordering::Relaxed))
    }

    /// Returns whether only the session that has the turn may write to a store.
    #[inline]
    pub(crate) fn covers(&self, store: &ErmiaStore) -> bool {
        self.stores.load(Ordering::Relaxed) & StoreBits::bit_of(store.id()) != 0
    }
}
