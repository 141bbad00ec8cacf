//! The order of a border node's slots, in one word.
//!
//! # Source
//! Masstree (EuroSys 2012) §4.6.2: a sorted order over unsorted slots lets an insert publish itself with one store.
//!
//! # Layout
//! ```text
//! bits 0 to 3          the number of slots in use, n
//! bits 4+4i to 7+4i    the slot at position i: the first n in key order, the others free
//! ```
//!
//! # Invariants
//! - **P1** The nibbles of positions `0..WIDTH` are a permutation of the slots `0..WIDTH`.

use crate::WIDTH;

/// A permutation of `0..WIDTH` and how many of its leading entries are in use.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct Permuter(u64);

/// Returns the lowest `positions` nibbles.
#[inline]
const fn low_nibbles(positions: usize) -> u64 {
    (1 << (4 * positions)) - 1
}

impl Permuter {
    /// All slots free; they are given out in order.
    pub(crate) const EMPTY: Permuter = Permuter((0x0EDC_BA98_7654_3210 & low_nibbles(WIDTH)) << 4);

    #[inline]
    pub(crate) fn from_word(word: u64) -> Self {
        Permuter(word)
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.0 & 15) as usize
    }

    #[inline]
    pub(crate) fn is_full(self) -> bool {
        self.len() == WIDTH
    }

    /// Returns the slot at `position`.
    #[inline]
    pub(crate) fn slot(self, position: usize) -> usize {
        (self.0 >> (4 * position + 4)) as usize & 15
    }

    /// Returns the slots in use, in key order.
    #[inline]
    pub(crate) fn slots(self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator {
        (0..self.len()).map(move |position| self.slot(position))
    }

    /// Returns whether `slot` is in use.
    #[inline]
    pub(crate) fn has(self, slot: usize) -> bool {
        const ONES: u64 = 0x1111_1111_1111_1111;
        // The nibble that equals the slot becomes zero, and of the nibbles that borrow the lowest is that one.
        let order = (self.0 >> 4) ^ (ONES * slot as u64);
        let zeros = order.wrapping_sub(ONES) & !order & (ONES << 3);
        zeros.trailing_zeros() as usize / 4 < self.len()
    }

    /// Returns the free slot that the next insert takes.
    #[inline]
    pub(crate) fn free_slot(self) -> usize {
        debug_assert!(!self.is_full());
        self.slot(self.len())
    }

    /// Puts [`Permuter::free_slot`] into use at `position`.
    #[inline]
    pub(crate) fn insert(self, position: usize) -> Self {
        let len = self.len();
        debug_assert!(position <= len && len < WIDTH);
        let order = self.0 >> 4;
        let slot = self.slot(len) as u64;
        let below = low_nibbles(position);
        let upto = low_nibbles(len + 1);
        let moved = (order << 4) & upto & !low_nibbles(position + 1);
        let order = (order & below) | (slot << (4 * position)) | moved | (order & !upto);
        Permuter(order << 4 | (len as u64 + 1))
    }

    /// Frees the slot at `position`; it is the next one that [`Permuter::free_slot`] names.
    #[inline]
    pub(crate) fn remove(self, position: usize) -> Self {
        let len = self.len();
        debug_assert!(position < len);
        let order = self.0 >> 4;
        let slot = self.slot(position) as u64;
        let below = low_nibbles(position);
        let moved = (order >> 4) & low_nibbles(len - 1) & !below;
        let order = (order & below) | moved | (slot << (4 * (len - 1))) | (order & !low_nibbles(len));
        Permuter(order << 4 | (len as u64 - 1))
    }

    /// Frees all slots from position `len` on.
    pub(crate) fn truncate(self, len: usize) -> Self {
        debug_assert!(len <= self.len());
        Permuter(self.0 & !15 | len as u64)
    }

    /// Returns whether P1 holds.
    pub(crate) fn is_valid(self) -> bool {
        let seen = (0..WIDTH).fold(0u32, |seen, position| seen | 1 << self.slot(position));
        seen == (1 << WIDTH) - 1 && self.len() <= WIDTH
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_permuter_gives_slots_out_in_order() {
        let mut permuter = Permuter::EMPTY;
        for slot in 0..WIDTH {
            assert_eq!(permuter.free_slot(), slot);
            permuter = permuter.insert(slot);
        }
        assert!(permuter.is_full());
        assert!(permuter.slots().eq(0..WIDTH));
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_vector_with_a_free_list(steps in prop::collection::vec((any::<bool>(), 0..WIDTH), 0..200)) {
            let mut permuter = Permuter::EMPTY;
            let mut model: Vec<usize> = Vec::new();
            for (insert, place) in steps {
                if insert && model.len() < WIDTH {
                    let place = place.min(model.len());
                    model.insert(place, permuter.free_slot());
                    permuter = permuter.insert(place);
                } else if !insert && place < model.len() {
                    let slot = model.remove(place);
                    permuter = permuter.remove(place);
                    prop_assert_eq!(permuter.free_slot(), slot);
                } else if place < model.len() {
                    model.truncate(place);
                    permuter = permuter.truncate(place);
                }
                prop_assert!(permuter.is_valid());
                prop_assert_eq!(permuter.slots().collect::<Vec<_>>(), model.clone());
            }
        }
    }
}
