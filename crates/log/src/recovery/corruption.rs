//! What is wrong with the files of a database, what is lost by it, and what helps.

use std::fmt;
use std::path::{Path, PathBuf};

use ensilo_epoch::Epoch;

use super::file_names::OWNER;
use crate::format::{BlockError, DatabaseId, HeaderError, LogFileName, Malformed};

/// Something that is wrong with the files of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Corruption {
    /// The file. Of a log file that is missing only the number is known: both its names are given, as a shell
    /// would find them.
    pub file: PathBuf,
    /// Where in the file, in bytes, if it is not the file as a whole.
    pub offset: Option<u64>,
    /// What is wrong.
    pub kind: CorruptionKind,
    /// What cannot be recovered because of it.
    pub loss: DataLoss,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorruptionKind {
    /// It is not there.
    Missing,
    /// It is there twice, under the name of a file that is written and that of one that is sealed.
    Doubled,
    /// It belongs to another database.
    OtherDatabase(DatabaseId),
    /// It is another file of this database, under this name.
    OtherFile,
    /// It is the file of this name of another copy of this database: an opening wrote it that this one never
    /// had.
    OtherCopy,
    /// Its name says that its last entry is of another epoch than its blocks say.
    Misnamed {
        /// What the name says.
        named: Epoch,
        /// What the blocks say.
        found: Epoch,
        /// The name that says the same.
        right: LogFileName,
    },
    /// By its name it is a log file of an opening that the manifest does not know, but it has nothing that
    /// any opening wrote.
    NotALogFile,
    /// The log directory is an older copy than the manifest.
    OlderDirectory,
    /// So many bytes cannot be read.
    Unreadable {
        /// How many, whole sectors but for the last one of the file.
        bytes: u64,
        /// What the system said.
        error: String,
    },
    /// It cannot be read at all.
    Unopened {
        /// What was to be done with it: "open", "list", "look for".
        doing: &'static str,
        /// What the system said.
        error: String,
    },
    /// Its header is wrong.
    Header(HeaderError),
    /// There is no valid block where one must be.
    Block(BlockError),
    /// The file ends without the block that ends such a file.
    NoEnd,
    /// The file is shorter than it was made, and nothing says that it was ended: nobody knows what was
    /// behind.
    Cut {
        /// How long it was made.
        reserved_bytes: u64,
    },
    /// An entry of a block with a right checksum is malformed.
    Entry(Malformed),
    /// The epoch of an entry does not lie within what its block says.
    Epoch,
    /// The log ends before an epoch of which another block, or the manifest, says that it was stored.
    ShortLog {
        /// The epoch that was stored.
        stored: Epoch,
    },
    /// The file has another length, number of records or digest than the manifest says.
    NotAsInstalled,
    /// The manifest is malformed, although its checksum is right.
    Manifest(Malformed),
    /// The manifest says that everything up to an epoch was stored, and nothing after it counts, but its
    /// checkpoint ends with a later one.
    BeforeCheckpoint {
        /// The durable epoch of the manifest.
        durable: Epoch,
        /// The end epoch of the checkpoint.
        end: Epoch,
    },
    /// The log changes so many rows of a table, by number, that are not there, or has changed words outside
    /// of them.
    WithoutRow {
        /// The table.
        table: u32,
        /// How many rows.
        rows: u64,
    },
    /// There are log files with entries of an opening that the manifest does not know: an older manifest was
    /// put back.
    LaterGeneration(u64),
}

/// What cannot be recovered, from the least to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DataLoss {
    /// Nothing: what cannot be read there stands in the checkpoint a second time. A repair goes on without
    /// it.
    Copies,
    /// Transactions after this epoch; those up to it can be had by a repair, unless other files are damaged
    /// too.
    After(Epoch),
    /// Nothing, as far as the file can be read: an opening that was interrupted left it. No repair goes on
    /// beside it.
    Leftover,
    /// Rows that did not change since the checkpoint. No repair brings them back; a salvage saves the others.
    Checkpoint,
    /// What changed while the checkpoint was made, up to this epoch: without it the checkpoint is no state
    /// that ever was. No repair brings it back; a salvage saves what there is.
    LogOfCheckpoint(Epoch),
    /// Nothing, if the copy of the manifest is put in its place while nobody has the database open. A salvage
    /// goes by that copy.
    Manifest,
    /// All: nothing says which files belong to the database. No repair brings it back.
    Everything,
}

/// Something that is wrong, before it is known what is lost by it.
#[derive(Debug, Clone)]
pub(super) struct CorruptPlace {
    pub(super) file: PathBuf,
    pub(super) offset: Option<u64>,
    pub(super) kind: CorruptionKind,
}

impl CorruptPlace {
    /// Returns a place, of which `offset` is `None` if the file is corrupt as a whole.
    pub(super) fn new(file: &Path, offset: Option<u64>, kind: CorruptionKind) -> CorruptPlace {
        CorruptPlace { file: file.to_path_buf(), offset, kind }
    }

    /// Returns the corruption, with what is lost by it.
    pub(super) fn with_loss(&self, loss: DataLoss) -> Corruption {
        let CorruptPlace { file, offset, kind } = self.clone();
        Corruption { file, offset, kind, loss }
    }

    /// Returns where bytes end that could not be read, or the file if none could.
    pub(super) fn end(&self) -> u64 {
        match (self.offset, &self.kind) {
            (Some(offset), CorruptionKind::Unreadable { bytes, .. }) => offset + bytes,
            (offset, _) => offset.unwrap_or(u64::MAX),
        }
    }
}

impl Corruption {
    /// Returns where it is and what is wrong there, without what follows from it and what can be done: for
    /// what gives something up by itself.
    #[must_use]
    pub fn place_and_kind(&self) -> String {
        let file = self.file.display();
        match self.offset {
            Some(offset) => format!("{file}, byte {offset}: {}", self.kind),
            None => format!("{file}: {}", self.kind),
        }
    }

    /// Returns what the operator can do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self.loss {
            _ if self.kind == CorruptionKind::Missing => {
                let back = "put the file back if it was moved, or mount the disk that it lies on; otherwise ";
                format!("{back}{}", self.loss.remedy())
            }
            _ if self.kind == CorruptionKind::OtherCopy => {
                let back = "put this copy's own file back; otherwise ";
                format!("{back}{}", self.loss.remedy())
            }
            loss if self.kind.is_unread() => {
                let otherwise = self.kind.remedy(&self.file).unwrap_or_else(|| loss.remedy());
                format!("try again, what failed once may be read then; otherwise {otherwise}")
            }
            loss => self.kind.remedy(&self.file).unwrap_or_else(|| loss.remedy()),
        }
    }
}

impl CorruptionKind {
    /// Returns whether a file is in order by itself, but not the one that it has to be.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, Self::OtherDatabase(_) | Self::OtherFile | Self::OtherCopy)
    }

    /// Returns whether the system could not read what is there.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::Unopened { .. })
    }

    /// Returns whether it may be there because the system could not read something in the same file.
    pub(super) fn may_follow_from_unread(&self) -> bool {
        matches!(
            self,
            Self::Missing
                | Self::NotALogFile
                | Self::Header(_)
                | Self::Block(_)
                | Self::NoEnd
                | Self::Cut { .. }
                | Self::Entry(_)
                | Self::Epoch
                | Self::ShortLog { .. }
        )
    }

    /// Returns what mends it without any loss, if something does.
    fn remedy(&self, file: &Path) -> Option<String> {
        match self {
            Self::Misnamed { right, .. } => Some(format!(
                "give the file its name back: {}",
                file.with_file_name(right.to_string()).display()
            )),
            Self::NotALogFile => Some("move the file out of the directory".to_owned()),
            Self::OlderDirectory => Some("put the directory back that belongs to the manifest".to_owned()),
            Self::WithoutRow { .. } => Some(
                "restore a backup, or save the other rows into a new database by ensilo salvage".to_owned(),
            ),
            Self::OtherDatabase(_) if file.ends_with(OWNER) => {
                Some("put the directory back that belongs to this database".to_owned())
            }
            Self::Header(_) | Self::Unreadable { .. } | Self::Unopened { .. } if file.ends_with(OWNER) => {
                Some("remove the file, unless another database keeps its log in this directory".to_owned())
            }
            _ => None,
        }
    }
}

impl DataLoss {
    /// Returns whether this is what damage of the checkpoint costs; the log has consequences of its own.
    pub(super) fn is_of_checkpoint(self) -> bool {
        matches!(self, Self::Copies | Self::Checkpoint)
    }

    fn remedy(self) -> String {
        match self {
            Self::After(epoch) => format!(
                "restore a backup, or give up everything after epoch {epoch} by a repair with --accept-loss-after-epoch {epoch}"
            ),
            Self::Leftover => "move the file out of the directory".to_owned(),
            Self::Copies => {
                "go on without it by ensilo repair, or save the rows into a new database by ensilo salvage".to_owned()
            }
            Self::Checkpoint | Self::LogOfCheckpoint(_) => {
                "restore a backup, or save the rows that can be read into a new database by ensilo salvage"
                    .to_owned()
            }
            Self::Manifest => {
                "copy MANIFEST.copy to MANIFEST while nobody has the database open: what is wrong with that is found by an opening; otherwise \
                 restore a backup, or save the rows that can be read into a new database by ensilo salvage"
                    .to_owned()
            }
            Self::Everything => "restore a backup".to_owned(),
        }
    }
}

/// Returns the corruption with the worst loss, the first of several.
pub(super) fn worst_of(corruptions: &[Corruption]) -> Option<&Corruption> {
    corruptions
        .iter()
        .reduce(|worst, corruption| if corruption.loss > worst.loss { corruption } else { worst })
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place_and_kind())?;
        match self.kind.remedy(&self.file) {
            Some(_) => write!(f, "; {}", self.remedy()),
            None => write!(f, "; {}; {}", self.loss, self.remedy()),
        }
    }
}

impl fmt::Display for CorruptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the file is missing"),
            Self::Doubled => f.write_str("the file is there under two names"),
            Self::OtherDatabase(database) => {
                write!(f, "the file belongs to another database, {database}")
            }
            Self::OtherFile => f.write_str("the file is another one of this database, under this name"),
            Self::OtherCopy => {
                f.write_str("the file belongs to another copy of this database, which has gone on by itself")
            }
            Self::Misnamed { named, found, .. } => {
                write!(f, "the file's name says that its last epoch is {named}, but its blocks say {found}")
            }
            Self::OlderDirectory => f.write_str("the log directory is an older copy than the manifest"),
            Self::WithoutRow { table, rows } => {
                write!(f, "the log changes {rows} rows of table {table} that were never logged")
            }
            Self::NotALogFile => f.write_str("the file has the name of a log file, but no opening wrote it"),
            Self::Unreadable { bytes, error } => write!(f, "{bytes} bytes cannot be read: {error}"),
            Self::Unopened { doing, error } => write!(f, "the system cannot {doing} it: {error}"),
            Self::Header(error) => error.fmt(f),
            Self::Block(error) => error.fmt(f),
            Self::NoEnd => f.write_str("the file ends too early"),
            Self::Cut { reserved_bytes } => {
                write!(f, "the file is cut off here; it was {reserved_bytes} bytes long")
            }
            Self::Entry(malformed) => malformed.fmt(f),
            Self::Epoch => f.write_str("an entry's epoch contradicts its block"),
            Self::ShortLog { stored } => {
                write!(f, "the log ends here, but everything up to epoch {stored} was stored")
            }
            Self::NotAsInstalled => f.write_str("the file is not the one that the manifest describes"),
            Self::Manifest(malformed) => write!(f, "the manifest makes no sense: {malformed}"),
            Self::BeforeCheckpoint { durable, end } => {
                write!(f, "nothing after epoch {durable} counts, but the checkpoint ends with epoch {end}")
            }
            Self::LaterGeneration(generation) => {
                write!(f, "the manifest is older than this file, which opening {generation} wrote")
            }
        }
    }
}

impl fmt::Display for DataLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(epoch) => write!(f, "transactions after epoch {epoch} would be lost"),
            Self::Leftover => f.write_str(
                "nothing would be lost, as far as it can be read: an interrupted opening left the file",
            ),
            Self::Copies => f.write_str("nothing would be lost, it stands in the checkpoint twice"),
            Self::Checkpoint => f.write_str("rows that did not change since the checkpoint would be lost"),
            Self::LogOfCheckpoint(end) => write!(
                f,
                "changes up to epoch {end}, while the checkpoint was made, would be lost, and the checkpoint is of no use without them"
            ),
            Self::Manifest => f.write_str("without it only its copy says which files belong to the database"),
            Self::Everything => f.write_str("the database cannot be read without it"),
        }
    }
}
