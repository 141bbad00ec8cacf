//! The series of the experiments of Silo (*Speedy Transactions in Multicore In-Memory Databases*, SOSP 2013, §5).

use super::description::{Point, Series};
use super::paper::Paper;
use crate::command::{BenchCommand, Storage};
use crate::sizes::Sizes;

type SeriesOf = fn(&Sizes) -> Vec<Series>;

pub(super) const SERIES: [(&str, SeriesOf); 8] = [
    ("silo-4", figure_4),
    ("silo-5-6-7", figures_5_to_7),
    ("silo-8", figure_8),
    ("silo-9", figure_9),
    ("silo-10", figure_10),
    ("silo-space", section_5_6),
    ("silo-11-regular", figure_11_regular),
    ("silo-11-persistence", figure_11_persistence),
];

const ALL_NEW_ORDER: &str = "100/0/0/0/0";

/// The standard mix of TPC-C, a warehouse for each worker.
fn tpcc(sizes: &Sizes, workers: usize) -> BenchCommand {
    BenchCommand::tpcc(workers, sizes.warmup, sizes.seconds)
}

/// A series over numbers of workers, of which the figure has a curve.
fn curve(
    figure: &'static str,
    name: &'static str,
    sizes: &Sizes,
    command: impl Fn(usize) -> BenchCommand,
) -> Series {
    Series::over_workers(name, Paper::Curve { figure, series: name }, &sizes.workers, command)
}

fn figure_4(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system)| {
        curve("fig4", name, sizes, |workers| {
            BenchCommand::ycsb(sizes.records, "silo", workers, sizes.warmup, sizes.seconds).system(system)
        })
    };
    [("MemSilo", "ensilo"), ("Key-Value", "key-value"), ("MemSilo+GlobalTID", "global-tid")]
        .map(series)
        .to_vec()
}

fn figures_5_to_7(sizes: &Sizes) -> Vec<Series> {
    let series =
        |(name, storage)| curve("fig5-7", name, sizes, |workers| tpcc(sizes, workers).storage(storage));
    [("MemSilo", Storage::Memory), ("Silo+tmpfs", Storage::LogInTmpfs), ("Silo", Storage::Log)]
        .map(series)
        .to_vec()
}

/// The part of the new-orders that touch another warehouse, in percent, if each item does with `percent`: they have 5 to 15 items.
fn cross_partition_percent(percent: u32) -> f64 {
    let stays = |items: i32| (1.0 - f64::from(percent) / 100.0).powi(items);
    let exact = 100.0 * (5..=15).map(|items| 1.0 - stays(items)).sum::<f64>() / 11.0;
    (10.0 * exact).round() / 10.0
}

fn figure_8(sizes: &Sizes) -> Vec<Series> {
    let workers = sizes.all_workers;
    let series = |(name, curve, system)| {
        let points = sizes.remote_item_percents.iter().map(|&percent| Point {
            x: cross_partition_percent(percent),
            command: tpcc(sizes, workers)
                .warehouses(workers, ALL_NEW_ORDER)
                .system(system)
                .option("--remote-item-percent", percent),
        });
        Series { name, paper: Paper::Curve { figure: "fig8", series: curve }, points: points.collect() }
    };
    [
        ("MemSilo", "MemSilo", "ensilo"),
        ("MemSilo+NoSS", "MemSilo+NoSS", "no-snapshots"),
        ("MemSilo+Split", "MemSilo+NoSS+Split", "split"),
        ("Partitioned-Store", "Partitioned-Store", "partitioned-store"),
    ]
    .map(series)
    .to_vec()
}

fn figure_9(sizes: &Sizes) -> Vec<Series> {
    const WAREHOUSES: usize = 4;
    let new_orders = |workers| tpcc(sizes, workers).warehouses(WAREHOUSES, ALL_NEW_ORDER);
    let partitioned = |workers| new_orders(workers).system("partitioned-store").option("--partitions", 1);
    vec![
        curve("fig9", "MemSilo", sizes, new_orders),
        curve("fig9", "MemSilo+FastIds", sizes, |workers| new_orders(workers).system("fast-ids")),
        curve("fig9", "Partitioned-Store", sizes, partitioned),
    ]
}

fn figure_10(sizes: &Sizes) -> Vec<Series> {
    let workers = sizes.all_workers.min(16);
    let command = tpcc(sizes, workers).warehouses((workers / 2).max(1), "new-order=50,stock-level=50");
    let paper = |series| Paper::PointOf { figure: "fig10", series, x: 16.0 };
    let without = command.clone().system("no-snapshots");
    vec![
        Series::bar("MemSilo", paper("MemSilo"), command),
        Series::bar("MemSilo+NoSS", paper("MemSilo+NoSS"), without),
    ]
}

fn section_5_6(sizes: &Sizes) -> Vec<Series> {
    let seconds = sizes.seconds.max(4.0);
    let command = BenchCommand::ycsb(sizes.records_for_space, "rmw=100", sizes.all_workers, 0.0, seconds);
    vec![
        Series::bar("MemSilo", Paper::Unknown, command.clone()),
        Series::bar("MemSilo+NoSS", Paper::Unknown, command.system("no-snapshots")),
    ]
}

fn figure_11_regular(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, system)| {
        let paper = Paper::PointOf { figure: "fig11-regular", series: name, x: 28.0 };
        Series::bar(name, paper, tpcc(sizes, sizes.all_workers).system(system))
    };
    [
        ("Simple", "simple"),
        ("+Allocator", "allocator"),
        ("+Overwrites", "overwrites"),
        ("+NoSnapshots", "no-snapshots"),
        ("+NoGC", "no-gc"),
    ]
    .map(series)
    .to_vec()
}

fn figure_11_persistence(sizes: &Sizes) -> Vec<Series> {
    let command = || tpcc(sizes, sizes.all_workers);
    let logged = || command().storage(Storage::Log);
    let full = || logged().option("--log-records", "full");
    let at_28 = |figure, series| Paper::PointOf { figure, series, x: 28.0 };
    let of_figure = |series| at_28("fig11-persistence", series);
    vec![
        Series::bar("MemSilo", at_28("fig5-7", "MemSilo"), command()),
        Series::bar("+SmallRecs", of_figure("+SmallRecs"), logged().option("--log-records", "small")),
        Series::bar("+FullRecs", at_28("fig5-7", "Silo"), full()),
        Series::bar("+Compress", of_figure("+Compress"), full().option("--log-compression", "lz4")),
        Series::bar("Ensilo", Paper::Unknown, logged()),
    ]
}
