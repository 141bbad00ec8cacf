//! Indirection arrays: from the identifier of a record to its newest version.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.2. An array is a range of addresses that is reserved once and backed by memory as it grows, so that it never
//! moves. Where we deviate:
//! - It is two ranges, a small one for all stores and a large one for those that need it, since addresses are not without end, and there
//!   may be thousands of stores with a few records each.
//! - An identifier is the address of its slot, not its number. An index that has found one has the processor load what lies there, so
//!   that the slot is on its way while the index is still at work.

mod range;

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use ensilo_slab::{OutOfMemory, Pool};
use ensilo_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ensilo_sync::sync::Mutex;

use self::range::Range;
use crate::store::lock;

/// Whether the atomics are a model checker's: there are few of them, since each has a history.
const IS_MODEL: bool = cfg!(any(loom, shuttle));

/// The records that the first range has slots for.
const FIRST_SLOTS: usize = if IS_MODEL { 8 } else { 1 << 16 };

/// The records that the second range has slots for.
const REST_SLOTS: usize = if IS_MODEL { 56 } else { 1 << 31 };

/// What is backed first, and at most at once.
const GROWTH_BYTES_MIN: usize = if IS_MODEL { FIRST_SLOTS * size_of::<AtomicU64>() } else { 4 << 10 };
const GROWTH_BYTES_MAX: usize = range::HUGE_PAGE_BYTES;

/// The part of the memory limit that is backed at once at most: what is backed and not in use is little.
const GROWTH_SHARE: u64 = 64;

/// So many identifiers a session takes at once: two lines of the array.
pub(crate) const BLOCK_LEN: usize = if IS_MODEL { 2 } else { 16 };

/// In a slot: the record is gone, and its key is about to leave the index.
pub(crate) const DEAD: u64 = 1;

/// Names a record: its slot in the array of its store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Oid(NonNull<AtomicU64>);

// SAFETY: it is an address. Who follows it shares the array.
unsafe impl Send for Oid {}

impl Oid {
    /// Returns the value that stands for the record in an index: never 0.
    #[inline]
    pub(crate) fn index_value(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Returns the record that stands under `value` in an index.
    ///
    /// # Safety
    /// `value` was read from the index of a store of this engine, under a pin that lasts as long as the identifier is used: a store goes once
    /// nobody is pinned who may have found it.
    #[inline]
    pub(crate) unsafe fn from_index_value(value: u64) -> Oid {
        let slot = std::ptr::with_exposed_provenance_mut(value as usize);
        // SAFETY: the caller's promise; an address of a slot is never null.
        Oid(unsafe { NonNull::new_unchecked(slot) })
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OidArray {
    first: Range,
    /// Made when the first one is full.
    rest: OnceLock<Range>,
    pool: Arc<Pool>,
    /// Bytes of both that are backed.
    backed: AtomicUsize,
    /// Identifiers that were never handed out begin here. Whoever holds the lock makes the array grow.
    next: Mutex<usize>,
}

impl OidArray {
    /// Returns an array without records.
    pub(crate) fn new(pool: Arc<Pool>) -> Result<Self, OutOfMemory> {
        let first =
            Range::reserve(FIRST_SLOTS).ok_or_else(|| pool.out_of_memory(FIRST_SLOTS * size_of::<u64>()))?;
        let (rest, backed) = (OnceLock::new(), AtomicUsize::new(0));
        Ok(OidArray { first, rest, pool, backed, next: Mutex::new(0) })
    }

    /// Hands out the next [`BLOCK_LEN`] identifiers: their slots are empty.
    pub(crate) fn take_block(&self) -> Result<impl DoubleEndedIterator<Item = Oid> + use<>, OutOfMemory> {
        let first = self.take_next(BLOCK_LEN)?;
        // SAFETY: the slots of a block are in one range, both of which have a multiple of its length.
        Ok((0..BLOCK_LEN).map(move |at| Oid(unsafe { first.0.add(at) })))
    }

    /// Hands out one identifier: its slot is empty.
    pub(crate) fn take_one(&self) -> Result<Oid, OutOfMemory> {
        self.take_next(1)
    }

    /// Hands out so many identifiers in a row, all in one range, and returns the first one.
    fn take_next(&self, count: usize) -> Result<Oid, OutOfMemory> {
        let mut next = lock(&self.next);
        let first = next.next_multiple_of(count);
        let end = first + count;
        if end * size_of::<AtomicU64>() > self.backed.load(Ordering::Relaxed) {
            self.grow()?;
        }
        *next = end;
        Ok(Oid(self.address(first)))
    }

    /// Returns how many identifiers were handed out: their slots are numbered from 0 in this order.
    pub(crate) fn handed_out(&self) -> usize {
        *lock(&self.next)
    }

    /// Returns the identifier of this number, which was handed out.
    #[inline]
    pub(crate) fn numbered(&self, number: usize) -> Oid {
        debug_assert!(number < self.handed_out(), "a slot that may have no memory");
        Oid(self.address(number))
    }

    /// Returns where the slot of this number lies, which is backed.
    fn address(&self, number: usize) -> NonNull<AtomicU64> {
        let (range, at) = match number.checked_sub(FIRST_SLOTS) {
            None => (&self.first, number),
            Some(at) => match self.rest.get() {
                Some(rest) => (rest, at),
                None => unreachable!("what lies there is backed"),
            },
        };
        range.address(at)
    }

    /// Backs more of the array: twice as much each time in the first range, the most that is backed at once in the second. The caller holds the lock.
    #[cold]
    fn grow(&self) -> Result<(), OutOfMemory> {
        const FIRST_BYTES: usize = FIRST_SLOTS * size_of::<AtomicU64>();
        let backed = self.backed.load(Ordering::Relaxed);
        let most = self.growth_bytes_max();
        let (range, before, wanted) = if backed < FIRST_BYTES {
            (&self.first, backed, backed.clamp(range::page_bytes().max(GROWTH_BYTES_MIN), most))
        } else {
            let rest = self.rest().ok_or_else(|| self.pool.out_of_memory(GROWTH_BYTES_MAX))?;
            // A whole huge page, where the limit has one.
            (rest, backed - FIRST_BYTES, most)
        };
        let more = wanted.min(range.slots() * size_of::<AtomicU64>() - before);
        if more == 0 {
            return Err(self.pool.out_of_memory(GROWTH_BYTES_MAX));
        }
        self.pool.count_outside(more)?;
        if !range.back(before, more) {
            self.pool.forget_outside(more as u64);
            return Err(self.pool.out_of_memory(more));
        }
        self.backed.store(backed + more, Ordering::Relaxed);
        Ok(())
    }

    /// Returns how much is backed at once at most, in whole pages.
    fn growth_bytes_max(&self) -> usize {
        let least = range::page_bytes().max(GROWTH_BYTES_MIN);
        let share = self.pool.limit_bytes().map_or(u64::MAX, |limit| limit / GROWTH_SHARE);
        let share = usize::try_from(share).unwrap_or(usize::MAX).clamp(least, GROWTH_BYTES_MAX.max(least));
        share - share % least
    }

    /// Returns the second range, unless the system refuses. The caller holds the lock.
    fn rest(&self) -> Option<&Range> {
        if self.rest.get().is_none() {
            let range = Range::reserve(REST_SLOTS)?;
            assert!(self.rest.set(range).is_ok(), "made under the lock alone");
        }
        self.rest.get()
    }

    /// Returns the slot of a record of this array.
    #[inline]
    pub(crate) fn slot(&self, oid: Oid) -> &AtomicU64 {
        debug_assert!(self.contains(oid), "an identifier of another store");
        // SAFETY: an identifier is handed out behind the growth that backs its slot, and the range lives as long as `self`. Fresh
        // memory of the system is 0, a value of an atomic.
        unsafe { oid.0.as_ref() }
    }

    fn contains(&self, oid: Oid) -> bool {
        std::iter::once(&self.first).chain(self.rest.get()).any(|range| range.contains(oid.0))
    }
}

impl Drop for OidArray {
    fn drop(&mut self) {
        self.pool.forget_outside(self.backed.load(Ordering::Relaxed) as u64);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn slots_of_both_ranges_are_empty_and_apart() {
        let array = OidArray::new(Pool::new(None)).unwrap();
        let oids: Vec<_> =
            (0..FIRST_SLOTS / BLOCK_LEN + 1000).flat_map(|_| array.take_block().unwrap()).collect();
        assert!(oids.iter().all(|&oid| array.slot(oid).load(Ordering::Relaxed) == 0));
        oids.iter().for_each(|&oid| array.slot(oid).store(oid.index_value(), Ordering::Relaxed));
        assert!(oids.iter().all(|&oid| array.slot(oid).load(Ordering::Relaxed) == oid.index_value()));
    }

    #[test]
    fn there_is_room_for_many_small_arrays() {
        let pool = Pool::new(None);
        let arrays: Vec<_> = (0..20_000).map(|_| OidArray::new(Arc::clone(&pool)).unwrap()).collect();
        arrays.iter().step_by(1000).for_each(|array| _ = array.take_block().unwrap());
        drop(arrays);
        assert_eq!(pool.mapped_bytes(), 0);
    }
}
