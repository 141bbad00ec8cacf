//! `ensilo compare`: Ensilo beside what a user would pick instead.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use ensilo_bench::driver::{Failure, View};
use ensilo_bench::peer::Setting;
use ensilo_bench::report::{Build, Machine};
use ensilo_bench::tpcc::Scale;
use ensilo_bench::{remove_temporary_files, temporary_root, warn_if_in_memory};
use ensilo_figures::compare::{PeerRun, read_runs, text_of, write_runs};
use ensilo_figures::latency::{LatencyOptions, OtherDatabases};
use ensilo_figures::{FiguresError, in_words, make_directory, write_results};
use ensilo_peers::{CompareOptions, LatencyPeers, PeerName, WorkloadName, compare};

use crate::engine::{EngineArgument, IsolationArgument};
use crate::interrupt;
use crate::output::{FAILED, USAGE, complain, say};
use crate::seconds::seconds_of_run;

/// Numbers of clients whose answers wait for the disk: one waits alone, several share syncs.
const SYNCED_WORKERS: [usize; 3] = [1, 8, 32];

const EXAMPLES: &str = "\
Examples:
  ensilo compare
      Every database under every workload, synced and not. How many runs that is, and how long they measure, is said at the start.
  ensilo compare --peers ensilo,redb --workloads transfer-uniform --sync on
      Transfers that are answered when they are on disk, from one client, from 8 and from 32 at once.
  ensilo compare --peers ensilo,redb --engine silo,ermia
      Ensilo with both of its engines.
  ensilo compare --postgres 'host=/run/postgresql user=postgres dbname=test'
      PostgreSQL as well, over its socket.
  ensilo figures run silo-4 --out results; ensilo compare --out results
      One page for both, results/index.html.

Each run loads a new database; databases take turns. After each run every row is read: balances and counters have to add up to what was
committed, and every value has to be whole. If they do not, the exit code is 1. After Ctrl-C it is 130, after SIGTERM 143.
Every client thread waits for its answer before it goes on.";

/// Ensilo beside SQLite, LMDB, redb, fjall, RocksDB and PostgreSQL, on the same work
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Databases: ensilo, sqlite, lmdb, redb, fjall, rocksdb, postgresql [default: all; rocksdb only in a
    /// program that was built with the feature rocksdb, postgresql only with --postgres]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    peers: Vec<PeerName>,

    /// The engines on which Ensilo runs, like silo,ermia; may be given again [default: silo]
    #[arg(long = "engine", value_enum, value_name = "LIST", value_delimiter = ',')]
    engines: Vec<EngineArgument>,

    /// What transactions of ERMIA's engine may see of each other; the others here are serializable
    #[arg(long, value_enum, default_value_t = IsolationArgument::Serializable)]
    isolation: IsolationArgument,

    /// Workloads: ycsb-b, ycsb-f, ycsb-silo, tpcc, transfer-uniform, transfer-zipf [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    workloads: Vec<WorkloadName>,

    /// Whether answers wait until the disk has synced: off (in memory, or without syncs), on [default:
    /// off,on]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sync: Vec<Setting>,

    /// Numbers of client threads, with --sync off [default: 1 and the number of cores]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value_parser!(u16).range(1..=4096))]
    workers: Vec<u16>,

    /// Numbers of client threads, with --sync on; the same for all, so that those with group commit can use
    /// it [default: --workers if given, otherwise 1, 8 and 32]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value_parser!(u16).range(1..=4096))]
    synced_workers: Vec<u16>,

    /// Records of YCSB, with 100 bytes each
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=1 << 32))]
    records: u64,

    /// Accounts of the transfers
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u64).range(2..=1 << 26))]
    accounts: u64,

    /// Warehouses of TPC-C
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u16).range(1..=1000))]
    warehouses: u16,

    /// Seconds that each run measures
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds_of_run)]
    seconds: f64,

    /// Seconds that each run takes before
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds_of_run)]
    warmup: f64,

    /// Runs of each; the median is reported
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = value_parser!(u16).range(1..=1000))]
    runs: u16,

    /// Directory in which databases are made and removed again [default: TMPDIR if that is set, otherwise
    /// /tmp or, where that lies in memory, /var/tmp]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Directory for compare.csv, with every single run, the plots and the page; what is there of the same
    /// runs is replaced
    #[arg(long, value_name = "DIR", default_value = "ensilo-figures")]
    out: PathBuf,

    /// How a running PostgreSQL server is reached, as "host=/run/postgresql user=postgres dbname=test". The
    /// schema ensilo_compare, which must not exist there, is made for each run and dropped after it
    #[arg(long, value_name = "ADDRESS")]
    postgres: Option<String>,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Form of the report on stdout
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Show no progress on stderr
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// One JSON object with every run
    Json,
}

/// Makes the runs, keeps each finished one, and reports.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if let Some(refusal) = arguments.refusal() {
        crate::refuse_usage(refusal);
    }
    let options = arguments.options();
    if options.peers.contains(&PeerName::Postgresql) && options.postgres.is_none() {
        crate::refuse_usage("--peers postgresql needs --postgres with the address of a server");
    }
    let interrupt = interrupt::on_ctrl_c(remove_temporary_files);
    let mut runs = Vec::new();
    let done = make_directory(&arguments.out).map_err(failed).and_then(|()| {
        let mut view = if arguments.quiet { View::silent() } else { View::stderr() };
        let root = options.directory.clone().map_or_else(temporary_root, Ok)?;
        warn_if_in_memory(&root, &mut view);
        let measured = (options.measured + options.warmup) * options.run_count() as u32;
        view.note(&format!("{} runs; {} in all, and the loads", options.run_count(), in_words(measured)));
        let done = compare(&options, &mut view, &interrupt, |run| {
            runs.push(run);
            arguments.keep(&runs)
        });
        view.close();
        done
    });
    let done = done.and(if runs.is_empty() { Ok(()) } else { arguments.report(&runs) });
    let is_consistent = runs.iter().all(|run| run.checks_failed == 0);
    if let Err(failure) = &done {
        complain(format_args!("error: {failure}"));
    }
    match done {
        Err(Failure::Refused(_)) => ExitCode::from(USAGE),
        Err(_) => ExitCode::from(FAILED),
        Ok(()) if !is_consistent => ExitCode::from(FAILED),
        Ok(()) if interrupt.is_raised() => interrupt::exit_code(),
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Results that cannot be kept.
fn failed(error: FiguresError) -> Failure {
    Failure::Io("cannot keep the results".to_owned(), std::io::Error::other(error))
}

impl Arguments {
    /// Why these options do not go together, if so.
    fn refusal(&self) -> Option<&'static str> {
        let is_named = self.peers.is_empty() || self.peers.contains(&PeerName::Ensilo);
        let has_ermia = self.engines.contains(&EngineArgument::Ermia);
        if !self.engines.is_empty() && !is_named {
            Some("--engine says on what Ensilo runs, and needs ensilo among --peers")
        } else if self.isolation == IsolationArgument::Snapshot && !has_ermia {
            Some("--isolation snapshot needs --engine ermia")
        } else {
            None
        }
    }

    /// Returns the databases, Ensilo once for each of its engines.
    fn peers(&self) -> Vec<PeerName> {
        let engines = or_else(self.engines.clone(), || vec![EngineArgument::Silo]);
        let own = |engine: &EngineArgument| match (engine, self.isolation) {
            (EngineArgument::Silo, _) => PeerName::Ensilo,
            (EngineArgument::Ermia, IsolationArgument::Serializable) => PeerName::EnsiloErmia,
            (EngineArgument::Ermia, IsolationArgument::Snapshot) => PeerName::EnsiloErmiaSnapshot,
            (EngineArgument::TwoPhaseLocking, _) => PeerName::EnsiloTwoPhaseLocking,
            (EngineArgument::TwoPhaseLockingNoWait, _) => PeerName::EnsiloTwoPhaseLockingNoWait,
        };
        let named = or_else(self.peers.clone(), || PeerName::at_hand(self.postgres.is_some()));
        let with_engines = |peer| match peer {
            PeerName::Ensilo => engines.iter().map(own).collect(),
            other => vec![other],
        };
        once(named.into_iter().flat_map(with_engines).collect())
    }

    fn options(&self) -> CompareOptions {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let wide = |workers: &[u16]| workers.iter().map(|&workers| usize::from(workers)).collect::<Vec<_>>();
        let workers = or_else(wide(&self.workers), || vec![1, cores]);
        let synced_workers = or_else(wide(&self.synced_workers), || match self.workers[..] {
            [] => SYNCED_WORKERS.to_vec(),
            _ => workers.clone(),
        });
        CompareOptions {
            peers: self.peers(),
            workloads: once(or_else(self.workloads.clone(), || WorkloadName::ALL.to_vec())),
            settings: once(or_else(self.sync.clone(), || vec![Setting::NotSynced, Setting::Synced])),
            workers: once(workers),
            synced_workers: once(synced_workers),
            records: self.records,
            accounts: self.accounts,
            warehouses: self.warehouses,
            tpcc_scale: Scale::SPECIFICATION,
            measured: Duration::from_secs_f64(self.seconds),
            warmup: Duration::from_secs_f64(self.warmup),
            runs: usize::from(self.runs),
            directory: self.dir.clone(),
            postgres: self.postgres.clone(),
            seed: self.seed,
        }
    }

    /// Writes the runs so far, and before them what earlier comparisons left of other points.
    fn keep(&self, runs: &[PeerRun]) -> Result<(), Failure> {
        let mut kept = read_runs(&self.out).map_err(failed)?;
        kept.retain(|old| !runs.iter().any(|run| run.is_of_point(old)));
        kept.extend_from_slice(runs);
        write_runs(&self.out, &kept).map_err(failed)
    }

    /// Writes the page and tells the runs.
    fn report(&self, runs: &[PeerRun]) -> Result<(), Failure> {
        let page = write_results(&self.out).map_err(failed)?;
        let text = match self.format {
            Format::Text => format!("{}\n{}", text_of(runs), page.display()),
            Format::Json => {
                let report =
                    serde_json::json!({ "machine": Machine::this(), "build": Build::this(), "runs": runs });
                report.to_string()
            }
        };
        say(format_args!("{text}"));
        Ok(())
    }
}

/// Returns the databases beside Ensilo for `ensilo figures run latency`.
pub(crate) fn others(options: &LatencyOptions) -> Option<Box<dyn OtherDatabases>> {
    Some(Box::new(LatencyPeers::new(options)))
}

/// Returns the list that was given, or the default.
fn or_else<T>(given: Vec<T>, default: impl FnOnce() -> Vec<T>) -> Vec<T> {
    if given.is_empty() { default() } else { given }
}

/// Each of a list at its first place.
fn once<T: PartialEq>(list: Vec<T>) -> Vec<T> {
    list.into_iter().fold(Vec::new(), |mut seen, one| {
        if !seen.contains(&one) {
            seen.push(one);
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn synced_answers_are_measured_alone_and_in_company() {
        let synced_workers = |words: &[&str]| {
            Program::parse_from([&["ensilo"], words].concat()).arguments.options().synced_workers
        };
        assert_eq!(synced_workers(&[]), [1, 8, 32]);
        assert_eq!(synced_workers(&["--workers", "2,3"]), [2, 3]);
        assert_eq!(synced_workers(&["--workers", "2", "--synced-workers", "4,4"]), [4]);
    }
}
