//! A file that a replay reads, and how far.

use std::path::PathBuf;

use ensilo_epoch::Epoch;

use super::corruption::{CorruptionKind, DataLoss};
use super::error::OpenError;
use crate::format::{
    CheckpointPart, EpochWidth, FIRST_COPY, FileIdentity, FileRole, LogFileName, Manifest, OpeningId,
};

/// A file to be read.
#[derive(Debug, Clone)]
pub(super) struct ReplayFile {
    pub(super) path: PathBuf,
    pub(super) identity: FileIdentity,
    pub(super) extent: Extent,
    /// Entries of earlier epochs are in the checkpoint.
    pub(super) first_epoch: Epoch,
    /// Entries of later epochs were never stored.
    pub(super) last_epoch: Epoch,
    /// The name of a sealed file, if it was not compared with the blocks yet.
    pub(super) unproved_name: Option<LogFileName>,
    /// How many bytes it has, for the progress.
    pub(super) bytes: u64,
    /// What is lost if it is damaged.
    pub(super) loss: DataLoss,
}

/// How far a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// So many bytes, all of which must be blocks.
    Bytes(u64),
    /// Up to the block that seals it.
    Seal,
    /// A part of a checkpoint: so many bytes, records and this digest, the last block being the part's end.
    Part { bytes: u64, records: u64, digest: u32 },
}

impl ReplayFile {
    /// Damage of this file, at a place or as a whole.
    pub(super) fn corruption(&self, offset: Option<u64>, kind: CorruptionKind) -> OpenError {
        OpenError::corrupt(&self.path, offset, kind, self.loss)
    }

    pub(super) fn is_checkpoint(&self) -> bool {
        matches!(self.identity.file, FileRole::Checkpoint { .. })
    }

    /// Returns the number of the part, if all of its records are in other files too.
    pub(super) fn copy_number(&self) -> Option<u32> {
        match self.identity.file {
            FileRole::Checkpoint { part, .. } if part >= FIRST_COPY => Some(part),
            _ => None,
        }
    }
}

/// Returns what the header of a part must say.
pub(super) fn part_identity(manifest: &Manifest, checkpoint: u64, part: &CheckpointPart) -> FileIdentity {
    let file = FileRole::Checkpoint { checkpoint, part: part.number };
    FileIdentity {
        database: manifest.database,
        file,
        opening: OpeningId::default(),
        epochs: EpochWidth::default(),
    }
}

/// Returns what is lost if a part of the checkpoint is damaged.
pub(super) fn loss_of(part: &CheckpointPart) -> DataLoss {
    if part.is_copy() { DataLoss::Copies } else { DataLoss::Checkpoint }
}
