//! A record: one TID word, a link to the previous version, and the row in the same allocation.
//!
//! # Source
//! Silo (SOSP 2013) §4.3 and §4.5. The header is 24 bytes where the prototype's is 32. The row's words are atomics
//! (DESIGN, decision 2): readers and the one writer that holds the lock may touch them at the same time.
//!
//! # Layout
//! ```text
//!  0        8          16       24                              24 + 8 * capacity
//! +--------+----------+--------+-------------------------------+
//! | TID    | previous | meta   | row, 8 bytes a word           |
//! +--------+----------+--------+-------------------------------+
//! meta: row length in bytes (21 bits) | capacity in words (18 bits) | table id (25 bits), from the top
//! ```
//!
//! # Invariants
//! I1. Capacity and table never change; the row length never exceeds the capacity.
//! I2. Row and length change only under the lock, and only while the record is the latest version of its key.
//! I3. A record that the tree or a `previous` link reached is freed only after every transaction that could have found it has ended.
//! I4. A *mark* is a version whose row lies in the deleted record that links to it, which keeps its row for good. It names no table
//!     and has no room for a row.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | tid-install | [`RecordPtr::publish`] Release | [`RecordPtr::stable_tid`] Acquire | the row before its TID |
//! | tid-lock | Release fence in [`RecordPtr::try_lock`] and [`RecordPtr::begin_install`] | Acquire fence in [`RecordPtr::still`] | a reader that copied a word of a later writer sees that writer's lock |
//! | previous | [`RecordPtr::push_version`] Release | [`RecordPtr::previous`] Acquire | the copied version before the link to it |

use std::alloc::Layout;
use std::ptr::NonNull;

use ensilo_engine::{AbortReason, ROW_LEN_MAX, RowRef, TableId, Tid};
use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, Heap, OutOfMemory};
use ensilo_sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use ensilo_sync::{Backoff, prefetch};

use crate::tid::TidWord;

/// Waiting steps after which a held lock is reported as such. A commit holds its locks for microseconds; only a thread
/// that lost its core holds them longer, and the later waiting steps give the core away to let it run.
const LOCK_WAITS_MAX: u32 = 20_000;

#[repr(C)]
struct Header {
    tid: AtomicU64,
    previous: AtomicPtr<Header>,
    meta: AtomicU64,
}

const HEADER_BYTES: usize = size_of::<Header>();
const WORD_BYTES: usize = size_of::<AtomicU64>();
const LINE_BYTES: usize = 64;
/// A longer row is left to the processor, which sees by then that it is read in order.
const PREFETCHED_BYTES_MAX: usize = 1024;

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(HEADER_BYTES == 24 && WORD_BYTES == 8);

const TABLE_BITS: u32 = 25;
const CAPACITY_BITS: u32 = 18;
const LEN_SHIFT: u32 = TABLE_BITS + CAPACITY_BITS;
const _: () = assert!(ROW_LEN_MAX < 1 << (64 - LEN_SHIFT) && ROW_LEN_MAX / 8 < 1 << CAPACITY_BITS);

/// The table ids that a record can name.
pub(crate) const TABLE_ID_MAX: u32 = (1 << TABLE_BITS) - 1;

/// The address of a record.
///
/// The type's promise is that the record is allocated and that invariant I3 keeps it so while the transaction that
/// holds the address is pinned; the one unsafe way to break it is [`RecordPtr::from_index_value`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordPtr(NonNull<Header>);

// SAFETY: a record is made of atomics, and its address may be used from any thread that is pinned (I3).
unsafe impl Send for RecordPtr {}

impl RecordPtr {
    /// A record of `table` with room for a row of `row_len_bytes`, whose words are not initialised to anything but zero padding.
    pub(crate) fn allocate(
        guard: &Guard<'_>,
        table: TableId,
        row_len_bytes: usize,
        tid: TidWord,
    ) -> Result<RecordPtr, OutOfMemory> {
        debug_assert!(row_len_bytes <= ROW_LEN_MAX && table.0 <= TABLE_ID_MAX);
        let needed = layout_of(row_len_bytes.div_ceil(8));
        let capacity_words = (Heap::usable_size(needed) - HEADER_BYTES) / WORD_BYTES;
        let block = guard.allocate(layout_of(capacity_words), AccountId(table.0))?;
        // SAFETY: the block is fresh, and was allocated for a record of this capacity.
        Ok(unsafe { RecordPtr::begin(block, table, row_len_bytes, capacity_words, tid) })
    }

    /// A mark (I4) from the general-purpose allocator, to be freed by [`RecordPtr::free_general`].
    pub(crate) fn allocate_mark(guard: &Guard<'_>) -> Result<RecordPtr, OutOfMemory> {
        RecordPtr::allocate_general(guard, TableId::NONE, 0, TidWord::PLACEHOLDER)
    }

    /// Whether this is a mark (I4).
    #[inline]
    pub(crate) fn is_mark(self) -> bool {
        self.table() == TableId::NONE
    }

    /// The same from the general-purpose allocator, to be freed by [`RecordPtr::free_general`].
    pub(crate) fn allocate_general(
        guard: &Guard<'_>,
        table: TableId,
        row_len_bytes: usize,
        tid: TidWord,
    ) -> Result<RecordPtr, OutOfMemory> {
        debug_assert!(row_len_bytes <= ROW_LEN_MAX && table.0 <= TABLE_ID_MAX);
        let capacity_words = row_len_bytes.div_ceil(8);
        let heap = guard.participant().heap();
        let block = heap.allocate_general(layout_of(capacity_words), AccountId(table.0))?;
        // SAFETY: the block is fresh, and was allocated for a record of this capacity.
        Ok(unsafe { RecordPtr::begin(block, table, row_len_bytes, capacity_words, tid) })
    }

    /// The same from the reserve beside the memory limit, to be freed by [`RecordPtr::free_reserve`].
    #[cold]
    pub(crate) fn allocate_reserve(
        guard: &Guard<'_>,
        table: TableId,
        row_len_bytes: usize,
        tid: TidWord,
    ) -> Result<RecordPtr, OutOfMemory> {
        let capacity_words = row_len_bytes.div_ceil(8);
        let heap = guard.participant().heap();
        let block = heap.allocate_reserve(layout_of(capacity_words), AccountId(table.0))?;
        // SAFETY: the block is fresh, and was allocated for a record of this capacity.
        Ok(unsafe { RecordPtr::begin(block, table, row_len_bytes, capacity_words, tid) })
    }

    /// Makes a record of a block.
    ///
    /// # Safety
    /// Nobody else knows the block, which has the size and alignment of a record of this capacity.
    #[inline]
    unsafe fn begin(
        block: NonNull<u8>,
        table: TableId,
        row_len_bytes: usize,
        capacity_words: usize,
        tid: TidWord,
    ) -> RecordPtr {
        let header = block.cast::<Header>();
        // SAFETY: the caller's promise: the block is large enough and aligned for a header followed by `capacity_words` words, and nobody
        // else knows it.
        unsafe {
            header.write(Header {
                tid: AtomicU64::new(tid.raw()),
                previous: AtomicPtr::new(std::ptr::null_mut()),
                meta: AtomicU64::new(meta(row_len_bytes, capacity_words, table)),
            });
            if cfg!(any(loom, shuttle)) {
                // A model checker's atomic has to be constructed; a real one may hold any bits before its first store.
                let words = header.add(1).cast::<AtomicU64>();
                for index in 0..capacity_words {
                    words.add(index).write(AtomicU64::new(0));
                }
            }
        }
        RecordPtr(header)
    }

    /// The word that stands for this record in an index.
    #[inline]
    pub(crate) fn index_value(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// The record that stands in an index under `value`.
    ///
    /// # Safety
    /// `value` must come from [`RecordPtr::index_value`] of a record that I3 protects: read from the index while pinned.
    #[inline]
    pub(crate) unsafe fn from_index_value(value: u64) -> RecordPtr {
        let header = std::ptr::with_exposed_provenance_mut(value as usize);
        // SAFETY: the caller's promise; an address of a record is never null.
        RecordPtr(unsafe { NonNull::new_unchecked(header) })
    }

    /// The address as a number: the order in which locks are taken.
    #[inline]
    pub(crate) fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the type's promise: the record is allocated while this address is in use. A header is atomics only.
        unsafe { self.0.as_ref() }
    }

    /// The TID word, for validation. Acquire: [tid-install] what is concluded from it is at least as new.
    #[inline]
    pub(crate) fn tid(self) -> TidWord {
        TidWord::from_raw(self.header().tid.load(Ordering::Acquire))
    }

    /// The TID word once no writer is at work, or why there is none: a writer holds the lock for unreasonably long, or a prepared
    /// transaction does, for which nobody waits.
    #[inline]
    pub(crate) fn stable_tid(self) -> Result<TidWord, AbortReason> {
        let word = self.tid();
        if word.is_locked() { self.wait_for_unlock() } else { Ok(word) }
    }

    #[cold]
    fn wait_for_unlock(self) -> Result<TidWord, AbortReason> {
        match self.standing_tid() {
            Some(word) if word.is_prepared() => Err(AbortReason::PreparedLock),
            Some(word) => Ok(word),
            None => Err(AbortReason::LockHeld),
        }
    }

    /// The TID word once the row stands: no writer is at work, or the one that holds the lock is prepared and changes nothing before its
    /// decision. `None` when a writer is at work for unreasonably long.
    pub(crate) fn standing_tid(self) -> Option<TidWord> {
        let mut backoff = Backoff::new();
        while backoff.waits() < LOCK_WAITS_MAX {
            let word = self.tid();
            if !word.is_locked() || word.is_prepared() {
                return Some(word);
            }
            backoff.wait();
        }
        None
    }

    /// Whether the TID word is still `word`, so that everything copied since it was read belongs to that version.
    #[inline]
    pub(crate) fn still(self, word: TidWord) -> bool {
        // Acquire fence: [tid-lock] if a copied word came from a later writer, the load below sees its lock or its TID.
        fence(Ordering::Acquire);
        self.header().tid.load(Ordering::Relaxed) == word.raw()
    }

    /// Takes the lock if the TID word is exactly `expected`, which must be unlocked.
    #[inline]
    pub(crate) fn try_lock(self, expected: TidWord) -> bool {
        debug_assert!(!expected.is_locked());
        let locked = expected.locked().raw();
        // Acquire: we write over what the previous holder installed. On failure nothing is concluded but "not now".
        let taken = self
            .header()
            .tid
            .compare_exchange(expected.raw(), locked, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        // Release fence: [tid-lock] no word that we store after this becomes visible before the lock does.
        fence(Ordering::Release);
        taken
    }

    /// Says that the holder of the lock is prepared. `word` is what the record carried before it was locked.
    pub(crate) fn hold_prepared(self, word: TidWord) {
        debug_assert!(self.tid() == word.locked());
        // Release: who sees the word sees what came before the vote.
        self.header().tid.store(word.prepared().raw(), Ordering::Release);
    }

    /// Says that the holder of the lock, which was prepared, is at work.
    pub(crate) fn begin_install(self, word: TidWord) {
        debug_assert!(self.tid() == word.prepared());
        self.header().tid.store(word.locked().raw(), Ordering::Relaxed);
        // Release fence: [tid-lock] as in `try_lock`: who has read the row beside the prepared word sees this one if a word was newer.
        fence(Ordering::Release);
    }

    /// Stores `word`, which frees the lock. Release: [tid-install].
    #[inline]
    pub(crate) fn publish(self, word: TidWord) {
        debug_assert!(self.tid().is_locked() && !word.is_locked());
        self.header().tid.store(word.raw(), Ordering::Release);
    }

    /// The row as it stands; see [`RowRef`] for what a caller may conclude from it.
    #[inline]
    pub(crate) fn row<'a>(self) -> RowRef<'a> {
        let len_bytes = len_of(self.header().meta.load(Ordering::Relaxed));
        // SAFETY: I1: the length that stands in `meta` never exceeds the capacity, whoever is writing meanwhile; I3 keeps
        // the record while the transaction is pinned, and a RowRef is handed out only to closures within it.
        unsafe { RowRef::from_raw(self.words(), len_bytes) }
    }

    /// Starts to load the row. Its length is read, and waited for if it is not in the cache.
    #[inline]
    pub(crate) fn prefetch_row(self) {
        let end = HEADER_BYTES + len_of(self.header().meta.load(Ordering::Relaxed)).min(PREFETCHED_BYTES_MAX);
        let record = self.0.as_ptr().cast::<u8>().cast_const();
        (LINE_BYTES..end).step_by(LINE_BYTES).for_each(|offset| prefetch(record.wrapping_add(offset)));
    }

    /// Starts to load the header.
    #[inline]
    pub(crate) fn prefetch_header(self) {
        prefetch(self.0.as_ptr().cast::<u8>().cast_const());
    }

    /// Starts to load the row, and what lies behind the link to the previous version. The header is waited for if it is not in the cache.
    #[inline]
    pub(crate) fn prefetch_row_and_side(self) {
        self.prefetch_row();
        prefetch(self.side().cast::<u8>().cast_const());
    }

    /// Whether a row of `len_bytes` can be written in place.
    #[inline]
    pub(crate) fn fits(self, len_bytes: usize) -> bool {
        len_bytes.div_ceil(8) <= self.capacity_words()
    }

    /// Stores one word of the row. The caller holds the lock or is alone with the record, and `index` is within the row.
    #[inline]
    pub(crate) fn store_word(self, index: usize, word: u64) {
        assert!(index < self.capacity_words(), "a word past the record's capacity");
        // SAFETY: within the capacity (I1).
        unsafe { (*self.words().add(index)).store(word, Ordering::Relaxed) }
    }

    /// Overwrites the row. The caller holds the lock or is alone with the record, and the row fits.
    #[inline]
    pub(crate) fn store_row(self, row: impl ExactSizeIterator<Item = u64>, len_bytes: usize) {
        let capacity_words = self.capacity_words();
        assert!(row.len() == len_bytes.div_ceil(8) && row.len() <= capacity_words, "a row that does not fit");
        let words = self.words();
        for (index, word) in row.enumerate() {
            // SAFETY: `index` lies below `row.len()`, which the assertion holds within the capacity (I1).
            unsafe { (*words.add(index)).store(word, Ordering::Relaxed) }
        }
        let meta_word = meta(len_bytes, capacity_words, self.table());
        self.header().meta.store(meta_word, Ordering::Relaxed);
    }

    /// Overwrites the row from a transaction's own words. The caller holds the lock or is alone with the record, and the row fits.
    #[inline]
    pub(crate) fn store_row_words(self, row: &[AtomicU64], len_bytes: usize) {
        let capacity_words = self.capacity_words();
        assert!(row.len() == len_bytes.div_ceil(8) && row.len() <= capacity_words, "a row that does not fit");
        // SAFETY: as many words as `row` has, which the assertion holds within the capacity (I1).
        let words = unsafe { std::slice::from_raw_parts(self.words(), row.len()) };
        // By four, because the compiler does not unroll loops over atomics.
        let ((words, last_words), (row, last)) = (words.as_chunks::<4>(), row.as_chunks::<4>());
        for (words, row) in words.iter().zip(row) {
            store_words(words, row);
        }
        store_words(last_words, last);
        self.header().meta.store(meta(len_bytes, capacity_words, self.table()), Ordering::Relaxed);
    }

    /// Overwrites the row of this record, which nobody else knows, by that of `locked`, whose lock the caller holds. It fits.
    pub(crate) fn copy_row(self, locked: RecordPtr) {
        let row = locked.row();
        let capacity_words = self.capacity_words();
        assert!(row.len_words() <= capacity_words, "a row that does not fit");
        if cfg!(any(loom, shuttle, ensilo_count)) {
            return self.store_row((0..row.len_words()).map(|index| row.word(index)), row.len_bytes());
        }
        // SAFETY: both rows have that many words (I1, and the assertion), and are different records. This is no data race: the
        // words of `locked` are written by the holder of its lock alone, which is the caller (I2), those of `self` by whoever knows
        // it, which is the caller too; what earlier holders wrote is visible since the lock was taken.
        unsafe { std::ptr::copy_nonoverlapping(locked.words(), self.words().cast_mut(), row.len_words()) };
        self.header().meta.store(meta(row.len_bytes(), capacity_words, self.table()), Ordering::Relaxed);
    }

    /// Overwrites the row by its bytes. The caller holds the lock or is alone with the record, and the row fits.
    pub(crate) fn store_row_bytes(self, row: &[u8]) {
        let (words, rest) = row.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let whole = words.len();
        let word = |at: usize| u64::from_le_bytes(if at < whole { words[at] } else { last });
        self.store_row((0..row.len().div_ceil(8)).map(word), row.len());
    }

    /// What the link to the previous version leads to during a replay, which is something else. The caller holds the record's lock.
    #[inline]
    pub(crate) fn side(self) -> *mut () {
        // Relaxed: the lock orders it.
        self.header().previous.load(Ordering::Relaxed).cast()
    }

    /// Puts another address there. The caller holds the record's lock.
    #[inline]
    pub(crate) fn set_side(self, side: *mut ()) {
        // Relaxed: as in `side`.
        self.header().previous.store(side.cast(), Ordering::Relaxed);
    }

    /// Sets the TID word of a record that is not published yet.
    #[inline]
    pub(crate) fn set_unpublished_tid(self, word: TidWord) {
        // Relaxed: publishing the record's address carries it.
        self.header().tid.store(word.raw(), Ordering::Relaxed);
    }

    /// The version before this one. Acquire: [previous] its row is as complete as the link.
    #[inline]
    pub(crate) fn previous(self) -> Option<RecordPtr> {
        NonNull::new(self.header().previous.load(Ordering::Acquire)).map(RecordPtr)
    }

    /// Links `older` as the version before this one. Release: [previous].
    #[inline]
    pub(crate) fn set_previous(self, older: Option<RecordPtr>) {
        let link = older.map_or(std::ptr::null_mut(), |record| record.0.as_ptr());
        self.header().previous.store(link, Ordering::Release);
    }

    /// Copies this record's row and its `word` into `copy`, and links it as the previous version. The caller holds the lock.
    pub(crate) fn push_version(self, copy: RecordPtr, word: TidWord) {
        copy.copy_row(self);
        copy.header().tid.store(word.superseded().raw(), Ordering::Relaxed);
        copy.set_previous(self.previous());
        self.set_previous(Some(copy));
    }

    /// Makes `mark` the version with this record's `word` and row, and links it as the previous one. The caller holds the lock, and
    /// deletes the record.
    pub(crate) fn push_mark(self, mark: RecordPtr, word: TidWord) {
        debug_assert!(mark.is_mark());
        mark.header().tid.store(word.superseded().raw(), Ordering::Relaxed);
        mark.set_previous(self.previous());
        self.set_previous(Some(mark));
    }

    /// The table or index to which the record belongs.
    #[inline]
    pub(crate) fn table(self) -> TableId {
        TableId(self.header().meta.load(Ordering::Relaxed) as u32 & TABLE_ID_MAX)
    }

    #[inline]
    fn capacity_words(self) -> usize {
        let meta = self.header().meta.load(Ordering::Relaxed);
        (meta >> TABLE_BITS) as usize & ((1 << CAPACITY_BITS) - 1)
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
        // SAFETY: allocated with this layout and account in `allocate`; the caller vouches that nobody can reach it.
        unsafe { guard.free(self.0.cast(), layout, account) }
    }

    /// Frees a record once every transaction that is pinned now has ended.
    ///
    /// # Safety
    /// No transaction that begins after this call can find the record, and it is retired once.
    pub(crate) unsafe fn retire(self, guard: &Guard<'_>) {
        let (layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `allocate`; the caller vouches that it is unreachable.
        unsafe { guard.retire(self.0.cast(), layout, account) }
    }

    /// Frees a record of [`RecordPtr::allocate_general`].
    ///
    /// # Safety
    /// No other thread has or can get the address.
    pub(crate) unsafe fn free_general(self, guard: &Guard<'_>) {
        let (layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `allocate_general`; the caller vouches that nobody can reach it.
        unsafe { guard.participant().heap().free_general(self.0.cast(), layout, account) }
    }

    /// Frees a record of [`RecordPtr::allocate_reserve`].
    ///
    /// # Safety
    /// No other thread has or can get the address.
    #[cold]
    pub(crate) unsafe fn free_reserve(self, guard: &Guard<'_>) {
        let (layout, account) = self.block();
        // SAFETY: allocated with this layout and account in `allocate_reserve`; the caller vouches that nobody can reach it.
        unsafe { guard.participant().heap().free_reserve(self.0.cast(), layout, account) }
    }

    /// Whether the record is a committed deletion, which its deleter's unhook list owns.
    pub(crate) fn belongs_to_unhook(self) -> bool {
        let word = self.tid();
        word.is_absent() && word.tid() != Tid::ZERO
    }

    /// The bytes that the record occupies.
    pub(crate) fn size_bytes(self) -> usize {
        self.block().0.size()
    }

    fn block(self) -> (Layout, AccountId) {
        (layout_of(self.capacity_words()), AccountId(self.table().0))
    }
}

/// Stores the words of a transaction over those of a record.
#[inline]
fn store_words(target: &[AtomicU64], row: &[AtomicU64]) {
    for (target, word) in target.iter().zip(row) {
        // Relaxed: `row` belongs to the calling worker; readers of the record look at its TID word before and after.
        target.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[inline]
fn layout_of(capacity_words: usize) -> Layout {
    let size = HEADER_BYTES + capacity_words * WORD_BYTES;
    match Layout::from_size_align(size, align_of::<Header>()) {
        Ok(layout) => layout,
        Err(_) => unreachable!("rows are bounded by ROW_LEN_MAX"),
    }
}

const fn meta(len_bytes: usize, capacity_words: usize, table: TableId) -> u64 {
    (len_bytes as u64) << LEN_SHIFT | (capacity_words as u64) << TABLE_BITS | table.0 as u64
}

const fn len_of(meta: u64) -> usize {
    (meta >> LEN_SHIFT) as usize
}
