//! `ensilo bench micro`, `tpcb-islands`, `tpcc-islands` and `ycsb-islands`: workloads on several instances.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use ensilo::Database;
use ensilo_bench::mix::Mix;
use ensilo_bench::tpcc::{Scale, parse_mix};
use ensilo_bench::ycsb::NamedMix;
use ensilo_bench::{TemporaryDirectory, remove_temporary_files, temporary_root};
use ensilo_islands::{
    ChannelKind, CommitUnit, Instances, LoadTime, Placement, Plan, Topology, end_instance_processes,
    run_if_instance,
};
use ensilo_islands_bench::{
    Micro, MicroOptions, Recorded, RunOptions, TimedMicro, TimedMicroOptions, Tpcb, TpcbOptions, TpccIslands,
    TpccIslandsOptions, Workload, YcsbIslands, YcsbIslandsOptions, run,
};

use super::ycsb::{DistributionArgument, theta};
use crate::interrupt;
use crate::output::{complain, failed, say};
use crate::seconds::{seconds_of_run, seconds_within};

/// How the report is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum IslandsFormat {
    /// Lines for people
    Text,
    /// One JSON object for programs, as docs/bench-report.md describes it
    Json,
}

/// The instances, and how long they are measured.
#[derive(Debug, Args)]
pub(super) struct IslandsArguments {
    /// How many instances: one for each core, cache (of the last level) or socket, one, or a number
    #[arg(long, value_name = "core|cache|socket|one|N", default_value = "core")]
    islands: Instances,

    /// Whether the cores of an instance are close to each other (group), on as many sockets as it goes (spread), in pairs on sockets
    /// (mix), or where the operating system puts them (system)
    #[arg(long, value_name = "group|spread|mix|system", default_value_t = Placement::Group)]
    placement: Placement,

    /// What carries messages between instances
    #[arg(long, value_name = "memory|unix|pipe|tcp", default_value_t = ChannelKind::Memory)]
    channel: ChannelKind,

    /// How many workers each instance has [default: one for each of its processors]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Instances are threads of one process, and have no process of their own each
    #[arg(long)]
    threads: bool,

    /// Every answer waits until it is stored, in files in a temporary directory
    #[arg(long)]
    durable: bool,

    /// What is stored at all instances at once: each transaction, or epochs of some milliseconds with all transactions in them
    #[arg(long, value_name = "transaction|epoch", default_value_t = CommitUnit::Transaction, requires = "durable")]
    commit_unit: CommitUnit,

    /// How many transactions each worker has under way at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=4096))]
    width: u16,

    /// How long is measured, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds_of_run)]
    seconds: f64,

    /// How long runs before that, in seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = |text: &str| seconds_within(text, 0.0..=3600.0))]
    warmup: f64,

    /// Mebibytes that all instances together take from the system before they are loaded, so that tables that grow do not wait for it
    /// during the run [default: what the run may need, at most a third of the free memory]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(0..=1 << 40))]
    prefault_mib: Option<u64>,

    /// How the report is written
    #[arg(long, value_enum, default_value_t = IslandsFormat::Text)]
    format: IslandsFormat,
}

const MICRO_EXAMPLES: &str = "\
Examples:
  ensilo bench micro --islands core --update --multisite 20
      An instance for each core; one in five transactions updates rows of several of them.
  ensilo bench micro --islands 1 --update --multisite 20
      The same on one instance, which all cores share: to compare with.
  ensilo bench micro --islands 2 --rows-per-transaction 2 --update --multisite 100 --channel tcp
      Every transaction takes its second row from anywhere, and messages go through TCP.
  ensilo bench micro --islands 2 --multisite 100 --channel unix --times
      How much of a transaction's time goes to its rows.

Exit codes: 0 all is well; 1 it failed, or the rows are not consistent; 2 bad parameters; 130 it was interrupted.";

const TPCB_EXAMPLES: &str = "\
Examples:
  ensilo bench tpcb-islands --islands core
      An instance and a branch for each core; 15 of a hundred transactions change a teller of another branch.
  ensilo bench tpcb-islands --islands 2 --branches 20 --durable --width 32
      Every answer waits until it is stored; each worker has 32 transactions under way.
  ensilo bench tpcb-islands --islands 2 --branches 20 --durable --commit-unit epoch --width 512
      The same, but all transactions of some milliseconds are stored as one.

Exit codes: 0 all is well; 1 it failed, or the rows are not consistent; 2 bad parameters; 130 it was interrupted.";

const TPCC_EXAMPLES: &str = "\
Examples:
  ensilo bench tpcc-islands --islands core
      An instance and a warehouse for each core, with the specification's shares of other warehouses.
  ensilo bench tpcc-islands --islands one --workers 2
      The same on one instance, which all cores share: to compare with.
  ensilo bench tpcc-islands --islands 2 --warehouses 8 --multisite 100 --width 8
      Every order and every payment has to do with two warehouses; each worker has 8 transactions under way.

Exit codes: 0 all is well; 1 it failed, or the rows are not consistent; 2 bad parameters; 130 it was interrupted.";

const YCSB_EXAMPLES: &str = "\
Examples:
  ensilo bench ycsb-islands --islands core --mix b --multisite 100
      YCSB's core workload B, an instance for each core; every operation goes to the instance that has its record.
  ensilo bench ycsb-islands --islands one --workers 2 --mix b
      The same on one instance, which all cores share: to compare with.
  ensilo bench ycsb-islands --islands 2 --mix rmw=100 --operations 10 --multisite 20 --durable --width 32
      Ten read-modify-writes in each transaction; one transaction in five takes them from anywhere.

Mixes by name: a b c d e f (YCSB's core workloads), silo, silor. Others: shares of read, update, rmw, insert and
scan that add up to 100. After each run every record is looked at: whether all that were loaded are at their instance,
whole, and whether their counters are what the read-modify-writes have made of them.

Exit codes: 0 all is well; 1 it failed, or the rows are not consistent; 2 bad parameters; 130 it was interrupted.";

#[derive(Debug, Args)]
#[command(after_help = MICRO_EXAMPLES)]
pub(super) struct MicroArguments {
    #[command(flatten)]
    islands: IslandsArguments,

    #[command(flatten)]
    workload: MicroWorkload,

    /// Time the parts of transactions: the report says how much of a transaction's time goes to its rows, and how much to the rest,
    /// commit protocol, messages and waiting
    #[arg(long)]
    times: bool,
}

/// The microbenchmark.
#[derive(Debug, Args)]
pub(crate) struct MicroWorkload {
    /// How many rows of 250 bytes there are at all instances together
    #[arg(long, value_name = "N", default_value_t = 240_000, value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    rows: u64,

    /// How many rows a transaction takes
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u64).range(1..=1000))]
    rows_per_transaction: u64,

    /// Transactions update their rows, and do not only read them
    #[arg(long)]
    update: bool,

    /// How many of a hundred transactions take all rows but one from anywhere
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = value_parser!(u8).range(0..=100))]
    multisite: u8,

    /// How skewed the choice of rows is, by Zipf's law: 0 for all alike, to 0.99
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = skew)]
    skew: f64,
}

fn skew(text: &str) -> Result<f64, String> {
    let skew: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    (0.0..=0.99).contains(&skew).then_some(skew).ok_or_else(|| "not from 0 to 0.99".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = TPCB_EXAMPLES)]
pub(super) struct TpcbIslandsArguments {
    #[command(flatten)]
    islands: IslandsArguments,

    #[command(flatten)]
    workload: TpcbWorkload,
}

/// TPC-B.
#[derive(Debug, Args)]
pub(crate) struct TpcbWorkload {
    /// How many branches there are at all instances together [default: one for each worker]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000))]
    branches: Option<u64>,

    /// How many accounts each branch has
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=10_000_000))]
    accounts: u64,

    /// How many of a hundred transactions change a teller of another branch
    #[arg(long, value_name = "PERCENT", default_value_t = 15, value_parser = value_parser!(u8).range(0..=100))]
    multisite: u8,
}

#[derive(Debug, Args)]
#[command(after_help = TPCC_EXAMPLES)]
pub(super) struct TpccIslandsArguments {
    #[command(flatten)]
    islands: IslandsArguments,

    #[command(flatten)]
    workload: TpccIslandsWorkload,
}

/// TPC-C.
#[derive(Debug, Args)]
pub(crate) struct TpccIslandsWorkload {
    /// How many warehouses there are at all instances together [default: one for each worker]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=10_000))]
    warehouses: Option<u16>,

    /// Items, hence stocks of a warehouse
    #[arg(long, value_name = "N", default_value_t = Scale::SPECIFICATION.items, value_parser = value_parser!(u32).range(1..=100_000))]
    items: u32,

    /// Customers of a district, and as many orders that it is loaded with
    #[arg(long, value_name = "N", default_value_t = Scale::SPECIFICATION.customers, value_parser = value_parser!(u16).range(1..=3_000))]
    customers: u16,

    /// Shares of new-order/payment/order-status/delivery/stock-level, or some by name: payment=100
    #[arg(long, value_name = "SHARES", default_value = "45/43/4/4/4", value_parser = parse_mix)]
    mix: Mix,

    /// How many of a hundred orders and payments have to do with another warehouse [default: what the specification says, one item
    /// and 15 payments of a hundred]
    #[arg(long, value_name = "PERCENT", value_parser = value_parser!(u8).range(0..=100))]
    multisite: Option<u8>,
}

#[derive(Debug, Args)]
#[command(after_help = YCSB_EXAMPLES)]
pub(super) struct YcsbIslandsArguments {
    #[command(flatten)]
    islands: IslandsArguments,

    #[command(flatten)]
    workload: YcsbIslandsWorkload,
}

/// YCSB.
#[derive(Debug, Args)]
pub(crate) struct YcsbIslandsWorkload {
    /// How many records of 100 bytes there are at all instances together
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    records: u64,

    /// a, b, c, d, e, f, silo, silor, or shares like read=80,rmw=20
    #[arg(long, value_name = "MIX", default_value = "silo")]
    mix: NamedMix,

    /// How keys are chosen [default: the mix's own; uniform for shares]
    #[arg(long, value_enum)]
    distribution: Option<DistributionArgument>,

    /// Skew of zipfian and latest, from 0 (none) to below 1
    #[arg(long, value_name = "THETA", default_value = "0.99", value_parser = theta)]
    theta: f64,

    /// Operations in each transaction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1000))]
    operations: u16,

    /// The most records of a scan, at each instance
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u16).range(1..=10_000))]
    scan_len_max: u16,

    /// How many of a hundred transactions take their records from anywhere; the others from their own instance
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = value_parser!(u8).range(0..=100))]
    multisite: u8,
}

/// The process of an instance; its standard input is the socket to the program that has started it
#[derive(Debug, Args)]
pub(crate) struct InstanceArguments {
    /// What it runs.
    program: InstanceProgram,

    /// Bytes to take from the system before anything else.
    #[arg(long, default_value_t = 0)]
    prefault_bytes: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum InstanceProgram {
    Micro,
    TimedMicro,
    TpcbIslands,
    TpccIslands,
    YcsbIslands,
    Recorded,
}

/// Runs an instance in this process.
pub(crate) fn run_instance(arguments: &InstanceArguments) -> ExitCode {
    let database = || Database::options().prefault_bytes(arguments.prefault_bytes);
    let ended = match arguments.program {
        InstanceProgram::Micro => run_if_instance::<Micro>(database),
        InstanceProgram::TimedMicro => run_if_instance::<TimedMicro>(database),
        InstanceProgram::TpcbIslands => run_if_instance::<Tpcb>(database),
        InstanceProgram::TpccIslands => run_if_instance::<TpccIslands>(database),
        InstanceProgram::YcsbIslands => run_if_instance::<YcsbIslands>(database),
        InstanceProgram::Recorded => run_if_instance::<Recorded>(database),
    };
    ended.unwrap_or_else(|| failed("this runs where `ensilo bench` starts it alone"))
}

impl MicroWorkload {
    pub(crate) fn options(&self) -> MicroOptions {
        let MicroWorkload { rows, rows_per_transaction, update, multisite, skew } = self;
        MicroOptions {
            rows: *rows,
            rows_per_transaction: *rows_per_transaction,
            updates: *update,
            multisite_percent: *multisite,
            skew: *skew,
        }
    }
}

impl TpcbWorkload {
    /// Returns the workload that there is for so many workers in all.
    pub(crate) fn options(&self, workers: u64) -> TpcbOptions {
        TpcbOptions {
            branches: self.branches.unwrap_or(workers),
            accounts: self.accounts,
            multisite_percent: self.multisite,
        }
    }
}

impl TpccIslandsWorkload {
    /// Returns the workload that there is for so many workers in all.
    pub(crate) fn options(&self, workers: u64) -> TpccIslandsOptions {
        TpccIslandsOptions {
            warehouses: self.warehouses.unwrap_or(u16::try_from(workers).unwrap_or(u16::MAX)),
            scale: Scale { items: self.items, customers: self.customers },
            mix: self.mix.clone(),
            multisite_percent: self.multisite,
        }
    }
}

impl YcsbIslandsWorkload {
    pub(crate) fn options(&self) -> YcsbIslandsOptions {
        YcsbIslandsOptions {
            records: self.records,
            mix: self.mix.shares.clone(),
            distribution: self.distribution.map_or(self.mix.distribution, Into::into),
            theta: self.theta,
            operations: self.operations,
            scan_len_max: self.scan_len_max,
            multisite_percent: self.multisite,
        }
    }
}

pub(super) fn run_micro(MicroArguments { islands, workload, times }: &MicroArguments) -> ExitCode {
    let options = workload.options();
    let ran = if *times {
        run_workload(islands, |_| TimedMicroOptions(options))
    } else {
        run_workload(islands, |_| options)
    };
    ran.map_or_else(failed, |()| ExitCode::SUCCESS)
}

pub(super) fn run_tpcb(TpcbIslandsArguments { islands, workload }: &TpcbIslandsArguments) -> ExitCode {
    run_workload(islands, |workers| workload.options(workers)).map_or_else(failed, |()| ExitCode::SUCCESS)
}

pub(super) fn run_tpcc(TpccIslandsArguments { islands, workload }: &TpccIslandsArguments) -> ExitCode {
    run_workload(islands, |workers| workload.options(workers)).map_or_else(failed, |()| ExitCode::SUCCESS)
}

pub(super) fn run_ycsb(YcsbIslandsArguments { islands, workload }: &YcsbIslandsArguments) -> ExitCode {
    run_workload(islands, |_| workload.options()).map_or_else(failed, |()| ExitCode::SUCCESS)
}

/// Ends the processes of all instances, and removes their files.
pub(crate) fn end_instances() {
    end_instance_processes();
    remove_temporary_files();
}

/// Runs the workload that there is for so many workers in all.
fn run_workload<W: Workload>(
    arguments: &IslandsArguments,
    workload: impl FnOnce(u64) -> W,
) -> Result<(), Box<dyn std::error::Error>> {
    let plan = Plan::new(&Topology::of_this_machine()?, arguments.islands, arguments.placement);
    let cpus = plan.instances().iter().map(|place| place.cpus().len()).max().unwrap_or(1);
    let workers = arguments.workers.map_or_else(|| u16::try_from(cpus.max(1)), Ok)?;
    let workload = workload(u64::from(workers) * plan.instances().len() as u64);
    let command = (std::env::current_exe()?, vec!["instance".to_owned(), workload.program_name().to_owned()]);
    let mut options = RunOptions {
        plan,
        placement: arguments.placement,
        workers,
        channel: arguments.channel,
        command: (!arguments.threads).then_some(command),
        prefault_bytes: arguments.prefault_mib.map(|mib| mib << 20),
        directory: None,
        unit: arguments.commit_unit,
        width: arguments.width.into(),
        time: LoadTime {
            warmup: Duration::from_secs_f64(arguments.warmup),
            measured: Duration::from_secs_f64(arguments.seconds),
        },
    };
    if let Err(error) = options.check(&workload) {
        crate::refuse_usage(&error.to_string());
    }
    interrupt::end_on_ctrl_c(end_instances);
    let directory = arguments.durable.then(|| TemporaryDirectory::new(&temporary_root()?)).transpose()?;
    options.directory = directory.as_ref().map(|directory| directory.path().to_owned());
    let report = run(&workload, options, |step| complain(format_args!("{step}")))?;
    match arguments.format {
        IslandsFormat::Text => say(format_args!("{report}")),
        IslandsFormat::Json => say(format_args!("{}", report.to_json())),
    }
    Ok(())
}
