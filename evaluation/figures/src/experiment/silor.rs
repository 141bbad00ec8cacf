//! The series of the experiments of SiloR (*Fast Databases with Fast Durability and Recovery Through Multicore Parallelism*, OSDI 2014, §6).
//!
//! Their points are known only as the averages that the text gives.

use super::description::{Point, Series};
use super::paper::Paper;
use crate::command::{BenchCommand, Storage};
use crate::sizes::Sizes;

type SeriesOf = fn(&Sizes) -> Vec<Series>;

pub(super) const SERIES: [(&str, SeriesOf); 6] = [
    ("silor-1", figure_1),
    ("silor-2-3", figures_2_and_3),
    ("silor-4", figure_4),
    ("silor-5", figure_5),
    ("silor-compression", compression),
    ("silor-recovery", section_6_4),
];

/// More mebibytes than a checkpoint has, or could be written in a second.
const MIB_UNLIMITED: u64 = 1 << 40;

/// SiloR's YCSB over time.
fn ycsb(sizes: &Sizes) -> BenchCommand {
    BenchCommand::ycsb(sizes.records, "silor", sizes.all_workers, sizes.warmup, sizes.timeline_seconds)
}

/// The three systems of a figure over time, each with the throughput that the paper has of it.
fn systems(command: &BenchCommand, [memsilo, logsilo, silor]: [f64; 3]) -> Vec<Series> {
    let series = |name, throughput, storage| {
        Series::bar(name, Paper::Throughput(throughput), command.clone().storage(storage))
    };
    vec![
        series("MemSilo", memsilo, Storage::Memory),
        series("LogSilo", logsilo, Storage::Log),
        series("SiloR", silor, Storage::LogAndCheckpoints),
    ]
}

fn figure_1(sizes: &Sizes) -> Vec<Series> {
    systems(&ycsb(sizes), [10.83e6, 9.01e6, 8.76e6])
}

fn figures_2_and_3(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, storage)| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers_around_cores, |workers| {
            BenchCommand::ycsb(sizes.records, "silor", workers, sizes.warmup, sizes.seconds).storage(storage)
        })
    };
    [("MemSilo", Storage::Memory), ("SiloR", Storage::LogAndCheckpoints)].map(series).to_vec()
}

fn figure_4(sizes: &Sizes) -> Vec<Series> {
    let command = || ycsb(sizes).storage(Storage::LogAndCheckpoints);
    let synced_once = || command().option("--checkpoint-sync-mib", MIB_UNLIMITED);
    let without_sleeps = |command: BenchCommand| command.option("--checkpoint-mib-per-second", MIB_UNLIMITED);
    vec![
        Series::bar("(a) one sync", Paper::Unknown, without_sleeps(synced_once())),
        Series::bar("(b) one sync, sleeps", Paper::Unknown, synced_once()),
        Series::bar("(c) regular syncs", Paper::Unknown, without_sleeps(command())),
        Series::bar("(b)+(c): Ensilo", Paper::Unknown, command()),
    ]
}

fn figure_5(sizes: &Sizes) -> Vec<Series> {
    let command = BenchCommand::tpcc(sizes.all_workers, sizes.warmup, sizes.timeline_seconds);
    systems(&command, [592e3, 575e3, 548e3])
}

fn compression(sizes: &Sizes) -> Vec<Series> {
    let command = || {
        ycsb(sizes).storage(Storage::LogAndCheckpoints).option("--checkpoint-mib-per-second", MIB_UNLIMITED)
    };
    let by_lz4 = |name, option| Series::bar(name, Paper::Unknown, command().option(option, "lz4"));
    vec![
        Series::bar("SiloR", Paper::Unknown, command()),
        by_lz4("checkpoints by lz4", "--checkpoint-compression"),
        by_lz4("log by lz4", "--log-compression"),
    ]
}

fn section_6_4(sizes: &Sizes) -> Vec<Series> {
    let lengths = [1.0, 2.0, 4.0].map(|times| times * sizes.timeline_seconds / 4.0);
    let (workers, warmup) = (sizes.all_workers, sizes.warmup);
    let series = |name, command: &dyn Fn(f64) -> BenchCommand| {
        let points =
            lengths.map(|seconds| Point { x: seconds, command: command(seconds).storage(Storage::Crash) });
        Series { name, paper: Paper::Unknown, points: points.to_vec() }
    };
    vec![
        series("YCSB", &|seconds| BenchCommand::ycsb(sizes.records, "silor", workers, warmup, seconds)),
        series("TPC-C", &|seconds| BenchCommand::tpcc(workers, warmup, seconds)),
    ]
}
