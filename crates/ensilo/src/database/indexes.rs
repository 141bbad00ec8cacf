//! Secondary indexes: created, rebuilt and dropped while others use the table.

use ensilo_engine::Engine;
use ensilo_row::{IndexSchema, Order};

use super::Database;
use crate::{Error, Result};

impl<E: Engine> Database<E> {
    /// Creates an index over these columns of a table while others use the table, and returns when it can be
    /// read.
    ///
    /// The call waits until the transactions under way have ended, then adds the entries of the existing
    /// rows. A unique index refuses writes with a duplicate key from the beginning on. Snapshots can read the
    /// index as soon as they show a point in time after its completion.
    ///
    /// Under snapshot isolation ([`ermia`](crate::ermia)) adding the entry of a row writes the row as it is, once:
    /// that is logged, and a transaction that changes the row meanwhile may be undone and run again.
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
    /// [`Error::KeyTooLong`] when a row's key does not fit; [`Error::NestedRequest`] inside a request or
    /// while this thread was the last to use an open transaction of a session; [`Error::OutOfMemory`],
    /// [`Error::Closed`]. The index is gone then. [`Error::LogFailed`] as [`Database::transact`].
    pub fn create_index<'c>(
        &self,
        table: &str,
        name: &str,
        columns: impl IntoIterator<Item = (&'c str, Order)>,
    ) -> Result<()> {
        self.create_index_with(table, name, columns, false)
    }

    /// Like [`Database::create_index`], for an index in which no two rows may have the same values. Rows with
    /// a null among these values are not compared.
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
        self.shared.create_index(&core, index, &|_| Ok(()))
    }

    /// Drops an index. Its memory is freed when the transactions under way have ended.
    ///
    /// A transaction under way that has read through the index is undone when it uses the index again, or
    /// when it commits. [`Database::transact`] runs it again, and its statements then return
    /// [`Error::UnknownIndex`]. A transaction of a [`Session`](crate::Session), or a request without retries,
    /// ends with [`Error::Aborted`], which names the index and has the reason
    /// [`AbortReason::StoreDropped`](crate::AbortReason::StoreDropped). A snapshot ends with
    /// [`Error::UnknownIndex`]. A transaction that has only written to the table commits; if it writes at the
    /// moment of the drop it may be undone, and commits when it runs again.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownIndex`]; [`Error::IndexNotReady`] while it is built;
    /// [`Error::NestedRequest`], [`Error::Closed`]; [`Error::LogFailed`] as [`Database::transact`].
    pub fn drop_index(&self, table: &str, name: &str) -> Result<()> {
        self.shared.drop_index(table, name, &|_| Ok(()))
    }

    /// Rebuilds the entries of a broken index ([`Error::IndexBroken`]) from the rows while others use the
    /// table, and returns when the index can be read. It works like [`Database::create_index`], and handles
    /// to the index stay valid. An index that can be read is left as it is.
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
    /// [`Error::UnknownTable`], [`Error::UnknownIndex`]; [`Error::IndexNotReady`] while it is built;
    /// [`Error::DuplicateKey`] when two rows still have one key, [`Error::KeyTooLong`] when one's does not
    /// fit; [`Error::NestedRequest`] inside a request or while this thread was the last to use an open
    /// transaction of a session; [`Error::OutOfMemory`], [`Error::Closed`]. The index is as broken as before
    /// then.
    pub fn rebuild_index(&self, table: &str, name: &str) -> Result<()> {
        self.shared.rebuild_index(&self.table_core(table)?, name)
    }
}
