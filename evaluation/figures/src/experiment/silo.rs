//! The experiments of Silo (*Speedy Transactions in Multicore In-Memory Databases*, SOSP 2013, §5).

use super::Relation::{AtLeast, AtMost, Between};
use super::{At, Axis, Claim, Experiment, Metric, Paper, Plot, Point, Quantity, Series};
use crate::command::{BenchCommand, Storage};
use crate::sizes::Sizes;

pub(super) fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    vec![
        figure_4(sizes),
        figures_5_to_7(sizes),
        figure_8(sizes),
        figure_9(sizes),
        figure_10(sizes),
        section_5_6(sizes),
        figure_11_regular(sizes),
        figure_11_persistence(sizes),
    ]
}

const ALL_NEW_ORDER: &str = "100/0/0/0/0";

fn figure_4(sizes: &Sizes) -> Experiment {
    let series = |name, system| {
        let paper = Paper::Curve { figure: "fig4", series: name };
        Series::over_workers(name, paper, &sizes.workers, |workers| {
            BenchCommand::ycsb(sizes.records, "silo", workers, sizes.warmup, sizes.seconds).system(system)
        })
    };
    Experiment {
        name: "silo-4",
        source: "Silo §5.2, figure 4",
        title: "What transactions cost over the bare index, and what a shared counter costs them",
        about: "YCSB with 80 % reads and 20 % read-modify-writes of records of 100 bytes, keys chosen uniformly, in memory. The paper's tree \
                holds 160 million keys; here as many as the scale and a third of the memory allow (see the commands). Key-Value is the index with \
                single gets and puts; MemSilo is Ensilo without a log; MemSilo+GlobalTID takes its TIDs from one shared counter.",
        axis: Axis::Workers,
        series: vec![
            series("MemSilo", "ensilo"),
            series("Key-Value", "key-value"),
            series("MemSilo+GlobalTID", "global-tid"),
        ],
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper(
                "For each worker, relative to MemSilo with one worker",
                Metric::ThroughputPerWorker,
            ),
        ],
        claims: vec![
            Claim::times(
                "Key-Value outperforms MemSilo by at most 1.07x",
                Quantity::largest("Key-Value", "MemSilo"),
                1.07,
                AtMost(1.07),
            ),
            Claim::times(
                "MemSilo+GlobalTID collapses with many workers: Key-Value outperforms it by 1.80x with 32",
                Quantity::ratio("Key-Value", "MemSilo+GlobalTID", At::Last),
                1.80,
                AtLeast(1.80),
            )
            .needs_cores(28),
        ],
    }
}

fn figures_5_to_7(sizes: &Sizes) -> Experiment {
    let series = |name, storage| {
        let paper = Paper::Curve { figure: "fig5-7", series: name };
        Series::over_workers(name, paper, &sizes.workers, |workers| {
            BenchCommand::tpcc(workers, sizes.warmup, sizes.seconds).storage(storage)
        })
    };
    Experiment {
        name: "silo-5-6-7",
        source: "Silo §5.3, figures 5, 6 and 7",
        title: "How TPC-C scales with workers, in memory and durable",
        about: "The standard mix of TPC-C, a warehouse for each worker. MemSilo has no log; Silo logs and makes no checkpoints; Silo+tmpfs logs to \
                a file system in memory. The paper's loggers wrote to four devices beside 32 processors; here the log shares disk and processors \
                with everything else. Ensilo moves its epochs on as fast as the disk follows, the paper's every 40 ms, which is why the \
                paper's latencies are longer (84 ms with one worker). Latencies here are medians; the paper does not say what its are.",
        axis: Axis::Workers,
        series: vec![
            series("MemSilo", Storage::Memory),
            series("Silo+tmpfs", Storage::LogInTmpfs),
            series("Silo", Storage::Log),
        ],
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput (figure 5)", Metric::Throughput),
            Plot::here("Throughput for each worker (figure 6)", Metric::ThroughputPerWorker),
            Plot::beside_paper(
                "For each worker, relative to MemSilo with one worker",
                Metric::ThroughputPerWorker,
            ),
            Plot::here("Median latency until stored (figure 7)", Metric::StoredLatencyMs),
            Plot::beside_paper(
                "Latency until stored (figure 7), relative to Silo+tmpfs with one worker",
                Metric::StoredLatencyMs,
            ),
        ],
        claims: claims_of_figures_5_to_7(),
    }
}

fn claims_of_figures_5_to_7() -> Vec<Claim> {
    vec![
        Claim::times(
            "MemSilo's throughput for each worker with 32 workers is 81 % of that with one",
            Quantity::LastToFirst { metric: Metric::ThroughputPerWorker, of: "MemSilo" },
            0.81,
            AtLeast(0.81),
        )
        .needs_cores(16),
        Claim::times(
            "MemSilo's throughput for each worker with 32 workers is 98 % of that with 8",
            Quantity::Change {
                metric: Metric::ThroughputPerWorker,
                of: "MemSilo",
                from: At::Nearest(8),
                to: At::Last,
            },
            0.975,
            AtLeast(0.975),
        )
        .needs_cores(16),
        Claim::times(
            "MemSilo outperforms Silo by at most 1.16x",
            Quantity::largest("MemSilo", "Silo"),
            1.16,
            AtMost(1.16),
        ),
        Claim::times(
            "Logging to memory instead of disk (Silo+tmpfs) gains at most 1.03x",
            Quantity::largest("Silo+tmpfs", "Silo"),
            1.03,
            AtMost(1.03),
        ),
        Claim::times(
            "Half of the transactions are stored within 84 ms with one worker",
            Quantity::Value { metric: Metric::StoredLatencyMs, of: "Silo", at: At::First },
            84.1,
            AtMost(84.1),
        )
        .unit(" ms"),
        Claim::times(
            "Latency has a spike where workers take the processors that loggers need: Silo's with 32 workers is 9.35x of that with 28 (taken \
             here as: 2x of that with the number of workers before)",
            Quantity::Change {
                metric: Metric::StoredLatencyMs,
                of: "Silo",
                from: At::BeforeLast,
                to: At::Last,
            },
            9.35,
            AtLeast(2.0),
        )
        .needs_cores(16),
    ]
}

/// The part of the new-orders that touch another warehouse, in percent, if each item does with `percent`: they have 5 to 15 items.
fn cross_partition_percent(percent: u32) -> f64 {
    let stays = |items: i32| (1.0 - f64::from(percent) / 100.0).powi(items);
    let exact = 100.0 * (5..=15).map(|items| 1.0 - stays(items)).sum::<f64>() / 11.0;
    (10.0 * exact).round() / 10.0
}

fn figure_8(sizes: &Sizes) -> Experiment {
    let workers = sizes.all_workers;
    let series = |name, curve, system| {
        let points = sizes.remote_item_percents.iter().map(|&percent| Point {
            x: cross_partition_percent(percent),
            command: BenchCommand::tpcc(workers, sizes.warmup, sizes.seconds)
                .warehouses(workers, ALL_NEW_ORDER)
                .system(system)
                .option("--remote-item-percent", percent),
        });
        Series { name, paper: Paper::Curve { figure: "fig8", series: curve }, points: points.collect() }
    };
    Experiment {
        name: "silo-8",
        source: "Silo §5.4, figure 8",
        title: "Partitioned-Store beside MemSilo as more transactions cross partitions",
        about: "New-orders alone, in memory, a warehouse for each worker, and as many workers as processors unless --workers says otherwise (28 in \
                the paper). The probability that an item comes \
                from another warehouse grows; the axis shows how many transactions touch another warehouse at all. MemSilo+Split keeps snapshots here; the paper's curve for \
                it is without them.",
        axis: Axis::Number("% cross-partition transactions"),
        series: vec![
            series("MemSilo", "MemSilo", "ensilo"),
            series("MemSilo+NoSS", "MemSilo+NoSS", "no-snapshots"),
            series("MemSilo+Split", "MemSilo+NoSS+Split", "split"),
            series("Partitioned-Store", "Partitioned-Store", "partitioned-store"),
        ],
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper(
                "Relative to MemSilo without cross-partition transactions",
                Metric::Throughput,
            ),
        ],
        claims: vec![
            Claim::times(
                "Partitioned-Store outperforms MemSilo as long as nothing crosses partitions",
                Quantity::ratio("Partitioned-Store", "MemSilo", At::First),
                1.54,
                AtLeast(1.0),
            ),
            Claim::times(
                "Partitioned-Store drops below MemSilo at roughly 20 % cross-partition transactions (the points of its figure: at 21.9 %; \
                 taken here as: 15 to 25 %)",
                Quantity::Crossing { metric: Metric::Throughput, of: "Partitioned-Store", to: "MemSilo" },
                21.9,
                Between(15.0, 25.0),
            )
            .unit(" %"),
            Claim::times(
                "MemSilo outperforms Partitioned-Store at roughly 60 % cross-partition transactions",
                Quantity::ratio("MemSilo", "Partitioned-Store", At::Last),
                2.98,
                AtLeast(1.0),
            )
            .needs_cores(2),
            Claim::times(
                "MemSilo keeps a relatively steady throughput: 95 % of it at 63 % cross-partition transactions",
                Quantity::LastToFirst { metric: Metric::Throughput, of: "MemSilo" },
                0.947,
                AtLeast(0.947),
            ),
            Claim::times(
                "Splitting the tables by warehouse yields 13 % over MemSilo",
                Quantity::ratio("MemSilo+Split", "MemSilo", At::First),
                1.13,
                AtLeast(1.13),
            ),
        ],
    }
}

fn figure_9(sizes: &Sizes) -> Experiment {
    const WAREHOUSES: usize = 4;
    let new_orders = |workers| {
        BenchCommand::tpcc(workers, sizes.warmup, sizes.seconds).warehouses(WAREHOUSES, ALL_NEW_ORDER)
    };
    let series = |name, command: &dyn Fn(usize) -> BenchCommand| {
        let paper = Paper::Curve { figure: "fig9", series: name };
        Series::over_workers(name, paper, &sizes.workers, command)
    };
    let partitioned = |workers| new_orders(workers).system("partitioned-store").option("--partitions", 1);
    Experiment {
        name: "silo-9",
        source: "Silo §5.4, figure 9",
        title: "Skew: more workers on four warehouses",
        about: "New-orders alone, in memory, on four warehouses whatever the number of workers. Partitioned-Store \
                keeps all four in a single partition; of its curve in the paper only the first point is known, and it stays constant. MemSilo+FastIds takes order ids from a \
                counter outside of the transaction.",
        axis: Axis::Workers,
        series: vec![
            series("MemSilo", &new_orders),
            series("MemSilo+FastIds", &|workers| new_orders(workers).system("fast-ids")),
            series("Partitioned-Store", &partitioned),
        ],
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper("For each worker, relative to MemSilo with one worker", Metric::ThroughputPerWorker),
            Plot::here("Aborts", Metric::AbortsPerSecond),
        ],
        claims: vec![
            Claim::times(
                "MemSilo outperforms Partitioned-Store by a maximum of 8.20x, with 24 workers",
                Quantity::largest("MemSilo", "Partitioned-Store"),
                8.20,
                AtLeast(8.20),
            )
            .needs_cores(24),
            Claim::times(
                "MemSilo+FastIds outperforms Partitioned-Store by a maximum of 17.21x, with 32 workers",
                Quantity::largest("MemSilo+FastIds", "Partitioned-Store"),
                17.21,
                AtLeast(17.21),
            )
            .needs_cores(32),
            Claim::times(
                "Without the contention for order ids throughput scales on: MemSilo+FastIds makes 2.48x as much as MemSilo with 32 workers",
                Quantity::ratio("MemSilo+FastIds", "MemSilo", At::Last),
                2.48,
                AtLeast(2.48),
            )
            .needs_cores(32),
        ],
    }
}

fn figure_10(sizes: &Sizes) -> Experiment {
    let workers = sizes.all_workers.min(16);
    let command = BenchCommand::tpcc(workers, sizes.warmup, sizes.seconds)
        .warehouses((workers / 2).max(1), "new-order=50,stock-level=50");
    let paper = |series| Paper::PointOf { figure: "fig10", series, x: 16.0 };
    let without = command.clone().system("no-snapshots");
    Experiment {
        name: "silo-10",
        source: "Silo §5.5, figure 10",
        title: "What snapshot transactions are good for",
        about: "Half new-orders, half stock-levels, in memory, two workers for each warehouse (16 on 8 in the paper; here up to 16, as \
                many as processors unless --workers says otherwise). MemSilo runs stock-levels on a snapshot about a second old, MemSilo+NoSS as ordinary transactions.",
        axis: Axis::Series,
        series: vec![
            Series::bar("MemSilo", paper("MemSilo"), command),
            Series::bar("MemSilo+NoSS", paper("MemSilo+NoSS"), without),
        ],
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper("Relative to MemSilo", Metric::Throughput),
            Plot::here("Aborts", Metric::AbortsPerSecond),
            Plot::beside_paper("Aborts relative to MemSilo", Metric::AbortsPerSecond),
        ],
        claims: vec![
            Claim::times(
                "MemSilo outperforms MemSilo+NoSS by 1.19x",
                Quantity::ratio("MemSilo", "MemSilo+NoSS", At::First),
                1.19,
                AtLeast(1.19),
            )
            .needs_cores(2),
            Claim::times(
                "MemSilo+NoSS has more aborts",
                Quantity::Ratio {
                    metric: Metric::AbortsPerSecond,
                    of: "MemSilo+NoSS",
                    to: "MemSilo",
                    at: At::First,
                },
                6.13,
                AtLeast(1.0),
            )
            .needs_cores(2),
        ],
    }
}

fn section_5_6(sizes: &Sizes) -> Experiment {
    let seconds = sizes.seconds.max(4.0);
    let command = BenchCommand::ycsb(sizes.records_for_space, "rmw=100", sizes.all_workers, 0.0, seconds);
    Experiment {
        name: "silo-space",
        source: "Silo §5.6",
        title: "How much memory snapshots take",
        about: "Read-modify-writes alone, keys chosen uniformly, in memory. Each changes a record whose old version has to be kept for a second or \
                two. The paper has 160 million records, of which some 6 % change in a second; here there are 16 million for each worker as far as a \
                third of the memory holds them. Compared are the bytes in use after the load and at the end; the paper has the most ever in use. \
                Runs are at least four seconds long, so that old versions are also freed.",
        axis: Axis::Series,
        series: vec![
            Series::bar("MemSilo", Paper::Unknown, command.clone()),
            Series::bar("MemSilo+NoSS", Paper::Unknown, command.system("no-snapshots")),
        ],
        runs: sizes.timeline_runs,
        plots: vec![Plot::here("Growth during the run", Metric::MemoryGrowthPercent)],
        claims: vec![
            Claim::times(
                "Old versions take 3.4 % more memory",
                Quantity::Value { metric: Metric::MemoryGrowthPercent, of: "MemSilo", at: At::First },
                3.4,
                AtMost(3.4),
            )
            .unit(" %"),
        ],
    }
}

fn figure_11_regular(sizes: &Sizes) -> Experiment {
    let command = || BenchCommand::tpcc(sizes.all_workers, sizes.warmup, sizes.seconds);
    let paper = |series| Paper::PointOf { figure: "fig11-regular", series, x: 28.0 };
    let bars = vec![
        Series::bar("Simple", paper("Simple"), command().system("simple")),
        Series::bar("+Allocator", paper("+Allocator"), command().system("allocator")),
        Series::bar("+Overwrites", paper("+Overwrites"), command().system("overwrites")),
        Series::bar("+NoSnapshots", paper("+NoSnapshots"), command().system("no-snapshots")),
        Series::bar("+NoGC", paper("+NoGC"), command().system("no-gc")),
    ];
    Experiment {
        name: "silo-11-regular",
        source: "Silo §5.7, figure 11, group Regular",
        title: "What each technique contributes, in memory",
        about: "The standard mix of TPC-C, a warehouse for each worker, and as many workers as processors unless --workers says \
                otherwise (28 in the paper). Changes are added from left to right: \
                Simple takes memory from a general allocator and makes a new record for each write; +Overwrites is Ensilo as it is.",
        axis: Axis::Series,
        series: bars,
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper("Relative to Simple", Metric::Throughput),
        ],
        claims: vec![
            Claim::times(
                "Overwriting records in place is an important optimisation",
                Quantity::ratio("+Overwrites", "+Allocator", At::First),
                1.34,
                AtLeast(1.1),
            ),
            Claim::times(
                "An allocator of its own helps",
                Quantity::ratio("+Allocator", "Simple", At::First),
                1.21,
                AtLeast(1.0),
            ),
            Claim::times(
                "Snapshots and garbage collection together cost little: without them throughput is at most 1.11x",
                Quantity::ratio("+NoGC", "+Overwrites", At::First),
                1.11,
                AtMost(1.11),
            ),
        ],
    }
}

fn figure_11_persistence(sizes: &Sizes) -> Experiment {
    let command = || BenchCommand::tpcc(sizes.all_workers, sizes.warmup, sizes.seconds);
    let logged = || command().storage(Storage::Log);
    let at_28 = |figure, series| Paper::PointOf { figure, series, x: 28.0 };
    let full = || logged().option("--log-records", "full");
    let bars = vec![
        Series::bar("MemSilo", at_28("fig5-7", "MemSilo"), command()),
        Series::bar(
            "+SmallRecs",
            at_28("fig11-persistence", "+SmallRecs"),
            logged().option("--log-records", "small"),
        ),
        Series::bar("+FullRecs", at_28("fig5-7", "Silo"), full()),
        Series::bar(
            "+Compress",
            at_28("fig11-persistence", "+Compress"),
            full().option("--log-compression", "lz4"),
        ),
        Series::bar("Ensilo", Paper::Unknown, logged()),
    ];
    Experiment {
        name: "silo-11-persistence",
        source: "Silo §5.7, figure 11, group Persistence",
        title: "What each part of logging costs",
        about: "The standard mix of TPC-C, a warehouse for each worker, and as many workers as processors unless --workers says \
                otherwise (28 in the paper). +SmallRecs logs eight bytes for each \
                transaction, +FullRecs whole rows, +Compress that by LZ4. Ensilo, beside the paper's ladder, is what Ensilo does by default: a row \
                whole once, and its changed words after that. No checkpoints are made.",
        axis: Axis::Series,
        series: bars,
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper("Relative to MemSilo", Metric::Throughput),
            Plot::here("Log", Metric::LogBytesPerTransaction),
            Plot::here("Median latency until stored", Metric::StoredLatencyMs),
        ],
        claims: vec![
            Claim::times(
                "Copying record modifications into log buffers and storing them costs little: +FullRecs keeps 92 % of +SmallRecs",
                Quantity::ratio("+FullRecs", "+SmallRecs", At::First),
                0.925,
                AtLeast(0.925),
            ),
            Claim::times(
                "Compression does not pay off",
                Quantity::ratio("+Compress", "+FullRecs", At::First),
                0.943,
                AtMost(1.0),
            ),
        ],
    }
}
