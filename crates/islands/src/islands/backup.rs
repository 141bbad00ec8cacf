//! Checkpoints and copies of all instances.
//!
//! Checkpoints are made by each instance by itself, of what counts there. A copy is one of all: as at a [point](super::point), no transaction is half
//! decided while each instance ends an epoch of its own, and the copy of each has everything up to there and nothing behind it. So no part is in doubt
//! in it that is decided elsewhere.
//!
//! A copy has a [term](Term) of its own, which begins before the point, and which the instances have left before anything is copied: so an instance
//! out of a copy, whether that was finished or not, is not taken for one of those that it was made from, nor for one of another copy.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::epoch_record::EpochRecord;
use super::running::NoAnswer;
use super::{Islands, directory_of, refused, roster};
use crate::commit::{Refusal, SiteId};
use crate::instance::{Copied, Maintenance, Program, Submission, Term};

/// How long it may take until no decision is half carried out.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often copying begins anew, where a checkpoint has come in between.
const ATTEMPTS_MAX: u32 = 5;

/// Why nothing is copied of instances without files.
const IN_MEMORY: &str = "the instances are in memory, so that nothing of them is stored";

/// A copy of all instances that was made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IslandsBackup {
    /// How many files of checkpoints and logs were copied.
    pub files: u64,
    /// Their bytes, as far as they were copied.
    pub bytes: u64,
    /// How long it took.
    pub duration: Duration,
}

impl<P: Program> Islands<P> {
    /// Has each instance make a checkpoint now, and returns when all have.
    ///
    /// # Errors
    /// What an instance says: that it is in memory, or that its disk fails.
    pub fn checkpoint(&self) -> Result<(), Refusal> {
        self.maintain(|_| Maintenance::Checkpoint).map(drop)
    }

    /// Copies all instances to a directory while transactions go on. The directory is empty or missing, and on the machine that they run on.
    ///
    /// Opening the copy is the restore: it is opened as the instances are, as many of them, with the same [unit of commit](super::CommitUnit). Each
    /// of them was read back and verified when this returns.
    ///
    /// It has everything that was answered before the call, and is one consistent point of all instances. To fix it transactions at several instances
    /// are held up for some milliseconds.
    ///
    /// # Errors
    /// What an instance says: that it is in memory, or that the disk fails or is full; that the directory is not empty, or another copy is being made
    /// there. What was made of the copy is removed.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<IslandsBackup, Refusal> {
        let start = Instant::now();
        let of_error = |error: io::Error| refused(&format!("{}: {error}", target.as_ref().display()));
        // Instances that are processes may have other working directories.
        let target = std::path::absolute(target.as_ref()).map_err(of_error)?;
        let unfinished = Unfinished::begin(&target).map_err(of_error)?;
        let made = self.copy_all(&target);
        let copied = match made {
            Ok(copied) => copied,
            Err(refusal) => {
                unfinished.give_up(self.instances() as u16);
                return Err(refusal);
            }
        };
        unfinished.end().map_err(of_error)?;
        Ok(IslandsBackup {
            files: copied.iter().map(|copied| copied.files).sum(),
            bytes: copied.iter().map(|copied| copied.bytes).sum(),
            duration: start.elapsed(),
        })
    }

    fn copy_all(&self, target: &Path) -> Result<Vec<Copied>, Refusal> {
        for _ in 0..ATTEMPTS_MAX {
            let starts = self.running.starts();
            let (term, ends) = self.end_term()?;
            let copied = self.maintain(|instance| Maintenance::Backup {
                target: directory_of(target, instance),
                up_to: ends[usize::from(instance)],
            })?;
            let copied = copied.iter().map(|bytes| Copied::from_bytes(bytes).flatten()).collect();
            // One that has come back meanwhile has not paused, or has given something up.
            if let Some(copied) = copied
                && self.running.starts() == starts
            {
                self.note_copy(target, term, &ends).map_err(|error| refused(&error.to_string()))?;
                return Ok(copied);
            }
            remove_copies(target, self.instances() as u16);
        }
        Err(refused("instances have ended, or made checkpoints, meanwhile, again and again: try again"))
    }

    /// Begins a term that no copy has but the one that is about to be made, ends an epoch in it, and begins the next term.
    fn end_term(&self) -> Result<(Term, Vec<u64>), Refusal> {
        let Some(mut cluster) = self.lock_cluster() else { return Err(refused(IN_MEMORY)) };
        let term = self.begin_term(&mut cluster)?;
        let ends = self.end_epochs()?;
        self.begin_term(&mut cluster)?;
        Ok((term, ends))
    }

    /// Has the copy say which cluster it is of, in which term, and up to where it counts, if the instances commit by epochs.
    fn note_copy(&self, target: &Path, term: Term, ends: &[u64]) -> io::Result<()> {
        self.lock_cluster().map_or(Ok(()), |cluster| cluster.note_copy(target, term))?;
        match self.epochs {
            Some(_) => EpochRecord::open(target, ends.len())?.write(ends),
            None => Ok(()),
        }
    }

    /// Ends an epoch at each instance, while nothing is half decided, and returns their numbers when all are stored.
    fn end_epochs(&self) -> Result<Vec<u64>, Refusal> {
        let ended = |reason| match reason {
            NoAnswer::Ended => refused("an instance has ended meanwhile"),
            NoAnswer::Late => refused("transactions were half decided for too long"),
        };
        let ends = self.running.end_epochs(PATIENCE).map_err(ended)?;
        self.running.wait_until_stored(&ends, || true).map_err(ended)?;
        Ok(ends)
    }

    /// Has each instance do something with its files, and returns what each has returned, in their order.
    fn maintain(&self, what: impl Fn(u16) -> Maintenance) -> Result<Vec<Vec<u8>>, Refusal> {
        self.maintain_while(what, || true)
    }

    /// Does the same as long as `goes_on` says so.
    pub(super) fn maintain_while(
        &self,
        what: impl Fn(u16) -> Maintenance,
        goes_on: impl FnMut() -> bool,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let _activity = self.activity();
        let ask = |site: SiteId, answer| Submission::Maintain(what(site.instance), answer);
        let done = self.running.ask(self.running.first_sites(), ask).wait_while(goes_on);
        let mut done = done.map_err(|reason| match reason {
            NoAnswer::Ended => refused("an instance has ended meanwhile"),
            NoAnswer::Late => refused("an instance has not answered in time"),
        })?;
        done.sort_by_key(|(instance, _)| *instance);
        done.into_iter().map(|(_, done)| done).collect()
    }
}

/// Removes what was made of a copy of so many instances.
fn remove_copies(target: &Path, instances: u16) {
    for instance in 0..instances {
        // What cannot be removed is in the way of the next one, which says so.
        let _ = std::fs::remove_dir_all(directory_of(target, instance));
    }
    EpochRecord::remove(target);
    roster::remove(target);
}

/// The name of the file that says that a copy is not finished.
pub(super) const MARK: &str = "BACKUP.unfinished";

/// A file that says that a copy is not finished: where it is, neither instances are opened nor a database.
#[derive(Debug)]
pub(crate) struct Unfinished {
    mark: PathBuf,
    /// The directories that were made for the copy, the innermost first.
    made: Vec<PathBuf>,
}

impl Unfinished {
    /// Begins a copy in a directory that is empty or missing, which belongs to it from then on.
    pub(crate) fn begin(directory: &Path) -> io::Result<Self> {
        let made = create_directories(directory)?;
        let unfinished = Unfinished::begin_in(directory);
        match unfinished {
            Ok(unfinished) => Ok(Unfinished { made, ..unfinished }),
            Err(error) => {
                remove_empty(&made);
                Err(error)
            }
        }
    }

    fn begin_in(directory: &Path) -> io::Result<Self> {
        let not_empty = || io::Error::other("the directory is not empty");
        // Before it is marked: what somebody keeps there is not to be taken for a copy, whenever this process ends.
        if !Unfinished::is_in(directory) && std::fs::read_dir(directory)?.count() > 0 {
            return Err(not_empty());
        }
        let unfinished = Unfinished::mark(directory)?;
        if std::fs::read_dir(directory)?.count() > 1 {
            unfinished.end()?;
            return Err(not_empty());
        }
        Ok(unfinished)
    }

    /// Marks a directory, whatever it has.
    pub(crate) fn mark(directory: &Path) -> io::Result<Self> {
        let mark = Unfinished::path_in(directory);
        let made = File::create_new(&mark).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                let message = "there is a copy that was not finished: remove it, unless it is being made";
                io::Error::new(ErrorKind::AlreadyExists, message)
            }
            _ => error,
        });
        let stored = made?.sync_all().and_then(|()| File::open(directory)?.sync_all());
        // A copy that was never begun leaves no mark.
        stored.inspect_err(|_| _ = std::fs::remove_file(&mark))?;
        Ok(Unfinished { mark, made: Vec::new() })
    }

    /// Ends the copy: it may be opened.
    pub(crate) fn end(self) -> io::Result<()> {
        std::fs::remove_file(&self.mark)?;
        self.mark.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }

    /// Removes what was made of a copy of so many instances, with the directories that were made for it. What cannot be removed stays with the mark
    /// that keeps it from being opened.
    pub(crate) fn give_up(self, instances: u16) {
        let Some(directory) = self.mark.parent() else { return };
        remove_copies(directory, instances);
        let is_alone = std::fs::read_dir(directory).is_ok_and(|entries| entries.count() == 1);
        if is_alone && std::fs::remove_file(&self.mark).is_ok() {
            remove_empty(&self.made);
        }
    }

    /// Returns whether a directory has a copy that was not finished.
    pub(crate) fn is_in(directory: &Path) -> bool {
        Unfinished::path_in(directory).exists()
    }

    fn path_in(directory: &Path) -> PathBuf {
        directory.join(MARK)
    }
}

/// Makes a directory and those above it that are missing, and stores that they are there. Returns those that were made, the innermost first; after an
/// error none of them is left.
pub(crate) fn create_directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let directory = std::path::absolute(directory)?;
    let missing: Vec<&Path> = directory.ancestors().take_while(|above| !above.exists()).collect();
    let mut made = Vec::new();
    let created = missing.iter().rev().try_for_each(|place| match std::fs::create_dir(place) {
        Ok(()) => {
            made.insert(0, place.to_path_buf());
            Ok(())
        }
        // Somebody else has just made it.
        Err(_) if place.is_dir() => Ok(()),
        Err(error) => Err(error),
    });
    let is_directory = || match directory.is_dir() {
        true => Ok(()),
        false => Err(io::Error::from(ErrorKind::NotADirectory)),
    };
    let store = || {
        missing.iter().filter_map(|place| place.parent()).try_for_each(|above| File::open(above)?.sync_all())
    };
    created.and_then(|()| is_directory()).and_then(|()| store()).inspect_err(|_| remove_empty(&made))?;
    Ok(made)
}

/// Removes directories one after the other, as far as they have nothing in them.
fn remove_empty(directories: &[PathBuf]) {
    // Where somebody has put something there, it stays.
    let _ = directories.iter().try_for_each(std::fs::remove_dir);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_leaves_no_directory_that_it_has_made_and_each_that_it_has_not() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("above/target");
        Unfinished::begin(&target).unwrap().give_up(3);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        std::fs::create_dir_all(&target).unwrap();
        let unfinished = Unfinished::begin(&target).unwrap();
        assert!(Unfinished::begin(&target).is_err() && Unfinished::is_in(&target));
        unfinished.give_up(3);
        assert!(target.exists() && !Unfinished::is_in(&target));
        // What somebody else has put there meanwhile is not opened, and stays.
        let deeper = target.join("deeper");
        let unfinished = Unfinished::begin(&deeper).unwrap();
        std::fs::write(deeper.join("else"), []).unwrap();
        unfinished.give_up(3);
        assert!(deeper.join("else").exists() && Unfinished::is_in(&deeper));
    }

    #[test]
    fn directories_that_cannot_be_made_leave_none() {
        let place = tempfile::tempdir().unwrap();
        let (above, file) = (place.path().join("above"), place.path().join("file"));
        std::fs::write(&file, []).unwrap();
        let too_long = above.join("x".repeat(300));
        for target in [&too_long, &file, &file.join("below")] {
            assert!(Unfinished::begin(target).is_err(), "{}", target.display());
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
        assert_eq!(create_directories(&above.join("target")).unwrap(), [above.join("target"), above]);
    }
}
