//! The files of cold rows that are open: so many at most, however many there are, and a quarter of what the process may open.
//!
//! One that was read since its turn came last stays open for another round.
//!
//! When the process may open no more files, one of these is closed for the one that is needed: where there are more than a few, rows can be
//! read back whatever the rest of the program has open.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use ensilo_disk::{Disk, File, is_out_of_handles};
use rustix::process::{Resource, getrlimit};

use super::segments::Segment;

/// How many files are open at most where the process may open many, beside the one that is being filled, and those that are being read as they are closed here.
pub(super) const OPEN_FILES_MAX: usize = 64;

/// The same where it may open few: the log and checkpoints need some.
const OPEN_FILES_MIN: usize = 4;

/// How often a reader waits for a handle that the rest of the program leaves it, and for how long each time.
const HANDLE_WAITS_MAX: u32 = 1000;
const HANDLE_WAIT: Duration = Duration::from_millis(10);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OpenFiles {
    disk: Arc<dyn Disk>,
    /// How many are open at most.
    most: usize,
    /// Held while a file is opened, closed or removed.
    open: Mutex<VecDeque<Arc<Segment>>>,
}

impl OpenFiles {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        OpenFiles { disk, most: open_files_max(), open: Mutex::default() }
    }

    /// Creates the file of a segment.
    pub(super) fn create(&self, segment: &Arc<Segment>) -> io::Result<Arc<dyn File>> {
        let mut open = self.lock();
        let path = segment.path();
        if self.disk.exists(path)? {
            self.disk.remove(path)?;
        }
        self.add(&mut open, segment, 0, |disk| disk.create_cached(path))
    }

    /// Returns the file of a segment, which is opened if it is not.
    ///
    /// # Errors
    /// `NotFound` for one that was removed; those of the system.
    pub(super) fn get(&self, segment: &Arc<Segment>) -> io::Result<Arc<dyn File>> {
        if let Some(file) = segment.file() {
            return Ok(file);
        }
        let mut open = self.lock();
        match segment.file() {
            // Another thread has opened it meanwhile.
            Some(file) => Ok(file),
            // By its name, another one may be found.
            None if segment.is_removed() => Err(io::ErrorKind::NotFound.into()),
            None => self.add(&mut open, segment, HANDLE_WAITS_MAX, |disk| disk.open_cached(segment.path())),
        }
    }

    /// Removes the file of a segment. Who has it open, or finds it open here, can go on reading.
    pub(super) fn remove(&self, segment: &Segment) {
        let _open = self.lock();
        if segment.set_removed() {
            // What cannot be removed goes with the next opening.
            let _ = self.disk.remove(segment.path());
        }
    }

    /// Closes the file of a segment that was removed.
    pub(super) fn close(&self, segment: &Arc<Segment>) {
        let mut open = self.lock();
        open.retain(|other| !Arc::ptr_eq(other, segment));
        segment.set_file(None);
    }

    fn add(
        &self,
        open: &mut VecDeque<Arc<Segment>>,
        segment: &Arc<Segment>,
        waits_max: u32,
        mut to_open: impl FnMut(&dyn Disk) -> io::Result<Box<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        while open.len() >= self.most {
            close_one(open);
        }
        let mut waits = 0;
        let file: Arc<dyn File> = loop {
            match to_open(&*self.disk) {
                Err(error) if is_out_of_handles(&error) && close_one(open) => {}
                // Others take what is closed here: that passes, and the rows are all there.
                Err(error) if is_out_of_handles(&error) && waits < waits_max => {
                    waits += 1;
                    thread::sleep(HANDLE_WAIT);
                }
                opened => break opened?.into(),
            }
        };
        segment.set_file(Some(Arc::clone(&file)));
        open.push_back(Arc::clone(segment));
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Segment>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_files_max() -> usize {
    // Without a limit there is none to keep to.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 4).unwrap_or(usize::MAX).clamp(OPEN_FILES_MIN, OPEN_FILES_MAX)
}

/// Closes the file that was not read for the longest time, about. False if none is open.
fn close_one(open: &mut VecDeque<Arc<Segment>>) -> bool {
    let not_read = open.iter().position(|segment| !segment.take_was_read());
    // Those in front of it were read.
    open.rotate_left(not_read.unwrap_or(0));
    let closed = open.pop_front();
    closed.iter().for_each(|segment| segment.set_file(None));
    closed.is_some()
}
