//! Sectors that the system cannot read cost no more than what stands in them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, File, Listed, Lock, Place};
use ensilo_test_disk::SimulatedDisk;

use super::salvage::{PART, TARGET, blocks, saved_rows, sixty_rows};
use super::writer::{DIR, recover};
use crate::recovery::{Loss, OpenError, Salvaged, salvage};

/// A disk on which one sector of one file cannot be read.
#[derive(Debug)]
struct BadSector {
    disk: Arc<SimulatedDisk>,
    path: PathBuf,
    sector: u64,
}

#[derive(Debug)]
struct FileWithBadSector {
    file: Box<dyn File>,
    sector: u64,
}

const SECTOR_BYTES: u64 = 4096;

impl Disk for BadSector {
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        self.disk.create(path, preallocate_bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.disk.open(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = self.disk.open_read(path)?;
        if path != self.path {
            return Ok(file);
        }
        Ok(Box::new(FileWithBadSector { file, sector: self.sector }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.disk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        self.disk.place(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock_shared(path)
    }
}

impl File for FileWithBadSector {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let bad = self.sector * SECTOR_BYTES..(self.sector + 1) * SECTOR_BYTES;
        if offset < bad.end && offset + bytes.len() as u64 > bad.start {
            return Err(io::Error::other("a bad sector"));
        }
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }
}

fn save_with_bad_sector(disk: &Arc<SimulatedDisk>, path: &Path, sector: u64) -> Result<Salvaged, OpenError> {
    let bad: Arc<dyn Disk> = Arc::new(BadSector { disk: Arc::clone(disk), path: path.to_path_buf(), sector });
    salvage(&bad, Path::new(DIR), Path::new(TARGET))
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
        assert_eq!(salvaged.loss() == Loss::Nothing, saved == rows, "{sector}");
    }
}

#[test]
fn a_bad_sector_of_the_manifest_costs_nothing_and_one_of_the_log_is_told() {
    let (sound, rows) = sixty_rows();
    let disk = Arc::new(sound.fork());
    let salvaged = save_with_bad_sector(&disk, &Path::new(DIR).join("MANIFEST"), 0).unwrap();
    assert_eq!(salvaged.loss(), Loss::Nothing);
    assert!(salvaged.manifest.is_some());
    assert_eq!(saved_rows(&disk), rows);
    let log = Path::new(DIR).join("log/log-1-0-1.open");
    assert!(sound.exists(&log).unwrap());
    for sector in [0, 1] {
        let disk = Arc::new(sound.fork());
        let salvaged = save_with_bad_sector(&disk, &log, sector).unwrap();
        assert_eq!((salvaged.loss(), salvaged.unread.len()), (Loss::Rows, 1));
        assert!(saved_rows(&disk).len() > 50);
    }
    // The database itself is as it was.
    assert_eq!(recover(&sound, 1).unwrap().0, rows);
}
