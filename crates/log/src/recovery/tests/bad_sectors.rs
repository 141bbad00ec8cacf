//! Sectors that the system cannot read cost no more than what stands in them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ensilo_disk::{Disk, File, Listed, Lock, Place};
use ensilo_test_disk::{SimulatedDisk, forward_disk, forward_file};

use super::salvage::{PART, TARGET, blocks, saved_rows, sixty_rows};
use super::writer::{DIR, recover};
use crate::recovery::{OpenError, SalvageLoss, Salvaged, salvage};

/// A disk of which some places cannot be read.
#[derive(Debug)]
pub(super) struct BadDisk {
    disk: Arc<SimulatedDisk>,
    sectors: Option<Arc<BadSectors>>,
    /// Operations on a path that fail.
    operations: Vec<(PathBuf, Operation)>,
    /// A file that can be opened so many times, then so many times not, and then again.
    failing_opens: Option<(PathBuf, u64, u64)>,
    opened: AtomicU64,
    /// What the system says of it.
    pub(super) error: i32,
}

/// Sectors of a file.
#[derive(Debug)]
struct BadSectors {
    path: PathBuf,
    /// The file that had the path in the beginning; another one lies elsewhere on the disk.
    place: Place,
    sectors: Vec<u64>,
    /// So many reads are right before they go bad.
    good_reads: u64,
    /// So many fail then, before it is good again.
    bad_reads: u64,
    reads: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Open,
    LookFor,
    List,
    Lock,
}

#[derive(Debug)]
struct FileWithBadSector {
    file: Box<dyn File>,
    sectors: Arc<BadSectors>,
    error: i32,
}

pub(super) const SECTOR_BYTES: u64 = 4096;

/// What a system says of a disk that cannot be read.
pub(super) const EIO: i32 = 5;

impl BadDisk {
    /// Returns a disk with one bad sector, which can be read so many times before.
    pub(super) fn with_bad_sector(
        disk: &Arc<SimulatedDisk>,
        path: &Path,
        sector: u64,
        good_reads: u64,
    ) -> BadDisk {
        BadDisk::with_bad_sectors(disk, path, &[sector], good_reads)
    }

    /// Returns a disk with several bad sectors in one file.
    pub(super) fn with_bad_sectors(
        disk: &Arc<SimulatedDisk>,
        path: &Path,
        sectors: &[u64],
        good_reads: u64,
    ) -> BadDisk {
        let place = disk.place(path).unwrap();
        let reads = AtomicU64::new(0);
        let (path, sectors, bad_reads) = (path.to_path_buf(), sectors.to_vec(), u64::MAX);
        let sectors = BadSectors { path, place, sectors, good_reads, bad_reads, reads };
        BadDisk { sectors: Some(Arc::new(sectors)), ..BadDisk::new(disk) }
    }

    /// Returns the same, of which only so many reads fail.
    pub(super) fn for_reads(mut self, bad_reads: u64) -> BadDisk {
        Arc::get_mut(self.sectors.as_mut().unwrap()).unwrap().bad_reads = bad_reads;
        self
    }

    /// Returns a disk on which a file can be opened so many times, then so many times not, and then again.
    pub(super) fn with_failing_opens(disk: &Arc<SimulatedDisk>, path: &Path, good: u64, bad: u64) -> BadDisk {
        BadDisk { failing_opens: Some((path.to_path_buf(), good, bad)), ..BadDisk::new(disk) }
    }

    pub(super) fn without(disk: &Arc<SimulatedDisk>, operations: &[(PathBuf, Operation)]) -> BadDisk {
        BadDisk { operations: operations.to_vec(), ..BadDisk::new(disk) }
    }

    fn reads_of_sector(&self) -> u64 {
        self.sectors.as_ref().map_or(0, |sectors| sectors.reads.load(Ordering::Relaxed))
    }

    fn new(disk: &Arc<SimulatedDisk>) -> BadDisk {
        let (sectors, operations, failing_opens) = (None, Vec::new(), None);
        let (disk, opened, error) = (Arc::clone(disk), AtomicU64::new(0), EIO);
        BadDisk { disk, sectors, operations, failing_opens, opened, error }
    }

    fn check(&self, path: &Path, operation: Operation) -> io::Result<()> {
        let is_bad = self.operations.iter().any(|(bad, fails)| bad == path && *fails == operation);
        if is_bad { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
    }
}

impl Disk for BadDisk {
    forward_disk!(|self, path| self.disk; create, open, rename, remove, remove_dir, create_dir_all, sync_dir);
    forward_disk!(|self, path| self.disk; free_bytes, place, lock);

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.check(path, Operation::Open)?;
        if let Some((failing, good, bad)) = &self.failing_opens
            && failing == path
            && (*good..good.saturating_add(*bad)).contains(&self.opened.fetch_add(1, Ordering::Relaxed))
        {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let file = self.disk.open_read(path)?;
        match &self.sectors {
            Some(sectors) if sectors.path == path && self.disk.place(path)? == sectors.place => {
                Ok(Box::new(FileWithBadSector { file, sectors: Arc::clone(sectors), error: self.error }))
            }
            _ => Ok(file),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.check(dir, Operation::List)?;
        self.disk.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.check(path, Operation::LookFor)?;
        self.disk.exists(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.check(path, Operation::Lock)?;
        self.disk.lock_shared(path)
    }
}

impl File for FileWithBadSector {
    forward_file!(|self| self.file; len_bytes, write_at, sync_data, sync_all, set_len);

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let BadSectors { sectors, good_reads, bad_reads, reads, .. } = &*self.sectors;
        let is_bad = |read: u64| (*good_reads..good_reads.saturating_add(*bad_reads)).contains(&read);
        let end = offset + bytes.len() as u64;
        let is_hit = sectors.iter().any(|bad| offset < (bad + 1) * SECTOR_BYTES && end > bad * SECTOR_BYTES);
        if is_hit && is_bad(reads.fetch_add(1, Ordering::Relaxed)) {
            return Err(io::Error::from_raw_os_error(self.error));
        }
        self.file.read_at(offset, bytes)
    }
}

fn save_with_bad_sector(disk: &Arc<SimulatedDisk>, path: &Path, sector: u64) -> Result<Salvaged, OpenError> {
    save_with_sector_going_bad(disk, path, sector, 0)
}

/// Fails if a sector that could not be read is asked for again, as a whole and by itself.
fn save_with_sector_going_bad(
    disk: &Arc<SimulatedDisk>,
    path: &Path,
    sector: u64,
    good_reads: u64,
) -> Result<Salvaged, OpenError> {
    let bad = Arc::new(BadDisk::with_bad_sector(disk, path, sector, good_reads));
    let saved = salvage(&(Arc::clone(&bad) as Arc<dyn Disk>), Path::new(DIR), Path::new(TARGET));
    let reads = bad.reads_of_sector();
    assert!(reads <= good_reads + 2, "{reads} reads, {good_reads} of them good");
    saved
}

fn save_without(
    disk: &Arc<SimulatedDisk>,
    operations: &[(PathBuf, Operation)],
) -> Result<Salvaged, OpenError> {
    let bad = BadDisk::without(disk, operations);
    salvage(&(Arc::new(bad) as Arc<dyn Disk>), Path::new(DIR), Path::new(TARGET))
}

#[test]
fn a_bad_sector_of_a_checkpoint_costs_the_rows_of_its_blocks() {
    let (sound, rows) = sixty_rows();
    let blocks = blocks(&sound);
    let ends = blocks.iter().skip(1).map(|(offset, _)| *offset).chain([u64::MAX]);
    let blocks: Vec<_> = blocks.iter().zip(ends).collect();
    let len = sound.contents(Path::new(PART)).unwrap().len() as u64;
    for sector in 0..len.div_ceil(SECTOR_BYTES) {
        let disk = Arc::new(sound.fork());
        let salvaged = save_with_bad_sector(&disk, Path::new(PART), sector).unwrap();
        assert_eq!(salvaged.unread.len(), 1);
        assert!((1..=SECTOR_BYTES).contains(&salvaged.unread[0].1), "{:?}", salvaged.unread);
        let bad = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
        let hit = blocks.iter().filter(|((offset, _), end)| *offset < bad.end && *end > bad.start);
        let lost: Vec<&Vec<u8>> = hit.flat_map(|((_, keys), _)| keys).collect();
        let saved = saved_rows(&disk);
        // What was put again since is in the log.
        let is_saved = |key: &Vec<u8>| !lost.contains(&key) || *key == [0, 14] || *key == [0, 15];
        assert!(rows.iter().all(|(key, row)| !is_saved(&key.1) || saved.get(key) == Some(row)), "{sector}");
        assert!(saved.iter().all(|(key, row)| rows.get(key) == Some(row)), "{sector}");
        // The first row is all zeros.
        assert_eq!(salvaged.loss() == SalvageLoss::Nothing, saved == rows, "{sector}");
    }
}

#[test]
fn a_bad_sector_of_the_manifest_costs_nothing_and_one_of_the_log_is_told() {
    let (sound, rows) = sixty_rows();
    let disk = Arc::new(sound.fork());
    let salvaged = save_with_bad_sector(&disk, &Path::new(DIR).join("MANIFEST"), 0).unwrap();
    assert_eq!(salvaged.loss(), SalvageLoss::Uncertain);
    assert!(salvaged.manifest.is_some());
    assert_eq!(saved_rows(&disk), rows);
    let log = Path::new(DIR).join("log/log-1-0-1.open");
    assert!(sound.exists(&log).unwrap());
    for sector in [0, 1] {
        let disk = Arc::new(sound.fork());
        let salvaged = save_with_bad_sector(&disk, &log, sector).unwrap();
        assert_eq!((salvaged.loss(), salvaged.unread.len()), (SalvageLoss::Rows, 1));
        assert!(saved_rows(&disk).len() > 50);
    }
    // The database itself is as it was.
    assert_eq!(recover(&sound, 1).unwrap().0, rows);
}

#[test]
fn a_sector_that_goes_bad_between_two_reads_is_as_lost_as_one_that_was_bad() {
    let (sound, rows) = sixty_rows();
    let log = Path::new(DIR).join("log/log-1-0-1.open");
    let sectors = sound.contents(&log).unwrap().iter().rposition(|&byte| byte != 0).unwrap() as u64;
    let mut lossy = 0;
    for sector in (0..=sectors / SECTOR_BYTES).step_by(7) {
        for good_reads in 0.. {
            let disk = Arc::new(sound.fork());
            let salvaged = save_with_sector_going_bad(&disk, &log, sector, good_reads).unwrap();
            let (saved, what) = (saved_rows(&disk), format!("sector {sector} after {good_reads} reads"));
            if salvaged.unread.is_empty() {
                assert!(salvaged.loss() == SalvageLoss::Nothing && saved == rows, "{what}");
                break;
            }
            assert!(salvaged.loss() == SalvageLoss::Rows && saved.len() > 50, "{what}");
            lossy += u64::from(saved != rows);
        }
    }
    assert!(lossy > 0);
}

#[test]
fn what_cannot_be_opened_costs_what_is_in_it_and_is_told() {
    let (sound, rows) = sixty_rows();
    let files = sound.files().into_iter().map(|(path, _)| path);
    let directories = ["db", "db/log", "db/checkpoint-1"].map(PathBuf::from);
    let mut reported = 0;
    for path in files.filter(|path| path.starts_with(DIR)).chain(directories) {
        for operation in [Operation::Open, Operation::LookFor, Operation::List, Operation::Lock] {
            let disk = Arc::new(sound.fork());
            let what = format!("{operation:?} {}", path.display());
            let salvaged = save_without(&disk, &[(path.clone(), operation)]);
            let salvaged = salvaged.unwrap_or_else(|error| panic!("{what}: {error}"));
            let saved = saved_rows(&disk);
            let is_whole = matches!(salvaged.loss(), SalvageLoss::Nothing | SalvageLoss::Uncertain);
            assert_eq!(is_whole, saved == rows, "{what}");
            let is_checkpoint = path == Path::new(PART);
            assert!(saved.len() > 50 || is_checkpoint, "{what}");
            match &salvaged.unopened[..] {
                [] => assert!(
                    salvaged.loss() == SalvageLoss::Nothing && salvaged.corruptions.is_empty(),
                    "{what}"
                ),
                [unopened] => assert!(unopened.path == path, "{what}"),
                more => panic!("{what}: {more:?}"),
            }
            reported += salvaged.unopened.len();
        }
    }
    assert!(reported > 8, "{reported}");
}

#[test]
fn the_copy_of_the_manifest_is_found_where_the_directory_cannot_be_listed() {
    let (sound, rows) = sixty_rows();
    let (dir, manifest) = (PathBuf::from(DIR), Path::new(DIR).join("MANIFEST"));
    let bad = [(dir, Operation::List), (manifest.clone(), Operation::LookFor)];
    let disk = Arc::new(sound.fork());
    let salvaged = save_without(&disk, &bad).unwrap();
    assert_eq!((salvaged.loss(), salvaged.unopened.len()), (SalvageLoss::Uncertain, 2));
    assert_eq!(salvaged.manifest.unwrap().file, manifest);
    assert!(saved_rows(&disk) == rows);
    // Without the copy it is not called a directory of something else.
    sound.remove(&Path::new(DIR).join("MANIFEST.copy")).unwrap();
    let error = save_without(&sound, &bad).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

#[test]
fn a_file_that_cannot_be_opened_once_costs_what_is_in_it_whenever_that_is() {
    let (sound, rows) = sixty_rows();
    let mut reported = 0;
    for path in [PathBuf::from(PART), Path::new(DIR).join("log/log-1-0-1.open"), "db/log/OWNER".into()] {
        for good in 0.. {
            let disk = Arc::new(sound.fork());
            let bad = Arc::new(BadDisk::with_failing_opens(&disk, &path, good, 1));
            let salvaged = salvage(&(Arc::clone(&bad) as Arc<dyn Disk>), Path::new(DIR), Path::new(TARGET));
            let what = format!("{} after {good}", path.display());
            let salvaged = salvaged.unwrap_or_else(|error| panic!("{what}: {error}"));
            if bad.opened.load(Ordering::Relaxed) <= good {
                assert!(salvaged.loss() == SalvageLoss::Nothing && saved_rows(&disk) == rows, "{what}");
                break;
            }
            assert_ne!(salvaged.loss(), SalvageLoss::Nothing, "{what}");
            reported += 1;
        }
    }
    assert!(reported > 5, "{reported}");
}
