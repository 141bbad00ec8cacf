//! `ensilo stat`.

mod files;
mod live;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ensilo::{IndexState, Statistics};
use indicatif::BinaryBytes;
use serde::Serialize;

use self::files::{DatabaseFileSizes, file_sizes};
use super::ShownAs;
use crate::opening::open_to_read;
use crate::output::{Output, failed};
use crate::seconds::seconds_of_run;

/// Arguments of `ensilo stat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shows what the files of a database hold, log, checkpoints and others, and then what its tables and indexes take in memory. For the
latter it reads the database into its own memory, so all of its rows have to fit into that. With --files it looks at the files
alone. The database may be open elsewhere, on the same machine: then all that was stored before counts, and perhaps a little
more that has only been logged so far. A line on standard error says as of which epoch.

With --live it asks the process that has the database open, which answers if it was opened with `Options::live_statistics`, as
`ensilo bench` opens its own: what has happened since it was opened, and in the last second, or in the time between two looks with
--watch. Only the user that the process runs as may ask.

Examples:
  ensilo stat bank
  ensilo stat bank --live --watch 5
      Again and again, every five seconds, until the database is closed or Ctrl-C ends it.

With --format json the figures of the memory stand under `statistics`, with the names that `ensilo::Statistics` gives them;
durations are numbers of seconds. With --live each look is a line, with `per_second` for what has grown.

Exit codes: 0 all is well; 1 it failed, or the process answers no more; 2 bad parameters.")]
pub(crate) struct StatArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Look at the files alone
    #[arg(long)]
    files: bool,

    /// Ask the process that has the database open
    #[arg(long, conflicts_with = "files")]
    live: bool,

    /// Look again and again, with so many seconds in between, also 0.5
    #[arg(long, value_name = "SECONDS", requires = "live", value_parser = seconds_of_run)]
    watch: Option<f64>,

    /// How to show it
    #[arg(long, value_enum, default_value_t = ShownAs::Text)]
    format: ShownAs,
}

/// What is shown.
#[derive(Debug, Serialize)]
struct Shown {
    files: DatabaseFileSizes,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<Statistics>,
}

/// Shows what a database takes.
pub(crate) fn stat(arguments: &StatArguments) -> ExitCode {
    if arguments.live {
        let show = |text: &str| Output::new().text(text);
        let every = arguments.watch.map(Duration::from_secs_f64);
        let watched = live::watch(&arguments.directory, every, arguments.format, show);
        return watched.map_or_else(failed, |()| ExitCode::SUCCESS);
    }
    match look(arguments) {
        Ok(shown) => {
            let text = match arguments.format {
                ShownAs::Text => shown.text(),
                // There is nothing in it that JSON has not.
                ShownAs::Json => serde_json::to_string_pretty(&shown).unwrap_or_default() + "\n",
            };
            Output::new().text(&text);
            ExitCode::SUCCESS
        }
        Err(error) => failed(error),
    }
}

fn look(arguments: &StatArguments) -> Result<Shown, String> {
    let files = file_sizes(&arguments.directory)?;
    let statistics = if arguments.files { None } else { Some(statistics_of(arguments)?) };
    Ok(Shown { files, statistics })
}

fn statistics_of(arguments: &StatArguments) -> Result<Statistics, String> {
    let opened = || {
        let database = open_to_read(&arguments.directory)?;
        let statistics = database.statistics()?;
        database.close()?;
        Ok(statistics)
    };
    opened().map_err(|error: ensilo::Error| error.to_string())
}

impl Shown {
    fn text(&self) -> String {
        let mut text = self.files.text();
        if let Some(statistics) = &self.statistics {
            text.push('\n');
            text += &memory_text(statistics);
        }
        text
    }
}

/// Returns what tables and indexes take, and what it took to open them.
fn memory_text(statistics: &Statistics) -> String {
    let mut lines = Vec::new();
    for table in &statistics.tables {
        let name = format!("table {} ({})", table.name.escape_debug(), table.number);
        lines.push([name, table.records.to_string(), bytes_text(table.memory_bytes)]);
        if let Some(long) = table.long_values.as_ref().filter(|long| long.pieces > 0) {
            let name = format!("  long values ({}), in pieces", long.number);
            lines.push([name, long.pieces.to_string(), bytes_text(long.memory_bytes)]);
        }
        for index in &table.indexes {
            let broken = if index.state == IndexState::Broken { ", broken" } else { "" };
            let name = format!("  index {}{broken}", index.name.escape_debug());
            lines.push([name, index.records.to_string(), bytes_text(index.memory_bytes)]);
        }
    }
    let head = ["in memory", "rows", "bytes"].map(str::to_owned);
    let mut text = aligned(std::iter::once(head).chain(lines));
    let memory = &statistics.memory;
    text += &format!(
        "{} in use, of {} taken from the system\n",
        bytes_text(memory.live_bytes),
        bytes_text(memory.mapped_bytes)
    );
    if let Some(durability) = &statistics.durability {
        let recovery = &durability.recovery;
        text += &format!(
            "everything up to epoch {}; opened in {:.2} s: {} of checkpoint with {} rows, {} of log with {} writes\n",
            durability.durable_epoch,
            recovery.duration.as_secs_f64(),
            bytes_text(recovery.checkpoint_bytes),
            recovery.checkpoint_rows,
            bytes_text(recovery.log_bytes),
            recovery.log_writes
        );
    }
    text
}

fn bytes_text(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}

/// Returns lines of three columns, the first to the left and the others to the right.
fn aligned(lines: impl Iterator<Item = [String; 3]>) -> String {
    let lines: Vec<[String; 3]> = lines.collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let [first, second, third] = [width(0), width(1), width(2)];
    let line =
        |[left, middle, right]: &[String; 3]| format!("{left:first$}  {middle:>second$}  {right:>third$}\n");
    lines.iter().map(line).collect()
}
