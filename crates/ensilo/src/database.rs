//! The database: what opens, owns and closes everything else.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;

use ensilo_row::{IndexSchema, Order, Row, Schema};
use ensilo_txn::{Epoch, Protocol, Silo};

use crate::catalog::TableCore;
use crate::durability::answer;
use crate::durable::{self, Backup, Checkpoint};
use crate::dynamic::DynamicTable;
use crate::error::SchemaMismatch;
use crate::interactive::Interactive;
use crate::options::Options;
use crate::pool::{JobHandle, WhenFull};
use crate::request::{self, Request};
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::{Error, Result, Snapshot, Table, Ticket, Transaction};

/// A database. Cloning gives another handle to the same one; dropping the last handle closes it.
///
/// All methods may be called from any number of threads at once.
pub struct Database<P: Protocol = Silo> {
    shared: Arc<Shared<P>>,
    /// Closes the database when the last handle goes; jobs and departing threads hold `shared` only.
    owner: Arc<Owner<P>>,
}

struct Owner<P: Protocol>(Arc<Shared<P>>);

impl<P: Protocol> Drop for Owner<P> {
    fn drop(&mut self) {
        // Whoever wants to know calls `Database::close`.
        let _ = self.0.close_from_anywhere();
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

impl<P: Protocol> Database<P> {
    pub(crate) fn open_in_memory(options: Options) -> Result<Self> {
        let engine_options = options.engine_options();
        Self::owning(Shared::new(options, engine_options)?)
    }

    pub(crate) fn open_on(options: Options, disk: Arc<dyn Disk>, directory: PathBuf) -> Result<Self> {
        let open = if options.read_only { durable::open_read_only } else { durable::open };
        Self::owning(open(options, disk, directory)?)
    }

    fn owning(shared: Shared<P>) -> Result<Self> {
        let shared = Arc::new(shared);
        let database = Database { owner: Arc::new(Owner(Arc::clone(&shared))), shared: Arc::clone(&shared) };
        database.shared.collector.start(shared)?;
        Ok(database)
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &Shared<P> {
        &self.shared
    }

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
    pub fn transact<R>(&self, body: impl FnMut(&mut Transaction<'_, P>) -> Result<R>) -> Result<R> {
        let outcome = request::run(&self.shared, self.shared.retries, &mut |_| (), body);
        answer(outcome, &self.shared, self.shared.level(None)?)
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
    /// [`Error::NoSnapshots`], only by protocols other
    /// than [`Silo`].
    #[inline]
    pub fn snapshot<R>(&self, body: impl FnOnce(&mut Snapshot<'_, P>) -> Result<R>) -> Result<R> {
        answer(request::run_snapshot(&self.shared, body), &self.shared, self.shared.level(None)?)
    }

    /// A request with settings of its own: retries, a hook for aborts.
    #[inline]
    pub fn request(&self) -> Request<'_, P> {
        Request::new(self)
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
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        self.submit_transaction(WhenFull::Wait, body)
    }

    /// Like [`Database::submit`], but never waits.
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::Closed`].
    pub fn try_submit<R: Send + 'static>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        self.submit_transaction(WhenFull::Refuse, body)
    }

    /// Runs `body` like [`Database::snapshot`] on a thread of the database's pool.
    ///
    /// # Errors
    /// As [`Database::submit`]; the handle has what [`Database::snapshot`] returns.
    pub fn submit_snapshot<R: Send + 'static>(
        &self,
        body: impl FnOnce(&mut Snapshot<'_, P>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        request::submit(&self.shared, WhenFull::Wait, |shared| request::run_snapshot(shared, body))
    }

    fn submit_transaction<R: Send + 'static>(
        &self,
        when_full: WhenFull,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        request::submit(&self.shared, when_full, |shared| {
            request::run(shared, shared.retries, &mut |_| (), body)
        })
    }

    /// Begins a transaction that stays open between calls, for code that cannot be one closure. Conflicts are not retried.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn begin(&self) -> Result<Interactive<P>> {
        Interactive::begin(&self.shared)
    }

    /// Creates the table that the row type `T` describes, with its indexes.
    ///
    /// # Errors
    /// [`Error::TableExists`]; [`Error::NestedRequest`] inside a request or while this thread holds an interactive
    /// transaction; [`Error::OutOfMemory`], [`Error::Closed`]. Nothing has changed then. [`Error::LogFailed`] as [`Database::transact`].
    pub fn create_table<T: Row>(&self) -> Result<Table<T, P>> {
        self.shared.create_table(T::schema().clone()).map(Table::new)
    }

    /// Like [`Database::create_table`], under another name than the row type's: for several tables of one type.
    ///
    /// # Errors
    /// As [`Database::create_table`]; [`Error::InvalidSchema`] when the name cannot be a table's.
    pub fn create_table_named<T: Row>(&self, name: &str) -> Result<Table<T, P>> {
        let schema = T::schema().renamed(name).map_err(Error::from_schema)?;
        self.shared.create_table(schema).map(Table::new)
    }

    /// Creates a table by a schema that was made at run time.
    ///
    /// # Errors
    /// As [`Database::create_table`]; [`Error::InvalidSchema`] when its name is the system's.
    pub fn create_dynamic_table(&self, schema: Schema) -> Result<DynamicTable<P>> {
        self.shared.create_table(schema).map(DynamicTable::new)
    }

    /// The existing table that the row type `T` describes.
    ///
    /// # Errors
    /// [`Error::UnknownTable`]; [`Error::SchemaMismatch`] when columns or primary key differ, or an index that `T`
    /// declares is missing or defined otherwise; [`Error::Closed`].
    pub fn open_table<T: Row>(&self) -> Result<Table<T, P>> {
        self.open_table_named(T::schema().name())
    }

    /// Like [`Database::open_table`], for a table of another name than the row type's.
    ///
    /// # Errors
    /// As [`Database::open_table`].
    pub fn open_table_named<T: Row>(&self, name: &str) -> Result<Table<T, P>> {
        let core = self.table_core(name)?;
        check_schema(&core, T::schema())?;
        Ok(Table::new(core))
    }

    /// The existing table of this name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`].
    pub fn open_dynamic_table(&self, name: &str) -> Result<DynamicTable<P>> {
        self.table_core(name).map(DynamicTable::new)
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn list_tables(&self) -> Result<Vec<String>> {
        self.check_open()?;
        Ok(self.shared.catalog.tables().iter().map(|table| table.name.to_string()).collect())
    }

    /// The schema of a table, with the indexes that can be read now and those that are broken.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`].
    pub fn schema(&self, table: &str) -> Result<Schema> {
        Ok(self.table_core(table)?.current_schema())
    }

    /// Drops a table and its indexes. Statements on it fail from now on with [`Error::UnknownTable`], also those of
    /// transactions under way; its memory comes back when these have ended. A transaction that has used the table before, and commits after
    /// this has returned, is undone as a whole: [`Database::transact`] runs it again, and an [`Interactive`] one ends with
    /// [`Error::Aborted`], which names the table.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::NestedRequest`], [`Error::Closed`]; [`Error::LogFailed`] as [`Database::transact`].
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.shared.drop_table(name)
    }

    /// Creates an index over these columns of a table while others use it; returns when it can be read.
    ///
    /// Waits for the transactions under way to end, then adds the entries of the rows that are there. From the beginning on, a
    /// unique index refuses writes whose key is taken. In snapshots it can be read as soon as they show a point in time after its
    /// completion.
    ///
    /// ```
    /// # use ensilo::{Database, Order, Row, Table};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, owner: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts: Table<Account> = db.create_table()?;
    /// db.create_index("account", "by_owner", [("owner", Order::Ascending)])?;
    /// let by_owner = accounts.index::<u32>("by_owner")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownColumn`], [`Error::IndexExists`], [`Error::InvalidSchema`];
    /// [`Error::KeyTooLong`] when a row's key does not fit; [`Error::NestedRequest`] inside a request or while this thread
    /// holds an interactive transaction; [`Error::OutOfMemory`], [`Error::Closed`]. The index is gone then. [`Error::LogFailed`] as
    /// [`Database::transact`].
    pub fn create_index<'c>(
        &self,
        table: &str,
        name: &str,
        columns: impl IntoIterator<Item = (&'c str, Order)>,
    ) -> Result<()> {
        self.create_index_with(table, name, columns, false)
    }

    /// Like [`Database::create_index`], for an index in which no two rows may have the same values, unless one of them is null.
    ///
    /// # Errors
    /// As [`Database::create_index`]; [`Error::DuplicateKey`] when two rows have the same values.
    pub fn create_unique_index<'c>(
        &self,
        table: &str,
        name: &str,
        columns: impl IntoIterator<Item = (&'c str, Order)>,
    ) -> Result<()> {
        self.create_index_with(table, name, columns, true)
    }

    fn create_index_with<'c>(
        &self,
        table: &str,
        name: &str,
        columns: impl IntoIterator<Item = (&'c str, Order)>,
        unique: bool,
    ) -> Result<()> {
        let core = self.table_core(table)?;
        let index = IndexSchema::new(&core.schema, name, columns, unique).map_err(Error::from_schema)?;
        self.shared.create_index(&core, index)
    }

    /// Drops an index. Its memory comes back when the transactions under way have ended.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownIndex`]; [`Error::IndexNotReady`] while it is built;
    /// [`Error::NestedRequest`], [`Error::Closed`]; [`Error::LogFailed`] as [`Database::transact`].
    pub fn drop_index(&self, table: &str, name: &str) -> Result<()> {
        self.shared.drop_index(table, name)
    }

    /// Makes the entries of a broken index ([`Error::IndexBroken`]) anew from the rows, while others use the table; returns when it can be
    /// read. It goes like [`Database::create_index`], and handles to the index stay good. An index that can be read is left as it is.
    ///
    /// ```
    /// # use ensilo::{Database, Row, Table};
    /// # #[derive(Row)] #[row(table = "account", index(name = "by_email", columns(email), unique))]
    /// # struct Account { #[row(key)] id: u32, email: String }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # db.create_table::<Account>()?;
    /// let broken: Vec<_> = db
    ///     .statistics()?
    ///     .broken_indexes()
    ///     .map(|(table, index)| (table.name.clone(), index.name.clone()))
    ///     .collect();
    /// for (table, index) in broken {
    ///     let accounts = db.open_dynamic_table(&table)?;
    ///     db.transact(|tx| {
    ///         for rows in accounts.duplicates(tx, &index)? {
    ///             // Which row is to stay is for the program to say; here it is the first one.
    ///             rows[1..].iter().try_for_each(|key| accounts.delete(tx, key).map(|_| ()))?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     db.rebuild_index(&table, &index)?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownIndex`]; [`Error::IndexNotReady`] while it is built; [`Error::DuplicateKey`] when two rows
    /// still have one key, [`Error::KeyTooLong`] when one's does not fit; [`Error::NestedRequest`] inside a request or while this thread
    /// holds an interactive transaction; [`Error::OutOfMemory`], [`Error::Closed`]. The index is as broken as before then.
    pub fn rebuild_index(&self, table: &str, name: &str) -> Result<()> {
        self.shared.rebuild_index(&self.table_core(table)?, name)
    }

    /// What the database has counted, read while it runs: each figure is exact for some moment, not all for the same one.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn statistics(&self) -> Result<Statistics> {
        self.check_open()?;
        Ok(Statistics::collect(&self.shared))
    }

    /// Makes a checkpoint now, and removes the log files that are not needed any more because of it. Checkpoints are made by themselves,
    /// see [`Options::checkpoint_interval`]; one that is under way is waited for.
    ///
    /// # Errors
    /// [`Error::NotDurable`], [`Error::CheckpointFailed`], [`Error::LogFailed`], [`Error::Closed`].
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        self.check_open()?;
        let durable = self.shared.written()?;
        durable.checkpoint(&self.shared.engine)
    }

    /// Copies the database to the directory `target`, which is empty or missing and lies in no database, while transactions go on. The copy is
    /// a database of its own, with its log in one directory; it was read back and verified when this returns. To restore it, open it.
    ///
    /// It has every transaction that was acknowledged as stored before the call, and is a prefix of the serial order:
    /// [`Backup::durable_epoch`] says where that ends, and no transaction of a later epoch is in it. Secondary indexes are made anew when it
    /// is opened. The copy takes no more of the disk than a checkpoint does
    /// ([`Options::checkpoint_bytes_per_second`](crate::Options::checkpoint_bytes_per_second)).
    ///
    /// A checkpoint or backup under way is waited for, and the next checkpoint waits for this, so that the log grows meanwhile. Closing the
    /// database ends a backup under way. After a failure of the log, what was stored before it can still be copied.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = std::env::temp_dir().join(format!("ensilo-backup-{}", std::process::id()));
    /// # let db = ensilo::Database::open(place.join("accounts"))?;
    /// let backup = db.backup(place.join("backup"))?;
    /// println!("everything up to epoch {}, {} bytes", backup.durable_epoch, backup.bytes);
    /// let restored = ensilo::Database::open(place.join("backup"))?;
    /// # assert_eq!(restored.list_tables()?, db.list_tables()?);
    /// # drop((restored, db));
    /// # std::fs::remove_dir_all(place)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::BackupFailed`]: the target is not empty, lies in a database, or its disk fails or is full. What was made of it is removed, and
    /// the database goes on as if nothing had been. [`Error::NotDurable`], [`Error::Closed`]. If the process or the machine ends before this
    /// returns, the directory holds the whole backup or cannot be opened.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<Backup> {
        self.check_open()?;
        let durable = self.shared.written()?;
        durable.backup::<P>(target.as_ref(), self.shared.engine.statistics().memory.live_bytes)
    }

    /// The last epoch up to which everything is stored; `None` for a database in memory. It never falls.
    #[inline]
    #[must_use]
    pub fn durable_epoch(&self) -> Option<u64> {
        let of_log = self.shared.durable().map(|durable| durable.log.durable_epoch().get());
        of_log.or_else(|| self.shared.read_only().map(|read_only| read_only.durable_epoch.get()))
    }

    /// The ticket of an epoch that [`Request::transact_with_epoch`] has answered with.
    ///
    /// # Errors
    /// [`Error::NotDurable`] when the database is in memory only.
    pub fn ticket(&self, epoch: u64) -> Result<Ticket> {
        let log = self.shared.log().ok_or(Error::NotDurable)?;
        Ok(Ticket::new(Epoch::new(epoch), Arc::clone(log)))
    }

    /// Takes the transactions that the calling thread has committed since it did so last, for a checker to judge. Empty unless the variant
    /// of the protocol records, see [`Variant`](crate::Variant).
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NestedRequest`].
    pub fn take_history(&self) -> Result<Vec<ensilo_txn::history::TransactionRecord>> {
        Ok(self.shared.enter()?.raw.take_history())
    }

    /// Closes the database for all handles: every request from now on fails with [`Error::Closed`]. Jobs under way are waited for;
    /// those that have not begun are dropped, and their handles get [`Error::Closed`]. Waits until all that was committed is stored. A
    /// second call finds nothing to do; while the first one goes on, it waits for it.
    ///
    /// In a hook of [`Options::on_event`], or in a waker that a ticket or a job's handle was polled with, it does not wait, since closing waits
    /// for these: it goes on on a thread of its own. The same holds where the last handle is dropped there.
    ///
    /// Requests under way on other threads are not waited for. Each ends as it would, and if that is with `Ok`, what it has committed is stored;
    /// or with [`Error::Closed`], because it met a conflict, or came to its commit when a durable database had stored everything else: then
    /// it has changed nothing. An interactive transaction that has not committed is undone. A checkpoint, a backup, or the
    /// building of an index under way is given up with [`Error::Closed`].
    ///
    /// # Errors
    /// [`Error::LogFailed`]: what was not acknowledged as stored may be lost. [`Error::CheckpointFailed`] when the
    /// last checkpoint that [`Options::checkpoint_at_close`] asks for could not be made, or the manifest could not be brought up to what is
    /// stored; the log has everything.
    pub fn close(&self) -> Result<()> {
        self.shared.close_from_anywhere()
    }

    fn table_core(&self, name: &str) -> Result<Arc<TableCore>> {
        self.check_open()?;
        self.shared.catalog.table(name)
    }

    fn check_open(&self) -> Result<()> {
        if self.shared.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }
}

/// Compares the schema of a row type with that of the table as it is.
fn check_schema(core: &TableCore, wanted: &Schema) -> Result<()> {
    let differs =
        |difference: String| Err(Error::SchemaMismatch(SchemaMismatch::new(&core.name, difference)));
    let stored = core.current_schema();
    let (columns, wanted_columns) = (stored.columns(), wanted.columns());
    if columns.len() != wanted_columns.len() {
        return differs(format!("it has {} columns, the row type {}", columns.len(), wanted_columns.len()));
    }
    for (column, wanted) in columns.iter().zip(wanted_columns) {
        if column != wanted {
            return differs(format!("it has {}, the row type {}", described(column), described(wanted)));
        }
    }
    if stored.primary_key() != wanted.primary_key() {
        return differs("it has another primary key".to_owned());
    }
    for index in wanted.indexes() {
        match stored.index(index.name()) {
            None => return differs(format!("it has no index {}", index.name())),
            Some(existing) if existing != index => {
                return differs(format!("its index {} is defined otherwise", index.name()));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn described(column: &ensilo_row::Column) -> String {
    let null = if column.nullable { ", nullable" } else { "" };
    format!("column {} of type {}{null}", column.name, column.column_type)
}

impl<P: Protocol> Clone for Database<P> {
    fn clone(&self) -> Self {
        Database { shared: Arc::clone(&self.shared), owner: Arc::clone(&self.owner) }
    }
}

impl<P: Protocol> fmt::Debug for Database<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handles = Arc::strong_count(&self.owner);
        f.debug_struct("Database")
            .field("id", &self.shared.id())
            .field("handles", &handles)
            .finish_non_exhaustive()
    }
}
