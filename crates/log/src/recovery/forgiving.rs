//! A disk of which not all can be read any more.
//!
//! A sector that cannot be read is filled with a text, which is no part of anything valid. A file that cannot
//! be opened is empty; one that cannot be looked for is not there, and neither is a directory; a directory
//! that cannot be listed holds nothing. All of that is remembered: what failed once stays as it was taken to
//! be, and is not asked for again, since a damaged disk may take a minute to fail. Only errors that say that
//! the disk is damaged ([`is_unreadable`]), or that no file is there but something else, are taken so;
//! others, such as that memory is short, stay errors.
//!
//! An opening, a verification, a repair and a salvage read through it, each through one of its own: what is
//! damaged because it could not be read is found as other damage is, and is named by what is remembered here.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo_disk::{Disk, File, Listed, Lock, Place, is_unreadable};

use super::corruption::{CorruptPlace, Corruption, CorruptionKind};
use super::unchanged::{refuse_changes_of_disk, refuse_changes_of_file};

/// What fails to be read as a whole is read in pieces of so many bytes, the sectors of most disks.
const SECTOR_BYTES: u64 = 4096;

/// What stands, again and again, in the place of bytes that could not be read. Zeros could be right by
/// chance, or say that a file has ended.
const UNREAD: &[u8; 16] = b"cannot be read! ";

/// What could not be read.
#[derive(Debug, Default)]
struct Failures {
    /// Places in files, by file and first byte. They begin with a sector, and end with one or with the file.
    places: BTreeMap<PathBuf, BTreeMap<u64, BadPlace>>,
    /// Files and directories as a whole: what was to be done with them, and what the system said.
    whole: BTreeMap<(PathBuf, &'static str), String>,
    /// How many sectors, files and directories these are.
    count: u64,
}

/// Sectors that follow each other, and of which the system said the same.
#[derive(Debug)]
struct BadPlace {
    end: u64,
    /// What the system said.
    error: String,
}

impl Failures {
    /// Returns whether any of these bytes lies in a sector that could not be read.
    fn holds(&self, path: &Path, bytes: &Range<u64>) -> bool {
        let sectors = sectors_around(bytes);
        let before = |places: &BTreeMap<u64, BadPlace>| {
            let last = places.range(..sectors.end).next_back();
            last.is_some_and(|(_, place)| place.end > sectors.start)
        };
        self.places.get(path).is_some_and(before)
    }

    /// Notes a sector, of which these are all bytes, and which was not noted before.
    fn add(&mut self, path: &Path, sector: Range<u64>, error: String) {
        self.count += 1;
        let places = self.places.entry(path.to_path_buf()).or_default();
        let mut place = BadPlace { end: sector.end, error };
        if places.get(&sector.end).is_some_and(|next| next.error == place.error)
            && let Some(next) = places.remove(&sector.end)
        {
            place.end = next.end;
        }
        match places.range_mut(..sector.start).next_back() {
            Some((_, before)) if before.end == sector.start && before.error == place.error => {
                before.end = place.end;
            }
            _ => {
                places.insert(sector.start, place);
            }
        }
    }
}

/// Returns the whole sectors that these bytes lie in.
fn sectors_around(bytes: &Range<u64>) -> Range<u64> {
    bytes.start - bytes.start % SECTOR_BYTES..bytes.end.next_multiple_of(SECTOR_BYTES)
}

#[derive(Debug, Default)]
struct SharedFailures(Mutex<Failures>);

impl SharedFailures {
    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what may fail because the disk is damaged. `None` if it does, or did before.
    fn forgive<T>(
        &self,
        doing: &'static str,
        path: &Path,
        read: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let whole = (path.to_path_buf(), doing);
        if self.lock().whole.contains_key(&whole) {
            return Ok(None);
        }
        match read() {
            Err(error) if is_forgiven(&error) => {
                let mut failures = self.lock();
                failures.whole.insert(whole, error.to_string());
                failures.count += 1;
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}

/// A file or directory of which the system can read nothing. A file was taken for an empty one, or for one
/// that is missing, a directory too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unopened {
    /// Where it is.
    pub path: PathBuf,
    /// What was to be done with it: "open", "list", "look for".
    pub doing: &'static str,
    /// What the system said.
    pub error: String,
}

/// The disk of a damaged database. Nothing is changed through it.
#[derive(Debug)]
pub(super) struct ForgivingDisk<'d> {
    disk: &'d dyn Disk,
    failures: Arc<SharedFailures>,
}

impl<'d> ForgivingDisk<'d> {
    pub(super) fn new(disk: &'d dyn Disk) -> ForgivingDisk<'d> {
        ForgivingDisk { disk, failures: Arc::default() }
    }

    /// Returns the disk as it is, to be written to.
    pub(super) fn disk(&self) -> &'d dyn Disk {
        self.disk
    }

    /// Returns all that could not be read: files and directories as a whole, then places in files. Sectors
    /// that follow each other, and of which the system said the same, are one place.
    pub(super) fn failures(&self) -> Vec<CorruptPlace> {
        let failures = self.failures.lock();
        let whole = failures.whole.iter().map(|(&(ref file, doing), error)| {
            CorruptPlace::new(file, None, CorruptionKind::Unopened { doing, error: error.clone() })
        });
        let places = failures.places.iter().flat_map(|(file, places)| {
            places.iter().map(|(&start, BadPlace { end, error })| {
                let kind = CorruptionKind::Unreadable { bytes: end - start, error: error.clone() };
                CorruptPlace::new(file, Some(start), kind)
            })
        });
        whole.chain(places).collect()
    }

    /// Returns the failures in one file.
    pub(super) fn failures_in(&self, path: &Path) -> Vec<CorruptPlace> {
        let mut failures = self.failures();
        failures.retain(|failure| failure.file == path);
        failures
    }

    /// Returns the corruption, or what could not be read in its file, if it may follow from that.
    pub(super) fn cause_of(&self, corruption: Corruption) -> Corruption {
        match self.failures_in(&corruption.file).into_iter().next() {
            Some(CorruptPlace { offset, kind, .. }) if corruption.kind.may_follow_from_unread() => {
                Corruption { offset, kind, ..corruption }
            }
            _ => corruption,
        }
    }

    /// Returns the files of which not all could be read, each with the number of bytes that could not.
    pub(super) fn unread(&self) -> Vec<(PathBuf, u64)> {
        let failures = self.failures.lock();
        failures
            .places
            .iter()
            .map(|(path, places)| (path.clone(), places.iter().map(|(start, place)| place.end - start).sum()))
            .collect()
    }

    /// Returns the files and directories of which nothing could be read.
    pub(super) fn unopened(&self) -> Vec<Unopened> {
        let failures = self.failures.lock();
        let unopened = failures.whole.iter();
        unopened
            .map(|(&(ref path, doing), error)| Unopened { path: path.clone(), doing, error: error.clone() })
            .collect()
    }

    /// Reads through `again` all that could not be read here. Returns the first file or directory of which
    /// more can be read now.
    ///
    /// # Errors
    /// Those of the system that do not say that the disk is damaged.
    pub(super) fn first_readable_by(&self, again: &ForgivingDisk<'_>) -> io::Result<Option<PathBuf>> {
        let failures = self.failures.lock();
        for whole @ (path, doing) in failures.whole.keys() {
            match *doing {
                "open" => again.open_read(path).map(drop)?,
                "list" => again.list(path).map(drop)?,
                _ => again.exists(path).map(drop)?,
            }
            if !again.failures.lock().whole.contains_key(whole) {
                return Ok(Some(path.clone()));
            }
        }
        let mut bytes = [0; SECTOR_BYTES as usize];
        for (path, places) in &failures.places {
            let file = again.open_read(path)?;
            for (&start, place) in places {
                for start in (start..place.end).step_by(SECTOR_BYTES as usize) {
                    let sector = start..place.end.min(start + SECTOR_BYTES);
                    file.read_at(start, &mut bytes[..(sector.end - start) as usize])?;
                    if !again.failures.lock().holds(path, &sector) {
                        return Ok(Some(path.clone()));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns how many sectors, files and directories could not be read. Another one is in none of the
    /// answers before.
    pub(super) fn count_failures(&self) -> u64 {
        self.failures.lock().count
    }
}

impl Disk for ForgivingDisk<'_> {
    refuse_changes_of_disk!();

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let opened = || {
            let file = self.disk.open_read(path)?;
            file.len_bytes().map(|_| file)
        };
        let file = self.failures.forgive("open", path, opened)?;
        Ok(Box::new(ForgivingFile { file, path: path.to_path_buf(), failures: Arc::clone(&self.failures) }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.failures.forgive("list", dir, || self.disk.list(dir)).map(Option::unwrap_or_default)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.failures.forgive("look for", path, || self.disk.exists(path)).map(Option::unwrap_or_default)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        // Nothing can stand for it. To look again in the same way says no more.
        self.disk.place(path).map_err(|error| match is_unreadable(&error) {
            true => io::Error::other(error.to_string()),
            false => error,
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        // Nobody else can lock what cannot be opened either, and nothing is lost with it.
        self.disk.lock_shared(path).map_err(|error| match is_unreadable(&error) {
            true => io::ErrorKind::NotFound.into(),
            false => error,
        })
    }
}

/// A file of it.
#[derive(Debug)]
struct ForgivingFile {
    /// `None` if it cannot be opened.
    file: Option<Box<dyn File>>,
    path: PathBuf,
    failures: Arc<SharedFailures>,
}

impl ForgivingFile {
    /// Reads what lies within one sector, or takes it for unread.
    fn read_piece(&self, file: &dyn File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        if !self.has_failed(offset, bytes.len()) {
            let error = match file.read_at(offset, bytes) {
                Err(error) if is_forgiven(&error) => error,
                read => return read,
            };
            let read_to = offset + bytes.len() as u64;
            let sector = sectors_around(&(offset..read_to));
            let end = sector.end.min(file.len_bytes()?.max(read_to));
            let mut failures = self.failures.lock();
            // Another thread may have come to it as well.
            if !failures.holds(&self.path, &sector) {
                failures.add(&self.path, sector.start..end, error.to_string());
            }
        }
        let unread = UNREAD.iter().cycle().skip((offset % UNREAD.len() as u64) as usize);
        bytes.iter_mut().zip(unread).for_each(|(byte, unread)| *byte = *unread);
        Ok(())
    }

    /// Returns whether any of these bytes lies in a sector that could not be read before.
    fn has_failed(&self, offset: u64, len: usize) -> bool {
        self.failures.lock().holds(&self.path, &(offset..offset + len as u64))
    }
}

impl File for ForgivingFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.as_ref().map_or(Ok(0), |file| file.len_bytes())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let Some(file) = &self.file else {
            return if bytes.is_empty() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        };
        if !self.has_failed(offset, bytes.len()) {
            match file.read_at(offset, bytes) {
                Err(error) if is_forgiven(&error) => {}
                read => return read,
            }
        }
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let left = usize::try_from(SECTOR_BYTES - at % SECTOR_BYTES).unwrap_or(usize::MAX);
            let (piece, next) = rest.split_at_mut(left.min(rest.len()));
            self.read_piece(&**file, at, piece)?;
            at += piece.len() as u64;
            rest = next;
        }
        Ok(())
    }

    refuse_changes_of_file!();
}

/// Returns whether something cannot be read because the disk is damaged, or because it is no file: a
/// directory, a pipe, a socket or a device.
fn is_forgiven(error: &io::Error) -> bool {
    let is_no_file = matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory);
    is_no_file || is_unreadable(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_that_follow_each_other_are_one_place_however_they_come() {
        let (path, sector) =
            (Path::new("file"), |number: u64| number * SECTOR_BYTES..(number + 1) * SECTOR_BYTES);
        let mut failures = Failures::default();
        for number in [5, 3, 4, 0, 1, 9] {
            assert!(!failures.holds(path, &(number * SECTOR_BYTES + 10..number * SECTOR_BYTES + 20)));
            failures.add(path, sector(number), "one error".to_owned());
        }
        failures.add(path, sector(6), "another error".to_owned());
        failures.add(path, 10 * SECTOR_BYTES..10 * SECTOR_BYTES + 7, "one error".to_owned());
        let places: Vec<_> = failures.places[path].iter().map(|(&start, place)| start..place.end).collect();
        let to = |first: u64, last: u64| sector(first).start..sector(last).end;
        assert_eq!(places, [to(0, 1), to(3, 5), to(6, 6), 9 * SECTOR_BYTES..10 * SECTOR_BYTES + 7]);
        assert_eq!(failures.count, 8);
        let held: Vec<_> = (0..12).filter(|&number| failures.holds(path, &sector(number))).collect();
        assert_eq!(held, [0, 1, 3, 4, 5, 6, 9, 10]);
        assert!(
            !failures.holds(path, &sector(2))
                && failures.holds(path, &(sector(2).start..sector(3).start + 1))
        );
    }
}
