//! `ensilo bench`: a workload, its report and its exit code.

mod common;
mod tpcc;
mod ycsb;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ensilo_bench::driver::{Failure, View};
use ensilo_bench::report::Report;
use ensilo_bench::{Benchmark, run_benchmark};

use crate::interrupt;
use common::{Common, Format};

/// Arguments of `ensilo bench`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Order entry: nine tables, five transaction types, twelve consistency conditions (TPC-C 5.11)
    Tpcc(tpcc::Arguments),
    /// Reads and writes of single records by key
    Ycsb(ycsb::Arguments),
}

/// The exit code of a failed consistency check, and of a failure of the database.
const FAILED: u8 = 1;

/// Runs the workload and writes its report to stdout.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let (common, benchmark) = match &arguments.workload {
        Workload::Tpcc(tpcc) => (&tpcc.common, Benchmark::Tpcc(tpcc.options())),
        Workload::Ycsb(ycsb) => (&ycsb.common, Benchmark::Ycsb(ycsb.options())),
    };
    let interrupt = interrupt::on_ctrl_c();
    let mut view = if common.quiet { View::silent() } else { View::stderr() };
    match run_benchmark(&benchmark, &common.benchmark_options(), &mut view, &interrupt) {
        Ok(report) => deliver(&report, common),
        // Who ends the program before it has measured anything wants nothing more of it.
        Err(Failure::Interrupted) => {
            eprintln!("{}", Failure::Interrupted);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(FAILED)
        }
    }
}

fn deliver(report: &Report, common: &Common) -> ExitCode {
    let text = match common.format {
        Format::Text => report.to_text(),
        Format::Json => report.to_json(),
    };
    // A reader that has gone (`| head`) is no failure of the benchmark.
    let _ = writeln!(std::io::stdout(), "{text}");
    if report.consistency_failures == 0 {
        return ExitCode::SUCCESS;
    }
    if common.format == Format::Json {
        let (failures, checks) = (report.consistency_failures, report.consistency_checks);
        eprintln!("error: {failures} of {checks} consistency checks failed");
    }
    ExitCode::from(FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use ensilo_bench::driver::{Check, Measurements, Memory, RunResult};
    use ensilo_bench::report::{CheckedRun, Subject};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// A report on a run whose only check found what `holds` says.
    fn report(holds: bool) -> Report {
        let mut check = Check::new("3.3.2.1", "sums agree");
        check.expect(holds, || "1 is not 2".to_owned());
        let result = RunResult {
            seconds: 1.0,
            measurements: Measurements::new(1),
            per_second: Vec::new(),
            memory_before: Memory::default(),
            memory_after: Memory::default(),
            interrupted: false,
        };
        let subject = Subject {
            workload: "tpcc",
            transaction_types: &["new_order"],
            workers: 1,
            parameters: Default::default(),
        };
        Report::new(subject, &[CheckedRun { result, checks: vec![check] }])
    }

    #[test]
    fn a_failed_check_is_exit_code_1() {
        for format in ["text", "json"] {
            let program = Program::parse_from(["ensilo", "tpcc", "--format", format]);
            let Workload::Tpcc(tpcc) = &program.arguments.workload else { unreachable!("parsed as tpcc") };
            assert_eq!(deliver(&report(false), &tpcc.common), ExitCode::from(1));
            assert_eq!(deliver(&report(true), &tpcc.common), ExitCode::SUCCESS);
        }
    }
}
