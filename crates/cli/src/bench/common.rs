//! Arguments that all workloads have.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, value_parser};
use ensilo_bench::driver::RunOptions;
use ensilo_bench::{
    Benchmark, BenchmarkOptions, CrashOptions, DatabaseOptions, LogRecords, StorageOptions, System,
};

use crate::engine::{EngineArgument, IsolationArgument};
use crate::seconds::seconds_within;

/// How the report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Tables for people
    Text,
    /// One JSON object for programs, as docs/bench-report.md describes it, with each run in tenths of a
    /// second (`runs[].timeline`); nothing else goes to stdout
    Json,
}

/// How log and checkpoints are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CompressionArgument {
    /// Fast, and worth it only where the disk is slow
    Lz4,
}

/// What of a transaction is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogRecordsArgument {
    /// Whole rows once a checkpoint, and the words that changed after that: what Ensilo does
    Patches,
    /// Whole rows: +FullRecs of Silo's figure 11
    Full,
    /// TIDs alone, to measure what the rest costs: +SmallRecs of Silo's figure 11. Nothing can be recovered
    Small,
}

impl From<LogRecordsArgument> for LogRecords {
    fn from(argument: LogRecordsArgument) -> Self {
        match argument {
            LogRecordsArgument::Patches => Self::Patches,
            LogRecordsArgument::Full => Self::Full,
            LogRecordsArgument::Small => Self::Small,
        }
    }
}

/// How often a transaction goes to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LoggingArgument {
    /// Once, with all that it has written
    PerTransaction,
    /// With every write, and once more when it commits, to measure what that costs (ERMIA's figure 10)
    PerOperation,
}

/// A system by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SystemArgument(System);

/// Every system but the product's other engine, which is chosen by `--engine`.
const SYSTEMS: [SystemArgument; System::OF_SILO.len()] = {
    let mut systems = [SystemArgument(System::Ensilo); System::OF_SILO.len()];
    let mut at = 0;
    while at < systems.len() {
        systems[at] = SystemArgument(System::OF_SILO[at]);
        at += 1;
    }
    systems
};

impl ValueEnum for SystemArgument {
    fn value_variants<'a>() -> &'a [Self] {
        &SYSTEMS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.description()))
    }
}

/// How much longer than the run a snapshot may stay open that is held until its end.
const SNAPSHOT_AGE_MARGIN: Duration = Duration::from_secs(60);

/// The least that the library takes.
const CHECKPOINT_INTERVAL_MIN: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(super) struct Common {
    /// What to run on: Ensilo, or a system that Silo's paper compares it with; those are measured with
    /// --memory
    #[arg(long, value_enum, value_name = "NAME", default_value = "ensilo")]
    system: SystemArgument,

    /// The engine to run on
    #[arg(long, value_enum, default_value_t = EngineArgument::Silo, conflicts_with = "system")]
    engine: EngineArgument,

    /// What transactions may see of each other
    #[arg(long, value_enum, default_value_t = IsolationArgument::Serializable)]
    isolation: IsolationArgument,

    /// Threads that run transactions [default: one for each core]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=4096))]
    workers: Option<u16>,

    /// Seconds to measure
    #[arg(long, value_name = "S", default_value = "10", value_parser = positive_seconds)]
    seconds: Duration,

    /// Seconds to run before measuring
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
    warmup: Duration,

    /// Runs, each against a newly loaded database; the median is reported
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1000))]
    runs: u16,

    /// Form of the report on stdout
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Keep the database in memory only: nothing is stored
    #[arg(long)]
    memory: bool,

    /// At the end of the run kill the program (SIGKILL, workers at work), recover the database, check it, and
    /// count what was acknowledged as stored and is lost
    #[arg(long, conflicts_with = "memory")]
    crash: bool,

    /// This is the process that is to be killed; it reads the rest from standard input
    #[arg(long, hide = true)]
    pub(super) crash_here: bool,

    /// Directory for the database, new or empty; it stays [default: a temporary one, which is removed at the
    /// end, in TMPDIR if that is set, otherwise in /tmp or, where that lies in memory, in /var/tmp]
    #[arg(long, value_name = "DIR", conflicts_with = "memory")]
    data_dir: Option<PathBuf>,

    /// Directory for the log, one for each disk that shares the work; may be given again [default: within the
    /// database's]
    #[arg(long, value_name = "DIR", conflicts_with = "memory")]
    log_dir: Vec<PathBuf>,

    /// Seconds between two checkpoints [default: a third of the run, so that what is measured includes some]
    #[arg(long, value_name = "S", conflicts_with = "memory", value_parser = checkpoint_seconds)]
    checkpoint_interval: Option<Duration>,

    /// Compress the log
    #[arg(long, value_enum, conflicts_with = "memory")]
    log_compression: Option<CompressionArgument>,

    /// Compress checkpoints
    #[arg(long, value_enum, conflicts_with_all = ["memory", "no_checkpoints"])]
    checkpoint_compression: Option<CompressionArgument>,

    /// Mebibytes of a checkpoint between two syncs; one at the end if there are never so many [default: 32]
    #[arg(long, value_name = "N", conflicts_with_all = ["memory", "no_checkpoints"], value_parser = value_parser!(u64).range(1..=1 << 40))]
    checkpoint_sync_mib: Option<u64>,

    /// Mebibytes of a checkpoint that are written in a second [default: so many that it takes four fifths of
    /// the time to the next one]
    #[arg(long, value_name = "N", conflicts_with_all = ["memory", "no_checkpoints"], value_parser = value_parser!(u64).range(1..=1 << 40))]
    checkpoint_mib_per_second: Option<u64>,

    /// What of a transaction is logged
    #[arg(long, value_enum, default_value = "patches", conflicts_with = "memory")]
    log_records: LogRecordsArgument,

    /// How often a transaction takes a place in the log of ERMIA's engine
    #[arg(long, value_enum, default_value = "per-transaction", conflicts_with = "memory")]
    logging: LoggingArgument,

    /// Make no checkpoints: the log goes back to the beginning (SiloR's LogSilo)
    #[arg(long, conflicts_with_all = ["memory", "checkpoint_interval"])]
    no_checkpoints: bool,

    /// Milliseconds of an epoch [default: as long as a round of the log takes, at most 40; with --memory 40]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=10_000))]
    epoch_ms: Option<u64>,

    /// How often a transaction that met a conflict runs again [default: 1000]; with 0 it is given up, and the
    /// worker goes on to the next one, as in ERMIA's evaluation
    #[arg(long, value_name = "N")]
    retries: Option<u32>,

    /// Mebibytes that rows and indexes may take [default: no limit]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(8..=1 << 40))]
    memory_limit_mib: Option<u64>,

    /// Mebibytes to take from the system before the load, so that tables that grow do not wait for it during
    /// the run (Silo's evaluation does the same) [default: what the run may need: three times what YCSB
    /// loads, or the load of TPC-C, and 128 for each worker and second, of YCSB as many as there are inserts
    /// among its operations; at most a third of the free memory]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(0..=1 << 40))]
    prefault_mib: Option<u64>,

    /// Keep a snapshot open from before the warm-up until the run has ended: the report says how many older versions of rows
    /// it has kept in memory
    #[arg(long, conflicts_with = "crash")]
    hold_snapshot: bool,

    /// After the run, or after the recovery, make a checkpoint while no worker is at work, as fast as the disk takes it, and
    /// report how long it took
    #[arg(long, conflicts_with_all = ["memory", "checkpoint_mib_per_second"])]
    time_checkpoint: bool,

    /// Let the operating system move workers between cores
    #[arg(long)]
    no_pin: bool,

    /// Do not check the database for consistency after each run
    #[arg(long)]
    no_check: bool,

    /// Show no progress on stderr
    #[arg(long)]
    pub(super) quiet: bool,
}

impl Common {
    /// Why these options do not go together, if so.
    pub(super) fn refusal(&self) -> Option<String> {
        let is_refused =
            self.isolation == IsolationArgument::Snapshot && self.engine != EngineArgument::Ermia;
        is_refused.then(|| "--isolation snapshot needs --engine ermia".to_owned())
    }

    pub(super) fn system(&self) -> System {
        match (self.engine, self.isolation) {
            (EngineArgument::Silo, _) => self.system.0,
            (EngineArgument::Ermia, IsolationArgument::Serializable) => System::Ermia,
            (EngineArgument::Ermia, IsolationArgument::Snapshot) => System::ErmiaSnapshot,
            (EngineArgument::TwoPhaseLocking, _) => System::TwoPhaseLocking,
            (EngineArgument::TwoPhaseLockingNoWait, _) => System::TwoPhaseLockingNoWait,
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.workers.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    pub(super) fn benchmark_options(&self, benchmark: &Benchmark) -> BenchmarkOptions {
        let run = RunOptions {
            workers: self.workers(),
            warmup: self.warmup,
            measured: self.seconds,
            pin: !self.no_pin,
        };
        let prefault_bytes = self.prefault_bytes(benchmark, &run);
        BenchmarkOptions {
            run,
            runs: usize::from(self.runs),
            check: !self.no_check,
            crash: self.crash.then(|| CrashOptions {
                program: std::env::current_exe().unwrap_or_else(|_| "ensilo".into()),
                arguments: std::env::args_os().skip(1).chain(["--crash-here".into()]).collect(),
            }),
            storage: (!self.memory).then(|| StorageOptions {
                data_directory: self.data_dir.clone(),
                log_directories: self.log_dir.clone(),
            }),
            system: self.system(),
            log_records: self.log_records.into(),
            holds_snapshot: self.hold_snapshot,
            times_checkpoint: self.time_checkpoint,
            database: DatabaseOptions {
                epoch_interval: self.epoch_ms.map(Duration::from_millis),
                epochs_per_snapshot: None,
                snapshot_age_limit: self
                    .hold_snapshot
                    .then(|| self.warmup + self.seconds + SNAPSHOT_AGE_MARGIN),
                retries: self.retries,
                memory_limit_bytes: self.memory_limit_mib.map(|mib| mib << 20),
                prefault_bytes,
                checkpoint_interval: (!self.memory).then(|| self.checkpoint_interval()),
                has_no_checkpoints: self.no_checkpoints,
                is_log_compressed: self.log_compression.is_some(),
                logs_operations: self.logging == LoggingArgument::PerOperation,
                is_checkpoint_compressed: self.checkpoint_compression.is_some(),
                checkpoint_sync_bytes: self.checkpoint_sync_mib.map(|mib| mib << 20),
                checkpoint_bytes_per_second: self.checkpoint_bytes_per_second(),
            },
        }
    }

    fn checkpoint_interval(&self) -> Duration {
        self.checkpoint_interval
            .unwrap_or_else(|| ((self.warmup + self.seconds) / 3).max(CHECKPOINT_INTERVAL_MIN))
    }

    fn checkpoint_bytes_per_second(&self) -> Option<u64> {
        /// Faster than any disk.
        const UNBOUNDED: u64 = 1 << 40;
        if self.time_checkpoint {
            Some(UNBOUNDED)
        } else {
            self.checkpoint_mib_per_second.map(|mib| mib << 20)
        }
    }

    fn prefault_bytes(&self, benchmark: &Benchmark, run: &RunOptions) -> u64 {
        if let Some(mib) = self.prefault_mib {
            return mib << 20;
        }
        if self.memory_limit_mib.is_some() {
            return 0;
        }
        benchmark.memory_bytes(run).min(ensilo_bench::free_memory_bytes() / 3)
    }
}

/// Seconds, also parts of one, up to a week.
fn seconds(text: &str) -> Result<Duration, String> {
    const SECONDS_MAX: f64 = 604_800.0;
    seconds_within(text, 0.0..=SECONDS_MAX).map(Duration::from_secs_f64)
}

fn checkpoint_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|length| {
        if length < CHECKPOINT_INTERVAL_MIN { Err("not at least 0.1".to_owned()) } else { Ok(length) }
    })
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|length| {
        if length.is_zero() { Err("nothing can be measured in no time".to_owned()) } else { Ok(length) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_be_parts_but_not_negative() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for bad in ["-1", "x", "", "NaN", "inf", "1e9"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert!(positive_seconds("0").is_err());
    }
}
