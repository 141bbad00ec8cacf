//! One run, and where its workers were found.

use std::time::Duration;

use ensilo::generic::Database;
use ensilo_bench::driver::{Failure, Interrupt, RunOptions, RunResult, View, Workload, run};
use ensilo_bench::report::{Machine, RegionRun};
use ensilo_bench::tpcc::TpccOptions;
use ensilo_bench::{
    Benchmark, DatabaseOptions, Directories, TemporaryDirectory, Visitor, temporary_root, visit_in_memory,
    visit_on_disk,
};
use ensilo_counting::regions::{RegionCounts, look_during};
use ensilo_sync::region::Region;

use crate::arguments::{Arguments, Storage, Subject};
use crate::observed::ObservedWorkload;

/// Loads the subject's database, runs TPC-C, looks and checks.
pub(crate) fn measure(arguments: &Arguments, subject: &Subject, number: usize) -> Result<RegionRun, Failure> {
    let benchmark = Benchmark::Tpcc(TpccOptions::new(subject.workers));
    let mut looking = Looking { workers: subject.workers, arguments };
    // What a worker could not commit it gives up, as in the paper.
    let database = DatabaseOptions {
        retries: Some(0),
        has_no_checkpoints: true,
        prefault_bytes: prefault_bytes(&benchmark, arguments, subject.workers),
        ..DatabaseOptions::default()
    };
    let (result, counts) = match subject.storage {
        Storage::Memory => visit_in_memory(&benchmark, subject.system, &database, &mut looking)?,
        Storage::Log => {
            let place = TemporaryDirectory::new(&temporary_root()?)?;
            let directories = Directories { database: place.path().to_owned(), logs: Vec::new() };
            visit_on_disk(&benchmark, subject.system, &database, &directories, &mut looking)?
        }
    };
    Ok(run_of(subject, number, &result, &counts))
}

/// As much as `ensilo bench` takes before it loads: page faults would count where they happen.
fn prefault_bytes(benchmark: &Benchmark, arguments: &Arguments, workers: usize) -> u64 {
    let options = run_options(workers, arguments.warmup() + arguments.measured());
    benchmark.memory_bytes(&options).min(ensilo_bench::free_memory_bytes() / 3)
}

fn run_options(workers: usize, measured: Duration) -> RunOptions {
    RunOptions { workers, warmup: Duration::ZERO, measured, pin: true }
}

struct Looking<'a> {
    workers: usize,
    arguments: &'a Arguments,
}

impl Visitor for Looking<'_> {
    type Result = (RunResult, RegionCounts);

    fn visit<W: Workload>(
        &mut self,
        workload: &W,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self::Result, Failure> {
        let warmup = run_options(self.workers, self.arguments.warmup());
        run(workload, &warmup, "warm-up", view, interrupt)?;
        let measured = run_options(self.workers, self.arguments.measured());
        let (result, counts) = look_during(self.workers, || {
            run(&ObservedWorkload(workload), &measured, "looked at", view, interrupt)
        });
        let result = result?;
        let checks = workload.check(view, interrupt)?;
        if let Some(check) = checks.iter().find(|check| !check.passed()) {
            let (condition, examples) = (check.condition, check.examples.join("; "));
            return Err(Failure::Broken(format!("it does not hold that {condition}: {examples}")));
        }
        workload.database().map_or(Ok(()), Database::close)?;
        Ok((result, counts))
    }
}

fn run_of(subject: &Subject, number: usize, result: &RunResult, counts: &RegionCounts) -> RegionRun {
    let machine = Machine::this();
    RegionRun {
        system: subject.system.name().to_owned(),
        storage: subject.storage.name().to_owned(),
        workers: subject.workers,
        run: number,
        index: counts.share(Region::Index),
        indirection: counts.share(Region::Indirection),
        log: counts.share(Region::Log),
        epochs: counts.share(Region::Epochs),
        engine: counts.share(Region::Engine),
        workload: counts.share(Region::Workload),
        waiting: counts.waiting(),
        looks: counts.at_work(),
        transactions_per_second: result.measurements.committed() as f64 / result.seconds,
        cores: machine.cores,
        machine: RegionRun::machine_in_words(&machine),
    }
}
