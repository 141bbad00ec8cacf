//! What is run.

use std::fmt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum, value_parser};
use ensilo_bench::System;

/// What a run is looked at under by default: ERMIA's paper's, the same made serializable, and Silo's engine.
const SYSTEMS: [System; 3] = [System::ErmiaSnapshot, System::Ermia, System::Ensilo];

/// Looks where the time of TPC-C's workers goes.
///
/// A thread looks at every worker about a thousand times a second, and counts in which part of the program it is. Each run loads a database
/// with a warehouse for each worker; systems take turns, and the consistency of each database is checked after its run.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// Numbers of workers, like 1,2,4; by default powers of two up to the processors
    #[arg(long, value_delimiter = ',', value_parser = value_parser!(u16).range(1..=256))]
    workers: Vec<u16>,

    /// Systems; all of these by default
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(SYSTEMS.map(System::name)))]
    systems: Vec<String>,

    /// What lies on disk; both by default
    #[arg(long, value_enum, value_delimiter = ',')]
    storage: Vec<Storage>,

    /// Seconds that each run is looked at
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u16).range(1..=3600))]
    seconds: u16,

    /// Seconds that each run takes before
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(0..=3600))]
    warmup: u16,

    /// Runs of each
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) runs: u16,

    /// File for the shares of every run as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// What lies on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Storage {
    /// Nothing
    Memory,
    /// The log, in the directory that TMPDIR names, otherwise in /tmp or, where that lies in memory, in /var/tmp
    Log,
}

impl Storage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Log => "log",
        }
    }
}

/// A system with its storage and so many workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) system: System,
    pub(crate) storage: Storage,
    pub(crate) workers: usize,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { system, storage, workers } = self;
        write!(f, "{}, {}, {workers} worker(s)", system.name(), storage.name())
    }
}

impl Arguments {
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let is_asked_for = |system: &System| {
            self.systems.is_empty() || self.systems.iter().any(|name| name == system.name())
        };
        let workers = self.workers();
        let mut subjects = Vec::new();
        for storage in [Storage::Memory, Storage::Log] {
            if !self.storage.is_empty() && !self.storage.contains(&storage) {
                continue;
            }
            for system in SYSTEMS.into_iter().filter(is_asked_for) {
                subjects.extend(workers.iter().map(|&workers| Subject { system, storage, workers }));
            }
        }
        subjects
    }

    pub(crate) fn warmup(&self) -> Duration {
        Duration::from_secs(self.warmup.into())
    }

    pub(crate) fn measured(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    /// Each number once, ascending.
    fn workers(&self) -> Vec<usize> {
        let mut workers: Vec<usize> = self.workers.iter().map(|&workers| workers.into()).collect();
        if workers.is_empty() {
            let processors = thread::available_parallelism().map_or(1, usize::from).min(256);
            let powers = (0..).map(|power: u32| 1_usize << power);
            workers.extend(powers.take_while(|&power| power < processors));
            workers.push(processors);
        }
        workers.sort_unstable();
        workers.dedup();
        workers
    }
}
