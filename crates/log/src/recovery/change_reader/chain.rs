//! The files of one logger, one behind the other, read block by block.
//!
//! # Crash
//! Nothing is read behind the first mark that is later than the durable epoch: each logger has synced such a mark, and
//! all entries up to that epoch lie in front of it.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;

use super::place::LogPlace;
use crate::format::{
    BlockCodec, BlockEnd, BlockError, Change, DatabaseId, EarlierFile, EpochWidth, FILE_HEADER_BYTES,
    FileIdentity, FileRole, LogFileName, OpeningId, SealedHeader, Write, epoch_of,
};
use crate::recovery::block_stream::{BlockStream, CHUNK_BYTES, Chunk, Next};
use crate::recovery::block_writes::BlockWrites;
use crate::recovery::corruption::{CorruptionKind, DataLoss};
use crate::recovery::error::OpenError;
use crate::recovery::log_file::open_renamed;

/// So much is read at once where little is new.
const CHUNK_BYTES_MIN: usize = 16 << 10;

/// The files of a logger.
#[derive(Debug)]
pub(super) enum ChainFiles {
    /// Of an earlier generation.
    Ended(Vec<EarlierFile>),
    /// Of the generation that is written.
    Growing {
        directory: String,
        generation: u64,
        logger: u32,
        opening: OpeningId,
        /// The first one that is read.
        first_sequence: u64,
    },
}

/// Where the files of a generation lie and how they are read.
#[derive(Debug)]
pub(super) struct ChainPlace {
    pub(super) dir: PathBuf,
    pub(super) database: DatabaseId,
    pub(super) epochs: EpochWidth,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Chain {
    files: ChainFiles,
    at: ChainPoint,
    open: Option<OpenLog>,
    chunk_bytes: usize,
    chunk: Chunk,
    /// The payload of a block, if it was compressed.
    raw: Vec<u8>,
    /// Nothing in front of it is needed any more.
    restart: ChainPoint,
    /// Points behind that one.
    later: VecDeque<ChainPoint>,
}

/// A point in the files of a logger.
#[derive(Debug, Clone, Copy)]
struct ChainPoint {
    /// The file, from 0 for the first one.
    file: usize,
    offset: u64,
    /// All entries of earlier epochs lie in front of it.
    reach: Epoch,
    /// No entry in front of it has a larger TID.
    largest_tid: u64,
}

/// A file that is read.
#[derive(Debug)]
struct OpenLog {
    file: Box<dyn File>,
    path: PathBuf,
    entry: EarlierFile,
    codec: BlockCodec,
    role: FileRole,
}

/// What a chain gives: entries of the log with their places.
pub(super) trait Sink {
    /// Returns whether anything of a block with these epochs is wanted.
    fn wants_block(&self, last_epoch: Epoch) -> bool;

    /// Takes an entry.
    fn take(&mut self, place: LogPlace, write: &Write<'_>);
}

impl Chain {
    /// Returns a chain whose first entries are not before `reach`.
    pub(super) fn new(files: ChainFiles, reach: Epoch) -> Chain {
        let start = ChainPoint { file: 0, offset: FILE_HEADER_BYTES as u64, reach, largest_tid: 0 };
        Chain {
            files,
            at: start,
            open: None,
            chunk_bytes: CHUNK_BYTES_MIN,
            chunk: Chunk::default(),
            raw: Vec::new(),
            restart: start,
            later: VecDeque::new(),
        }
    }

    /// All entries of epochs before this one were given.
    pub(super) fn reach(&self) -> Epoch {
        self.at.reach
    }

    /// What lies in front of `place` is not needed any more.
    pub(super) fn advance(&mut self, place: LogPlace) {
        while let Some(point) = self.later.front().filter(|point| point.largest_tid < place.tid) {
            self.restart = *point;
            self.later.pop_front();
        }
    }

    /// Reads once more from the last point in front of which nothing is needed.
    pub(super) fn rewind(&mut self) {
        if self.at.file != self.restart.file {
            self.open = None;
        }
        self.at = self.restart;
        self.later.clear();
    }

    /// Reads the next blocks, up to one with a mark after `last`: everything up to that epoch is stored.
    pub(super) fn read(
        &mut self,
        (disk, place): (&dyn Disk, &ChainPlace),
        last: Epoch,
        sink: &mut dyn Sink,
    ) -> Result<(), OpenError> {
        if self.open.is_none() {
            self.open = self.open_file(disk, place)?;
        }
        let Some(open) = &self.open else {
            self.at.reach = Epoch::MAX;
            return Ok(());
        };
        match open.next(self.at.offset, self.chunk_bytes, &mut self.chunk)? {
            Next::Blocks => {}
            Next::End if open.entry.valid_bytes.is_some() => {
                self.go_on();
                return Ok(());
            }
            Next::End => return Err(open.corrupt(self.at.offset, CorruptionKind::NoEnd)),
            Next::Stopped(error) => return Err(open.at_block(self.at.offset, error)),
        }
        let mut has_ended = false;
        let mut left = self.chunk.len;
        for (_, bytes) in self.chunk.blocks() {
            let (sealed, payload) = open
                .codec
                .check(bytes, self.at.offset)
                .map_err(|error| open.at_block(self.at.offset, error))?;
            let raw = sealed
                .raw(&bytes[payload], &mut self.raw)
                .map_err(|error| open.at_block(self.at.offset, error))?;
            let largest_tid = open.give(&sealed, raw, sink)?;
            self.at.largest_tid = self.at.largest_tid.max(largest_tid);
            self.at.reach = self.at.reach.max(sealed.header.mark.unwrap_or_default());
            self.at.offset = sealed.end_offset();
            left -= bytes.len();
            has_ended = sealed.header.end != BlockEnd::None;
            if has_ended || self.at.reach > last {
                break;
            }
        }
        // Where much is new, more is read at once.
        let is_used = left == 0;
        self.chunk_bytes = if is_used { (2 * self.chunk_bytes).min(CHUNK_BYTES) } else { CHUNK_BYTES_MIN };
        if has_ended {
            self.go_on();
        }
        self.note_point();
        Ok(())
    }

    /// Goes on in the next file.
    fn go_on(&mut self) {
        self.open = None;
        self.at.file += 1;
        self.at.offset = FILE_HEADER_BYTES as u64;
    }

    fn note_point(&mut self) {
        if let Some(last) = self.later.back_mut().filter(|last| last.largest_tid == self.at.largest_tid) {
            *last = self.at;
        } else {
            self.later.push_back(self.at);
        }
    }

    /// Opens the file that is to be read; `None` behind the last one.
    fn open_file(&self, disk: &dyn Disk, place: &ChainPlace) -> Result<Option<OpenLog>, OpenError> {
        let Some(entry) = self.files.get(self.at.file) else { return Ok(None) };
        let directory = place.dir.join(&entry.directory);
        let (name, file) = open_renamed(disk, &directory, entry.name)?;
        let identity = FileIdentity {
            database: place.database,
            file: name.role(),
            opening: entry.opening,
            epochs: place.epochs,
        };
        let (path, codec) = (directory.join(name.to_string()), BlockCodec::new(&identity));
        Ok(Some(OpenLog { file, path, entry, codec, role: identity.file }))
    }
}

impl ChainFiles {
    fn get(&self, number: usize) -> Option<EarlierFile> {
        match self {
            ChainFiles::Ended(files) => files.get(number).cloned(),
            ChainFiles::Growing { directory, generation, logger, opening, first_sequence } => {
                Some(EarlierFile {
                    directory: directory.clone(),
                    name: LogFileName::open(*generation, *logger, first_sequence + number as u64),
                    valid_bytes: None,
                    durable_epoch: Epoch::MAX,
                    opening: *opening,
                })
            }
        }
    }
}

impl OpenLog {
    fn next(&self, offset: u64, chunk_bytes: usize, chunk: &mut Chunk) -> Result<Next, OpenError> {
        let mut next = || {
            let limit = match self.entry.valid_bytes {
                Some(bytes) => bytes,
                None => self.file.len_bytes()?,
            };
            BlockStream::starting_at(&*self.file, offset, limit).in_chunks_of(chunk_bytes).next(chunk)
        };
        let read = match next() {
            // When its logger was done with it, after its length was read, it was cut off behind its last block.
            // That happens once.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => next(),
            read => read,
        };
        read.map_err(OpenError::io("read", &self.path))
    }

    /// Gives the entries of a block that count. Returns the largest TID.
    fn give(&self, sealed: &SealedHeader, raw: &[u8], sink: &mut dyn Sink) -> Result<u64, OpenError> {
        let Some((_, last_epoch)) = sealed.header.epochs else { return Ok(0) };
        if !sink.wants_block(last_epoch) {
            return Ok(0);
        }
        let (mut largest_tid, mut index) = (0, 0);
        let mut writes = BlockWrites::new(self.role, sealed, raw);
        let offset = sealed.header.offset;
        while let Some(write) = writes.next_checked().map_err(|kind| self.corrupt(offset, kind))? {
            if epoch_of(write.tid) <= self.entry.durable_epoch {
                if matches!(write.change, Change::Patch(_)) {
                    return Err(self.has_patch());
                }
                largest_tid = largest_tid.max(write.tid);
                let LogFileName { logger, sequence, .. } = self.entry.name;
                sink.take(LogPlace { tid: write.tid, logger, sequence, offset, index }, &write);
            }
            index += 1;
        }
        Ok(largest_tid)
    }

    fn corrupt(&self, offset: u64, kind: CorruptionKind) -> OpenError {
        OpenError::corrupt(&self.path, Some(offset), kind, DataLoss::Everything)
    }

    fn at_block(&self, offset: u64, error: BlockError) -> OpenError {
        self.corrupt(offset, CorruptionKind::Block(error))
    }

    #[cold]
    fn has_patch(&self) -> OpenError {
        let path: &Path = &self.path;
        OpenError::Refused(format!(
            "{} has a part of a row where the log must have whole rows",
            path.display()
        ))
    }
}
