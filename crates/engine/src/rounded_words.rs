//! A number of words in 13 bits, rounded up where it is large.
//!
//! # Layout
//! ```text
//! exponent (4 bits) | mantissa (9 bits): mantissa << exponent words
//! ```
//! Numbers below 512 are exact, and so are the sizes of the classes of `ensilo_slab`, which have four significant bits. Others are rounded
//! up by less than a 256th.

/// A number of words that is a mantissa of 9 bits, shifted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RoundedWords(u64);

const MANTISSA_BITS: u32 = 9;
const EXPONENT_BITS: u32 = 4;

impl RoundedWords {
    /// Bits of the code.
    pub const BITS: u32 = MANTISSA_BITS + EXPONENT_BITS;

    /// The largest number.
    pub const MAX: usize = ((1 << MANTISSA_BITS) - 1) << ((1 << EXPONENT_BITS) - 1);

    /// Returns the least such number that is not below `words`.
    ///
    /// # Panics
    /// When `words` exceeds [`RoundedWords::MAX`].
    #[inline]
    #[must_use]
    pub const fn at_least(words: usize) -> Self {
        if words < 1 << MANTISSA_BITS { RoundedWords(words as u64) } else { Self::rounded_up(words) }
    }

    const fn rounded_up(words: usize) -> Self {
        assert!(words <= Self::MAX, "more words than can be said");
        let mut exponent = words.ilog2() - (MANTISSA_BITS - 1);
        if words.div_ceil(1 << exponent) == 1 << MANTISSA_BITS {
            // Rounding up carries into another bit.
            exponent += 1;
        }
        RoundedWords((exponent as u64) << MANTISSA_BITS | words.div_ceil(1 << exponent) as u64)
    }

    /// Returns the number with this code; bits above those of a code are ignored.
    #[inline]
    #[must_use]
    pub const fn from_code(code: u64) -> Self {
        RoundedWords(code & ((1 << Self::BITS) - 1))
    }

    /// Returns the code, of [`RoundedWords::BITS`].
    #[inline]
    #[must_use]
    pub const fn code(self) -> u64 {
        self.0
    }

    /// Returns the number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> usize {
        ((self.0 & ((1 << MANTISSA_BITS) - 1)) as usize) << (self.0 >> MANTISSA_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_least_that_can_be_said() {
        let mut last = 0;
        for code in (0..1 << RoundedWords::BITS).map(RoundedWords::from_code) {
            let words = code.get();
            assert_eq!(RoundedWords::at_least(words).get(), words);
            if words == last + 1 || words <= last {
                last = last.max(words);
                continue;
            }
            assert_eq!(RoundedWords::at_least(last + 1).get(), words, "nothing lies between");
            assert!((words - last - 1) * 256 < last, "{last} {words}");
            last = words;
        }
        assert_eq!(last, RoundedWords::MAX);
    }

    #[test]
    fn a_code_keeps_within_its_bits() {
        assert_eq!(RoundedWords::at_least(RoundedWords::MAX).code() >> RoundedWords::BITS, 0);
        assert_eq!(RoundedWords::from_code(u64::MAX).get(), RoundedWords::MAX);
    }
}
