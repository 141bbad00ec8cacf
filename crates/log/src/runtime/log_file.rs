//! The file that a logger writes.
//!
//! # Crash
//! As long as the file has no last block, an opening that finds it shorter than its blocks claim knows that
//! it was cut. So nothing is written past the length that was claimed last: the file is first made longer and
//! synced, and a block in front of the end says so ([`crate::BlockHeader::reserved_bytes`]). A crash in
//! between leaves a file that is longer than it has to be.

use std::path::PathBuf;
use std::time::Instant;

use ensilo_disk::{Appender, File, PAGE_BYTES, is_disk_full};
use ensilo_epoch::Epoch;

use super::error::{Attempt, LogError};
use super::statistics::Counts;
use crate::format::{
    BLOCK_HEADER_BYTES, BlockCodec, BlockHeader, Compression, FILE_HEADER_BYTES, LogFileName,
};

/// What there is always room for: a block that says that the file was made longer.
const SPARE_BYTES: u64 = BLOCK_HEADER_BYTES as u64;

/// A file on a full disk is made longer by so much more than it needs: the rest is left to others.
const STEP_BYTES: u64 = 16 * PAGE_BYTES as u64;

/// A round that appends no more is small: its sync costs more than its bytes.
const SMALL_BYTES: u64 = 64 << 10;

/// So much of a file is written with zeros ahead of small rounds, one time in a hundred or so. Where the disk gave the
/// room without writing it, the file system notes with each sync which part was written, and that costs half a
/// sync more. Large rounds pay it once for many bytes.
const ZEROED_BYTES: u64 = 512 << 10;

/// An open log file, which is written from its header on.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) name: LogFileName,
    pub(crate) path: PathBuf,
    pub(crate) codec: BlockCodec,
    file: Appender,
    /// Everything before is on the disk.
    synced_to: u64,
    /// The pages before were written, with blocks or with zeros.
    written_to: u64,
    length: Length,
}

/// How long a log file is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Length {
    /// So long the file says that it is: whole pages, as they are what is written.
    pub(crate) reserved_bytes: u64,
    /// So long it should be, if the disk has the room.
    pub(crate) wanted_bytes: u64,
    /// So long files are made at most, by the options.
    pub(crate) bytes_max: u64,
}

impl Length {
    /// Returns how long a file becomes that has no room left and goes on because the next one is not ready. It costs a sync: so a
    /// short one, which is full as soon as somebody logs much, becomes twice as long, and a long one an eighth longer.
    fn lengthened(self) -> u64 {
        let Length { reserved_bytes, wanted_bytes, bytes_max } = self;
        let step_bytes = reserved_bytes.min(reserved_bytes.max(bytes_max) / 8);
        wanted_bytes.max(reserved_bytes + step_bytes)
    }
}

impl LogFile {
    /// Returns a file that has its header, which says how long it is, and nothing else, all of it synced.
    pub(crate) fn new(
        name: LogFileName,
        path: PathBuf,
        codec: BlockCodec,
        file: Box<dyn File>,
        length: Length,
    ) -> LogFile {
        let header = FILE_HEADER_BYTES as u64;
        let file = Appender::new(file, header);
        LogFile { name, path, codec, file, synced_to: header, written_to: header, length }
    }

    /// Returns where the next block goes.
    pub(crate) fn offset(&self) -> u64 {
        self.file.offset()
    }

    /// Returns whether it is time to go on in another one: before there is no room left, so that it seldom
    /// has to be made longer.
    pub(crate) fn is_full(&self) -> bool {
        let bytes = self.length.reserved_bytes.max(self.length.wanted_bytes);
        self.offset() >= bytes - bytes / 8
    }

    /// Takes the room that the file should have from the disk, if it does not have it yet. The file says so
    /// only when it is needed.
    pub(crate) fn lengthen(&mut self) -> Result<(), LogError> {
        let wanted = self.length.wanted_bytes.next_multiple_of(PAGE_BYTES as u64);
        if wanted <= self.length.reserved_bytes {
            return Ok(());
        }
        self.file.reserve(wanted).map_err(|error| LogError::io(Attempt::Write, &self.path, error))
    }

    /// Returns the header of a block without anything in it, for the place where the next block goes.
    pub(crate) fn header(&self, durable_epoch: Epoch) -> BlockHeader {
        BlockHeader::new(self.offset(), self.synced_to, durable_epoch)
    }

    /// Returns whether it has nothing but its header.
    pub(crate) fn is_empty(&self) -> bool {
        self.offset() == FILE_HEADER_BYTES as u64
    }

    /// Sees to it that a block of so many bytes fits into the file as long as it says that it is.
    pub(crate) fn make_room(
        &mut self,
        block_bytes: usize,
        durable_epoch: Epoch,
        counts: &Counts,
    ) -> Result<(), LogError> {
        // Two spare ones: this time's, which is written below, and the next one's.
        let needed = self.offset() + block_bytes as u64 + SPARE_BYTES;
        if needed <= self.length.reserved_bytes {
            return Ok(());
        }
        let reserved_bytes = self.reserve(needed + SPARE_BYTES)?;
        self.sync(counts)?;
        let header = BlockHeader { reserved_bytes: Some(reserved_bytes), ..self.header(durable_epoch) };
        let mut block = Vec::new();
        self.codec.seal(&mut block, &header, &[], Compression::None);
        self.length.reserved_bytes = reserved_bytes;
        counts.blocks.add(1);
        self.append(&block, counts)
    }

    /// Makes the file at least `enough` bytes long; longer, if the disk has the room. Returns how long.
    fn reserve(&mut self, enough: u64) -> Result<u64, LogError> {
        let pages = |bytes: u64| bytes.max(enough).next_multiple_of(PAGE_BYTES as u64);
        let more = [self.length.lengthened(), enough + STEP_BYTES, 0].map(pages);
        let mut outcome = Ok(());
        for bytes in more {
            outcome = self.file.reserve(bytes);
            match &outcome {
                Ok(()) => return Ok(bytes),
                Err(error) if is_disk_full(error) => {}
                Err(_) => break,
            }
        }
        outcome.map(|()| enough).map_err(|error| LogError::io(Attempt::Write, &self.path, error))
    }

    /// Appends blocks that were sealed for this place; they are written with others, at [`LogFile::flush`] at
    /// the latest.
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

    /// Returns whether what was appended goes past the pages that were written before.
    pub(crate) fn is_past_written(&self) -> bool {
        self.offset() > self.written_to
    }

    /// Writes zeros over the pages that the next rounds will write, if these are as small as this one, which was
    /// flushed. Its sync makes them survive.
    pub(crate) fn write_zeros_ahead(&mut self) -> Result<(), LogError> {
        let end = self.offset().next_multiple_of(PAGE_BYTES as u64);
        self.written_to = end;
        let is_small = self.offset() - self.synced_to <= SMALL_BYTES;
        let len_bytes = ZEROED_BYTES.min(self.length.reserved_bytes.saturating_sub(end));
        if !is_small || len_bytes == 0 {
            return Ok(());
        }
        match self.file.write_zeros_ahead(len_bytes as usize) {
            Ok(()) => self.written_to += len_bytes,
            // Some file systems take new room for bytes that are written again. It goes without.
            Err(error) if is_disk_full(&error) => {}
            Err(error) => return Err(LogError::io(Attempt::Write, &self.path, error)),
        }
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_room_becomes_longer_by_steps_that_suit_its_length() {
        const MIB: u64 = 1 << 20;
        let lengthened = |reserved_bytes, wanted_bytes, bytes_max| {
            Length { reserved_bytes, wanted_bytes, bytes_max }.lengthened()
        };
        assert_eq!(lengthened(MIB, MIB, 64 * MIB), 2 * MIB, "a short one");
        assert_eq!(lengthened(64 * MIB, 64 * MIB, 64 * MIB), 72 * MIB, "a long one");
        assert_eq!(
            lengthened(80 * MIB, 64 * MIB, 64 * MIB),
            90 * MIB,
            "one that is longer than it should be"
        );
        assert_eq!(lengthened(8192, 4 * MIB, 64 * MIB), 4 * MIB, "one that was made short on a full disk");
    }
}
