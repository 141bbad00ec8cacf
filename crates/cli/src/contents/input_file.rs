//! A file that is loaded, or standard input.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Stdin};
use std::path::Path;
use std::rc::Rc;

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

pub(super) struct InputFile {
    source: Source,
    bytes_total: u64,
    bytes_read: Rc<Cell<u64>>,
}

enum Source {
    File(File),
    StandardInput(Stdin),
}

/// How far a file is read.
pub(super) struct ReadProgress {
    bytes_total: u64,
    bytes_read: Rc<Cell<u64>>,
}

impl InputFile {
    /// Checks whether a file can be opened, before anything is done with others. What is no file of the disk, such as a pipe, is
    /// left alone, since it can be opened once. The files of a dump end with the end of a line.
    ///
    /// # Errors
    /// What cannot be opened, and why; that it was cut off.
    pub(super) fn check(path: &Path, is_of_dump: bool) -> Result<(), String> {
        let is_file = path.metadata().map_or(true, |metadata| metadata.is_file() || metadata.is_dir());
        if path == Path::new(STANDARD_INPUT) || !is_file {
            return Ok(());
        }
        let InputFile { source: Source::File(mut file), bytes_total, .. } = InputFile::open(path)? else {
            return Ok(());
        };
        let is_text = path.extension().is_none_or(|extension| extension != "parquet");
        if !is_of_dump || !is_text || bytes_total == 0 {
            return Ok(());
        }
        let mut last = [0];
        let read = file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last));
        read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        match last {
            [b'\n'] => Ok(()),
            _ => Err(format!("{} does not end with a line: it was cut off", path.display())),
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// What cannot be opened, and why.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let bytes_read = Rc::default();
        if path == Path::new(STANDARD_INPUT) {
            return Ok(InputFile { source: Source::StandardInput(io::stdin()), bytes_total: 0, bytes_read });
        }
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        if metadata.is_dir() {
            return Err(format!("{} is a directory: --from loads all of a dump", path.display()));
        }
        Ok(InputFile { source: Source::File(file), bytes_total: metadata.len(), bytes_read })
    }

    /// Returns the file itself; `None` for standard input.
    #[cfg(feature = "parquet")]
    pub(super) fn into_file(self) -> Option<File> {
        match self.source {
            Source::File(file) => Some(file),
            Source::StandardInput(_) => None,
        }
    }

    /// Returns what tells how far it is read.
    pub(super) fn progress(&self) -> ReadProgress {
        ReadProgress { bytes_total: self.bytes_total, bytes_read: Rc::clone(&self.bytes_read) }
    }
}

impl Read for InputFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.source {
            Source::File(file) => file.read(bytes)?,
            Source::StandardInput(input) => input.read(bytes)?,
        };
        self.bytes_read.set(self.bytes_read.get() + read as u64);
        Ok(read)
    }
}

impl ReadProgress {
    /// Returns the bytes that are read, and those that there are; of standard input, those that have come.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let read = self.bytes_read.get();
        (read, self.bytes_total.max(read))
    }
}
