//! Indirection arrays: from the identifier of a record to its newest version.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.2. An array is a range of addresses that is reserved once and backed by memory as it grows, so that it never
//! moves.

use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use ensilo_slab::{OutOfMemory, Pool};
use ensilo_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ensilo_sync::sync::Mutex;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use crate::store::lock;

/// The most records that a store has had at a time.
const SLOTS_MAX: usize = 1 << 31;
const RESERVED_BYTES: usize = SLOTS_MAX * size_of::<AtomicU64>();

/// What is backed first, and at most at once.
const GROWTH_BYTES_MIN: usize = 4 << 10;
const GROWTH_BYTES_MAX: usize = 2 << 20;

/// So many identifiers a session takes at once: two lines of the array.
pub(crate) const BLOCK_LEN: usize = 16;

/// In a slot: the record is gone, and its key is about to leave the index.
pub(crate) const DEAD: u64 = 1;

/// Names a record within its store: its place in the array.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Oid(u32);

impl Oid {
    /// Returns the value that stands for the record in an index: never 0.
    #[inline]
    pub(crate) fn index_value(self) -> u64 {
        u64::from(self.0) + 1
    }

    /// Returns the record that stands under `value` in an index.
    #[inline]
    pub(crate) fn from_index_value(value: u64) -> Oid {
        Oid((value - 1) as u32)
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OidArray {
    base: NonNull<AtomicU64>,
    pool: Arc<Pool>,
    /// Backed bytes.
    backed: AtomicUsize,
    /// Identifiers that were never handed out begin here. Whoever holds the lock makes the array grow.
    next: Mutex<usize>,
}

// SAFETY: a slot is an atomic, and the rest is shared behind a lock or as an atomic.
unsafe impl Send for OidArray {}
// SAFETY: as for `Send`.
unsafe impl Sync for OidArray {}

impl OidArray {
    /// Reserves addresses for an array.
    pub(crate) fn new(pool: Arc<Pool>) -> Result<Self, OutOfMemory> {
        // SAFETY: a new mapping at an address that the system chooses. What nobody may read takes no memory.
        let base =
            unsafe { mmap_anonymous(null_mut(), RESERVED_BYTES, ProtFlags::empty(), MapFlags::PRIVATE) };
        let base = base.ok().and_then(|base| NonNull::new(base.cast()));
        let base = base.ok_or_else(|| pool.out_of_memory(RESERVED_BYTES))?;
        Ok(OidArray { base, pool, backed: AtomicUsize::new(0), next: Mutex::new(0) })
    }

    /// Hands out the next [`BLOCK_LEN`] identifiers: their slots are empty.
    pub(crate) fn take_block(&self) -> Result<impl DoubleEndedIterator<Item = Oid> + use<>, OutOfMemory> {
        let first = self.take_next(BLOCK_LEN)?.0;
        Ok((first..first + BLOCK_LEN as u32).map(Oid))
    }

    /// Hands out so many identifiers in a row, and returns the first one: their slots are empty.
    pub(crate) fn take_next(&self, count: usize) -> Result<Oid, OutOfMemory> {
        let mut next = lock(&self.next);
        let (first, end) = (*next, *next + count);
        if end * size_of::<AtomicU64>() > self.backed.load(Ordering::Relaxed) {
            self.grow()?;
        }
        *next = end;
        Ok(Oid(first as u32))
    }

    /// Backs more of the array, twice as much each time up to a limit. The caller holds the lock.
    #[cold]
    fn grow(&self) -> Result<(), OutOfMemory> {
        let backed = self.backed.load(Ordering::Relaxed);
        let more = backed.clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX);
        if backed + more > RESERVED_BYTES {
            return Err(self.pool.out_of_memory(more));
        }
        self.pool.count_outside(more)?;
        // SAFETY: within the mapping, which is ours, behind what is in use.
        let granted = unsafe {
            let start = self.base.as_ptr().cast::<u8>().add(backed);
            mprotect(start.cast(), more, MprotectFlags::READ | MprotectFlags::WRITE)
        };
        if granted.is_err() {
            self.pool.forget_outside(more as u64);
            return Err(self.pool.out_of_memory(more));
        }
        self.backed.store(backed + more, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the slot of a record.
    #[inline]
    pub(crate) fn slot(&self, oid: Oid) -> &AtomicU64 {
        debug_assert!((oid.0 as usize) < self.backed.load(Ordering::Relaxed) / size_of::<AtomicU64>());
        // SAFETY: an identifier is handed out behind the growth that backs its slot, and the mapping lives as long as `self`. Fresh
        // memory of the system is 0, a value of an atomic.
        unsafe { &*self.base.as_ptr().add(oid.0 as usize) }
    }
}

impl Drop for OidArray {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody holds a slot any more. If the system refuses, the addresses stay reserved.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), RESERVED_BYTES) };
        self.pool.forget_outside(self.backed.load(Ordering::Relaxed) as u64);
    }
}
