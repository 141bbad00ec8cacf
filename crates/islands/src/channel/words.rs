//! Words that two ends of a channel share.

use std::ops::Deref;

use ensilo_sync::atomic::AtomicU64;
use ensilo_sync::sync::Arc;

/// Words in memory that others write to, also others that are not trusted: each is an atomic, and whatever it holds is a number.
#[derive(Clone, Debug)]
pub(super) struct SharedWords(Arc<Place>);

#[derive(Debug)]
enum Place {
    /// In this process.
    #[cfg(test)]
    Owned(Box<[AtomicU64]>),
    #[cfg(not(loom))]
    Mapped(mapped::Mapping),
}

impl SharedWords {
    /// Returns so many words that are 0, in this process.
    #[cfg(test)]
    pub(super) fn owned(len: usize) -> Self {
        SharedWords(Arc::new(Place::Owned((0..len).map(|_| AtomicU64::new(0)).collect())))
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        match &*self.0 {
            #[cfg(test)]
            Place::Owned(words) => words,
            #[cfg(not(loom))]
            Place::Mapped(mapping) => mapping.words(),
        }
    }
}

#[cfg(not(loom))]
mod mapped {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::ptr::NonNull;

    use ensilo_sync::atomic::AtomicU64;
    use ensilo_sync::sync::Arc;
    use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
    use rustix::mm::{MapFlags, ProtFlags};

    use super::{Place, SharedWords};

    /// The file cannot become shorter or longer, and this stays so: who has it mapped never meets the end of it. The other end may still punch
    /// holes, which are read as zeros; where the system promises no more memory than it has (`vm.overcommit_memory=2`) and has
    /// none left, an access to a hole ends the process.
    const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

    fn bytes_of(words: usize) -> u64 {
        (words * size_of::<AtomicU64>()) as u64
    }

    /// The file system of memory files.
    const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

    /// Memory of a file that has no name.
    #[derive(Debug)]
    pub(in super::super) struct MemoryFile(OwnedFd);

    impl MemoryFile {
        /// Makes a file of so many words that are 0.
        pub(in super::super) fn new(len: usize) -> io::Result<Self> {
            let file =
                rustix::fs::memfd_create("ensilo-channel", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            // Its pages are there from the beginning: what is accounted for later could be refused at an access.
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes_of(len))?;
            rustix::fs::fcntl_add_seals(&file, SEALS)?;
            Ok(MemoryFile(file))
        }

        /// Takes over a file that the other end has made. It has to have this many words, and may not change its length.
        pub(in super::super) fn from_other(file: OwnedFd, len: usize) -> io::Result<Self> {
            // In this order: with the seals the length stays what it is.
            let is_sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SEALS);
            // Huge pages are of another file system: of these a mapping would be longer, and none may be left.
            let has_pages = rustix::fs::fstatfs(&file)?.f_type == TMPFS_MAGIC;
            let has_length = rustix::fs::fstat(&file)?.st_size.cast_unsigned() == bytes_of(len);
            if is_sealed && has_pages && has_length {
                return Ok(MemoryFile(file));
            }
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what the other end has sent is no memory for a channel",
            ))
        }

        pub(in super::super) fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        /// Maps the file, whose length is so many words.
        pub(in super::super) fn map(&self, len: usize) -> io::Result<SharedWords> {
            let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
            let bytes = len * size_of::<AtomicU64>();
            // SAFETY: a new mapping, at an address that the system chooses.
            let start =
                unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, flags.0, flags.1, &self.0, 0) }?;
            let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
            Ok(SharedWords(Arc::new(Place::Mapped(Mapping { start, len }))))
        }
    }

    /// A mapping of a whole [`MemoryFile`].
    #[derive(Debug)]
    pub(super) struct Mapping {
        start: NonNull<AtomicU64>,
        len: usize,
    }

    // SAFETY: it is an array of atomics, which any thread may use, and it belongs to this value.
    unsafe impl Send for Mapping {}
    // SAFETY: as above.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        #[inline]
        pub(super) fn words(&self) -> &[AtomicU64] {
            // SAFETY: the mapping begins at a page, is as long as this, and stays until this value is dropped; the file behind it is as long too,
            // and its seals keep it so. Any bytes are atomics, and what others do to them are atomic accesses or come from another
            // process, whose accesses are none of this program.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: the mapping was made with this length, and nobody borrows it any more.
            let unmapped =
                unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len * size_of::<AtomicU64>()) };
            debug_assert!(unmapped.is_ok(), "a mapping is given back as it was made");
        }
    }
}

#[cfg(not(loom))]
pub(super) use mapped::MemoryFile;
