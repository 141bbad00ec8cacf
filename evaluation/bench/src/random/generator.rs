//! A 64-bit pseudo-random generator of four words that a worker keeps in its own cache.
//!
//! # Source
//! xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021), its state filled by
//! SplitMix64. Written here because a run must be repeatable by its seed for as long as the program lives, which a
//! library's "small and fast" generator does not promise.

/// A generator that belongs to one worker. Equal seeds give equal sequences on every machine.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator with the sequence that `seed` determines; every seed, zero included, is as good as any other.
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut counter)) }
    }

    /// A generator for part `stream` of a seeded whole, unrelated to the generators of its other parts.
    pub fn for_stream(seed: u64, stream: u64) -> Self {
        let mut counter = stream;
        Self::new(seed ^ split_mix(&mut counter))
    }

    /// The next 64 bits, uniform.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let shifted = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= shifted;
        *s3 = s3.rotate_left(45);
        result
    }

    /// A number in `0..bound`, uniform but for a bias below `bound / 2^64`; `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "an empty range has no number to draw");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`, uniform.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "an empty range has no number to draw");
        low + self.below(high - low + 1)
    }

    /// A number in `[0, 1)`, uniform over the multiples of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True in `percent` of 100 draws.
    #[inline]
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Puts `items` in a random order, each order as likely as any other.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences() {
        let (mut one, mut two, mut other) = (Random::new(7), Random::new(7), Random::new(8));
        let take = |random: &mut Random| [(); 4].map(|()| random.next_u64());
        let first = take(&mut one);
        assert_eq!(first, take(&mut two));
        assert_ne!(first, take(&mut other));
    }

    #[test]
    fn streams_of_a_seed_differ() {
        assert_ne!(Random::for_stream(1, 0).next_u64(), Random::for_stream(1, 1).next_u64());
    }

    #[test]
    fn between_reaches_both_ends_and_nothing_else() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 5];
        for _ in 0..10_000 {
            seen[(random.between(3, 7) - 3) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (1_800..2_200).contains(count)), "{seen:?}");
    }

    #[test]
    fn unit_stays_below_one() {
        let mut random = Random::new(2);
        let draws: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn shuffle_keeps_the_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
