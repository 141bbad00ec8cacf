//! A whole benchmark: load, run and check, as many times as asked, and the report on all of it.

use crate::database::DatabaseOptions;
use crate::driver::{Failure, Interrupt, RunOptions, View, Workload, run};
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
#[derive(Debug, Clone, Copy)]
pub struct BenchmarkOptions {
    /// Workers and times of each run.
    pub run: RunOptions,
    /// Runs, each with a database loaded anew; at least 1.
    pub runs: usize,
    /// Whether the database is checked for consistency after each run.
    pub check: bool,
    /// The database.
    pub database: DatabaseOptions,
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
        parameters
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
        let name =
            if options.runs == 1 { "run".to_owned() } else { format!("run {number} of {}", options.runs) };
        let outcome = match benchmark {
            Benchmark::Tpcc(tpcc) => Tpcc::load(tpcc.clone(), options.database, view, interrupt)
                .and_then(|tpcc| run_and_check(&tpcc, options, &name, view, interrupt)),
            Benchmark::Ycsb(ycsb) => Ycsb::load(ycsb.clone(), options.database, view, interrupt)
                .and_then(|ycsb| run_and_check(&ycsb, options, &name, view, interrupt)),
        };
        match outcome {
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

fn run_and_check<W: Workload>(
    workload: &W,
    options: &BenchmarkOptions,
    name: &str,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<(&'static [&'static str], CheckedRun), Failure> {
    let result = run(workload, &options.run, name, view, interrupt)?;
    // Who stops a run early wants its results, checked; who stops it again gets no further than this.
    let checks = if options.check { workload.check(view, &Interrupt::new())? } else { Vec::new() };
    Ok((workload.transaction_types(), CheckedRun { result, checks }))
}
