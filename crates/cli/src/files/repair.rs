//! `ensilo repair`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, value_parser};
use ensilo_epoch::Epoch;

use super::output::unread_lines;
use super::shown_disk::ShownDisk;
use crate::output::{Output, failed};

/// Arguments of `ensilo repair`.
#[derive(Debug, Args)]
#[command(after_help = "\
What `ensilo verify` names as lost stays lost: a repair makes the rest usable again. It gives up every transaction
after the epoch that is accepted, also those that could still be read, so that what remains is one consistent point.
That epoch is not before the end of the checkpoint, which is of no use without the log up to there.
Without --accept-loss-after-epoch it gives up nothing that was stored: it mends a damaged copies.ckpt, which the
checkpoint goes on without, and refuses anything else. All files are first copied to before-repair-<n> in the
database's directory; where the system cannot read a sector of 4096 bytes, the copy says so in its place, and a file that
cannot be opened is empty in it. Other damage of a checkpoint, and that of the manifest, no repair mends: see `ensilo salvage`.

To undo a repair, close the database, remove its MANIFEST and MANIFEST.copy, its log files and OWNER beside them, and its
checkpoints, and move what before-repair-<n> holds into their places; elsewhere-<k> in it has the files of a log directory
outside, which the repair has named.

Exit codes: 0 repaired; 1 refused or failed, the database is as it was, unless the sync of its new manifest failed: then it
is as it was or repaired, and before-repair-<n> stays; 2 bad parameters.")]
pub(crate) struct RepairArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Keep every transaction up to this epoch, and give up all after it; `ensilo verify` says which epoch can be had
    #[arg(long, value_name = "E", value_parser = value_parser!(u64).range(..1 << 40))]
    accept_loss_after_epoch: Option<u64>,
}

/// Repairs a database.
pub(crate) fn repair(arguments: &RepairArguments) -> ExitCode {
    let kept_to = arguments.accept_loss_after_epoch.map(Epoch::new);
    let shown = Arc::new(ShownDisk::new("repairing"));
    let repaired = ensilo_log::repair(&(shown.clone() as _), &arguments.directory, kept_to);
    shown.close();
    let repaired = match repaired {
        Ok(repaired) => repaired,
        Err(error) => return failed(error),
    };
    let mut output = Output::new();
    for damage in &repaired.damages {
        output.line(format_args!("damaged: {}", damage.place_and_finding()));
    }
    if kept_to.is_none() {
        output
            .line(format_args!("nothing is given up: everything up to epoch {} is there", repaired.kept_to));
    } else {
        output.line(format_args!("given up: every transaction after epoch {}", repaired.kept_to));
        let given_up = repaired.given_up;
        output.line(format_args!(
            "of that could be read: {} transactions with {} writes, in {} files; {} bytes could not",
            given_up.transactions, given_up.writes, given_up.files, given_up.unreadable_bytes
        ));
    }
    output.line(format_args!("known to have been stored: everything up to epoch {}", repaired.stored_to));
    output.line(format_args!("all files as they were: {}", repaired.copy.display()));
    let unread = unread_lines(&repaired.unread, &repaired.unopened);
    unread.iter().for_each(|line| output.line(format_args!("but not what could not be read: {line}")));
    for (directory, copy) in &repaired.elsewhere {
        output.line(format_args!("those of {}: {}", directory.display(), copy.display()));
    }
    if let Some(error) = &repaired.unclaimed {
        output.line(format_args!(
            "repaired, but the log directories were not claimed, which the next opening does: {error}"
        ));
    }
    ExitCode::SUCCESS
}
