//! The comparisons for any processor.

use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::Places;
use crate::WIDTH;

/// Returns how many of the words are less than `slice`.
#[inline]
pub(crate) fn count_less<const N: usize>(words: &[AtomicU64; N], slice: u64) -> usize {
    words.iter().map(|word| usize::from(word.load(Ordering::Relaxed) < slice)).sum()
}

/// Returns which of the slices equal `slice`.
#[inline]
pub(crate) fn equal_words(slices: &[AtomicU64; WIDTH], slice: u64) -> Places {
    let equal = |word: &AtomicU64| u32::from(word.load(Ordering::Relaxed) == slice);
    Places(slices.iter().enumerate().fold(0, |places, (place, word)| places | equal(word) << (2 * place)))
}
