//! Tables: created, opened, listed and dropped.

use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_row::{Row, Schema};

use super::Database;
use super::schema_check::check_schema;
use crate::catalog::table_core::TableCore;
use crate::dynamic::DynamicTable;
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
        self.open_or_create(T::schema()).map(Table::new)
    }

    /// Like [`Database::table`], with another name than the row type's: for several tables of one type.
    ///
    /// # Errors
    /// As [`Database::table`]; [`Error::InvalidSchema`] when the name cannot be a table's.
    pub fn table_named<T: Row>(&self, name: &str) -> Result<Table<T, E>> {
        let schema = T::schema().renamed(name).map_err(Error::from_schema)?;
        self.open_or_create(&schema).map(Table::new)
    }

    /// Like [`Database::table`], with a schema that was made at run time.
    ///
    /// # Errors
    /// As [`Database::table`]; [`Error::InvalidSchema`] when its name is the system's.
    pub fn dynamic_table(&self, schema: &Schema) -> Result<DynamicTable<E>> {
        self.open_or_create(schema).map(DynamicTable::new)
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
            match self.shared.create_table(schema.clone()) {
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
        self.shared.create_table(T::schema().clone()).map(Table::new)
    }

    /// Like [`Database::create_table`], with another name than the row type's: for several tables of one
    /// type.
    ///
    /// # Errors
    /// As [`Database::create_table`]; [`Error::InvalidSchema`] when the name cannot be a table's.
    pub fn create_table_named<T: Row>(&self, name: &str) -> Result<Table<T, E>> {
        let schema = T::schema().renamed(name).map_err(Error::from_schema)?;
        self.shared.create_table(schema).map(Table::new)
    }

    /// Creates a table with a schema that was made at run time.
    ///
    /// # Errors
    /// As [`Database::create_table`]; [`Error::InvalidSchema`] when its name is the system's.
    pub fn create_dynamic_table(&self, schema: Schema) -> Result<DynamicTable<E>> {
        self.shared.create_table(schema).map(DynamicTable::new)
    }

    /// Returns a handle to the existing table that the row type `T` describes.
    ///
    /// # Errors
    /// [`Error::UnknownTable`]; [`Error::SchemaMismatch`] when columns or primary key differ, or an index
    /// that `T` declares is missing or defined otherwise; [`Error::Closed`].
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
        Ok(Table::new(core))
    }

    /// Returns a handle to the existing table of this name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`].
    pub fn open_dynamic_table(&self, name: &str) -> Result<DynamicTable<E>> {
        self.table_core(name).map(DynamicTable::new)
    }

    /// Returns the names of all tables, in alphabetical order.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn list_tables(&self) -> Result<Vec<String>> {
        self.check_open()?;
        Ok(self.shared.catalog.tables().iter().map(|table| table.name.to_string()).collect())
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
        self.shared.drop_table(name)
    }
}
