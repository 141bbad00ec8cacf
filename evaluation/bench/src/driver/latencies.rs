//! Latencies counted by size: a histogram with classes of at most 0.8 % width.
//!
//! Written here because a transaction of 700 ns feels the 67 instructions that a general histogram takes for a value; this takes about ten.
//!
//! # Layout
//! Values below 128 ns have a class each. From there on every power of two is cut into 128 classes of equal width:
//! ```text
//! class   0 .. 127   128 .. 255   256 .. 383    384 .. 511   ..
//! ns      0 .. 127   128 .. 255   256 .. 511    512 .. 1023  ..
//! width   1          1            2             4            ..
//! ```

use serde::{Deserialize, Serialize};

/// Classes of a power of two, as a power of two.
const CLASS_BITS: u32 = 7;
/// Values of this many bits, 73 minutes, and longer ones are counted in the last class.
const VALUE_BITS: u32 = 42;
const CLASSES: usize = ((VALUE_BITS - CLASS_BITS + 1) as usize) << CLASS_BITS;

/// Counted latencies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Latencies {
    counts: Box<[u64]>,
    max_ns: u64,
}

impl Latencies {
    /// No latencies.
    pub fn new() -> Self {
        Self { counts: vec![0; CLASSES].into_boxed_slice(), max_ns: 0 }
    }

    /// Counts one.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.max_ns = self.max_ns.max(nanoseconds);
        let class = class_of(nanoseconds).min(CLASSES - 1);
        self.counts[class] += 1;
    }

    /// Counts those that `other` has counted.
    pub fn add(&mut self, other: &Self) {
        self.max_ns = self.max_ns.max(other.max_ns);
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.max_ns = 0;
        self.counts.fill(0);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The latency in nanoseconds that `quantile` (0 to 1) of all do not exceed, to 0.8 % upwards; 0 if there are none.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((self.count() as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        reached.map_or(0, |class| highest_of(class).min(self.max_ns))
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// The class of a value.
#[inline]
fn class_of(value: u64) -> usize {
    // The power of two above the finest classes that the value lies in; 0 for those themselves.
    let octave = (u64::BITS - CLASS_BITS).saturating_sub(value.leading_zeros());
    let place = (value >> octave.saturating_sub(1)) as usize & ((1 << CLASS_BITS) - 1);
    ((octave as usize) << CLASS_BITS) + place
}

/// The highest value of a class.
fn highest_of(class: usize) -> u64 {
    let octave = (class >> CLASS_BITS) as u32;
    let place = class as u64 & ((1 << CLASS_BITS) - 1);
    match octave {
        0 => place,
        _ => ((place + (1 << CLASS_BITS) + 1) << (octave - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_without_gap() {
        let mut expected = 0;
        for class in 0..CLASSES {
            let highest = highest_of(class);
            assert_eq!(class_of(expected), class, "the lowest value of class {class}");
            assert_eq!(class_of(highest), class, "the highest value of class {class}");
            assert!((highest - expected) as f64 <= 0.008 * expected as f64, "class {class} is wide");
            expected = highest + 1;
        }
        assert_eq!(expected, 1 << VALUE_BITS);
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut latencies = Latencies::new();
        (1..=10_000u64).for_each(|value| latencies.record(value * 10));
        for quantile in [0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let exact = quantile * 100_000.0;
            let ratio = latencies.quantile_ns(quantile) as f64 / exact;
            assert!((1.0..1.009).contains(&ratio), "{quantile}: {ratio}");
        }
        assert_eq!((latencies.count(), latencies.max_ns()), (10_000, 100_000));
    }

    #[test]
    fn sums_count_both_sides() {
        let (mut one, mut two) = (Latencies::new(), Latencies::new());
        one.record(5);
        two.record(u64::MAX);
        one.add(&two);
        assert_eq!((one.count(), one.max_ns(), one.quantile_ns(0.5)), (2, u64::MAX, 5));
        one.clear();
        assert_eq!((one.count(), one.max_ns(), one.quantile_ns(0.5)), (0, 0, 0));
    }
}
