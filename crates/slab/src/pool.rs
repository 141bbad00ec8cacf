//! The memory of one database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{AccountId, Heap, OutOfMemory, Usage};

/// The memory of one database: the limit and the accounts that its heaps share.
#[derive(Debug)]
pub struct Pool {
    limit_bytes: Option<u64>,
    live: Mutex<BTreeMap<AccountId, u64>>,
}

impl Pool {
    /// A pool that takes at most `limit_bytes` from the system, or as much as there is.
    #[must_use]
    pub fn new(limit_bytes: Option<u64>) -> Arc<Pool> {
        Arc::new(Pool { limit_bytes, live: Mutex::new(BTreeMap::new()) })
    }

    /// What the pool holds now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let live = self.live();
        let by_account: Vec<_> =
            live.iter().filter(|(_, bytes)| **bytes > 0).map(|(id, bytes)| (*id, *bytes)).collect();
        let live_bytes = by_account.iter().map(|(_, bytes)| bytes).sum();
        Usage { mapped_bytes: live_bytes, live_bytes, by_account }
    }

    /// A heap for one worker.
    #[must_use]
    pub fn heap(self: &Arc<Self>) -> Heap {
        Heap::new(Arc::clone(self))
    }

    pub(crate) fn charge(&self, account: AccountId, bytes: u64) -> Result<(), OutOfMemory> {
        let mut live = self.live();
        let mapped_bytes: u64 = live.values().sum();
        if self.limit_bytes.is_some_and(|limit| mapped_bytes + bytes > limit) {
            return Err(OutOfMemory { asked_bytes: bytes, limit_bytes: self.limit_bytes, mapped_bytes });
        }
        *live.entry(account).or_insert(0) += bytes;
        Ok(())
    }

    pub(crate) fn discharge(&self, account: AccountId, bytes: u64) {
        *self.live().entry(account).or_insert(0) -= bytes;
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<AccountId, u64>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
