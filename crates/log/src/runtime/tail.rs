//! The end of a logger's log: the file that is written, and the step into the next one.
//!
//! A logger goes on in the next file at the end of a round. If the disk is full, so that a block finds no
//! room and the file cannot be made longer, it does so in the middle of a round, as long as there is a file
//! that was made ahead.
//!
//! # Crash
//! A file is sealed only when the next one lies ready on the disk, and nothing is written into that one
//! before the seal is synced. The seal has a mark; in the middle of a round it is that of the round before.

use std::mem;
use std::sync::Arc;

use ensilo_epoch::Epoch;

use super::core::Core;
use super::error::LogError;
use super::log_file::LogFile;
use super::statistics::Counts;
use crate::format::{BlockEnd, BlockHeader, Compression};

/// The end of a logger's log.
#[derive(Debug)]
pub(crate) struct Tail {
    core: Arc<Core>,
    /// The logger.
    index: usize,
    file: LogFile,
    /// The file that the logger goes on in at the end of the round.
    next: Option<LogFile>,
    /// Entries with an earlier epoch were all synced.
    pub(crate) mark: Epoch,
    /// No entry in the file has a later epoch.
    largest_epoch: Epoch,
}

impl Tail {
    pub(crate) fn new(core: Arc<Core>, index: usize, file: LogFile, first_epoch: Epoch) -> Tail {
        Tail { core, index, file, next: None, mark: first_epoch, largest_epoch: first_epoch }
    }

    /// Returns the file that is written.
    pub(crate) fn file(&mut self) -> &mut LogFile {
        &mut self.file
    }

    /// Returns what is counted of the logger.
    pub(crate) fn counts(&self) -> &Counts {
        &self.core.counters[self.index]
    }

    /// Entries of up to this epoch go into the file that is written.
    pub(crate) fn note_entries(&mut self, epoch: Epoch) {
        self.largest_epoch = epoch;
    }

    /// Sees to it that a block of so many bytes fits into the file, in the next one if the disk has no room
    /// for it in this one.
    pub(crate) fn make_room(&mut self, block_bytes: usize, durable_epoch: Epoch) -> Result<(), LogError> {
        let counts = &self.core.counters[self.index];
        match self.file.make_room(block_bytes, durable_epoch, counts) {
            Err(error @ LogError::NoSpace { .. }) if !self.file.is_empty() => {
                let next = self.next.take().or_else(|| self.core.files.wait_next(self.index));
                let next = next.ok_or(error)?;
                self.seal(durable_epoch)?;
                self.go_on_in(next);
                self.file.make_room(block_bytes, durable_epoch, &self.core.counters[self.index])
            }
            made => made,
        }
    }

    /// Appends a block that was sealed for this place and has room.
    pub(crate) fn append_block(&mut self, block: &[u8]) -> Result<(), LogError> {
        let counts = &self.core.counters[self.index];
        counts.blocks.add(1);
        self.file.append(block, counts)
    }

    /// Makes all that was appended survive.
    pub(crate) fn sync(&mut self) -> Result<(), LogError> {
        self.file.sync(&self.core.counters[self.index])
    }

    /// Writes what was appended.
    pub(crate) fn flush(&mut self) -> Result<(), LogError> {
        self.file.flush(&self.core.counters[self.index])
    }

    /// Prepares the file for the next rounds, behind [`Tail::flush`], unless it ends here. On a full disk nothing is
    /// written that need not be: some file systems take new room for it.
    pub(crate) fn write_zeros_ahead(&mut self) -> Result<(), LogError> {
        if self.next.is_some() || !self.file.is_past_written() || self.core.files.shortage().is_some() {
            return Ok(());
        }
        self.file.write_zeros_ahead()
    }

    /// If it is time to go on in the next file, and it lies ready, the round ends with a seal. If it does
    /// not, it stays asked for.
    pub(crate) fn begin_round(&mut self) {
        let partition = &self.core.partitions[self.index];
        let is_asked_for = partition.take_rotation_request();
        if self.file.is_full() || (is_asked_for && !self.file.is_empty()) {
            self.next = self.core.files.take_next(self.index);
        }
        if is_asked_for && self.next.is_none() {
            partition.ask_for_rotation();
        }
    }

    /// Returns what the last block of a round ends.
    pub(crate) fn end_of_round(&self) -> BlockEnd {
        if self.next.is_some() { BlockEnd::Seal } else { BlockEnd::None }
    }

    /// A round is over, and everything before `mark` synced.
    pub(crate) fn end_round(&mut self, mark: Epoch) {
        self.mark = mark;
        if let Some(next) = self.next.take() {
            self.go_on_in(next);
        }
    }

    /// Goes on in `next`. The file before is sealed and synced.
    fn go_on_in(&mut self, next: LogFile) {
        let finished = mem::replace(&mut self.file, next);
        self.counts().rotations.add(1);
        self.core.files.finish(finished, self.largest_epoch, self.mark);
    }

    /// Seals the file, for which there is always room left, and syncs it.
    fn seal(&mut self, durable_epoch: Epoch) -> Result<(), LogError> {
        let header = self.file.header(durable_epoch);
        let header = BlockHeader { mark: Some(self.mark), end: BlockEnd::Seal, ..header };
        let mut block = Vec::new();
        self.file.codec.seal(&mut block, &header, &[], Compression::None);
        self.append_block(&block)?;
        self.sync()
    }
}
