//! The files of which the copy that a repair has made is not whole. They are not removed as long as the copy
//! is there: what could not be read once may be read another time.
//!
//! # Layout
//! `UNREAD` in the copy has the paths of files, and of directories with unknown files, as the manifest spells
//! directories. A zero byte and a newline end each. It is written before the manifest of the copy, and is
//! missing where the copy is whole.

use std::path::Path;

use ensilo_disk::Disk;

use super::error::OpenError;
use super::file_access::{exists, list, write_new};
use super::file_names::BEFORE_REPAIR;
use super::forgiving::ForgivingDisk;
use super::location::Location;
use super::manifest_file::{read_file, spell_path};

const UNREAD: &str = "UNREAD";

const END: &str = "\0\n";

/// Files and directories that are not to be removed, however the paths to them are spelled.
#[derive(Debug, Default)]
pub(super) struct UnreadList(Vec<Location>);

impl UnreadList {
    /// Writes down what could not be read while the database in `dir` was copied to `copy`.
    pub(super) fn write(source: &ForgivingDisk<'_>, dir: &Path, copy: &Path) -> Result<(), OpenError> {
        let mut text = String::new();
        for failure in source.failures() {
            text += &spell_path(source.disk(), dir, &failure.file)?;
            text += END;
        }
        if text.is_empty() {
            return Ok(());
        }
        let (disk, path) = (source.disk(), copy.join(UNREAD));
        write_new(disk, &path, text.as_bytes())
    }

    /// Reads those of all copies in `dir`.
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<UnreadList, OpenError> {
        let mut unread = UnreadList::default();
        let entries = list(disk, dir)?;
        for entry in entries.iter().filter(|entry| entry.name.starts_with(BEFORE_REPAIR)) {
            let path = dir.join(&entry.name).join(UNREAD);
            if exists(disk, &path)? {
                let text = read_file(disk, &path)?;
                let text = String::from_utf8_lossy(&text);
                for spelled in text.split_terminator(END) {
                    unread.0.push(Location::of(disk, &dir.join(spelled))?);
                }
            }
        }
        Ok(unread)
    }

    /// Returns whether a file or a directory has to stay: if it is on the list, holds something that is, or
    /// lies in a directory that is. What cannot be found out stays, too.
    pub(super) fn keeps(&self, disk: &dyn Disk, path: &Path) -> bool {
        let is_kept = |at: Location| self.0.iter().any(|kept| kept.lies_within(&at) || at.lies_within(kept));
        !self.0.is_empty() && Location::of(disk, path).map_or(true, is_kept)
    }
}
