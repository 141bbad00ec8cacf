//! Comparing a slice with all words of a node at once, without a branch that depends on them.
//!
//! Which of a node's words is the one cannot be predicted. A loop that ends there costs a wrong guess at every node: the
//! time of some fifty instructions, and the processor does not get to what comes after the look-up meanwhile. Comparing
//! all words takes fewer instructions than that, and always the same ones.
//!
//! # Why assembly
//! The words are atomics, and the compiler neither folds their loads into comparisons nor uses vector instructions for
//! them. With what it makes of [`portable`], one by one look-ups among a million random keys are as fast as with the loop,
//! and inserts 10 % slower; with the instructions here they are 10 % and 20 % faster than with [`portable`], and look-ups
//! side by side 13 % (`docs/index-benchmark.md`). The instructions here load each word once, like a Relaxed
//! load: on x86-64 an aligned word is not torn, also as half of an aligned 16-byte load. Only instructions that every x86-64
//! processor has are used. Other processors, model checkers, ThreadSanitizer and the counting of accesses take the portable functions.

#[cfg(any(
    test,
    not(all(target_arch = "x86_64", not(any(loom, shuttle, miri, tsan, ensilo_count, ensilo_portable))))
))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, miri, tsan, ensilo_count, ensilo_portable))))]
mod x86_64;

#[cfg(not(all(
    target_arch = "x86_64",
    not(any(loom, shuttle, miri, tsan, ensilo_count, ensilo_portable))
)))]
pub(crate) use portable::{count_less, equal_words};
#[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, miri, tsan, ensilo_count, ensilo_portable))))]
pub(crate) use x86_64::{count_less, equal_words};

/// Which words of an array equal something: two bits a word, of which the lower one counts.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct Places(u32);

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let place = self.0.trailing_zeros() as usize / 2;
        self.0 &= self.0 - 1;
        Some(place)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::{INTERIOR_WIDTH, WIDTH};
    use ensilo_sync::atomic::AtomicU64;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            0u64..4,
            (0u64..4).prop_map(|low| u64::MAX - low),
            (0u64..4, 0u64..4).prop_map(|(high, low)| high << 62 | low << 31),
        ]
    }

    proptest! {
        #[test]
        fn the_instructions_do_what_the_portable_functions_do(
            bounds in prop::array::uniform14(word()),
            slices in prop::array::uniform15(word()),
            other in word(),
            pick in 0..WIDTH,
        ) {
            let node = Slices { words: slices.map(AtomicU64::new) };
            let bounds: [AtomicU64; INTERIOR_WIDTH] = bounds.map(AtomicU64::new);
            for slice in [other, slices[pick]] {
                prop_assert_eq!(count_less(&bounds, slice), portable::count_less(&bounds, slice));
                prop_assert_eq!(count_less(&node.words, slice), portable::count_less(&node.words, slice));
                prop_assert_eq!(equal_words(&node.words, slice), portable::equal_words(&node.words, slice));
            }
        }
    }

    /// Aligned as in a border node.
    #[repr(align(16))]
    struct Slices {
        words: [AtomicU64; WIDTH],
    }
}
