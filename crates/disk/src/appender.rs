//! The end of a file, written in whole pages.
//!
//! # Layout
//! ```text
//! file:    | page | page | page ..
//!                    ^ base  ^ base + filled: where the next byte goes
//! memory:            | tail of what was written before, to be written again | new bytes | zeros up to a whole page |
//! ```
//! A page that is not full is written as it is, zeros behind, and written again when there is more: its first bytes are then the
//! same, so that a write that is torn between sectors harms nothing that was there before.

use std::fmt;
use std::io;

use crate::disk::File;
use crate::page_buffer::{PAGE_BYTES, PageBuffer};

/// Bytes that are gathered before they are written.
const GATHERED_BYTES: usize = 1 << 20;

/// Appends to a file in whole pages, which [`crate::RealDisk`] writes past the page cache where the system allows.
///
/// Behind what was appended the file may have zeros up to the end of a page, also if it was shorter before; [`Appender::trim`] takes
/// them away.
pub struct Appender {
    file: Box<dyn File>,
    /// Empty until it is needed.
    memory: PageBuffer,
    /// Where in the file the first page lies.
    base: u64,
    filled: usize,
    /// How many of those were written.
    written: usize,
}

impl Appender {
    /// Appends to `file` from `offset` on.
    ///
    /// # Panics
    /// When `offset` is not a multiple of 4096.
    #[must_use]
    pub fn new(file: Box<dyn File>, offset: u64) -> Appender {
        assert!(offset.is_multiple_of(PAGE_BYTES as u64), "offset {offset} is not the beginning of a page");
        Appender { file, memory: PageBuffer::default(), base: offset, filled: 0, written: 0 }
    }

    /// Returns where the next byte goes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// Takes bytes, and writes when there are many.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.memory.resize(GATHERED_BYTES)?;
        while !bytes.is_empty() {
            if self.filled == GATHERED_BYTES {
                self.flush()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(GATHERED_BYTES - self.filled));
            self.memory[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Writes what was taken and not written.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub fn flush(&mut self) -> io::Result<()> {
        if self.written == self.filled {
            return Ok(());
        }
        let end = self.filled.next_multiple_of(PAGE_BYTES);
        self.memory[self.filled..end].fill(0);
        self.file.write_at(self.base, &self.memory[..end])?;
        let whole = self.filled - self.filled % PAGE_BYTES;
        self.memory.copy_within(whole..self.filled, 0);
        self.base += whole as u64;
        self.filled -= whole;
        self.written = self.filled;
        Ok(())
    }

    /// Writes what was taken, and makes it survive.
    ///
    /// # Errors
    /// As [`File::write_at`] and [`File::sync_data`].
    pub fn sync_data(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync_data()
    }

    /// Writes zeros over so many bytes of the file behind what was written, in whole pages: later writes there change no more than the
    /// content of pages, which some file systems sync in two thirds of the time. To be called behind [`Appender::flush`].
    ///
    /// # Errors
    /// As [`File::write_at`]; part of the zeros may have been written.
    pub fn write_zeros_ahead(&mut self, len_bytes: usize) -> io::Result<()> {
        debug_assert_eq!(self.written, self.filled, "bytes that were not flushed");
        let first = self.filled.next_multiple_of(PAGE_BYTES);
        let end = (first + len_bytes.next_multiple_of(PAGE_BYTES)).min(GATHERED_BYTES);
        if first < end {
            self.memory[first..end].fill(0);
            self.file.write_at(self.base + first as u64, &self.memory[first..end])?;
        }
        Ok(())
    }

    /// As [`Appender::sync_data`], with all that the system knows of the file.
    ///
    /// # Errors
    /// As [`File::write_at`] and [`File::sync_all`].
    pub fn sync_all(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync_all()
    }

    /// Makes the file longer, by zeros. What was taken is still to be written.
    ///
    /// # Errors
    /// As [`File::reserve`].
    pub fn reserve(&mut self, len_bytes: u64) -> io::Result<()> {
        self.file.reserve(len_bytes)
    }

    /// Writes what was taken, and cuts the file behind it.
    ///
    /// # Errors
    /// As [`File::write_at`] and [`File::set_len`].
    pub fn trim(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.set_len(self.offset())
    }
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender").field("file", &self.file).field("offset", &self.offset()).finish()
    }
}
