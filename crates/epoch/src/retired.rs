//! Memory that waits until nobody can reach it, and what departed participants left of it.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::TryLockError;

use ensilo_slab::{AccountId, Heap};
use ensilo_sync::prefetch;
use ensilo_sync::sync::{Mutex, MutexGuard};

use crate::{Epoch, RetireList};

/// A block of memory that was unlinked and waits to be freed.
#[derive(Debug)]
pub(crate) struct Retired {
    block: NonNull<u8>,
    layout: Layout,
    account: AccountId,
}

// SAFETY: only the holder of a `Retired` frees the block, and may do so on any thread: heaps take
// back blocks of other heaps.
unsafe impl Send for Retired {}

impl Retired {
    /// # Safety
    /// `block` was allocated from the pool of the participant's epochs with this layout and account; it is unlinked and
    /// retired this once.
    pub(crate) unsafe fn new(block: NonNull<u8>, layout: Layout, account: AccountId) -> Self {
        Retired { block, layout, account }
    }

    /// Returns what the block takes.
    pub(crate) fn bytes(&self) -> u64 {
        Heap::usable_size(self.layout) as u64
    }

    /// Starts to load what freeing the block writes to.
    pub(crate) fn prefetch(&self) {
        prefetch(self.block.as_ptr());
    }

    /// Frees the block.
    ///
    /// # Safety
    /// The memory horizon has passed the tag of the block, or there is no participant left. `heap` belongs to the pool of
    /// these epochs.
    pub(crate) unsafe fn free(self, heap: &Heap) {
        // SAFETY: `new` promised that the block came from this pool with this layout and account and is retired once;
        // the caller, that nobody can reach it any more.
        unsafe { heap.free(self.block, self.layout, self.account) };
    }
}

/// What departed participants left. Any participant that collects takes care of it.
#[derive(Debug)]
pub(crate) struct Orphans {
    left: Mutex<Left>,
}

#[derive(Debug, Default)]
struct Left {
    lists: Vec<RetireList<Retired>>,
    objects: u64,
    bytes: u64,
}

impl Orphans {
    pub(crate) fn new() -> Self {
        Orphans { left: Mutex::new(Left::default()) }
    }

    /// Takes over the list of a participant that departs, with `bytes` in it.
    pub(crate) fn leave(&self, list: RetireList<Retired>, bytes: u64) {
        if !list.is_empty() {
            let mut left = self.left();
            left.objects += list.len() as u64;
            left.bytes += bytes;
            left.lists.push(list);
        }
    }

    /// Takes what is ripe, at most `budget` blocks, and hands it to `free`. Does nothing while another participant is at it.
    pub(crate) fn collect(&self, horizon: Epoch, budget: usize, mut free: impl FnMut(Retired)) -> usize {
        let mut left = match self.left.try_lock() {
            Ok(left) => left,
            // Poisoned: as in `left`.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return 0,
        };
        let Left { lists, objects, bytes } = &mut *left;
        let mut freed = 0;
        for list in &mut *lists {
            while freed < budget
                && let Some(retired) = list.pop_ripe(horizon)
            {
                *objects -= 1;
                *bytes -= retired.bytes();
                free(retired);
                freed += 1;
            }
        }
        lists.retain(|list| !list.is_empty());
        freed
    }

    /// Returns how many blocks wait here, with how many bytes.
    pub(crate) fn waiting(&self) -> (u64, u64) {
        let left = self.left();
        (left.objects, left.bytes)
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        match self.left.lock() {
            Ok(left) => left,
            // Poisoned: the lists and counts are whole between any two steps of the code above.
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}
