//! A change of a row, as values and as a Rust type.

use std::sync::Arc;

use ensilo_engine::{Engine, Store};
use ensilo_epoch::Epoch;
use ensilo_log::LoggedChange;
use ensilo_row::{Columns, Key, Row, RowBuf, Schema, Value};

use super::position::ChangePosition;
use crate::catalog::table_core::TableCore;
use crate::error::Name;
use crate::generic::Table;
use crate::row_words::whole;
use crate::unknown_value::unknown_value;
use crate::{Error, Result};

/// Changes of one epoch, in the order of their transactions' TIDs.
///
/// All changes of an epoch together are what transactions have made of all before it. The order within an epoch is right for each
/// row, and for transactions of which one has read or overwritten what the other has written; it says nothing of others. So a
/// copy is applied, or shown to others, when the epoch [has ended](Self::ends_epoch).
#[derive(Debug)]
pub struct ChangeBatch {
    pub(super) epoch: u64,
    pub(super) changes: Vec<Change>,
    pub(super) ends_epoch: bool,
    pub(super) position: ChangePosition,
}

impl ChangeBatch {
    /// Returns the epoch in which all of these have committed.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the changes: at least one, but where the batch says no more than that an epoch [has ended](Self::ends_epoch) within which the
    /// position before it lies, because the rest of that is of tables that were dropped, or
    /// of the system's.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns whether no more changes of the epoch come. It is `false` where an epoch has more changes than the
    /// [memory](crate::generic::ChangesRequest::memory_bytes) holds: the next batches have the others.
    #[must_use]
    pub fn ends_epoch(&self) -> bool {
        self.ends_epoch
    }

    /// Returns the position behind these changes.
    #[must_use]
    pub fn position(&self) -> ChangePosition {
        self.position
    }
}

impl<'b> IntoIterator for &'b ChangeBatch {
    type Item = &'b Change;
    type IntoIter = std::slice::Iter<'b, Change>;

    fn into_iter(self) -> Self::IntoIter {
        self.changes.iter()
    }
}

/// What a transaction has made of a row: the whole row that it is since, or that it is gone. Or that all rows of a table are gone, which was
/// [truncated](crate::generic::Database::truncate_table).
///
/// An insertion and an update look the same: a consumer stores the row under its key. A row that was inserted and deleted by one
/// transaction may be there as a deletion of a row that never was.
#[derive(Clone, Debug)]
pub struct Change {
    table: Arc<str>,
    store: u32,
    schema: Arc<Schema>,
    tid: u64,
    key: Vec<u8>,
    made: Made,
}

/// What was made of a row, or of all rows of a table.
#[derive(Clone, Debug)]
enum Made {
    Stored(RowBuf),
    Deleted,
    Emptied,
}

/// A [`Change`] of a row of the Rust type `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange<K, T> {
    /// The row under this key is this one now.
    Stored(K, T),
    /// There is no row under this key any more.
    Deleted(K),
    /// The table has no rows any more: it was [truncated](crate::generic::Database::truncate_table). The rows that it has afterwards come
    /// behind this.
    Emptied,
}

impl Change {
    /// Returns a change of a row of this table, which is at least as new as the row.
    pub(super) fn new<S: Store>(table: &TableCore<S>, epoch: Epoch, logged: LoggedChange) -> Change {
        let LoggedChange { tid, key, row, .. } = logged;
        let made = row.map_or(Made::Deleted, |bytes| {
            let (mut row, mut converted) = (RowBuf::new(), RowBuf::new());
            row.set_bytes(&bytes);
            match &table.older {
                Some(older) if older.convert_stored(epoch, &row, &mut converted) => Made::Stored(converted),
                _ => Made::Stored(row),
            }
        });
        Change::of_table(table, tid, key, made)
    }

    /// Returns what tells that this table has taken the place of one that was truncated.
    pub(super) fn emptied<S: Store>(table: &TableCore<S>, tid: u64) -> Change {
        Change::of_table(table, tid, Vec::new(), Made::Emptied)
    }

    fn of_table<S: Store>(table: &TableCore<S>, tid: u64, key: Vec<u8>, made: Made) -> Change {
        let (name, schema) = (Arc::clone(&table.name), Arc::clone(&table.schema));
        Change { table: name, store: table.store.id().0, schema, tid, key, made }
    }

    /// Returns the name of the table.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Returns the schema of the table, by which [`Change::key`] and [`Change::row`] are: that which the table had when the
    /// change was read, also where the row was written before the table's columns were changed.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns a number of the transaction, which is that of all its changes. Another transaction of the same epoch may have the
    /// same number if neither has seen anything of the other.
    #[must_use]
    pub fn transaction(&self) -> u64 {
        self.tid
    }

    /// Returns whether the row is gone.
    #[must_use]
    pub fn is_deletion(&self) -> bool {
        matches!(self.made, Made::Deleted)
    }

    /// Returns whether all rows of the table are gone: it was [truncated](crate::generic::Database::truncate_table). Such a change has no
    /// key and no row.
    #[must_use]
    pub fn empties_table(&self) -> bool {
        matches!(self.made, Made::Emptied)
    }

    /// Returns the primary key, or the row id where the table assigns it. It is empty where the change [empties its table](Self::empties_table).
    ///
    /// # Panics
    /// When the stored key does not fit its table, as for all reads of rows.
    #[must_use]
    pub fn key(&self) -> Vec<Value> {
        let mut values = Vec::new();
        if self.empties_table() {
            return values;
        }
        whole(self.schema.decode_key(&self.key, &mut values));
        values
    }

    /// Returns all columns of the row, `None` if it is gone, or all are.
    ///
    /// # Panics
    /// When the stored row does not fit its table, as for all reads of rows.
    #[must_use]
    pub fn row(&self) -> Option<Vec<Value>> {
        let Made::Stored(row) = &self.made else { return None };
        let mut values = Vec::new();
        whole(self.schema.decode_row(&self.key, row, &mut values));
        Some(values)
    }

    /// Returns the change as one of a row of `T`; `None` if it is one of another table, or of one of the same name before it was dropped or truncated.
    ///
    /// # Errors
    /// [`Error::TableChanged`] when the table's columns were changed, or it was truncated, since the handle to it was made, and the change
    /// was read: a handle that is made now takes the change; [`Error::UnknownValue`].
    ///
    /// # Panics
    /// When the stored key does not fit its table, as for all reads of rows.
    pub fn of<T: Row, E: Engine>(&self, table: &Table<T, E>) -> Result<Option<RowChange<T::Key, T>>> {
        let core = &table.core;
        if core.store.id().0 != self.store {
            let is_former = core.name == self.table && core.is_changed();
            return if is_former { Err(Error::TableChanged(Name::new(&*self.table))) } else { Ok(None) };
        }
        if !Arc::ptr_eq(&core.schema, &self.schema) {
            return Err(Error::TableChanged(Name::new(&*self.table)));
        }
        self.decode::<T, T>().map(Some)
    }

    /// Returns the change as one of columns of a row of `T`, which has the columns of the schema.
    ///
    /// # Errors
    /// [`Error::UnknownValue`].
    pub(super) fn decode<T: Row, C: Columns<T>>(&self) -> Result<RowChange<T::Key, C>> {
        let key = || whole(T::Key::decode(&self.key));
        let row = match &self.made {
            Made::Emptied => return Ok(RowChange::Emptied),
            Made::Deleted => return Ok(RowChange::Deleted(key())),
            Made::Stored(row) => row,
        };
        let key = key();
        match C::decode(&key, row) {
            Ok(row) => Ok(RowChange::Stored(key, row)),
            Err(_) => Err(unknown_value(&self.table, &self.schema, &self.key)),
        }
    }

    /// Returns the schema of the table, if it has the columns of this one.
    ///
    /// # Errors
    /// [`Error::TableChanged`].
    pub(super) fn check_columns(&self, wanted: &Schema) -> Result<Arc<Schema>> {
        let (columns, key) = (self.schema.columns(), self.schema.primary_key());
        if columns == wanted.columns() && key == wanted.primary_key() {
            return Ok(Arc::clone(&self.schema));
        }
        Err(Error::TableChanged(Name::new(&*self.table)))
    }

    /// Returns whether this is the schema of the table.
    pub(super) fn has_schema(&self, schema: &Arc<Schema>) -> bool {
        Arc::ptr_eq(&self.schema, schema)
    }

    /// Returns the id of the table.
    pub(super) fn store(&self) -> u32 {
        self.store
    }

    pub(super) fn encoded_key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the bytes of the key and the row.
    pub(super) fn len_bytes(&self) -> usize {
        let row = if let Made::Stored(row) = &self.made { row.len_bytes() } else { 0 };
        self.key.len() + row
    }
}
