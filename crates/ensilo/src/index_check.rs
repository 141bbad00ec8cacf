//! Whether an index fits the rows of its table, and which rows stand in the way of a broken one.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use ensilo_engine::{Engine, Read};
use ensilo_row::{Key, KeyBuf, Row, Value};

use crate::Result;
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::dynamic::DynamicTable;
use crate::long_values::Nothing;
use crate::row_words::{RowWords, key_of_bytes, primary_key_of, whole};
use crate::table::{Bounds, ScanRange, Table};
use crate::transaction::{Inner, ReadTransaction};

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
    /// Returns whether every row has its entry, and every entry its row.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.surplus.is_empty()
    }

    fn of(rows: &[IndexEntry], entries: &[IndexEntry]) -> Self {
        let mut check = IndexCheck::default();
        let (mut rows, mut entries) = (rows.iter().peekable(), entries.iter().peekable());
        let encoded = |entry: &IndexEntry| (entry.0.as_bytes().into(), entry.1.as_bytes().into());
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
    /// Returns the primary keys of the rows that share a key in a unique index, grouped by that key. There
    /// are none unless the index is broken, see [`Error::IndexBroken`](crate::Error::IndexBroken).
    ///
    /// The call reads the whole table, and takes memory for the keys of all rows. Where many others write, a
    /// snapshot is the better transaction for it.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`]; [`Error::UnknownIndex`](crate::Error::UnknownIndex).
    pub fn duplicates<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        index: &str,
    ) -> Result<Vec<Vec<T::Key>>> {
        let decode = |key: KeyBuf| self.core.known(T::Key::decode(key.as_bytes()), key.as_bytes());
        let groups = tx.statement(|inner| groups(inner, &self.core, index))?.into_iter();
        groups.map(|group| group.into_iter().map(decode).collect()).collect()
    }
}

impl<E: Engine> DynamicTable<E> {
    /// Compares all entries of an index with all rows. An index that can be read fits its rows; this checks
    /// it.
    ///
    /// The call reads the whole table and the whole index, and takes memory for the keys of both. Where many
    /// others write, a snapshot is the better transaction for it.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownIndex`](crate::Error::UnknownIndex),
    /// [`Error::IndexNotReady`](crate::Error::IndexNotReady),
    /// [`Error::IndexBroken`](crate::Error::IndexBroken).
    pub fn check_index<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, index: &str) -> Result<IndexCheck> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let index = self.core.index(index)?;
            inner.check_index(&self.core, &index)?;
            let rows = entries_of_rows(inner, &self.core, &index)?;
            let mut entries = Vec::with_capacity(rows.len());
            ALL.run(
                inner,
                &index.store,
                |key, entry| (key_of_bytes(key), primary_key_of(entry)),
                |entry| {
                    entries.push(entry);
                    ControlFlow::Continue(())
                },
            )?;
            Ok(IndexCheck::of(&rows, &entries))
        })
    }

    /// Like [`Table::duplicates`]: returns the primary keys of the rows that share a key in a unique index,
    /// grouped by that key.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownIndex`](crate::Error::UnknownIndex).
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

/// All keys of a store.
const ALL: ScanRange = ScanRange::new(Bounds::ALL);

/// An entry of an index: its key, and the primary key that it holds.
type IndexEntry = (KeyBuf, KeyBuf);

fn compare(one: &IndexEntry, other: &IndexEntry) -> Ordering {
    one.0.as_bytes().cmp(other.0.as_bytes()).then_with(|| one.1.as_bytes().cmp(other.1.as_bytes()))
}

/// Returns the primary keys of rows with one key in the index, each group in order.
fn groups<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    index: &str,
) -> Result<Vec<Vec<KeyBuf>>> {
    table.check(inner.local)?;
    let index = table.index(index)?;
    let rows = entries_of_rows(inner, table, &index)?;
    let groups = rows.chunk_by(|one, other| one.0 == other.0).filter(|group| group.len() > 1);
    Ok(groups.map(|group| group.iter().map(|(_, key)| key.clone()).collect()).collect())
}

/// Returns the entries that all rows should have in the index, in their order.
fn entries_of_rows<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    index: &IndexCore<Raw::Store>,
) -> Result<Vec<IndexEntry>> {
    let mut rows: Vec<IndexEntry> = Vec::new();
    ALL.run_rows(
        inner,
        (table, Nothing),
        |key, row| {
            let mut index_key = KeyBuf::new();
            let made = table.schema.index_key(&index.schema, key, &RowWords(row), &mut index_key);
            made.map(|()| (index_key, key_of_bytes(key)))
        },
        |row| {
            rows.push(whole(row));
            ControlFlow::Continue(())
        },
    )?;
    rows.sort_by(compare);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(u8, u8)]) -> Vec<IndexEntry> {
        pairs.iter().map(|&(key, row)| (key_of_bytes(&[key]), key_of_bytes(&[row]))).collect()
    }

    #[test]
    fn missing_and_surplus_entries_are_reported() {
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
