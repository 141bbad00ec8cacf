//! `ensilo bench stock`.

use clap::{Args, value_parser};
use ensilo_bench::stock::{READS_MAX, StockOptions, WritePercent};
use ensilo_bench::tpcc::Scale;

use super::common::Common;

const EXAMPLES: &str = "\
Examples:
  ensilo bench stock --memory
      A thousand random stocks are read by each transaction, one percent of them is updated.
  ensilo bench stock --memory --reads 10000 --write-percent 0.1 --retries 0
      A point of ERMIA's figure 1, where what met a conflict is given up.
  ensilo bench stock --memory --reads 10000 --write-percent 0.1 --retries 0 --engine ermia
      The same by ERMIA's engine.
  ensilo bench stock --reads 10 --write-percent 10 --crash
      Durable; killed at the end of the run, and recovered.

After each run, and after a recovery, the updates that the stocks show are held against those that committed; if one
is lost, the exit code is 1.";

/// Reads of many random stocks of TPC-C, of which a few are updated (ERMIA's microbenchmark)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Stocks that a transaction reads
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = value_parser!(u16).range(1..=i64::from(READS_MAX)))]
    reads: u16,

    /// Percent of them that it updates; where that is no whole number, one more or less by chance
    #[arg(long, value_name = "P", default_value = "1", value_parser = write_percent)]
    write_percent: WritePercent,

    /// Warehouses that have stocks [default: one for each worker]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    warehouses: Option<u16>,

    /// Stocks of a warehouse
    #[arg(long, value_name = "N", default_value_t = Scale::SPECIFICATION.items,
          value_parser = value_parser!(u32).range(1..=10_000_000))]
    items: u32,

    #[command(flatten)]
    pub(super) common: Common,
}

fn write_percent(text: &str) -> Result<WritePercent, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    WritePercent::new(percent).ok_or_else(|| "not in 0..=100".to_owned())
}

impl Arguments {
    pub(super) fn options(&self) -> StockOptions {
        let defaults = StockOptions::new(self.common.workers());
        StockOptions {
            warehouses: self.warehouses.unwrap_or(defaults.warehouses),
            items: self.items,
            reads: self.reads,
            write_percent: self.write_percent,
            seed: self.common.seed,
            ..defaults
        }
    }
}
