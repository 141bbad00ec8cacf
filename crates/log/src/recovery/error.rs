//! Why a database cannot be opened.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ensilo_disk::{is_disk_full, is_out_of_handles, is_unreadable};

use super::corruption::{Corruption, CorruptionKind, DataLoss};
use crate::format::{BlockError, FORMAT_VERSION, HeaderError};

/// Why a directory cannot be opened as a database, verified, repaired or copied. Nothing was changed in it,
/// except that what an earlier process left behind was synced.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the database open, or reads its files. Close it there first.
    Locked {
        /// The lock file.
        file: PathBuf,
        /// The process that has the database open, as far as it is known.
        process: Option<u32>,
        /// Whether it was to be opened for reading only. Then `Options::beside_writer` reads it beside that process.
        is_read_only: bool,
    },
    /// The directory holds something, but no database. Name another one, or an empty one.
    NotADatabase {
        /// The directory.
        directory: PathBuf,
        /// One of the things that it holds.
        holds: Option<String>,
    },
    /// The directory is missing, and so is the one above it. Check the path, or make the one above.
    MissingParent {
        /// The directory of the database, or of its log.
        directory: PathBuf,
        /// The one above it.
        parent: PathBuf,
    },
    /// A later version wrote the file. Open the database with that version.
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The file is compressed, and the program was built without the feature `lz4`. Build it with that
    /// feature. Nothing is damaged.
    CompressionUnsupported {
        /// The file.
        file: PathBuf,
    },
    /// Something is missing, damaged or foreign.
    Corrupt(Box<Corruption>),
    /// The system failed to read or write. After the cause is gone, open again.
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The files of a log directory belong to the database in another directory, of which this is a copy, or
    /// to a later opening than the manifest knows of; or the manifest does not name the directory, and
    /// nothing says that this database has logged there. Open that one. If it is gone, restore a backup, and
    /// name another directory for its log. A backup copies a database with a log outside of its directory.
    OtherOwner {
        /// The file that says so.
        file: PathBuf,
        /// The directory of the database that the log belongs to.
        directory: PathBuf,
    },
    /// Another opening has taken over the database while it was open, or somebody has replaced its files.
    /// Nothing is removed or written any more. Close it.
    TakenOver {
        /// The file that says so.
        file: PathBuf,
    },
    /// What was read cannot be put into the tables.
    Replay {
        /// The file.
        file: PathBuf,
        /// Why not.
        error: ReplayError,
    },
    /// Another process has the database open, and its files changed, again and again, while they were being opened to be read beside it.
    /// Try again.
    Changing {
        /// The directory of the database.
        directory: PathBuf,
        /// How often it was tried.
        attempts: u32,
        /// What was wrong with the files the last time. It says nothing of the database.
        last: String,
    },
    /// A request that cannot be met; it says why.
    Refused(String),
}

/// Why a write could not be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// The rows do not fit into the memory that the database may use.
    OutOfMemory,
    /// They do not, and the disk takes none that would leave memory: why.
    RowsCannotLeave(String),
    /// The write makes no sense to the target of the replay.
    Refused(String),
}

/// What helps where a database cannot be opened for reading because a process has it open to write, as the end of a sentence.
const READ_BESIDE: &str = "; read it beside that process, by Options::beside_writer, or close it there first";

impl OpenError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
        move |error| OpenError::Io { doing, path: path.to_path_buf(), error }
    }

    pub(crate) fn corrupt(
        file: &Path,
        offset: Option<u64>,
        kind: CorruptionKind,
        loss: DataLoss,
    ) -> OpenError {
        OpenError::from(Corruption { file: file.to_path_buf(), offset, kind, loss })
    }

    /// That the database may not log to a directory, which its manifest does not name, because of this file
    /// there.
    pub(super) fn not_usable(file: &Path, kind: &CorruptionKind, remedy: &str) -> OpenError {
        OpenError::Refused(format!("{}: {kind}; {remedy}", file.display()))
    }

    pub(super) fn no_thread(error: &io::Error) -> OpenError {
        OpenError::Refused(format!(
            "the system gives no thread to read the database with: {error}; let the process have more of them (ulimit -u, or the limits of \
             its control group) or more memory, or open it with fewer (Options::recovery_threads)"
        ))
    }

    /// Returns whether something was not there.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, OpenError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns whether the system cannot read something because the disk is damaged.
    pub(super) fn is_unreadable(&self) -> bool {
        let reading = ["read", "open", "list", "look for"];
        matches!(self, OpenError::Io { doing, error, .. } if reading.contains(doing) && is_unreadable(error))
    }

    /// Returns what helps where the system has failed to do something, as the end of a sentence.
    fn io_remedy(&self, doing: &str, error: &io::Error) -> &'static str {
        if is_disk_full(error) {
            "; make room there. A few pages let a database be opened, a checkpoint then frees log; opening it for reading only needs none"
        } else if is_out_of_handles(error) {
            "; let the process have more of them open (ulimit -n): a database that is read beside the process that writes it takes up to two for \
             each of its files"
        } else if is_write_refused(doing, error) {
            "; without the right to write, a database can be opened for reading only (Options::read_only)"
        } else if self.is_unreadable() {
            "; try again, what failed once may be read then; otherwise ensilo verify says what is lost and what helps"
        } else {
            ""
        }
    }

    /// Returns the same error of a database that was to be opened for reading only.
    #[doc(hidden)]
    #[must_use]
    pub fn of_read_only(mut self) -> OpenError {
        if let OpenError::Locked { is_read_only, .. } = &mut self {
            *is_read_only = true;
        }
        self
    }

    /// Returns the corruption, if that is what it is.
    #[must_use]
    pub fn corruption(&self) -> Option<&Corruption> {
        match self {
            OpenError::Corrupt(corruption) => Some(corruption),
            _ => None,
        }
    }
}

impl From<Corruption> for OpenError {
    /// Returns the error for a corruption: that, or that this program cannot read a file which is whole.
    fn from(corruption: Corruption) -> OpenError {
        match corruption.kind {
            CorruptionKind::Header(HeaderError::Newer(format)) => {
                OpenError::NewerFormat { file: corruption.file, format }
            }
            CorruptionKind::Block(BlockError::CompressionUnsupported) => {
                OpenError::CompressionUnsupported { file: corruption.file }
            }
            _ => OpenError::Corrupt(Box::new(corruption)),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Locked { file, process, is_read_only } => {
                match process {
                    Some(process) => write!(f, "the database is open in process {process}")?,
                    None => f.write_str("the database is in use by another process")?,
                }
                let remedy = if *is_read_only { READ_BESIDE } else { "" };
                write!(f, ", which holds {}{remedy}", file.display())
            }
            OpenError::NotADatabase { directory, holds: None } => {
                write!(f, "{} holds no database", directory.display())
            }
            OpenError::NotADatabase { directory, holds: Some(name) } => {
                write!(f, "{} holds {name}, but no database; name an empty directory", directory.display())
            }
            OpenError::MissingParent { directory, parent } => write!(
                f,
                "{} cannot be made, because {} is missing: check the path, or make that directory first",
                directory.display(),
                parent.display()
            ),
            OpenError::NewerFormat { file, format } => write!(
                f,
                "{} has format {format}, this version knows formats up to {FORMAT_VERSION}: open it with the version that wrote it",
                file.display()
            ),
            OpenError::CompressionUnsupported { file } => write!(
                f,
                "{} is compressed, and this program was built without the feature lz4 of the crate ensilo: build it with that feature",
                file.display()
            ),
            OpenError::Corrupt(corruption) => corruption.fmt(f),
            OpenError::Io { doing, path, error } => {
                let full = if is_disk_full(error) { "the disk is full: " } else { "" };
                write!(f, "{full}cannot {doing} {}: {error}{}", path.display(), self.io_remedy(doing, error))
            }
            OpenError::OtherOwner { file, directory } => write!(
                f,
                "{}: the log in this directory belongs to the database in {}, or to a later opening than the manifest knows of: open that one; \
                 if it is gone, restore a backup and name another directory for its log; to copy a database whose log lies elsewhere, make a \
                 backup",
                file.display(),
                directory.display()
            ),
            OpenError::TakenOver { file } => write!(
                f,
                "{} was replaced by somebody else, and nothing was removed or written for it; close the database, and open it again",
                file.display()
            ),
            OpenError::Replay { file, error } => write!(f, "cannot replay {}: {error}", file.display()),
            OpenError::Changing { directory, attempts, last } => write!(
                f,
                "the files of the database in {} changed {attempts} times while they were opened to be read; try again (the last time: {last})",
                directory.display()
            ),
            OpenError::Refused(why) => f.write_str(why),
        }
    }
}

/// Returns whether the system gives no right to write; reading needs none of these.
fn is_write_refused(doing: &str, error: &io::Error) -> bool {
    let is_refused = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    ["lock", "sync"].contains(&doing) && is_refused.contains(&error.kind())
}

/// It has no source: its text has what the system said.
impl Error for OpenError {}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::OutOfMemory => {
                f.write_str("the rows do not fit into the memory limit, or the system has no more memory")
            }
            ReplayError::RowsCannotLeave(why) => {
                write!(f, "the rows do not fit into the memory limit, and cannot leave memory: {why}")
            }
            ReplayError::Refused(why) => f.write_str(why),
        }
    }
}

impl Error for ReplayError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_say_what_helps() {
        let error = io::Error::from_raw_os_error(24);
        assert!(ensilo_disk::is_out_of_handles(&error), "{error}");
        let text = OpenError::Io { doing: "open", path: "/db/log/a".into(), error }.to_string();
        assert!(text.starts_with("cannot open /db/log/a: ") && text.contains("ulimit -n"), "{text}");
    }

    #[test]
    fn whoever_may_not_write_is_told_of_reading_only() {
        let refused = |doing, kind: io::ErrorKind| {
            OpenError::Io { doing, path: "/db/LOCK".into(), error: kind.into() }.to_string()
        };
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            assert!(refused("lock", kind).contains("Options::read_only"));
            assert!(!refused("read", kind).contains("Options::read_only"), "reading needs that right too");
        }
        assert!(!refused("lock", io::ErrorKind::Interrupted).contains("Options::read_only"));
    }
}
