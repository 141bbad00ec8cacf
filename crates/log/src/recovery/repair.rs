//! Giving up what damage has made unreachable: only on request, and with a copy of everything as it was.
//!
//! Two kinds of damage can be mended. Behind damage of the log nothing counts any more: the next generation
//! begins after what can be reached. Records that stand in the checkpoint twice are left out of it where they
//! are damaged: the next generation's manifest does not name that part. Any other damage is left as it is,
//! and named; then nothing else is changed either.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::chain::Depth;
use super::copy::{copy_file, copy_open_file, free_name};
use super::corruption::{Corruption, DataLoss, worst_of};
use super::created_paths::CreatedPaths;
use super::database_files::{checkpoint_number, remove_directory};
use super::directory::check_is_database;
use super::directory_locks::{DirectoryLocks, LockedDirectory};
use super::error::OpenError;
use super::file_access::{exists, list, make_directory, remove_if_there, sync_dir};
use super::file_names::{BEFORE_REPAIR, MANIFEST, MANIFEST_COPY, OWNER};
use super::forgiving::{ForgivingDisk, Unopened};
use super::generation::GenerationOptions;
use super::given_up::{GivenUp, count_given_up};
use super::inspect::{Found, without_copies};
use super::log_file::list_log_files;
use super::manifest_file::{leads_outside, read_manifest};
use super::named_files::SuspectFiles;
use super::progress::Progress;
use super::replay::replay;
use super::replay_file::ReplayFile;
use super::survey::{Survey, before};
use super::unread_list::UnreadList;
use super::unsynced::sync_kept;
use super::verify::{Nowhere, verify_locked};
use crate::format::Manifest;

/// What a repair has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Everything up to this epoch is there, and nothing after it.
    pub kept_to: Epoch,
    /// Everything up to this epoch is known to have been stored: what lies between is given up. More may have
    /// been stored.
    pub stored_to: Epoch,
    /// How much of what is given up could still be read.
    pub given_up: GivenUp,
    /// What was damaged.
    pub corruptions: Vec<Corruption>,
    /// A directory with all files as they were, but for what the system could not read.
    pub copy: PathBuf,
    /// Files of which the system could not read so many bytes. In the copy a text stands in their place that
    /// says so. The files themselves are not removed as long as the copy is there.
    pub unread: Vec<(PathBuf, u64)>,
    /// Files and directories of which the system could read nothing. In the copy the files are empty, and so
    /// are the directories. They stay, too.
    pub unopened: Vec<Unopened>,
    /// Log directories outside of the database's, each with the directory in the copy that has its files.
    pub elsewhere: Vec<(PathBuf, PathBuf)>,
    /// The error of the system when `OWNER` could not be written into each log directory for the repaired
    /// database. It is repaired all the same: nothing was logged since, and the next opening does it again.
    pub unclaimed: Option<String>,
}

/// Gives up all transactions of the damaged database in `dir` after an epoch, so that it can be opened again;
/// with `None` nothing that was stored may be given up. A damaged part of the checkpoint of which everything
/// stands in other parts too is left out of it. All files are first copied to `before-repair-<n>` in `dir`,
/// as far as the system can read them; `docs/format.md` says how a repair is undone with them.
///
/// # Errors
/// [`OpenError::Refused`] when nothing is damaged; when not even everything up to that epoch is there, or the
/// epoch is before the end of the checkpoint, and it says which epochs may be asked for; when nothing of the
/// log is lost that could be given up; and when something can be read that could not be read a moment before.
/// [`OpenError::Corrupt`] for damage that no repair mends; what is left can be had by [`crate::salvage`]. The
/// other errors as in [`crate::inspect`]. The database is as it was, and the copy is gone, with all else that
/// was made, unless the last step failed, the sync of a manifest that is in place: then it is as it was or
/// repaired, and the copy stays. What fails after that is no error ([`Repaired::unclaimed`]), nor is it that
/// a checkpoint or log file which nothing needs cannot be removed.
pub fn repair(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    accept_loss_after: Option<Epoch>,
) -> Result<Repaired, OpenError> {
    check_is_database(&**disk, dir)?;
    let mut locks = DirectoryLocks::of_opening(&**disk, dir, CreatedPaths::new(disk))?;
    let manifest = locks.add_checked(&**disk, dir)?;
    let read = ForgivingDisk::new(&**disk);
    let source = SuspectFiles::new(&read, dir, &manifest);
    let mut found = source.survey(Depth::Full)?;
    let lost_copies = find_lost_copies(&source, &mut found)?;
    if found.corruptions.is_empty() {
        return Err(unseen_corruption(&**disk, dir)?);
    }
    let kept_to = check_request(&manifest, &found, accept_loss_after)?;
    let files = found.replay_files(dir, &without_copies(&manifest, &lost_copies), kept_to);
    if let Some(corruption) = corruptions_in(&source, &files)?.into_iter().next() {
        return Err(OpenError::from(corruption));
    }
    sync_kept(&**disk, dir, &files, &found.chains)?;
    let given_up = count_given_up(&read, &found, kept_to)?;
    let copied = ForgivingDisk::new(&**disk);
    check_still_unread(&read, &copied, dir)?;
    let (copy, elsewhere) = copy_all(&SuspectFiles::new(&copied, dir, &manifest))?;
    let stored_to = found.stored_epoch(&manifest);
    let repaired = Repaired {
        kept_to,
        stored_to,
        given_up,
        corruptions: found.corruptions.clone(),
        copy,
        unread: copied.unread(),
        unopened: copied.unopened(),
        elsewhere,
        unclaimed: None,
    };
    let options = GenerationOptions {
        directories: manifest.loggers.iter().map(|logger| dir.join(&logger.directory)).collect(),
        file_bytes: 0,
        first_epoch: Epoch::new(found.largest_epoch.max(stored_to).get() + 1),
    };
    let before = manifest.clone();
    let directory = LockedDirectory { disk: Arc::clone(disk), dir: dir.to_path_buf(), locks };
    let found = Found::new(directory, Some((manifest, found)));
    match found.without_copies(lost_copies).generation_after(&options, kept_to) {
        Ok(installed) => {
            let unclaimed = installed.files().claim().err().map(|error| error.to_string());
            installed.remove_leftovers(Some(&before));
            Ok(Repaired { unclaimed, ..repaired })
        }
        Err(error) => {
            remove_unless_needed(&**disk, dir, before.generation, &repaired.copy);
            Err(error)
        }
    }
}

/// Removes the copy that a repair has made which failed, unless the manifest of the next generation may be in
/// place.
fn remove_unless_needed(disk: &dyn Disk, dir: &Path, generation: u64, copy: &Path) {
    if let Ok(Some(manifest)) = read_manifest(disk, dir)
        && manifest.generation == generation
    {
        // What cannot be removed does no harm.
        let _ = remove_directory(disk, copy);
    }
}

/// Returns why there is nothing to repair where the files are all there and the log is whole: the worst that
/// reading all of them finds, which no repair mends, or that it finds nothing.
fn unseen_corruption(disk: &dyn Disk, dir: &Path) -> Result<OpenError, OpenError> {
    let mut worst: Option<Corruption> = None;
    verify_locked(disk, dir, &mut |corruption| {
        if worst.as_ref().is_none_or(|worst| worst.loss < corruption.loss) {
            worst = Some(corruption);
        }
    })?;
    Ok(worst.map_or_else(nothing_is_damaged, |corruption| OpenError::Corrupt(Box::new(corruption))))
}

fn nothing_is_damaged() -> OpenError {
    OpenError::Refused("nothing is damaged, and nothing was given up".to_owned())
}

/// Reads the parts of the checkpoint with records that other parts have too. Returns the numbers of those
/// that are damaged, and adds the damage that the survey did not come upon.
fn find_lost_copies(source: &SuspectFiles<'_>, found: &mut Survey) -> Result<Vec<u32>, OpenError> {
    let files = found.replay_files(source.dir, source.manifest, found.durable_epoch);
    let mut lost = Vec::new();
    for (file, number) in files.iter().filter_map(|file| Some((file, file.copy_number()?))) {
        let is_known = found.corruptions.iter().any(|corruption| corruption.file == file.path);
        if !is_known {
            let corruptions = corruptions_in(source, std::slice::from_ref(file))?;
            if corruptions.is_empty() {
                continue;
            }
            found.corruptions.extend(corruptions);
        }
        lost.push(number);
    }
    Ok(lost)
}

/// Returns every corruption of the first of these files in which a replay comes upon any.
fn corruptions_in(source: &SuspectFiles<'_>, files: &[ReplayFile]) -> Result<Vec<Corruption>, OpenError> {
    match replay(source.disk, files, &Nowhere, 1, &Progress::new()) {
        Err(OpenError::Corrupt(corruption)) => source.corruptions_of(&corruption),
        replayed => replayed.map(|_| Vec::new()),
    }
}

/// Returns the epoch up to which a repair keeps everything, if it can be made as it was asked for.
fn check_request(
    manifest: &Manifest,
    found: &Survey,
    accept_loss_after: Option<Epoch>,
) -> Result<Epoch, OpenError> {
    let Some(worst) = worst_of(&found.corruptions) else {
        return Err(nothing_is_damaged());
    };
    let refused = |why| Err(OpenError::Refused(why));
    if let Some(epoch) = accept_loss_after
        && let (first, last) = manifest.all_with(epoch)
        && epoch < last
    {
        return refused(format!(
            "epochs {first} to {last} were one in the version that wrote the log, and are kept or given up as one: accept the loss of \
             everything after epoch {}, or after epoch {last}",
            before(first)
        ));
    }
    match (worst.loss, accept_loss_after) {
        (DataLoss::Copies, Some(epoch)) if epoch < found.durable_epoch => refused(format!(
            "nothing of the log is lost, and all up to epoch {} is there: accept no loss",
            found.durable_epoch
        )),
        (DataLoss::Copies, _) => Ok(found.durable_epoch),
        (DataLoss::After(reachable), epoch) => {
            keep_to(epoch, manifest.checkpoint_end(), reachable).map_err(OpenError::Refused)
        }
        _ => Err(OpenError::Corrupt(Box::new(worst.clone()))),
    }
}

/// Returns the epoch that was asked for, if everything up to it can be had: the log reaches up to
/// `reachable`, and without the log up to `end` the checkpoint is no state that ever was. Otherwise which
/// epochs may be asked for.
fn keep_to(asked: Option<Epoch>, end: Option<Epoch>, reachable: Epoch) -> Result<Epoch, String> {
    let earliest = end.unwrap_or_default();
    match asked {
        Some(epoch) if epoch < earliest => Err(format!(
            "the checkpoint ends with epoch {earliest}, and is of no use without everything up to there: accept the loss of everything \
             after epoch {reachable}, or after an earlier one down to epoch {earliest}"
        )),
        Some(epoch) if epoch <= reachable => Ok(epoch),
        _ => Err(format!(
            "transactions after epoch {reachable} are lost already: accept the loss of everything after epoch {reachable}, or after an \
             earlier one down to epoch {earliest}"
        )),
    }
}

/// Refuses to give up what could not be read when it was looked for, and can be read when it is to be copied.
fn check_still_unread(
    read: &ForgivingDisk<'_>,
    again: &ForgivingDisk<'_>,
    dir: &Path,
) -> Result<(), OpenError> {
    match read.first_readable_by(again).map_err(OpenError::io("read", dir))? {
        None => Ok(()),
        Some(path) => Err(OpenError::Refused(format!(
            "{}: what could not be read can be read now; try again",
            path.display()
        ))),
    }
}

/// A directory outside of a database's, and the one in a copy that has its files.
type Elsewhere = (PathBuf, PathBuf);

/// Copies all files of a database, as far as they can be read, within its directory; returns where they are,
/// and which directory there stands for which other one. If that fails, what was copied is removed.
fn copy_all(source: &SuspectFiles<'_>) -> Result<(PathBuf, Vec<Elsewhere>), OpenError> {
    let disk = source.disk.disk();
    let target = free_name(disk, source.dir, BEFORE_REPAIR)?;
    match copy_to(source, &target) {
        Ok(elsewhere) => Ok((target, elsewhere)),
        Err(error) => {
            // What cannot be removed does no harm.
            let _ = remove_directory(disk, &target);
            Err(error)
        }
    }
}

/// Copies all files of a database, the manifest last: a copy that has it is complete. The copy of the
/// manifest is one of them.
fn copy_to(source: &SuspectFiles<'_>, target: &Path) -> Result<Vec<Elsewhere>, OpenError> {
    let (disk, dir) = (source.disk.disk(), source.dir);
    make_directory(disk, target)?;
    let elsewhere = copy_logs(source, target)?;
    copy_checkpoints(source.disk, dir, target)?;
    UnreadList::write(source.disk, dir, target)?;
    let (copy, copied) = (dir.join(MANIFEST_COPY), target.join(MANIFEST_COPY));
    if exists(disk, &copy)? && copy_file(disk, &copy, &copied, None, &mut |_| Ok(())).is_err() {
        // A copy that cannot be read is none: nothing but a salvage asks for it.
        remove_if_there(disk, &copied)?;
    }
    copy_file(disk, &dir.join(MANIFEST), &target.join(MANIFEST), None, &mut |_| Ok(()))?;
    sync_dir(disk, target)?;
    Ok(elsewhere)
}

/// Copies the log files, and the `OWNER` files beside them.
fn copy_logs(files: &SuspectFiles<'_>, target: &Path) -> Result<Vec<Elsewhere>, OpenError> {
    let source = files.disk;
    let mut elsewhere = Vec::new();
    for (number, spelled) in files.manifest.log_directories().into_iter().enumerate() {
        let from = files.dir.join(spelled);
        if !exists(source, &from)? {
            continue;
        }
        let mut to = target.join(spelled);
        if leads_outside(Path::new(spelled)) {
            // It gets a name here.
            to = target.join(format!("elsewhere-{number}"));
            elsewhere.push((from.clone(), to.clone()));
        }
        make_directory(source.disk(), &to)?;
        for name in list_log_files(source, &from)? {
            let name = name.to_string();
            copy_what_can_be_read(source, &from.join(&name), &to.join(&name))?;
        }
        let owner = from.join(OWNER);
        if exists(source, &owner)? {
            copy_what_can_be_read(source, &owner, &to.join(OWNER))?;
        }
        sync_dir(source.disk(), &to)?;
    }
    Ok(elsewhere)
}

/// Copies all checkpoints, also those that the manifest does not name: it may be an older one that was put
/// back.
fn copy_checkpoints(source: &ForgivingDisk<'_>, dir: &Path, target: &Path) -> Result<(), OpenError> {
    let listed = list(source, dir)?;
    for entry in listed.iter().filter(|entry| checkpoint_number(entry).is_some()) {
        let (from, to) = (dir.join(&entry.name), target.join(&entry.name));
        make_directory(source.disk(), &to)?;
        let parts = list(source, &from)?;
        for part in parts.iter().filter(|part| part.is_file) {
            copy_what_can_be_read(source, &from.join(&part.name), &to.join(&part.name))?;
        }
        sync_dir(source.disk(), &to)?;
    }
    Ok(())
}

fn copy_what_can_be_read(source: &ForgivingDisk<'_>, from: &Path, to: &Path) -> Result<(), OpenError> {
    let file = source.open_read(from).map_err(OpenError::io("open", from))?;
    copy_open_file(source.disk(), &*file, from, to, None, &mut |_| Ok(())).map(|_| ())
}
