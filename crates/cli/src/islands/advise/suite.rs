//! `ensilo islands advise suite`: how good the advice is.

use std::time::Duration;

use clap::Args;
use ensilo_islands::advisor::Distances;
use ensilo_islands::{ChannelKind, Topology};
use ensilo_islands_bench::{Assessment, MeasureOptions, RunError, SuiteEntry, suite};

use super::{Done, measure_latencies, shown};
use crate::output::{Output, complain};
use crate::seconds::seconds_of_run;

/// An advice is good if the size that it recommends reaches this share of the best one.
const GOOD: f64 = 0.9;

const NAMES: &str = "\
Workloads: read-local, read-20, update-local, update-5, update-50, update-20-skewed (the microbenchmark, with so many of a hundred
transactions multisite), tpcb, tpcc, ycsb-b-10, and tpcb-stored, which is stored in a temporary directory.";

#[derive(Debug, Args)]
#[command(after_help = NAMES)]
pub(crate) struct SuiteArguments {
    /// Which of the workloads are run [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    workloads: Vec<String>,

    /// What carries messages between instances
    #[arg(long, value_name = "memory|unix|pipe|tcp", default_value_t = ChannelKind::Memory)]
    channel: ChannelKind,

    /// How long each measurement takes, in seconds: five of each workload, or nine of one that is stored, and one of each size
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds_of_run)]
    seconds: f64,
}

pub(super) fn run(here: Topology, arguments: &SuiteArguments) -> Done {
    let entries = chosen(suite(u16::try_from(here.cores().len())?), &arguments.workloads)?;
    let latencies = measure_latencies(&here, arguments.channel)?;
    let distances = Distances::measured(&here, latencies.clone());
    let options = MeasureOptions {
        topology: here,
        channel: arguments.channel,
        program: Some(std::env::current_exe()?),
        width: 1,
        stored: None,
        time: Duration::from_secs_f64(arguments.seconds),
    };
    let mut rows = Vec::new();
    let assessed = entries.iter().try_for_each(|entry| {
        let progress = |what: &str| complain(format_args!("{}: {what}", entry.name));
        rows.push((entry.name, entry.assess(&options, &distances, progress)?));
        Ok::<(), RunError>(())
    });
    let mut output = Output::new();
    shown::latencies(&mut output, &latencies);
    if !rows.is_empty() {
        show(&mut output, &rows);
    }
    // After those that have not failed.
    Ok(assessed?)
}

/// Returns the workloads with these names, or all.
fn chosen(all: Vec<SuiteEntry>, names: &[String]) -> Done<Vec<SuiteEntry>> {
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|entry| entry.name != name.as_str())) {
        let known: Vec<&str> = all.iter().map(|entry| entry.name).collect();
        crate::refuse_usage(&format!("there is no workload {unknown}: {}", known.join(", ")));
    }
    let is_chosen = |entry: &SuiteEntry| names.is_empty() || names.iter().any(|name| name == entry.name);
    Ok(all.into_iter().filter(is_chosen).collect())
}

fn show(output: &mut Output, rows: &[(&str, Assessment)]) {
    output.line(format_args!(
        "{:17} {:>11} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "workload", "recommended", "predicted", "measured", "best size", "measured", "reached"
    ));
    let mut good = 0;
    for (name, assessment) in rows {
        let Some(((best, reached), measured)) = assessment.verified().zip(assessment.measured.as_deref())
        else {
            continue;
        };
        good += usize::from(reached >= GOOD);
        let recommended = assessment.recommended();
        output.line(format_args!(
            "{name:17} {:>11} {:>12.0} {:>12.0} {:>12} {:>12.0} {:>6.0} %",
            assessment.predictions[recommended].instances,
            assessment.predictions[recommended].throughput,
            measured[recommended],
            assessment.predictions[best].instances,
            measured[best],
            reached * 100.0
        ));
    }
    output.line(format_args!(
        "{good} of {} recommended sizes are within 10 % of the best measured one.",
        rows.len()
    ));
}
