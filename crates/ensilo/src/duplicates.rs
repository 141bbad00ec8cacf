//! Which rows of a table have one key in a unique index: what stands in the way of a broken one.

use std::ops::{Bound, ControlFlow};

use ensilo_row::{Key, KeyBuf, Row, Value};
use ensilo_txn::{Direction, Protocol, Read};

use crate::catalog::TableCore;
use crate::error::Name;
use crate::row_words::{RowWords, key_of_bytes, whole};
use crate::transaction::{Inner, ReadTransaction};
use crate::{DynamicTable, Error, Result, Table};

impl<T: Row, P: Protocol> Table<T, P> {
    /// The primary keys of the rows that have one key in a unique index, those with the same key together. There are none while the index is
    /// not broken, see [`Error::IndexBroken`].
    ///
    /// It reads the whole table, and takes memory for the keys of all rows. Where many others write, a snapshot is the better transaction
    /// for it.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`]; [`Error::UnknownIndex`].
    pub fn duplicates<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, P>,
        index: &str,
    ) -> Result<Vec<Vec<T::Key>>> {
        let decode = |key: KeyBuf| whole(T::Key::decode(key.as_bytes()));
        let groups = groups(tx.inner(), &self.core, index)?.into_iter();
        Ok(groups.map(|group| group.into_iter().map(decode).collect()).collect())
    }
}

impl<P: Protocol> DynamicTable<P> {
    /// As [`Table::duplicates`]: the primary keys of the rows that have one key in a unique index, those with the same key together.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownIndex`].
    pub fn duplicates<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, P>,
        index: &str,
    ) -> Result<Vec<Vec<Vec<Value>>>> {
        let decode = |key: KeyBuf| {
            let mut values = Vec::new();
            whole(self.core.schema.decode_key(key.as_bytes(), &mut values));
            values
        };
        let groups = groups(tx.inner(), &self.core, index)?.into_iter();
        Ok(groups.map(|group| group.into_iter().map(decode).collect()).collect())
    }
}

/// The primary keys of rows with one key in the index, each group in order.
fn groups(inner: &mut Inner<'_, impl Read>, table: &TableCore, index: &str) -> Result<Vec<Vec<KeyBuf>>> {
    table.check(inner)?;
    let indexes = table.indexes.snapshot();
    let found = indexes.iter().find(|core| &*core.name == index);
    let index = found.ok_or_else(|| Error::UnknownIndex(Name::new(index)))?;
    let mut rows: Vec<(KeyBuf, KeyBuf)> = Vec::new();
    let scanned = inner.raw.scan(
        &table.store,
        (Bound::Unbounded, Bound::Unbounded),
        Direction::Forward,
        |key, row| {
            let mut index_key = KeyBuf::new();
            let made = table.schema.index_key(&index.schema, key, &RowWords(row), &mut index_key);
            made.map(|()| (index_key, key_of_bytes(key)))
        },
        |_, row| {
            rows.push(whole(row));
            ControlFlow::Continue(())
        },
    );
    scanned.map_err(|abort| inner.lost(abort))?;
    rows.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
    let groups = rows.chunk_by(|one, other| one.0 == other.0).filter(|group| group.len() > 1);
    Ok(groups.map(|group| group.iter().map(|(_, key)| key.clone()).collect()).collect())
}
