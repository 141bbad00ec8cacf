//! The change feed: what has committed, epoch by epoch, from a position on.
//!
//! It is read from the log files of the database's own directory ([`ensilo_log::ChangeReader`]), and only up to the durable
//! epoch. So a commit pays nothing for consumers but whole rows in the log, where
//! [`Options::change_feed`](crate::Options::change_feed) asks for them; a consumer that is slow makes nobody wait; and what it
//! was given survives every crash. The alternative, a queue in memory that commits fill, would cost each commit, lose its
//! contents with the process, and grow with the slowest consumer.
//!
//! # Order
//! An epoch is the unit. Over Silo and two-phase locking, what has committed up to the end of an epoch is a prefix of the serial
//! order; over ERMIA's engine not always, as for backups and after crashes. Within an epoch changes come by TID.

mod change;
mod coalesced;
mod news;
pub(crate) mod notifier;
mod on_change;
mod position;
mod stream;
pub(crate) mod subscription;
mod wake;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Store};
use ensilo_epoch::Epoch;
use ensilo_log::{
    ChangeReadError, ChangeReader, ChangeReaderOptions, DEFINITION_TABLES, EpochChanges, HistoryId, LogPlace,
    LoggedChange, change_history,
};

pub use self::change::{Change, ChangeBatch, RowChange};
use self::position::Missed;
pub use self::position::{ChangePosition, MissedChanges};
pub use self::stream::ChangeStream;
pub use self::subscription::Subscription;
use self::wake::Wake;
use crate::Silo;
use crate::catalog::table_core::TableCore;
use crate::durable::Durable;
use crate::generic::Database;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// How many bytes of changes are held, unless a request says so.
const MEMORY_BYTES: usize = 16 << 20;

/// The table of the definitions in which truncations are noted.
const NOTES_TABLE: u32 = DEFINITION_TABLES[1];

/// What is asked of a change feed. [`Database::changes`](crate::generic::Database::changes) makes one.
#[must_use = "a request does nothing until it says where to begin"]
pub struct ChangesRequest<'d, E: Engine = Silo> {
    database: &'d Database<E>,
    tables: Option<Vec<String>>,
    memory_bytes: usize,
}

impl<E: Engine> Database<E> {
    /// Returns a request for the changes that commit, to be narrowed and then begun at a position.
    ///
    /// ```
    /// # use ensilo::{Database, Row, RowChange};
    /// # #[derive(Debug, PartialEq, Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = std::env::temp_dir().join(format!("ensilo-changes-{}", std::process::id()));
    /// let db = Database::options().change_feed(1 << 30).open(&place)?;
    /// let accounts = db.table::<Account>()?;
    /// let mut changes = db.changes().tables(["account"]).begin_now()?;
    /// db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 100 }))?;
    /// let batch = changes.wait()?;
    /// let change = batch.changes()[0].of(&accounts)?;
    /// assert_eq!(change, Some(RowChange::Stored(1, Account { id: 1, balance: 100 })));
    /// let stored_with_the_copy = batch.position().to_bytes();
    /// # drop((changes, db));
    /// # std::fs::remove_dir_all(place)?;
    /// # Ok(()) }
    /// ```
    pub fn changes(&self) -> ChangesRequest<'_, E> {
        ChangesRequest { database: self, tables: None, memory_bytes: MEMORY_BYTES }
    }

    /// Returns the position behind everything that is stored now: all that the caller has read in a request that has returned, with
    /// the default durability, lies in front of it.
    ///
    /// # Errors
    /// [`Error::ChangesNotKept`], [`Error::NotDurable`] for a database in memory, [`Error::ReadOnly`], [`Error::Closed`],
    /// [`Error::ChangesUnreadable`].
    pub fn change_position(&self) -> Result<ChangePosition> {
        let source = Source::of(&self.shared)?;
        let (history, _) = source.history()?;
        Ok(ChangePosition { history, place: LogPlace::after(source.durable.log.durable_epoch()) })
    }
}

impl<E: Engine> ChangesRequest<'_, E> {
    /// Narrows it to the tables with these names, as they are now and after they are truncated. By default it is all tables, also those
    /// that are created later.
    pub fn tables<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.tables = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets how many bytes of changes are held in memory, which bounds a batch: by default 16 MiB. A single change that is larger
    /// is held all the same. An epoch with more of them comes in several batches, and is read from the disk as often.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Begins behind a position.
    ///
    /// # Errors
    /// [`Error::ChangesMissed`] when the changes behind it are not there any more, or the position is of another history;
    /// [`Error::UnknownTable`]; as [`Database::change_position`].
    pub fn after(self, position: ChangePosition) -> Result<Changes<E>> {
        let tables = self.tables.map(|names| -> Result<_> {
            let id = |name: &String| Ok(self.database.table_core(name)?.store.id().0);
            let ids = names.iter().map(id).chain([Ok(NOTES_TABLE)]).collect::<Result<BTreeSet<_>>>()?;
            Ok((names, ids))
        });
        Changes::begin(&self.database.shared, position, tables.transpose()?, self.memory_bytes)
    }

    /// Begins behind everything that is stored now.
    ///
    /// # Errors
    /// [`Error::UnknownTable`]; as [`Database::change_position`].
    pub fn begin_now(self) -> Result<Changes<E>> {
        let position = self.database.change_position()?;
        self.after(position)
    }

    /// Begins with the oldest change that is kept.
    ///
    /// # Errors
    /// As [`ChangesRequest::after`]: a checkpoint may remove log files meanwhile.
    pub fn begin_at_oldest(self) -> Result<Changes<E>> {
        let oldest = Source::of(&self.database.shared)?.oldest()?;
        self.after(oldest)
    }
}

/// The changes of a database behind a position, as they are stored. [`ChangesRequest`] makes one.
///
/// It reads the log files from the disk, on the thread that asks, and holds no more than
/// [so many bytes](ChangesRequest::memory_bytes) of changes, and of each logger a mebibyte of its file, or one transaction if that
/// is longer. It does not keep the database open. A commit that nobody waits for is given within some 40 ms, one that waits to be
/// stored as soon as it is.
///
/// Changes of tables that were dropped since are left out, as are those of indexes and definitions. A table that was
/// [truncated](Database::truncate_table) is [emptied](Change::empties_table) by one change; those of its rows from before are left out from
/// then on.
///
/// # Errors
/// [`Error::Closed`] once the database is being closed; [`Error::ChangesMissed`] when log files have gone that were not read yet,
/// because there were more than [`Options::change_feed`](crate::Options::change_feed) keeps; [`Error::ChangesUnreadable`];
/// [`Error::LogFailed`] when the log has failed and everything that is stored was given.
#[must_use = "changes do nothing unless they are waited for"]
pub struct Changes<E: Engine = Silo> {
    shared: Arc<DatabaseShared<E>>,
    reader: ChangeReader,
    /// With which the reader is opened.
    options: ChangeReaderOptions,
    /// Where it has to be opened anew: these have changed, or what was read there could not be given.
    reader_begins: Option<LogPlace>,
    history: HistoryId,
    /// Of the tables that were asked for, unless that is all.
    names: Option<Vec<String>>,
    /// Tables by their ids, and `None` under those of their long values.
    known: HashMap<u32, Option<Arc<TableCore<E::Store>>>>,
    /// Whether a part of an epoch was given, so that its end has to be given.
    is_within_epoch: bool,
    wake: Arc<Wake>,
}

impl<E: Engine> Changes<E> {
    /// Begins behind a position, with the tables of these names and ids, unless it is all.
    fn begin(
        shared: &Arc<DatabaseShared<E>>,
        position: ChangePosition,
        tables: Option<(Vec<String>, BTreeSet<u32>)>,
        memory_bytes: usize,
    ) -> Result<Self> {
        let source = Source::of(shared)?;
        // Read first: a position that is later was never given out.
        let stored_to = LogPlace::after(source.durable.log.durable_epoch());
        if position.place > stored_to {
            return Err(source.missed(Missed::OtherHistory));
        }
        let (names, ids) = tables.unzip();
        let options = ChangeReaderOptions { tables: ids, bytes_max: memory_bytes };
        let reader = source.open(position, options.clone())?;
        // What is given from here on was seen in this opening.
        let ((history, _), shared) = (source.history()?, Arc::clone(shared));
        let is_within_epoch = position.place != LogPlace::before(position.place.epoch());
        let (known, wake, reader_begins) = (HashMap::new(), Arc::default(), None);
        Ok(Changes { shared, reader, options, reader_begins, history, names, known, is_within_epoch, wake })
    }

    /// Follows the tables of these names and ids from here on, and no others.
    fn follow(&mut self, names: Vec<String>, ids: BTreeSet<u32>) {
        self.names = Some(names);
        if self.options.tables.as_ref() != Some(&ids) {
            self.reader_begins = Some(self.place());
            self.options.tables = Some(ids);
        }
    }

    /// Returns the position behind what was given. It also goes on where nothing of the tables has changed: a consumer that stores
    /// it now and then does not fall behind what is kept.
    #[must_use]
    pub fn position(&self) -> ChangePosition {
        ChangePosition { history: self.history, place: self.place() }
    }

    /// Returns the next changes that are stored, without waiting for any.
    ///
    /// # Errors
    /// See [`Changes`].
    pub fn try_next(&mut self) -> Result<Option<ChangeBatch>> {
        self.next_up_to(Source::of(&self.shared)?.durable.log.durable_epoch())
    }

    /// Waits for changes.
    ///
    /// # Errors
    /// See [`Changes`]; [`Error::NestedRequest`] in a hook or a waker of the database.
    pub fn wait(&mut self) -> Result<ChangeBatch> {
        loop {
            if let Some(batch) = self.wait_until(None)? {
                return Ok(batch);
            }
        }
    }

    /// Like [`Changes::wait`], for this time at most.
    ///
    /// # Errors
    /// As [`Changes::wait`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<ChangeBatch>> {
        // What lies too far ahead for a clock never comes.
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<ChangeBatch>> {
        self.shared.check_may_wait()?;
        loop {
            let stored_to = Source::of(&self.shared)?.durable.log.durable_epoch();
            if let Some(batch) = self.next_up_to(stored_to)? {
                return Ok(Some(batch));
            }
            match self.poll_stored(Some(stored_to), None) {
                Poll::Ready(stored) => stored?,
                Poll::Pending if !self.wake.wait(deadline) => return Ok(None),
                Poll::Pending => {}
            }
        }
    }

    /// Returns why nothing becomes durable any more, if that is so.
    fn failure(&self, durable: &Durable) -> Result<()> {
        durable.failure()?;
        self.wake.end().map_or(Ok(()), |end| Err(Error::from_log(end)))
    }

    /// Becomes ready once more is stored than was read, which is all up to `read_to`, if anything. Until then `waker` is called, or who waits is woken.
    ///
    /// # Errors
    /// Why nothing more will be stored.
    fn poll_stored(&self, read_to: Option<Epoch>, waker: Option<&Waker>) -> Poll<Result<()>> {
        let durable = Source::of(&self.shared)?.durable;
        // First: behind a failure nothing becomes durable any more.
        let failure = self.failure(durable);
        let stored_to = durable.log.durable_epoch();
        let Some(read_to) = read_to.filter(|read_to| *read_to >= stored_to) else {
            return Poll::Ready(Ok(()));
        };
        failure?;
        self.wake.ask(&durable.log, read_to, waker.cloned());
        Poll::Pending
    }

    fn next_up_to(&mut self, durable_epoch: Epoch) -> Result<Option<ChangeBatch>> {
        loop {
            self.open_reader()?;
            let place = self.reader.place();
            let read = self.reader.next(durable_epoch);
            let Some(read) = read.map_err(|error| error_of(&self.shared, error))? else { return Ok(None) };
            let batch = self.batch_of(read).inspect_err(|_| self.reader_begins = Some(place))?;
            // The end of an epoch is given even if the rest of it was of tables that are gone, but not where all of it was.
            if !batch.changes.is_empty() || (batch.ends_epoch && self.is_within_epoch) {
                self.is_within_epoch = !batch.ends_epoch;
                return Ok(Some(batch));
            }
        }
    }

    /// Returns what was read as changes of tables; what is of no table any more is left out.
    ///
    /// # Errors
    /// Those of [`Changes::emptied`].
    fn batch_of(&mut self, read: EpochChanges) -> Result<ChangeBatch> {
        let EpochChanges { epoch, changes, is_end, next } = read;
        let mut given = Vec::with_capacity(changes.len());
        for logged in changes {
            if DEFINITION_TABLES.contains(&logged.table) {
                given.extend(self.emptied(&logged, next)?);
            } else if let Some(table) = self.table(logged.table) {
                // Only now: a table is at least as new as the rows that were read.
                given.push(Change::new(&*table, epoch, logged));
            }
        }
        let position = ChangePosition { history: self.history, place: next };
        Ok(ChangeBatch { epoch: epoch.get(), changes: given, ends_epoch: is_end, position })
    }

    /// Returns the change that empties a table, if a row of the definitions says that, and follows the table from `next` on under its new
    /// id: the rows of that are of later epochs.
    ///
    /// # Errors
    /// [`Error::NestedRequest`] on a thread of the log that calls a waker, while the table is being truncated.
    fn emptied(&mut self, logged: &LoggedChange, next: LogPlace) -> Result<Option<Change>> {
        let row = logged.row.as_ref().filter(|_| logged.table == NOTES_TABLE);
        let emptied = row.and_then(|row| self.shared.catalog.system.emptied(&logged.key, row));
        let Some(id) = emptied else { return Ok(None) };
        if self.table(id.0).is_none() {
            // That may be stored before others see the table. The one who truncates it has the catalog until they do.
            self.shared.check_may_wait()?;
            drop(self.shared.catalog.change());
        }
        let table = self.table(id.0);
        let is_followed = |table: &Arc<TableCore<E::Store>>| {
            self.names.as_ref().is_none_or(|names| names.iter().any(|name| **name == *table.name))
        };
        let table = table.filter(is_followed);
        Ok(table.map(|table| {
            if self.options.tables.as_mut().is_some_and(|ids| ids.insert(id.0)) {
                self.reader_begins = Some(next);
            }
            Change::emptied(&*table, logged.tid)
        }))
    }

    fn place(&self) -> LogPlace {
        self.reader_begins.unwrap_or(self.reader.place())
    }

    /// Opens the reader anew, with the tables that are followed now.
    fn open_reader(&mut self) -> Result<()> {
        if let Some(place) = self.reader_begins {
            let position = ChangePosition { history: self.history, place };
            self.reader = Source::of(&self.shared)?.open(position, self.options.clone())?;
            self.reader_begins = None;
        }
        Ok(())
    }

    /// Returns the table with this id as it is now; `None` if it is not there any more.
    fn table(&mut self, id: u32) -> Option<Arc<TableCore<E::Store>>> {
        match self.known.get(&id) {
            // Pieces of long values, which go back into their rows.
            Some(None) => return None,
            Some(Some(table)) if table.check_exists().is_ok() => return Some(Arc::clone(table)),
            _ => self.known.clear(),
        }
        for table in self.shared.catalog.tables_of_programs() {
            self.known.extend(table.long.iter().map(|long| (long.store.id().0, None)));
            self.known.insert(table.store.id().0, Some(table));
        }
        self.known.get(&id).cloned().flatten()
    }
}

impl<E: Engine> Drop for Changes<E> {
    fn drop(&mut self) {
        if let Some(durable) = self.shared.durable() {
            self.wake.forget(&durable.log);
        }
    }
}

/// Becomes ready with the next changes, and may be polled again then: `(&mut changes).await`. A poll reads files of the database.
///
/// A thread that writes to the disk calls the waker, which should only pass the news on.
impl<E: Engine> Future for Changes<E> {
    type Output = Result<ChangeBatch>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let stored_to = Source::of(&self.shared)?.durable.log.durable_epoch();
            if let Some(batch) = self.next_up_to(stored_to)? {
                return Poll::Ready(Ok(batch));
            }
            ready!(self.poll_stored(Some(stored_to), Some(context.waker())))?;
        }
    }
}

impl<E: Engine> fmt::Debug for Changes<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("position", &self.position()).finish_non_exhaustive()
    }
}

impl<E: Engine> fmt::Debug for ChangesRequest<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangesRequest").field("tables", &self.tables).finish_non_exhaustive()
    }
}

/// What changes are read from.
struct Source<'d> {
    durable: &'d Durable,
}

impl<'d> Source<'d> {
    fn of<E: Engine>(shared: &'d DatabaseShared<E>) -> Result<Source<'d>> {
        if shared.is_closed() {
            return Err(Error::Closed);
        }
        let durable = shared.written()?;
        if durable.keeps_changes { Ok(Source { durable }) } else { Err(Error::ChangesNotKept) }
    }

    fn history(&self) -> Result<(HistoryId, Epoch)> {
        change_history(&*self.durable.disk, &self.durable.directory).map_err(|error| self.error(error))
    }

    fn oldest(&self) -> Result<ChangePosition> {
        let (history, first_epoch) = self.history()?;
        Ok(ChangePosition { history, place: LogPlace::before(first_epoch) })
    }

    fn open(&self, position: ChangePosition, options: ChangeReaderOptions) -> Result<ChangeReader> {
        let (disk, directory) = (Arc::clone(&self.durable.disk), &self.durable.directory);
        let opened = ChangeReader::open(disk, directory, (position.history, position.place), options);
        opened.map_err(|error| self.error(error))
    }

    fn missed(&self, why: Missed) -> Error {
        match self.oldest() {
            Ok(oldest) => Error::ChangesMissed(MissedChanges::new(why, oldest)),
            Err(error) => error,
        }
    }

    fn error(&self, error: ChangeReadError) -> Error {
        match error {
            ChangeReadError::Missed { .. } => self.missed(Missed::NotKept),
            ChangeReadError::OtherHistory => self.missed(Missed::OtherHistory),
            ChangeReadError::Files(error) => Error::ChangesUnreadable(Arc::new(error)),
            _ => Error::ChangesNotKept,
        }
    }
}

fn error_of<E: Engine>(shared: &DatabaseShared<E>, error: ChangeReadError) -> Error {
    Source::of(shared).map_or_else(|closed| closed, |source| source.error(error))
}
