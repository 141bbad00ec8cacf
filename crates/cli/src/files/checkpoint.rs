//! `ensilo checkpoint`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, value_parser};
use ensilo::ermia::Ermia;
use ensilo::{Engine, Error, Options, Silo};
use ensilo_log::{CheckpointEntry, Manifest};

use super::output::disk;
use crate::opening::{open_shown, writing_to};
use crate::output::{Output, failed};

/// The commands of `ensilo checkpoint`.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Show the checkpoint that an opening would begin with: epochs, files, rows by table. The database may
    /// be open.
    List(Arguments),
    /// Open the database, make a checkpoint, close it: the next opening has next to nothing to replay.
    Create(CreateArguments),
}

/// Arguments of `create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    both: Arguments,

    /// Mebibytes that rows and indexes may take. The database is opened by ERMIA's engine then, with which rows leave
    /// memory for files in the directory `cold` of the database; trees have to fit [default: no limit, and all rows have to fit]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(8..=1 << 40))]
    memory_limit_mib: Option<u64>,
}

/// Arguments of both.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all is well; 1 it failed; 2 bad parameters.")]
pub(crate) struct Arguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Lists or creates.
pub(crate) fn checkpoint(command: &CheckpointCommand) -> ExitCode {
    let (CheckpointCommand::List(Arguments { directory })
    | CheckpointCommand::Create(CreateArguments { both: Arguments { directory }, .. })) = command;
    // That of a database: nothing is made where there is none.
    let manifest = match ensilo_log::manifest_of(&*disk(), directory) {
        Ok(manifest) => manifest,
        Err(error) => return failed(error),
    };
    match command {
        CheckpointCommand::List(_) => list(&manifest),
        CheckpointCommand::Create(arguments) => match create(arguments, &manifest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(error),
        },
    }
}

fn list(manifest: &Manifest) -> ExitCode {
    let mut output = Output::new();
    let Some(checkpoint) = &manifest.checkpoint else {
        output.line(format_args!("there is none: everything is in the log"));
        return ExitCode::SUCCESS;
    };
    for line in checkpoint_lines(checkpoint) {
        output.line(format_args!("{line}"));
    }
    ExitCode::SUCCESS
}

/// Returns what a manifest says of a checkpoint.
pub(super) fn checkpoint_lines(checkpoint: &CheckpointEntry) -> Vec<String> {
    let CheckpointEntry { id, begin_epoch, end_epoch, parts, tables } = checkpoint;
    let rows = checkpoint.records();
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let head = format!(
        "checkpoint {id}: {rows} rows, {bytes} bytes; begun in epoch {begin_epoch}, complete with the log up to epoch {end_epoch}"
    );
    let parts = parts.iter().map(|part| {
        let again = if part.is_copy() { " that others have too" } else { "" };
        format!("  {}: {} rows{again}, {} bytes", part.path, part.records, part.bytes)
    });
    let tables = tables.iter().map(|(table, rows)| format!("  table {table}: {rows} rows"));
    std::iter::once(head).chain(parts).chain(tables).collect()
}

fn create(arguments: &CreateArguments, manifest: &Manifest) -> Result<(), Error> {
    let directory = &arguments.both.directory;
    // There are no transactions to be spared, and one checkpoint is enough.
    let options = writing_to(directory, manifest).checkpoint_bytes_per_second(u64::MAX).no_checkpoints();
    match arguments.memory_limit_mib {
        None => create_with::<Silo>(options, directory),
        Some(mib) => create_with::<Ermia>(options.memory_limit_bytes(mib << 20), directory),
    }
}

fn create_with<E: Engine>(options: Options, directory: &Path) -> Result<(), Error> {
    let database = open_shown::<E>(options, directory)?;
    let made = database.checkpoint()?;
    database.close()?;
    Output::new().line(format_args!(
        "checkpoint {}: {} rows, {} bytes in {:.2} s; {} files removed that are not needed any more",
        made.id,
        made.rows,
        made.bytes,
        made.duration.as_secs_f64(),
        made.files_removed
    ));
    Ok(())
}
