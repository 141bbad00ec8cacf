//! Transactions that stay open between calls.

#![allow(unsafe_code, reason = "a transaction and the worker that it borrows, in one value")]

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Engine, Session};

use crate::durability::Visible;
use crate::shared::{Shared, ThreadWorker};
use crate::{Error, Result, Transaction, worker};

/// A transaction that stays open between calls, for code on one thread that cannot be one closure, such as a command line that
/// reads statements.
///
/// It stays on the thread that began it: it is not [`Send`], and so cannot be held across an `.await` of a task that moves between
/// threads. A server gives a session that needs one a thread of its own, to which it sends the statements; or it makes each
/// request one closure, by [`Database::transact`](crate::Database::transact) on any thread, or by
/// [`Database::submit`](crate::Database::submit) on the database's.
///
/// ```compile_fail,E0277
/// fn sent_elsewhere<T: Send>() {}
/// sent_elsewhere::<ensilo::Interactive>(); // error: cannot be sent between threads safely
/// ```
///
/// Its statements are made inside [`Interactive::with`], as many at a time as one likes. Conflicts are not retried: after
/// [`Error::Aborted`] the transaction has ended, and the caller begins another one. Dropping it undoes it. While
/// it is open it stops nobody, but it keeps memory from coming back that others give up, and `create_index` waits for it.
///
/// ```
/// # use ensilo::{Database, Error, Row, Table};
/// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// # fn main() -> ensilo::Result<()> {
/// # let db = Database::in_memory()?;
/// # let accounts: Table<Account> = db.create_table()?;
/// let mut tx = db.begin()?;
/// tx.with(|tx| accounts.insert(tx, &Account { id: 1, balance: 10 }))?;
/// tx.with(|tx| accounts.update(tx, 1, |account: &mut Account| account.balance += 5))?;
/// tx.commit()?;
/// assert!(matches!(tx.with(|tx| accounts.get(tx, 1)), Err(Error::UseAfterCommit)));
/// # Ok(()) }
/// ```
pub struct Interactive<E: Engine = Silo> {
    /// Present until the transaction has ended. Borrows `worker`.
    transaction: Option<Transaction<'static, E>>,
    /// From `Box::into_raw`. Not a Box: the transaction holds references into it.
    worker: NonNull<ThreadWorker<E>>,
    shared: Arc<Shared<E>>,
    /// The transaction is pinned on the thread that began it.
    of_this_thread: PhantomData<*mut ()>,
}

impl<E: Engine> Interactive<E> {
    pub(crate) fn begin(shared: &Arc<Shared<E>>) -> Result<Self> {
        let worker = Box::into_raw(Box::new(shared.new_worker()?));
        // SAFETY: `worker` was a Box just now, and nobody else has it. The reference lives as long as the transaction, which is
        // dropped before the worker, see `drop`; that the lifetime says 'static is known to this module only, since
        // `with` hands the transaction to closures that are generic over it.
        let borrowed: &'static mut ThreadWorker<E> = unsafe { &mut *worker };
        let transaction = Transaction::new(borrowed.raw.begin(), &mut borrowed.local);
        worker::note_interactive(shared.id());
        // SAFETY: `Box::into_raw` never returns null.
        let worker = unsafe { NonNull::new_unchecked(worker) };
        Ok(Interactive {
            transaction: Some(transaction),
            worker,
            shared: Arc::clone(shared),
            of_this_thread: PhantomData,
        })
    }

    /// Makes statements. A failed one leaves the transaction open, unless it was undone.
    ///
    /// Isolation: serializable, provided that [`Interactive::commit`] succeeds. Durability: what `body` returns, be it a value or an error, may be
    /// taken back by a crash until then.
    ///
    /// # Errors
    /// What `body` returns; [`Error::UseAfterCommit`] when the transaction has ended. After [`Error::Aborted`],
    /// [`Error::OutOfMemory`] and [`Error::TransactionTooLarge`] it has; [`Interactive::is_open`] says so after [`Error::UnknownTable`], which
    /// ends it if the table was dropped after the transaction had used it. [`Error::Closed`] when the database was closed, which undoes the transaction.
    pub fn with<R>(&mut self, body: impl FnOnce(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        self.check_open()?;
        let transaction = self.transaction.as_mut().ok_or(Error::UseAfterCommit)?;
        let result = body(transaction).map_err(|error| match transaction.inner.own_abort(&error) {
            Some(abort) => self.shared.explain(Error::from_raw(abort)),
            None => error,
        });
        if transaction.is_doomed() {
            self.end();
        }
        result
    }

    /// Commits, and returns when the level is reached that [`Options::durability`](crate::Options::durability) names.
    ///
    /// # Errors
    /// [`Error::Aborted`] when another transaction got in between: nothing has changed; [`Error::UnknownTable`] when a table that it has used was
    /// dropped; [`Error::OutOfMemory`];
    /// [`Error::UseAfterCommit`]; [`Error::LogFailed`] as [`Database::transact`](crate::Database::transact); [`Error::Closed`].
    pub fn commit(&mut self) -> Result<()> {
        self.check_open()?;
        let transaction = self.transaction.take().ok_or(Error::UseAfterCommit)?;
        let result = transaction.commit();
        worker::forget_interactive(self.shared.id());
        let epoch = result.map_err(|abort| self.shared.explain(Error::from_raw(abort)))?;
        Visible { value: (), epoch }.answer(&self.shared, self.shared.level(None)?)
    }

    /// Undoes the transaction.
    ///
    /// # Errors
    /// [`Error::UseAfterCommit`].
    pub fn rollback(&mut self) -> Result<()> {
        if self.end() { Ok(()) } else { Err(Error::UseAfterCommit) }
    }

    /// Whether the transaction is still open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.transaction.is_some()
    }

    /// Undoes the transaction if the database was closed.
    fn check_open(&mut self) -> Result<()> {
        if !self.shared.is_closed() {
            return Ok(());
        }
        self.end();
        Err(Error::Closed)
    }

    /// Undoes the transaction, unless it has ended.
    fn end(&mut self) -> bool {
        let Some(transaction) = self.transaction.take() else { return false };
        drop(transaction);
        worker::forget_interactive(self.shared.id());
        true
    }
}

impl<E: Engine> Drop for Interactive<E> {
    fn drop(&mut self) {
        self.end();
        // SAFETY: made by `Box::into_raw` in `begin`, and the transaction that borrowed it is gone.
        drop(unsafe { Box::from_raw(self.worker.as_ptr()) });
    }
}

impl<E: Engine> fmt::Debug for Interactive<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interactive").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}
