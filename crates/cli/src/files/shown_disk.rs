//! The disk of the machine, with a line that shows how much was read.

use std::io;
use std::path::Path;
use std::time::Duration;

use ensilo::disk::{Disk, File, Listed, Lock, LockHeld, Place, RealDisk};
use indicatif::{ProgressBar, ProgressStyle};

/// So often the line is drawn again.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// [`RealDisk`], with a line on standard error that says how much was read, if that is a terminal. How much
/// there is to be read only turns out on the way.
#[derive(Debug)]
pub(super) struct ShownDisk {
    bar: ProgressBar,
}

impl ShownDisk {
    /// Begins the line; `doing` says what is read for.
    pub(super) fn new(doing: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_prefix(doing);
        // A template that does not parse would leave the default style: a spinner alone.
        if let Ok(style) = ProgressStyle::with_template(
            "{spinner} {prefix}: {binary_bytes} read in {elapsed}, {binary_bytes_per_sec}",
        ) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(DRAW_INTERVAL);
        ShownDisk { bar }
    }

    /// Takes the line off the terminal.
    pub(super) fn close(&self) {
        self.bar.finish_and_clear();
    }

    fn shown(&self, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(ShownFile { file, bar: self.bar.clone() })
    }
}

impl Disk for ShownDisk {
    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        RealDisk.create(path, preallocate_bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.shown(RealDisk.open(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.shown(RealDisk.open_read(path)?))
    }

    fn open_kept(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.shown(RealDisk.open_kept(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        RealDisk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealDisk.exists(path)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        RealDisk.place(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        RealDisk.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        RealDisk.lock_shared(path)
    }

    fn lock_holder(&self, path: &Path) -> Option<LockHeld> {
        RealDisk.lock_holder(path)
    }
}

/// A file that counts what is read of it.
#[derive(Debug)]
struct ShownFile {
    file: Box<dyn File>,
    bar: ProgressBar,
}

impl File for ShownFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, bytes)?;
        self.bar.inc(bytes.len() as u64);
        Ok(())
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
