//! The database: what opens, owns and closes everything else, and runs requests.

mod indexes;
mod open;
mod schema_check;
mod sequences;
mod storage;
mod tables;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Engine, Session as _};

use crate::attempt::{self, RetryPolicy};
use crate::catalog::table_core::TableCore;
use crate::options::Options;
use crate::pool::JobHandle;
use crate::prefetch::Prefetch;
use crate::request::{NoHook, Request};
use crate::session::Session;
use crate::shared::DatabaseShared;
use crate::statistics::Statistics;
use crate::transaction::{Reader, Snapshot, Transaction};
use crate::{Error, Result};

pub(crate) use schema_check::index_key_type;

/// A database. Cloning gives another handle to the same one; dropping the last handle closes it.
///
/// All methods may be called from any number of threads at once.
pub struct Database<E: Engine = Silo> {
    pub(crate) shared: Arc<DatabaseShared<E>>,
    /// Closes the database when the last handle goes; jobs and departing threads hold `shared` only.
    owner: Arc<Owner<E>>,
}

struct Owner<E: Engine>(Arc<DatabaseShared<E>>);

impl<E: Engine> Drop for Owner<E> {
    fn drop(&mut self) {
        // Whoever wants to know calls `Database::close`. A panic was printed where it was met.
        let _ = catch_unwind(AssertUnwindSafe(|| self.0.close_from_anywhere()));
    }
}

impl Database {
    /// Opens an empty database in memory with the default [`Options`].
    ///
    /// # Errors
    /// None with the default options.
    pub fn in_memory() -> Result<Database> {
        Options::default().in_memory()
    }

    /// Opens the database in this directory with the default [`Options`], and makes it if the directory is
    /// empty or missing.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(directory: impl Into<PathBuf>) -> Result<Database> {
        Options::default().open(directory)
    }

    /// Returns the default options of a database that is about to be opened.
    pub fn options() -> Options {
        Options::default()
    }
}

impl<E: Engine> Database<E> {
    /// Runs `body` as one serializable transaction on the calling thread, and returns what it returns.
    ///
    /// When the transaction meets a conflict, it is undone and `body` runs again after a short random wait,
    /// at most [`Options::retries`] times. It also runs again when the memory limit has ended it and memory may
    /// have been freed since: once, and over [`ermia`](crate::ermia) in a directory, where rows leave memory,
    /// for two seconds, and up to ten as long as some leave; and to find a number that has no room for a sum
    /// ([`Table::add`](crate::Table::add)). So `body` must have no effects but those of the
    /// transaction. When `body` returns an error or panics, the transaction is undone; an error of its own is
    /// returned as it is, and its panic goes on, unless they come from reads that do not belong together,
    /// which is a conflict: see [`Transaction`].
    ///
    /// A request that has met many conflicts gets ahead of others: what its attempt has read nobody changes
    /// until it ends. One request at a time does, so that none is tried for ever. Its conflicts count for
    /// those that make way ([`AbortReason::PreparedRead`](crate::AbortReason::PreparedRead)). So `body`
    /// should not wait for anything but the database, and least of all for another request, of this
    /// database or another one: where that would change what `body` has read, it is refused for as long as
    /// `body` waits for it. Long work, and what waits for something else, goes between the statements of a
    /// [`Session`], which is not tried again and never gets ahead of others.
    ///
    /// An error of another type goes through [`Error::user`]: `file.read(&mut bytes).map_err(Error::user)?`
    /// for an [`io::Error`](std::io::Error), which [`Error::user_error`] returns again. It undoes the
    /// transaction. [`Database::transact_as`] takes closures with errors of other types.
    ///
    /// Isolation: serializable. After `Ok` the writes are visible to every transaction that commits later.
    /// They are also on disk, with everything that the transaction has read, unless the database is in memory
    /// only or [`Options::durability`] asks for less. After `Err` everything that the transaction has read is
    /// on disk, under the same conditions.
    ///
    /// # Errors
    /// What `body` returns; [`Error::Aborted`] when the retries are used up; [`Error::OutOfMemory`];
    /// [`Error::TransactionTooLarge`]; [`Error::RowUnreadable`] and [`Error::LoadFailed`], where rows come from
    /// the disk when they are touched; [`Error::ReadOnly`] when something was written and the database is
    /// open for reading only; [`Error::NestedRequest`] when called from inside another request to this
    /// database on the same thread; [`Error::LogFailed`] once a write to the disk has failed: nothing that
    /// writes commits any more, whether a transaction that waited to be stored is there only opening the
    /// database anew tells, and reads go on of all but what such transactions wrote; [`Error::Closed`]:
    /// nothing has changed.
    #[inline]
    pub fn transact<R>(&self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        let level = self.shared.level_here(None)?;
        let outcome = attempt::run(&self.shared, RetryPolicy::new(self.shared.retries), &mut |_| (), body);
        self.shared.answer(outcome, level)
    }

    /// Runs `body` as a read-only transaction on the present, on the calling thread: all that it has read was
    /// there at one moment, which is no earlier than the call.
    ///
    /// It is not tried again and again, however much it reads and whoever writes. A short one is validated
    /// like a transaction, and so a first and a second attempt may meet a conflict. The third one reads a
    /// snapshot that is taken for it, which may wait for up to 10 ms: it meets none, and nobody waits for
    /// it. So `body` runs three times at most, and again only where rows that it needs have to be loaded and
    /// there is no memory for them. What it concludes from reads that do not belong together is given up as
    /// [`Transaction`] says. Like [`Database::transact`] it returns when everything that `body` has read is on
    /// disk.
    ///
    /// This is the way to read where the answer has to be current: the caller finds what it, or anybody else,
    /// has committed before the call. Where a state of a moment ago will do, [`Database::read_stale`] costs
    /// less, runs `body` once, and never meets a conflict.
    ///
    /// ```
    /// # use ensilo::{Database, Row, Table};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts: Table<Account> = db.create_table()?;
    /// let total = db.read(|tx| {
    ///     let mut total = 0;
    ///     accounts.scan().for_each(tx, |_id, account| total += account.balance)?;
    ///     Ok(total)
    /// })?;
    /// # assert_eq!(total, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Database::read_stale`], but for [`Error::NoSnapshots`]: over an engine without snapshots it is
    /// validated and tried again as [`Database::transact`] is.
    pub fn read<R>(&self, body: impl FnMut(&mut Reader<'_, E>) -> Result<R>) -> Result<R> {
        self.request().read(body)
    }

    /// Runs `body` as a read-only transaction on a recent consistent point of the serial order, on the
    /// calling thread.
    ///
    /// `body` runs once. It never conflicts with other transactions, never makes them wait, and waits for
    /// none of them; its answer may wait until what it shows is stored. This is the way to read much, and for
    /// reports; what has to be current is read by [`Database::read`].
    ///
    /// The point is that of the newest snapshot that there is: at most about one snapshot interval old, which
    /// is a second by default, or a little more where commits take long. Rows that are younger are not
    /// visible, not even those that the caller has committed itself. A table that is younger is empty, and so
    /// are the indexes that it was created with. Reads of an index that is younger than its table, and than
    /// the snapshot, end with [`Error::IndexNotReady`].
    ///
    /// The point is younger where a snapshot was taken meanwhile, by a [`Database::read`] that has met
    /// conflicts or for another request's [`Request::max_staleness`]: these serve everybody.
    /// [`Request::max_staleness`] bounds how old the point may be, and [`Snapshot::staleness`] says how old it
    /// is.
    ///
    /// As with [`Database::transact`], everything that `body` has read is on disk when this returns; it nearly
    /// always has been for a while.
    ///
    /// ```
    /// # use ensilo::{Database, Row, Table};
    /// # use std::time::Duration;
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts: Table<Account> = db.create_table()?;
    /// db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 10 }))?;
    /// let bounded = db.request().max_staleness(Duration::ZERO);
    /// assert_eq!(bounded.read_stale(|tx| accounts.scan().count(tx))?, 1);
    /// // That snapshot is there now, and so it is what this shows.
    /// assert_eq!(db.read_stale(|tx| accounts.scan().count(tx))?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `body` returns; [`Error::Aborted`] with `AbortReason::SnapshotTooOld` when it runs for longer
    /// than [`Options::snapshot_age_limit`]; [`Error::OutOfMemory`], [`Error::RowUnreadable`] and
    /// [`Error::LoadFailed`], where rows come from the disk when they are touched, and `body` is not run again
    /// when there is no memory for them; [`Error::NestedRequest`], [`Error::Closed`]; [`Error::LogFailed`] once a write to the disk has failed, if `body` has read what was never stored;
    /// [`Error::NoSnapshots`], neither over [`Silo`] nor over [`ermia`](crate::ermia).
    #[inline]
    pub fn read_stale<R>(&self, body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>) -> Result<R> {
        self.request().read_stale(body)
    }

    /// Runs `body` with each of the `requests`, one after the other on the calling thread, each as a transaction of its own
    /// like that of [`Database::transact`], and returns their results in the same order.
    ///
    /// This is for requests that do not depend on each other and on tables that are larger than the processor's caches.
    /// `first_keys` adds to a [`Prefetch`] the keys that a request looks up first. What they lead to is loaded for several
    /// requests at once, before the first of them begins, so that their waits for memory lie side by side. These keys are a
    /// hint: it does not matter for the results whether they are complete, or right. Over an engine that knows no such
    /// thing, `first_keys` is not called.
    ///
    /// A conflict has its transaction run again before the next one begins. The error of one request leaves the others as they
    /// are. The answers wait together until all that has committed is stored: with a database in a directory, a batch takes about
    /// the time that one request takes. No result is there before the last request has ended.
    ///
    /// ```
    /// # use ensilo::{Database, Error, Row, Table};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts: Table<Account> = db.create_table()?;
    /// # db.transact(|tx| { for id in 0..3 { accounts.insert(tx, &Account { id, balance: 10 })?; } Ok(()) })?;
    /// let withdrawals = [(0, 5), (1, 70), (2, 10)];
    /// let results = db.transact_many(
    ///     &withdrawals,
    ///     |&(id, _), prefetch| prefetch.row(&accounts, id),
    ///     |tx, &(id, amount)| {
    ///         let balance = accounts.update(tx, id, |account: &mut Account| {
    ///             account.balance -= amount;
    ///             account.balance
    ///         })?;
    ///         if balance < 0 { Err(Error::rollback("not enough money")) } else { Ok(balance) }
    ///     },
    /// )?;
    /// let balances: Vec<Option<i64>> = results.into_iter().map(Result::ok).collect();
    /// assert_eq!(balances, [Some(5), None, Some(0)]); // The second one is undone, the others are there.
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NestedRequest`], [`Error::Closed`], [`Error::TooManyTransactions`] and [`Error::ThreadEnding`], with which none of the
    /// requests has run. Each result has what
    /// [`Database::transact`] returns; where the database is closed meanwhile, those of the requests behind that are
    /// [`Error::Closed`].
    ///
    /// # Panics
    /// When `body` does: the requests before have ended, though what has committed need not be stored yet, and the ones behind have not run.
    /// When `first_keys` does: any number of the requests before have not run either.
    pub fn transact_many<Q, R>(
        &self,
        requests: &[Q],
        first_keys: impl FnMut(&Q, &mut Prefetch<E>),
        body: impl FnMut(&mut Transaction<'_, E>, &Q) -> Result<R>,
    ) -> Result<Vec<Result<R>>> {
        self.request().transact_many(requests, first_keys, body)
    }

    /// Starts to load what requests need that the calling thread will run next, and returns at once: `name_keys` adds
    /// the keys that they look up first.
    ///
    /// [`Database::transact_many`] does so by itself. This is for requests that differ in kind or settings, or are no
    /// transactions of [`Database::transact`]. Ten to sixty keys at once are best: the waits for fewer leave the
    /// processor idle, and what is loaded for more falls out of its cache before it is used. Over an engine that
    /// knows no such thing, `name_keys` is not called.
    ///
    /// ```
    /// # use ensilo::{Database, Row, Table};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts: Table<Account> = db.create_table()?;
    /// db.prefetch(|prefetch| (0..20).for_each(|id| prefetch.row(&accounts, id)))?;
    /// let found = db.transact(|tx| accounts.contains(tx, 7))?;
    /// # assert!(!found);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NestedRequest`], [`Error::Closed`].
    pub fn prefetch(&self, name_keys: impl FnOnce(&mut Prefetch<E>)) -> Result<()> {
        let mut worker = self.shared.enter()?;
        if E::Session::PREFETCHES {
            let mut prefetch = Prefetch::new(&mut worker.local);
            name_keys(&mut prefetch);
            prefetch.start(&mut worker);
            prefetch.end(&mut worker.local);
        }
        Ok(())
    }

    /// Returns a request with settings that can be changed: retries, durability, a hook for aborts, how stale
    /// its reads may be.
    #[inline]
    pub fn request(&self) -> Request<'_, NoHook, E> {
        Request::new(&self.shared)
    }

    /// Runs `body` like [`Database::transact`] on a thread of the database's pool, and returns a handle to
    /// its result. Waits while the pool's queue is full, unless the calling thread is one of the pool's. A
    /// job may submit jobs, but must not wait for them.
    ///
    /// ```
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = ensilo::Database::in_memory()?;
    /// let handle = db.submit(|_tx| Ok(6 * 7))?;
    /// assert_eq!(handle.wait()?, 42); // or, in async code: handle.await?
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`]. The handle has what [`Database::transact`] returns.
    pub fn submit<R: Send + 'static>(
        &self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        self.job().submit(body)
    }

    /// Like [`Database::submit`], but returns an error instead of waiting while the queue is full.
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::Closed`].
    pub fn try_submit<R: Send + 'static>(
        &self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        self.job().try_submit(body)
    }

    /// Runs `body` like [`Database::read_stale`] on a thread of the database's pool, and returns a handle to
    /// its result.
    ///
    /// # Errors
    /// As [`Database::submit`]; the handle has what [`Database::read_stale`] returns.
    pub fn submit_read_stale<R: Send + 'static>(
        &self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        self.job().submit_read_stale(body)
    }

    /// Makes a session, for transactions that stay open between calls. A session does not keep the database
    /// open.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn session(&self) -> Result<Session<E>> {
        self.check_open()?;
        Ok(Session::new(&self.shared))
    }

    /// Makes a session and begins a transaction in it.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin(&self) -> Result<Session<E>> {
        let mut session = self.session()?;
        session.begin()?;
        Ok(session)
    }

    /// Returns what the database has counted. The counters are read while it runs: each is exact for some
    /// moment, but not all for the same one.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn statistics(&self) -> Result<Statistics> {
        self.check_open()?;
        Ok(Statistics::collect(&self.shared))
    }

    /// Takes the transactions that the calling thread has committed since the last call, for a checker of
    /// histories. Empty unless the engine's variant records.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NestedRequest`].
    #[doc(hidden)]
    pub fn take_history(&self) -> Result<Vec<ensilo_engine::history::TransactionRecord>> {
        Ok(self.shared.enter()?.raw.take_history())
    }

    /// Closes the database for all handles: every request from now on ends with [`Error::Closed`]. The call
    /// waits for jobs and callbacks under way, and until everything that was committed is stored. Jobs that have not begun
    /// are dropped, and their handles get [`Error::Closed`].
    ///
    /// A second call returns the same result. While the first one is under way, the second waits for it,
    /// except in a job, for which the first one waits, or may wait because a closure of [`Database::on_change`] does. So a job
    /// must not wait for a thread that closes the database.
    ///
    /// A job may close another database, or drop its last handle. Such a job is not waited for where a job of
    /// that database waits for one of this database, directly or through others, or closes this one. It then
    /// ends like a request of another thread.
    ///
    /// In a hook of [`Options::on_event`], in a closure of [`Database::on_change`], in a clock of
    /// [`ExpiryOptions::clock`](crate::ExpiryOptions::clock), and in a waker that a ticket or a job's handle was polled with,
    /// the call does not wait: closing may itself wait for the hook, the closure, the clock or the waker. A thread of the closed
    /// database goes on with the work. This holds for the hooks, closures, clocks and wakers of every database, and also when
    /// the last handle is dropped there.
    ///
    /// Requests under way on other threads are not waited for. Such a request ends as usual, and what it
    /// commits is stored. Or it ends with [`Error::Closed`] and has changed nothing, because it met a
    /// conflict, or came to its commit after everything else was stored. An open transaction of a session is
    /// undone. A checkpoint, a backup or the building of an index under way ends with [`Error::Closed`].
    ///
    /// # Errors
    /// [`Error::LogFailed`]: what was not acknowledged as stored may be lost. [`Error::CheckpointFailed`]
    /// when the last checkpoint that [`Options::checkpoint_at_close`] asks for could not be made, or the
    /// manifest could not be brought up to what is stored; the log has everything. [`Error::ThreadPanicked`]
    /// when an earlier call has panicked.
    ///
    /// # Panics
    /// When a thread of the database other than those of the log has panicked, which is a mistake in Ensilo:
    /// with that panic, and after all else was closed. What was acknowledged as stored is stored, and the
    /// database can be opened again. Dropping the last handle does not panic.
    pub fn close(&self) -> Result<()> {
        self.shared.close_from_anywhere()
    }

    pub(crate) fn table_core(&self, name: &str) -> Result<Arc<TableCore<E::Store>>> {
        self.shared.table_core(name)
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.shared.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }
}

impl<E: Engine> Clone for Database<E> {
    fn clone(&self) -> Self {
        Database { shared: Arc::clone(&self.shared), owner: Arc::clone(&self.owner) }
    }
}

impl<E: Engine> fmt::Debug for Database<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handles = Arc::strong_count(&self.owner);
        f.debug_struct("Database")
            .field("id", &self.shared.id())
            .field("handles", &handles)
            .finish_non_exhaustive()
    }
}
