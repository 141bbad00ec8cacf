//! `ensilo islands advise`: which size of islands suits a machine and a workload.

use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use ensilo_islands::advisor::{Demand, Prediction, predict_all};
use ensilo_islands::{ChannelKind, Topology};
use ensilo_islands_bench::{Layout, MeasureOptions, Workload};

use super::{Done, MachineArguments, topology_of};
use crate::bench::islands::{MicroWorkload, TpcbWorkload, TpccIslandsWorkload};
use crate::output::{Output, complain};
use crate::seconds::seconds_of_run;

const EXAMPLES: &str = "\
Examples:
  ensilo islands advise micro --update --multisite 20
      Measures what transactions that update ten rows cost on this machine, alone, beside each other and over two instances, for some seconds, and predicts
      the throughput of an instance for each core, cache and socket, and of one for the machine.
  ensilo islands advise tpcb --width 16 --verify
      The same for TPC-B; then runs each size, and shows what is measured beside what was predicted.
  ensilo islands advise micro --multisite 50 --machine octo-socket
      With the costs that are measured here, on the paper's machine with eight sockets.

Exit codes: 0 all is well; 1 it failed; 2 bad parameters.";

/// The widest bar, in characters.
const BAR_MAX: f64 = 40.0;

/// Sizes whose predictions differ by less are as good as each other: what is measured varies as much.
const CLOSE: f64 = 0.10;

/// So much more than the second best is sure.
const CLEAR: f64 = 0.25;

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

    /// How long each of the four measurements takes, and of those of --verify, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = seconds_of_run)]
    seconds: f64,

    /// Run each size, and show what is measured beside what was predicted
    #[arg(long, conflicts_with = "machine")]
    verify: bool,
}

pub(super) fn run(command: &AdviseCommand) -> Done {
    let here = Topology::of_this_machine()?;
    let workers = here.cores().len() as u64;
    match command {
        AdviseCommand::Micro { workload, arguments } => advise(here, &workload.options(), arguments),
        AdviseCommand::Tpcb { workload, arguments } => advise(here, &workload.options(workers), arguments),
        AdviseCommand::Tpcc { workload, arguments } => advise(here, &workload.options(workers), arguments),
    }
}

fn advise<W: Workload>(here: Topology, workload: &W, arguments: &AdviseArguments) -> Done {
    if here.cores().len() < 2 {
        return Err(
            "it takes two cores to measure what instances cost each other, and this machine has one".into()
        );
    }
    let machine = topology_of(&arguments.machine)?;
    let options = MeasureOptions {
        topology: here,
        channel: arguments.channel,
        program: Some(std::env::current_exe()?),
        width: arguments.width.into(),
        time: Duration::from_secs_f64(arguments.seconds),
    };
    let progress = |what: &str| complain(format_args!("measuring {what}"));
    let costs = options.costs(workload, progress)?;
    let demand =
        Demand { multisite: f64::from(workload.multisite_percent()) / 100.0, width: arguments.width.into() };
    let predictions = predict_all(&machine, &costs, demand, |instances| workload.spread(instances));
    let mut output = Output::new();
    output.line(format_args!(
        "A local transaction takes {:.2} us of a worker, {:.2} us more where all is shared; a participant {:.2} us, and the wait for its vote {:.2} us.",
        costs.local / 1e3,
        costs.sharing / 1e3,
        costs.part / 1e3,
        costs.wait / 1e3
    ));
    let measured = match arguments.verify {
        true => Some(measure(&options, workload, arguments, &predictions)?),
        false => None,
    };
    show(&mut output, &predictions, measured.as_deref());
    Ok(())
}

/// Returns the throughput of each size.
fn measure<W: Workload>(
    options: &MeasureOptions,
    workload: &W,
    arguments: &AdviseArguments,
    predictions: &[Prediction],
) -> Done<Vec<f64>> {
    let of_size = |size: &Prediction| {
        let workers = u16::try_from(size.workers / size.instances)?;
        let layout = Layout { instances: size.instances, workers, width: arguments.width.into() };
        Ok(options.throughput(workload, layout, |what| complain(format_args!("verifying {what}")))?)
    };
    predictions.iter().map(of_size).collect()
}

fn show(output: &mut Output, predictions: &[Prediction], measured: Option<&[f64]>) {
    let best = best_of(predictions.iter().map(|size| size.throughput));
    let most =
        predictions[best].throughput.max(measured.map_or(0.0, |all| all.iter().copied().fold(0.0, f64::max)));
    for (at, size) in predictions.iter().enumerate() {
        let recommended = if at == best { "  <- recommended" } else { "" };
        output.line(format_args!(
            "{}{recommended}",
            bar(&format!("{:>5} islands", size.instances), size.throughput, most)
        ));
        if let Some(measured) = measured {
            output.line(format_args!("{}", bar("     measured", measured[at], most)));
        }
    }
    output.line(format_args!("{}", how_sure(predictions, best)));
    if let Some(measured) = measured {
        let of_best = measured[best] / measured[best_of(measured.iter().copied())];
        output.line(format_args!(
            "The recommended size reaches {:.0} % of what the best one was measured with.",
            of_best * 100.0
        ));
    }
}

fn best_of(throughputs: impl Iterator<Item = f64>) -> usize {
    throughputs.enumerate().max_by(|(_, first), (_, second)| first.total_cmp(second)).map_or(0, |(at, _)| at)
}

fn bar(name: &str, throughput: f64, most: f64) -> String {
    let filled = "#".repeat((throughput / most * BAR_MAX).round() as usize);
    format!("{name}  {filled:<width$} {throughput:>10.0} a second", width = BAR_MAX as usize)
}

/// Says how much better the recommended size is than the next one.
fn how_sure(predictions: &[Prediction], best: usize) -> String {
    let others = predictions.iter().enumerate().filter(|(at, _)| *at != best);
    let second = others.map(|(_, size)| size.throughput).fold(0.0, f64::max);
    if predictions.len() == 1 {
        return "This machine has one size of islands only.".to_owned();
    }
    let lead = predictions[best].throughput / second - 1.0;
    let says = match lead {
        lead if lead < CLOSE => "either will do: measurements vary as much",
        lead if lead < CLEAR => "likely",
        _ => "sure",
    };
    format!("The next best size is predicted to reach {:.0} % of it: {says}.", 100.0 / (1.0 + lead))
}
