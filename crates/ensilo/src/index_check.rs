//! Whether an index fits the rows of its table, and which rows stand in the way of a broken one.

use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_engine::{Direction, Engine, Read, Store};
use ensilo_row::{Key, KeyBuf, Row, Value};

use crate::catalog::{IndexCore, TableCore};
use crate::error::Name;
use crate::row_words::{RowWords, key_of_bytes, primary_key_of, whole};
use crate::table::Flow;
use crate::transaction::{Inner, ReadTransaction};
use crate::{DynamicTable, Error, Result, Table};

/// How the entries of an index compare with the rows of its table. Made by [`DynamicTable::check_index`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexCheck {
    /// How many rows have their entry.
    pub matches: u64,
    /// The encoded keys in the index, with the encoded primary keys, of entries that rows lack.
    pub missing: Vec<EncodedEntry>,
    /// The same of entries that no row has.
    pub surplus: Vec<EncodedEntry>,
}

/// An encoded key of an index, and the encoded primary key of the row that it leads to.
pub type EncodedEntry = (Box<[u8]>, Box<[u8]>);

impl IndexCheck {
    /// Whether every row has its entry, and every entry its row.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.surplus.is_empty()
    }

    fn of(rows: &[Entry], entries: &[Entry]) -> Self {
        let mut check = IndexCheck::default();
        let (mut rows, mut entries) = (rows.iter().peekable(), entries.iter().peekable());
        let encoded = |entry: &Entry| (entry.0.as_bytes().into(), entry.1.as_bytes().into());
        loop {
            let order = match (rows.peek(), entries.peek()) {
                (None, None) => return check,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(row), Some(entry)) => compare(row, entry),
            };
            match order {
                Ordering::Less => check.missing.extend(rows.next().map(encoded)),
                Ordering::Greater => check.surplus.extend(entries.next().map(encoded)),
                Ordering::Equal => {
                    check.matches += 1;
                    rows.next();
                    entries.next();
                }
            }
        }
    }
}

impl<T: Row, E: Engine> Table<T, E> {
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
        tx: &mut impl ReadTransaction<'t, E>,
        index: &str,
    ) -> Result<Vec<Vec<T::Key>>> {
        let decode = |key: KeyBuf| whole(T::Key::decode(key.as_bytes()));
        let groups = tx.statement(|inner| groups(inner, &self.core, index))?.into_iter();
        Ok(groups.map(|group| group.into_iter().map(decode).collect()).collect())
    }
}

impl<E: Engine> DynamicTable<E> {
    /// Compares all entries of an index with all rows. An index that can be read fits its rows; who doubts it asks here.
    ///
    /// It reads the whole table and the whole index, and takes memory for the keys of both. Where many others write, a snapshot is the better
    /// transaction for it.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownIndex`], [`Error::IndexNotReady`], [`Error::IndexBroken`].
    pub fn check_index<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, index: &str) -> Result<IndexCheck> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let index = index_named(&self.core, index)?;
            index.check(&self.core.name, inner.local, inner.epoch_shown)?;
            let rows = entries_of_rows(inner, &self.core, &index)?;
            let mut entries = Vec::with_capacity(rows.len());
            let mut flow = Flow::new(usize::MAX, inner.local);
            let scanned = inner.raw.scan_to_read(
                &index.store,
                (Bound::Unbounded, Bound::Unbounded),
                Direction::Forward,
                |key, entry| (key_of_bytes(key), primary_key_of(entry)),
                |_, entry| {
                    entries.push(entry);
                    flow.after(ControlFlow::Continue(()))
                },
            );
            scanned.map_err(|abort| inner.lost(abort))?;
            flow.end()?;
            Ok(IndexCheck::of(&rows, &entries))
        })
    }

    /// As [`Table::duplicates`]: the primary keys of the rows that have one key in a unique index, those with the same key together.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownIndex`].
    pub fn duplicates<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        index: &str,
    ) -> Result<Vec<Vec<Vec<Value>>>> {
        let decode = |key: KeyBuf| {
            let mut values = Vec::new();
            whole(self.core.schema.decode_key(key.as_bytes(), &mut values));
            values
        };
        let groups = tx.statement(|inner| groups(inner, &self.core, index))?.into_iter();
        Ok(groups.map(|group| group.into_iter().map(decode).collect()).collect())
    }
}

/// An entry of an index: its key, and the primary key that it holds.
type Entry = (KeyBuf, KeyBuf);

fn compare(one: &Entry, other: &Entry) -> Ordering {
    one.0.as_bytes().cmp(other.0.as_bytes()).then_with(|| one.1.as_bytes().cmp(other.1.as_bytes()))
}

fn index_named<S: Store>(table: &TableCore<S>, name: &str) -> Result<Arc<IndexCore<S>>> {
    let index = table.indexes.snapshot().into_iter().find(|index| &*index.name == name);
    index.ok_or_else(|| Error::UnknownIndex(Name::new(name)))
}

/// The primary keys of rows with one key in the index, each group in order.
fn groups<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    index: &str,
) -> Result<Vec<Vec<KeyBuf>>> {
    table.check(inner.local)?;
    let index = index_named(table, index)?;
    let rows = entries_of_rows(inner, table, &index)?;
    let groups = rows.chunk_by(|one, other| one.0 == other.0).filter(|group| group.len() > 1);
    Ok(groups.map(|group| group.iter().map(|(_, key)| key.clone()).collect()).collect())
}

/// The entries that all rows should have in the index, in their order.
fn entries_of_rows<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    index: &IndexCore<Raw::Store>,
) -> Result<Vec<Entry>> {
    let mut rows: Vec<Entry> = Vec::new();
    let mut flow = Flow::new(usize::MAX, inner.local);
    let scanned = inner.raw.scan_to_read(
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
            flow.after(ControlFlow::Continue(()))
        },
    );
    scanned.map_err(|abort| inner.lost(abort))?;
    flow.end()?;
    rows.sort_by(compare);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(u8, u8)]) -> Vec<Entry> {
        pairs.iter().map(|&(key, row)| (key_of_bytes(&[key]), key_of_bytes(&[row]))).collect()
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_is_told() {
        let rows = entries(&[(1, 1), (2, 2), (3, 3), (5, 6)]);
        let check = IndexCheck::of(&rows, &entries(&[(0, 9), (2, 2), (3, 4), (5, 6), (7, 7)]));
        let pairs = |entries: &[EncodedEntry]| entries.iter().map(|(key, row)| (key[0], row[0])).collect();
        let (missing, surplus): (Vec<_>, Vec<_>) = (pairs(&check.missing), pairs(&check.surplus));
        assert_eq!(check.matches, 2);
        assert_eq!(missing, [(1, 1), (3, 3)]);
        assert_eq!(surplus, [(0, 9), (3, 4), (7, 7)]);
        assert!(!check.is_whole());
        assert!(IndexCheck::of(&rows, &rows).is_whole() && IndexCheck::of(&[], &[]).is_whole());
        assert_eq!(IndexCheck::of(&rows, &[]).missing.len(), 4);
    }
}
