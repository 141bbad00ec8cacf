//! Ranks drawn with Zipf's probabilities in constant time, and a permutation that scatters hot ranks over the keys.
//!
//! # Source
//! Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), §3.2: one uniform number, one
//! power, no rejection. Rank `r` (from 0) of `n` has a probability near `1 / ((r + 1)^theta * zeta(n))`.
//!
//! The sum `zeta(n) = 1 + 2^-theta + .. + n^-theta` is added up exactly over its first terms and finished by the
//! Euler-Maclaurin formula, so that a billion records cost no more to set up than a hundred thousand.

use super::Random;

/// Terms of zeta that are added one by one; the rest is an integral with two correction terms, exact to 1e-12 here.
const EXACT_TERMS: u64 = 10_000;

/// Zipf's distribution over the ranks `0..count`; `theta` in `0.0..1.0` says how skewed it is (0 is uniform).
#[derive(Debug, Clone)]
pub struct Zipfian {
    count: u64,
    theta: f64,
    alpha: f64,
    zeta_count: f64,
    zeta_two: f64,
    eta: f64,
    half_power_theta: f64,
}

impl Zipfian {
    /// A distribution over `0..count`; `count` is at least 1 and `theta` in `0.0..1.0`.
    pub fn new(count: u64, theta: f64) -> Self {
        debug_assert!(count > 0 && (0.0..1.0).contains(&theta));
        let mut zipfian = Self {
            count: 0,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta_count: 0.0,
            zeta_two: zeta(2, theta),
            eta: 0.0,
            half_power_theta: 0.5f64.powf(theta),
        };
        zipfian.grow_to(count);
        zipfian
    }

    /// Makes the distribution one over `0..count`.
    pub fn grow_to(&mut self, count: u64) {
        self.count = count;
        self.zeta_count = zeta(count, self.theta);
        self.eta =
            (1.0 - (2.0 / count as f64).powf(1.0 - self.theta)) / (1.0 - self.zeta_two / self.zeta_count);
    }

    /// How many ranks there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The next rank, in `0..count`; 0 is the most frequent.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta_count;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.half_power_theta {
            return 1.min(self.count - 1);
        }
        let rank = self.count as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count - 1)
    }
}

/// `1^-theta + 2^-theta + .. + count^-theta`.
fn zeta(count: u64, theta: f64) -> f64 {
    let exact = count.min(EXACT_TERMS);
    let mut sum: f64 = (1..=exact).map(|i| (i as f64).powf(-theta)).sum();
    if count > exact {
        let (low, high) = (exact as f64, count as f64);
        let integral = (high.powf(1.0 - theta) - low.powf(1.0 - theta)) / (1.0 - theta);
        let ends = (high.powf(-theta) - low.powf(-theta)) / 2.0;
        let slopes = theta * (low.powf(-theta - 1.0) - high.powf(-theta - 1.0)) / 12.0;
        sum += integral + ends + slopes;
    }
    sum
}

/// A permutation of `0..count` that sends neighbours far from each other, so that the hot ranks of a [`Zipfian`] do
/// not share index nodes.
#[derive(Debug, Clone, Copy)]
pub struct Scatter {
    count: u64,
    step: u64,
}

impl Scatter {
    /// A permutation of `0..count`; `count` is at least 1.
    pub fn new(count: u64) -> Self {
        // The golden section's step keeps any run of consecutive ranks evenly spread; a step without a common divisor
        // with `count` reaches every key exactly once.
        let golden = (count as f64 * 0.618_033_988_749_894_9) as u64;
        let step = (golden.max(1)..).find(|&step| common_divisor(step, count) == 1).unwrap_or(1);
        Self { count, step }
    }

    /// Where `rank` goes.
    #[inline]
    pub fn apply(&self, rank: u64) -> u64 {
        match rank.checked_mul(self.step) {
            Some(product) => product % self.count,
            None => ((u128::from(rank) * u128::from(self.step)) % u128::from(self.count)) as u64,
        }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_by_formula_agrees_with_zeta_by_addition() {
        for theta in [0.0, 0.2, 0.5, 0.9, 0.99] {
            let exact: f64 = (1..=200_000u64).map(|i| (i as f64).powf(-theta)).sum();
            let formula = zeta(200_000, theta);
            assert!((exact - formula).abs() / exact < 1e-10, "theta {theta}: {exact} {formula}");
        }
    }

    #[test]
    fn frequencies_follow_zipf() {
        const COUNT: u64 = 1_000;
        const DRAWS: u64 = 400_000;
        for theta in [0.5, 0.9, 0.99] {
            let zipfian = Zipfian::new(COUNT, theta);
            let mut random = Random::new(11);
            let mut seen = vec![0u64; COUNT as usize];
            for _ in 0..DRAWS {
                seen[zipfian.sample(&mut random) as usize] += 1;
            }
            // The first two ranks are exact in the method; a range of the tail is close.
            let share = |ranks: std::ops::Range<usize>| seen[ranks].iter().sum::<u64>() as f64 / DRAWS as f64;
            let expected = |ranks: std::ops::Range<usize>| {
                ranks.map(|rank| ((rank + 1) as f64).powf(-theta)).sum::<f64>() / zeta(COUNT, theta)
            };
            for ranks in [0..1, 1..2, 10..100, 100..1_000] {
                let (seen, expected) = (share(ranks.clone()), expected(ranks.clone()));
                assert!((seen / expected - 1.0).abs() < 0.1, "theta {theta} {ranks:?}: {seen} {expected}");
            }
        }
    }

    #[test]
    fn ranks_stay_in_range_for_every_count() {
        let mut random = Random::new(5);
        for count in [1, 2, 3, 10, 1_000_000_000] {
            let zipfian = Zipfian::new(count, 0.99);
            assert!((0..1_000).all(|_| zipfian.sample(&mut random) < count), "count {count}");
        }
    }

    #[test]
    fn theta_zero_is_uniform() {
        let zipfian = Zipfian::new(10, 0.0);
        let mut random = Random::new(6);
        let mut seen = [0u32; 10];
        (0..100_000).for_each(|_| seen[zipfian.sample(&mut random) as usize] += 1);
        assert!(seen.iter().all(|count| (9_000..11_000).contains(count)), "{seen:?}");
    }

    #[test]
    fn growing_equals_making_anew() {
        let mut grown = Zipfian::new(100, 0.9);
        grown.grow_to(50_000);
        let made = Zipfian::new(50_000, 0.9);
        let (mut one, mut two) = (Random::new(1), Random::new(1));
        assert!((0..1_000).all(|_| grown.sample(&mut one) == made.sample(&mut two)));
    }

    #[test]
    fn scatter_is_a_permutation() {
        for count in [1u64, 2, 3, 10, 1_000, 4_096, 65_537] {
            let scatter = Scatter::new(count);
            let mut keys: Vec<u64> = (0..count).map(|rank| scatter.apply(rank)).collect();
            keys.sort_unstable();
            assert!(keys.into_iter().eq(0..count), "count {count}");
        }
    }
}
