//! The tails of a border node's keys: what comes behind the slices of slots of kind `SUFFIX`, and the paths of slots of kind `PATH`.
//!
//! # Layout
//! One block of memory per border node that has such slots:
//! ```text
//! capacity_words  used_words  entries[WIDTH]  words[capacity_words]
//! ```
//! An entry is `offset_words << 16 | length_bytes`. The bytes lie in whole words, filled with zeros at the end, so that
//! they are compared word by word.
//!
//! # Invariants
//! - **S1** Space is only appended: words below `used_words` never change, and each entry ever stored describes such
//!   words. So an entry read at any time can be followed safely, and an entry that was read under a node version
//!   which was still valid afterwards can be followed later, too.
//!   A suffix that becomes a path, or a path that becomes shorter, gets an entry for the first of its words.
//! - **S2** When the space is used up the owner of the node's lock copies the live suffixes into another bag and retires this one.
//!
//! # Memory ordering
//! `[suffix]` an entry is stored with Release after its words and loaded with Acquire before they are read.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};
use ensilo_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ensilo_sync::{LINE_BYTES, prefetch};

use crate::WIDTH;
use crate::unlinked::TreePart;

const LENGTH_BITS: u32 = 16;

const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;

/// A bag in which each suffix of a full node has a word.
const SHORT_BAG_BYTES: usize = size_of::<BagHeader>().next_multiple_of(8) + 8 * WIDTH;

/// The head of the block.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct BagHeader {
    capacity_words: u32,
    used_words: AtomicU32,
    entries: [AtomicU32; WIDTH],
}

/// The suffixes of one border node.
#[derive(Debug, Copy, Clone)]
pub(crate) struct SuffixBag<'g> {
    header: NonNull<BagHeader>,
    guard: PhantomData<&'g BagHeader>,
}

/// Where in its bag a suffix is.
#[derive(Debug, Copy, Clone, Default)]
pub(crate) struct SuffixEntry(u32);

/// One suffix; readable as long as the guard lives, see S1.
#[derive(Debug, Copy, Clone)]
pub(crate) struct Suffix<'g> {
    words: &'g [AtomicU64],
    len_bytes: usize,
}

/// Returns the words that `len_bytes` bytes take.
pub(crate) fn words_for(len_bytes: usize) -> usize {
    len_bytes.div_ceil(8)
}

impl<'g> SuffixBag<'g> {
    /// # Safety
    /// `header` begins a block made by [`SuffixBag::allocate`] that is not freed during `'g`.
    #[inline]
    pub(crate) unsafe fn new(header: NonNull<BagHeader>) -> Self {
        SuffixBag { header, guard: PhantomData }
    }

    /// Returns an empty bag that nobody else knows.
    pub(crate) fn allocate(
        guard: &'g Guard<'_>,
        account: AccountId,
        capacity_words: usize,
    ) -> Result<Self, OutOfMemory> {
        assert!(capacity_words < 1 << (32 - LENGTH_BITS), "an entry can name every word");
        let header: NonNull<BagHeader> = guard.allocate(Self::layout(capacity_words), account)?.cast();
        let empty = BagHeader {
            capacity_words: capacity_words as u32,
            used_words: AtomicU32::new(0),
            entries: std::array::from_fn(|_| AtomicU32::new(0)),
        };
        // SAFETY: the block is ours, and large and aligned enough for the header in front of the words. It is freed
        // through a guard no earlier than this one ends, or by `free`, whose caller forgets it.
        unsafe {
            header.write(empty);
            Ok(Self::new(header))
        }
    }

    fn layout(capacity_words: usize) -> Layout {
        let words = Layout::array::<AtomicU64>(capacity_words);
        words
            .and_then(|words| Layout::new::<BagHeader>().extend(words))
            .map(|(layout, _)| layout.pad_to_align())
            .unwrap_or_else(|_| unreachable!("at most 2^16 words"))
    }

    fn header(self) -> &'g BagHeader {
        // SAFETY: the block is not freed during 'g; its capacity is not written after `allocate`, the rest is atomic.
        unsafe { self.header.as_ref() }
    }

    /// Returns the pointer by which a node refers to this bag.
    pub(crate) fn as_ptr(self) -> *mut BagHeader {
        self.header.as_ptr()
    }

    /// Starts to load the head, and the words of as many suffixes as a node has if they are short.
    #[inline]
    pub(crate) fn prefetch(self) {
        let block = self.as_ptr().cast::<u8>().cast_const();
        (0..SHORT_BAG_BYTES).step_by(LINE_BYTES).for_each(|offset| prefetch(block.wrapping_add(offset)));
    }

    pub(crate) fn capacity_words(self) -> usize {
        self.header().capacity_words as usize
    }

    pub(crate) fn has_room_for(self, len_bytes: usize) -> bool {
        let used = self.header().used_words.load(Ordering::Relaxed) as usize;
        used + words_for(len_bytes) <= self.capacity_words()
    }

    /// Gives `slot` the suffix `bytes`. The caller holds the node's lock or owns the bag, and has asked for room.
    pub(crate) fn append(self, slot: usize, bytes: &[u8]) {
        self.append_words(slot, bytes.len(), bytes.chunks(8).map(word_of));
    }

    /// Gives `slot` a suffix that another slot has or had, perhaps in another bag; otherwise like `append`.
    pub(crate) fn append_copy(self, slot: usize, suffix: Suffix<'_>) {
        let words = suffix.words.iter().map(|word| word.load(Ordering::Relaxed));
        self.append_words(slot, suffix.len_bytes, words);
    }

    fn append_words(self, slot: usize, len_bytes: usize, words: impl ExactSizeIterator<Item = u64>) {
        assert!(self.has_room_for(len_bytes), "S1: there was room");
        let offset = self.header().used_words.load(Ordering::Relaxed) as usize;
        let used = offset + words.len();
        for (place, word) in words.enumerate() {
            // SAFETY: the word lies within the capacity, as asserted; no entry describes it yet, so that nobody reads it,
            // and only the holder of the lock, this thread, writes.
            unsafe { self.words_start().add(offset + place).write(AtomicU64::new(word)) };
        }
        self.header().used_words.store(used as u32, Ordering::Relaxed);
        let entry = (offset as u32) << LENGTH_BITS | len_bytes as u32;
        // Release: [suffix].
        self.header().entries[slot].store(entry, Ordering::Release);
    }

    /// Leaves `slot` the first bytes of its suffix, in whole words. The caller holds the node's lock.
    pub(crate) fn shorten(self, slot: usize, len_bytes: usize) {
        let SuffixEntry(entry) = self.entry(slot);
        debug_assert!(
            len_bytes.is_multiple_of(8) && len_bytes as u32 <= entry & LENGTH_MASK,
            "S1: these words are described"
        );
        // Release: [suffix]; the words are older.
        self.header().entries[slot].store(entry & !LENGTH_MASK | len_bytes as u32, Ordering::Release);
    }

    /// Returns the suffix that `slot` has, or had: valid if the node's version did not change meanwhile.
    #[inline]
    pub(crate) fn suffix(self, slot: usize) -> Suffix<'g> {
        self.follow(self.entry(slot))
    }

    /// Returns the entry of `slot`, to be followed later; valid if the node's version did not change meanwhile.
    #[inline]
    pub(crate) fn entry(self, slot: usize) -> SuffixEntry {
        // Acquire: [suffix].
        SuffixEntry(self.header().entries[slot].load(Ordering::Acquire))
    }

    /// Returns the suffix that an entry of this bag describes.
    #[inline]
    pub(crate) fn follow(self, SuffixEntry(entry): SuffixEntry) -> Suffix<'g> {
        let len_bytes = (entry & LENGTH_MASK) as usize;
        let offset = (entry >> LENGTH_BITS) as usize;
        let len_words = words_for(len_bytes);
        debug_assert!(offset + len_words <= self.capacity_words(), "S1");
        // SAFETY: S1: these words lie within the block, are initialised and never change; it is not freed during 'g.
        let words = unsafe { std::slice::from_raw_parts(self.words_start().add(offset).as_ptr(), len_words) };
        Suffix { words, len_bytes }
    }

    #[inline]
    fn words_start(self) -> NonNull<AtomicU64> {
        const { assert!(align_of::<AtomicU64>() <= align_of::<BagHeader>() * 2) };
        let offset = size_of::<BagHeader>().next_multiple_of(align_of::<AtomicU64>());
        // SAFETY: the words begin behind the header, in the same block, see `layout`.
        unsafe { self.header.byte_add(offset).cast() }
    }

    /// Frees a bag that nobody else has ever seen.
    ///
    /// # Safety
    /// The bag came from [`SuffixBag::allocate`] with this account, was never published, and is not used again.
    pub(crate) unsafe fn free(self, guard: &Guard<'_>, account: AccountId) {
        let layout = Self::layout(self.capacity_words());
        // SAFETY: the caller's promise covers what the guard asks for.
        unsafe { guard.free(self.header.cast(), layout, account) };
    }
}

impl TreePart for SuffixBag<'_> {
    /// A bag does not know its node.
    fn has_left(&self) -> bool {
        true
    }

    unsafe fn retire(self, guard: &Guard<'_>, account: AccountId) {
        let layout = Self::layout(self.capacity_words());
        // SAFETY: the caller's promise covers what the guard asks for.
        unsafe { guard.retire(self.header.cast(), layout, account) };
    }
}

impl Suffix<'_> {
    pub(crate) fn len(self) -> usize {
        self.len_bytes
    }

    /// Returns the bytes as little-endian words; the last one is filled with zeros.
    #[inline]
    pub(crate) fn words(self) -> impl Iterator<Item = u64> {
        self.words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn equals(self, bytes: &[u8]) -> bool {
        self.len_bytes == bytes.len() && self.has_words_of(bytes)
    }

    /// Returns whether `bytes` begin with this, which is whole words, and go on.
    #[inline]
    pub(crate) fn begins(self, bytes: &[u8]) -> bool {
        self.len_bytes < bytes.len() && self.has_words_of(bytes)
    }

    /// Returns whether the words are those of `bytes`, as far as both go.
    #[inline]
    fn has_words_of(self, bytes: &[u8]) -> bool {
        let mut pairs = self.words.iter().zip(bytes.chunks(8));
        pairs.all(|(word, chunk)| word.load(Ordering::Relaxed) == word_of(chunk))
    }

    /// Writes the suffix to the front of `target`, which must be long enough.
    #[inline]
    pub(crate) fn copy_to(self, target: &mut [u8]) {
        for (word, chunk) in self.words.iter().zip(target[..self.len_bytes].chunks_mut(8)) {
            let bytes = word.load(Ordering::Relaxed).to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// Up to 8 bytes as a word, filled with zeros.
#[inline]
fn word_of(chunk: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..chunk.len()].copy_from_slice(chunk);
    u64::from_le_bytes(bytes)
}
