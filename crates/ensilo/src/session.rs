//! Sessions: transactions that stay open between calls, on any thread.
//!
//! A session is small. A worker is lent to it while it has something under way, and goes back afterwards:
//! there are as many workers as transactions at once, not as sessions.

#![allow(unsafe_code, reason = "a transaction and the worker that it borrows, in one value")]

pub(crate) mod control;
pub(crate) mod prepared;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::Silo;
use ensilo_engine::{Engine, Session as _, TransactionOf, Write as _};

use self::control::{CancelToken, SessionControl, UnderWay};
use self::prepared::PreparedTransaction;
use crate::attempt::{self, RetryPolicy};
use crate::batch::Batch;
use crate::durability::Ticket;
use crate::error::NestedCall;
use crate::local::ThreadWorker;
use crate::outcome::{Outcome, Visible};
use crate::prefetch::Prefetch;
use crate::shared::DatabaseShared;
use crate::transaction::sealed::Sealed;
use crate::transaction::{Inner, ReadTransaction, Reader, Snapshot, Transaction, WriteTransaction};
use crate::worker::Lease;
use crate::{Abort, Error, Result};

/// Transactions that stay open between calls, one at a time, for one user of the database. A session is for
/// what cannot be one closure, such as a command line that reads statements, a connection of a server, or an
/// async task.
///
/// [`Database::session`](crate::Database::session) makes one, and [`Database::begin`](crate::Database::begin)
/// one that has begun a transaction. A session may be moved to another thread at any time, also with a
/// transaction open, and be held across an `.await`. Without an open transaction it takes less than a
/// kilobyte and holds back nothing. An open transaction holds back no commit, epoch, snapshot or checkpoint
/// of others. But memory that others free is not used again until it ends, and
/// [`Database::create_index`](crate::Database::create_index) and
/// [`Database::change_table`](crate::Database::change_table) wait for it.
///
/// The statements of tables take a session with an open transaction like any transaction, so that one
/// `fn(&mut Transaction<'_>)` serves [`Session::with`], [`Session::transact`] and
/// [`Database::transact`](crate::Database::transact).
///
/// Conflicts are not retried. After [`Error::Aborted`] the transaction has ended, and the caller begins
/// another one, best after a short random pause: otherwise two transactions that scan one range and insert
/// into it may abort each other again. What can be one closure is better given to [`Session::transact`],
/// which retries.
///
/// Dropping the session undoes its transaction, and so does a panic in a closure that was given to a
/// statement. An error that a closure returns to [`Session::with`] does not: it is returned to the caller.
///
/// An abandoned transaction stays open: a deadline or a cancellation takes effect at its next statement only.
/// A program that wants to end it from another thread keeps the session behind a lock.
///
/// ```
/// # use ensilo::{Database, Error, Row, Table};
/// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// # fn main() -> ensilo::Result<()> {
/// # let db = Database::in_memory()?;
/// # let accounts: Table<Account> = db.create_table()?;
/// let mut session = db.begin()?;
/// accounts.insert(&mut session, &Account { id: 1, balance: 10 })?;
/// // It goes on wherever it is moved to.
/// let mut session = std::thread::spawn(move || -> ensilo::Result<_> {
///     accounts.update(&mut session, 1, |account: &mut Account| account.balance += 5)?;
///     Ok(session)
/// }).join().unwrap()?;
/// session.commit()?;
/// assert!(matches!(session.commit(), Err(Error::NoTransaction)));
///
/// // A time limit for a statement, and a way to stop it from another thread.
/// let token = session.cancel_token();
/// session.begin()?;
/// session.set_deadline(Some(std::time::Instant::now() + std::time::Duration::from_secs(1)));
/// # let accounts: Table<Account> = db.open_table()?;
/// accounts.scan().for_each(&mut session, |_id, _account| ())?;
/// std::thread::spawn(move || token.cancel()).join().unwrap();
/// assert!(matches!(session.commit(), Err(Error::Cancelled)));
/// # Ok(()) }
/// ```
///
/// # Isolation
/// Serializable, provided that [`Session::commit`] succeeds: what statements have returned until then need
/// not belong together, and may be taken back by a crash.
///
/// # Errors
/// Beside its own errors, a statement on a session ends with
/// - [`Error::NoTransaction`] when none is open;
/// - [`Error::Closed`] when the database was closed, [`Error::Cancelled`] and [`Error::DeadlineExceeded`]:
///   they undo the transaction.
///
/// After [`Error::Aborted`], [`Error::OutOfMemory`], [`Error::TransactionTooLarge`] and [`Error::RowUnreadable`]
/// it has ended, too, and after [`Error::UnknownTable`] if the table was dropped after the transaction had used it;
/// [`Session::is_open`] says so. After other errors it is as it was before the statement.
pub struct Session<E: Engine = Silo> {
    /// Borrows from `shared`. In a box, so that no value which is moved into a function has references into a
    /// worker or a slot that goes while the function runs.
    open: Option<Box<Open<E>>>,
    shared: Arc<DatabaseShared<E>>,
    control: Arc<SessionControl>,
}

/// An open transaction.
// Dropped in this order.
struct Open<E: Engine> {
    /// Borrows the worker that was lent.
    transaction: Transaction<'static, E>,
    lease: Lease<'static, ThreadWorker<E>>,
    under_way: UnderWay,
}

impl<E: Engine> Session<E> {
    pub(crate) fn new(shared: &Arc<DatabaseShared<E>>) -> Self {
        let control = SessionControl::of_session(shared.id(), &shared.row_ids);
        Session { open: None, shared: Arc::clone(shared), control }
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::NestedRequest`] when one is open; [`Error::Closed`]; [`Error::DeadlineExceeded`],
    /// [`Error::Cancelled`]; [`Error::TooManyTransactions`].
    pub fn begin(&mut self) -> Result<()> {
        if self.is_open() {
            return Err(Error::NestedRequest(NestedCall::InOpenSession));
        }
        let under_way = self.control.begin();
        self.control.check()?;
        // SAFETY: the session keeps the database's shared part for as long as it has the lease: `open` is dropped before `shared`, and the
        // transaction in it before the lease. Nobody uses the worker but the transaction; that the lifetime says 'static is known to this
        // module only, since statements are generic over it.
        let (lease, worker) = unsafe { lend_lasting(&self.shared) }?;
        worker.local.control = Some(Arc::clone(&self.control));
        worker.local.adds_by_reading = true;
        let transaction = Transaction::new(worker.raw.begin(), &mut worker.local);
        self.open = Some(Box::new(Open { transaction, lease, under_way }));
        Ok(())
    }

    /// Runs statements in a closure that takes a [`Transaction`], so that code can be shared with
    /// [`Database::transact`](crate::Database::transact).
    ///
    /// # Errors
    /// What `body` returns, and those of every statement on a session, see [`Session`].
    pub fn with<R>(&mut self, body: impl FnOnce(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        self.go_on(body)
    }

    /// Makes statements, and ends the transaction if it cannot go on after them.
    fn go_on<R>(&mut self, work: impl FnOnce(&mut Transaction<'static, E>) -> Result<R>) -> Result<R> {
        self.check_open()?;
        let mut guard = EndUnlessKept { open: &mut self.open, is_kept: false };
        let transaction = &mut guard.open.as_mut().ok_or(Error::NoTransaction)?.transaction;
        let result = self.control.check().and_then(|()| work(transaction));
        let result = result.map_err(|error| match transaction.inner.own_abort(&error) {
            Some(abort) => self.shared.explain(Error::from_raw(abort)),
            None => error,
        });
        // One with an abort that its closure has swallowed stays open: its commit returns the abort.
        guard.is_kept = match &result {
            Ok(_) => true,
            Err(error) => !transaction.inner.is_ended_by(error),
        };
        result
    }

    /// Commits, and returns when the level of [`Options::durability`](crate::Options::durability) is reached.
    ///
    /// # Errors
    /// [`Error::Aborted`] when another transaction got in between: nothing has changed;
    /// [`Error::UnknownTable`] when a table that it has used was dropped; [`Error::OutOfMemory`];
    /// [`Error::LogFailed`] as [`Database::transact`](crate::Database::transact); and those of every
    /// statement on a session, see [`Session`].
    pub fn commit(&mut self) -> Result<()> {
        let level = self.shared.level_here(None)?;
        let epoch = self.commit_visibly()?;
        self.shared.answer(Ok(Visible { value: (), epoch }), level)
    }

    /// Like [`Session::commit`], but returns as soon as the transaction is visible, with a ticket for the
    /// time when it is stored.
    ///
    /// # Errors
    /// As [`Session::commit`]; [`Error::NotDurable`] when the database is in memory only: the transaction
    /// stays open.
    pub fn commit_with_ticket(&mut self) -> Result<Ticket> {
        let log = Arc::clone(self.shared.log().ok_or(Error::NotDurable)?);
        Ok(Ticket::new(self.commit_visibly()?, log))
    }

    fn commit_visibly(&mut self) -> Result<ensilo_epoch::Epoch> {
        // The last two go at the end of this function. The transaction is gone by then, also after a panic.
        let Open { transaction, lease: _lease, under_way: _under_way } = *self.take_open()?;
        transaction.commit().map_err(|abort| self.shared.explain(Error::from_raw(abort)))
    }

    /// Returns the open transaction, for its end.
    fn take_open(&mut self) -> Result<Box<Open<E>>> {
        // Fails as a statement would.
        self.go_on(|_| Ok(()))?;
        self.open.take().ok_or(Error::NoTransaction)
    }

    /// Votes to commit, as a participant of a two-phase commit does: everything that can fail happens now, and what the transaction has read
    /// and written stays as it is until the decision, which is made by what this returns. The session can begin another transaction meanwhile.
    ///
    /// # Errors
    /// As [`Session::commit`], whereupon the transaction has ended: the vote to abort. One that changes single columns of large rows may be
    /// [too large](Error::TransactionTooLarge) to be prepared and not to be committed. [`Error::NoTwoPhaseCommit`] over an engine that cannot
    /// prepare transactions: the transaction stays open.
    pub fn prepare(&mut self) -> Result<PreparedTransaction<E>> {
        if !E::TWO_PHASE_COMMIT {
            return Err(Error::NoTwoPhaseCommit);
        }
        let Open { transaction, lease, under_way: _under_way } = *self.take_open()?;
        let prepared = transaction.prepare().map_err(|abort| self.shared.explain(Error::from_raw(abort)))?;
        Ok(PreparedTransaction::new(prepared, lease, &self.shared))
    }

    /// Returns whether a transaction is open that has something to commit. It may not know, and say yes, over an engine that cannot
    /// [prepare](Self::prepare) transactions.
    #[must_use]
    pub fn has_writes(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.transaction.inner.raw.has_writes())
    }

    /// Undoes the transaction.
    ///
    /// # Errors
    /// [`Error::NoTransaction`].
    pub fn rollback(&mut self) -> Result<()> {
        if !self.is_open() {
            return Err(Error::NoTransaction);
        }
        self.open = None;
        Ok(())
    }

    /// Returns whether a transaction is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Runs `body` like [`Database::read_stale`](crate::Database::read_stale), under the conditions of
    /// [`Session::transact`].
    ///
    /// # Errors
    /// As [`Database::read_stale`](crate::Database::read_stale), and the others of [`Session::transact`].
    pub fn read_stale<R>(&mut self, body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>) -> Result<R> {
        self.request().read_stale(body)
    }

    /// Runs `body` like [`Database::read`](crate::Database::read), under the conditions of
    /// [`Session::transact`].
    ///
    /// # Errors
    /// As [`Database::read`](crate::Database::read), and the others of [`Session::transact`].
    pub fn read<R>(&mut self, body: impl FnMut(&mut Reader<'_, E>) -> Result<R>) -> Result<R> {
        self.request().read(body)
    }

    pub(crate) fn run<R>(
        &mut self,
        policy: RetryPolicy,
        on_abort: &mut impl FnMut(&Abort),
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
    ) -> Outcome<R> {
        let (mut lease, _under_way) = self.lend_for_request()?;
        attempt::run_on(&self.shared, &mut lease, policy, on_abort, body)
    }

    /// Runs a batch of requests, all under the conditions of one.
    pub(crate) fn run_many<Q, R>(
        &mut self,
        policy: RetryPolicy,
        on_abort: &mut impl FnMut(&Abort),
        batch: Batch<
            '_,
            Q,
            impl FnMut(&Q, &mut Prefetch<E>),
            impl FnMut(&mut Transaction<'_, E>, &Q) -> Result<R>,
        >,
    ) -> Result<Vec<Outcome<R>>> {
        let (mut lease, _under_way) = self.lend_for_request()?;
        Ok(batch.run_on(&self.shared, &mut lease, policy, on_abort))
    }

    pub(crate) fn run_reader<R>(
        &mut self,
        policy: RetryPolicy,
        body: impl FnMut(&mut Reader<'_, E>) -> Result<R>,
    ) -> Outcome<R> {
        let (mut lease, _under_way) = self.lend_for_request()?;
        attempt::run_reader_on(&self.shared, &mut lease, policy, body)
    }

    pub(crate) fn run_stale<R>(
        &mut self,
        policy: RetryPolicy,
        since: Option<Instant>,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>,
    ) -> Outcome<R> {
        let (mut lease, _under_way) = self.lend_for_request()?;
        attempt::run_stale_on(&self.shared, &mut lease, policy, since, body)
    }

    pub(crate) fn shared(&self) -> &Arc<DatabaseShared<E>> {
        &self.shared
    }

    /// Sets a deadline, or none, which is the default. Statements and commits after it end with
    /// [`Error::DeadlineExceeded`], which undoes the whole transaction; later transactions are refused as
    /// well until another call. A scan that is under way at the deadline ends after at most 256 more rows. A
    /// commit that has begun before the deadline goes on, and waits until it is stored.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.control.set_deadline(deadline);
    }

    /// Returns a token that cancels what this session has under way, from any thread.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken::new(&self.control)
    }

    fn lend_for_request(&self) -> Result<(Lease<'_, ThreadWorker<E>>, UnderWay)> {
        if self.is_open() {
            return Err(Error::NestedRequest(NestedCall::InOpenSession));
        }
        let under_way = self.control.begin();
        self.control.check()?;
        Ok((self.lend()?, under_way))
    }

    /// Lends a worker that checks this session's deadline and cancellation.
    fn lend(&self) -> Result<Lease<'_, ThreadWorker<E>>> {
        let mut lease = self.shared.lend()?;
        lease.local.control = Some(Arc::clone(&self.control));
        Ok(lease)
    }

    /// Undoes the transaction if the database was closed.
    #[inline]
    fn check_open(&mut self) -> Result<()> {
        if self.shared.is_closed() {
            self.open = None;
            return Err(Error::Closed);
        }
        if self.is_open() {
            self.control.note_use();
        }
        Ok(())
    }
}

/// Lends a worker for as long as the lease is kept, wherever that is moved.
///
/// # Safety
/// The caller keeps `shared` until it has dropped the lease, and does not use the worker, but by what is returned beside the lease. That it
/// does not use once the lease is dropped.
pub(crate) unsafe fn lend_lasting<E: Engine>(
    shared: &Arc<DatabaseShared<E>>,
) -> Result<(Lease<'static, ThreadWorker<E>>, &'static mut ThreadWorker<E>)> {
    // SAFETY: the shared part, where spare workers lie, is there until the lease is dropped: the caller's promise.
    let shared: &'static DatabaseShared<E> = unsafe { &*Arc::as_ptr(shared) };
    let mut lease = shared.lend()?;
    let worker: *mut ThreadWorker<E> = &mut *lease;
    // SAFETY: the worker lies in its slot, which the lease keeps, wherever the lease is moved. Nobody else uses it until the lease is
    // dropped: the caller's promise.
    Ok((lease, unsafe { &mut *worker }))
}

/// Ends the transaction when it is dropped, also by a panic, unless `is_kept`.
struct EndUnlessKept<'s, E: Engine> {
    open: &'s mut Option<Box<Open<E>>>,
    is_kept: bool,
}

impl<E: Engine> Drop for EndUnlessKept<'_, E> {
    fn drop(&mut self) {
        if !self.is_kept {
            *self.open = None;
        }
    }
}

impl<E: Engine> ReadTransaction<'_, E> for Session<E> {}
impl<E: Engine> WriteTransaction<'_, E> for Session<E> {}

#[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
impl<E: Engine> Sealed<'_, E> for Session<E> {
    type Raw = TransactionOf<'static, E>;

    #[inline]
    fn statement<R>(&mut self, statement: impl FnOnce(&mut Inner<'_, Self::Raw>) -> Result<R>) -> Result<R> {
        self.go_on(|transaction| statement(&mut transaction.inner))
    }
}

impl<E: Engine> fmt::Debug for Session<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}
