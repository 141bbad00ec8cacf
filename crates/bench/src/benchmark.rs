//! A whole benchmark: load, run and check, as many times as asked, and the report on all of it.

use ensilo::Database;

use crate::crash::{CrashOptions, crash_and_recover};
use crate::database::{DatabaseOptions, Directories};
use crate::disk::DiskReport;
use crate::driver::{Failure, Interrupt, RunOptions, View, Workload, run};
use crate::place::{Place, StorageOptions};
use crate::report::{CheckedRun, Report, Subject};
use crate::tpcc::{Tpcc, TpccOptions};
use crate::ycsb::{Ycsb, YcsbOptions};

/// Which workload, with its options.
#[derive(Debug, Clone)]
pub enum Benchmark {
    /// TPC-C.
    Tpcc(TpccOptions),
    /// YCSB.
    Ycsb(YcsbOptions),
}

/// How to run it.
#[derive(Debug, Clone)]
pub struct BenchmarkOptions {
    /// Workers and times of each run.
    pub run: RunOptions,
    /// Runs, each with a database loaded anew; at least 1.
    pub runs: usize,
    /// Whether the database is checked for consistency after each run.
    pub check: bool,
    /// The database.
    pub database: DatabaseOptions,
    /// Where the database is kept; `None` for one in memory.
    pub storage: Option<StorageOptions>,
    /// How each run ends in a crash and the database is recovered, if that is wanted. Not for one in memory.
    pub crash: Option<CrashOptions>,
}

impl Benchmark {
    fn name(&self) -> &'static str {
        match self {
            Self::Tpcc(_) => "tpcc",
            Self::Ycsb(_) => "ycsb",
        }
    }

    fn parameters(&self, options: &BenchmarkOptions) -> serde_json::Value {
        let mut parameters = match self {
            Self::Tpcc(tpcc) => tpcc.parameters(),
            Self::Ycsb(ycsb) => ycsb.parameters(),
        };
        parameters["seconds"] = options.run.measured.as_secs_f64().into();
        parameters["warmup_seconds"] = options.run.warmup.as_secs_f64().into();
        parameters["runs"] = options.runs.into();
        parameters["pinned"] = options.run.pin.into();
        parameters["database"] = options.database.parameters();
        parameters["durable"] = options.storage.is_some().into();
        parameters["crash"] = options.crash.is_some().into();
        parameters
    }

    /// How many bytes log and checkpoints of a run may take at most, roughly: the load in the log and in two checkpoints, and what the
    /// workers log, which is bounded in turn by the checkpoints that a large log brings about.
    fn disk_bytes(&self, run: &RunOptions) -> u64 {
        /// What a worker logs in a second, and the log at which there is a checkpoint at the latest, twice.
        const LOGGED_BYTES: f64 = 96e6;
        const LOG_BYTES_MAX: f64 = 8e9;
        let loaded = match self {
            Self::Tpcc(tpcc) => tpcc.loaded_bytes(),
            Self::Ycsb(ycsb) => ycsb.loaded_bytes(),
        };
        let logged = LOGGED_BYTES * run.workers as f64 * (run.warmup + run.measured).as_secs_f64();
        3 * loaded + logged.min(LOG_BYTES_MAX) as u64
    }
}

/// Runs `benchmark` and reports. After an interrupt the report is on the runs that there were.
///
/// # Errors
/// [`Failure::Interrupted`] if nothing was measured, and failures of the database.
pub fn run_benchmark(
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Report, Failure> {
    let prefaulted = options.database.prefault_bytes;
    if prefaulted > 0 {
        view.note(&format!("taking {} MiB of memory before each run", prefaulted >> 20));
    }
    let mut runs = Vec::with_capacity(options.runs);
    let mut transaction_types: &'static [&'static str] = &[];
    for number in 1..=options.runs {
        match run_number(number, benchmark, options, view, interrupt) {
            Ok((types, run)) => {
                transaction_types = types;
                runs.push(run);
            }
            Err(Failure::Interrupted) if !runs.is_empty() => break,
            Err(failure) => return Err(failure),
        }
        if interrupt.is_raised() {
            break;
        }
    }
    view.close();
    let subject = Subject {
        workload: benchmark.name(),
        transaction_types,
        workers: options.run.workers,
        parameters: benchmark.parameters(options),
    };
    let mut report = Report::new(subject, &runs);
    report.interrupted |= interrupt.is_raised();
    Ok(report)
}

/// The names of the transaction types, and what there is to report.
pub(crate) type Run = (&'static [&'static str], CheckedRun);

/// One run, in a place of its own.
fn run_number(
    number: usize,
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Run, Failure> {
    let bytes = benchmark.disk_bytes(&options.run);
    let place = match &options.storage {
        Some(storage) => Some(Place::new(storage, number, options.runs, bytes)?),
        None => None,
    };
    let disk = match &place {
        Some(place) => Some(DiskReport::measure(place.directories.log())?),
        None => None,
    };
    let name = if options.runs == 1 { "run".to_owned() } else { format!("run {number} of {}", options.runs) };
    let directories = place.as_ref().map(|place| &place.directories);
    let (types, mut run) = match (&options.crash, directories) {
        (Some(crash), Some(directories)) => {
            crash_and_recover(benchmark, options, crash, directories, view, interrupt)
        }
        _ => load_and_run(benchmark, options, directories, &name, view, interrupt),
    }?;
    run.disk = disk;
    Ok((types, run))
}

fn load_and_run(
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    directories: Option<&Directories>,
    name: &str,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Run, Failure> {
    let database = options.database.open(directories)?;
    match benchmark {
        Benchmark::Tpcc(tpcc) => {
            let tpcc = Tpcc::load(tpcc.clone(), database, view, interrupt)?;
            run_and_check(&tpcc, options, name, view, interrupt)
        }
        Benchmark::Ycsb(ycsb) => {
            let ycsb = Ycsb::load(ycsb.clone(), database, view, interrupt)?;
            run_and_check(&ycsb, options, name, view, interrupt)
        }
    }
}

fn run_and_check<W: Workload>(
    workload: &W,
    options: &BenchmarkOptions,
    name: &str,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Run, Failure> {
    let result = run(workload, &options.run, name, view, interrupt)?;
    // Who stops a run early wants its results, checked; who stops it again gets no further than this.
    let checks = if options.check { workload.check(view, &Interrupt::new())? } else { Vec::new() };
    workload.database().map_or(Ok(()), Database::close)?;
    Ok((workload.transaction_types(), CheckedRun { result, checks, disk: None, recovery: None }))
}
