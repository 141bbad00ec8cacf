//! What a run can be asked for.

use crate::mix::Share;
use crate::random::Random;
use crate::tpcc::Scale;

/// The name of the only transaction type.
pub const TRANSACTION_TYPES: [&str; 1] = ["read_update"];

/// The most rows that a transaction reads.
pub const READS_MAX: u16 = u16::MAX;

/// The percent of the rows that a transaction has read which it updates, from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WritePercent(f64);

impl WritePercent {
    /// Of 0 to 100 percent; `None` for any other number.
    pub fn new(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then_some(Self(percent))
    }
}

/// Options of a table of stocks and its workers.
#[derive(Debug, Clone)]
pub struct StockOptions {
    /// Warehouses that have stocks, at least 1.
    pub warehouses: u16,
    /// Stocks of each, at least 1.
    pub items: u32,
    /// Rows that a transaction reads, at least 1.
    pub reads: u16,
    /// How many of them it updates.
    pub write_percent: WritePercent,
    /// Where all random numbers come from.
    pub seed: u64,
    /// Workers that there will be.
    pub workers: usize,
}

impl StockOptions {
    /// The stocks of one warehouse for each worker, a thousand reads, of which one percent is updated.
    pub fn new(workers: usize) -> Self {
        Self {
            warehouses: u16::try_from(workers).unwrap_or(u16::MAX).max(1),
            items: Scale::SPECIFICATION.items,
            reads: 1_000,
            write_percent: WritePercent(1.0),
            seed: 1,
            workers,
        }
    }

    /// How many rows the transactions write.
    pub(super) fn writes(&self) -> WriteCount {
        let writes = f64::from(self.reads) * self.write_percent.0 / 100.0;
        WriteCount {
            whole: writes as usize,
            // A part of one is from 0 to 1.
            more: Share::of_percent(100.0 * writes.fract()).unwrap_or(Share::ONE_OF_100),
        }
    }

    /// Bytes of the loaded rows, roughly.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        const STOCK_BYTES: u64 = 350;
        u64::from(self.warehouses) * u64::from(self.items) * STOCK_BYTES
    }

    /// The share of the rows that transactions touch which they write.
    pub(crate) fn writing_share(&self) -> f64 {
        self.write_percent.0 / 100.0
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        serde_json::json!({
            "warehouses": self.warehouses,
            "items": self.items,
            "reads": self.reads,
            "write_percent": self.write_percent.0,
            "seed": self.seed,
        })
    }
}

/// How many rows a transaction writes: a whole number, and by chance one more, so that the mean is exact.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteCount {
    whole: usize,
    more: Share,
}

impl WriteCount {
    #[inline]
    pub(super) fn draw(self, random: &mut Random) -> usize {
        self.whole + usize::from(self.more.draw(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_the_writes_is_what_was_asked_for() {
        let mut random = Random::new(5);
        for (reads, percent, mean) in
            [(1_000, 1.0, 10.0), (10, 1.0, 0.1), (1_000, 0.15, 1.5), (10, 100.0, 10.0)]
        {
            let write_percent = WritePercent::new(percent).unwrap();
            let writes = StockOptions { reads, write_percent, ..StockOptions::new(1) }.writes();
            let sum: usize = (0..10_000).map(|_| writes.draw(&mut random)).sum();
            assert!((sum as f64 / 10_000.0 - mean).abs() < 0.03, "{sum} of {reads} reads, {percent} %");
        }
        assert!(WritePercent::new(-0.1).is_none() && WritePercent::new(f64::NAN).is_none());
    }
}
