//! Saving what is left of a damaged database into a new one.
//!
//! A repair gives up the end of a log, and what it keeps is a state that was. There is no such way where a checkpoint is damaged: rows
//! that did not change since are nowhere else. A salvage reads every valid block of the checkpoint, and the log as far as it counts, and
//! makes a new database of the rows that are whole. What is lost it lists.
//!
//! # Invariants
//! - S1: the damaged database is only read, as its manifest says, or the copy of that if it is damaged.
//! - S2: a row is taken whole or not at all. A row of which only changes are left is lost.
//! - S3: the new database can be opened only when all of it is written, synced and verified.

mod forgiving;
mod part;
mod rows;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use self::forgiving::ForgivingDisk;
use self::part::read_part;
use self::rows::{Gathering, Kept};
use self::write::write_database;
use super::backup::Target;
use super::chain::Depth;
use super::checkpoint_writer::DEFINITION_TABLES;
use super::directory::manifest_of;
use super::directory_locks::{DirectoryLocks, Share};
use super::error::{Consequence, Damage, OpenError};
use super::given_up::{GivenUp, count_given_up};
use super::manifest_file::read_copy;
use super::ownership::check_named;
use super::progress::Progress;
use super::replay::replay;
use super::survey::{Survey, survey};
use crate::format::{LogFileName, Manifest};

/// What a salvage has saved, and what not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// What is wrong with the manifest, if anything is: then the copy beside it says which files count. That was written when the database was
    /// last opened, or its checkpoint installed; what was stored since is known from the log alone.
    pub manifest: Option<Damage>,
    /// Tables, by number, of which anything was saved or lost.
    pub tables: Vec<SalvagedTable>,
    /// Changes of transactions up to this epoch were applied, and of none after it.
    pub kept_to: Epoch,
    /// Everything up to this epoch is known to have been stored.
    pub stored_to: Epoch,
    /// If not `None`, the log does not reach up to this epoch, the end of the checkpoint: the rows are not those of one moment, but of
    /// several between the two epochs.
    pub mixed_to: Option<Epoch>,
    /// How much of the log that is given up could still be read.
    pub given_up: GivenUp,
    /// What a look at the files has found. The places that cannot be read in the checkpoint are in `unreadable`.
    pub damages: Vec<Damage>,
    /// The places in the checkpoint that cannot be read. Their records are lost unless they changed since or stand in it twice: see
    /// [`SalvagedTable::lost_records`].
    pub unreadable: Vec<UnreadableRecords>,
    /// Files of which the system could not read so many bytes. They were taken for zeros.
    pub unread: Vec<(PathBuf, u64)>,
}

/// What a salvage could not save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// Nothing that is known to have been stored.
    Nothing,
    /// Rows, or changes of them.
    Rows,
    /// Definitions of tables or indexes, too ([`DEFINITION_TABLES`]): the rows of a table without a definition cannot be read.
    Definitions,
}

/// A table of a salvaged database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SalvagedTable {
    /// Its number.
    pub table: u32,
    /// Its rows in the new database.
    pub rows: u64,
    /// Records of the checkpoint that could not be read. Those of rows that changed after it began are in the log, and were saved.
    pub lost_records: u64,
    /// Rows of which the log has only changes, and that are lost for want of what was changed.
    pub incomplete_rows: u64,
}

/// Records of a checkpoint that cannot be read where they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRecords {
    /// The part of the checkpoint.
    pub file: PathBuf,
    /// Where in it nothing can be read.
    pub offset: u64,
    /// Where it can be read again, or ends.
    pub end: u64,
    /// How many there are, 0 if what cannot be read is no record; `None` if this is not the only such place in the file.
    pub records: Option<u64>,
    /// The last record in the file before them.
    pub after: Option<RecordKey>,
    /// The first record in the file after them.
    pub before: Option<RecordKey>,
}

/// Which record it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// The number of its table.
    pub table: u32,
    /// Its key.
    pub key: Vec<u8>,
}

impl Salvaged {
    /// What could not be saved.
    #[must_use]
    pub fn loss(&self) -> Loss {
        let is_of_log =
            |damage: &Damage| !matches!(damage.consequence, Consequence::Copies | Consequence::Checkpoint);
        // Zeros at the end of a log may have been more of it.
        let is_log = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).and_then(LogFileName::parse).is_some()
        };
        let is_short = self.stored_to > self.kept_to
            || self.mixed_to.is_some()
            || self.unread.iter().any(|(path, _)| is_log(path));
        let mut lossy = self.tables.iter().filter(|table| table.is_lossy()).peekable();
        if lossy.peek().is_none() && !is_short && !self.damages.iter().any(is_of_log) {
            return Loss::Nothing;
        }
        match lossy.any(|table| DEFINITION_TABLES.contains(&table.table)) {
            true => Loss::Definitions,
            false => Loss::Rows,
        }
    }
}

impl SalvagedTable {
    /// Whether any of its rows may be lost.
    fn is_lossy(&self) -> bool {
        self.lost_records > 0 || self.incomplete_rows > 0
    }
}

/// Makes a new database in `target`, which is empty or missing and lies in no database, of all rows of the damaged database in `dir` that
/// can be read. The new one is verified; it has a number of its own. As much memory is needed as the rows take.
///
/// # Errors
/// [`OpenError`]; what was made of the new database is gone. [`OpenError::Damaged`] if it cannot be told which files belong to the
/// database, neither by its manifest nor by the copy of it; [`OpenError::OtherOwner`] if the copy is older than the log;
/// [`OpenError::Refused`] for a target that is none.
pub fn salvage(disk: &Arc<dyn Disk>, dir: &Path, target: &Path) -> Result<Salvaged, OpenError> {
    let damaged = ForgivingDisk::new(disk);
    read_either_manifest(&damaged, dir)?;
    let mut locks = DirectoryLocks::of_database(&**disk, dir, Share::Part)?;
    let (manifest, manifest_damage) = read_either_manifest(&damaged, dir)?;
    locks.add_named(&**disk, dir, &manifest)?;
    if manifest_damage.is_some() {
        check_named(&**disk, dir, &manifest)?;
    }
    let found = survey(&damaged, dir, &manifest, Depth::Full)?;
    if let Some(damage) = found.damages.iter().find(|damage| damage.consequence == Consequence::Everything) {
        return Err(OpenError::Damaged(Box::new(damage.clone())));
    }
    let target = Target::claim(&**disk, dir, &manifest, target)?;
    let source = Source { disk: &damaged, dir, manifest: &manifest, found: &found };
    let salvaged = source.salvage_into(disk, &target);
    if salvaged.is_err() {
        // What cannot be removed does no harm.
        let _ = target.give_up(&[write::CHECKPOINT]);
    }
    salvaged.map(|salvaged| Salvaged { manifest: manifest_damage, ..salvaged })
}

/// The manifest of the database in `dir`, or the copy of it if it is damaged or missing, and what is wrong with it then.
fn read_either_manifest(disk: &dyn Disk, dir: &Path) -> Result<(Manifest, Option<Damage>), OpenError> {
    let error = match manifest_of(disk, dir) {
        Ok(manifest) => return Ok((manifest, None)),
        Err(error) => error,
    };
    match (error, read_copy(disk, dir)) {
        (OpenError::Damaged(damage), Some(copy)) => Ok((copy, Some(*damage))),
        (error, _) => Err(error),
    }
}

/// A damaged database.
struct Source<'s> {
    disk: &'s ForgivingDisk,
    dir: &'s Path,
    manifest: &'s Manifest,
    found: &'s Survey,
}

impl Source<'_> {
    fn salvage_into(&self, disk: &Arc<dyn Disk>, target: &Target<'_>) -> Result<Salvaged, OpenError> {
        let Source { manifest, found, .. } = *self;
        let gathering = Gathering::default();
        let unreadable = self.read_checkpoint(&gathering)?;
        self.read_log(&gathering)?;
        let kept = gathering.finish();
        let stored_to = found.stored_epoch(manifest);
        let last_epoch = found.largest_epoch.max(stored_to);
        write_database(disk, target, &kept, last_epoch)?;
        let end = manifest.checkpoint.as_ref().map(|checkpoint| checkpoint.end_epoch);
        Ok(Salvaged {
            manifest: None,
            tables: self.tables(&kept),
            kept_to: manifest.counted_to(found.reachable_epoch),
            stored_to,
            mixed_to: end.filter(|&end| end > found.reachable_epoch),
            given_up: count_given_up(self.disk, found, found.reachable_epoch)?,
            damages: found.damages.clone(),
            unreadable,
            unread: self.disk.unread(),
        })
    }

    /// Gathers the records of the checkpoint. Returns the places that cannot be read.
    fn read_checkpoint(&self, gathering: &Gathering) -> Result<Vec<UnreadableRecords>, OpenError> {
        let mut unreadable = Vec::new();
        if let Some(checkpoint) = &self.manifest.checkpoint {
            for part in &checkpoint.parts {
                let identity = super::survey::part_identity(self.manifest, checkpoint.id, part);
                let path = self.dir.join(&part.path);
                unreadable.extend(read_part(self.disk, &path, &identity, part, gathering)?);
            }
        }
        Ok(unreadable)
    }

    /// Gathers the changes of the log, as far as it counts.
    fn read_log(&self, gathering: &Gathering) -> Result<(), OpenError> {
        let mut log = self.found.replay_files(self.dir, self.manifest, self.found.reachable_epoch);
        log.retain(|file| !file.is_checkpoint());
        replay(self.disk, &log, gathering, 1, &Progress::new()).map(|_| ())
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
