//! `ensilo bench`: a workload, its report and its exit code.

mod common;
mod counters;
pub(crate) mod islands;
mod stock;
mod tpcb;
mod tpcc;
mod tpcc_hybrid;
mod tpce;
mod ycsb;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ensilo_bench::driver::{Failure, View};
use ensilo_bench::report::Report;
use ensilo_bench::{Benchmark, refusal, remove_temporary_files, run_and_crash, run_benchmark};

use crate::interrupt;
use crate::output::{FAILED, complain, failed, say};
use common::{Common, Format};
pub(crate) use islands::{InstanceArguments, run_instance};

/// Arguments of `ensilo bench`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// A bank whose customers change their accounts: four tables, one transaction type (TPC-B 2.0)
    Tpcb(tpcb::Arguments),
    /// Order entry: nine tables, five transaction types, twelve consistency conditions (TPC-C 5.11)
    Tpcc(tpcc::Arguments),
    /// Order entry beside a long transaction that reads much and writes little, CH-Q2* (ERMIA's TPC-C-hybrid)
    TpccHybrid(tpcc_hybrid::Arguments),
    /// Reads of many random stocks of TPC-C, of which a few are updated (ERMIA's microbenchmark)
    Stock(stock::Arguments),
    /// A brokerage house: 33 tables, twelve transaction types (TPC-E 1.14)
    Tpce(tpce::Arguments),
    /// TPC-E with AssetEval, which reads much and writes some (ERMIA, SIGMOD 2016)
    TpceHybrid(tpce::HybridArguments),
    /// Reads and writes of single records by key
    Ycsb(ycsb::Arguments),
    /// Reads or updates of some rows on several instances, of which a share is distributed (the islands paper's microbenchmark)
    Micro(islands::MicroArguments),
    /// A bank on several instances, which share the branches (TPC-B 2.0)
    TpcbIslands(islands::TpcbIslandsArguments),
    /// Order entry on several instances, which share the warehouses (TPC-C 5.11)
    TpccIslands(islands::TpccIslandsArguments),
    /// Reads and writes of single records on several instances, by a hash of their keys
    YcsbIslands(islands::YcsbIslandsArguments),
    /// Counters that threads count up, each under a lock, by where the threads run (the islands paper's figures 5 and 7)
    Counters(counters::CountersArguments),
}

/// Runs the workload and writes its report to stdout.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let (common, benchmark) = match &arguments.workload {
        Workload::Tpcb(tpcb) => (&tpcb.common, Benchmark::Tpcb(tpcb.options())),
        Workload::Tpcc(tpcc) => (&tpcc.common, Benchmark::Tpcc(tpcc.options())),
        Workload::TpccHybrid(hybrid) => (&hybrid.common, Benchmark::TpccHybrid(hybrid.options())),
        Workload::Stock(stock) => (&stock.common, Benchmark::Stock(stock.options())),
        Workload::Tpce(tpce) => (&tpce.common, Benchmark::Tpce(tpce.options())),
        Workload::TpceHybrid(tpce) => (&tpce.common, Benchmark::Tpce(tpce.options())),
        Workload::Ycsb(ycsb) => (&ycsb.common, Benchmark::Ycsb(ycsb.options())),
        Workload::Micro(micro) => return islands::run_micro(micro),
        Workload::TpcbIslands(tpcb) => return islands::run_tpcb(tpcb),
        Workload::TpccIslands(tpcc) => return islands::run_tpcc(tpcc),
        Workload::YcsbIslands(ycsb) => return islands::run_ycsb(ycsb),
        Workload::Counters(counters) => return counters::run(counters),
    };
    let options = common.benchmark_options(&benchmark);
    let refused_here = match &arguments.workload {
        Workload::Tpcc(tpcc) => tpcc.refusal(),
        Workload::Tpcb(_) | Workload::TpccHybrid(_) | Workload::Stock(_) => None,
        Workload::Tpce(_) | Workload::TpceHybrid(_) | Workload::Ycsb(_) => None,
        Workload::Micro(_) | Workload::TpcbIslands(_) | Workload::TpccIslands(_) => None,
        Workload::YcsbIslands(_) | Workload::Counters(_) => None,
    };
    if let Some(why) = common.refusal().or(refused_here).or_else(|| refusal(&benchmark, &options)) {
        crate::refuse_usage(&why);
    }
    let interrupt = interrupt::on_ctrl_c(remove_temporary_files);
    let mut view = if common.quiet { View::silent() } else { View::stderr() };
    let outcome = if common.crash_here {
        Err(run_and_crash(&benchmark, &options, &mut view, &interrupt))
    } else {
        run_benchmark(&benchmark, &options, &mut view, &interrupt)
    };
    match outcome {
        Ok(report) => deliver(&report, common),
        Err(Failure::Interrupted) => {
            complain(format_args!("{}", Failure::Interrupted));
            interrupt::exit_code()
        }
        Err(failure) => failed(failure),
    }
}

fn deliver(report: &Report, common: &Common) -> ExitCode {
    let text = match common.format {
        Format::Text => report.to_text(),
        Format::Json => report.to_json(),
    };
    say(format_args!("{text}"));
    let lost = report.recovery.as_ref().map_or(0, |recovery| recovery.transactions_lost);
    if report.consistency_failures == 0 && lost == 0 {
        return if report.interrupted { interrupt::exit_code() } else { ExitCode::SUCCESS };
    }
    if common.format == Format::Json {
        let (failures, checks) = (report.consistency_failures, report.consistency_checks);
        complain(format_args!(
            "error: {failures} of {checks} consistency checks failed, {lost} acknowledged transactions lost"
        ));
    }
    ExitCode::from(FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use ensilo_bench::System;
    use ensilo_bench::driver::{Check, Measurements, Memory, RunResult};
    use ensilo_bench::report::{CheckedRun, RecoveryReport, Subject};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// Returns a report on a run with one check, which holds or not.
    fn report(holds: bool, interrupted: bool) -> Report {
        let mut check = Check::new("3.3.2.1", "sums agree");
        check.expect(holds, || "1 is not 2".to_owned());
        let result = RunResult {
            seconds: 1.0,
            processor_seconds: 1.0,
            durability: None,
            measurements: Measurements::new(1),
            timeline: Vec::new(),
            per_second: Vec::new(),
            memory_before: Memory::default(),
            memory_after: Memory::default(),
            interrupted,
        };
        let subject = Subject {
            workload: "tpcc",
            system: System::Ensilo,
            transaction_types: &["new_order"],
            workers: 1,
            parameters: Default::default(),
        };
        Report::new(
            subject,
            &[CheckedRun { result, checks: vec![check], disk: None, recovery: None, timed_checkpoint: None }],
        )
    }

    #[test]
    fn a_lost_transaction_is_exit_code_1() {
        let program = Program::parse_from(["ensilo", "tpcc", "--format", "json"]);
        let Workload::Tpcc(tpcc) = &program.arguments.workload else { unreachable!("parsed as tpcc") };
        let mut report = report(true, false);
        for (lost, expected) in [(0, ExitCode::SUCCESS), (1, ExitCode::from(1))] {
            report.recovery = Some(RecoveryReport {
                seconds: 1.0,
                bytes: 0,
                checkpoint_bytes: 0,
                log_bytes: 0,
                checkpoint_rows: 0,
                log_writes: 0,
                mb_per_second: 0.0,
                transactions_lost: lost,
                transactions: Vec::new(),
            });
            assert_eq!(deliver(&report, &tpcc.common), expected);
        }
    }

    #[test]
    fn a_failed_check_is_exit_code_1() {
        for format in ["text", "json"] {
            let program = Program::parse_from(["ensilo", "tpcc", "--format", format]);
            let Workload::Tpcc(tpcc) = &program.arguments.workload else { unreachable!("parsed as tpcc") };
            for interrupted in [false, true] {
                assert_eq!(deliver(&report(false, interrupted), &tpcc.common), ExitCode::from(1));
            }
            assert_eq!(deliver(&report(true, false), &tpcc.common), ExitCode::SUCCESS);
            assert_eq!(deliver(&report(true, true), &tpcc.common), ExitCode::from(130));
        }
    }
}
