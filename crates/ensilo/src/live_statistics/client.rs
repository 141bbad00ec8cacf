//! Asking the process that has a database open.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::socket_path::SocketPath;

/// Nothing that is written in one piece takes longer.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// No answer is longer: that suffices for a hundred thousand tables.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Why there are no statistics of the process that has a database open.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// No process answers: none has the database open, or the one that has was opened without
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
    answer_in(directory).map_err(|error| {
        let directory = directory.to_path_buf();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                LiveError::NobodyAnswers { directory }
            }
            _ => LiveError::Io { directory, error },
        }
    })
}

fn answer_in(directory: &Path) -> io::Result<String> {
    let socket = SocketPath::of(directory)?;
    let stream = UnixStream::connect(socket.path())?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    // A process that ends, or gives the reader up, leaves a part of its answer.
    if answer.ends_with('\n') { Ok(answer) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::NobodyAnswers { directory } => write!(
                f,
                "no process answers for {}: none has the database open, or it was opened without Options::live_statistics",
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
