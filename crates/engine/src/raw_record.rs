//! A record in memory: a header of its engine's own, and the row behind it in the same allocation.
//!
//! # Layout
//! ```text
//! +--------+---------+-------------------------------+
//! | header | meta    | row, 8 bytes a word           |
//! +--------+---------+-------------------------------+
//! meta (8 bytes): row length in bytes (26 bits) | size of the allocation (13 bits) | store id (25 bits), from the top
//! ```
//! The size is in words, [rounded up](RoundedWords) where it is large; what is behind the header is the *capacity*.
//!
//! # Invariants
//! I1. Capacity and store never change; the row length never exceeds the capacity.
//! I2. A record that others have found is freed only after every transaction that could have found it has ended.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, Heap, OutOfMemory};
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::{LINE_BYTES, prefetch};

use crate::rounded_words::RoundedWords;
use crate::row::{ROW_LEN_MAX, RawRow};
use crate::store::TableId;

const WORD_BYTES: usize = size_of::<AtomicU64>();
/// A longer row is left to the processor, which sees by then that it is read in order.
const PREFETCHED_BYTES_MAX: usize = 1024;

const STORE_BITS: u32 = 25;
const LEN_SHIFT: u32 = STORE_BITS + RoundedWords::BITS;
const _: () = assert!(TableId::MAX.0 < 1 << STORE_BITS && ROW_LEN_MAX < 1 << (64 - LEN_SHIFT));
/// The size of every record can be said: the words of the longest row, and of a header, which is shorter than that.
const _: () = assert!(2 * ROW_LEN_MAX / 8 < RoundedWords::MAX);

/// What a record begins with.
#[repr(C)]
struct Head<H> {
    header: H,
    meta: AtomicU64,
}

/// The address of a record with a header of type `H`, which consists of atomics.
///
/// The type's promise is that the record is allocated, and that its engine keeps I2, so that it stays so while the transaction that
/// holds the address is pinned. Each function that could break it is unsafe: those that make an address of a word or of foreign memory, and
/// those that free the record, after which nobody uses its address or a row of it any more. The words of a row hold any bits until the
/// row is stored.
pub struct RawRecord<H>(NonNull<Head<H>>);

// SAFETY: a record is made of atomics, and its address may be used from any thread that is pinned (I2).
unsafe impl<H: Send + Sync> Send for RawRecord<H> {}

impl<H> RawRecord<H> {
    const HEAD_BYTES: usize = size_of::<Head<H>>();
    /// Whole words, but for the atomics of a model checker.
    const HEAD_WORDS: usize = Self::HEAD_BYTES.div_ceil(WORD_BYTES);

    /// Returns a record of `store` from the heap, with room for a row of `row_len_bytes`, which is not set yet. [`RawRecord::free`] and
    /// [`RawRecord::retire`] give it back.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    ///
    /// # Panics
    /// When the row is longer than [`ROW_LEN_MAX`], or the store's id larger than [`TableId::MAX`].
    #[inline]
    pub fn allocate(
        guard: &Guard<'_>,
        store: TableId,
        row_len_bytes: usize,
        header: H,
    ) -> Result<Self, OutOfMemory> {
        let needed = Self::layout_of(Self::size_for(row_len_bytes));
        // Exact: classes are such numbers, and what is larger was rounded up already.
        let size = RoundedWords::at_least(Heap::usable_size(needed) / WORD_BYTES);
        let allocate = |layout, account| guard.allocate(layout, account);
        // SAFETY: blocks of the heap are fresh, and free again when they are given back.
        unsafe { RawRecord::allocate_by(store, row_len_bytes, size, header, allocate) }
    }

    /// Returns a record with room for this row and hardly more, in memory from elsewhere, to where it is given back as [`RawRecord::block`].
    ///
    /// # Errors
    /// [`OutOfMemory`].
    ///
    /// # Panics
    /// As [`RawRecord::allocate`].
    ///
    /// # Safety
    /// What `allocate` returns is a block of the layout that it is given, and nobody else uses it until it is given back.
    pub unsafe fn allocate_exact(
        store: TableId,
        row_len_bytes: usize,
        header: H,
        allocate: impl FnOnce(Layout, AccountId) -> Result<NonNull<u8>, OutOfMemory>,
    ) -> Result<Self, OutOfMemory> {
        let size = Self::size_for(row_len_bytes);
        // SAFETY: the caller's promise.
        unsafe { RawRecord::allocate_by(store, row_len_bytes, size, header, allocate) }
    }

    /// # Safety
    /// As for [`RawRecord::allocate_exact`].
    #[inline]
    unsafe fn allocate_by(
        store: TableId,
        row_len_bytes: usize,
        size: RoundedWords,
        header: H,
        allocate: impl FnOnce(Layout, AccountId) -> Result<NonNull<u8>, OutOfMemory>,
    ) -> Result<Self, OutOfMemory> {
        assert!(store <= TableId::MAX, "an id that is too large");
        let block = allocate(Self::layout_of(size), AccountId(store.0))?;
        let head = block.cast::<Head<H>>();
        let meta = AtomicU64::new(meta(row_len_bytes, size, store));
        // SAFETY: the caller's promise: the block is ours, and was allocated for a head and so many words behind it.
        unsafe {
            head.write(Head { header, meta });
            if cfg!(any(loom, shuttle)) {
                // A model checker's atomic has to be constructed; a real one may hold any bits before its first store.
                let words = head.add(1).cast::<AtomicU64>();
                for index in 0..size.get() - Self::HEAD_WORDS {
                    words.add(index).write(AtomicU64::new(0));
                }
            }
        }
        Ok(RawRecord(head))
    }

    /// Returns the word that stands for this record in an index.
    #[inline]
    #[must_use]
    pub fn index_value(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Returns the record that stands in an index, or in another record, under `value`.
    ///
    /// # Safety
    /// `value` must come from [`RawRecord::index_value`] of a record that I2 protects: read while pinned.
    #[inline]
    #[must_use]
    pub unsafe fn from_index_value(value: u64) -> Self {
        let head = std::ptr::with_exposed_provenance_mut(value as usize);
        // SAFETY: the caller's promise; an address of a record is never null.
        RawRecord(unsafe { NonNull::new_unchecked(head) })
    }

    /// Returns the address as a pointer.
    #[inline]
    #[must_use]
    pub fn as_ptr(self) -> NonNull<()> {
        self.0.cast()
    }

    /// Returns the record at this address.
    ///
    /// # Safety
    /// `address` must come from [`RawRecord::as_ptr`] of a record that I2 protects.
    #[inline]
    #[must_use]
    pub unsafe fn from_ptr(address: NonNull<()>) -> Self {
        RawRecord(address.cast())
    }

    /// Returns the address as a number.
    #[inline]
    #[must_use]
    pub fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    #[inline]
    fn head(&self) -> &Head<H> {
        // SAFETY: the type's promise: the record is allocated while this address is in use. A head consists of atomics.
        unsafe { self.0.as_ref() }
    }

    /// Returns the engine's header.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &H {
        &self.head().header
    }

    /// Relaxed: the length alone changes, with the row.
    #[inline]
    fn meta(self) -> u64 {
        self.head().meta.load(Ordering::Relaxed)
    }

    /// Returns the store to which the record belongs.
    #[inline]
    #[must_use]
    pub fn store(self) -> TableId {
        TableId(self.meta() as u32 & ((1 << STORE_BITS) - 1))
    }

    /// Returns how many words were allocated, those of the header among them.
    #[inline]
    fn size(self) -> RoundedWords {
        RoundedWords::from_code(self.meta() >> STORE_BITS)
    }

    #[inline]
    fn capacity_words(self) -> usize {
        self.size().get() - Self::HEAD_WORDS
    }

    #[inline]
    fn words(self) -> *const AtomicU64 {
        // SAFETY: the words follow the head in the same allocation; the address of the first is at most its end.
        unsafe { self.0.as_ptr().add(1).cast::<AtomicU64>() }
    }

    /// Returns the row as it stands; see [`RowRef`](crate::RowRef) for what a caller may conclude from it.
    #[inline]
    #[must_use]
    pub fn row<'a>(self) -> RawRow<'a> {
        // SAFETY: I1: the length in `meta` never exceeds the capacity, also while somebody writes; I2 keeps the record while the
        // transaction is pinned, and a row is handed out only to closures within it.
        unsafe { RawRow::from_raw(self.words(), len_of(self.meta())) }
    }

    /// Returns whether a row of `len_bytes` can be written in place.
    #[inline]
    #[must_use]
    pub fn fits(self, len_bytes: usize) -> bool {
        len_bytes.div_ceil(8) <= self.capacity_words()
    }

    /// Returns whether the record is a large block (`ensilo_slab::Heap::is_large`) of which a row of `len_bytes` takes less than a quarter: such a
    /// row is better off in a record of its own.
    #[inline]
    #[must_use]
    pub fn wastes_large(self, len_bytes: usize) -> bool {
        len_bytes.div_ceil(8) < self.capacity_words() / 4 && Heap::is_large(Self::layout_of(self.size()))
    }

    /// Stores one word of the row. The caller has the record to itself, but for readers, and `index` is within the row.
    ///
    /// # Panics
    /// When `index` is past the record's capacity.
    #[inline]
    pub fn store_word(self, index: usize, word: u64) {
        self.store_words([(index, word)]);
    }

    /// Stores words of the row, each with its index. The caller has the record to itself, but for readers, and the indexes are within
    /// the row.
    ///
    /// # Panics
    /// When an index is past the record's capacity; the words before it are stored.
    #[inline]
    pub fn store_words(self, words: impl IntoIterator<Item = (usize, u64)>) {
        // I1: it never changes.
        let capacity_words = self.capacity_words();
        for (index, word) in words {
            assert!(index < capacity_words, "a word past the record's capacity");
            // SAFETY: within the capacity (I1). Relaxed: readers look at the engine's header before and after.
            unsafe { (*self.words().add(index)).store(word, Ordering::Relaxed) }
        }
    }

    /// Overwrites the row. The caller has the record to itself, but for readers.
    ///
    /// # Panics
    /// When the row does not fit, or has not the words that it needs.
    #[inline]
    pub fn store_row(self, row: impl ExactSizeIterator<Item = u64>, len_bytes: usize) {
        let words = self.words_for(row.len(), len_bytes);
        for (target, word) in words.iter().zip(row) {
            // Relaxed: as in `store_word`.
            target.store(word, Ordering::Relaxed);
        }
        self.set_len(len_bytes);
    }

    /// Overwrites the row from a transaction's own words. The caller has the record to itself, but for readers.
    ///
    /// # Panics
    /// As [`RawRecord::store_row`].
    #[inline]
    pub fn store_row_words(self, row: &[AtomicU64], len_bytes: usize) {
        let words = self.words_for(row.len(), len_bytes);
        // By four, because the compiler does not unroll loops over atomics.
        let ((words, last_words), (row, last)) = (words.as_chunks::<4>(), row.as_chunks::<4>());
        for (words, row) in words.iter().zip(row) {
            store_words(words, row);
        }
        store_words(last_words, last);
        self.set_len(len_bytes);
    }

    /// Overwrites the row by its bytes. The caller has the record to itself, but for readers.
    ///
    /// # Panics
    /// When the row does not fit.
    pub fn store_row_bytes(self, row: &[u8]) {
        let (words, rest) = row.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let whole = words.len();
        let word = |at: usize| u64::from_le_bytes(if at < whole { words[at] } else { last });
        self.store_row((0..row.len().div_ceil(8)).map(word), row.len());
    }

    /// Overwrites the row by that of `other`.
    ///
    /// # Safety
    /// Nobody else knows this record, and nobody writes to the other one, which is not this one, during the call. What earlier writers
    /// have written there is visible to the caller.
    ///
    /// # Panics
    /// When the row does not fit.
    pub unsafe fn copy_row(self, other: Self) {
        let row = other.row();
        if cfg!(any(loom, shuttle, ensilo_count)) {
            return self.store_row((0..row.len_words()).map(|index| row.word(index)), row.len_bytes());
        }
        let words = self.words_for(row.len_words(), row.len_bytes());
        // SAFETY: both rows have that many words (I1, and `words_for`), and are different records. This is no data race: the caller
        // vouches that nobody writes to either.
        unsafe { std::ptr::copy_nonoverlapping(other.words(), words.as_ptr().cast_mut(), row.len_words()) };
        self.set_len(row.len_bytes());
    }

    /// Returns the words that a row of this length will have, which fits.
    #[inline]
    fn words_for(&self, len_words: usize, len_bytes: usize) -> &[AtomicU64] {
        let fits = len_words == len_bytes.div_ceil(8) && len_words <= self.capacity_words();
        assert!(fits, "a row that does not fit");
        // SAFETY: as many words as the assertion holds within the capacity (I1), and atomics, which others may use meanwhile.
        unsafe { std::slice::from_raw_parts(self.words(), len_words) }
    }

    /// The row has this length now, which [`RawRecord::words_for`] has admitted.
    #[inline]
    fn set_len(self, len_bytes: usize) {
        let meta = self.meta() & ((1 << LEN_SHIFT) - 1) | (len_bytes as u64) << LEN_SHIFT;
        self.head().meta.store(meta, Ordering::Relaxed);
    }

    /// Starts to load the row. Its length is read, and waited for if it is not in the cache.
    #[inline]
    pub fn prefetch_row(self) {
        let end = Self::HEAD_BYTES + len_of(self.meta()).min(PREFETCHED_BYTES_MAX);
        let record = self.0.as_ptr().cast::<u8>().cast_const();
        (LINE_BYTES..end).step_by(LINE_BYTES).for_each(|offset| prefetch(record.wrapping_add(offset)));
    }

    /// Starts to load a word of the row, if it has one at `index`.
    #[inline]
    pub fn prefetch_word(self, index: usize) {
        let record = self.0.as_ptr().cast::<u8>().cast_const();
        prefetch(record.wrapping_add(Self::HEAD_BYTES).wrapping_add(index.wrapping_mul(8)));
    }

    /// Starts to load the header.
    #[inline]
    pub fn prefetch_header(self) {
        prefetch(self.0.as_ptr().cast::<u8>().cast_const());
    }

    /// Frees a record of [`RawRecord::allocate`].
    ///
    /// # Safety
    /// No other thread has or can get the address.
    #[inline]
    pub unsafe fn free(self, guard: &Guard<'_>) {
        let (block, layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `allocate`; the caller vouches that nobody can reach it.
        unsafe { guard.free(block, layout, account) }
    }

    /// Frees a record of [`RawRecord::allocate`] once every transaction that is pinned now has ended.
    ///
    /// # Safety
    /// No transaction that begins after this call can find the record, and it is retired once.
    #[inline]
    pub unsafe fn retire(self, guard: &Guard<'_>) {
        let (block, layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `allocate`; the caller vouches that it is unreachable.
        unsafe { guard.retire(block, layout, account) }
    }

    /// Returns the record's memory, as it was allocated.
    #[inline]
    #[must_use]
    pub fn block(self) -> (NonNull<u8>, Layout, AccountId) {
        (self.0.cast(), Self::layout_of(self.size()), AccountId(self.store().0))
    }

    /// Returns how many words a record takes at least that has room for such a row.
    #[inline]
    fn size_for(row_len_bytes: usize) -> RoundedWords {
        assert!(row_len_bytes <= ROW_LEN_MAX, "a row that is too large");
        // Eight bytes of the row a word, also where a model checker's atomics are larger.
        RoundedWords::at_least(Self::HEAD_WORDS + row_len_bytes.div_ceil(8))
    }

    #[inline]
    fn layout_of(size: RoundedWords) -> Layout {
        match Layout::from_size_align(size.get() * WORD_BYTES, align_of::<Head<H>>()) {
            Ok(layout) => layout,
            Err(_) => unreachable!("rows are bounded by ROW_LEN_MAX"),
        }
    }
}

// Written by hand: an address is copied, compared and shown whatever the header is.
impl<H> Clone for RawRecord<H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for RawRecord<H> {}

impl<H> PartialEq for RawRecord<H> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<H> Eq for RawRecord<H> {}

impl<H> fmt::Debug for RawRecord<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawRecord").field(&self.0).finish()
    }
}

/// Stores the words of a transaction over those of a record.
#[inline]
fn store_words(target: &[AtomicU64], row: &[AtomicU64]) {
    for (target, word) in target.iter().zip(row) {
        // Relaxed: `row` belongs to the caller; for `target` as in `RawRecord::store_word`.
        target.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

const fn meta(len_bytes: usize, size: RoundedWords, store: TableId) -> u64 {
    (len_bytes as u64) << LEN_SHIFT | size.code() << STORE_BITS | store.0 as u64
}

const fn len_of(meta: u64) -> usize {
    (meta >> LEN_SHIFT) as usize
}
