//! Rows as an asynchronous stream: a scan of one snapshot that the database's pool reads batch by batch, each when it is asked for.
//!
//! The snapshot lies between two batches with the stream, not on a thread ([`held_snapshot`]). So a stream keeps no thread of the pool, however
//! slow its consumer is, and no thread of the executor, however large the table.

pub(crate) mod held_snapshot;

use std::any::type_name;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ensilo_engine::Engine;
use futures_core::Stream;

use self::held_snapshot::HeldSnapshot;
use crate::Result;
use crate::attempt::RetryPolicy;
use crate::database::Database;
use crate::job_request::JobRequest;
use crate::mutex::lock;
use crate::outcome::Outcome;
use crate::pool::JobFuture;
use crate::session::control::SessionControl;
use crate::table::{OwnedScan, ReadAhead, ReadOwned, ScanRange};
use crate::transaction::Snapshot;
use crate::transaction::sealed::Sealed as _;

/// How many rows are read at first, and at most.
const FIRST_BATCH_LEN: usize = 16;
const BATCH_LEN_MAX: usize = 256;

/// The rows of a scan, for async code: a [`Stream`] of what the scan gives for each row. [`Database::stream`](crate::Database::stream) and
/// [`JobRequest::stream`](crate::JobRequest::stream) make one.
///
/// All rows are of one [snapshot](crate::Snapshot), however long the stream lasts. It is begun when the first row is asked for, and shows
/// all that was committed by then.
///
/// No thread of the executor waits: threads of the database's pool read the rows, 256 at a time at most, and only when the ones before have been
/// taken. So a consumer that is slow makes nobody read ahead, and keeps no thread of the pool. With
/// [`Durability::Stored`](crate::Durability::Stored), the default in a directory, a row comes when what it shows is stored.
///
/// # How long it may take
/// While it lasts, old versions of rows are kept for it, memory that others free is not used again, and
/// [`Database::create_index`](crate::Database::create_index), [`Database::change_table`](crate::Database::change_table) and
/// [`Database::truncate_table`](crate::Database::truncate_table) wait for it if it has begun before them. One that begins while
/// one of the last two waits for others may end with [`Error::TableChanged`](crate::Error::TableChanged). [`EpochStatistics::oldest_pin`](crate::EpochStatistics::oldest_pin) shows it.
/// So it is bounded: behind [`Options::snapshot_age_limit`](crate::Options::snapshot_age_limit), a minute by default, the snapshot is
/// ended within about a second, also where nobody asks for a row, and the stream ends with [`Error::Aborted`](crate::Error::Aborted). What takes
/// longer is read in parts: the next stream begins behind the last key of the one before.
///
/// # End
/// The stream ends with `None`, or with an error, after which `None` follows. Either way the snapshot has ended by then. Dropping the stream gives it up: the
/// snapshot ends at once, or, where a batch is being read, after at most 256 more rows.
///
/// It needs no runtime, and does not keep the database open. Polled by a job of the same database, it ends with
/// [`Error::JobWaitsForJob`](crate::Error::JobWaitsForJob).
///
/// ```
/// # use ensilo::{Database, Row, Table};
/// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// async fn export(db: &Database, accounts: &Table<Account>) -> ensilo::Result<i64> {
///     let mut total = 0;
///     let mut rows = db.stream(accounts.range(10..20_000));
///     while let Some(row) = rows.next().await {
///         let (_id, account) = row?;
///         total += account.balance; // or written to a connection, by another await
///     }
///     Ok(total)
/// }
/// ```
#[must_use = "a stream does nothing unless it is asked for rows"]
pub struct RowStream<R> {
    rows: VecDeque<R>,
    /// What comes behind the rows, if the scan has ended: nothing or an error.
    end: Option<Result<()>>,
    /// Has the next batch read; `None` once the scan has ended.
    read_next: Option<Box<dyn FnMut() -> JobFuture<Batch<R>> + Send>>,
    reading: Option<JobFuture<Batch<R>>>,
}

/// Rows that were read at once.
struct Batch<R> {
    rows: Vec<R>,
    is_last: bool,
}

impl<E: Engine> Database<E> {
    /// Returns the rows of a scan as a stream for async code: a [`Scan`](crate::Scan), an [`IndexScan`](crate::IndexScan) or a
    /// [`DynamicScan`](crate::DynamicScan), with their bounds, directions, limits and columns. See [`RowStream`].
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// # #[derive(Row)] #[row(table = "account", index(name = "by_balance", columns(balance)))] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # async fn list(db: Database) -> ensilo::Result<()> {
    /// let accounts = db.table::<Account>()?;
    /// let by_balance = accounts.index::<i64>("by_balance")?;
    /// let mut richest = db.stream(by_balance.scan().reverse().limit(10));
    /// while let Some(row) = richest.next().await {
    ///     let (id, account) = row?;
    ///     println!("{id}: {}", account.balance);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The stream has those of [`Database::read_stale`], of the scan, and [`Error::JobPanicked`](crate::Error::JobPanicked).
    pub fn stream<S: ReadAhead<E>>(&self, scan: S) -> RowStream<S::Row>
    where
        S::Row: Send + 'static,
    {
        self.job().stream(scan)
    }
}

impl<E: Engine> JobRequest<E> {
    /// Returns the rows of a scan as [`Database::stream`] does, with this job's settings. Each batch of rows is one job of this priority and
    /// label. The deadline is that of the whole stream. With a [`max_staleness`](Self::max_staleness) the snapshot may be as old as that; without one it
    /// shows all that was committed before the first row was asked for, for which one may have to be
    /// [taken](crate::Request::max_staleness). The settings of retries have no effect.
    ///
    /// # Errors
    /// The stream has those of [`Database::stream`], and [`Error::NotDurable`](crate::Error::NotDurable).
    pub fn stream<S: ReadAhead<E>>(self, scan: S) -> RowStream<S::Row>
    where
        S::Row: Send + 'static,
    {
        let OwnedScan { table, range, read } = scan.into_owned();
        let max_staleness = self.max_staleness.unwrap_or(Duration::ZERO);
        let scan = Arc::new(StreamedScan {
            snapshot: HeldSnapshot::new(&self.shared, max_staleness, table),
            left: Mutex::new(Left { range, batch_len: FIRST_BATCH_LEN }),
            read,
            policy: self.policy,
            label: type_name::<S>(),
        });
        let read_next = move || {
            let scan = Arc::clone(&scan);
            self.job_when_awaited(move |control| scan.read_batch(control))
        };
        let (rows, read_next) = (VecDeque::new(), Some(Box::new(read_next) as Box<_>));
        RowStream { rows, end: None, read_next, reading: None }
    }
}

impl<R> RowStream<R> {
    /// Returns the next row, an error, or `None` at the end. What waits for it may be given up at any time: no row is lost.
    pub async fn next(&mut self) -> Option<Result<R>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<R> Unpin for RowStream<R> {}

impl<R> Stream for RowStream<R> {
    type Item = Result<R>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        loop {
            if let Some(row) = stream.rows.pop_front() {
                return Poll::Ready(Some(Ok(row)));
            }
            let Some(read_next) = &mut stream.read_next else {
                return Poll::Ready(stream.end.take().and_then(Result::err).map(Err));
            };
            let reading = stream.reading.get_or_insert_with(read_next);
            let batch = ready!(Pin::new(reading).poll(context));
            stream.reading = None;
            match batch {
                Ok(Batch { rows, is_last }) => {
                    stream.rows = rows.into();
                    stream.end = is_last.then_some(Ok(()));
                }
                Err(error) => stream.end = Some(Err(error)),
            }
            if stream.end.is_some() {
                stream.read_next = None;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rows.len(), self.read_next.is_none().then_some(self.rows.len() + 1))
    }
}

impl<R> fmt::Debug for RowStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_ended = self.read_next.is_none();
        f.debug_struct("RowStream").field("has_ended", &has_ended).finish_non_exhaustive()
    }
}

/// A scan that is read by one job after the other.
struct StreamedScan<F, E: Engine> {
    snapshot: Arc<HeldSnapshot<E>>,
    left: Mutex<Left>,
    read: F,
    policy: RetryPolicy,
    /// What a slow batch is called that the program has not called otherwise.
    label: &'static str,
}

/// What of a scan was not read yet, and how much of it is read next.
struct Left {
    range: ScanRange,
    batch_len: usize,
}

impl<F, E: Engine> StreamedScan<F, E> {
    fn read_batch<R>(&self, control: &Arc<SessionControl>) -> Outcome<Batch<R>>
    where
        F: ReadOwned<E, R>,
    {
        let shared = self.snapshot.shared();
        let mut watch = shared.watch(&self.policy, self.label);
        let outcome = self.snapshot.read(control, |snapshot| self.read_in(snapshot));
        match &outcome {
            Ok(batch) if batch.value.is_last => self.snapshot.end(),
            Ok(_) => {}
            Err(undone) => watch.note_undone(undone),
        }
        watch.end(shared, &outcome);
        outcome
    }

    /// Reads the next rows, up to one that cannot be read: that is met again when it is its turn, unless the snapshot has ended with it.
    fn read_in<R>(&self, snapshot: &mut Snapshot<'static, E>) -> Result<Batch<R>>
    where
        F: ReadOwned<E, R>,
    {
        let mut left = lock(&self.left);
        let len = left.batch_len.min(left.range.limit);
        let (mut rows, mut last) = (Vec::new(), None);
        let is_over = snapshot.statement(|inner| {
            let read = (self.read)(inner, left.range.clone(), len, &mut |key, row| {
                rows.push(row);
                last = Some(key);
            });
            match read {
                Ok(()) => Ok(rows.len() < len),
                Err(error) if rows.is_empty() || inner.is_ended_by(&error) => Err(error),
                Err(_) => Ok(false),
            }
        })?;
        if let Some(key) = last {
            left.range.pass(key, rows.len());
        }
        left.batch_len = (left.batch_len * 4).min(BATCH_LEN_MAX);
        Ok(Batch { rows, is_last: is_over || left.range.limit == 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use ensilo_engine::{Abort, AbortReason, ReadOf, SnapshotOf, TableId};
    use ensilo_row::KeyBuf;

    use super::*;
    use crate::table::Bounds;
    use crate::test_support::block_on;
    use crate::transaction::Inner;
    use crate::{Error, Silo};

    /// A scan whose first read gives a row and ends with an error, and the second one is at the end.
    struct FailsOnce(fn(&mut Inner<'_, SnapshotOf<'static, Silo>>) -> Error);

    impl ReadAhead<Silo> for FailsOnce {
        type Row = u32;

        fn range(&mut self) -> &mut ScanRange {
            unreachable!("of cursors")
        }

        fn read_ahead<Raw: ReadOf<Silo>>(
            &self,
            _inner: &mut Inner<'_, Raw>,
            _len: usize,
            _each: impl FnMut(KeyBuf, u32),
        ) -> Result<()> {
            unreachable!("of cursors")
        }

        fn into_owned(self) -> OwnedScan<impl ReadOwned<Silo, u32>> {
            let reads = AtomicU32::new(0);
            OwnedScan {
                table: TableId(1),
                range: ScanRange::new(Bounds::ALL),
                read: move |inner: &mut Inner<'_, SnapshotOf<'static, Silo>>,
                            _range,
                            _len,
                            each: &mut dyn FnMut(KeyBuf, u32)| {
                    if reads.fetch_add(1, Ordering::Relaxed) > 0 {
                        return Ok(());
                    }
                    each(KeyBuf::new(), 7);
                    Err((self.0)(inner))
                },
            }
        }
    }

    #[test]
    fn an_error_that_ends_the_snapshot_ends_the_stream_also_behind_rows() {
        let db = crate::Database::in_memory().unwrap();
        let mut rows =
            db.stream(FailsOnce(|inner| inner.lost(Abort::new(AbortReason::RowUnreadable, TableId(1), &[]))));
        let ended = block_on(rows.next());
        assert!(matches!(ended, Some(Err(Error::RowUnreadable(_)))), "{ended:?}");
        assert!(block_on(rows.next()).is_none());
    }

    #[test]
    fn a_row_that_can_be_read_when_it_is_its_turn_is() {
        let db = crate::Database::in_memory().unwrap();
        let mut rows = db.stream(FailsOnce(|_| Error::rollback("not yet")));
        assert_eq!(block_on(rows.next()).unwrap().unwrap(), 7);
        assert!(block_on(rows.next()).is_none());
    }
}
