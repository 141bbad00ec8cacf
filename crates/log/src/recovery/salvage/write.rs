//! Writing salvaged rows as a new database.
//!
//! # Crash
//! As for a backup: the mark of something unfinished is there first, then the checkpoint, then the manifest;
//! the mark goes when all was verified.

use std::io;
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::rows::{Kept, KeptRow, RecordKey};
use crate::format::{CheckpointEntry, LoggerFiles, Manifest};
use crate::recovery::checkpoint_writer::{
    CheckpointPlace, CheckpointWriterOptions, DEFINITION_TABLES, WrittenParts,
};
use crate::recovery::database_files::FinishedCheckpoint;
use crate::recovery::directory_locks::{DirectoryLocks, LockMode};
use crate::recovery::error::OpenError;
use crate::recovery::file_access::{make_directory, sync_dir};
use crate::recovery::file_names::LOG;
use crate::recovery::inspect::new_manifest;
use crate::recovery::target::TargetDirectory;

/// The directory of the checkpoint.
pub(super) const CHECKPOINT: &str = "checkpoint-1";

/// Makes a database of these rows.
pub(super) fn write_database(
    disk: &Arc<dyn Disk>,
    target: &TargetDirectory<'_>,
    kept: &Kept,
) -> Result<(), OpenError> {
    let _locks = DirectoryLocks::of_database(&**disk, target.dir, LockMode::Exclusive)?;
    let (new, last_epoch) = (new_manifest(), kept.last_epoch);
    let checkpoint = write_checkpoint(disk, target, &new, kept)?;
    target.begin_generation(&Manifest {
        generation: 1,
        first_epoch: Epoch::new(last_epoch.get() + 1),
        durable_epoch: last_epoch,
        next_checkpoint: checkpoint.id + 1,
        loggers: vec![LoggerFiles { directory: LOG.to_owned(), first_sequence: 1 }],
        checkpoint: Some(checkpoint),
        ..new
    })?;
    target.verify(|corruption| corruption)?;
    target.finish()
}

fn write_checkpoint(
    disk: &Arc<dyn Disk>,
    target: &TargetDirectory<'_>,
    new: &Manifest,
    kept: &Kept,
) -> Result<CheckpointEntry, OpenError> {
    let directory = target.dir.join(CHECKPOINT);
    make_directory(&**disk, &directory)?;
    let place = CheckpointPlace {
        disk: Arc::clone(disk),
        database: new.database,
        id: 1,
        begin_epoch: kept.last_epoch,
        directory: directory.clone(),
        spelled: CHECKPOINT.to_owned(),
    };
    let written = write_parts(&place, kept).map_err(OpenError::io("write", &directory))?;
    sync_dir(&**disk, &directory)?;
    Ok(FinishedCheckpoint { place: place.clone(), end_epoch: kept.last_epoch, written }.entry())
}

fn write_parts(place: &CheckpointPlace, kept: &Kept) -> io::Result<Vec<WrittenParts>> {
    let options = CheckpointWriterOptions::default();
    let (mut writer, mut copies) = (place.writer(0, options)?, place.writer_of_copies(options)?);
    for (RecordKey { table, key }, KeptRow { tid, row }) in &kept.rows {
        writer.record(*table, key, *tid, row.len(), words(row))?;
        if DEFINITION_TABLES.contains(table) {
            copies.record(*table, key, *tid, row.len(), words(row))?;
        }
    }
    Ok(vec![writer.finish()?, copies.finish()?])
}

/// Returns the words of a row; the last one is filled up with zeros.
fn words(row: &[u8]) -> impl Iterator<Item = u64> + '_ {
    row.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}
