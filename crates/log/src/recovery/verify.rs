//! Reading everything, to report what is damaged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::chain::Depth;
use super::corruption::{Corruption, CorruptionKind, DataLoss};
use super::directory::{either_manifest, read_either_manifest};
use super::directory_locks::{DirectoryLocks, LockMode};
use super::error::{OpenError, ReplayError};
use super::file_names::{OWNER, UNFINISHED};
use super::forgiving::ForgivingDisk;
use super::log_file::list_log_files;
use super::manifest_file::corruption_of_copy;
use super::named_files::{NamedFiles, SuspectFiles};
use super::progress::Progress;
use super::replay::{Replay, Replayed, replay};
use super::replay_file::ReplayFile;
use super::row_check::RowCheck;
use super::survey::before;
use crate::format::{BlockError, Manifest, Write};

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// What was read and found in order.
    pub replayed: Replayed,
    /// How many files were read and found in order.
    pub files: u64,
    /// How many damages were reported.
    pub corruptions: u64,
    /// The last epoch of which an opening would bring anything back; `None` if there is damage.
    pub durable_epoch: Option<Epoch>,
    /// The first and the last of the epochs before that one of which nothing counts: of the time between the
    /// last two openings, or given up by a repair. `None` if there are none, or that is not known any more.
    pub void: Option<(Epoch, Epoch)>,
    /// Whether the manifest is damaged or missing, and its copy has said what to read.
    pub is_by_copy: bool,
}

/// Reads all files of the database in `dir` that count, and reports every damage, also what lies behind
/// another one. Changes nothing, and needs no right to write; nobody can open the database meanwhile. It
/// takes memory for the keys of the rows that the log changes word by word, less than an opening takes, and
/// reads everything twice if there are any.
///
/// If the manifest is damaged that is reported first, and the copy of it says what else to read. A copy that
/// cannot be read either is reported too, and nothing more.
///
/// # Errors
/// [`OpenError`] when there is no database, another process has it open, or the system fails. Damage is no
/// error here.
pub fn verify(
    disk: &dyn Disk,
    dir: &Path,
    report: &mut dyn FnMut(Corruption),
) -> Result<Verified, OpenError> {
    let disk = &ForgivingDisk::new(disk);
    if let Err(error) = read_either_manifest(disk, dir)
        && error.corruption().is_none()
    {
        return Err(error);
    }
    let mut locks = DirectoryLocks::of_database(disk, dir, LockMode::Shared)?;
    let read = read_either_manifest(disk, dir);
    if let Ok((manifest, _)) = &read {
        locks.add_named(&NamedFiles { disk, dir, manifest })?;
    }
    verify_read(disk, dir, read, report)
}

/// Verifies a database that the caller has locked.
pub(super) fn verify_locked(
    disk: &dyn Disk,
    dir: &Path,
    report: &mut dyn FnMut(Corruption),
) -> Result<Verified, OpenError> {
    let disk = &ForgivingDisk::new(disk);
    verify_read(disk, dir, either_manifest(disk, dir), report)
}

/// Verifies a database, of which so much was found of the manifest or its copy.
fn verify_read(
    disk: &ForgivingDisk<'_>,
    dir: &Path,
    read: Result<(Manifest, Option<Corruption>), OpenError>,
    report: &mut dyn FnMut(Corruption),
) -> Result<Verified, OpenError> {
    let mut verified = Verified::default();
    let manifest = match read {
        Ok((manifest, None)) => manifest,
        Ok((manifest, Some(corruption))) => {
            report(disk.cause_of(corruption));
            verified = Verified { corruptions: 1, is_by_copy: true, ..verified };
            manifest
        }
        Err(OpenError::Corrupt(corruption)) => {
            report(disk.cause_of(*corruption));
            let copy = corruption_of_copy(disk, dir)?;
            let corruptions = 1 + u64::from(copy.is_some());
            copy.into_iter().for_each(|corruption| report(disk.cause_of(corruption)));
            return Ok(Verified { corruptions, ..verified });
        }
        Err(error) => return Err(error),
    };
    let files = SuspectFiles::new(disk, dir, &manifest);
    let owners = files.corruptions_of_owners()?;
    let owners = owners.into_iter().map(|corruption| disk.cause_of(corruption));
    let corruptions: Vec<Corruption> = owners.chain(not_looked_for(&files)).collect();
    let found = files.survey(Depth::Full)?;
    let (looked_at, rows) = (BTreeSet::new(), RowCheck::default());
    let mut verification = Verification { files: &files, report, verified, looked_at, rows };
    corruptions.into_iter().for_each(|corruption| verification.report_one(corruption));
    verification.report_all(&found.corruptions)?;
    let files = found.replay_files(dir, &manifest, found.durable_epoch);
    files.iter().try_for_each(|file| verification.replay(file))?;
    if let Some(loss) = loss_of_log(&found.corruptions) {
        verification.check_unreached(loss)?;
    }
    verification.check_rows(&files)?;
    let mut verified = verification.verified;
    if verified.corruptions == 0 {
        verified.durable_epoch = Some(manifest.counted_to(found.durable_epoch));
        verified.void = void_epochs(&manifest, found.durable_epoch);
    }
    Ok(verified)
}

/// Returns the files that the system could not look for, and that would say that the database is another
/// one's or not whole.
fn not_looked_for(files: &SuspectFiles<'_>) -> Vec<Corruption> {
    let owners = files.log_directories().map(|directory| directory.join(OWNER));
    let looked_for = owners.chain([files.dir.join(UNFINISHED)]);
    let failures = looked_for.flat_map(|file| files.disk.failures_in(&file));
    let failures =
        failures.filter(|place| matches!(place.kind, CorruptionKind::Unopened { doing: "look for", .. }));
    failures.map(|place| place.with_loss(DataLoss::Everything)).collect()
}

/// Returns what is lost of the log with all these corruptions together. Those of the checkpoint have nothing
/// to do with it.
fn loss_of_log(corruptions: &[Corruption]) -> Option<DataLoss> {
    let losses = corruptions.iter().map(|corruption| corruption.loss);
    losses.filter(|&loss| loss != DataLoss::Leftover && !loss.is_of_checkpoint()).max()
}

/// Returns the epochs between the generations before and the present one, if something of that one counts.
fn void_epochs(manifest: &Manifest, durable_epoch: Epoch) -> Option<(Epoch, Epoch)> {
    let (first, last) = (Epoch::new(manifest.durable_epoch.get() + 1), before(manifest.first_epoch));
    (manifest.generation > 1 && durable_epoch > last && first <= last).then_some((first, last))
}

/// A look at everything.
struct Verification<'v> {
    files: &'v SuspectFiles<'v>,
    report: &'v mut dyn FnMut(Corruption),
    verified: Verified,
    /// The files of which all is known.
    looked_at: BTreeSet<PathBuf>,
    rows: RowCheck,
}

impl Verification<'_> {
    /// Reports damages, each with what lies behind it in its file.
    fn report_all(&mut self, corruptions: &[Corruption]) -> Result<(), OpenError> {
        for corruption in corruptions {
            self.report_one(corruption.clone());
            if self.looked_at.insert(corruption.file.clone()) {
                self.report_rest(corruption, corruptions)?;
            }
        }
        Ok(())
    }

    fn report_one(&mut self, corruption: Corruption) {
        self.verified.corruptions += 1;
        (self.report)(corruption);
    }

    /// Reports what else is wrong within the file of this damage, which is one of those that are `known`.
    fn report_rest(&mut self, corruption: &Corruption, known: &[Corruption]) -> Result<(), OpenError> {
        if corruption.kind.is_foreign() || matches!(corruption.kind, CorruptionKind::Unopened { .. }) {
            return Ok(());
        }
        let Some(checked) = self.files.check_known(&corruption.file)? else {
            return Ok(());
        };
        let was_cut = matches!(corruption.kind, CorruptionKind::NoEnd | CorruptionKind::Cut { .. });
        for (offset, kind) in checked.corruptions {
            let is_known =
                known.iter().any(|other| other.file == corruption.file && other.offset == Some(offset));
            // A file that was cut ends within a block.
            let is_cut = matches!(kind, CorruptionKind::Block(BlockError::Length) | CorruptionKind::NoEnd);
            if !(is_known || was_cut && is_cut) {
                self.report_one(Corruption { offset: Some(offset), kind, ..corruption.clone() });
            }
        }
        Ok(())
    }

    /// Reads a file as an opening does.
    fn replay(&mut self, file: &ReplayFile) -> Result<(), OpenError> {
        if !self.looked_at.insert(file.path.clone()) {
            return Ok(());
        }
        match replay(self.files.disk, std::slice::from_ref(file), &self.rows, 1, &Progress::new()) {
            Ok(replayed) => {
                self.verified.files += 1;
                self.verified.replayed.add(&replayed);
                Ok(())
            }
            Err(OpenError::Corrupt(corruption)) => {
                let corruptions = self.files.corruptions_of(&corruption)?;
                corruptions.into_iter().for_each(|corruption| self.report_one(corruption));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Reads everything once more if rows are changed by patches, to see whether they are there. Where
    /// something else is wrong they need not be.
    fn check_rows(&mut self, files: &[ReplayFile]) -> Result<(), OpenError> {
        let of_manifest = u64::from(self.verified.is_by_copy);
        if self.verified.corruptions > of_manifest || !self.rows.has_patches() {
            return Ok(());
        }
        replay(self.files.disk, files, &self.rows, 1, &Progress::new())?;
        self.rows.corruptions(self.files.dir).into_iter().for_each(|corruption| self.report_one(corruption));
        Ok(())
    }

    /// Reads the log files that an opening does not come to, because damage lies before them.
    fn check_unreached(&mut self, loss: DataLoss) -> Result<(), OpenError> {
        for directory in self.files.log_directories_there()? {
            for name in list_log_files(self.files.disk, &directory)? {
                let file = directory.join(name.to_string());
                if self.files.manifest.is_done_with(&name) || self.looked_at.contains(&file) {
                    continue;
                }
                let Some(checked) = self.files.check_known(&file)? else { continue };
                for (offset, kind) in &checked.corruptions {
                    let (file, kind) = (file.clone(), kind.clone());
                    self.report_one(Corruption { file, offset: Some(*offset), kind, loss });
                }
                if checked.corruptions.is_empty() && checked.blocks > 0 {
                    self.verified.files += 1;
                    self.verified.replayed.log_bytes += checked.bytes;
                    self.verified.replayed.writes += checked.writes;
                }
            }
        }
        Ok(())
    }
}

/// Takes everything and keeps nothing.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Replay for Nowhere {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), _: &[Write<'_>]) -> Result<(), ReplayError> {
        Ok(())
    }
}
