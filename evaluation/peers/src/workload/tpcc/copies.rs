//! Rows on their way: from the loader of `ensilo-bench` to a database, and from there to the check of `ensilo-bench`.

use ensilo::row::{KeyBuf, RowBuf};
use ensilo::{Database, Row, RowId};
use ensilo_bench::driver::{Failure, Interrupt, View};
use ensilo_bench::tpcc::{RowSource, RowTarget, Tpcc, TpccOptions};

use super::rows::{broken, decode, decode_key, encoded, put_bytes};
use crate::engine::{ORDERED_TABLES_MAX, OrderedStore, OrderedTable};

/// A key and its row.
type KeyAndRow = (Vec<u8>, Vec<u8>);

/// The rows of a loaded TPC-C database by table, in the order of their keys, and the entries of its indexes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LoadedRows {
    tables: [Vec<KeyAndRow>; ORDERED_TABLES_MAX],
}

impl LoadedRows {
    /// What the loader of `ensilo-bench` makes of these options.
    ///
    /// # Errors
    /// A failure of the load.
    pub fn new(options: &TpccOptions, view: &mut View, interrupt: &Interrupt) -> Result<Self, Failure> {
        Self::of(&Tpcc::load(options.clone(), Database::in_memory()?, view, interrupt)?)
    }

    /// What a database of Ensilo has now, while there are no sessions.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn of(tpcc: &Tpcc) -> Result<Self, Failure> {
        let mut rows = Self::default();
        tpcc.copy_rows(&mut rows)?;
        Ok(rows.in_order())
    }

    /// The same with every table in the order of its keys.
    pub(super) fn in_order(mut self) -> Self {
        self.tables.iter_mut().for_each(|table| table.sort_unstable());
        self
    }

    /// Rows, without the entries of indexes.
    pub fn len(&self) -> u64 {
        let entries = OrderedTable::TPCC.iter().filter_map(|table| table.index());
        let all: usize = self.tables.iter().map(Vec::len).sum();
        (all - entries.map(|index| self.tables[index.number()].len()).sum::<usize>()) as u64
    }

    /// Whether there are none, which no load makes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts all of them into the tables of `store`, which are empty.
    pub(super) fn load_into(&self, store: &impl OrderedStore) -> Result<(), Failure> {
        OrderedTable::TPCC.into_iter().try_for_each(|table| {
            store.load(table, self.tables[table.number()].iter().map(|(key, row)| (key, row)))
        })
    }
}

impl RowTarget for LoadedRows {
    fn take<T: Row>(&mut self, key: &T::Key, row: &T) -> Result<(), Failure> {
        let table = OrderedTable::of::<T>();
        let rows = &mut self.tables[table.number()];
        let key_bytes = match table {
            // Numbered anew from 0, below those that sessions give.
            OrderedTable::History => encoded(&RowId(rows.len() as u64)),
            _ => encoded(key),
        };
        let key_bytes = key_bytes.as_bytes().to_vec();
        let (mut encoded_row, mut bytes) = (RowBuf::new(), Vec::new());
        row.encode(&mut encoded_row);
        put_bytes(&encoded_row, &mut bytes);
        rows.push((key_bytes.clone(), bytes));
        if let Some(index) = table.index() {
            let mut entry = KeyBuf::new();
            row.index_key(key, 0, &mut entry);
            self.tables[index.number()].push((entry.as_bytes().to_vec(), key_bytes));
        }
        Ok(())
    }
}

impl RowSource for LoadedRows {
    fn for_each_row<T: Row>(&self, visit: &mut dyn FnMut(T) -> Result<(), Failure>) -> Result<(), Failure> {
        let rows = &self.tables[OrderedTable::of::<T>().number()];
        rows.iter().try_for_each(|(key, row)| visit(decode::<T, T>(&decode_key::<T>(key)?, row)?))
    }
}

/// The rows that a store has now.
pub(super) struct StoreRows<'a, S>(pub(super) &'a S);

impl<S: OrderedStore> StoreRows<'_, S> {
    /// Entries of the index of `T`, and how many of them are not those of the row that they name.
    pub(super) fn index_entries<T: Row>(&self) -> Result<IndexEntries, Failure> {
        let table = OrderedTable::of::<T>();
        let index = table.index().ok_or_else(|| broken::<T>("it has no index"))?;
        let mut expected = Vec::new();
        self.0.for_each(table, |key_bytes, row| {
            let (key, mut entry) = (decode_key::<T>(key_bytes)?, KeyBuf::new());
            decode::<T, T>(&key, row)?.index_key(&key, 0, &mut entry);
            expected.push((entry.as_bytes().to_vec(), key_bytes.to_vec()));
            Ok(())
        })?;
        expected.sort_unstable();
        let mut entries = IndexEntries { rows: expected.len(), entries: 0, wrong: 0 };
        self.0.for_each(index, |entry, key| {
            let expected = expected.get(entries.entries);
            entries.wrong += usize::from(
                expected.is_none_or(|(bytes, of)| (bytes.as_slice(), of.as_slice()) != (entry, key)),
            );
            entries.entries += 1;
            Ok(())
        })?;
        Ok(entries)
    }
}

/// What an index holds.
pub(super) struct IndexEntries {
    pub(super) rows: usize,
    pub(super) entries: usize,
    /// Those that are not at their place in the order of the rows' entries.
    pub(super) wrong: usize,
}

impl<S: OrderedStore> RowSource for StoreRows<'_, S> {
    fn for_each_row<T: Row>(&self, visit: &mut dyn FnMut(T) -> Result<(), Failure>) -> Result<(), Failure> {
        let table = OrderedTable::of::<T>();
        self.0.for_each(table, |key, row| visit(decode::<T, T>(&decode_key::<T>(key)?, row)?))
    }
}
