//! `ensilo verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::damaged;
use super::shown_disk::ShownDisk;
use crate::output::{Output, failed};

/// Arguments of `ensilo verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads every file that counts, block by block, and reports every damage with file, offset, what cannot be recovered
because of it, and what can be done; behind a damaged block it goes on with the next valid one, and so it does behind a
sector that the system cannot read, which is damage too. Where the manifest is damaged it goes on by MANIFEST.copy beside
it, and says so. The database must not be open, except for reading only. Nothing is changed, and no right to write is
needed.

Exit codes: 0 all is in order; 1 there is damage, or it could not be read; 2 bad parameters.")]
pub(crate) struct VerifyArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Verifies a database.
pub(crate) fn verify(arguments: &VerifyArguments) -> ExitCode {
    let mut output = Output::new();
    let report = &mut |damage| output.line(format_args!("damaged: {damage}"));
    let shown = ShownDisk::new("verifying");
    let verified = ensilo_log::verify(&shown, &arguments.directory, report);
    shown.close();
    let verified = match verified {
        Ok(verified) => verified,
        Err(error) => return failed(error),
    };
    let read = verified.replayed;
    output.line(format_args!(
        "{} in order: {} bytes of checkpoint with {} rows, {} bytes of log with {} writes",
        counted(verified.files, "file"),
        read.checkpoint_bytes,
        read.records,
        read.log_bytes,
        read.writes
    ));
    if verified.is_by_copy {
        output.line(format_args!(
            "instead of the manifest its copy has said what to read, which may be older than the manifest was"
        ));
    }
    match verified.durable_epoch {
        Some(epoch) => {
            output.line(format_args!("everything up to epoch {epoch} is there"));
            if let Some((first, last)) = verified.void {
                output.line(format_args!(
                    "nothing counts of epochs {first} to {last}, from before it was opened last"
                ));
            }
            ExitCode::SUCCESS
        }
        None => {
            output.line(format_args!("{}", counted(verified.corruptions, "damage")));
            damaged()
        }
    }
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
