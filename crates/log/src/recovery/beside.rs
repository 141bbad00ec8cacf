//! Reading a database beside the process that has it open.
//!
//! Nothing is locked and nothing is changed, so the one that writes goes on as if nobody read: it logs, seals, renames and removes log
//! files, installs checkpoints, ends, and is opened again. What is found is one consistent point all the same:
//! 1. read the manifest, list its log directories, and open every file that counts: a file that is open can be read to its end, also
//!    when it is removed ([`ensilo_disk::Disk::open_kept`]);
//! 2. find out up to which epoch the log goes, and cut each log that is being written behind what that takes ([`tails`]);
//! 3. survey and replay the files so cut, as an opening does those of a database that nobody has open.
//!
//! # Invariants
//! - `B1` Whether something is damaged is said of files that do not change: behind the cut all is taken for not written.
//! - `B2` All that was acknowledged as stored before the manifest was read is found: it lay in files that have been in the list then.
//! - `B3` What fails while files come and go says nothing. It is an error if the same is wrong with the same file twice, and neither the
//!   manifest nor the lists have changed since they were read. Otherwise all begins anew, [`ATTEMPTS_MAX`] times at most; what is wrong
//!   the last time is an error, too, if nothing has changed then.
//! - `B4` What is found without cuts, because something behind them is lost or cannot be read, is one point only if the logs do not grow:
//!   if two surveys in a row show the same ends.
//!
//! # Crash
//! The end of a log may have been written and not synced. It counts here, as for the process that writes it and for the next opening
//! after the end of that process; after a power failure it may be gone.

mod captured_disk;
mod tails;

use std::mem::{self, Discriminant};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ensilo_disk::{Disk, LockHeld};
use ensilo_epoch::Epoch;

use self::captured_disk::CapturedDisk;
use super::corruption::CorruptionKind;
use super::directory::manifest_of;
use super::directory_locks::{DirectoryLocks, LockedDirectory};
use super::error::OpenError;
use super::file_names::LOCK;
use super::inspect::{Found, ReadOnlyFiles, sound_survey};
use super::log_file::list_log_files;
use super::named_files::NamedFiles;
use super::scan::LogFileScan;
use super::survey::Survey;
use crate::format::{LogFileName, Manifest};

/// How often the files are looked at before it is given up.
const ATTEMPTS_MAX: u32 = 20;
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Looks at the database in `dir`, to read it, whether or not another process of the same machine has it open to write, and without keeping
/// any from that. Changes nothing. The files that were found can be read for as long as this lives, or what was opened of them; their place
/// on the disk stays taken meanwhile. Each takes a handle of the process, and a second one from its replay on.
///
/// # Errors
/// [`OpenError`] when there is no database, or it is damaged; [`OpenError::Changing`] when its files changed faster than they could be
/// opened.
pub fn inspect_beside(disk: &Arc<dyn Disk>, dir: &Path) -> Result<ReadOnlyFiles, OpenError> {
    let mut before: Option<Symptom> = None;
    let mut attempt = 1;
    loop {
        let Failed { error, has_changed } = match look(disk, dir) {
            Ok(found) => return Ok(found),
            Err(failed) => failed,
        };
        let symptom = Symptom::of(&error);
        let is_last = attempt >= ATTEMPTS_MAX;
        if !has_changed && (is_last || before.as_ref() == Some(&symptom)) {
            return Err(error);
        }
        if is_last {
            return Err(changing(dir, attempt, error));
        }
        before = Some(symptom);
        thread::sleep(PAUSE_MAX.min(Duration::from_millis(1 << (attempt - 1).min(6))));
        attempt += 1;
    }
}

/// Returns which process has the database in `dir` open to write, as far as that can be found out without a lock. It is for
/// messages: the next moment it may be another one.
#[must_use]
pub fn writer_of(disk: &dyn Disk, dir: &Path) -> Option<LockHeld> {
    disk.lock_holder(&dir.join(LOCK))
}

impl ReadOnlyFiles {
    /// Returns whether another manifest has taken the place of the one that was found, so that files may be gone. `disk` is that of the database: what
    /// was found beside a writer is read from what was open then.
    #[must_use]
    pub fn were_replaced(&self, disk: &dyn Disk) -> bool {
        let dir = &self.found().directory().dir;
        self.found().manifest().is_some_and(|found| is_replaced(disk, dir, found))
    }
}

/// Why an attempt has found nothing that can be read.
struct Failed {
    error: OpenError,
    /// Whether files came or went meanwhile, or grew where they must not.
    has_changed: bool,
}

/// What is wrong, without the epochs and offsets that grow while others write.
#[derive(Debug, PartialEq, Eq)]
enum Symptom {
    Corrupt(PathBuf, Discriminant<CorruptionKind>),
    Other(String),
}

impl Symptom {
    fn of(error: &OpenError) -> Symptom {
        match error.corruption() {
            Some(corruption) => {
                Symptom::Corrupt(corruption.file.clone(), mem::discriminant(&corruption.kind))
            }
            None => Symptom::Other(error.to_string()),
        }
    }
}

fn look(disk: &Arc<dyn Disk>, dir: &Path) -> Result<ReadOnlyFiles, Failed> {
    // A manifest that cannot be read cannot be compared either: the second time counts.
    let manifest = manifest_of(&**disk, dir).map_err(|error| Failed { error, has_changed: false })?;
    let names = names_of(&**disk, dir, &manifest);
    look_once(disk, dir, &manifest, Cutting::AtDurableEpoch).map_err(|error| {
        let has_grown = matches!(error, OpenError::Changing { .. });
        let has_changed = has_grown || has_changed(&**disk, dir, &manifest, &names);
        Failed { error, has_changed }
    })
}

/// Returns that the files have changed during so many attempts, the last of which ended like this.
fn changing(dir: &Path, attempts: u32, last: OpenError) -> OpenError {
    let last = match last {
        OpenError::Changing { last, .. } => last,
        error => error.to_string(),
    };
    OpenError::Changing { directory: dir.to_path_buf(), attempts, last }
}

/// Where log files are cut that are being written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cutting {
    AtDurableEpoch,
    /// A mistake that tests have to find.
    #[cfg(test)]
    Nowhere,
}

/// Finds the files as they are, once. What fails may fail because of the one that writes.
pub(super) fn look_once(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    manifest: &Manifest,
    cutting: Cutting,
) -> Result<ReadOnlyFiles, OpenError> {
    NamedFiles { disk: &**disk, dir, manifest }.check_owners()?;
    let mut captured = CapturedDisk::capture(disk, dir, manifest)?;
    let cuts = match cutting {
        Cutting::AtDurableEpoch => tails::find_cuts(&captured, dir, manifest),
        #[cfg(test)]
        Cutting::Nowhere => Ok(None),
    };
    let is_cut = match cuts {
        Ok(Some(cuts)) => {
            captured.cut(&cuts);
            true
        }
        // Something is damaged, and the survey says what it means.
        Ok(None) => false,
        Err(error) if error.is_unreadable() => false,
        Err(error) => return Err(error),
    };
    let survey = sound_survey(&captured, dir, manifest)?;
    if !is_cut && !has_same_ends(&survey, &sound_survey(&captured, dir, manifest)?) {
        let last =
            "log files of which something cannot be read, or is lost, were written meanwhile".to_owned();
        return Err(OpenError::Changing { directory: dir.to_path_buf(), attempts: 1, last });
    }
    let locks = DirectoryLocks::none();
    let directory = LockedDirectory { disk: Arc::new(captured), dir: dir.to_path_buf(), locks };
    Ok(ReadOnlyFiles::new(Found::new(directory, Some((manifest.clone(), survey)))))
}

/// Returns whether two surveys have found the same in all log files that they have looked into.
fn has_same_ends(left: &Survey, right: &Survey) -> bool {
    scans_of(left).eq(scans_of(right))
}

fn scans_of(survey: &Survey) -> impl Iterator<Item = (&Path, Option<&LogFileScan>)> {
    let files = survey.chains.iter().flat_map(|chain| chain.files.iter().chain(&chain.unreached));
    files.map(|file| (file.path.as_path(), file.scan.as_ref()))
}

/// The log files by directory; `None` for a directory that could not be listed.
type Names = Vec<Option<Vec<LogFileName>>>;

fn names_of(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Names {
    let directories = manifest.log_directories().into_iter();
    directories.map(|spelled| list_log_files(disk, &dir.join(spelled)).ok()).collect()
}

/// Returns whether anything was made, renamed, removed or installed since the manifest was read.
fn has_changed(disk: &dyn Disk, dir: &Path, manifest: &Manifest, names: &Names) -> bool {
    is_replaced(disk, dir, manifest) || names_of(disk, dir, manifest) != *names
}

/// Returns whether the manifest there says more than another durable epoch.
fn is_replaced(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> bool {
    let files_of = |manifest: &Manifest| Manifest { durable_epoch: Epoch::default(), ..manifest.clone() };
    manifest_of(disk, dir).map_or(true, |now| files_of(&now) != files_of(manifest))
}
