//! Why the log stopped.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{is_disk_full, is_out_of_handles};

/// Why the log stopped, which is final: nothing is stored any more until the database is opened again. Or why its next file
/// has to wait: [`LogError::NoSpace`] and [`LogError::OutOfHandles`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LogError {
    /// The disk of a log directory is full. Make room there, then open the database again: it begins with a
    /// short log file where the disk has no room for more, and makes a checkpoint, which frees log. Shorter
    /// log files help as well.
    NoSpace {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// The process, or the system, has as many files open as it may, so that a log file cannot be made or renamed. It is
    /// tried again, and the log goes on in the file that it has. Close files, or allow more (`ulimit -n`).
    OutOfHandles {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// A log file could not be written. What was not stored before may be lost; open the database again to
    /// see what there is.
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// The system could not say that what was written is on the disk. The same as [`LogError::Write`]: a
    /// second attempt would prove nothing.
    Sync {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// A log file could not be made, renamed or removed.
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// The system gave no thread.
    Thread {
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// Another opening of the database has taken over its files, or somebody has replaced them. What was not
    /// stored before is lost. Close the database, and open it again.
    TakenOver {
        /// The file that says so.
        path: PathBuf,
    },
    /// A thread of the log panicked. A fault in Ensilo.
    Panicked,
    /// The log was closed before a commit had ended, so that it has no clean end. What was stored is stored.
    Unfinished,
    /// The log was closed.
    Closed,
    /// The database is one of several that are durable together, and the others have ended before they have stored what
    /// belongs to it. Whether it counts is found out by opening all of them.
    NotReleased,
    /// The database is open for reading only: nothing is logged.
    ReadOnly,
}

/// What was attempted on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    Write,
    Sync,
    Name,
}

impl LogError {
    pub(crate) fn io(attempt: Attempt, path: &Path, error: io::Error) -> LogError {
        let (is_full, is_out_of_handles) = (is_disk_full(&error), is_out_of_handles(&error));
        let (path, error) = (path.to_path_buf(), Arc::new(error));
        match attempt {
            _ if is_full => LogError::NoSpace { path, error },
            _ if is_out_of_handles => LogError::OutOfHandles { path, error },
            Attempt::Write => LogError::Write { path, error },
            Attempt::Sync => LogError::Sync { path, error },
            Attempt::Name => LogError::File { path, error },
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::NoSpace { path, error } => {
                write!(
                    f,
                    "no space is left for the log: {}: {error}; make room on that disk, or let log files take less of it \
                     (option log_file_bytes); a checkpoint frees what the log no longer needs",
                    path.display()
                )
            }
            LogError::OutOfHandles { path, error } => {
                write!(
                    f,
                    "too many files are open for another log file: {}: {error}; close some, or allow more (ulimit -n)",
                    path.display()
                )
            }
            LogError::Write { path, error } => {
                write!(f, "the log cannot be written: {}: {error}", path.display())
            }
            LogError::Sync { path, error } => {
                write!(f, "the log cannot be synced: {}: {error}", path.display())
            }
            LogError::File { path, error } => {
                write!(f, "a log file cannot be made, renamed or removed: {}: {error}", path.display())
            }
            LogError::Thread { error } => write!(f, "no thread for the log: {error}"),
            LogError::TakenOver { path } => {
                write!(f, "another opening has taken over the database, as {} says", path.display())
            }
            LogError::Panicked => f.write_str("a thread of the log panicked"),
            LogError::Unfinished => f.write_str("the log was closed while a commit was under way"),
            LogError::Closed => f.write_str("the log is closed"),
            LogError::NotReleased => f.write_str(
                "databases that are durable together with this one have ended; opening all of them shows what is stored",
            ),
            LogError::ReadOnly => f.write_str("the database is open for reading only"),
        }
    }
}

/// It has no source: its text has what the system said.
impl std::error::Error for LogError {}
