//! `ensilo backup`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::instance::refusal_of_instance;
use super::shown_disk::ShownDisk;
use crate::output::{Output, failed};

/// Arguments of `ensilo backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
The copy is a database of its own with everything up to the durable epoch, in one directory, its log included; it is
read back and verified before the command ends. To restore, open the copy. The database must not be open, except
for reading only: a program that has it open makes backups itself, by Database::backup, while its transactions go on. An
instance of several that are one is refused: a program copies all of them at one point, by Islands::backup.

Exit codes: 0 copied and verified; 1 failed: an unfinished copy is removed, a finished one of which nothing could be
said stays; 2 bad parameters.")]
pub(crate) struct BackupArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Where to, a directory that is missing or empty and lies in no database
    #[arg(value_name = "TARGET")]
    target: PathBuf,

    /// Copy it although the database is an instance of several that are one. The copy is of no use beside copies of the others: transactions
    /// over several instances are in half there
    #[arg(long)]
    instance_alone: bool,
}

/// Copies a database.
pub(crate) fn backup(arguments: &BackupArguments) -> ExitCode {
    let otherwise =
        "`Islands::backup` copies all at one point; or copy the directory above with all of them closed";
    if !arguments.instance_alone
        && let Some(refusal) = refusal_of_instance(&arguments.directory, otherwise)
    {
        return failed(refusal);
    }
    let shown = Arc::new(ShownDisk::new("copying"));
    let copied = ensilo_log::backup(&(shown.clone() as _), &arguments.directory, &arguments.target);
    shown.close();
    match copied {
        Ok(done) => {
            Output::new().line(format_args!(
                "{} files, {} bytes, everything up to epoch {}",
                done.files, done.bytes, done.durable_epoch
            ));
            ExitCode::SUCCESS
        }
        Err(error) => failed(error),
    }
}
