//! The database: what opens, owns and closes everything else, and runs requests.

mod indexes;
mod open;
mod storage;
mod tables;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Engine, Session as _};

use crate::attempt;
use crate::catalog::TableCore;
use crate::options::Options;
use crate::pool::{JobHandle, WhenFull};
use crate::request::{NoHook, Request};
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::{Error, Result, Session, Snapshot, Transaction};

/// A database. Cloning gives another handle to the same one; dropping the last handle closes it.
///
/// All methods may be called from any number of threads at once.
pub struct Database<E: Engine = Silo> {
    pub(crate) shared: Arc<Shared<E>>,
    /// Closes the database when the last handle goes; jobs and departing threads hold `shared` only.
    owner: Arc<Owner<E>>,
}

struct Owner<E: Engine>(Arc<Shared<E>>);

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

    /// Opens the database in this directory with the default [`Options`], and makes it if the directory is empty or missing.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(directory: impl Into<PathBuf>) -> Result<Database> {
        Options::default().open(directory)
    }

    /// Options for a database that is about to be opened.
    pub fn options() -> Options {
        Options::default()
    }
}

impl<E: Engine> Database<E> {
    /// Runs `body` as one serializable transaction on the calling thread and returns what it returns.
    ///
    /// When the transaction meets a conflict it is undone and `body` runs again, after a short random wait, as often
    /// as [`Options::retries`] says; and once more when it finds no memory under the limit and some may have come free since. So `body` must
    /// have no effects but through the transaction. When `body`
    /// returns an error, or panics, the transaction is undone; an error of its own is handed to the caller as it is.
    ///
    /// Isolation: serializable. When this returns `Ok`, the writes are visible to every transaction that commits later and, unless
    /// the database is in memory only or [`Options::durability`] says otherwise, on disk, with all that the transaction has read. When it
    /// returns `Err`, what it has read is.
    ///
    /// # Errors
    /// What `body` returns; [`Error::Aborted`] when the retries are used up; [`Error::OutOfMemory`]; [`Error::TransactionTooLarge`];
    /// [`Error::ReadOnly`] when something was written and the database is open for reading only;
    /// [`Error::NestedRequest`] when called from inside another request to this database on the same thread;
    /// [`Error::LogFailed`] once a write to the disk has failed: nothing that writes commits any more, whether a transaction that waited to
    /// be stored is there only opening the database anew tells, and reads go on of all but what such transactions wrote;
    /// [`Error::Closed`]: nothing has changed.
    #[inline]
    pub fn transact<R>(&self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        let level = self.shared.level_here(None)?;
        let outcome = attempt::run(&self.shared, self.shared.retries, &mut |_| (), body);
        self.shared.answer(outcome, level)
    }

    /// Runs `body` on a recent consistent point of the serial order, read-only, on the calling thread.
    ///
    /// It never conflicts with other transactions and never makes them wait. What it shows is one to two snapshot intervals old
    /// (about a second or two unless [`Options`] say otherwise): rows, tables and indexes that are younger do not show. Like
    /// [`Database::transact`] it returns when what `body` has read is on disk; mostly it has been for long.
    ///
    /// # Errors
    /// What `body` returns; [`Error::Aborted`] with `AbortReason::SnapshotTooOld` when it runs for longer than
    /// [`Options::snapshot_age_limit`]; [`Error::NestedRequest`], [`Error::Closed`]; [`Error::LogFailed`] once a write to the disk has failed,
    /// if `body` has read what was never stored;
    /// [`Error::NoSnapshots`], only by engines other
    /// than [`Silo`].
    #[inline]
    pub fn snapshot<R>(&self, body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>) -> Result<R> {
        let level = self.shared.level_here(None)?;
        self.shared.answer(attempt::run_snapshot(&self.shared, body), level)
    }

    /// A request with settings of its own: retries, a hook for aborts.
    #[inline]
    pub fn request(&self) -> Request<'_, NoHook, E> {
        Request::new(&self.shared)
    }

    /// Runs `body` like [`Database::transact`] on a thread of the database's pool, and returns a handle to its result. Waits
    /// while the pool's queue is full. A job may submit jobs, but not wait for them.
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
        self.submit_transaction(WhenFull::Wait, body)
    }

    /// Like [`Database::submit`], but never waits.
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::Closed`].
    pub fn try_submit<R: Send + 'static>(
        &self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        self.submit_transaction(WhenFull::Refuse, body)
    }

    /// Runs `body` like [`Database::snapshot`] on a thread of the database's pool.
    ///
    /// # Errors
    /// As [`Database::submit`]; the handle has what [`Database::snapshot`] returns.
    pub fn submit_snapshot<R: Send + 'static>(
        &self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        attempt::submit(&self.shared, WhenFull::Wait, |shared| attempt::run_snapshot(shared, body))
    }

    fn submit_transaction<R: Send + 'static>(
        &self,
        when_full: WhenFull,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        attempt::submit(&self.shared, when_full, |shared| {
            attempt::run(shared, shared.retries, &mut |_| (), body)
        })
    }

    /// A session, for transactions that stay open between calls. Like a job under way, it does not keep the database open.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn session(&self) -> Result<Session<E>> {
        self.check_open()?;
        Ok(Session::new(&self.shared))
    }

    /// A session that has begun a transaction.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin(&self) -> Result<Session<E>> {
        let mut session = self.session()?;
        session.begin()?;
        Ok(session)
    }

    /// What the database has counted, read while it runs: each figure is exact for some moment, not all for the same one.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn statistics(&self) -> Result<Statistics> {
        self.check_open()?;
        Ok(Statistics::collect(&self.shared))
    }

    /// Takes the transactions that the calling thread has committed since it did so last, for a checker to judge. Empty unless the variant
    /// of the engine records.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NestedRequest`].
    #[doc(hidden)]
    pub fn take_history(&self) -> Result<Vec<ensilo_engine::history::TransactionRecord>> {
        Ok(self.shared.enter()?.raw.take_history())
    }

    /// Closes the database for all handles: every request from now on fails with [`Error::Closed`]. Jobs under way are waited for;
    /// those that have not begun are dropped, and their handles get [`Error::Closed`]. Waits until all that was committed is stored. A
    /// second call finds nothing to do, and returns the same error; while the first one goes on, it waits for it, except in a job, for which
    /// the first one waits. So a job must not wait for a thread that closes the database.
    ///
    /// A job may close another database, or drop its last handle. Where a job of that database waits for one of this one's, directly or through
    /// others, or closes this one, it is not waited for: it ends like a request of another thread.
    ///
    /// In a hook of [`Options::on_event`], or while a waker wakes that a ticket or a job's handle was polled with, it does not wait, since
    /// closing may wait for these: a thread of the database that is closed goes on with it. It is the same whichever database calls the hook
    /// or the waker, and where the last handle is dropped there.
    ///
    /// Requests under way on other threads are not waited for. Each ends as it would, and if that is with `Ok`, what it has committed is stored;
    /// or with [`Error::Closed`], because it met a conflict, or came to its commit when a durable database had stored everything else: then
    /// it has changed nothing. An open transaction of a session is undone. A checkpoint, a backup, or the
    /// building of an index under way is given up with [`Error::Closed`].
    ///
    /// # Errors
    /// [`Error::LogFailed`]: what was not acknowledged as stored may be lost. [`Error::CheckpointFailed`] when the
    /// last checkpoint that [`Options::checkpoint_at_close`] asks for could not be made, or the manifest could not be brought up to what is
    /// stored; the log has everything. [`Error::ThreadPanicked`] when an earlier call has panicked.
    ///
    /// # Panics
    /// When a thread of the database other than those of the log has panicked, which is a mistake in Ensilo: with that panic, and after all else was closed. What was
    /// acknowledged as stored is stored, and the database can be opened again. Dropping the last handle does not panic.
    pub fn close(&self) -> Result<()> {
        self.shared.close_from_anywhere()
    }

    fn table_core(&self, name: &str) -> Result<Arc<TableCore<E::Store>>> {
        self.check_open()?;
        self.shared.catalog.table(name)
    }

    fn check_open(&self) -> Result<()> {
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
