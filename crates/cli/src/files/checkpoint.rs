//! `ensilo checkpoint`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ensilo::{Database, Error};
use ensilo_log::{CheckpointEntry, Dumped, Manifest, OpenError};

use super::output::{Output, disk, failed};

/// The commands of `ensilo checkpoint`.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Show the checkpoint that an opening would begin with: epochs, files, rows by table. The database may be open.
    List(Arguments),
    /// Open the database, make a checkpoint, close it: the next opening has next to nothing to replay.
    Create(Arguments),
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
    | CheckpointCommand::Create(Arguments { directory })) = command;
    let manifest = match manifest(directory) {
        Ok(manifest) => manifest,
        Err(error) => return failed(error),
    };
    match command {
        CheckpointCommand::List(_) => list(&manifest),
        CheckpointCommand::Create(_) => match create(directory, &manifest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(error),
        },
    }
}

/// What says which files count. That of a database: nothing is made where there is none.
fn manifest(directory: &Path) -> Result<Manifest, OpenError> {
    let path = directory.join("MANIFEST");
    let none = || OpenError::NotADatabase { directory: directory.to_path_buf(), holds: None };
    if !path.exists() {
        return Err(none());
    }
    let mut found = None;
    ensilo_log::dump(&*disk(), &path, &mut |dumped| {
        if let Dumped::Manifest(manifest) = dumped {
            found = Some(manifest.clone());
        }
    })?;
    found.ok_or_else(none)
}

fn list(manifest: &Manifest) -> ExitCode {
    let mut output = Output::new();
    let Some(checkpoint) = &manifest.checkpoint else {
        output.line(format_args!("there is none: everything is in the log"));
        return ExitCode::SUCCESS;
    };
    let CheckpointEntry { id, begin_epoch, end_epoch, parts, tables } = checkpoint;
    let (rows, bytes) =
        parts.iter().fold((0, 0), |(rows, bytes), part| (rows + part.records, bytes + part.bytes));
    output.line(format_args!(
        "checkpoint {id}: {rows} rows, {bytes} bytes; begun in epoch {begin_epoch}, complete with the log up to epoch {end_epoch}"
    ));
    for part in parts {
        output.line(format_args!("  {}: {} rows, {} bytes", part.path, part.records, part.bytes));
    }
    for (table, rows) in tables {
        output.line(format_args!("  table {table}: {rows} rows"));
    }
    ExitCode::SUCCESS
}

fn create(directory: &Path, manifest: &Manifest) -> Result<(), Error> {
    // The log stays where it was, and there are no transactions to be spared.
    let logs = manifest.loggers.iter().map(|logger| directory.join(&logger.directory));
    let options = Database::options().log_directories(logs).checkpoint_bytes_per_second(u64::MAX);
    let database = options.open(directory)?;
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
