//! `ensilo bench counters`: what it costs to share a counter, by where its threads run.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, value_parser};
use ensilo_islands::{Instances, LoadTime, Placement, Plan, Topology};
use ensilo_islands_bench::{CountersOptions, run_counters};

use super::islands::IslandsFormat;
use crate::output::{failed, say};
use crate::seconds::{seconds_of_run, seconds_within};

const EXAMPLES: &str = "\
Examples:
  ensilo bench counters --counters socket --placement group
      A counter for each socket, which the threads on its cores count up.
  ensilo bench counters --counters socket --placement spread
      The same number of counters, each for threads on all sockets.
  ensilo bench counters --counters one
      One counter for all threads.

Exit codes: 0 all is well; 1 it failed; 2 bad parameters.";

/// The most threads.
const THREADS_MAX: i64 = 4096;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CountersArguments {
    /// How many counters: one for each core, cache (of the last level) or socket, one, or a number
    #[arg(long, value_name = "core|cache|socket|one|N", default_value = "socket")]
    counters: Instances,

    /// Whether the threads of a counter run on cores that are close to each other (group), on as many sockets as it goes (spread), in
    /// pairs on sockets (mix), or where the operating system puts them (system)
    #[arg(long, value_name = "group|spread|mix|system", default_value_t = Placement::Group)]
    placement: Placement,

    /// How many threads there are in all, at least one for each counter [default: one for each core]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=THREADS_MAX))]
    workers: Option<u16>,

    /// How long is measured, in seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds_of_run)]
    seconds: f64,

    /// How long runs before that, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.1, value_parser = |text: &str| seconds_within(text, 0.0..=3600.0))]
    warmup: f64,

    /// How the report is written
    #[arg(long, value_enum, default_value_t = IslandsFormat::Text)]
    format: IslandsFormat,
}

pub(super) fn run(arguments: &CountersArguments) -> ExitCode {
    count(arguments).map_or_else(failed, |()| ExitCode::SUCCESS)
}

fn count(arguments: &CountersArguments) -> Result<(), Box<dyn std::error::Error>> {
    let topology = Topology::of_this_machine()?;
    let (counters, placement) = (arguments.counters.count_on(&topology), arguments.placement);
    let threads = arguments.workers.map_or(topology.cores().len().max(counters), usize::from);
    if threads < counters {
        crate::refuse_usage(&format!(
            "there are {counters} counters, and {threads} threads to count them up"
        ));
    }
    if arguments.workers.is_none() && counters > THREADS_MAX as usize {
        crate::refuse_usage(&format!(
            "{counters} counters take as many threads, and there are {THREADS_MAX} at most"
        ));
    }
    let time = LoadTime {
        warmup: Duration::from_secs_f64(arguments.warmup),
        measured: Duration::from_secs_f64(arguments.seconds),
    };
    let plan = Plan::new(&topology, arguments.counters, placement);
    let report = run_counters(&CountersOptions { plan, placement, threads, time })?;
    match arguments.format {
        IslandsFormat::Text => say(format_args!("{report}")),
        IslandsFormat::Json => say(format_args!("{}", report.to_json())),
    }
    Ok(())
}
