//! `ensilo bench ycsb`.

use clap::{Args, ValueEnum, value_parser};
use ensilo_bench::ycsb::{
    Distribution, INDEXES_MAX, NamedMix, VALUE_BYTES_MAX, VALUE_BYTES_MIN, YcsbOptions,
};

use super::common::Common;

const EXAMPLES: &str = "\
Examples:
  ensilo bench ycsb
      Silo's variant: a million records of 100 bytes, 80 % reads, 20 % read-modify-writes; durable.
  ensilo bench ycsb --mix silor --crash
      SiloR's: 30 % read-modify-writes; killed at the end of the run, and recovered.
  ensilo bench ycsb --mix a --records 10000000
      YCSB's core workload A: half reads, half updates, Zipfian keys.
  ensilo bench ycsb --mix read=95,rmw=5 --distribution zipfian --theta 0.9 --operations 10
      Ten operations in each transaction.
  ensilo bench ycsb --mix rmw=100 --seconds 60
      Read-modify-writes alone; the report says what memory was before and after.
  ensilo bench ycsb --memory --batch 32
      The same transactions as by default, 32 at a time: their waits for memory lie side by side.
  ensilo bench ycsb --tables 100 --indexes 2 --sessions 1000
      Records in a hundred tables with two indexes each; a thousand sessions take turns on a worker for each core.
  ensilo bench ycsb --mix rmw=100 --seconds 60 --hold-snapshot
      What a snapshot that stays open for a minute keeps in memory.
  ensilo bench ycsb --crash --time-checkpoint
      How long a recovery and a checkpoint take.

  ensilo bench ycsb --memory --system key-value
      The index alone, without transactions: Silo's figure 4.

Mixes by name: a b c d e f (YCSB's core workloads), silo, silor. Others: shares of read, update, rmw, insert and
scan that add up to 100. After each run every record is checked; if one is lost, torn or miscounted, or a crash
loses what was acknowledged as stored, the exit code is 1.
After Ctrl-C the report is on what there was, and the exit code is 130; after SIGTERM 143.";

/// Reads and writes of single records by key
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Records to load
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=1 << 40))]
    records: u64,

    /// a, b, c, d, e, f, silo, silor, or shares like read=80,rmw=20
    #[arg(long, value_name = "MIX", default_value = "silo")]
    mix: NamedMix,

    /// How keys are chosen [default: the mix's own; uniform for shares]
    #[arg(long, value_enum)]
    distribution: Option<DistributionArgument>,

    /// Skew of zipfian and latest, from 0 (none) to below 1
    #[arg(long, value_name = "THETA", default_value = "0.99", value_parser = theta)]
    theta: f64,

    /// Operations in each transaction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=10_000))]
    operations: u16,

    /// Tables that the records are spread over, by their keys
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=100_000))]
    tables: u32,

    /// Secondary indexes of each table. Each is over a column of its own, which every write changes; records have all of these
    /// columns, even with 0 [default: records without such columns]
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(0..=INDEXES_MAX as i64))]
    indexes: Option<u8>,

    /// Sessions that take turns on the workers, as the connections of a server do [default: each worker's thread is one]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    sessions: Option<u32>,

    /// Run transactions in batches of so many (Database::transact_many): what they look up is loaded for several at once, and
    /// each takes as long as its batch [default: one at a time]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
    batch: Option<u32>,

    /// Bytes of a value
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = value_parser!(u64).range(VALUE_BYTES_MIN as u64..=VALUE_BYTES_MAX as u64))]
    value_bytes: u64,

    /// The most records of a scan
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..=1_000_000))]
    scan_len_max: u32,

    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum DistributionArgument {
    /// Every record with equal chances
    Uniform,
    /// Some records much more often than others
    Zipfian,
    /// Records inserted last more often than older ones
    Latest,
}

impl From<DistributionArgument> for Distribution {
    fn from(argument: DistributionArgument) -> Self {
        match argument {
            DistributionArgument::Uniform => Distribution::Uniform,
            DistributionArgument::Zipfian => Distribution::Zipfian,
            DistributionArgument::Latest => Distribution::Latest,
        }
    }
}

pub(super) fn theta(text: &str) -> Result<f64, String> {
    let theta: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..1.0).contains(&theta) { Ok(theta) } else { Err("not in 0..1".to_owned()) }
}

impl Arguments {
    pub(super) fn options(&self) -> YcsbOptions {
        YcsbOptions {
            records: self.records,
            value_bytes: self.value_bytes as usize,
            mix: self.mix.clone(),
            distribution: self.distribution.map_or(self.mix.distribution, Into::into),
            theta: self.theta,
            operations: usize::from(self.operations),
            tables: self.tables as usize,
            indexes: self.indexes.map(usize::from),
            sessions: self.sessions.map(|sessions| sessions as usize),
            batch: self.batch.map(|batch| batch as usize),
            scan_len_max: self.scan_len_max as usize,
            seed: self.common.seed,
            workers: self.common.workers(),
        }
    }
}
