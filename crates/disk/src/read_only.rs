//! A file that is only looked at.

use std::io;

use crate::disk::File;

/// Reads another file, and refuses every change with `PermissionDenied`. This is what [`Disk::open_read`](crate::Disk::open_read)
/// returns on any disk.
#[derive(Debug)]
pub struct ReadOnly(Box<dyn File>);

impl ReadOnly {
    /// Returns a view of `file` that only reads.
    #[must_use]
    pub fn new(file: Box<dyn File>) -> ReadOnly {
        ReadOnly(file)
    }
}

impl File for ReadOnly {
    fn len_bytes(&self) -> io::Result<u64> {
        self.0.len_bytes()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, bytes)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(refused())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(refused())
    }

    fn sync_all(&self) -> io::Result<()> {
        Err(refused())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(refused())
    }
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the file is open for reading only")
}
