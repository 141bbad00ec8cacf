//! Errors of the layers beneath, turned into this crate's.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use ensilo_engine::{AbortReason, TableId};
use ensilo_log::{LogError, OpenError};
use ensilo_row::{KEY_LEN_MAX, ROW_LEN_MAX, RowError, SchemaError};

use super::{Abort, Error, Name, NameInTable, TooLong, WrongType};
use crate::row_words::is_damaged;

impl Error {
    /// Makes the error of a transaction that the engine has undone.
    #[cold]
    pub(crate) fn from_raw(abort: ensilo_engine::Abort) -> Self {
        match abort.reason() {
            AbortReason::OutOfMemory => Error::OutOfMemory(Abort::new(abort)),
            AbortReason::RowUnreadable => Error::RowUnreadable(Abort::new(abort)),
            AbortReason::TransactionTooLarge => Error::TransactionTooLarge(Abort::new(abort)),
            _ => Error::Aborted(Abort::new(abort)),
        }
    }

    /// Makes the error of a thread of the database that the system has refused.
    #[cold]
    pub(crate) fn not_started(thread: impl Display, error: &io::Error) -> Self {
        Error::InvalidOption(Name::new(format!("{thread} does not start: {error}")))
    }

    /// Makes the error of files that cannot be opened.
    #[cold]
    pub(crate) fn from_open(error: OpenError) -> Self {
        Error::Open(Arc::new(error))
    }

    /// Makes the error of a log that has stopped.
    #[cold]
    pub(crate) fn from_log(error: LogError) -> Self {
        match error {
            LogError::Closed => Error::Closed,
            LogError::ReadOnly => Error::ReadOnly,
            error => Error::LogFailed(Box::new(error)),
        }
    }

    /// Makes the error of a schema that was refused.
    #[cold]
    pub(crate) fn from_schema(error: SchemaError) -> Self {
        match error {
            SchemaError::UnknownColumn { table, column } => {
                Error::UnknownColumn(NameInTable::new(table, column))
            }
            error => Error::InvalidSchema(Name::new(error.to_string())),
        }
    }

    /// Makes the error of a dynamic row or key of `table` that was refused.
    #[cold]
    pub(crate) fn from_row(error: RowError, table: &Arc<str>) -> Self {
        match error {
            RowError::RowTooLarge { len } => {
                Error::RowTooLarge(TooLong::new(Arc::clone(table), len, ROW_LEN_MAX))
            }
            RowError::KeyTooLong { len } => {
                Error::KeyTooLong(TooLong::new(Arc::clone(table), len, KEY_LEN_MAX))
            }
            RowError::UnknownColumn { column, table } => {
                Error::UnknownColumn(NameInTable::new(table, format!("number {column}")))
            }
            RowError::Malformed => is_damaged(ensilo_row::Malformed),
            error => Error::WrongType(WrongType::new(column_of(&error), error.to_string())),
        }
    }
}

impl Abort {
    /// Makes the abort of a memory limit that was reached outside of a transaction.
    pub(crate) fn out_of_memory(table: TableId) -> Self {
        Abort::new(ensilo_engine::Abort::new(AbortReason::OutOfMemory, table, &[]))
    }
}

fn column_of(error: &RowError) -> &str {
    match error {
        RowError::WrongType { column, .. }
        | RowError::OutOfRange { column, .. }
        | RowError::Null { column }
        | RowError::WrongLength { column, .. }
        | RowError::KeyColumn { column } => column,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_is_too_large_has_an_error_with_its_limits() {
        let error =
            Error::from_raw(ensilo_engine::Abort::new(AbortReason::TransactionTooLarge, TableId::NONE, &[]));
        assert!(matches!(error, Error::TransactionTooLarge(_)) && !error.is_retryable());
        assert_eq!(
            error.to_string(),
            "transaction aborted: transaction too large: at most 4 GiB of keys, 32 GiB of rows, 4294967295 reads, writes or nodes \
             scanned, and 1 GiB to log; split it into several"
        );
    }
}
