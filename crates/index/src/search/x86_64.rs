//! The comparisons with instructions that every x86-64 processor has.

use std::arch::asm;

use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::Places;
use crate::WIDTH;

// The instructions are written out for this number of words.
const _: () = assert!(WIDTH == 15);

/// Returns how many of the words are less than `slice`; there are 14 or 15.
#[inline]
pub(crate) fn count_less<const N: usize>(words: &[AtomicU64; N], slice: u64) -> usize {
    const { assert!(N == 14 || N == 15) };
    let (mut low, mut high) = (0usize, 0usize);
    // SAFETY: the instructions read the first 14 words, which are atomics, each with one aligned load, and write nothing but
    // the two sums. `cmp` leaves a borrow if the word is less; `adc` adds it.
    unsafe {
        asm!(
            "cmp [{words} + 0], {slice}",
            "adc {low}, 0",
            "cmp [{words} + 8], {slice}",
            "adc {high}, 0",
            "cmp [{words} + 16], {slice}",
            "adc {low}, 0",
            "cmp [{words} + 24], {slice}",
            "adc {high}, 0",
            "cmp [{words} + 32], {slice}",
            "adc {low}, 0",
            "cmp [{words} + 40], {slice}",
            "adc {high}, 0",
            "cmp [{words} + 48], {slice}",
            "adc {low}, 0",
            "cmp [{words} + 56], {slice}",
            "adc {high}, 0",
            "cmp [{words} + 64], {slice}",
            "adc {low}, 0",
            "cmp [{words} + 72], {slice}",
            "adc {high}, 0",
            "cmp [{words} + 80], {slice}",
            "adc {low}, 0",
            "cmp [{words} + 88], {slice}",
            "adc {high}, 0",
            "cmp [{words} + 96], {slice}",
            "adc {low}, 0",
            "cmp [{words} + 104], {slice}",
            "adc {high}, 0",
            words = in(reg) words.as_ptr(),
            slice = in(reg) slice,
            low = inout(reg) low,
            high = inout(reg) high,
            options(readonly, nostack),
        );
    }
    let rest = words[14..].iter().map(|word| usize::from(word.load(Ordering::Relaxed) < slice));
    low + high + rest.sum::<usize>()
}

/// Returns which of the slices equal `slice`.
///
/// Halves of words are compared, two words at a time, and the results packed to a bit for each half; a word is equal where
/// both halves are.
#[inline]
pub(crate) fn equal_words(slices: &[AtomicU64; WIDTH], slice: u64) -> Places {
    let (first, last): (u32, u32);
    debug_assert!(slices.as_ptr().addr().is_multiple_of(16));
    // SAFETY: the instructions read the 15 words of `slices`, which are atomics and begin at a multiple of 16 bytes, two with
    // each aligned load and the last one alone, and write nothing but registers.
    unsafe {
        asm!(
            "movq {key}, {slice}",
            "punpcklqdq {key}, {key}",
            "movdqa {a}, [{words}]",
            "movdqa {b}, [{words} + 16]",
            "pcmpeqd {a}, {key}",
            "pcmpeqd {b}, {key}",
            "packssdw {a}, {b}",
            "movdqa {b}, [{words} + 32]",
            "movdqa {c}, [{words} + 48]",
            "pcmpeqd {b}, {key}",
            "pcmpeqd {c}, {key}",
            "packssdw {b}, {c}",
            "packsswb {a}, {b}",
            "pmovmskb {first:e}, {a}",
            "movdqa {a}, [{words} + 64]",
            "movdqa {b}, [{words} + 80]",
            "pcmpeqd {a}, {key}",
            "pcmpeqd {b}, {key}",
            "packssdw {a}, {b}",
            "movdqa {b}, [{words} + 96]",
            "movq {c}, [{words} + 112]",
            "pcmpeqd {b}, {key}",
            "pcmpeqd {c}, {key}",
            "packssdw {b}, {c}",
            "packsswb {a}, {b}",
            "pmovmskb {last:e}, {a}",
            words = in(reg) slices.as_ptr(),
            slice = in(reg) slice,
            key = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            first = out(reg) first,
            last = out(reg) last,
            options(readonly, nostack),
        );
    }
    const WORDS: u32 = (1 << (2 * WIDTH)) - 1;
    let halves = first | last << 16;
    Places(halves & (halves >> 1) & 0x5555_5555 & WORDS)
}
