//! Saving what is left of a damaged database into a new one.
//!
//! A repair gives up the end of a log, and what it keeps is a state that was. There is no such way where a
//! checkpoint is damaged: rows that did not change since are nowhere else. A salvage reads every valid block
//! of the checkpoint, and the log as far as it counts, and makes a new database of the rows that are whole.
//! What is lost it lists.
//!
//! # Invariants
//! - S1: the damaged database is only read, as its manifest says, or the copy of that if it is damaged.
//! - S2: a row is taken whole or not at all. A row of which only changes are left is lost.
//! - S3: the new database can be opened only when all of it is written, synced and verified.

mod part;
mod rows;
mod write;

pub use part::UnreadableRecords;
pub use rows::RecordKey;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use self::part::{Origin, read_part};
use self::rows::{Kept, RowCollector};
use self::write::write_database;
use super::chain::Depth;
use super::checkpoint_writer::DEFINITION_TABLES;
use super::corruption::{Corruption, CorruptionKind, DataLoss};
use super::directory::read_either_manifest;
use super::directory_locks::{DirectoryLocks, LockMode};
use super::error::OpenError;
use super::file_names::OWNER;
use super::forgiving::{ForgivingDisk, Unopened};
use super::given_up::{GivenUp, count_given_up};
use super::named_files::{NamedFiles, SuspectFiles};
use super::progress::Progress;
use super::replay::replay;
use super::replay_file::{loss_of, part_identity};
use super::survey::Survey;
use super::target::TargetDirectory;
use crate::format::{CheckpointPart, LogFileName};

/// What a salvage has saved, and what not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// What is wrong with the manifest, if anything is: then the copy beside it says which files count. That
    /// was written when the database was last opened, or its checkpoint installed; what was stored since is
    /// known from the log alone.
    pub manifest: Option<Corruption>,
    /// Tables, by number, of which anything was saved or lost.
    pub tables: Vec<SalvagedTable>,
    /// Changes of transactions up to this epoch were applied, and of none after it.
    pub kept_to: Epoch,
    /// Everything up to this epoch is known to have been stored.
    pub stored_to: Epoch,
    /// If not `None`, the log does not reach up to this epoch, the end of the checkpoint: the rows are not
    /// those of one moment, but of several between the two epochs.
    pub mixed_to: Option<Epoch>,
    /// How much of the log that is given up could still be read.
    pub given_up: GivenUp,
    /// What a look at the files has found. The places that cannot be read in the checkpoint are in
    /// `unreadable`.
    pub corruptions: Vec<Corruption>,
    /// The places in the checkpoint that cannot be read. Their records are lost unless they changed since or
    /// stand in it twice: see [`SalvagedTable::lost_records`].
    pub unreadable: Vec<UnreadableRecords>,
    /// Parts of the checkpoint that are not those that the manifest describes, but belong to a copy of the
    /// database that has gone on by itself. Their records were taken, for want of others: rows may be older
    /// or newer than those of this database, missing, or too many.
    pub other_parts: Vec<PathBuf>,
    /// Files of which the system could not read so many bytes. Nothing of them counts.
    pub unread: Vec<(PathBuf, u64)>,
    /// Files and directories of which the system could read nothing.
    pub unopened: Vec<Unopened>,
}

/// What a salvage could not save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SalvageLoss {
    /// Nothing that is known to have been stored.
    Nothing,
    /// Nothing that is known of. But the copy of the manifest was gone by, which may be older than the
    /// manifest was, or nothing says whether a log directory is as old as the manifest: what was stored last
    /// may be lost without a trace.
    Uncertain,
    /// Rows, or changes of them.
    Rows,
    /// Definitions of tables or indexes, too ([`DEFINITION_TABLES`]): the rows of a table without a
    /// definition cannot be read.
    Definitions,
}

/// A table of a salvaged database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SalvagedTable {
    /// Its number.
    pub table: u32,
    /// Its rows in the new database.
    pub rows: u64,
    /// Records of the checkpoint that could not be read. Those of rows that changed after it began are in the
    /// log, and were saved.
    pub lost_records: u64,
    /// Rows of which the log has only changes, and that are lost for want of what was changed.
    pub incomplete_rows: u64,
}

impl Salvaged {
    /// Returns what could not be saved.
    #[must_use]
    pub fn loss(&self) -> SalvageLoss {
        let is_of_owner = |corruption: &Corruption| corruption.file.ends_with(OWNER);
        let is_of_log =
            |corruption: &Corruption| !corruption.loss.is_of_checkpoint() && !is_of_owner(corruption);
        // Zeros at the end of a log may have been more of it.
        let is_log = |path: &Path| LogFileName::of(path).is_some();
        let is_short = self.stored_to > self.kept_to
            || self.mixed_to.is_some()
            || !self.other_parts.is_empty()
            || self.unread.iter().any(|(path, _)| is_log(path))
            || self.unopened.iter().any(|unopened| is_log(&unopened.path));
        let mut lossy = self.tables.iter().filter(|table| table.is_lossy()).peekable();
        if lossy.peek().is_none() && !is_short && !self.corruptions.iter().any(is_of_log) {
            let is_uncertain = self.manifest.is_some() || self.corruptions.iter().any(is_of_owner);
            return if is_uncertain { SalvageLoss::Uncertain } else { SalvageLoss::Nothing };
        }
        match lossy.any(|table| DEFINITION_TABLES.contains(&table.table)) {
            true => SalvageLoss::Definitions,
            false => SalvageLoss::Rows,
        }
    }
}

impl SalvagedTable {
    /// Returns whether any of its rows may be lost.
    fn is_lossy(&self) -> bool {
        self.lost_records > 0 || self.incomplete_rows > 0
    }
}

/// Makes a new database in `target`, which is empty or missing and lies in no database, of all rows of the
/// damaged database in `dir` that can be read. The new one is verified; it has a number of its own. As much
/// memory is needed as the rows take.
///
/// # Errors
/// [`OpenError`]; what was made of the new database is gone. [`OpenError::Corrupt`] if nothing says which
/// files belong to the database, neither by its manifest nor by the copy of it, or if a log directory is
/// older than the manifest; [`OpenError::OtherOwner`] if the log belongs to the database in another
/// directory, or the manifest, or its copy, is older than the log; [`OpenError::Refused`] for a target that
/// is none.
pub fn salvage(disk: &Arc<dyn Disk>, dir: &Path, target: &Path) -> Result<Salvaged, OpenError> {
    let corrupt = ForgivingDisk::new(&**disk);
    read_either_manifest(&corrupt, dir)?;
    let mut locks = DirectoryLocks::of_database(&corrupt, dir, LockMode::Shared)?;
    let (manifest, manifest_corruption) = read_either_manifest(&corrupt, dir)?;
    let source = SuspectFiles::new(&corrupt, dir, &manifest);
    locks.add_named(&source)?;
    let owner_corruptions = check_owners(&source, manifest_corruption.is_none())?;
    let target = TargetDirectory::claim(&**disk, &source, target)?;
    let written = source.read().and_then(|(salvaged, kept)| {
        write_database(disk, &target, &kept)?;
        Ok(salvaged)
    });
    if written.is_err() {
        // What cannot be removed does no harm.
        let _ = target.give_up(&[write::CHECKPOINT]);
    }
    let mut salvaged = written?;
    salvaged.corruptions.splice(..0, owner_corruptions);
    Ok(Salvaged { manifest: manifest_corruption, ..salvaged })
}

/// Checks that the log directories hold the log of this manifest. Returns what keeps that from being known of
/// some of them, which is no reason to stop if the manifest is the one that was in place: the header of a log
/// file names its database, too.
fn check_owners(files: &NamedFiles<'_>, is_in_place: bool) -> Result<Vec<Corruption>, OpenError> {
    let mut corruptions = files.corruptions_of_owners()?;
    let is_refused =
        |corruption: &Corruption| !is_in_place || corruption.kind == CorruptionKind::OlderDirectory;
    match corruptions.iter().position(is_refused) {
        Some(at) => Err(OpenError::Corrupt(Box::new(corruptions.swap_remove(at)))),
        None => {
            corruptions.extend(files.missing_owners()?);
            Ok(corruptions)
        }
    }
}

/// What was read of the checkpoint, but for its records.
#[derive(Default)]
struct ReadCheckpoint {
    unreadable: Vec<UnreadableRecords>,
    /// Parts that are not those of the manifest, with what that costs.
    others: Vec<(PathBuf, DataLoss)>,
}

impl SuspectFiles<'_> {
    /// Reads everything. What could be read at first, and then not any more, the survey has taken for sound:
    /// then all is done again, without it.
    fn read(&self) -> Result<(Salvaged, Kept), OpenError> {
        loop {
            let failures = self.disk.count_failures();
            match self.read_once() {
                Err(OpenError::Corrupt(_) | OpenError::Io { .. })
                    if self.disk.count_failures() > failures => {}
                read => return read,
            }
        }
    }

    fn read_once(&self) -> Result<(Salvaged, Kept), OpenError> {
        let mut found = self.survey(Depth::Full)?;
        let is_fatal = |corruption: &&Corruption| corruption.loss == DataLoss::Everything;
        if let Some(corruption) = found.corruptions.iter().find(is_fatal) {
            return Err(OpenError::Corrupt(Box::new(corruption.clone())));
        }
        let collector = RowCollector::default();
        let ReadCheckpoint { unreadable, others } = self.read_checkpoint(&collector)?;
        self.read_log(&found, &collector)?;
        let given_up = count_given_up(self.disk, &found, found.reachable_epoch)?;
        for (file, loss) in &others {
            let (file, kind) = (file.clone(), CorruptionKind::NotAsInstalled);
            let corruption = Corruption { file, offset: None, kind, loss: *loss };
            if !found.corruptions.contains(&corruption) {
                found.corruptions.push(corruption);
            }
        }
        let other_parts = others.into_iter().filter(|(_, loss)| *loss != DataLoss::Copies);
        let (manifest, stored_to) = (self.manifest, found.stored_epoch(self.manifest));
        let kept = collector.finish(found.largest_epoch.max(stored_to));
        let is_missing = |end| end > found.reachable_epoch || end > manifest.durable_epoch;
        let salvaged = Salvaged {
            manifest: None,
            tables: self.tables(&kept),
            kept_to: manifest.counted_to(found.reachable_epoch),
            stored_to,
            mixed_to: manifest.checkpoint_end().filter(|&end| is_missing(end)),
            given_up,
            corruptions: found.corruptions,
            unreadable,
            other_parts: other_parts.map(|(file, _)| file).collect(),
            unread: self.disk.unread(),
            unopened: self.disk.unopened(),
        };
        Ok((salvaged, kept))
    }

    /// Gathers the records of the checkpoint. Its copies of records count only where not all of the others
    /// are proved to be those of the manifest, and never if they are not themselves.
    fn read_checkpoint(&self, collector: &RowCollector) -> Result<ReadCheckpoint, OpenError> {
        let mut read = ReadCheckpoint::default();
        let Some(checkpoint) = &self.manifest.checkpoint else { return Ok(read) };
        let (copies, parts): (Vec<_>, Vec<_>) = checkpoint.parts.iter().partition(|part| part.is_copy());
        let mut is_proved = true;
        for part in parts {
            is_proved &= self.read_part(checkpoint.id, part, collector, &mut read)? == Origin::Proved;
        }
        for part in copies {
            let records = RowCollector::default();
            let origin = self.read_part(checkpoint.id, part, &records, &mut read)?;
            if !is_proved && origin != Origin::Other {
                collector.take_copies(records, origin == Origin::Proved);
            }
        }
        Ok(read)
    }

    fn read_part(
        &self,
        checkpoint: u64,
        part: &CheckpointPart,
        collector: &RowCollector,
        read: &mut ReadCheckpoint,
    ) -> Result<Origin, OpenError> {
        let identity = part_identity(self.manifest, checkpoint, part);
        let path = self.dir.join(&part.path);
        let (unreadable, origin) = read_part(self.disk, &path, &identity, part, collector)?;
        read.unreadable.extend(unreadable);
        if origin == Origin::Other {
            read.others.push((path, loss_of(part)));
        }
        Ok(origin)
    }

    /// Gathers the changes of the log, as far as it counts.
    fn read_log(&self, found: &Survey, collector: &RowCollector) -> Result<(), OpenError> {
        let mut log = found.replay_files(self.dir, self.manifest, found.reachable_epoch);
        log.retain(|file| !file.is_checkpoint());
        replay(self.disk, &log, collector, 1, &Progress::new()).map(|_| ())
    }

    fn tables(&self, kept: &Kept) -> Vec<SalvagedTable> {
        let mut tables: BTreeMap<u32, SalvagedTable> = BTreeMap::new();
        for &(table, records) in self.manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.tables) {
            let read = kept.records.get(&table).copied().unwrap_or(0);
            tables.entry(table).or_default().lost_records = records.saturating_sub(read);
        }
        kept.rows.keys().for_each(|record| tables.entry(record.table).or_default().rows += 1);
        kept.incomplete
            .iter()
            .for_each(|record| tables.entry(record.table).or_default().incomplete_rows += 1);
        tables.iter_mut().for_each(|(&table, salvaged)| salvaged.table = table);
        tables.into_values().collect()
    }
}
