//! The file that a logger writes.

use std::path::PathBuf;
use std::time::Instant;

use ensilo_disk::File;

use super::error::{Attempt, LogError};
use super::statistics::Counts;
use crate::format::{BlockCodec, FILE_HEADER_BYTES, LogFileName};

/// An open log file, which is written from its header on.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) name: LogFileName,
    pub(crate) path: PathBuf,
    pub(crate) codec: BlockCodec,
    file: Box<dyn File>,
    /// Where the next block goes.
    offset: u64,
    /// Everything before is on the disk.
    synced_to: u64,
}

impl LogFile {
    /// A file that has its header and nothing else, all of it synced.
    pub(crate) fn new(name: LogFileName, path: PathBuf, codec: BlockCodec, file: Box<dyn File>) -> LogFile {
        let header = FILE_HEADER_BYTES as u64;
        LogFile { name, path, codec, file, offset: header, synced_to: header }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether it has nothing but its header.
    pub(crate) fn is_empty(&self) -> bool {
        self.offset == FILE_HEADER_BYTES as u64
    }

    pub(crate) fn synced_to(&self) -> u64 {
        self.synced_to
    }

    /// Appends blocks that were sealed for this place.
    pub(crate) fn append(&mut self, blocks: &[u8], counts: &Counts) -> Result<(), LogError> {
        let began = Instant::now();
        let written = self.file.write_at(self.offset, blocks);
        written.map_err(|error| LogError::io(Attempt::Write, &self.path, error))?;
        self.offset += blocks.len() as u64;
        counts.add_write(blocks.len(), began.elapsed());
        Ok(())
    }

    /// Makes all that was appended survive.
    pub(crate) fn sync(&mut self, counts: &Counts) -> Result<(), LogError> {
        let began = Instant::now();
        let synced = self.file.sync_data();
        synced.map_err(|error| LogError::io(Attempt::Sync, &self.path, error))?;
        self.synced_to = self.offset;
        counts.add_sync(began.elapsed());
        Ok(())
    }

    /// Gives back the space behind the last block.
    pub(crate) fn trim(&self) -> Result<(), LogError> {
        let trimmed = self.file.set_len(self.offset);
        trimmed.map_err(|error| LogError::io(Attempt::Write, &self.path, error))
    }
}
