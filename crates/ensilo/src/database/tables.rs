//! Tables: created, opened, listed and dropped.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ensilo_engine::Engine;
use ensilo_row::{IndexSchema, Row, Schema, SchemaChange};

use super::Database;
use super::schema_check::{change_to, check_schema};
use crate::catalog::index_core::IndexState;
use crate::catalog::table_core::TableCore;
use crate::dynamic::DynamicTable;
use crate::error::Name;
use crate::table::Table;
use crate::{Error, Result};

impl<E: Engine> Database<E> {
    /// Returns a handle to the table that the row type `T` describes, which is created, with its indexes, if it is
    /// not there. A program calls it when it starts, whether it has run before or not.
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let accounts = db.table::<Account>()?;
    /// db.transact(|tx| accounts.upsert(tx, &Account { id: 1, balance: 100 }))?;
    /// assert_eq!(db.transact(|tx| db.table::<Account>()?.scan().count(tx))?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Database::open_table`], when the table is there, but for [`Error::UnknownTable`], which is for databases
    /// that are open for reading only; as [`Database::create_table`] otherwise.
    pub fn table<T: Row>(&self) -> Result<Table<T, E>> {
        self.open_or_create(T::schema()).and_then(|core| self.table_of(core))
    }

    /// Like [`Database::table`], with another name than the row type's: for several tables of one type.
    ///
    /// # Errors
    /// As [`Database::table`]; [`Error::InvalidSchema`] when the name cannot be a table's.
    pub fn table_named<T: Row>(&self, name: &str) -> Result<Table<T, E>> {
        let schema = T::schema().renamed(name).map_err(Error::from_schema)?;
        self.open_or_create(&schema).and_then(|core| self.table_of(core))
    }

    /// Like [`Database::table`], with a schema that was made at run time.
    ///
    /// # Errors
    /// As [`Database::table`]; [`Error::InvalidSchema`] when its name is the system's.
    pub fn dynamic_table(&self, schema: &Schema) -> Result<DynamicTable<E>> {
        self.open_or_create(schema).and_then(|core| self.dynamic_table_of(core))
    }

    /// Returns a handle to the table that the row type `T` describes, like [`Database::table`], after the table was changed to it
    /// if it was made for an earlier version of the row type.
    ///
    /// `changes` are those of all versions, oldest first, one for each. As few of the last ones are made as lead from the columns that the
    /// table has to those of `T`; none if it has these. So the program says the same whichever version wrote the table, and
    /// whether there is one. Columns come into the order that `T` has. Indexes that `T` declares and the table does not
    /// have are then created; others stay.
    ///
    /// The rows stay as they are, so that a change takes no longer with a million of them than with one, once they are in memory: each becomes a
    /// row of the new columns when it is read, and is stored as one when it is written the next time. What was in columns that are dropped
    /// stays in the files until then.
    ///
    /// ```
    /// use ensilo::{ColumnType, Database, Row, SchemaChange};
    ///
    /// # mod before {
    /// #     #[derive(ensilo::Row)]
    /// #     #[row(table = "account")]
    /// #     pub(crate) struct Account { #[row(key)] pub(crate) id: u32, pub(crate) balance: i32 }
    /// # }
    /// #[derive(Row)]
    /// #[row(table = "account")]
    /// struct Account {
    ///     #[row(key)]
    ///     id: u32,
    ///     level: u8,    // new in version 2
    ///     balance: i64, // was an i32 up to version 2
    /// }
    ///
    /// # fn main() -> ensilo::Result<()> {
    /// let db = Database::in_memory()?;
    /// # let old = db.table::<before::Account>()?;
    /// # db.transact(|tx| old.insert(tx, &before::Account { id: 1, balance: 100 }))?;
    /// let accounts = db.table_with_changes::<Account>(&[
    ///     SchemaChange::new().add("level", ColumnType::U8, 1u8), // to version 2
    ///     SchemaChange::new().widen("balance", ColumnType::I64), // to version 3
    /// ])?;
    /// # let account = db.transact(|tx| accounts.get(tx, 1))?.expect("it is there");
    /// # assert_eq!((account.id, account.level, account.balance), (1, 1, 100));
    /// # Ok(()) }
    /// ```
    ///
    /// # What happens to the others
    /// The change waits until all transactions that are under way have ended, of any table: those of sessions, and prepared ones. Handles to the
    /// table of before, and to its indexes, then answer [`Error::TableChanged`]. Those who open the table meanwhile wait for the change; within a
    /// transaction that is a conflict, as [`Database::truncate_table`] says it.
    /// After a crash the table is as it was before, or as it is afterwards.
    ///
    /// # Errors
    /// As [`Database::table`]; [`Error::SchemaMismatch`] when no number of the changes leads to the columns of `T`, or an index of the table is
    /// another one than `T` declares; [`Error::InvalidSchema`] when one of the changes cannot be, with what helps, and over an engine that
    /// cannot change a table; [`Error::IndexNotReady`] while an index of the table is being created; [`Error::ReadOnly`],
    /// [`Error::LoadFailed`]. Nothing has changed then. Those of [`Database::create_index`] when an index is to be
    /// created: the columns are changed then, and the next call creates it.
    pub fn table_with_changes<T: Row>(&self, changes: &[SchemaChange]) -> Result<Table<T, E>> {
        let wanted = T::schema();
        match self.open_table() {
            Err(Error::UnknownTable(_)) => return self.table(),
            Err(Error::SchemaMismatch(_)) => {}
            opened => return opened,
        }
        self.shared.change_schema(
            wanted.name(),
            &|stored| change_to(stored, wanted, changes),
            &|_| Ok(()),
        )?;
        for index in wanted.indexes() {
            self.create_index_once(wanted.name(), index)?;
        }
        self.open_table()
    }

    /// Creates an index, unless the table has one of that name, or another thread is faster.
    fn create_index_once(&self, table: &str, index: &IndexSchema) -> Result<()> {
        loop {
            let core = self.table_core(table)?;
            match core.index(index.name()).map(|index| index.state()) {
                Ok(IndexState::Building) => thread::sleep(Duration::from_millis(1)),
                Ok(_) => return Ok(()),
                Err(_) => match self.shared.create_index(&core, index.clone(), &|_| Ok(())) {
                    Err(Error::IndexExists(_) | Error::TableChanged(_)) => {}
                    created => return created,
                },
            }
        }
    }

    /// Changes the columns of a table: see [`Database::table_with_changes`].
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownColumn`]; [`Error::InvalidSchema`] when a change cannot be, with what helps, and over an
    /// engine that cannot change a table; [`Error::IndexNotReady`] while an index of the table is being created; [`Error::NestedRequest`] as
    /// [`Database::create_table`]; [`Error::OutOfMemory`], [`Error::ReadOnly`], [`Error::LoadFailed`], [`Error::Closed`]. Nothing has changed
    /// then. [`Error::LogFailed`] as [`Database::transact`].
    pub fn change_table(&self, name: &str, change: &SchemaChange) -> Result<()> {
        self.shared.change_table(name, change, &|_| Ok(())).map(drop)
    }

    fn open_or_create(&self, schema: &Schema) -> Result<Arc<TableCore<E::Store>>> {
        loop {
            match self.table_core(schema.name()) {
                Err(Error::UnknownTable(_)) if self.shared.read_only().is_none() => {}
                opened => {
                    let core = opened?;
                    return check_schema(&core, schema).map(|()| core);
                }
            }
            match self.shared.create_table(schema.clone(), &|_| Ok(())) {
                // Another thread was faster.
                Err(Error::TableExists(_)) => {}
                created => return created,
            }
        }
    }

    /// Creates the table that the row type `T` describes, with its indexes, and refuses one that is there already.
    /// [`Database::table`] opens that.
    ///
    /// # Errors
    /// [`Error::TableExists`]; [`Error::NestedRequest`] inside a request or while this thread was the last to
    /// use an open transaction of a session; [`Error::OutOfMemory`], [`Error::Closed`]. Nothing has changed
    /// then. [`Error::LogFailed`] as [`Database::transact`].
    pub fn create_table<T: Row>(&self) -> Result<Table<T, E>> {
        self.shared.create_table(T::schema().clone(), &|_| Ok(())).and_then(|core| self.table_of(core))
    }

    /// Like [`Database::create_table`], with another name than the row type's: for several tables of one
    /// type.
    ///
    /// # Errors
    /// As [`Database::create_table`]; [`Error::InvalidSchema`] when the name cannot be a table's.
    pub fn create_table_named<T: Row>(&self, name: &str) -> Result<Table<T, E>> {
        let schema = T::schema().renamed(name).map_err(Error::from_schema)?;
        self.shared.create_table(schema, &|_| Ok(())).and_then(|core| self.table_of(core))
    }

    /// Creates a table with a schema that was made at run time.
    ///
    /// # Errors
    /// As [`Database::create_table`]; [`Error::InvalidSchema`] when its name is the system's.
    pub fn create_dynamic_table(&self, schema: Schema) -> Result<DynamicTable<E>> {
        self.shared.create_table(schema, &|_| Ok(())).map(DynamicTable::new)
    }

    /// Returns a handle to the existing table that the row type `T` describes.
    ///
    /// # Errors
    /// [`Error::UnknownTable`]; [`Error::SchemaMismatch`] when columns or primary key differ, or an index
    /// that `T` declares is missing or defined otherwise; [`Error::Closed`]; [`Error::Aborted`] within a transaction while the table is being changed or
    /// truncated: return it from the closure, and a request that may run again does so behind the change. [`Database::read_stale`], and in the end [`Database::read`], return it. Where `T` has a key that is `auto` and the table gives no keys
    /// yet, also those of [`Database::sequence`] when one is to be made, but for [`Error::ReadOnly`].
    pub fn open_table<T: Row>(&self) -> Result<Table<T, E>> {
        self.open_table_named(T::schema().name())
    }

    /// Like [`Database::open_table`], for a table with another name than the row type's.
    ///
    /// # Errors
    /// As [`Database::open_table`].
    pub fn open_table_named<T: Row>(&self, name: &str) -> Result<Table<T, E>> {
        let core = self.table_core(name)?;
        check_schema(&core, T::schema())?;
        self.table_of(core)
    }

    /// Returns the handle. The table gives keys from now on if the row type says so.
    fn table_of<T: Row>(&self, core: Arc<TableCore<E::Store>>) -> Result<Table<T, E>> {
        if let Some(place) = T::AUTO_KEY {
            self.shared.make_numbers(&core, place)?;
        }
        Ok(Table::new(core))
    }

    /// Returns a handle to the existing table of this name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`]; [`Error::Aborted`] as [`Database::open_table`]; where the database has sequences, those of a request that reads: whether this table gives keys is
    /// looked up.
    pub fn open_dynamic_table(&self, name: &str) -> Result<DynamicTable<E>> {
        self.table_core(name).and_then(|core| self.dynamic_table_of(core))
    }

    fn dynamic_table_of(&self, core: Arc<TableCore<E::Store>>) -> Result<DynamicTable<E>> {
        self.shared.find_numbers(&core)?;
        Ok(DynamicTable::new(core))
    }

    /// Lets a table give keys from now on, as a row type with `#[row(key, auto)]` does: see [`DynamicTable::insert_auto`]. Does nothing if the table
    /// does so already. It ends with the table. Where the key has several columns, [`Database::give_keys_in`] says which is meant.
    ///
    /// The numbers go on behind the largest key that is there now. Rows with larger keys that are inserted afterwards are passed over only if that is done by handles
    /// that know that the table gives keys: rows that come from another table come before.
    ///
    /// # Errors
    /// [`Error::UnknownTable`]; [`Error::InvalidSequence`] when the primary key is not one ascending integer of up to 64 bits; those of
    /// [`Database::sequence`] when one is to be made.
    pub fn give_keys(&self, table: &str) -> Result<()> {
        self.give_keys_at(table, |schema| (schema.key_parts().len() == 1).then_some(0))
    }

    /// Like [`Database::give_keys`], for this column of the primary key, which may have others.
    ///
    /// # Errors
    /// As [`Database::give_keys`]; [`Error::InvalidSequence`] when the column is not in the primary key, or no ascending integer of up to 64 bits, or
    /// the table gives the numbers of another column already.
    pub fn give_keys_in(&self, table: &str, column: &str) -> Result<()> {
        self.give_keys_at(table, |schema| {
            let column = schema.column(column)?;
            schema.key_parts().iter().position(|part| part.column == column)
        })
    }

    fn give_keys_at(&self, table: &str, place: impl FnOnce(&Schema) -> Option<usize>) -> Result<()> {
        let core = self.table_core(table)?;
        if self.shared.read_only().is_some() {
            return Err(Error::ReadOnly);
        }
        let place = place(&core.schema).filter(|place| core.schema.is_key_number(*place));
        let no_number = || {
            Error::InvalidSequence(Name::new(format!(
                "what table {table} is to give is not one ascending integer of up to 64 bits in its key"
            )))
        };
        self.shared.make_numbers(&core, place.ok_or_else(no_number)?)
    }

    /// Returns the names of all tables, in alphabetical order.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn list_tables(&self) -> Result<Vec<String>> {
        self.check_open()?;
        Ok(self.shared.catalog.tables_of_programs().iter().map(|table| table.name.to_string()).collect())
    }

    /// Returns the schema of a table, with the indexes that can be read now and those that are broken.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`].
    pub fn schema(&self, table: &str) -> Result<Schema> {
        Ok(self.table_core(table)?.current_schema())
    }

    /// Drops a table and its indexes. Statements on the table return [`Error::UnknownTable`] from now on,
    /// also in transactions, snapshots and sessions under way. Its memory is freed when these have ended.
    ///
    /// A transaction that has used the table before, even only to find that a row is missing, and that
    /// commits after this call has returned, is undone as a whole. [`Database::transact`] runs it again; a
    /// transaction of a [`Session`](crate::Session) ends with [`Error::UnknownTable`]. The exception is a
    /// transaction that has looked up a single row of the table and done nothing else: it commits, as of the
    /// time of the look-up.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::NestedRequest`], [`Error::Closed`]; [`Error::LogFailed`] as
    /// [`Database::transact`].
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.shared.drop_table(name, &|_| Ok(()))
    }

    /// Takes all rows out of a table and its indexes at once, however many there are: the table is empty from then on, with the same columns and
    /// indexes. Its memory is freed afterwards, beside transactions.
    ///
    /// This takes no memory for the rows, nor does it log them, other than [`Scan::delete`](crate::Scan::delete), which deletes rows in
    /// a transaction, as one of its statements. A broken index is whole again. Row ids go on where they were.
    ///
    /// ```
    /// # use ensilo::{Database, Error, Row};
    /// # #[derive(Row)] #[row(table = "reading")] struct Reading { #[row(key)] id: u32, value: f64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let readings = db.table::<Reading>()?;
    /// db.transact(|tx| readings.insert(tx, &Reading { id: 1, value: 2.5 }))?;
    /// db.truncate_table("reading")?;
    /// assert!(matches!(db.transact(|tx| readings.get(tx, 1)), Err(Error::TableChanged(_))));
    /// let readings = db.table::<Reading>()?; // anew
    /// assert!(db.transact(|tx| readings.get(tx, 1))?.is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # What happens to the others
    /// The call waits until all transactions that are under way have ended, of any table: those of sessions, and prepared ones. So each
    /// transaction uses the table as it was before, and commits or is undone as ever, or it begins later. The table is used as before
    /// meanwhile; where a transaction takes long,
    /// statements on the table are refused with [`Error::TableChanged`] for up to a second at a time, and let in again. A session that keeps a transaction
    /// open keeps this call waiting; [`EpochStatistics::oldest_pin`](crate::EpochStatistics::oldest_pin) shows that there is one. Handles to the table of before, and to its indexes, answer
    /// [`Error::TableChanged`] afterwards, which no retry heals: they are opened again, or each time within the closure that uses them,
    /// which takes a fraction of a microsecond. Those who open the table meanwhile wait; within a transaction, for which this call waits, opening it is
    /// a conflict ([`AbortReason::TableChanging`](crate::AbortReason::TableChanging)), and a request that may run again does so once the table is empty. Who has
    /// opened it just before gets [`Error::TableChanged`] at the next statement. A snapshot that begins afterwards shows the empty table.
    ///
    /// Keys that the table gives ([`Table::insert_auto`]) go on behind those that it has given, and leave out up to a block of them; row ids go on as well.
    ///
    /// After a crash the table has all of its rows, or none of them. A consumer of the [change feed](Database::changes) gets one change, which says
    /// that the table was emptied.
    ///
    /// # Errors
    /// [`Error::UnknownTable`]; [`Error::IndexNotReady`] while an index of the table is being created; [`Error::NestedRequest`] as
    /// [`Database::create_table`]; [`Error::OutOfMemory`] where there is no room for an empty table; [`Error::ReadOnly`], [`Error::Closed`].
    /// Nothing has changed then. [`Error::LogFailed`] as [`Database::transact`].
    /// Calls that change the same table meanwhile, or its indexes, may end with [`Error::TableChanged`] or [`Error::UnknownTable`]: they are made again.
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.shared.truncate_table(name)
    }
}
