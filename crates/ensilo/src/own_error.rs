//! Closures with an error type of the program's own.
//!
//! The requests of this crate know one type of errors. A closure's own error waits here while the request ends with a
//! stand-in, and is handed out if that comes out of the request. So each attempt, what it may conclude from
//! its reads, and when it is made again, are the same with every type of errors.

use std::fmt;
use std::sync::{Arc, Mutex};

use ensilo_engine::Engine;

use crate::database::Database;
use crate::job_request::JobRequest;
use crate::mutex::lock;
use crate::pool::JobFuture;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::{Reader, Snapshot, Transaction};
use crate::{Abort, Error, Result};

/// The error of the last attempt's closure.
struct OwnError<X>(Option<X>);

/// What stands for it.
#[derive(Debug)]
struct StandIn;

impl fmt::Display for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error of the closure's own type")
    }
}

impl std::error::Error for StandIn {}

/// Returns whether the error stands for one of another type. That may well be made of an abort: if there was one, that is
/// what the closure has ended with.
pub(crate) fn is_stand_in(error: &Error) -> bool {
    error.user_error::<StandIn>().is_some()
}

/// The same for a job: the closure runs on a thread of the pool.
pub(crate) struct SharedOwnError<X>(Arc<Mutex<OwnError<X>>>);

impl<X> Clone for SharedOwnError<X> {
    fn clone(&self) -> Self {
        SharedOwnError(Arc::clone(&self.0))
    }
}

impl<X> SharedOwnError<X> {
    pub(crate) fn new() -> Self {
        SharedOwnError(Arc::new(Mutex::new(OwnError(None))))
    }
}

impl<X: From<Error>> SharedOwnError<X> {
    fn keep<R>(&self, returned: Result<R, X>) -> Result<R> {
        lock(&self.0).keep(returned)
    }

    /// Returns what the future of a job gives that has ended so.
    pub(crate) fn end<R>(&self, ended: Result<R>) -> Result<R, X> {
        let own = lock(&self.0).0.take();
        OwnError(own).end(ended)
    }
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
            Error::user(StandIn)
        })
    }

    /// Returns what the caller of a request gets that has ended so.
    #[inline]
    fn end<R>(self, ended: Result<R>) -> Result<R, X> {
        ended.map_err(|error| match self.0 {
            Some(own) if is_stand_in(&error) => own,
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

    /// Runs `body` like [`Database::transact_async`], with errors of a type of the program's own, as
    /// [`Database::transact_as`].
    ///
    /// # Errors
    /// The future has what [`Database::transact_async`] has, turned into the type.
    pub fn transact_async_as<R: Send + 'static, X: From<Error> + Send + 'static>(
        &self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R, X> + Send + 'static,
    ) -> JobFuture<R, X> {
        self.job().transact_async_as(body)
    }

    /// Runs `body` like [`Database::read_async`], with errors of a type of the program's own, as
    /// [`Database::transact_as`].
    ///
    /// # Errors
    /// The future has what [`Database::read_async`] has, turned into the type.
    pub fn read_async_as<R: Send + 'static, X: From<Error> + Send + 'static>(
        &self,
        body: impl FnMut(&mut Reader<'_, E>) -> Result<R, X> + Send + 'static,
    ) -> JobFuture<R, X> {
        self.job().read_async_as(body)
    }

    /// Runs `body` like [`Database::read_stale_async`], with errors of a type of the program's own, as
    /// [`Database::transact_as`].
    ///
    /// # Errors
    /// The future has what [`Database::read_stale_async`] has, turned into the type.
    pub fn read_stale_async_as<R: Send + 'static, X: From<Error> + Send + 'static>(
        &self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R, X> + Send + 'static,
    ) -> JobFuture<R, X> {
        self.job().read_stale_async_as(body)
    }
}

impl<E: Engine> JobRequest<E> {
    /// Like [`Database::transact_async_as`](crate::Database::transact_async_as), with this job's settings.
    ///
    /// # Errors
    /// As [`Database::transact_async_as`](crate::Database::transact_async_as).
    pub fn transact_async_as<R: Send + 'static, X: From<Error> + Send + 'static>(
        self,
        mut body: impl FnMut(&mut Transaction<'_, E>) -> Result<R, X> + Send + 'static,
    ) -> JobFuture<R, X> {
        let own = SharedOwnError::new();
        let kept = own.clone();
        self.labelled_by(&body).transaction_when_awaited(own, move |tx| kept.keep(body(tx)))
    }

    /// Like [`Database::read_async_as`](crate::Database::read_async_as), with this job's settings.
    ///
    /// # Errors
    /// As [`Database::read_async_as`](crate::Database::read_async_as).
    pub fn read_async_as<R: Send + 'static, X: From<Error> + Send + 'static>(
        self,
        mut body: impl FnMut(&mut Reader<'_, E>) -> Result<R, X> + Send + 'static,
    ) -> JobFuture<R, X> {
        let own = SharedOwnError::new();
        let kept = own.clone();
        self.labelled_by(&body).read_when_awaited(own, move |tx| kept.keep(body(tx)))
    }

    /// Like [`Database::read_stale_async_as`](crate::Database::read_stale_async_as), with this job's settings.
    ///
    /// # Errors
    /// As [`Database::read_stale_async_as`](crate::Database::read_stale_async_as).
    pub fn read_stale_async_as<R: Send + 'static, X: From<Error> + Send + 'static>(
        self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R, X> + Send + 'static,
    ) -> JobFuture<R, X> {
        let own = SharedOwnError::new();
        let kept = own.clone();
        self.labelled_by(&body).stale_read_when_awaited(own, move |tx| kept.keep(body(tx)))
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
        let ended = self.labelled_by(&body).transact(|tx| own.keep(body(tx)));
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
        let ended = self.labelled_by(&body).read(|tx| own.keep(body(tx)));
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
        let ended = self.labelled_by(&body).read_stale(|tx| own.keep(body(tx)));
        own.end(ended)
    }
}
