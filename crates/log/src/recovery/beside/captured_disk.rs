//! The files of a database as they were found at one moment, on a disk on which others go on.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, File, Listed, Lock, Place};

use super::tails::Cut;
use crate::format::{LogFileName, Manifest};
use crate::recovery::error::OpenError;
use crate::recovery::unchanged::{changes_nothing, refuse_changes_of_disk, refuse_changes_of_file};

/// Lists and open files of a database. Nothing else is there, and nothing is changed through it.
#[derive(Debug)]
pub(super) struct CapturedDisk {
    disk: Arc<dyn Disk>,
    lists: HashMap<PathBuf, Vec<Listed>>,
    files: HashMap<PathBuf, CapturedFile>,
}

/// An open file.
#[derive(Debug, Clone)]
struct CapturedFile {
    file: Arc<dyn File>,
    shown: Shown,
}

/// What is shown of a file.
#[derive(Debug, Clone, Copy)]
enum Shown {
    /// All of it: it does not change.
    Whole,
    /// All of it, while it is written: where it was cut off at its end meanwhile, there are zeros.
    Changing,
    /// Its beginning, and then zeros up to a length.
    Cut { visible_bytes: u64, len_bytes: u64 },
}

impl CapturedDisk {
    /// Lists the log directories, and opens all files that count. What is missing is missing here, too.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub(super) fn capture(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        manifest: &Manifest,
    ) -> Result<CapturedDisk, OpenError> {
        let mut captured =
            CapturedDisk { disk: Arc::clone(disk), lists: HashMap::new(), files: HashMap::new() };
        for spelled in manifest.log_directories() {
            captured.list_logs(&dir.join(spelled), manifest)?;
        }
        for part in manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts) {
            captured.open_file(dir.join(&part.path), Shown::Whole)?;
        }
        Ok(captured)
    }

    fn list_logs(&mut self, directory: &Path, manifest: &Manifest) -> Result<(), OpenError> {
        let listed = match self.disk.list(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            listed => listed.map_err(OpenError::io("list", directory))?,
        };
        let files = listed.iter().filter(|entry| entry.is_file);
        for name in files.filter_map(|entry| LogFileName::parse(&entry.name)) {
            if !manifest.is_done_with(&name) {
                let is_written = name.generation == manifest.generation && !name.is_sealed();
                let shown = if is_written { Shown::Changing } else { Shown::Whole };
                self.open_file(directory.join(name.to_string()), shown)?;
            }
        }
        self.lists.insert(directory.to_path_buf(), listed);
        Ok(())
    }

    fn open_file(&mut self, path: PathBuf, shown: Shown) -> Result<(), OpenError> {
        match self.disk.open_kept(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => {
                let file = Arc::from(opened.map_err(OpenError::io("open", &path))?);
                self.files.insert(path, CapturedFile { file, shown });
            }
        }
        Ok(())
    }

    /// Shows nothing behind these places any more.
    pub(super) fn cut(&mut self, cuts: &[Cut]) {
        for &Cut { ref path, visible_bytes, len_bytes } in cuts {
            if let Some(file) = self.files.get_mut(path) {
                file.shown = Shown::Cut { visible_bytes, len_bytes };
            }
        }
    }
}

impl Disk for CapturedDisk {
    refuse_changes_of_disk!();

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.files.get(path).map_or(Err(not_found()), |file| Ok(Box::new(file.clone())))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.lists.get(dir).cloned().ok_or_else(not_found)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.contains_key(path) || self.lists.contains_key(path))
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        self.disk.place(path)
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        Err(changes_nothing())
    }

    fn lock_shared(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        Err(changes_nothing())
    }
}

impl File for CapturedFile {
    fn len_bytes(&self) -> io::Result<u64> {
        match self.shown {
            Shown::Cut { len_bytes, .. } => Ok(len_bytes),
            Shown::Whole | Shown::Changing => self.file.len_bytes(),
        }
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self.shown {
            Shown::Whole => self.file.read_at(offset, bytes),
            Shown::Changing => match self.file.read_at(offset, bytes) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    let len_bytes = self.file.len_bytes()?;
                    self.read_beginning(offset, bytes, len_bytes)
                }
                read => read,
            },
            Shown::Cut { visible_bytes, len_bytes } => {
                if offset + bytes.len() as u64 > len_bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.read_beginning(offset, bytes, visible_bytes)
            }
        }
    }

    refuse_changes_of_file!();
}

impl CapturedFile {
    /// Fills `bytes` with those of the file before `end`, and zeros.
    fn read_beginning(&self, offset: u64, bytes: &mut [u8], end: u64) -> io::Result<()> {
        let visible = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        let (shown, hidden) = bytes.split_at_mut(visible);
        if !shown.is_empty() {
            self.file.read_at(offset, shown)?;
        }
        hidden.fill(0);
        Ok(())
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}
