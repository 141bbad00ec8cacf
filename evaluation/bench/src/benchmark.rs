//! A whole benchmark: load, run and check, as many times as asked, and the report on all of it.

use crate::crash::crash_and_recover;
use crate::disk::DiskReport;
use crate::dispatch::Job;
use crate::driver::{Failure, Interrupt, View};
use crate::options::{Benchmark, BenchmarkOptions, Run};
use crate::place::DatabasePlace;
use crate::refusal::refusal;
use crate::report::{Report, Subject};

/// Runs `benchmark` and reports. After an interrupt the report is on the runs that there were.
///
/// # Errors
/// [`Failure::Refused`] when the system does not go with the options, see [`refusal`]; [`Failure::Interrupted`] if nothing was measured,
/// and failures of the database.
pub fn run_benchmark(
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Report, Failure> {
    if let Some(why) = refusal(benchmark, options) {
        return Err(Failure::Refused(why));
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
        system: options.system,
        transaction_types,
        workers: options.run.workers,
        parameters: benchmark.parameters(options),
    };
    let mut report = Report::new(subject, &runs);
    report.interrupted |= interrupt.is_raised();
    Ok(report)
}

/// One run, in a place of its own.
fn run_number(
    number: usize,
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Run, Failure> {
    let bytes = benchmark.disk_bytes(options);
    let place = match &options.storage {
        Some(storage) => Some(DatabasePlace::new(storage, number, options.runs, bytes, view)?),
        None => None,
    };
    let disk = match &place {
        Some(place) => Some(DiskReport::measure(place.directories.log())?),
        None => None,
    };
    let prefaulted = options.database.prefault_bytes;
    if prefaulted > 0 && number == 1 {
        view.note(&format!("taking {} MiB of memory before each run", prefaulted >> 20));
    }
    let name = if options.runs == 1 { "run".to_owned() } else { format!("run {number} of {}", options.runs) };
    let directories = place.as_ref().map(|place| &place.directories);
    let (types, mut run) = match (&options.crash, directories) {
        (Some(crash), Some(directories)) => {
            crash_and_recover(benchmark, options, crash, directories, view, interrupt)
        }
        _ => Job { options, directories, name: &name, view, interrupt }.run(benchmark),
    }?;
    run.disk = disk;
    Ok((types, run))
}
