//! Asking the process that has a database open.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use super::socket_path::SocketPath;

/// A process that answers lets nobody wait for longer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// No answer is longer: that suffices for a hundred thousand tables.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Why there are no statistics of the process that has a database open.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// No process answers: none has the database open, or has just closed it, or it was opened without
    /// [`Options::live_statistics`](crate::Options::live_statistics).
    NobodyAnswers {
        /// The directory of the database.
        directory: PathBuf,
    },
    /// The process may not be asked, or its answer could not be read. Only the user that it runs as may ask it.
    Io {
        /// The directory of the database.
        directory: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Returns what the process that has the database in `directory` open says of it: a JSON object, as the [module](super) describes it.
///
/// # Errors
/// [`LiveError`].
pub fn read(directory: impl AsRef<Path>) -> Result<String, LiveError> {
    let directory = directory.as_ref();
    let failed = |error: io::Error| {
        let error = if error.kind() == io::ErrorKind::WouldBlock { no_answer() } else { error };
        LiveError::Io { directory: directory.to_path_buf(), error }
    };
    let nobody = || LiveError::NobodyAnswers { directory: directory.to_path_buf() };
    let stream = connect(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => nobody(),
        _ => failed(error),
    })?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer) {
        // It was closed before this reader's turn came.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset && answer.is_empty() => Err(nobody()),
        Err(error) => Err(failed(error)),
        // A process that ends, or gives the reader up, leaves a part of its answer.
        Ok(_) if !answer.ends_with(b"\n") => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        Ok(_) => String::from_utf8(answer).map_err(|error| failed(io::Error::other(error))),
    }
}

/// What the system calls a resource that is unavailable: the time was over.
fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it has not answered within {} s", TIMEOUT.as_secs()))
}

/// Connects to the socket of the database in a directory, and limits for how long one waits there.
fn connect(directory: &Path) -> io::Result<UnixStream> {
    let socket = SocketPath::of(directory)?;
    let stream = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&stream, FdFlags::CLOEXEC)?;
    // Where more wait already than the system lets wait, a connection waits as well.
    set_socket_timeout(&stream, Timeout::Send, Some(TIMEOUT))?;
    set_socket_timeout(&stream, Timeout::Recv, Some(TIMEOUT))?;
    let address = SocketAddrUnix::new(socket.path())?;
    retry_on_intr(|| rustix::net::connect(&stream, &address))?;
    Ok(UnixStream::from(stream))
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::NobodyAnswers { directory } => write!(
                f,
                "no process answers for {}: none has the database open, or has just closed it, or it was opened without Options::live_statistics",
                directory.display()
            ),
            LiveError::Io { directory, error } => {
                write!(f, "cannot ask the process that has {} open: {error}", directory.display())
            }
        }
    }
}

/// It has no source: its text has what the system said.
impl Error for LiveError {}
