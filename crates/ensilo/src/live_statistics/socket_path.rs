//! Where the socket of a database is.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the socket in the directory of a database.
const NAME: &str = "STATISTICS";

/// The system takes at least so many bytes as the path of a socket.
const PATH_LEN_MAX: usize = 100;

/// A path that leads to the socket as long as this lives.
pub(super) struct SocketPath {
    path: PathBuf,
    /// The directory, if the path goes by its handle.
    _directory: Option<File>,
}

impl SocketPath {
    /// Returns the path to the socket of the database in a directory, which is there.
    ///
    /// # Errors
    /// `InvalidInput` where the path is too long for the system; those of opening the directory.
    pub(super) fn of(directory: &Path) -> io::Result<SocketPath> {
        let path = directory.join(NAME);
        if path.as_os_str().len() <= PATH_LEN_MAX {
            return Ok(SocketPath { path, _directory: None });
        }
        by_handle(directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn by_handle(directory: &Path) -> io::Result<SocketPath> {
    use std::os::fd::AsRawFd;
    let directory = File::open(directory)?;
    let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(NAME);
    Ok(SocketPath { path, _directory: Some(directory) })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn by_handle(_directory: &Path) -> io::Result<SocketPath> {
    let why = "the path of the directory is too long for a socket in it";
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}
