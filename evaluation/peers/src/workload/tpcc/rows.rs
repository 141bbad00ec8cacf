//! Rows of TPC-C's tables in transactions on keys and bytes: in the key codec and the row format of Ensilo.

use std::ops::ControlFlow;

use ensilo::row::{KeyBuf, RowBuf, Words};
use ensilo::{Columns, Key, Row};
use ensilo_bench::driver::Failure;

use crate::engine::{OrderedRange, OrderedRead, OrderedTable, OrderedWrite, scan};

/// A transaction that knows rows.
pub(super) struct Rows<'a, X: ?Sized> {
    transaction: &'a mut X,
    /// The row that was read last.
    read: Vec<u8>,
    /// The row that is written.
    row: RowBuf,
    bytes: Vec<u8>,
}

/// The bytes of a row.
#[derive(Clone, Copy)]
struct RowBytes<'r>(&'r [u8]);

impl Words for RowBytes<'_> {
    #[inline]
    fn len_bytes(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        let rest = self.0.get(index * 8..).unwrap_or_default();
        if let Some(whole) = rest.first_chunk::<8>() {
            return u64::from_le_bytes(*whole);
        }
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }
}

/// Makes `bytes` the bytes of `row`.
pub(super) fn put_bytes(row: &RowBuf, bytes: &mut Vec<u8>) {
    bytes.clear();
    row.words().iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.truncate(row.len_bytes());
}

/// The columns in the bytes of a row.
pub(super) fn decode<T: Row, C: Columns<T>>(key: &T::Key, bytes: &[u8]) -> Result<C, Failure> {
    // What is shorter than every row is none.
    let is_row = bytes.len() >= T::FIXED_LEN;
    let columns = if is_row { C::decode(key, &RowBytes(bytes)).ok() } else { None };
    columns.ok_or_else(|| broken::<T>("a row is no row"))
}

pub(super) fn decode_key<T: Row>(bytes: &[u8]) -> Result<T::Key, Failure> {
    T::Key::decode(bytes).map_err(|_| broken::<T>("a key is no key"))
}

#[cold]
pub(super) fn broken<T: Row>(what: &str) -> Failure {
    Failure::Broken(format!("table {}: {what}", T::DESCRIPTION.table))
}

pub(super) fn encoded(key: &impl Key) -> KeyBuf {
    let mut bytes = KeyBuf::new();
    key.encode(&mut bytes);
    bytes
}

/// The end of the keys that begin with `prefix`, which has a byte that is not the highest.
pub(super) fn end_of(prefix: &KeyBuf) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while end.pop_if(|last| *last == u8::MAX).is_some() {}
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

impl<'a, X: OrderedRead + ?Sized> Rows<'a, X> {
    pub(super) fn of(transaction: &'a mut X) -> Self {
        Self { transaction, read: Vec::new(), row: RowBuf::new(), bytes: Vec::new() }
    }

    /// Some columns of a row, if there is one.
    pub(super) fn find<T: Row, C: Columns<T>>(&mut self, key: &T::Key) -> Result<Option<C>, Failure> {
        let is_found =
            self.transaction.get(OrderedTable::of::<T>(), encoded(key).as_bytes(), &mut self.read)?;
        if is_found { decode::<T, C>(key, &self.read).map(Some) } else { Ok(None) }
    }

    /// Some columns of a row that every TPC-C database has.
    pub(super) fn get<T: Row, C: Columns<T>>(&mut self, key: &T::Key) -> Result<C, Failure> {
        self.find(key)?.ok_or_else(|| broken::<T>("a row is missing"))
    }

    /// Returns some columns of the row that was read last and has this key.
    pub(super) fn last<T: Row, C: Columns<T>>(&mut self, key: &T::Key) -> Result<C, Failure> {
        decode::<T, C>(key, &self.read)
    }

    /// Shows some columns of the rows from the key `first` to the last that begins with `prefix`, until `visit` breaks.
    pub(super) fn scan<T: Row, C: Columns<T>>(
        &mut self,
        first: &impl Key,
        prefix: &impl Key,
        mut visit: impl FnMut(T::Key, C) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        let (start, end) = (encoded(first), end_of(&encoded(prefix)));
        let table = OrderedTable::of::<T>();
        let range = OrderedRange { table, start: start.as_bytes(), end: &end, is_reverse: false };
        scan(self.transaction, range, |key, row| {
            let key = decode_key::<T>(key)?;
            let columns = decode::<T, C>(&key, row)?;
            Ok(visit(key, columns))
        })
    }

    /// Shows the primary keys in the entries of the index of `T` that begin with `prefix`, until `visit` breaks.
    pub(super) fn scan_index<T: Row>(
        &mut self,
        prefix: &impl Key,
        is_reverse: bool,
        mut visit: impl FnMut(T::Key) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        let table = OrderedTable::of::<T>().index().ok_or_else(|| broken::<T>("it has no index"))?;
        let start = encoded(prefix);
        let range = OrderedRange { table, start: start.as_bytes(), end: &end_of(&start), is_reverse };
        scan(self.transaction, range, |_, entry| decode_key::<T>(entry).map(&mut visit))
    }
}

impl<X: OrderedWrite + ?Sized> Rows<'_, X> {
    /// Puts a new row, and its entry in the index of its table.
    pub(super) fn insert<T: Row>(&mut self, key: &T::Key, row: &T) -> Result<(), Failure> {
        let table = OrderedTable::of::<T>();
        let key_bytes = encoded(key);
        row.encode(&mut self.row);
        put_bytes(&self.row, &mut self.bytes);
        self.transaction.put(table, key_bytes.as_bytes(), &self.bytes)?;
        if let Some(index) = table.index() {
            let mut entry = KeyBuf::new();
            row.index_key(key, 0, &mut entry);
            self.transaction.put(index, entry.as_bytes(), key_bytes.as_bytes())?;
        }
        Ok(())
    }

    /// Changes some columns of a row that every TPC-C database has, and returns what `change` does. It changes none that is in an
    /// index: entries stay as they are.
    pub(super) fn update<T: Row, C: Columns<T>, R>(
        &mut self,
        key: &T::Key,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Failure> {
        let mut columns = self.get::<T, C>(key)?;
        let result = change(&mut columns);
        self.rewrite::<T, C>(key, &columns)?;
        Ok(result)
    }

    /// Puts columns into the row that was read last and has this key.
    pub(super) fn rewrite<T: Row, C: Columns<T>>(
        &mut self,
        key: &T::Key,
        columns: &C,
    ) -> Result<(), Failure> {
        let rewritten = columns.rewrite(&RowBytes(&self.read), &mut self.row);
        rewritten.map_err(|_| broken::<T>("a row is no row"))?;
        put_bytes(&self.row, &mut self.bytes);
        self.transaction.put(OrderedTable::of::<T>(), encoded(key).as_bytes(), &self.bytes)
    }

    /// Deletes a row of a table without an index.
    pub(super) fn delete<T: Row>(&mut self, key: &T::Key) -> Result<(), Failure> {
        self.transaction.delete(OrderedTable::of::<T>(), encoded(key).as_bytes())
    }
}
