//! What is added to a number in a row, whatever the number is.

/// A number in a row, and what is added to it: an amount, or one that is taken away.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The index of the row's word that holds the number.
    pub word: u32,
    /// Where in the word the number begins, counted from its lowest bit.
    pub shift: u8,
    /// The number's width in bits: 8, 16, 32 or 64.
    pub bits: u8,
    /// Whether the number is one in two's complement.
    pub is_signed: bool,
    /// Whether the amount is taken away.
    pub is_subtraction: bool,
    /// The amount.
    pub amount: u64,
}

/// Bits of a packed addition's first word, above those of the index and of shift and width.
const SIGNED: u64 = 1 << 48;
const SUBTRACTION: u64 = 1 << 49;

impl Addition {
    /// Returns whether the other one is to the same number.
    #[must_use]
    pub fn has_number_of(self, other: Self) -> bool {
        (self.word, self.shift) == (other.word, other.shift)
    }

    /// Returns the row's word with the sum in the place of the number; `None` where the number's type does not have the sum.
    #[inline]
    #[must_use]
    pub fn apply(self, word: u64) -> Option<u64> {
        let mask = u64::MAX >> (u64::BITS - u32::from(self.bits));
        let number = word >> self.shift & mask;
        let (number, range) = if self.is_signed {
            let unused = i64::BITS - u32::from(self.bits);
            let number = number.cast_signed() << unused >> unused;
            (i128::from(number), i128::from(i64::MIN >> unused)..=i128::from(i64::MAX >> unused))
        } else {
            (i128::from(number), 0..=i128::from(mask))
        };
        let amount = i128::from(self.amount);
        let sum = if self.is_subtraction { number - amount } else { number + amount };
        range.contains(&sum).then_some(word & !(mask << self.shift) | (sum as u64 & mask) << self.shift)
    }

    /// Returns the addition as two words, for [`Addition::unpack`].
    #[inline]
    #[must_use]
    pub fn pack(self) -> [u64; 2] {
        let mut place = u64::from(self.word) | u64::from(self.shift) << 32 | u64::from(self.bits) << 40;
        if self.is_signed {
            place |= SIGNED;
        }
        if self.is_subtraction {
            place |= SUBTRACTION;
        }
        [place, self.amount]
    }

    /// Returns the addition of two words that [`Addition::pack`] has made.
    #[inline]
    #[must_use]
    pub fn unpack([place, amount]: [u64; 2]) -> Self {
        Addition {
            word: place as u32,
            shift: (place >> 32) as u8,
            bits: (place >> 40) as u8,
            is_signed: place & SIGNED != 0,
            is_subtraction: place & SUBTRACTION != 0,
            amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: u64 = 0x0102_0304_0506_0708;

    fn addition(bits: u8, shift: u8, is_signed: bool, amount: i128) -> Addition {
        let is_subtraction = amount < 0;
        Addition { word: 3, shift, bits, is_signed, is_subtraction, amount: amount.unsigned_abs() as u64 }
    }

    #[test]
    fn a_sum_takes_the_place_of_its_number_alone() {
        let word = addition(16, 16, false, 0x10).apply(OTHERS).unwrap();
        assert_eq!(word, 0x0102_0304_0516_0708);
        assert_eq!(addition(8, 56, true, -3).apply(OTHERS).unwrap() >> 56, 0xfe);
        assert_eq!(addition(64, 0, false, 1).apply(OTHERS).unwrap(), OTHERS + 1);
    }

    #[test]
    fn a_sum_that_the_type_does_not_have_is_none() {
        for bits in [8u8, 16, 32, 64] {
            let all = u64::MAX >> (64 - bits);
            let (largest, smallest) = (all >> 1, (all >> 1) + 1);
            for (number, is_signed, amount, expected) in [
                (all, false, 1, None),
                (all, false, -i128::from(all), Some(0)),
                (0, false, -1, None),
                (0, false, i128::from(all), Some(all)),
                (largest, true, 1, None),
                (largest, true, -1, Some(largest - 1)),
                (smallest, true, -1, None),
                (smallest, true, i128::from(all), Some(largest)),
                (all, true, 1, Some(0)),
                (0, true, -1, Some(all)),
            ] {
                let sum = addition(bits, 0, is_signed, amount).apply(number);
                assert_eq!(sum, expected, "{bits} bits, {number:#x} and {amount}, signed: {is_signed}");
            }
        }
    }

    #[test]
    fn a_packed_addition_is_the_same() {
        for (bits, shift, is_signed, amount) in [(8, 56, true, -7), (64, 0, false, i128::from(u64::MAX))] {
            let addition = Addition { word: u32::MAX, ..addition(bits, shift, is_signed, amount) };
            assert_eq!(Addition::unpack(addition.pack()), addition);
        }
    }
}
