//! Why tables cannot be copied to other instances.

use std::error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use ensilo::Error;

use crate::commit::DistributedId;
use crate::instance::{InstanceError, message_of};

/// Why a [`Redistribution`](super::Redistribution) has failed. The source is as it was, and what was made of the target is removed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedistributionError {
    /// The source cannot be opened: it is open already, damaged, or no directory of a database.
    Source(InstanceError),
    /// The source is no directory of typed tables: it is of instances with a [`Program`](crate::Program) of their own, of one instance out of several,
    /// or a copy that was not finished.
    Foreign(String),
    /// Transactions of the source stay in doubt, though all of its instances are there. [`Islands::resolve`](crate::Islands::resolve) decides about them.
    InDoubt(Vec<DistributedId>),
    /// A table cannot be copied, or not be placed so.
    Unfit(String),
    /// The target cannot be written to: it is not empty, lies in the source, or its disk has failed.
    Target {
        /// The target.
        directory: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
    /// The instances of the target cannot be made, or not be opened again.
    Instances(InstanceError),
    /// Rows of a table cannot be read or written.
    Rows {
        /// The table.
        table: String,
        /// What is wrong with them.
        error: Error,
    },
    /// The target was read back, and has not what was written to it: its disk has lost something.
    Lost(String),
}

impl RedistributionError {
    /// Returns an error of the source's database.
    pub(super) fn of_source(error: Error) -> Self {
        RedistributionError::Source(InstanceError::Database(error))
    }

    /// Returns an error of a database of the target.
    pub(super) fn of_instances(error: Error) -> Self {
        RedistributionError::Instances(InstanceError::Database(error))
    }

    /// Returns the error of a thread that the system did not give.
    pub(super) fn no_thread(error: io::Error) -> Self {
        let text = format!("the system gives no thread to copy rows with: {error}");
        RedistributionError::Instances(InstanceError::Io(io::Error::new(error.kind(), text)))
    }

    /// Returns what makes it an error of a table's rows.
    pub(super) fn of_rows(table: &str) -> impl Fn(Error) -> Self + '_ {
        |error| RedistributionError::Rows { table: table.to_owned(), error }
    }
}

impl fmt::Display for RedistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedistributionError::Source(error) => write!(f, "the source cannot be read: {error}"),
            RedistributionError::Foreign(message) | RedistributionError::Unfit(message) => {
                f.write_str(message)
            }
            RedistributionError::InDoubt(ids) => write!(
                f,
                "{} transactions of the source stay in doubt, such as {}: open it, and decide about them (`Islands::resolve`)",
                ids.len(),
                ids[0]
            ),
            RedistributionError::Target { directory, error } => write!(f, "{}: {error}", directory.display()),
            RedistributionError::Instances(error) => write!(f, "the target cannot be made: {error}"),
            RedistributionError::Rows { table, error } => {
                write!(f, "table {table} cannot be copied: {}", message_of(error))
            }
            RedistributionError::Lost(message) => write!(f, "the target was read back: {message}"),
        }
    }
}

impl error::Error for RedistributionError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            RedistributionError::Source(error) | RedistributionError::Instances(error) => Some(error),
            RedistributionError::Target { error, .. } => Some(error),
            RedistributionError::Rows { error, .. } => Some(error),
            _ => None,
        }
    }
}
