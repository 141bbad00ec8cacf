//! Wakes those that wait for rows of a table.
//!
//! # Memory ordering
//! No wake-up is lost. A watcher waits only after it has looked at the table, and what it must not miss is a
//! row that was installed after that look. Its commit is reported, as the module above shows: it counts an
//! arrival, under the lock of the table's state, after it has installed the row. The watcher remembers the
//! count that it has read before its look, and sleeps, under the same lock, only if the count is still that.
//! If the arrival was counted before the watcher has read the count, the lock carries the installed row to
//! the look, which sees it. Otherwise the count differs, or the watcher sleeps already and is woken.
//!
//! The same holds for a claim that ends: a watcher that has met the claim has read the count before, and the
//! arrival is counted after the claim is gone. After a commit it is counted only if the claim was met. Both
//! the meeting and the end are under the lock of the claim's shard, so the end finds what has met it.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ensilo_engine::Store;

use super::{Queues, TableQueue, locked};
use crate::catalog::table_core::TableCore;
use crate::error::Name;
use crate::{Error, Result};

/// The watchers of one table.
#[derive(Debug, Default)]
pub(super) struct WatchState {
    /// How often a row may have come.
    arrivals: u64,
    end: Option<WatchEnd>,
    /// The number of the last watcher.
    last_number: u64,
    /// Of those watchers, by number, that wait in async code.
    wakers: HashMap<u64, Waker>,
}

/// Why nothing comes any more.
#[derive(Copy, Clone, Debug)]
pub(super) enum WatchEnd {
    TableDropped,
    Closed,
}

impl WatchState {
    pub(super) fn count_arrival(&mut self) {
        self.arrivals += 1;
    }

    pub(super) fn end(&mut self, end: WatchEnd) {
        self.end.get_or_insert(end);
    }

    /// Takes out all wakers, to be woken without the lock.
    pub(super) fn take_wakers(&mut self) -> HashMap<u64, Waker> {
        mem::take(&mut self.wakers)
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// # Errors
    /// Why nothing comes any more, if so.
    fn error(&self, table: &str) -> Result<()> {
        match self.end {
            None => Ok(()),
            Some(WatchEnd::TableDropped) => Err(Error::UnknownTable(Name::new(table))),
            Some(WatchEnd::Closed) => Err(Error::Closed),
        }
    }
}

/// Waits for rows to come into a table. [`Table::watch`](crate::generic::Table::watch) and
/// [`DynamicTable::watch`](crate::generic::DynamicTable::watch) make one.
///
/// It is made before the table is looked at. Then no row is missed by a loop that looks, and waits if it has
/// found nothing: a wait ends if a row has come since the last wait has ended, or since this was made.
///
/// A wait ends when a transaction has committed that has inserted or changed rows of the table, as soon as
/// these are visible; they may not be stored yet. It also ends when a transaction ends that has taken a row
/// of the table by `take_first`: without a commit, or with one if another `take_first` has passed over the
/// row meanwhile. Other deletions and what is written in other tables do not end it, except for commits that
/// were under way when a table of the database was watched for the first time. Each commit that brings rows
/// wakes all that wait: of many idle consumers each looks once, most of them find nothing, and wait again.
///
/// It does not keep the database open. Each consumer makes one of its own. From the first one on, every
/// commit that writes the table takes a lock of the table's.
///
/// To end consumers, close the database: each wait ends with [`Error::Closed`]. Tickets that were taken
/// before can still be asked.
///
/// # Rows for later
/// Where rows have a time at which they are due, and an index in the order of these times, a consumer
/// 1. takes the time, `now`, once;
/// 2. calls `take_first` on the range up to and with `now`;
/// 3. where that finds nothing, reads the first row after the same `now`, by
///    [`Database::read`](crate::Database::read), and waits with [`Arrivals::wait_timeout`] until that row is
///    due, or with [`Arrivals::wait`] if there is none.
///
/// With a later `now` in the third step, a row that has become due in between would be missed. If rows have
/// a priority, too, the second step is done with one range for each priority, and the third one as well. The
/// example `job_queue` shows it.
///
/// # Example
/// ```
/// # use ensilo::{Database, Row, Table};
/// #[derive(Row)]
/// #[row(table = "job")]
/// struct Job {
///     #[row(key)]
///     id: u64,
///     text: String,
/// }
///
/// # fn main() -> ensilo::Result<()> {
/// let db = Database::in_memory()?;
/// let jobs: Table<Job> = db.create_table()?;
/// let consumer = std::thread::spawn({
///     let (db, jobs) = (db.clone(), jobs.clone());
///     move || -> ensilo::Result<Vec<String>> {
///         let mut arrivals = jobs.watch()?;
///         let mut texts = Vec::new();
///         while texts.len() < 2 {
///             match db.transact(|tx| jobs.scan().take_first(tx))? {
///                 Some((_id, job)) => texts.push(job.text),
///                 None => arrivals.wait()?, // or, in async code: (&mut arrivals).await?
///             }
///         }
///         Ok(texts)
///     }
/// });
/// for (id, text) in [(1, "first"), (2, "second")] {
///     db.transact(|tx| jobs.insert(tx, &Job { id, text: text.to_owned() }))?;
/// }
/// assert_eq!(consumer.join().unwrap()?, ["first", "second"]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Every wait ends with [`Error::Closed`] once the database is being closed, and with
/// [`Error::UnknownTable`] once the table was dropped, also if one of the same name was made since: watch
/// that one anew.
#[must_use = "arrivals do nothing unless they are waited for"]
pub struct Arrivals {
    queue: Arc<TableQueue>,
    table: Arc<str>,
    number: u64,
    /// How many arrivals there were when it was made, or its last wait has ended.
    seen: u64,
}

impl Arrivals {
    /// Watches a table.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] when it was dropped, [`Error::Closed`].
    pub(crate) fn of<S: Store>(table: &TableCore<S>) -> Result<Self> {
        Arrivals::register(&table.queues, &table.queue, Arc::clone(&table.name))
    }

    fn register(queues: &Queues, queue: &Arc<TableQueue>, table: Arc<str>) -> Result<Self> {
        let observed = queues.observe(queue);
        let queue = Arc::clone(queue);
        let mut state = locked(&queue.state);
        state.last_number += 1;
        let (number, seen) = (state.last_number, state.arrivals);
        let ended = state.error(&table);
        drop(state);
        // That of a dropped table first.
        ended.and(observed)?;
        Ok(Arrivals { queue, table, number, seen })
    }

    /// Waits until a row may have come.
    ///
    /// It blocks the thread, in a job one of the database's pool. Inside a transaction it keeps that open.
    ///
    /// # Errors
    /// See [`Arrivals`].
    pub fn wait(&mut self) -> Result<()> {
        self.wait_until(None).map(drop)
    }

    /// Like [`Arrivals::wait`], for this time at most. Returns `false` if it has passed and nothing has come.
    ///
    /// # Errors
    /// See [`Arrivals`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<bool> {
        // What lies too far ahead for a clock never comes.
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<bool> {
        let queue = Arc::clone(&self.queue);
        let mut state = locked(&queue.state);
        while !self.has_come(&state)? {
            state = match deadline {
                None => queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    let waited = queue.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Ok(true)
    }

    /// Returns whether anything has come since the last time that this was so.
    fn has_come(&mut self, watch: &WatchState) -> Result<bool> {
        watch.error(&self.table)?;
        Ok(mem::replace(&mut self.seen, watch.arrivals) != watch.arrivals)
    }
}

/// Becomes ready when a row may have come, and may be polled again then, for the next one:
/// `(&mut arrivals).await`. The last waker that it was polled with is kept until then, or until it is
/// dropped.
///
/// A thread that commits calls the waker, as a part of its request. The waker should only pass the news on: a
/// request to the same database in it ends with [`Error::NestedRequest`].
impl Future for Arrivals {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // Wakers are foreign code: cloned and dropped without the lock.
        let waker = context.waker().clone();
        let queue = Arc::clone(&self.queue);
        let mut state = locked(&queue.state);
        let has_come = self.has_come(&state);
        let (before, poll) = match has_come {
            Ok(false) => (state.wakers.insert(self.number, waker), Poll::Pending),
            Ok(true) => (state.wakers.remove(&self.number), Poll::Ready(Ok(()))),
            Err(error) => (state.wakers.remove(&self.number), Poll::Ready(Err(error))),
        };
        drop(state);
        drop(before);
        poll
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        let waker = locked(&self.queue.state).wakers.remove(&self.number);
        drop(waker);
    }
}

impl fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrivals").field("table", &self.table).finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod models;
