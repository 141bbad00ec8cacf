//! Where rows go that leave memory.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ensilo_disk::Disk;

/// A directory for rows that are on the disk instead of in memory. They are of use to this opening alone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ColdPlace {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The directory, made when it is needed. The files in it whose names begin with `rows-` belong to the engine.
    pub directory: PathBuf,
    /// How long a file gets. A row that is longer has one of its own.
    pub file_bytes: u64,
    /// How many bytes the disk keeps free for others: no file grows that would leave less. [`u64::MAX`] lets none grow.
    pub kept_free_bytes: Arc<AtomicU64>,
}

impl ColdPlace {
    /// Returns a place that leaves others no room yet.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, directory: PathBuf) -> Self {
        // A file that is not longer is removed by the disk at once, and not in pieces.
        ColdPlace { disk, directory, file_bytes: 32 << 20, kept_free_bytes: Arc::default() }
    }

    /// Removes what an earlier opening has left, and the directory if nothing else is there. What cannot be removed stays: it is overwritten.
    pub fn remove_leftovers(&self) {
        let Ok(found) = self.disk.list(&self.directory) else { return };
        for file in found.iter().filter(|file| file.is_file && file.name.starts_with("rows-")) {
            let _ = self.disk.remove(&self.directory.join(&file.name));
        }
        let _ = self.disk.remove_dir(&self.directory);
    }

    /// Checks that so many bytes more leave others their room.
    ///
    /// # Errors
    /// `StorageFull`.
    pub fn check_room(&self, len_bytes: u64) -> io::Result<()> {
        // Relaxed: a number that stands for itself.
        let kept_bytes = self.kept_free_bytes.load(Ordering::Relaxed);
        let needed_bytes = kept_bytes.saturating_add(len_bytes);
        if kept_bytes < u64::MAX && self.free_bytes().is_none_or(|free_bytes| free_bytes >= needed_bytes) {
            return Ok(());
        }
        let reason = "what the disk has free is for the log and the next checkpoint";
        Err(io::Error::new(io::ErrorKind::StorageFull, reason))
    }

    /// Returns what files in the directory can still take, as far as that is known.
    fn free_bytes(&self) -> Option<u64> {
        // The directory itself may not be there yet.
        let mut places = self.directory.ancestors().take(2);
        places.find_map(|place| self.disk.free_bytes(place).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use ensilo_test_disk::{Faults, SimulatedDisk};

    use super::*;

    #[test]
    fn files_grow_only_while_others_have_their_room() {
        let disk = SimulatedDisk::new();
        disk.set_faults(Faults { no_space_after_bytes: Some(1000), ..Faults::default() });
        let place = ColdPlace::new(Arc::new(disk), "/db/cold".into());
        assert!(place.check_room(1000).is_ok() && place.check_room(1001).is_err());
        place.kept_free_bytes.store(900, Ordering::Relaxed);
        assert!(place.check_room(100).is_ok());
        assert_eq!(place.check_room(101).unwrap_err().kind(), io::ErrorKind::StorageFull);
        place.kept_free_bytes.store(u64::MAX, Ordering::Relaxed);
        assert!(place.check_room(0).is_err());
    }
}
