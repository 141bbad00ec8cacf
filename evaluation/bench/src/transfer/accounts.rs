//! The choice of two accounts.

use crate::random::{Random, Scatter};

/// How accounts are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Skew {
    /// Each with equal chances.
    Uniform,
    /// By Zipf's law: the chances of the account of rank `r` (from 1) are proportional to `r` to the power of minus this.
    Zipf(f64),
}

/// Chooses accounts. The hot ones lie scattered over the keys.
#[derive(Debug)]
pub(super) struct Accounts {
    count: u64,
    /// By rank, the probability of this and all ranks before; none if the choice is uniform. A table, because the exponent is above 1,
    /// where the formula that YCSB's keys are drawn by does not hold.
    cumulative: Vec<f64>,
    scatter: Scatter,
}

impl Accounts {
    /// A choice among `count`, at least 2.
    pub(super) fn new(count: u64, skew: Skew) -> Self {
        let cumulative = match skew {
            Skew::Uniform => Vec::new(),
            Skew::Zipf(exponent) => cumulative(count, exponent),
        };
        Self { count, cumulative, scatter: Scatter::new(count) }
    }

    /// Two different accounts.
    #[inline]
    pub(super) fn draw_two(&self, random: &mut Random) -> (u64, u64) {
        let first = self.draw(random);
        loop {
            let second = self.draw(random);
            if second != first {
                return (first, second);
            }
        }
    }

    #[inline]
    fn draw(&self, random: &mut Random) -> u64 {
        if self.cumulative.is_empty() {
            return random.below(self.count);
        }
        let unit = random.unit();
        let rank = self.cumulative.partition_point(|&share| share <= unit) as u64;
        // The last sum may have been rounded to less than 1.
        self.scatter.apply(rank.min(self.count - 1))
    }
}

fn cumulative(count: u64, exponent: f64) -> Vec<f64> {
    let weights = (1..=count).map(|rank| (rank as f64).powf(-exponent));
    let mut sums: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let all = sums.last().copied().unwrap_or(1.0);
    sums.iter_mut().for_each(|sum| *sum /= all);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const DRAWS: u32 = 200_000;

    fn frequencies(skew: Skew) -> Vec<u32> {
        let (accounts, mut random) = (Accounts::new(1_000, skew), Random::new(1));
        let mut seen = HashMap::new();
        for _ in 0..DRAWS {
            *seen.entry(accounts.draw(&mut random)).or_default() += 1;
        }
        assert!(seen.keys().all(|&account| account < 1_000));
        let mut frequencies: Vec<u32> = seen.into_values().collect();
        frequencies.sort_unstable_by(|a, b| b.cmp(a));
        frequencies
    }

    #[test]
    fn frequencies_follow_zipf() {
        let seen = frequencies(Skew::Zipf(1.5));
        let zeta: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-1.5)).sum();
        for rank in 0..5 {
            let expected = f64::from(rank + 1).powf(-1.5) / zeta * f64::from(DRAWS);
            let ratio = f64::from(seen[rank as usize]) / expected;
            assert!((0.95..1.05).contains(&ratio), "rank {rank}: {ratio}");
        }
    }

    #[test]
    fn a_uniform_choice_favours_none() {
        let seen = frequencies(Skew::Uniform);
        assert!(seen.len() == 1_000 && seen[0] < 300, "{} of 200 expected", seen[0]);
    }

    #[test]
    fn two_accounts_differ() {
        let (accounts, mut random) = (Accounts::new(2, Skew::Zipf(1.5)), Random::new(2));
        for _ in 0..1_000 {
            let (from, to) = accounts.draw_two(&mut random);
            assert_eq!(from + to, 1);
        }
    }
}
