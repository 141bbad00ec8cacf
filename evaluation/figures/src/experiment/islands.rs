//! The series of the experiments of the study of hardware islands (*Characterization of the Impact of Hardware Islands on OLTP*, VLDB Journal 2016,
//! §3 to §9).
//!
//! The engine is Silo's throughout, as in the paper's §9; its other sections measure Shore-MT. *Fine-grained* is an instance for each worker,
//! *shared-everything* one instance for all. Points on more instances than processors are marked, as those of more workers are: each instance has
//! a worker or more.

use super::description::{Point, Series};
use super::paper::Paper;
use crate::command::BenchCommand;
use crate::sizes::Sizes;

type SeriesOf = fn(&Sizes) -> Vec<Series>;

pub(super) const SERIES: [(&str, SeriesOf); 19] = [
    ("islands-2", figure_2),
    ("islands-5", figure_5),
    ("islands-6", figure_6),
    ("islands-7", figure_7),
    ("islands-8", figure_8),
    ("islands-10", figure_10),
    ("islands-11", figure_11),
    ("islands-13", figure_13),
    ("islands-14", figure_14),
    ("islands-17", figure_17),
    ("islands-18", figure_18),
    ("islands-19", figure_19),
    ("islands-20", figure_20),
    ("islands-21", figure_21),
    ("islands-22", figure_22),
    ("islands-23", figure_23),
    ("islands-24", figure_24),
    ("islands-28", figure_28),
    ("islands-epochs", epochs),
];

/// Of the transactions, how many are multisite where that is fixed: as in §7.
const MULTISITE_PERCENT: u32 = 20;

/// Rows of each transaction where that is fixed: as in §6.
const ROWS_PER_TRANSACTION: u32 = 10;

/// How the data are divided.
#[derive(Copy, Clone)]
enum Division {
    Fine,
    /// Two instances, each with half of the workers.
    Halves,
    Everything,
}

/// What a transaction of the microbenchmark does with its rows.
#[derive(Copy, Clone)]
enum Access {
    Read,
    Update,
}

impl Division {
    fn command(self, sizes: &Sizes, workload: &'static str) -> BenchCommand {
        // On one processor there are two instances all the same, as a point beyond it.
        self.command_with(sizes, workload, sizes.all_workers.max(2))
    }

    fn command_with(self, sizes: &Sizes, workload: &'static str, workers: usize) -> BenchCommand {
        let islands = match self {
            Division::Fine => workers,
            Division::Halves => 2,
            Division::Everything => 1,
        };
        BenchCommand::islands(workload, islands, workers, (sizes.warmup, sizes.seconds))
    }
}

fn micro(sizes: &Sizes, division: Division, access: Access, rows: u32, multisite: u32) -> BenchCommand {
    micro_by(division.command(sizes, "micro"), access, rows, multisite)
}

/// The microbenchmark on these instances.
fn micro_by(instances: BenchCommand, access: Access, rows: u32, multisite: u32) -> BenchCommand {
    let command = instances.option("--rows-per-transaction", rows);
    let command = match access {
        Access::Read => command,
        Access::Update => command.flag("--update"),
    };
    command.option("--multisite", multisite)
}

fn over(name: &'static str, xs: &[f64], command: impl Fn(f64) -> BenchCommand) -> Series {
    let points = xs.iter().map(|&x| Point { x, command: command(x) });
    Series { name, paper: Paper::Unknown, points: points.collect() }
}

fn percents(sizes: &Sizes) -> Vec<f64> {
    sizes.multisite_percents.iter().map(|&percent| f64::from(percent)).collect()
}

fn figure_2(sizes: &Sizes) -> Vec<Series> {
    let bar = |(name, kind, placement)| {
        let command = BenchCommand::channel(kind, sizes.seconds).option("--placement", placement);
        Series::bar(name, Paper::Unknown, command)
    };
    [
        ("Memory, near", "memory", "group"),
        ("Unix, near", "unix", "group"),
        ("Pipe, near", "pipe", "group"),
        ("TCP, near", "tcp", "group"),
        ("Memory, apart", "memory", "spread"),
        ("Unix, apart", "unix", "spread"),
        ("Pipe, apart", "pipe", "spread"),
        ("TCP, apart", "tcp", "spread"),
    ]
    .map(bar)
    .to_vec()
}

/// Counters of which there are so many, with threads that are placed so.
fn counters(sizes: &Sizes, name: &'static str, counters: &'static str, placement: &str) -> Series {
    let command = BenchCommand::counters(counters, sizes.all_workers, (sizes.warmup, sizes.seconds));
    Series::bar(name, Paper::Unknown, command.option("--placement", placement))
}

fn figure_5(sizes: &Sizes) -> Vec<Series> {
    [("Spread", "spread"), ("Grouped", "group"), ("OS", "system")]
        .map(|(name, placement)| counters(sizes, name, "socket", placement))
        .to_vec()
}

fn figure_6(sizes: &Sizes) -> Vec<Series> {
    let bar = |(name, placement)| {
        let command = Division::Everything.command(sizes, "tpcc-islands").option("--mix", "payment=100");
        Series::bar(name, Paper::Unknown, command.option("--placement", placement))
    };
    [("Spread", "spread"), ("Group", "group"), ("Mix", "mix"), ("OS", "system")].map(bar).to_vec()
}

fn figure_7(sizes: &Sizes) -> Vec<Series> {
    [("Counter per core", "core"), ("Counter per socket", "socket"), ("Single counter", "one")]
        .map(|(name, number)| counters(sizes, name, number, "group"))
        .to_vec()
}

fn figure_8(sizes: &Sizes) -> Vec<Series> {
    let bar = |(name, division): (_, Division)| {
        let command = division.command(sizes, "tpcc-islands").option("--mix", "payment=100");
        Series::bar(name, Paper::Unknown, command.option("--multisite", 0))
    };
    [("Shared-everything", Division::Everything), ("Fine-grained", Division::Fine)].map(bar).to_vec()
}

fn figure_10(sizes: &Sizes) -> Vec<Series> {
    // Two instances are islands only where each has two workers or more.
    let workers = sizes.all_workers.max(4).next_multiple_of(2);
    [
        ("Shared-everything", Division::Everything),
        ("Islands", Division::Halves),
        ("Fine-grained", Division::Fine),
    ]
    .map(|(name, division)| {
        over(name, &percents(sizes), |percent| {
            let instances = division.command_with(sizes, "micro", workers);
            micro_by(instances, Access::Update, ROWS_PER_TRANSACTION, percent as u32)
        })
    })
    .to_vec()
}

/// Both divisions over these points.
fn both(xs: &[f64], command: impl Fn(Division, f64) -> BenchCommand) -> Vec<Series> {
    [("Shared-everything", Division::Everything), ("Fine-grained", Division::Fine)]
        .map(|(name, division)| over(name, xs, |x| command(division, x)))
        .to_vec()
}

/// Both divisions with reads and with updates, over these points.
fn reads_and_updates(xs: &[f64], command: impl Fn(Division, Access, f64) -> BenchCommand) -> Vec<Series> {
    [
        ("Shared-everything, reads", Division::Everything, Access::Read),
        ("Fine-grained, reads", Division::Fine, Access::Read),
        ("Shared-everything, updates", Division::Everything, Access::Update),
        ("Fine-grained, updates", Division::Fine, Access::Update),
    ]
    .map(|(name, division, access)| over(name, xs, |x| command(division, access, x)))
    .to_vec()
}

/// Reads and updates of ten rows, through this channel.
fn multisite(sizes: &Sizes, channel: &str) -> Vec<Series> {
    reads_and_updates(&percents(sizes), |division, access, percent| {
        micro(sizes, division, access, ROWS_PER_TRANSACTION, percent as u32).option("--channel", channel)
    })
}

fn figure_11(sizes: &Sizes) -> Vec<Series> {
    multisite(sizes, "unix")
}

fn figure_13(sizes: &Sizes) -> Vec<Series> {
    [
        ("Reads, Unix sockets", Access::Read, "unix"),
        ("Reads, shared memory", Access::Read, "memory"),
        ("Updates, Unix sockets", Access::Update, "unix"),
        ("Updates, shared memory", Access::Update, "memory"),
    ]
    .map(|(name, access, channel)| {
        over(name, &percents(sizes), |percent| {
            let command = micro(sizes, Division::Fine, access, ROWS_PER_TRANSACTION, percent as u32);
            command.option("--channel", channel).flag("--times")
        })
    })
    .to_vec()
}

fn figure_14(sizes: &Sizes) -> Vec<Series> {
    multisite(sizes, "memory")
}

/// Transactions of more and more rows.
fn costs(sizes: &Sizes, access: Access) -> Vec<Series> {
    let rows: Vec<f64> = sizes.rows_per_transaction.iter().map(|&rows| f64::from(rows)).collect();
    let series = |(name, division, percent)| {
        over(name, &rows, |rows| micro(sizes, division, access, rows as u32, percent))
    };
    [
        ("Shared-everything, local", Division::Everything, 0),
        ("Fine-grained, local", Division::Fine, 0),
        ("Shared-everything, multisite", Division::Everything, 100),
        ("Fine-grained, multisite", Division::Fine, 100),
    ]
    .map(series)
    .to_vec()
}

fn figure_17(sizes: &Sizes) -> Vec<Series> {
    costs(sizes, Access::Read)
}

fn figure_18(sizes: &Sizes) -> Vec<Series> {
    costs(sizes, Access::Update)
}

fn figure_19(sizes: &Sizes) -> Vec<Series> {
    let workers: Vec<f64> = sizes.workers.iter().map(|&workers| workers as f64).collect();
    reads_and_updates(&workers, |division, access, workers| {
        let instances = division.command_with(sizes, "micro", workers as usize);
        micro_by(instances, access, ROWS_PER_TRANSACTION, MULTISITE_PERCENT)
    })
}

fn figure_20(sizes: &Sizes) -> Vec<Series> {
    reads_and_updates(&sizes.skews, |division, access, skew| {
        micro(sizes, division, access, 2, MULTISITE_PERCENT).option("--skew", skew)
    })
}

fn figure_21(sizes: &Sizes) -> Vec<Series> {
    let rows: Vec<f64> = sizes.micro_rows.iter().map(|&rows| rows as f64).collect();
    both(&rows, |division, rows| {
        micro(sizes, division, Access::Read, ROWS_PER_TRANSACTION, MULTISITE_PERCENT).option("--rows", rows)
    })
}

fn figure_22(sizes: &Sizes) -> Vec<Series> {
    let bar = |(name, division, workload, mix, multisite): (_, Division, _, Option<&str>, Option<u32>)| {
        let mut command = division.command(sizes, workload);
        if let Some(mix) = mix {
            command = command.option("--mix", mix);
        }
        if let Some(percent) = multisite {
            command = command.option("--multisite", percent);
        }
        Series::bar(name, Paper::Unknown, command)
    };
    let (payment, order, tpcc) = (Some("payment=100"), Some("new_order=100"), "tpcc-islands");
    [
        ("TPC-B, local, shared-everything", Division::Everything, "tpcb-islands", None, Some(0)),
        ("TPC-B, local, fine-grained", Division::Fine, "tpcb-islands", None, Some(0)),
        ("TPC-B, standard, shared-everything", Division::Everything, "tpcb-islands", None, None),
        ("TPC-B, standard, fine-grained", Division::Fine, "tpcb-islands", None, None),
        ("Payment, local, shared-everything", Division::Everything, tpcc, payment, Some(0)),
        ("Payment, local, fine-grained", Division::Fine, tpcc, payment, Some(0)),
        ("Payment, standard, shared-everything", Division::Everything, tpcc, payment, None),
        ("Payment, standard, fine-grained", Division::Fine, tpcc, payment, None),
        ("NewOrder, local, shared-everything", Division::Everything, tpcc, order, Some(0)),
        ("NewOrder, local, fine-grained", Division::Fine, tpcc, order, Some(0)),
        ("NewOrder, standard, shared-everything", Division::Everything, tpcc, order, None),
        ("NewOrder, standard, fine-grained", Division::Fine, tpcc, order, None),
    ]
    .map(bar)
    .to_vec()
}

fn figure_23(sizes: &Sizes) -> Vec<Series> {
    both(&percents(sizes), |division, percent| {
        division.command(sizes, "tpcb-islands").option("--multisite", percent)
    })
}

fn figure_24(sizes: &Sizes) -> Vec<Series> {
    both(&percents(sizes), |division, percent| {
        let command = division.command(sizes, "tpcc-islands").option("--mix", "payment=100");
        command.option("--multisite", percent)
    })
}

fn figure_28(sizes: &Sizes) -> Vec<Series> {
    both(&percents(sizes), |division, percent| micro(sizes, division, Access::Update, 2, percent as u32))
}

/// Each worker has so many transactions under way where answers wait for the disk.
const WIDTH_OF_STORED: u32 = 1024;

fn epochs(sizes: &Sizes) -> Vec<Series> {
    let series = |(name, unit): (_, &str)| {
        over(name, &percents(sizes), |percent| {
            let command = micro(sizes, Division::Fine, Access::Update, 2, percent as u32).flag("--durable");
            command.option("--commit-unit", unit).option("--width", WIDTH_OF_STORED)
        })
    };
    [("Transactions", "transaction"), ("Epochs", "epoch")].map(series).into()
}
