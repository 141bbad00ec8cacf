//! Workers that belong to no thread: each is lent to a session while that has something under way.
//!
//! There are as many as were ever in use at once, however many sessions there are. They lie in shards by
//! thread, so that threads do not meet at one lock and a worker comes back to the core that has it in its
//! caches.

#![allow(unsafe_code, reason = "a worker that was lent and the slot that holds it, in one value")]

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};

use ensilo_sync::CachePadded;
use ensilo_sync::sync::{Mutex, MutexGuard};

use super::slot::{Entered, Slot};
use super::use_note::thread_number;
use crate::Result;

/// One under the model checker, which explores each lock.
const SHARDS: usize = if cfg!(loom) { 1 } else { 16 };

/// So many are kept in a shard; others leave what they have to the engine.
const SHARD_LEN_MAX: usize = 64;

/// A worker that can be lent.
pub(crate) trait Lendable: Send + 'static {
    /// Forgets what it was lent for.
    fn forget_use(&mut self);
}

/// The workers that nobody uses.
pub(crate) struct SpareSlots<W> {
    shards: [CachePadded<Shard<W>>; SHARDS],
}

type Shard<W> = Mutex<Vec<Arc<Slot<W>>>>;

/// A worker that was lent. Dropping this gives it back.
pub(crate) struct Lease<'s, W: Lendable> {
    /// Present until this is dropped. The first part borrows from the second.
    parts: Option<(Entered<'static, W>, Arc<Slot<W>>)>,
    spare: &'s SpareSlots<W>,
}

// SAFETY: nobody else is the slot's owner: `SpareSlots::lend` took it out of its shard, or it is new. So
// whichever thread has the value is the only one that enters and leaves as the owner; moving the value
// between threads orders what they do. Closer and visitors know the slot too, and come to terms with its
// owner as ever. The slot and its worker are Send, and the spare slots Sync.
unsafe impl<W: Lendable> Send for Lease<'_, W> {}

impl<W: Lendable> SpareSlots<W> {
    pub(crate) fn new() -> Self {
        SpareSlots { shards: std::array::from_fn(|_| CachePadded::new(Mutex::new(Vec::new()))) }
    }

    /// Lends a worker, a new one by `make` if all are in use.
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed); those of `make`.
    pub(crate) fn lend(&self, make: impl FnOnce() -> Result<Arc<Slot<W>>>) -> Result<Lease<'_, W>> {
        let slot = match self.take() {
            Some(slot) => slot,
            None => make()?,
        };
        // SAFETY: the slot lives as long as the Arc beside the value, which `Lease` drops after it.
        let lasting: &'static Slot<W> = unsafe { &*Arc::as_ptr(&slot) };
        // SAFETY: the slot was taken out of its shard, so this is its one owner.
        let entered = unsafe { lasting.enter() }?;
        Ok(Lease { parts: Some((entered, slot)), spare: self })
    }

    fn take(&self) -> Option<Arc<Slot<W>>> {
        let own = own_shard();
        (0..SHARDS).find_map(|distance| self.lock((own + distance) % SHARDS).pop())
    }

    fn put_back(&self, slot: Arc<Slot<W>>) {
        let mut shard = self.lock(own_shard());
        if shard.len() < SHARD_LEN_MAX && !slot.is_closed() {
            shard.push(slot);
            return;
        }
        drop(shard);
        drop(slot);
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Vec<Arc<Slot<W>>>> {
        // Nothing under these locks panics half-way.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn own_shard() -> usize {
    thread_number() as usize % SHARDS
}

impl<W: Lendable> Deref for Lease<'_, W> {
    type Target = W;

    fn deref(&self) -> &W {
        match &self.parts {
            Some((entered, _)) => entered,
            None => unreachable!("only dropping takes the worker out"),
        }
    }
}

impl<W: Lendable> DerefMut for Lease<'_, W> {
    fn deref_mut(&mut self) -> &mut W {
        match &mut self.parts {
            Some((entered, _)) => entered,
            None => unreachable!("only dropping takes the worker out"),
        }
    }
}

impl<W: Lendable> Drop for Lease<'_, W> {
    fn drop(&mut self) {
        if let Some((mut entered, slot)) = self.parts.take() {
            entered.forget_use();
            drop(entered);
            self.spare.put_back(slot);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::Error;

    impl Lendable for u32 {
        fn forget_use(&mut self) {}
    }

    fn lend(spare: &SpareSlots<u32>) -> Lease<'_, u32> {
        let Ok(lease) = spare.lend(|| Ok(Arc::new(Slot::new(0)))) else { unreachable!("nothing is closed") };
        lease
    }

    #[test]
    fn a_worker_that_came_back_is_lent_again_also_to_another_thread() {
        let spare = SpareSlots::new();
        *lend(&spare) = 1;
        let on_another_thread = || std::thread::scope(|scope| scope.spawn(|| *lend(&spare)).join());
        assert_eq!((on_another_thread().ok(), on_another_thread().ok()), (Some(1), Some(1)));
        let (one, other) = (lend(&spare), lend(&spare));
        assert_eq!((*one, *other), (1, 0));
    }

    #[test]
    fn a_shard_keeps_a_bounded_number() {
        let spare = SpareSlots::new();
        let lent: Vec<_> = (0..SHARD_LEN_MAX + 10).map(|_| lend(&spare)).collect();
        drop(lent);
        assert_eq!(spare.lock(own_shard()).len(), SHARD_LEN_MAX);
    }

    #[test]
    fn a_closed_worker_is_neither_lent_nor_kept() {
        let spare = SpareSlots::new();
        let slot = Arc::new(Slot::new(7));
        let lease = spare.lend(|| Ok(Arc::clone(&slot))).unwrap();
        slot.mark_closed();
        drop(lease);
        assert!(spare.take().is_none());
        assert!(matches!(spare.lend(|| Ok(Arc::clone(&slot))), Err(Error::Closed)));
    }
}
