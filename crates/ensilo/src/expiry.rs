//! Rows that are removed once a time in one of their columns has passed.
//!
//! A program says which column that is, each time that it runs: nothing of it is stored. One thread of the database serves all tables of
//! which that was said. It finds the rows by an index that begins with the column, in the order of their times, and deletes them by ordinary
//! transactions, a few rows each.
//! - `options`: what a program says of a table;
//! - `expiries`: all that was said, as the thread is given it;
//! - `schedule`: the thread, and what it does next;
//! - `pass`: removes the rows that have expired at one moment;
//! - `target`: where these rows lie;
//! - `turn`: who removes rows of a table at the moment.
//!
//! # Invariants
//! - E1: a row is removed only by a transaction that has read it, and found its time among those that have passed. Where another transaction gives it a
//!   later time, one of the two does not commit.
//! - E2: the thread has no lock and no transaction while it calls the program's clock and hook for events, or their destructors. Wakers of those that wait
//!   for rows are called by every commit, and where a row is given up that was claimed, within the transaction: a call of `remove_now` out of one takes no turn.
//! - E3: transactions that remove expired rows of one table take turns, so that `remove_now` passes over no row that another of them has taken out and not
//!   yet removed. The thread does not wait for its turn: other tables would wait with it.

mod expiries;
mod options;
mod pass;
mod schedule;
mod target;
mod turn;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ensilo_engine::Engine;

pub(crate) use self::expiries::Expiries;
pub use self::options::{ExpiryOptions, TimeUnit};
use self::pass::Pass;
use self::turn::Turn;
use crate::database::Database;
use crate::mutex::lock;
use crate::outcome::Visible;
use crate::shared::DatabaseShared;
use crate::{Error, Result, Silo};

/// The removal of the rows of one table that have expired, which goes on in the background as long as this is there, and the database is open.
///
/// [`Database::expire_rows`] makes one.
#[must_use = "rows are removed as long as this is there, or until the database is closed if it is detached"]
pub struct Expiry<E: Engine = Silo> {
    shared: Arc<DatabaseShared<E>>,
    core: Arc<ExpiryCore>,
    is_detached: bool,
}

/// What has come of rows that expire, of one table.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExpiryStatistics {
    /// The table.
    pub table: String,
    /// The column that says when its rows expire.
    pub column: String,
    /// How many rows were removed.
    pub removed_rows: u64,
    /// How often a row stayed until a later look, because others were using it or it could not be read back from the disk. One that a consumer has
    /// [taken](crate::generic::Scan::take_first) does not count.
    pub postponed_rows: u64,
    /// How often a look of the background has ended with an error. What [`Expiry::remove_now`] returns does not count.
    pub failures: u64,
    /// The text of the error that the last look of the background has ended with; `None` if it has removed all but what others were using.
    pub failure: Option<String>,
}

impl<E: Engine> Database<E> {
    /// Removes the rows of a table once they have expired, in the background: those whose time, in a column that `options` names, has passed.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use ensilo::{Database, ExpiryOptions, Row, Timestamp};
    ///
    /// #[derive(Debug, PartialEq, Row)]
    /// #[row(table = "session", index(name = "by_expiry", columns(expires)))]
    /// struct Session {
    ///     #[row(key)]
    ///     id: u64,
    ///     user: String,
    ///     expires: Option<Timestamp>, // null: never
    /// }
    ///
    /// # fn main() -> ensilo::Result<()> {
    /// let db = Database::in_memory()?;
    /// let sessions = db.table::<Session>()?;
    /// let expiry = db.expire_rows("session", ExpiryOptions::new("expires"))?;
    ///
    /// let now = Timestamp::now();
    /// let in_an_hour = Timestamp::from(SystemTime::now() + Duration::from_secs(3600));
    /// let session = |id, expires| Session { id, user: "ada".to_owned(), expires };
    /// db.transact(|tx| {
    ///     sessions.insert(tx, &session(1, Some(now)))?;
    ///     sessions.insert(tx, &session(2, Some(in_an_hour)))?;
    ///     sessions.insert(tx, &session(3, None))
    /// })?;
    /// expiry.remove_now()?; // within about a second it happens by itself
    /// let left = db.transact(|tx| Ok((sessions.get(tx, 1)?, sessions.scan().count(tx)?)))?;
    /// assert_eq!(left, (None, 2));
    /// # Ok(()) }
    /// ```
    ///
    /// Nothing of this is stored: a program calls it each time that it opens the database, and may say something else then. Rows that have
    /// expired while the database was closed go after that. It stops when the [`Expiry`] is dropped.
    ///
    /// # What to rely on
    /// - *Until it is removed, a row that has expired is there*, for every transaction, for about as long as
    ///   [`ExpiryOptions::check_interval`] says, or longer where many expire at once. Where that matters, readers leave such rows out by themselves:
    ///   `row.expires.is_none_or(|expires| expires > Timestamp::now())`. Where the column is never null, a range of the index does it too; nulls come
    ///   first in an index, so that a range behind `now` would leave out rows that never expire.
    /// - *A row that lives is not removed.* Its removal is a transaction like any other, which reads the row and finds its time passed: an
    ///   update that gives it a later time, and commits before, keeps it. So indexes, the [change feed](Database::changes), log and recovery have an
    ///   ordinary deletion.
    /// - *Others go first.* Each transaction removes 128 rows at most; after a conflict it removes fewer, and what others keep using stays until the next
    ///   look. Who changes or reads such a row at the same time may meet a conflict and be tried again, as beside every other writer. A row that a
    ///   consumer has [taken](crate::generic::Scan::take_first) stays as long as its transaction is open. Between
    ///   two transactions the thread rests for as long as the first has taken, also where the second is for another table.
    /// - *It goes on at the [memory limit](crate::Options::memory_limit_bytes)*, where deletions succeed.
    /// - *A row that cannot be read back from the disk* ([`Error::RowUnreadable`]) stays until the database is opened again. The others are removed, by an
    ///   index; by the primary key those behind it stay, too.
    /// - *A crash* may bring rows back that were removed within the milliseconds before; they are removed again.
    ///
    /// The table is looked up by its name at each look: one that was truncated, or whose columns were changed, is served as it is since. While there is
    /// no such table, column or index, or something else fails, nothing is removed; it is tried again, after pauses that grow up to a minute, or are as
    /// long as the interval where that is longer. Then [`Expiry::failure`] has the error, and so has [`ExpiryStatistics::failure`]. And
    /// [`Options::on_event`](crate::Options::on_event), and with the feature `tracing` an event, report it when it begins, and when it goes on for
    /// another cause.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownColumn`]; [`Error::InvalidOption`] when the column is neither a timestamp nor an integer, the unit is
    /// missing or does not fit, no index and no primary key begins with the column, the interval is below 1 ms, the clock panics, or the system has no
    /// thread left; [`Error::ReadOnly`], [`Error::Closed`]; [`Error::ThreadPanicked`] when the thread that removes rows has panicked.
    pub fn expire_rows(&self, table: &str, options: ExpiryOptions) -> Result<Expiry<E>> {
        options.check()?;
        if self.shared.read_only().is_some() {
            return Err(Error::ReadOnly);
        }
        let core = Arc::new(ExpiryCore::new(table, options, self.shared.expiries.turn_of(table)));
        self.shared.expired(&core)?;
        self.shared.begin_expiry(&core)?;
        Ok(Expiry { shared: Arc::clone(&self.shared), core, is_detached: false })
    }
}

impl<E: Engine> Expiry<E> {
    /// Removes what has expired by now, on the calling thread, and returns how many rows that were; it returns when that is stored, as
    /// [`Database::transact`] does. Rows that others keep using stay. What the background removes meanwhile, or another call, is not counted, and has
    /// gone, too, when this returns: all that remove rows of one table take turns, except for a thread with a transaction open, and in a hook or a waker.
    ///
    /// # Errors
    /// Those of [`Database::transact`], and of [`Database::expire_rows`] where the table was changed since; [`Error::TableChanged`] and
    /// [`Error::UnknownIndex`] when that happens meanwhile: call it again. Rows that were removed before are gone, and that is stored.
    pub fn remove_now(&self) -> Result<u64> {
        let level = self.shared.level_here(None)?;
        let mut pass = Pass::begin(&self.shared, &self.core)?;
        let outcome = pass.run(&self.shared, &self.core);
        // Also what was removed before an error is stored when that is returned.
        let (value, epoch) = pass.removed();
        let stored = self.shared.answer(Ok(Visible { value, epoch }), level);
        outcome.and(stored)
    }

    /// Returns why nothing was removed, or not all, when the background looked last; `None` if that went well.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        lock(&self.core.progress).failure.clone()
    }

    /// Returns what has come of it so far. [`Statistics::expiries`](crate::Statistics::expiries) has the same of all tables.
    #[must_use]
    pub fn statistics(&self) -> ExpiryStatistics {
        self.core.statistics()
    }

    /// Lets it go on without this handle until the database is closed.
    pub fn detach(mut self) {
        self.is_detached = true;
    }
}

/// Ends the removal; a transaction that is under way for it may still commit.
impl<E: Engine> Drop for Expiry<E> {
    fn drop(&mut self) {
        if !self.is_detached {
            self.shared.expiries.end(&self.core);
        }
    }
}

impl<E: Engine> fmt::Debug for Expiry<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expiry").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

/// What a program has said of a table, and what has come of it.
#[derive(Debug)]
pub(crate) struct ExpiryCore {
    table: String,
    options: ExpiryOptions,
    has_ended: AtomicBool,
    progress: Mutex<Progress>,
    turn: Arc<Turn>,
}

#[derive(Debug, Default)]
struct Progress {
    removed_rows: u64,
    postponed_rows: u64,
    failures: u64,
    failure: Option<Error>,
    /// The text of the error that was reported last; `None` after a success.
    reported: Option<String>,
}

impl ExpiryCore {
    fn new(table: &str, options: ExpiryOptions, turn: Arc<Turn>) -> Self {
        let (has_ended, progress) = (AtomicBool::new(false), Mutex::default());
        ExpiryCore { table: table.to_owned(), options, has_ended, progress, turn }
    }

    fn end(&self) {
        // Relaxed, here and below: what the thread has begun it may end.
        self.has_ended.store(true, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn note_removed(&self, rows: u64) {
        lock(&self.progress).removed_rows += rows;
    }

    fn note_postponed(&self) {
        lock(&self.progress).postponed_rows += 1;
    }

    fn note_success(&self) {
        let mut progress = lock(&self.progress);
        (progress.failure, progress.reported) = (None, None);
    }

    /// Notes why rows are not removed, and returns whether that is news; it is none where only time has to pass.
    fn note_failure(&self, error: Error) -> bool {
        let mut progress = lock(&self.progress);
        progress.failures += 1;
        let text = error.to_string();
        let is_news = !error.is_retryable() && progress.reported.as_ref() != Some(&text);
        progress.failure = Some(error);
        if is_news {
            progress.reported = Some(text);
        }
        is_news
    }

    fn statistics(&self) -> ExpiryStatistics {
        let progress = lock(&self.progress);
        ExpiryStatistics {
            table: self.table.clone(),
            column: self.options.column.clone(),
            removed_rows: progress.removed_rows,
            postponed_rows: progress.postponed_rows,
            failures: progress.failures,
            failure: progress.failure.as_ref().map(ToString::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Name;

    #[test]
    fn each_cause_is_news_once_until_a_success() {
        let core = ExpiryCore::new("token", ExpiryOptions::new("expires"), Arc::default());
        let refused = |why: &str| Error::InvalidOption(Name::new(why));
        assert!(core.note_failure(refused("no index")));
        assert!(!core.note_failure(refused("no index")));
        assert!(core.note_failure(refused("the clock panicked")), "another cause of the same kind");
        assert!(!core.note_failure(refused("the clock panicked")));
        core.note_success();
        assert!(core.note_failure(refused("the clock panicked")));
        assert_eq!(core.statistics().failures, 5);
    }
}
