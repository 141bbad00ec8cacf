//! A record: a word of its engine's, and the row in the same allocation.
//!
//! # Layout
//! ```text
//!  0        8        16                              16 + 8 * capacity
//! +--------+--------+-------------------------------+
//! | state  | meta   | row, 8 bytes a word           |
//! +--------+--------+-------------------------------+
//! meta: row length in bytes (21 bits) | capacity in words (18 bits) | store id (25 bits), from the top
//! ```
//! What the state says is the engine's business. A record has no version beside its own, so it is 8 bytes shorter than one of Silo.
//!
//! # Invariants
//! I1. Capacity and store never change; the row length never exceeds the capacity.
//! I2. A record that its tree or another record led to is freed only after every transaction that could have found it has ended.

use std::alloc::Layout;
use std::ptr::NonNull;

use ensilo_engine::{Abort, AbortReason, ROW_LEN_MAX, RowRef, TableId};
use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, Heap};
use ensilo_sync::atomic::{AtomicU64, Ordering};

#[repr(C)]
struct Header {
    state: AtomicU64,
    meta: AtomicU64,
}

const HEADER_BYTES: usize = size_of::<Header>();
const WORD_BYTES: usize = size_of::<AtomicU64>();

const STORE_BITS: u32 = 25;
const CAPACITY_BITS: u32 = 18;
const LEN_SHIFT: u32 = STORE_BITS + CAPACITY_BITS;
const _: () = assert!(TableId::MAX.0 < 1 << STORE_BITS && ROW_LEN_MAX < 1 << (64 - LEN_SHIFT));
/// A block of the heap is larger than it was asked to be by an eighth at most.
const _: () = assert!((ROW_LEN_MAX + ROW_LEN_MAX / 4) / 8 < 1 << CAPACITY_BITS);

/// The address of a record.
///
/// The type's promise is that the record is allocated and that invariant I2 keeps it so while the transaction that holds the address is
/// pinned; the one unsafe way to break it is [`Record::from_index_value`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record(NonNull<Header>);

// SAFETY: a record is made of atomics, and its address may be used from any thread that is pinned (I2).
unsafe impl Send for Record {}

impl Record {
    /// A record with a row.
    ///
    /// # Errors
    /// [`AbortReason::OutOfMemory`], which names `key`.
    ///
    /// # Panics
    /// As [`assert_is_row`].
    pub(crate) fn new(
        guard: &Guard<'_>,
        store: TableId,
        key: &[u8],
        (row, len_bytes): (&[u64], usize),
        state: u64,
    ) -> Result<Record, Abort> {
        assert_is_row(row, len_bytes);
        let capacity_words = (Heap::usable_size(layout_of(row.len())) - HEADER_BYTES) / WORD_BYTES;
        let block = guard
            .allocate(layout_of(capacity_words), AccountId(store.0))
            .map_err(|_| Abort::new(AbortReason::OutOfMemory, store, key))?;
        let header = block.cast::<Header>();
        let meta = AtomicU64::new(meta(len_bytes, capacity_words, store));
        // SAFETY: the block is fresh, and large and aligned enough for a header and `capacity_words` words.
        unsafe {
            header.write(Header { state: AtomicU64::new(state), meta });
            let words = header.add(1).cast::<AtomicU64>();
            for index in 0..capacity_words {
                words.add(index).write(AtomicU64::new(row.get(index).copied().unwrap_or(0)));
            }
        }
        Ok(Record(header))
    }

    /// The word that stands for this record in an index.
    #[inline]
    pub(crate) fn index_value(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// The record that stands in an index, or in another record, under `value`.
    ///
    /// # Safety
    /// `value` must come from [`Record::index_value`] of a record that I2 protects: read while pinned.
    #[inline]
    pub(crate) unsafe fn from_index_value(value: u64) -> Record {
        let header = std::ptr::with_exposed_provenance_mut(value as usize);
        // SAFETY: the caller's promise; an address of a record is never null.
        Record(unsafe { NonNull::new_unchecked(header) })
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the type's promise: the record is allocated while this address is in use. A header is atomics only.
        unsafe { self.0.as_ref() }
    }

    /// The engine's word.
    #[inline]
    pub(crate) fn state(&self) -> &AtomicU64 {
        &self.header().state
    }

    /// The row as it stands; see [`RowRef`] for what a caller may conclude from it.
    #[inline]
    pub(crate) fn row<'a>(self) -> RowRef<'a> {
        let len_bytes = (self.meta() >> LEN_SHIFT) as usize;
        // SAFETY: I1: the length in `meta` never exceeds the capacity, and I2 keeps the record while the transaction is pinned; a RowRef
        // is handed out only to closures within it.
        unsafe { RowRef::from_raw(self.words(), len_bytes) }
    }

    /// Whether a row of `len_bytes` can be written in place.
    #[inline]
    pub(crate) fn fits(self, len_bytes: usize) -> bool {
        len_bytes.div_ceil(8) <= self.capacity_words()
    }

    /// Stores one word of the row. The caller has the record to itself, but for readers.
    #[inline]
    pub(crate) fn store_word(self, index: usize, word: u64) {
        assert!(index < self.capacity_words(), "a word past the record's capacity");
        // SAFETY: within the capacity (I1). Relaxed: readers look at the state, or have the record to themselves.
        unsafe { (*self.words().add(index)).store(word, Ordering::Relaxed) }
    }

    /// Overwrites the row, which fits. The caller has the record to itself, but for readers.
    #[inline]
    pub(crate) fn store_row(self, row: &[u64], len_bytes: usize) {
        let capacity_words = self.capacity_words();
        assert_is_row(row, len_bytes);
        assert!(row.len() <= capacity_words, "a row that does not fit");
        let words = self.words();
        for (index, &word) in row.iter().enumerate() {
            // SAFETY: `index` lies below `row.len()`, which the assertion holds within the capacity (I1). Relaxed: as in `store_word`.
            unsafe { (*words.add(index)).store(word, Ordering::Relaxed) }
        }
        self.header().meta.store(meta(len_bytes, capacity_words, self.store()), Ordering::Relaxed);
    }

    /// The store to which the record belongs.
    #[inline]
    pub(crate) fn store(self) -> TableId {
        TableId(self.meta() as u32 & TableId::MAX.0)
    }

    /// Relaxed: the length alone changes, with the row.
    #[inline]
    fn meta(self) -> u64 {
        self.header().meta.load(Ordering::Relaxed)
    }

    #[inline]
    fn capacity_words(self) -> usize {
        (self.meta() >> STORE_BITS) as usize & ((1 << CAPACITY_BITS) - 1)
    }

    #[inline]
    fn words(self) -> *const AtomicU64 {
        // SAFETY: the words follow the header in the same allocation; the address of the first is at most its end.
        unsafe { self.0.as_ptr().add(1).cast::<AtomicU64>() }
    }

    /// Frees a record that was never published.
    ///
    /// # Safety
    /// No other thread has or can get the address.
    pub(crate) unsafe fn free(self, guard: &Guard<'_>) {
        let (layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `new`; the caller vouches that nobody can reach it.
        unsafe { guard.free(self.0.cast(), layout, account) }
    }

    /// Frees a record once every transaction that is pinned now has ended.
    ///
    /// # Safety
    /// No transaction that begins after this call can find the record, and it is retired once.
    pub(crate) unsafe fn retire(self, guard: &Guard<'_>) {
        let (layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `new`; the caller vouches that it is unreachable.
        unsafe { guard.retire(self.0.cast(), layout, account) }
    }

    fn block(self) -> (Layout, AccountId) {
        (layout_of(self.capacity_words()), AccountId(self.store().0))
    }
}

/// # Panics
/// When the row is longer than [`ROW_LEN_MAX`] or has not the words that it needs.
#[inline]
pub(crate) fn assert_is_row(row: &[u64], len_bytes: usize) {
    assert!(len_bytes <= ROW_LEN_MAX && row.len() == len_bytes.div_ceil(8), "a row has its words");
}

#[inline]
fn layout_of(capacity_words: usize) -> Layout {
    let size = HEADER_BYTES + capacity_words * WORD_BYTES;
    match Layout::from_size_align(size, align_of::<Header>()) {
        Ok(layout) => layout,
        Err(_) => unreachable!("rows are bounded by ROW_LEN_MAX"),
    }
}

fn meta(len_bytes: usize, capacity_words: usize, store: TableId) -> u64 {
    (len_bytes as u64) << LEN_SHIFT | (capacity_words as u64) << STORE_BITS | u64::from(store.0)
}
