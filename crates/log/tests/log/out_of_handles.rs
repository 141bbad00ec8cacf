//! What it means to the log that the process has as many files open as it may.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ensilo_disk::{Disk, File};
use ensilo_log::{LogError, LogOptions};
use ensilo_test_disk::{SimulatedDisk, forward_disk};

use crate::rig::{Rig, options};

const EMFILE: i32 = 24;

/// A disk that opens nothing more when it is told to.
#[derive(Debug)]
struct FewHandles {
    disk: SimulatedDisk,
    has_none: AtomicBool,
}

impl FewHandles {
    fn take_one(&self) -> io::Result<()> {
        let has_none = self.has_none.load(Ordering::SeqCst);
        if has_none { Err(io::Error::from_raw_os_error(EMFILE)) } else { Ok(()) }
    }
}

impl Disk for FewHandles {
    forward_disk!(|self, path| self.disk; rename, remove, remove_dir, list, create_dir_all, exists, place, lock, lock_shared, free_bytes);

    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        self.take_one()?;
        self.disk.create(path, preallocate_bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.take_one()?;
        self.disk.open(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.take_one()?;
        self.disk.open_read(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.take_one()?;
        self.disk.sync_dir(path)
    }
}

fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::yield_now();
    }
}

#[test]
fn the_log_goes_on_in_the_file_that_it_has_and_makes_others_when_it_may() {
    let disk = Arc::new(FewHandles { disk: SimulatedDisk::new(), has_none: AtomicBool::new(false) });
    let rig = Rig::new(Arc::clone(&disk) as _, &["log"], &LogOptions { file_bytes: 1 << 20, ..options() });
    let mut worker = rig.worker(1);
    let mut commit = || {
        let epoch = worker.commit(300_000).unwrap();
        rig.log.wait_durable(epoch).unwrap();
    };
    let mut rotations = 0;
    for _ in 0..3 {
        disk.has_none.store(true, Ordering::SeqCst);
        (0..20).for_each(|_| commit());
        until(|| matches!(rig.log.shortage(), Some(LogError::OutOfHandles { .. })));
        assert!(rig.log.failure().is_none() && !rig.log.is_short_of_space());
        disk.has_none.store(false, Ordering::SeqCst);
        rig.log.retry_files();
        until(|| rig.log.shortage().is_none());
        (0..20).for_each(|_| commit());
        assert!(rig.log.statistics().rotations > rotations);
        rotations = rig.log.statistics().rotations;
    }
    rig.log.close().unwrap();
    rig.scan().check(&worker.committed, worker.committed.last().unwrap().1);
}
