//! Why a load, a run or a check ended without a result.

use std::error;
use std::fmt;
use std::io;

/// What stopped a workload.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The database answered with an error that the workload does not expect.
    Database(ensilo::Error),
    /// The database holds something other than the workload put there; the text says what.
    Broken(String),
    /// A database other than Ensilo failed; the text says which.
    Peer(&'static str, Box<dyn error::Error + Send + Sync>),
    /// The operating system refused something; the text says what.
    Io(String, io::Error),
    /// What was asked for cannot be done here; the text says why, and what can.
    Refused(String),
    /// The user asked to stop before there was anything to report.
    Interrupted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => write!(f, "the database failed: {error}"),
            Self::Peer(name, error) => write!(f, "{name} failed: {error}"),
            Self::Broken(what) => write!(f, "the database is broken: {what}"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Refused(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted before anything was measured"),
        }
    }
}

impl error::Error for Failure {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::Io(_, error) => Some(error),
            Self::Peer(_, error) => Some(error.as_ref()),
            Self::Broken(_) | Self::Refused(_) | Self::Interrupted => None,
        }
    }
}

impl From<ensilo::Error> for Failure {
    fn from(error: ensilo::Error) -> Self {
        Self::Database(error)
    }
}
