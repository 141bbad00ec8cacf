//! `ensilo repair`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, value_parser};
use ensilo_epoch::Epoch;
use ensilo_log::Repaired;

use super::instance::{RESTORE, refusal_of_instance};
use super::output::unread_lines;
use super::shown_disk::ShownDisk;
use crate::output::{Output, failed};

/// Arguments of `ensilo repair`.
#[derive(Debug, Args)]
#[command(after_help = "\
What `ensilo verify` names as lost stays lost: a repair makes the rest usable again. It gives up every transaction
after the epoch that is accepted, also those that could still be read, so that what remains is one consistent point.
That epoch is not before the end of the checkpoint, which is of no use without the log up to there. It is counted as this
version counts: an epoch that a version with files of format 3 or earlier has named is sixteen now.
Without --accept-loss-after-epoch it gives up nothing that was stored: it mends a damaged copies.ckpt, which the
checkpoint goes on without, and refuses anything else. All files are first copied to before-repair-<n> in the
database's directory; where the system cannot read a sector of 4096 bytes, the copy says so in its place, and a file that
cannot be opened is empty in it. Such files stay where they are until that copy is removed. Other damage of a checkpoint,
and that of the manifest, no repair mends: see `ensilo salvage`.

To undo a repair, close the database, remove its MANIFEST and MANIFEST.copy, its log files and OWNER beside them, and its
checkpoints, and move what before-repair-<n> holds into their places; elsewhere-<k> in it has the files of a log directory
outside, which the repair has named.

An instance of several that are one is refused: restore a copy of all. If there is none, --instance-alone repairs it by
itself. What it gives up the others keep: transactions over several instances are left in half. With epochs as the unit of
commit it may not be opened with the others any more; `ensilo dump` shows its rows.

Exit codes: 0 repaired; 1 refused or failed, the database is as it was, unless the sync of its new manifest failed: then it
is as it was or repaired, and before-repair-<n> stays; 2 bad parameters.")]
pub(crate) struct RepairArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Keep every transaction up to this epoch, and give up all after it; `ensilo verify` says which epoch
    /// can be had
    #[arg(long, value_name = "E", value_parser = value_parser!(u64).range(..=Epoch::LAST.get()))]
    accept_loss_after_epoch: Option<u64>,

    /// Do it although the database is an instance of several that are one. Of transactions over several instances, what the others have of them
    /// stays: half of one may be left, and nothing shows which
    #[arg(long)]
    instance_alone: bool,
}

/// Repairs a database.
pub(crate) fn repair(arguments: &RepairArguments) -> ExitCode {
    if !arguments.instance_alone
        && let Some(refusal) = refusal_of_instance(&arguments.directory, RESTORE)
    {
        return failed(refusal);
    }
    let kept_to = arguments.accept_loss_after_epoch.map(Epoch::new);
    let shown = Arc::new(ShownDisk::new("repairing"));
    let repaired = ensilo_log::repair(&(shown.clone() as _), &arguments.directory, kept_to);
    shown.close();
    let repaired = match repaired {
        Ok(repaired) => repaired,
        Err(error) => return failed(error),
    };
    let mut output = Output::new();
    lines(&repaired, kept_to).iter().for_each(|line| output.line(format_args!("{line}")));
    ExitCode::SUCCESS
}

/// Returns the report on a repair that was to keep everything up to an epoch, or to give nothing up.
fn lines(repaired: &Repaired, kept_to: Option<Epoch>) -> Vec<String> {
    let corruptions = repaired.corruptions.iter();
    let mut lines: Vec<String> =
        corruptions.map(|damage| format!("damaged: {}", damage.place_and_kind())).collect();
    if kept_to.is_none() {
        lines.push(format!("nothing is given up: everything up to epoch {} is there", repaired.kept_to));
    } else {
        lines.push(format!("given up: every transaction after epoch {}", repaired.kept_to));
        let given_up = repaired.given_up;
        lines.push(format!(
            "of that could be read: {} transactions with {} writes, in {} files; {} bytes could not",
            given_up.transactions, given_up.writes, given_up.files, given_up.unreadable_bytes
        ));
    }
    lines.push(format!("known to have been stored: everything up to epoch {}", repaired.stored_to));
    lines.push(format!("all files as they were: {}", repaired.copy.display()));
    let unread = unread_lines(&repaired.unread, &repaired.unopened);
    lines.extend(unread.iter().map(|line| format!("but not what could not be read: {line}")));
    let elsewhere = repaired.elsewhere.iter();
    lines.extend(
        elsewhere.map(|(directory, copy)| format!("those of {}: {}", directory.display(), copy.display())),
    );
    lines.extend(repaired.unclaimed.iter().map(|error| {
        format!("repaired, but the log directories were not claimed, which the next opening does: {error}")
    }));
    lines
}

#[cfg(test)]
mod tests {
    use ensilo_log::GivenUp;

    use super::*;

    /// No file system fails at the very step that a real repair would need for it.
    #[test]
    fn unclaimed_log_directories_are_reported() {
        let repaired = Repaired {
            kept_to: Epoch::new(7),
            stored_to: Epoch::new(9),
            given_up: GivenUp::default(),
            corruptions: Vec::new(),
            copy: "/db/before-repair-1".into(),
            elsewhere: vec![("/log".into(), "/db/before-repair-1/elsewhere-0".into())],
            unread: Vec::new(),
            unopened: Vec::new(),
            unclaimed: None,
        };
        let claimed = lines(&repaired, Some(Epoch::new(7)));
        assert_eq!(claimed.last().unwrap(), "those of /log: /db/before-repair-1/elsewhere-0");
        let error = "cannot rename /log/OWNER.new: Input/output error".to_owned();
        let unclaimed = lines(&Repaired { unclaimed: Some(error.clone()), ..repaired }, Some(Epoch::new(7)));
        assert_eq!(unclaimed.split_last().unwrap().1, claimed);
        let told = unclaimed.last().unwrap();
        assert!(told.contains("the next opening does") && told.ends_with(&error), "{told}");
    }
}
