//! Scans of dynamic tables, in the order of the primary key or of an index.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Direction, Engine, ReadOf, RowRef, SnapshotOf, Store};
use ensilo_row::{KeyBuf, Malformed, RowError, Value};

use super::{DynamicTable, decode_columns};
use crate::Result;
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::long_values::Wanted;
use crate::queue;
use crate::row_words::{RowWords, key_of_bytes, whole};
use crate::table::{Bounds, ByIndex, Cursor, OwnedScan, ReadAhead, ReadOwned, ScanFlow, ScanRange};
use crate::transaction::{Inner, ReadTransaction, WriteTransaction};

/// A scan of a [`DynamicTable`], to be narrowed and then run in a transaction. As to isolation it is like
/// [`Scan`](crate::Scan).
///
/// Bounds and prefixes are values of the first columns of the primary key. After [`DynamicScan::by_index`]
/// they are values of the first columns of the index, followed by those columns of the primary key that the
/// index lacks. A bound stands for all keys that begin with it.
#[must_use = "a scan does nothing until it is run in a transaction"]
pub struct DynamicScan<'h, E: Engine = Silo> {
    table: &'h DynamicTable<E>,
    index: Option<Arc<IndexCore<E::Store>>>,
    range: ScanRange,
    /// Bounds that go on into the primary key, where the entries of a unique index do not: those of the
    /// entries within `bounds` that the scan gives.
    within: Option<Bounds>,
    columns: Option<Vec<usize>>,
}

impl<E: Engine> DynamicTable<E> {
    /// Returns a scan of all rows.
    pub fn scan(&self) -> DynamicScan<'_, E> {
        DynamicScan {
            table: self,
            index: None,
            range: ScanRange::new(Bounds::ALL),
            within: None,
            columns: None,
        }
    }
}

impl<'h, E: Engine> DynamicScan<'h, E> {
    /// Scans in the order of this index. Bounds that are set after this call are values of the index's
    /// columns; earlier ones are dropped.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`](crate::Error::UnknownIndex).
    pub fn by_index(mut self, name: &str) -> Result<Self> {
        self.index = Some(self.table.core.index(name)?);
        (self.range.bounds, self.within) = (Bounds::ALL, None);
        Ok(self)
    }

    /// Restricts the scan to the rows with keys that begin with these values.
    ///
    /// # Errors
    /// [`Error::WrongType`](crate::Error::WrongType), [`Error::KeyTooLong`](crate::Error::KeyTooLong).
    pub fn prefix(self, values: &[Value]) -> Result<Self> {
        self.between(Bound::Included(values), Bound::Included(values))
    }

    /// Restricts the scan to the rows with keys between these bounds.
    ///
    /// # Errors
    /// [`Error::WrongType`](crate::Error::WrongType), [`Error::KeyTooLong`](crate::Error::KeyTooLong).
    pub fn between(mut self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Result<Self> {
        (self.range.bounds, self.within) = (self.bounds_of(low, high)?, None);
        if let Some(index) = self.index.as_ref().filter(|index| index.schema.is_unique()) {
            let columns = index.schema.parts().len();
            if len_of(low).max(len_of(high)) > columns {
                let bounds = self.bounds_of(cut(low, columns), cut(high, columns))?;
                self.within = Some(std::mem::replace(&mut self.range.bounds, bounds));
            }
        }
        Ok(self)
    }

    /// Scans from the last row to the first.
    pub fn reverse(mut self) -> Self {
        self.range.direction = Direction::Reverse;
        self
    }

    /// Ends the scan after at most `limit` rows.
    pub fn limit(mut self, limit: usize) -> Self {
        self.range.limit = limit;
        self
    }

    /// Reads only these columns of each row, in this order.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`](crate::Error::UnknownColumn).
    pub fn columns(mut self, names: &[&str]) -> Result<Self> {
        self.columns = Some(self.table.columns(names)?);
        Ok(self)
    }

    /// Returns a cursor, which gives the primary key and the columns of one row at a time: the transaction can be used
    /// for other things in between.
    pub fn cursor(self) -> Cursor<Self, E> {
        Cursor::new(self)
    }

    /// Calls `each` with the primary key and the columns of every row, until it returns
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownIndex`](crate::Error::UnknownIndex) when the index was dropped,
    /// [`Error::IndexNotReady`](crate::Error::IndexNotReady),
    /// [`Error::IndexBroken`](crate::Error::IndexBroken).
    pub fn for_each<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(&[Value], &[Value]) -> F,
    ) -> Result<()> {
        tx.statement(|inner| {
            self.table.core.check(inner.local)?;
            let mut row = |key: &[Value], columns: &[Value]| each(key, columns).into_flow();
            match self.index.clone() {
                None => self.run_primary(inner, &mut row),
                Some(index) => self.run_index(inner, &index, &mut row),
            }
        })
    }

    /// Returns the columns of all rows.
    ///
    /// # Errors
    /// As [`DynamicScan::for_each`].
    pub fn collect<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        self.for_each(tx, |_, columns| rows.push(columns.to_vec()))?;
        Ok(rows)
    }

    /// Deletes the first row that no other open transaction has taken, and returns its primary key and its
    /// columns; `None` if there is none. All else is as with
    /// [`Scan::take_first`](crate::generic::Scan::take_first), which also says how a row is given back for
    /// later and where long work belongs.
    ///
    /// # Errors
    /// As [`DynamicScan::for_each`].
    pub fn take_first<'t>(
        self,
        tx: &mut impl WriteTransaction<'t, E>,
    ) -> Result<Option<(Vec<Value>, Vec<Value>)>> {
        let (table, range) = (&*self.table.core, self.range.clone());
        let decode = |key: &KeyBuf, row: &RowWords<'_>| self.decode(key.as_bytes(), row);
        tx.statement(|inner| match self.index.as_deref() {
            None => queue::take_first(inner, (table, self.wanted()), range, decode),
            Some(index) => {
                let is_wanted = |entry_key: &KeyBuf, key: &KeyBuf| self.is_within(index, entry_key, key);
                queue::take_first_by_index(inner, (table, index, self.wanted()), range, is_wanted, decode)
            }
        })
    }

    /// Returns the table, and what of it the scan goes through, if that is by the primary key and with all columns.
    pub(crate) fn into_range(self) -> Option<(&'h Arc<TableCore<E::Store>>, ScanRange)> {
        (self.index.is_none() && self.columns.is_none()).then_some((&self.table.core, self.range))
    }

    fn run_primary(
        self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        each: &mut impl FnMut(&[Value], &[Value]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.range.run_rows(
            inner,
            (&self.table.core, self.wanted()),
            |key, row| self.decode(key, &RowWords(row)),
            |decoded| {
                let (key, columns) = whole(decoded);
                each(&key, &columns)
            },
        )
    }

    fn run_index(
        self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        index: &IndexCore<E::Store>,
        each: &mut impl FnMut(&[Value], &[Value]) -> ControlFlow<()>,
    ) -> Result<()> {
        let table = &*self.table.core;
        let scan = ByIndex { table, index, range: self.range.clone(), wanted: self.wanted() };
        scan.run(
            inner,
            |entry_key, key| self.is_within(index, entry_key, key),
            |key, row| self.decode(key.as_bytes(), row),
            |decoded| {
                let (key, columns) = whole(decoded);
                each(&key, &columns)
            },
        )
    }

    /// Returns whether the scan gives the row of an entry within `bounds`.
    fn is_within(&self, index: &IndexCore<E::Store>, entry_key: &KeyBuf, key: &KeyBuf) -> bool {
        let Some(within) = &self.within else { return true };
        let mut full = entry_key.clone();
        whole(self.table.core.schema.complete_index_key(&index.schema, key.as_bytes(), &mut full));
        within.contains(&full)
    }

    /// Returns the columns that are asked for.
    fn wanted(&self) -> Wanted<'_> {
        self.columns.as_deref().map_or(Wanted::All, Wanted::Columns)
    }

    fn decode(&self, key: &[u8], row: &RowWords<'_>) -> Result<(Vec<Value>, Vec<Value>), Malformed> {
        let schema = &self.table.core.schema;
        let (mut key_values, mut columns) = (Vec::new(), Vec::new());
        schema.decode_key(key, &mut key_values)?;
        match &self.columns {
            Some(numbers) => decode_columns(schema, numbers, key, row, &mut columns)?,
            None => schema.decode_row(key, row, &mut columns)?,
        }
        Ok((key_values, columns))
    }

    fn encode(&self, values: &[Value]) -> Result<KeyBuf> {
        let mut bytes = KeyBuf::new();
        let schema = &self.table.core.schema;
        let encoded: Result<(), RowError> = match &self.index {
            None => schema.encode_key_prefix(values, &mut bytes),
            Some(index) => schema.encode_index_prefix(&index.schema, values, &mut bytes),
        };
        encoded.map_err(|error| self.table.refused(error))?;
        Ok(bytes)
    }

    fn bounds_of(&self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Result<Bounds> {
        Ok(Bounds::new(self.encode_bound(low)?, self.encode_bound(high)?).of_prefixes())
    }

    fn encode_bound(&self, bound: Bound<&[Value]>) -> Result<Bound<KeyBuf>> {
        Ok(match bound {
            Bound::Included(values) => Bound::Included(self.encode(values)?),
            Bound::Excluded(values) => Bound::Excluded(self.encode(values)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    }
}

#[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
impl<E: Engine> ReadAhead<E> for DynamicScan<'_, E> {
    type Row = (Vec<Value>, Vec<Value>);

    fn range(&mut self) -> &mut ScanRange {
        &mut self.range
    }

    fn read_ahead<Raw: ReadOf<E>>(
        &self,
        inner: &mut Inner<'_, Raw>,
        len: usize,
        mut each: impl FnMut(KeyBuf, Self::Row),
    ) -> Result<()> {
        let (table, range) = (&*self.table.core, self.range.limited(len));
        table.check(inner.local)?;
        let mut each = |key, decoded| {
            each(key, whole(decoded));
            ControlFlow::Continue(())
        };
        match &self.index {
            None => {
                let decode =
                    |key: &[u8], row: RowRef<'_>| (key_of_bytes(key), self.decode(key, &RowWords(row)));
                range.run_rows(inner, (table, self.wanted()), decode, |(key, decoded)| each(key, decoded))
            }
            Some(index) => {
                let is_wanted = |entry_key: &KeyBuf, key: &KeyBuf| self.is_within(index, entry_key, key);
                let decode = |key: &KeyBuf, row: &RowWords<'_>| self.decode(key.as_bytes(), row);
                ByIndex { table, index, range, wanted: self.wanted() }
                    .read_with_entry_keys(inner, is_wanted, decode, each)
            }
        }
    }

    fn into_owned(self) -> OwnedScan<impl ReadOwned<E, Self::Row>> {
        let DynamicScan { table, index, range, within, columns } = self;
        let table = table.clone();
        OwnedScan {
            table: table.core.store.id(),
            range,
            read: move |inner: &mut Inner<'_, SnapshotOf<'static, E>>,
                        range,
                        len,
                        each: &mut dyn FnMut(KeyBuf, Self::Row)| {
                let (index, within, columns) = (index.clone(), within.clone(), columns.clone());
                DynamicScan { table: &table, index, range, within, columns }.read_ahead(inner, len, each)
            },
        }
    }
}

/// Returns how many columns a bound has values for.
const fn len_of(bound: Bound<&[Value]>) -> usize {
    match bound {
        Bound::Included(values) | Bound::Excluded(values) => values.len(),
        Bound::Unbounded => 0,
    }
}

/// Returns the bound that has values for the first `columns` alone and leaves out nothing that `bound` does
/// not.
fn cut(bound: Bound<&[Value]>, columns: usize) -> Bound<&[Value]> {
    match bound {
        Bound::Included(values) | Bound::Excluded(values) if values.len() > columns => {
            Bound::Included(&values[..columns])
        }
        bound => bound,
    }
}

impl<E: Engine> fmt::Debug for DynamicScan<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicScan")
            .field("table", &self.table)
            .field("bounds", &self.range.bounds)
            .finish_non_exhaustive()
    }
}
