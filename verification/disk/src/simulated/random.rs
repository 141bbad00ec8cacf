//! Numbers that follow from a seed.

/// SplitMix64: every seed is a good one, and the state is one word.
#[derive(Debug, Clone, Default)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number from 0 to `end - 1`. `end` is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // The bias is `end / 2^64`, nothing to a test.
        self.next() % end
    }

    /// Like [`Random::below`], for places in a list.
    pub(super) fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("below a usize")
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() & 1 == 0
    }
}

/// Returns a number that looks drawn at random and depends on nothing but `word`.
pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
