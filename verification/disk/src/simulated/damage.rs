//! What a test does to a disk behind the back of the database, and how it looks at what is there.
//!
//! Damage hits what is seen and what is stored alike: a damaged file counts as synced. It works on a dead disk as well.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::SimulatedDisk;
use super::content::Content;

impl SimulatedDisk {
    /// Returns all files with their lengths in bytes, in order of their paths, which begin below the root.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        self.lock_state().walk(&mut |path, len_bytes| files.push((path.to_path_buf(), len_bytes)));
        files
    }

    /// Returns all bytes of a file, as a reader would see them now.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.lock_state();
        Ok(bytes_of(&state.find(path)?.live))
    }

    /// Turns over one bit of a file: bit `bit % 8` of byte `bit / 8`.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`; `InvalidInput` when the bit is past the end.
    pub fn flip(&self, path: &Path, bit: u64) -> io::Result<()> {
        let byte = bit / 8;
        self.damage(path, byte + 1, |content| {
            let mut bytes = [0];
            content.read(byte, &mut bytes);
            content.write(byte, &[bytes[0] ^ 1 << (bit % 8)]);
        })
    }

    /// Puts other bytes in the place of some of a file.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`; `InvalidInput` when they would end past the end of the file.
    pub fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.damage(path, offset.saturating_add(bytes.len() as u64), |content| content.write(offset, bytes))
    }

    /// Cuts a file to `len_bytes`.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`; `InvalidInput` when the file is shorter.
    pub fn truncate(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        self.damage(path, len_bytes, |content| content.set_len(len_bytes))
    }

    /// Exchanges two ranges of bytes of a file.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`; `InvalidInput` when the ranges overlap, differ in length or end past the end of the file.
    pub fn swap(&self, path: &Path, first: Range<u64>, second: Range<u64>) -> io::Result<()> {
        let overlap = first.start < second.end && second.start < first.end;
        let len_bytes = first.end.saturating_sub(first.start);
        if overlap || len_bytes != second.end.saturating_sub(second.start) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "ranges that cannot be exchanged"));
        }
        self.damage(path, first.end.max(second.end), |content| {
            let bytes = bytes_of(content);
            content.write(first.start, &bytes[places(&second)]);
            content.write(second.start, &bytes[places(&first)]);
        })
    }

    /// Makes a sector of a file, of 4096 bytes, one that the system cannot read, as long as there is the file.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`.
    pub fn spoil(&self, path: &Path, sector: u64) -> io::Result<()> {
        self.lock_state().spoil(path, sector)
    }

    /// Takes a file away for good. The other names of its directory count as synced.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`.
    pub fn delete(&self, path: &Path) -> io::Result<()> {
        self.lock_state().delete(path)
    }

    /// Damages a file that is at least `len_bytes` long.
    fn damage(&self, path: &Path, len_bytes: u64, change: impl FnOnce(&mut Content)) -> io::Result<()> {
        let mut state = self.lock_state();
        if state.find(path)?.live.len_bytes() < len_bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "past the end of the file"));
        }
        state.find_mut(path)?.damage(change);
        Ok(())
    }
}

fn bytes_of(content: &Content) -> Vec<u8> {
    let len_bytes = usize::try_from(content.len_bytes()).expect("a simulated file fits the memory");
    let mut bytes = vec![0; len_bytes];
    content.read(0, &mut bytes);
    bytes
}

fn places(range: &Range<u64>) -> Range<usize> {
    let place = |offset| usize::try_from(offset).expect("an offset within the memory");
    place(range.start)..place(range.end)
}
