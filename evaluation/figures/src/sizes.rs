//! How large the experiments are: what fits the machine, and how long somebody wants to wait.

use std::fmt;

use ensilo_bench::report::Machine;
use serde::{Deserialize, Serialize};

/// How thorough an evaluation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// All experiments within three quarters of an hour on two cores: enough to see a trend, too short to judge small differences.
    Quick,
    /// Runs that are long enough for figures that are to be kept.
    Full,
}

/// What a user may set apart from the scale.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// The numbers of workers on the axes of that name, ascending; the last is used where a figure has one number of workers.
    pub workers: Option<Vec<usize>>,
    /// Seconds that each single run measures; runs over time take a multiple of it.
    pub seconds: Option<f64>,
    /// Runs of each point, at least 1.
    pub runs: Option<usize>,
}

/// The parameters that depend on the machine and the scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// Processors of the machine.
    pub cores: usize,
    /// Numbers of workers to measure with, ascending.
    pub workers: Vec<usize>,
    /// Workers where a figure has one number of them: as many as cores, or the last of the user's list.
    pub all_workers: usize,
    /// Numbers of workers around that of the cores.
    pub workers_around_cores: Vec<usize>,
    /// Seconds that a run measures.
    pub seconds: f64,
    /// Seconds before that.
    pub warmup: f64,
    /// Seconds of runs that are looked at over time.
    pub timeline_seconds: f64,
    /// Runs of each point.
    pub runs: usize,
    /// Runs of each point over time.
    pub timeline_runs: usize,
    /// Records of a YCSB database.
    pub records: u64,
    /// Records where only a small part may change between two snapshots.
    pub records_for_space: u64,
    /// Percent of items that new-orders take from another warehouse.
    pub remote_item_percents: Vec<u32>,
    /// Percent of the suppliers that a CH-Q2* covers, and of the customers that an AssetEval does.
    #[serde(default)]
    pub supplier_percents: Vec<u32>,
    /// Percent of the stocks that a transaction reads which it updates.
    #[serde(default)]
    pub write_percents: Vec<f64>,
    /// Percent of the transactions that are multisite.
    #[serde(default)]
    pub multisite_percents: Vec<u32>,
    /// Rows that a transaction of the islands paper's microbenchmark takes.
    #[serde(default)]
    pub rows_per_transaction: Vec<u32>,
    /// How skewed its choice of rows is.
    #[serde(default)]
    pub skews: Vec<f64>,
    /// Rows of its table.
    #[serde(default)]
    pub micro_rows: Vec<u64>,
    /// Customers of a TPC-E database, and the days whose trades it has.
    #[serde(default)]
    pub customers_and_days: (u32, u32),
}

/// Bytes of memory for a record of 100 bytes with its key, its share of the tree, and an older version of some.
const RECORD_BYTES: u64 = 200;
/// Silo §5.2.
const PAPER_RECORDS: u64 = 160_000_000;

impl Sizes {
    /// What fits `machine` at this scale.
    pub fn new(scale: Scale, machine: &Machine, overrides: &Overrides) -> Self {
        let cores = machine.cores;
        let seconds = overrides.seconds.unwrap_or(match scale {
            Scale::Quick => 0.9,
            Scale::Full => 10.0,
        });
        let workers = overrides.workers.clone().unwrap_or_else(|| worker_axis(cores, scale));
        let all_workers = overrides.workers.as_ref().and_then(|list| list.last().copied()).unwrap_or(cores);
        let per_core = match scale {
            Scale::Quick => 500_000,
            Scale::Full => 5_000_000,
        };
        let fitting = (machine.memory_bytes / 3 / RECORD_BYTES).clamp(100_000, PAPER_RECORDS);
        Self {
            cores,
            workers_around_cores: overrides.workers.clone().unwrap_or_else(|| around(cores)),
            workers,
            all_workers,
            seconds,
            warmup: rounded((seconds / 4.0).min(2.0)),
            timeline_seconds: rounded(6.0 * seconds),
            runs: overrides.runs.unwrap_or(3),
            timeline_runs: overrides.runs.unwrap_or(match scale {
                Scale::Quick => 1,
                Scale::Full => 3,
            }),
            records: fitting.min(per_core * cores as u64),
            records_for_space: fitting.min(16_000_000 * all_workers as u64),
            remote_item_percents: match scale {
                Scale::Quick => vec![0, 2, 10],
                Scale::Full => (0..=10).collect(),
            },
            supplier_percents: match scale {
                Scale::Quick => vec![1, 20, 60],
                Scale::Full => vec![1, 5, 10, 20, 40, 60, 80, 100],
            },
            write_percents: match scale {
                Scale::Quick => vec![0.1, 1.0, 10.0],
                Scale::Full => vec![0.1, 0.5, 1.0, 2.0, 5.0, 10.0],
            },
            multisite_percents: match scale {
                Scale::Quick => vec![0, 20, 100],
                Scale::Full => vec![0, 20, 40, 60, 80, 100],
            },
            rows_per_transaction: match scale {
                Scale::Quick => vec![2, 10, 40],
                Scale::Full => vec![2, 10, 20, 40, 60, 80, 100],
            },
            skews: match scale {
                Scale::Quick => vec![0.0, 0.5, 0.99],
                Scale::Full => vec![0.0, 0.25, 0.5, 0.75, 0.99],
            },
            micro_rows: match scale {
                Scale::Quick => vec![240_000, 2_400_000],
                Scale::Full => vec![240_000, 720_000, 2_400_000, 7_200_000],
            },
            customers_and_days: match scale {
                Scale::Quick => (500, 1),
                Scale::Full => (5_000, 10),
            },
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let million = |records: u64| (records as f64 / 1e4).round() / 1e2;
        write!(
            f,
            "{} s a run, {} s over time, after {} s; {} and {} runs of each point; YCSB databases of {} million records, {} for the space of \
             snapshots (the papers: 60 s and 10 min, three runs; 160 million, SiloR 400 million)",
            self.seconds,
            self.timeline_seconds,
            self.warmup,
            self.runs,
            self.timeline_runs,
            million(self.records),
            million(self.records_for_space)
        )
    }
}

/// To microseconds: products of decimal fractions are none.
fn rounded(seconds: f64) -> f64 {
    (1e6 * seconds).round() / 1e6
}

/// From one worker to twice as many as cores.
fn worker_axis(cores: usize, scale: Scale) -> Vec<usize> {
    let steps = match scale {
        Scale::Quick => 3,
        Scale::Full => 8,
    };
    let mut axis: Vec<usize> = if cores <= 4 {
        (0..).map(|power| 1 << power).take_while(|&workers| workers < cores).collect()
    } else {
        (1..steps).map(|step| cores * step / steps).collect()
    };
    axis.extend([1, cores, 2 * cores]);
    axis.retain(|&workers| workers > 0);
    axis.sort_unstable();
    axis.dedup();
    axis
}

/// SiloR's 28 and 32 workers of 32 cores, and as many more.
fn around(cores: usize) -> Vec<usize> {
    let some = (cores / 8).max(1);
    let mut list = vec![(cores - some).max(1), cores, cores + some];
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cores: usize, memory_bytes: u64) -> Machine {
        Machine { cpu: "a processor".to_owned(), cores, memory_bytes, os: "an operating system".to_owned() }
    }

    #[test]
    fn axes_go_from_one_worker_beyond_the_cores() {
        for cores in 1..=64 {
            for scale in [Scale::Quick, Scale::Full] {
                let sizes = Sizes::new(scale, &machine(cores, 24 << 30), &Overrides::default());
                assert!(sizes.workers.is_sorted_by(|a, b| a < b), "{sizes:?}");
                assert!(sizes.workers_around_cores.is_sorted_by(|a, b| a < b), "{sizes:?}");
                assert_eq!((sizes.workers[0], sizes.workers.last()), (1, Some(&(2 * cores))));
                assert!(sizes.workers.contains(&cores));
            }
        }
    }

    #[test]
    fn records_fit_the_memory() {
        for memory in [1 << 30, 8 << 30, 24 << 30, 256 << 30_u64] {
            let sizes = Sizes::new(Scale::Full, &machine(32, memory), &Overrides::default());
            assert!(sizes.records * RECORD_BYTES <= memory / 2, "{sizes:?}");
            assert!(sizes.records_for_space <= PAPER_RECORDS);
        }
        assert_eq!(
            Sizes::new(Scale::Full, &machine(32, 256 << 30), &Overrides::default()).records,
            PAPER_RECORDS
        );
    }

    #[test]
    fn what_the_user_says_is_taken() {
        let overrides = Overrides { workers: Some(vec![1, 3]), seconds: Some(2.0), runs: Some(5) };
        let sizes = Sizes::new(Scale::Quick, &machine(2, 8 << 30), &overrides);
        assert_eq!(
            (sizes.workers, sizes.all_workers, sizes.workers_around_cores),
            (vec![1, 3], 3, vec![1, 3])
        );
        assert_eq!((sizes.seconds, sizes.runs, sizes.timeline_runs), (2.0, 5, 5));
    }

    #[test]
    fn seconds_are_told_in_few_digits() {
        for tenths in 1..=30 {
            let overrides = Overrides { seconds: Some(f64::from(tenths) / 10.0), ..Overrides::default() };
            let told = Sizes::new(Scale::Quick, &machine(2, 8 << 30), &overrides).to_string();
            let longest = told.split(|c: char| !(c.is_ascii_digit() || c == '.')).map(str::len).max();
            assert!(longest <= Some(5), "{told}");
        }
    }

    #[test]
    fn sizes_are_the_same_after_they_were_written() {
        let overrides = Overrides { seconds: Some(0.7), ..Overrides::default() };
        let sizes = Sizes::new(Scale::Full, &machine(6, 8 << 30), &overrides);
        let text = serde_json::to_string(&sizes).unwrap();
        assert_eq!(serde_json::from_str::<Sizes>(&text).unwrap(), sizes);
    }
}
