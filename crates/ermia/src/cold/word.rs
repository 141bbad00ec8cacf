//! What stands in a slot whose record is cold.

use ensilo_engine::RoundedWords;

/// In a slot: the record is cold.
pub(crate) const COLD: u64 = 1 << 63;

/// In a slot, beside an address: the record is cooling.
pub(crate) const COOLING: u64 = 4;

const PLACE_SHIFT: u32 = 3;
const PLACE_BITS: u32 = 47;
const LEN_SHIFT: u32 = PLACE_SHIFT + PLACE_BITS;
const _: () = assert!(LEN_SHIFT + RoundedWords::BITS == 63);

/// Where a cold record lies, and how long it is with its head, both in words. Its three low bits are 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColdWord(u64);

impl ColdWord {
    pub(super) fn new(place: u64, len: RoundedWords) -> Self {
        assert!(place < 1 << PLACE_BITS, "a place that is too far away");
        ColdWord(COLD | len.code() << LEN_SHIFT | place << PLACE_SHIFT)
    }

    /// Returns what stands in a slot, if its record is cold.
    #[inline]
    pub(crate) fn from_slot(word: u64) -> Option<Self> {
        (word & COLD != 0).then_some(ColdWord(word))
    }

    #[inline]
    pub(crate) fn to_slot(self) -> u64 {
        self.0
    }

    pub(super) fn place(self) -> u64 {
        self.0 >> PLACE_SHIFT & ((1 << PLACE_BITS) - 1)
    }

    pub(super) fn len_words(self) -> usize {
        RoundedWords::from_code(self.0 >> LEN_SHIFT).get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_place_and_length_and_no_low_bit() {
        for (place, len) in [(0, 5), (1, 6), ((1 << PLACE_BITS) - 1, RoundedWords::MAX)] {
            let word = ColdWord::new(place, RoundedWords::at_least(len));
            assert_eq!((word.place(), word.len_words()), (place, len));
            assert_eq!(ColdWord::from_slot(word.to_slot()), Some(word));
            assert_eq!(word.to_slot() & 7, 0);
        }
        assert_eq!(ColdWord::from_slot(0x7fff_ffff_fff0), None);
    }
}
