//! A file that is also open past the page cache.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::page_buffer::PAGE_BYTES;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    ReadWrite,
}

/// The same file, open past the page cache.
#[derive(Debug)]
pub(super) struct Direct {
    file: OnceLock<fs::File>,
    /// The system has refused it.
    is_refused: AtomicBool,
}

impl Direct {
    /// None where the system or the file system cannot.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    pub(super) fn open(path: &Path, access: Access) -> Option<Direct> {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let is_written = access == Access::ReadWrite;
        let file = fs::OpenOptions::new().read(true).write(is_written).custom_flags(flags).open(path).ok()?;
        Some(Direct { file: file.into(), is_refused: AtomicBool::new(false) })
    }

    /// Returns one that is opened with the first whole pages that are read.
    pub(super) fn when_read() -> Direct {
        Direct { file: OnceLock::new(), is_refused: AtomicBool::new(false) }
    }

    /// Returns the handle that reads past the page cache. `None` if the system gives none, as where too many files are open, which is
    /// remembered: all can be read through `cached`.
    fn file_of(&self, cached: &fs::File) -> Option<&fs::File> {
        if self.file.get().is_none() {
            match reopen_direct(cached) {
                // Another thread may have been faster; then this handle is closed.
                Ok(file) => _ = self.file.set(file),
                Err(_) => self.is_refused.store(true, Ordering::Relaxed),
            }
        }
        self.file.get()
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    pub(super) fn open(_path: &Path, _access: Access) -> Option<Direct> {
        None
    }

    /// Returns whether these are whole pages, in memory as well as in the file.
    pub(super) fn takes(&self, offset: u64, bytes: &[u8]) -> bool {
        let is_whole = |number: usize| number.is_multiple_of(PAGE_BYTES);
        let are_pages = offset.is_multiple_of(PAGE_BYTES as u64)
            && is_whole(bytes.len())
            && is_whole(bytes.as_ptr().addr());
        // Relaxed: it only saves asking the system again.
        are_pages && !self.is_refused.load(Ordering::Relaxed)
    }

    /// Reads past the page cache, or through `cached` if the system refuses.
    pub(super) fn read_at(&self, cached: &fs::File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let Some(file) = self.file_of(cached) else {
            return cached.read_exact_at(bytes, offset);
        };
        match file.read_exact_at(bytes, offset) {
            Err(error) if self.is_refusal(&error) => cached.read_exact_at(bytes, offset),
            read => read,
        }
    }

    /// Writes past the page cache, or through `cached` if the system refuses.
    pub(super) fn write_at(&self, cached: &fs::File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self.file.get().map(|file| file.write_all_at(bytes, offset)) {
            Some(Err(error)) if self.is_refusal(&error) => cached.write_all_at(bytes, offset),
            Some(written) => written,
            None => cached.write_all_at(bytes, offset),
        }
    }

    /// Returns whether the system will not have such reads and writes, which is remembered: some disks have larger
    /// pages.
    fn is_refusal(&self, error: &io::Error) -> bool {
        let is_refusal = error.kind() == io::ErrorKind::InvalidInput;
        if is_refusal {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        is_refusal
    }
}

/// Opens a file that is open once more, to read it past the page cache, also if it has been removed.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reopen_direct(file: &fs::File) -> io::Result<fs::File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reopen_direct(_file: &fs::File) -> io::Result<fs::File> {
    Err(io::ErrorKind::Unsupported.into())
}
