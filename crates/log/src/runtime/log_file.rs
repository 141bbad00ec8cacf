//! The file that a logger writes.

use std::path::PathBuf;
use std::time::Instant;

use ensilo_disk::{Appender, File};

use super::error::{Attempt, LogError};
use super::statistics::Counts;
use crate::format::{BlockCodec, FILE_HEADER_BYTES, LogFileName};

/// An open log file, which is written from its header on.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) name: LogFileName,
    pub(crate) path: PathBuf,
    pub(crate) codec: BlockCodec,
    file: Appender,
    /// Everything before is on the disk.
    synced_to: u64,
}

impl LogFile {
    /// A file that has its header and nothing else, all of it synced.
    pub(crate) fn new(name: LogFileName, path: PathBuf, codec: BlockCodec, file: Box<dyn File>) -> LogFile {
        let header = FILE_HEADER_BYTES as u64;
        LogFile { name, path, codec, file: Appender::new(file, header), synced_to: header }
    }

    /// Where the next block goes.
    pub(crate) fn offset(&self) -> u64 {
        self.file.offset()
    }

    /// Whether it has nothing but its header.
    pub(crate) fn is_empty(&self) -> bool {
        self.offset() == FILE_HEADER_BYTES as u64
    }

    pub(crate) fn synced_to(&self) -> u64 {
        self.synced_to
    }

    /// Appends blocks that were sealed for this place; they are written with others, at [`LogFile::flush`] at the latest.
    pub(crate) fn append(&mut self, blocks: &[u8], counts: &Counts) -> Result<(), LogError> {
        counts.written_bytes.add(blocks.len() as u64);
        let appended = self.file.append(blocks);
        appended.map_err(|error| LogError::io(Attempt::Write, &self.path, error))
    }

    /// Writes what was appended.
    pub(crate) fn flush(&mut self, counts: &Counts) -> Result<(), LogError> {
        let began = Instant::now();
        let flushed = self.file.flush();
        flushed.map_err(|error| LogError::io(Attempt::Write, &self.path, error))?;
        counts.add_write(began.elapsed());
        Ok(())
    }

    /// Makes all that was appended survive.
    pub(crate) fn sync(&mut self, counts: &Counts) -> Result<(), LogError> {
        let began = Instant::now();
        let synced = self.file.sync_data();
        synced.map_err(|error| LogError::io(Attempt::Sync, &self.path, error))?;
        self.synced_to = self.offset();
        counts.add_sync(began.elapsed());
        Ok(())
    }

    /// Gives back the space behind the last block.
    pub(crate) fn trim(&mut self) -> Result<(), LogError> {
        let trimmed = self.file.trim();
        trimmed.map_err(|error| LogError::io(Attempt::Write, &self.path, error))
    }
}
