//! Closures with an error type of the program's own.
//!
//! The requests of this crate know one type of errors. A closure's own error waits here while the request ends with a
//! mark in its place, and is handed out if that mark comes out of the request. So each attempt, what it may conclude from
//! its reads, and when it is made again, are the same with every type of errors.

use std::fmt;

use ensilo_engine::Engine;

use crate::database::Database;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::{Reader, Snapshot, Transaction};
use crate::{Abort, Error, Result};

/// The error of the last attempt's closure.
struct OwnError<X>(Option<X>);

/// What stands for it.
#[derive(Debug)]
struct Mark;

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error of the closure's own type")
    }
}

impl std::error::Error for Mark {}

/// Returns whether the error stands for one of another type. That may well be made of an abort: if there was one, that is
/// what the closure has ended with.
pub(crate) fn is_mark(error: &Error) -> bool {
    error.user_error::<Mark>().is_some()
}

impl<X: From<Error>> OwnError<X> {
    const fn new() -> Self {
        OwnError(None)
    }

    /// Keeps the error that a closure has returned.
    #[inline]
    fn keep<R>(&mut self, returned: Result<R, X>) -> Result<R> {
        returned.map_err(|error| {
            self.0 = Some(error);
            Error::user(Mark)
        })
    }

    /// Returns what the caller of a request gets that has ended so.
    #[inline]
    fn end<R>(self, ended: Result<R>) -> Result<R, X> {
        ended.map_err(|error| match self.0 {
            Some(own) if is_mark(&error) => own,
            _ => error.into(),
        })
    }
}

impl<E: Engine> Database<E> {
    /// Runs `body` like [`Database::transact`], with errors of a type of the program's own, or of a crate such as
    /// `anyhow`: any that an [`Error`] can be turned into.
    ///
    /// Within `body`, `?` makes one of an error of a statement. It is not looked at: where the transaction has met a
    /// conflict, or was ended by the memory limit, that counts, and `body` runs again as it does in
    /// [`Database::transact`]. The type has to be named, for example by that of the result.
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// #[derive(Debug)]
    /// enum TransferError {
    ///     TooPoor { missing: i64 },
    ///     Database(ensilo::Error),
    /// }
    ///
    /// impl From<ensilo::Error> for TransferError {
    ///     fn from(error: ensilo::Error) -> Self {
    ///         TransferError::Database(error)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), TransferError> {
    /// # let db = Database::in_memory()?;
    /// # let accounts = db.table::<Account>()?;
    /// # db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 10 }))?;
    /// let withdraw = |amount: i64| -> Result<i64, TransferError> {
    ///     db.transact_as(|tx| {
    ///         let balance = accounts.get(tx, 1)?.map_or(0, |account| account.balance);
    ///         if balance < amount {
    ///             return Err(TransferError::TooPoor { missing: amount - balance });
    ///         }
    ///         accounts.update(tx, 1, |account: &mut Account| account.balance -= amount)?;
    ///         Ok(balance - amount)
    ///     })
    /// };
    /// assert_eq!(withdraw(7)?, 3);
    /// assert!(matches!(withdraw(7), Err(TransferError::TooPoor { missing: 4 })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `body` returns, and what [`Database::transact`] does, turned into its type.
    pub fn transact_as<R, X: From<Error>>(
        &self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R, X>,
    ) -> Result<R, X> {
        self.request().transact_as(body)
    }

    /// Runs `body` like [`Database::read`], with errors of a type of the program's own, as [`Database::transact_as`].
    ///
    /// # Errors
    /// What `body` returns, and what [`Database::read`] does, turned into its type.
    pub fn read_as<R, X: From<Error>>(
        &self,
        body: impl FnMut(&mut Reader<'_, E>) -> Result<R, X>,
    ) -> Result<R, X> {
        self.request().read_as(body)
    }

    /// Runs `body` like [`Database::read_stale`], with errors of a type of the program's own, as
    /// [`Database::transact_as`].
    ///
    /// # Errors
    /// What `body` returns, and what [`Database::read_stale`] does, turned into its type.
    pub fn read_stale_as<R, X: From<Error>>(
        &self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R, X>,
    ) -> Result<R, X> {
        self.request().read_stale_as(body)
    }
}

impl<E: Engine> Session<E> {
    /// Runs `body` like [`Session::transact`], with errors of a type of the program's own, as
    /// [`Database::transact_as`](crate::Database::transact_as).
    ///
    /// # Errors
    /// What `body` returns, and what [`Session::transact`] does, turned into its type.
    pub fn transact_as<R, X: From<Error>>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R, X>,
    ) -> Result<R, X> {
        self.request().transact_as(body)
    }
}

impl<H: FnMut(&Abort), E: Engine> Request<'_, H, E> {
    /// Like [`Database::transact_as`](crate::Database::transact_as), with this request's settings.
    ///
    /// # Errors
    /// What `body` returns, and what [`Request::transact`] does, turned into its type.
    pub fn transact_as<R, X: From<Error>>(
        self,
        mut body: impl FnMut(&mut Transaction<'_, E>) -> Result<R, X>,
    ) -> Result<R, X> {
        let mut own = OwnError::new();
        let ended = self.transact(|tx| own.keep(body(tx)));
        own.end(ended)
    }

    /// Like [`Database::read_as`](crate::Database::read_as), with this request's settings.
    ///
    /// # Errors
    /// What `body` returns, and what [`Request::read`] does, turned into its type.
    pub fn read_as<R, X: From<Error>>(
        self,
        mut body: impl FnMut(&mut Reader<'_, E>) -> Result<R, X>,
    ) -> Result<R, X> {
        let mut own = OwnError::new();
        let ended = self.read(|tx| own.keep(body(tx)));
        own.end(ended)
    }

    /// Like [`Database::read_stale_as`](crate::Database::read_stale_as), with this request's settings.
    ///
    /// # Errors
    /// What `body` returns, and what [`Request::read_stale`] does, turned into its type.
    pub fn read_stale_as<R, X: From<Error>>(
        self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R, X>,
    ) -> Result<R, X> {
        let mut own = OwnError::new();
        let ended = self.read_stale(|tx| own.keep(body(tx)));
        own.end(ended)
    }
}
