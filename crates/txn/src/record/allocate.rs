//! Where the memory of records comes from and goes to: slabs, the general-purpose allocator, the reserve beside the memory limit.

use std::ptr::null_mut;

use ensilo_engine::{RawRecord, TableId};
use ensilo_epoch::Guard;
use ensilo_slab::OutOfMemory;
use ensilo_sync::atomic::{AtomicPtr, AtomicU64};

use super::{Header, RecordPtr};
use crate::tid::TidWord;

impl Header {
    fn new(tid: TidWord) -> Self {
        Header { tid: AtomicU64::new(tid.raw()), previous: AtomicPtr::new(null_mut()) }
    }
}

impl RecordPtr {
    /// Returns a record of `store` with room for a row of `row_len_bytes`, which is not set yet.
    #[inline]
    pub(crate) fn allocate(
        guard: &Guard<'_>,
        store: TableId,
        row_len_bytes: usize,
        tid: TidWord,
    ) -> Result<RecordPtr, OutOfMemory> {
        RawRecord::allocate(guard, store, row_len_bytes, Header::new(tid)).map(RecordPtr)
    }

    /// The same from the general-purpose allocator, to be freed by [`RecordPtr::free_general`].
    pub(crate) fn allocate_general(
        guard: &Guard<'_>,
        store: TableId,
        row_len_bytes: usize,
        tid: TidWord,
    ) -> Result<RecordPtr, OutOfMemory> {
        let heap = guard.participant().heap();
        let allocate = |layout, account| heap.allocate_general(layout, account);
        // SAFETY: the general-purpose allocator returns a fresh block.
        let record = unsafe { RawRecord::allocate_exact(store, row_len_bytes, Header::new(tid), allocate) };
        record.map(RecordPtr)
    }

    /// Returns a record for the version that an overwrite supersedes, from a reserve beside the memory limit: at the limit rows can
    /// be overwritten as long as that lasts. It is to be freed by [`RecordPtr::free_reserve`].
    #[cold]
    pub(crate) fn allocate_reserve(
        guard: &Guard<'_>,
        store: TableId,
        row_len_bytes: usize,
    ) -> Result<RecordPtr, OutOfMemory> {
        let (heap, header) = (guard.participant().heap(), Header::new(TidWord::PLACEHOLDER));
        let allocate = |layout, account| heap.allocate_reserve(layout, account);
        // SAFETY: the reserve returns a fresh block.
        unsafe { RawRecord::allocate_exact(store, row_len_bytes, header, allocate) }.map(RecordPtr)
    }

    /// Returns a mark (I4) for the version that a deletion supersedes, to be freed by [`RecordPtr::free_general`]. It does not come
    /// from the memory that the limit bounds.
    pub(crate) fn allocate_mark(guard: &Guard<'_>) -> Result<RecordPtr, OutOfMemory> {
        RecordPtr::allocate_general(guard, TableId::NONE, 0, TidWord::PLACEHOLDER)
    }

    /// Frees a record of [`RecordPtr::allocate_general`].
    ///
    /// # Safety
    /// No other thread has or can get the address.
    pub(crate) unsafe fn free_general(self, guard: &Guard<'_>) {
        let (block, layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `allocate_general`; the caller vouches that nobody can reach it.
        unsafe { guard.participant().heap().free_general(block, layout, account) }
    }

    /// Frees a record of [`RecordPtr::allocate_reserve`].
    ///
    /// # Safety
    /// No other thread has or can get the address.
    #[cold]
    pub(crate) unsafe fn free_reserve(self, guard: &Guard<'_>) {
        let (block, layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `allocate_reserve`; the caller vouches that nobody can reach it.
        unsafe { guard.participant().heap().free_reserve(block, layout, account) }
    }

    /// Returns the bytes that the record occupies.
    pub(crate) fn size_bytes(self) -> usize {
        self.block().1.size()
    }
}
