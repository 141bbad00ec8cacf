//! A row as the engine hands it to a caller: words that are copied one by one, and the epoch in which they were committed.

use std::marker::PhantomData;
use std::ops::Deref;

use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::tid::Tid;

/// The largest row in bytes: values of 16 MiB, and room beside them.
pub const ROW_LEN_MAX: usize = 32 << 20;

/// A row of one version, read in place: its words, and the [epoch](RowRef::epoch) in which it was committed.
///
/// The row may be one that a committing transaction is overwriting: what a caller computes from it counts only once
/// the engine has checked that the record's TID did not change meanwhile, and the engine repeats the computation
/// until that is so. Hence a computation over a `RowRef` must accept any words and any epoch, and must have no effect
/// but its result.
///
/// An engine makes one of a [`RawRow`], and has to say there whose version it is.
#[derive(Copy, Clone, Debug)]
pub struct RowRef<'a> {
    row: RawRow<'a>,
    epoch: Epoch,
}

impl RowRef<'_> {
    /// Returns the epoch in which the row was committed: that of the [TID](Tid::epoch) of its version, also after a recovery, and in a
    /// snapshot that of the older version that it shows. It is [`Epoch::MAX`] for a row that the reading transaction has written itself,
    /// also where it has patched a committed one, and in an engine whose rows [have no epochs](crate::Engine::ROWS_HAVE_EPOCHS).
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
}

impl<'a> Deref for RowRef<'a> {
    type Target = RawRow<'a>;

    #[inline]
    fn deref(&self) -> &RawRow<'a> {
        &self.row
    }
}

/// The words of a row, read in place, whichever version they belong to. What holds for a [`RowRef`] holds for them: they may be overwritten
/// meanwhile.
#[derive(Copy, Clone, Debug)]
pub struct RawRow<'a> {
    words: *const AtomicU64,
    len_bytes: usize,
    owner: PhantomData<&'a AtomicU64>,
}

impl<'a> RawRow<'a> {
    /// Returns a row over words that belong to the caller.
    ///
    /// # Panics
    /// When `words` are fewer than `len_bytes` needs.
    #[must_use]
    pub fn new(words: &'a [AtomicU64], len_bytes: usize) -> Self {
        assert!(len_bytes.div_ceil(8) <= words.len(), "a row longer than its words");
        RawRow { words: words.as_ptr(), len_bytes, owner: PhantomData }
    }

    /// Returns a row over the words from `words` on.
    ///
    /// # Safety
    /// `len_bytes.div_ceil(8)` words from `words` on must stay valid for reading during `'a`.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(words: *const AtomicU64, len_bytes: usize) -> Self {
        RawRow { words, len_bytes, owner: PhantomData }
    }

    /// Returns the row as one that was committed in this epoch: that of the TID which the engine has read before the row, and looks at
    /// again behind it.
    #[inline]
    #[must_use]
    pub fn committed_in(self, epoch: Epoch) -> RowRef<'a> {
        RowRef { row: self, epoch }
    }

    /// Returns the row as one that the reading transaction has written itself.
    #[inline]
    #[must_use]
    pub fn uncommitted(self) -> RowRef<'a> {
        RowRef { row: self, epoch: Epoch::MAX }
    }

    /// Returns the row's length in bytes.
    #[inline]
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Returns the row's length in words; the last one is padded with zero bytes.
    #[inline]
    #[must_use]
    pub fn len_words(&self) -> usize {
        self.len_bytes.div_ceil(8)
    }

    /// Word `index`; 0 past the end.
    #[inline]
    #[must_use]
    pub fn word(&self, index: usize) -> u64 {
        if index * 8 >= self.len_bytes {
            return 0;
        }
        // SAFETY: `index` lies below `len_words()`, and the constructor's caller vouches for that many words during 'a.
        // Relaxed: torn rows are rejected by the engine's second look at the TID word.
        unsafe { (*self.words.add(index)).load(Ordering::Relaxed) }
    }

    /// Returns the first `N` words; 0 past the end. One look at the length instead of one a word.
    #[inline]
    #[must_use]
    pub fn words<const N: usize>(&self) -> [u64; N] {
        if N * 8 > self.len_bytes + 7 {
            return self.words_of_short_row();
        }
        // SAFETY: the indexes lie below `N`, which is at most `len_words()`, and the constructor's caller vouches for that many words
        // during 'a. Relaxed: as in `word`.
        std::array::from_fn(|index| unsafe { (*self.words.add(index)).load(Ordering::Relaxed) })
    }

    #[cold]
    fn words_of_short_row<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|index| self.word(index))
    }

    /// Returns the row's words; the last one is padded with zero bytes.
    #[inline]
    pub fn all_words(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        // SAFETY: the constructor's caller vouches for that many words during 'a; words may be written meanwhile, since they are
        // atomics.
        let words = unsafe { std::slice::from_raw_parts(self.words, self.len_words()) };
        // Relaxed: as in `word`.
        words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Appends the row's words to `target`.
    #[inline]
    pub fn copy_to(&self, target: &mut Vec<u64>) {
        target.extend(self.all_words());
    }
}

/// Holds what every engine asks of a row that it is given.
///
/// # Panics
/// When the row is longer than [`ROW_LEN_MAX`], or `row` has not exactly the words that it needs.
#[inline]
pub fn assert_is_row(row: &[u64], len_bytes: usize) {
    assert!(len_bytes <= ROW_LEN_MAX, "a row longer than ROW_LEN_MAX");
    assert!(row.len() == len_bytes.div_ceil(8), "a row of another length than it says");
}

/// A row with its key, as a checkpoint keeps it.
#[derive(Debug, Copy, Clone)]
pub struct StoredRow<'a> {
    /// The key's bytes.
    pub key: &'a [u8],
    /// The TID of the version.
    pub tid: Tid,
    /// The row's words, the last one padded with zero bytes.
    pub words: &'a [u64],
    /// The row's length in bytes.
    pub len_bytes: usize,
}
