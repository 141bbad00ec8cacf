//! Why something cannot be done with tables over several instances.

use std::error;
use std::fmt;

use ensilo::Error;

use crate::commit::Refusal;

/// Why a statement or a transaction on an [`IslandDatabase`](super::IslandDatabase) has failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum IslandError {
    /// An instance, or two-phase commit, has refused: the transaction has ended, and has changed nothing. [`is_retryable`](Self::is_retryable) says
    /// whether another attempt may succeed.
    Refused(Refusal),
    /// There is a row with this key. Where the statement was to write one row nothing has changed, and the transaction goes on. Where it was to write
    /// several, others may have been written, and the transaction has ended.
    DuplicateKey {
        /// The table.
        table: String,
        /// The unique index that has the key; `None` for the primary key.
        index: Option<String>,
    },
    /// There is no row with this key. The transaction goes on, or has ended, as for `DuplicateKey`.
    MissingRow {
        /// The table.
        table: String,
    },
    /// A table, an index or a key is not what is stored, or cannot be, or a row has a value that the program's types do not have (see
    /// [`ensilo::Error::UnknownValue`]): nothing has changed.
    Unfit(String),
    /// An instance has ended before it answered the commit of a transaction that writes: it has happened everywhere, or will, or has changed nothing,
    /// which only the rows tell. A program that has to know has each transaction insert a row under a number of its own, and looks whether that is
    /// there: a later transaction finds it if it has happened.
    Unknown(String),
    /// A closure has undone its transaction with this.
    User(Box<dyn error::Error + Send + Sync>),
}

impl IslandError {
    /// Returns an error with which a closure undoes its transaction.
    pub fn rollback(text: impl Into<String>) -> Self {
        IslandError::User(text.into().into())
    }

    /// Returns an error with which a closure undoes its transaction, which [`user_error`](Self::user_error) gives back.
    pub fn user(error: impl error::Error + Send + Sync + 'static) -> Self {
        IslandError::User(Box::new(error))
    }

    /// Returns the error of a closure, if it is one of this type.
    #[must_use]
    pub fn user_error<E: error::Error + 'static>(&self) -> Option<&E> {
        match self {
            IslandError::User(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// Returns whether the same transaction may succeed when it is tried again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, IslandError::Refused(refusal) if refusal.reason.may_pass())
    }
}

impl fmt::Display for IslandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IslandError::Refused(refusal) => refusal.fmt(f),
            IslandError::DuplicateKey { table, index: None } => {
                write!(f, "table {table} has a row with this primary key")
            }
            IslandError::DuplicateKey { table, index: Some(index) } => {
                write!(f, "table {table} has a row with this key in its unique index {index}")
            }
            IslandError::MissingRow { table } => write!(f, "table {table} has no row with this primary key"),
            IslandError::Unfit(message) => f.write_str(message),
            IslandError::Unknown(message) => {
                write!(f, "whether the transaction has committed is unknown: {message}")
            }
            IslandError::User(error) => error.fmt(f),
        }
    }
}

impl error::Error for IslandError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            IslandError::User(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Refusal> for IslandError {
    fn from(refusal: Refusal) -> Self {
        IslandError::Refused(refusal)
    }
}

/// What cannot be encoded, or decoded, here.
impl From<Error> for IslandError {
    fn from(error: Error) -> Self {
        IslandError::Unfit(error.to_string())
    }
}
