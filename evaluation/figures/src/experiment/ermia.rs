//! The series of the experiments of ERMIA (*Fast Memory-Optimized Database System for Heterogeneous Workloads*, SIGMOD 2016, §1 and §4).
//!
//! What a worker could not commit it gives up and goes on to its next transaction, as in the paper (`--retries 0`). CH-Q2* and AssetEval say that they
//! read mostly, which has no effect on a request of Silo's engine that is not tried again. Figure 11,
//! which shows where processor cycles go, is made apart from these: see `regions`.

use super::description::{Point, Series};
use super::paper::Paper;
use crate::command::{BenchCommand, Storage};
use crate::sizes::Sizes;

type SeriesOf = fn(&Sizes) -> Vec<Series>;

pub(super) const SERIES: [(&str, SeriesOf); 10] = [
    ("ermia-1", figure_1),
    ("ermia-2", figure_2),
    ("ermia-5", figure_5),
    ("ermia-6", figure_6),
    ("ermia-7", figure_7),
    ("ermia-7-tpce", figure_7_tpce),
    ("ermia-8", figure_8),
    ("ermia-9", figure_9),
    ("ermia-10", figure_10),
    ("ermia-12", figure_12),
];

const SILO: &str = "ensilo";
const SSN: &str = "ermia";
const SI: &str = "ermia-snapshot";

/// Table 1: transactions a second of ERMIA-SI under TPC-C-hybrid, by the percent of the suppliers that CH-Q2* covers.
const TABLE_1_TPCC_HYBRID: &[(f64, f64)] = &[
    (1.0, 70_319.0),
    (5.0, 12_938.0),
    (10.0, 5_698.0),
    (20.0, 2_435.0),
    (40.0, 1_173.0),
    (60.0, 868.0),
    (80.0, 750.0),
    (100.0, 647.0),
];

/// Table 1: the same under TPC-E-hybrid, by the percent of the customers that AssetEval looks at.
const TABLE_1_TPCE_HYBRID: &[(f64, f64)] = &[
    (1.0, 37_151.0),
    (5.0, 7_675.0),
    (10.0, 4_298.0),
    (20.0, 2_142.0),
    (40.0, 1_090.0),
    (60.0, 705.0),
    (80.0, 524.0),
    (100.0, 429.0),
];

/// The size of CH-Q2* in figure 2, of which the paper does not say it: one at which Silo's collapses in figure 5.
const FIGURE_2_PERCENT: u32 = 60;

fn given_up(command: BenchCommand, system: &'static str) -> BenchCommand {
    command.system(system).option("--retries", 0)
}

fn tpcc(sizes: &Sizes, system: &'static str, workers: usize) -> BenchCommand {
    given_up(BenchCommand::tpcc(workers, sizes.warmup, sizes.seconds), system)
}

fn hybrid(sizes: &Sizes, system: &'static str, percent: u32, workers: usize) -> BenchCommand {
    given_up(BenchCommand::tpcc_hybrid(percent, workers, sizes.warmup, sizes.seconds), system)
}

fn tpce(sizes: &Sizes, system: &'static str, workers: usize) -> BenchCommand {
    given_up(BenchCommand::tpce(sizes.customers_and_days, workers, sizes.warmup, sizes.seconds), system)
}

fn figure_1(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system, reads)| {
        let command = |percent| {
            let command = BenchCommand::stock(reads, percent, sizes.all_workers, sizes.warmup, sizes.seconds);
            given_up(command, system)
        };
        let points =
            sizes.write_percents.iter().map(|&percent| Point { x: percent, command: command(percent) });
        Series { name, paper: Paper::Unknown, points: points.collect() }
    };
    [
        ("Silo, 1000 reads", SILO, 1_000),
        ("ERMIA-SSN, 1000 reads", SSN, 1_000),
        ("ERMIA-SI, 1000 reads", SI, 1_000),
        ("Silo, 10000 reads", SILO, 10_000),
        ("ERMIA-SSN, 10000 reads", SSN, 10_000),
        ("ERMIA-SI, 10000 reads", SI, 10_000),
    ]
    .map(series)
    .to_vec()
}

fn figure_2(sizes: &Sizes) -> Vec<Series> {
    let workers = sizes.all_workers;
    let alone = |(name, system)| Series::bar(name, Paper::Unknown, tpcc(sizes, system, workers));
    let beside =
        |(name, system)| Series::bar(name, Paper::Unknown, hybrid(sizes, system, FIGURE_2_PERCENT, workers));
    let tpcc = [("Silo, TPC-C", SILO), ("ERMIA-SSN, TPC-C", SSN), ("ERMIA-SI, TPC-C", SI)].map(alone);
    let hybrid = [("Silo, with Q2*", SILO), ("ERMIA-SSN, with Q2*", SSN), ("ERMIA-SI, with Q2*", SI)];
    [tpcc, hybrid.map(beside)].concat()
}

fn figure_5(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system, paper)| {
        let points = sizes.supplier_percents.iter().map(|&percent| Point {
            x: f64::from(percent),
            command: hybrid(sizes, system, percent, sizes.all_workers),
        });
        Series { name, paper, points: points.collect() }
    };
    [
        ("ERMIA-SI", SI, Paper::Points(TABLE_1_TPCC_HYBRID)),
        ("ERMIA-SSN", SSN, Paper::Unknown),
        ("Silo", SILO, Paper::Unknown),
    ]
    .map(series)
    .to_vec()
}

fn figure_6(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system, paper)| {
        let points = sizes.supplier_percents.iter().map(|&percent| Point {
            x: f64::from(percent),
            command: tpce(sizes, system, sizes.all_workers).asset_eval(percent),
        });
        Series { name, paper, points: points.collect() }
    };
    [
        ("ERMIA-SI", SI, Paper::Points(TABLE_1_TPCE_HYBRID)),
        ("ERMIA-SSN", SSN, Paper::Unknown),
        ("Silo", SILO, Paper::Unknown),
    ]
    .map(series)
    .to_vec()
}

fn figure_7(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system)| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers, |workers| tpcc(sizes, system, workers))
    };
    [("Silo", SILO), ("ERMIA-SSN", SSN), ("ERMIA-SI", SI)].map(series).to_vec()
}

fn figure_7_tpce(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system)| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers, |workers| tpce(sizes, system, workers))
    };
    [("Silo", SILO), ("ERMIA-SSN", SSN), ("ERMIA-SI", SI)].map(series).to_vec()
}

fn figure_8(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system, choice)| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers, |workers| {
            tpcc(sizes, system, workers).option("--warehouse-choice", choice)
        })
    };
    [
        ("Silo, uniform", SILO, "uniform"),
        ("ERMIA-SSN, uniform", SSN, "uniform"),
        ("ERMIA-SI, uniform", SI, "uniform"),
        ("Silo, 80-20", SILO, "80-20"),
        ("ERMIA-SSN, 80-20", SSN, "80-20"),
        ("ERMIA-SI, 80-20", SI, "80-20"),
    ]
    .map(series)
    .to_vec()
}

fn figure_9(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system, percent)| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers, |workers| {
            tpce(sizes, system, workers).asset_eval(percent)
        })
    };
    [
        ("Silo, 10 %", SILO, 10),
        ("ERMIA-SSN, 10 %", SSN, 10),
        ("ERMIA-SI, 10 %", SI, 10),
        ("Silo, 60 %", SILO, 60),
        ("ERMIA-SSN, 60 %", SSN, 60),
        ("ERMIA-SI, 60 %", SI, 60),
    ]
    .map(series)
    .to_vec()
}

fn figure_10(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, logging)| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers, |workers| {
            tpcc(sizes, SI, workers).storage(Storage::LogInTmpfs).option("--logging", logging)
        })
    };
    [("Per-transaction", "per-transaction"), ("Per-operation", "per-operation")].map(series).to_vec()
}

fn figure_12(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system, percent)| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers, |workers| {
            hybrid(sizes, system, percent, workers)
        })
    };
    [
        ("Silo, 60 %", SILO, 60),
        ("ERMIA-SSN, 60 %", SSN, 60),
        ("ERMIA-SI, 60 %", SI, 60),
        ("Silo, 80 %", SILO, 80),
        ("ERMIA-SSN, 80 %", SSN, 80),
        ("ERMIA-SI, 80 %", SI, 80),
    ]
    .map(series)
    .to_vec()
}
