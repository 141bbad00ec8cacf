//! `ensilo islands redistribute`: tables for another number of instances.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};
use ensilo_islands::{
    CommitUnit, Redistributed, RedistributedTable, Redistribution, RedistributionProgress, Repartitioning,
};
use indicatif::{ProgressBar, ProgressStyle};

use super::Done;
use crate::output::Output;

/// So often the line that shows the progress is drawn again.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
The tables are those of a program that stores them by `IslandDatabase`, or those of a database without instances, if they
have primary keys. All rows, schemas and indexes arrive. The source must not be open, and stays as it is.

Tables keep their partitioning; those of a database without instances are hashed by their whole primary keys. Where a
table has ranges and the number of instances changes, new beginnings are chosen so that each instance gets about as many
rows. Programs open it by `IslandDatabase::stored_table`, or copy it themselves with beginnings of their own
(`ensilo_islands::Redistribution`).

TARGET cannot be opened before everything is stored and read back; if the command is interrupted it stays so, and is to be
removed. As much memory is needed as the rows of both take. Of a single instance, TARGET/instance-0 is a database without
instances as well.

Examples:
  ensilo islands redistribute bank bank-of-4 --instances 4
      The tables of bank on four instances.
  ensilo islands redistribute bank bank-of-1 --instances 1 --partition orders=ranges:1 --partition rates=hash
      On a single one; orders by ranges of the first column of their key, rates by a hash of theirs.
  ensilo islands redistribute bank faster --workers 4 --commit-unit epoch
      On as many instances, with four workers each, which store epochs.

Exit codes: 0 copied and read back; 1 failed: what was made of TARGET is removed; 2 bad parameters.")]
pub(crate) struct RedistributeArguments {
    /// The directory of the instances, or of a database without instances
    #[arg(value_name = "DIR")]
    from: PathBuf,

    /// Where to, a directory that is missing or empty and does not lie in DIR
    #[arg(value_name = "TARGET")]
    target: PathBuf,

    /// How many instances there are to be [default: as many as before]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    instances: Option<u16>,

    /// How many workers each instance is to have [default: as many as before]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    workers: Option<u16>,

    /// What is to be stored at all instances at once [default: as before]
    #[arg(long, value_name = "transaction|epoch")]
    commit_unit: Option<CommitUnit>,

    /// How a table is to be placed: by a hash of its primary key or of the first N columns of that, by ranges of the first N columns
    /// with about as many rows at each instance, or at every instance; once for each table
    #[arg(long = "partition", value_name = "TABLE=hash[:N]|ranges[:N]|replicated", value_parser = partition)]
    partitions: Vec<(String, Repartitioning)>,
}

fn partition(text: &str) -> Result<(String, Repartitioning), String> {
    let is_named = |(table, _): &(&str, &str)| !table.is_empty();
    let (table, how) = text.split_once('=').filter(is_named).ok_or("not a table, =, and how it is placed")?;
    Ok((table.to_owned(), how.parse()?))
}

/// Copies tables to other instances.
pub(super) fn run(arguments: &RedistributeArguments) -> Done {
    let RedistributeArguments { from, target, instances, workers, commit_unit, partitions } = arguments;
    refuse_tables_that_come_twice(partitions);
    let bar = progress_line();
    let mut redistribution = Redistribution::of(from).progress(|progress| show(&bar, progress));
    if let Some(instances) = instances {
        redistribution = redistribution.instances(*instances);
    }
    if let Some(workers) = workers {
        redistribution = redistribution.workers(*workers);
    }
    if let Some(unit) = commit_unit {
        redistribution = redistribution.commit_unit(*unit);
    }
    for (table, how) in partitions {
        redistribution = redistribution.repartitioning(table, *how);
    }
    let copied = redistribution.write_to(target);
    bar.finish_and_clear();
    summarize(&copied?);
    Ok(())
}

/// Ends the program if a table is to be placed in two ways.
fn refuse_tables_that_come_twice(partitions: &[(String, Repartitioning)]) {
    let mut seen = BTreeSet::new();
    if let Some((table, _)) = partitions.iter().find(|(table, _)| !seen.insert(table)) {
        crate::refuse_usage(&format!("--partition comes twice for table {table}: leave one out"));
    }
}

/// Returns a line on standard error, if that is a terminal.
fn progress_line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // A template that does not parse would leave the default style: a spinner and the message.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(DRAW_INTERVAL);
    bar
}

fn show(bar: &ProgressBar, progress: &RedistributionProgress<'_>) {
    bar.set_message(match progress {
        RedistributionProgress::Opening => "opening".to_owned(),
        RedistributionProgress::Copying { table, rows, rows_of_all, .. } => {
            format!("copying table {table}: {rows} rows, {rows_of_all} in all")
        }
        RedistributionProgress::ReadingBack => "reading back".to_owned(),
        _ => String::new(),
    });
}

fn summarize(copied: &Redistributed) {
    let mut output = Output::new();
    for RedistributedTable { name, partitioning, rows, rows_by_instance, .. } in &copied.tables {
        let each = rows_by_instance.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        output.line(format_args!("table {name}: {rows} rows, {partitioning}; by instance: {each}"));
    }
    let Redistributed { tables, rows, instances, workers, unit, duration, .. } = copied;
    output.line(format_args!(
        "{} tables, {rows} rows in {:.1} s; instances: {instances}, workers of each: {workers}, unit of commit: {unit}",
        tables.len(),
        duration.as_secs_f64()
    ));
}
