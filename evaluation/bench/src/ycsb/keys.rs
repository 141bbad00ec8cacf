//! The choice of keys: for reads and writes by distribution, for inserts without a counter that workers share.
//!
//! Loaded records have the keys `0..records`. Worker `w` of `n` inserts the keys `records + w`, `records + w + n` and so on:
//! keys rise over all workers as if one counter gave them out, as long as the workers are about equally fast.

use super::options::{Distribution, YcsbOptions};
use crate::random::{Random, Scatter, Zipfian};

/// One worker's choice of keys.
#[derive(Debug, Clone)]
pub struct Keys {
    choice: Choice,
    records: u64,
    workers: u64,
    worker: u64,
    /// Keys that this worker has inserted.
    inserted: u64,
}

#[derive(Debug, Clone)]
enum Choice {
    Uniform,
    Zipfian(Zipfian, Scatter),
    Latest(Zipfian),
}

impl Keys {
    /// The choice of worker `worker` of those that the options say.
    pub fn new(options: &YcsbOptions, worker: usize) -> Self {
        let records = options.records;
        let zipfian = || Zipfian::new(records, options.theta);
        let choice = match options.distribution {
            Distribution::Uniform => Choice::Uniform,
            Distribution::Zipfian => Choice::Zipfian(zipfian(), Scatter::new(records)),
            Distribution::Latest => Choice::Latest(zipfian()),
        };
        Self { choice, records, workers: options.workers as u64, worker: worker as u64, inserted: 0 }
    }

    /// The key of the next operation on a record that exists; by latest it may be of an insert under way elsewhere.
    #[inline]
    pub fn existing(&self, random: &mut Random) -> u64 {
        match &self.choice {
            Choice::Uniform => random.below(self.records),
            Choice::Zipfian(zipfian, scatter) => scatter.apply(zipfian.sample(random)),
            Choice::Latest(zipfian) => {
                self.records + self.inserted * self.workers - 1 - zipfian.sample(random)
            }
        }
    }

    /// The key that the worker inserts `ahead` inserts from now, 0 being the next.
    #[inline]
    pub fn to_insert(&self, ahead: u64) -> u64 {
        self.records + (self.inserted + ahead) * self.workers + self.worker
    }

    /// Notes that the next `count` keys are inserted.
    #[inline]
    pub fn note_inserted(&mut self, count: u64) {
        self.inserted += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn keys(distribution: Distribution, worker: usize) -> Keys {
        let options = YcsbOptions { records: 100, distribution, ..YcsbOptions::new(3) };
        Keys::new(&options, worker)
    }

    #[test]
    fn existing_keys_are_loaded_ones() {
        for distribution in [Distribution::Uniform, Distribution::Zipfian, Distribution::Latest] {
            let (keys, mut random) = (keys(distribution, 0), Random::new(1));
            let drawn: BTreeSet<u64> = (0..20_000).map(|_| keys.existing(&mut random)).collect();
            assert!(drawn.iter().all(|&key| key < 100), "{distribution:?}");
            assert!(drawn.len() > 90, "{distribution:?} {}", drawn.len());
        }
    }

    #[test]
    fn workers_insert_different_keys_without_gaps() {
        let mut inserted = BTreeSet::new();
        for worker in 0..3 {
            let mut keys = keys(Distribution::Uniform, worker);
            for _ in 0..10 {
                assert!(inserted.insert(keys.to_insert(0)));
                assert!(inserted.insert(keys.to_insert(1)));
                keys.note_inserted(2);
            }
        }
        assert!(inserted.into_iter().eq(100..160));
    }

    #[test]
    fn the_latest_are_the_hottest() {
        let (mut keys, mut random) = (keys(Distribution::Latest, 0), Random::new(2));
        keys.note_inserted(10);
        let recent = (0..1_000).filter(|_| keys.existing(&mut random) >= 120).count();
        assert!(recent > 400, "{recent} of 1000 among the last ten");
    }
}
