//! `ensilo islands advise`: which size of islands suits a machine and a workload.

mod shown;
mod suite;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use ensilo_islands::advisor::Distances;
use ensilo_islands::{ChannelKind, CommitUnit, Latencies, Topology};
use ensilo_islands_bench::{MeasureOptions, RecordedOptions, RunError, Target, Workload};

use super::{Done, MachineArguments, topology_of};
use crate::bench::islands::{
    MicroWorkload, TpcbWorkload, TpccIslandsWorkload, YcsbIslandsWorkload, end_instances,
};
use crate::interrupt;
use crate::output::{Output, complain};
use crate::seconds::seconds_of_run;

const EXAMPLES: &str = "\
Examples:
  ensilo islands advise micro --update --multisite 20
      Measures how long messages take between cores, and what transactions that update ten rows cost on this machine, alone, beside each other and over two
      instances, for some seconds, and predicts the throughput of an instance for each core, cache and socket, and of one for the machine.
  ensilo islands advise tpcb --width 16 --verify
      The same for TPC-B; then runs each size, and shows what is measured beside what was predicted.
  ensilo islands advise ycsb --mix b --operations 4 --multisite 10 --width 512 --durable --commit-unit epoch
      YCSB with every answer stored, all transactions of some milliseconds as one.
  ensilo islands advise recorded orders.transactions --verify
      What a program does: transactions that it has recorded, one on a line, such as `r 17 w 4 w 99`.
  ensilo islands advise micro --multisite 50 --machine octo-socket
      With the costs that are measured here, on the paper's machine with eight sockets.
  ensilo islands advise suite
      Ten different workloads, and how good the advice on each is.

Exit codes: 0 all is well; 1 it failed; 2 bad parameters; 130 it was interrupted.";

const RECORDED: &str = "\
The file has a transaction on each line: pairs of r (read) or w (write) and a partition key, a number from 0 to 2^64 - 1
that stands for rows which are always at one instance together, a range of keys such as 17-99, or * for rows at every
instance. The first key is where the transaction begins. Empty lines and those that begin with # are left out, and the
last line ends with a line feed like the others. A program records such a file by
IslandDatabase::record (docs/recorded-transactions.md).

Each key becomes a row of 250 bytes, of which there are no fewer than cores; instances have as many of them as each other,
in the order of keys. Each worker makes the transactions that begin at its instance, one after the other.";

/// How long messages between two cores are measured.
const OF_PAIR: Duration = Duration::from_millis(20);

/// The workload for which islands are recommended
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AdviseCommand {
    /// Transactions that read, or update, some rows
    Micro {
        #[command(flatten)]
        workload: MicroWorkload,
        #[command(flatten)]
        arguments: AdviseArguments,
    },
    /// TPC-B
    Tpcb {
        #[command(flatten)]
        workload: TpcbWorkload,
        #[command(flatten)]
        arguments: AdviseArguments,
    },
    /// TPC-C
    Tpcc {
        #[command(flatten)]
        workload: TpccIslandsWorkload,
        #[command(flatten)]
        arguments: AdviseArguments,
    },
    /// YCSB
    Ycsb {
        #[command(flatten)]
        workload: YcsbIslandsWorkload,
        #[command(flatten)]
        arguments: AdviseArguments,
    },
    /// Transactions that a program has recorded
    #[command(after_help = RECORDED)]
    Recorded {
        /// The file with a transaction on each line, such as `r 17 w 4 w 99`
        file: PathBuf,
        #[command(flatten)]
        arguments: AdviseArguments,
    },
    /// Ten different workloads on this machine: what is recommended for each, and how good that is
    Suite(suite::SuiteArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AdviseArguments {
    #[command(flatten)]
    machine: MachineArguments,

    /// What carries messages between instances
    #[arg(long, value_name = "memory|unix|pipe|tcp", default_value_t = ChannelKind::Memory)]
    channel: ChannelKind,

    /// How many transactions each worker has under way at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=4096))]
    width: u16,

    /// Every answer waits until it is stored, in files in a temporary directory; a --width of some hundreds keeps workers busy meanwhile
    #[arg(long)]
    durable: bool,

    /// What is stored at all instances at once: each transaction, or epochs of some milliseconds with all transactions in them
    #[arg(long, value_name = "transaction|epoch", default_value_t = CommitUnit::Transaction, requires = "durable")]
    commit_unit: CommitUnit,

    /// How long each measurement takes, and of those of --verify, in seconds: five, or nine with --durable
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = seconds_of_run)]
    seconds: f64,

    /// Run each size, and show what is measured beside what was predicted; instances that cannot have as many workers each run with
    /// those that all have, and what they reach counts for all alike
    #[arg(long, conflicts_with = "machine")]
    verify: bool,
}

pub(super) fn run(command: &AdviseCommand) -> Done {
    let here = Topology::of_this_machine()?;
    if here.cores().len() < 2 {
        return Err(
            "it takes two cores to measure what instances cost each other, and this machine has one".into()
        );
    }
    interrupt::end_on_ctrl_c(end_instances);
    let advised = match command {
        AdviseCommand::Micro { workload, arguments } => advise(here, |_| workload.options(), arguments),
        AdviseCommand::Tpcb { workload, arguments } => {
            advise(here, |workers| workload.options(workers), arguments)
        }
        AdviseCommand::Tpcc { workload, arguments } => {
            advise(here, |workers| workload.options(workers), arguments)
        }
        AdviseCommand::Ycsb { workload, arguments } => advise(here, |_| workload.options(), arguments),
        AdviseCommand::Recorded { file, arguments } => {
            let workload = RecordedOptions::from_file(file)?;
            let (transactions, keys) = (workload.transactions(), workload.keys());
            complain(format_args!("{transactions} recorded transactions with {keys} partition keys"));
            advise(here, |_| workload.clone(), arguments)
        }
        AdviseCommand::Suite(arguments) => suite::run(here, arguments),
    };
    // What a file lacks is no matter of parameters.
    let is_of_a_file = matches!(command, AdviseCommand::Recorded { .. });
    let too_few = |error: &RunError| matches!(error, RunError::TooFewSites { .. }) && !is_of_a_file;
    match advised {
        Err(error) if error.downcast_ref().is_some_and(too_few) => crate::refuse_usage(&error.to_string()),
        advised => advised,
    }
}

/// Recommends a size of islands for the workload that there is for so many workers in all.
fn advise<W: Workload>(here: Topology, workload: impl Fn(u64) -> W, arguments: &AdviseArguments) -> Done {
    let machine = topology_of(&arguments.machine)?;
    let [workload, there] = [&here, &machine].map(|machine| workload(machine.cores().len() as u64));
    let latencies = match arguments.machine.machine {
        Some(_) => None,
        None => Some(measure_latencies(&here, arguments.channel)?),
    };
    let distances = match &latencies {
        None => Distances::described_from(&here),
        Some(latencies) => Distances::measured(&here, latencies.clone()),
    };
    let options = MeasureOptions {
        topology: here,
        channel: arguments.channel,
        program: Some(std::env::current_exe()?),
        width: arguments.width.into(),
        stored: arguments.durable.then_some(arguments.commit_unit),
        time: Duration::from_secs_f64(arguments.seconds),
    };
    let progress = |what: &str| complain(format_args!("{what}"));
    let target = Target { topology: &machine, distances: &distances, workload: &there };
    let assessment = options.assess(&workload, target, arguments.verify, progress)?;
    let mut output = Output::new();
    latencies.iter().for_each(|latencies| shown::latencies(&mut output, latencies));
    shown::costs(&mut output, &assessment.costs, options.stored.is_some());
    shown::sizes(&mut output, &assessment);
    Ok(())
}

fn measure_latencies(here: &Topology, channel: ChannelKind) -> Done<Latencies> {
    complain(format_args!("measuring messages between cores"));
    Ok(Latencies::measure(here, channel, OF_PAIR)?)
}
