//! Scans of dynamic tables, in the order of the primary key or of an index.

use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Direction, Engine, ReadOf};
use ensilo_row::{KeyBuf, Malformed, RowError, Value};

use super::{DynamicTable, decode_columns};
use crate::catalog::IndexCore;
use crate::error::Name;
use crate::row_words::{RowWords, whole};
use crate::table::{Bounds, ByIndex, Flow, ScanFlow};
use crate::transaction::{Inner, ReadTransaction};
use crate::{Error, Result};

/// A scan of a [`DynamicTable`], to be narrowed and then run in a transaction. As to isolation it is like
/// [`Scan`](crate::Scan).
///
/// Bounds and prefixes are values of the first columns of the primary key or, after [`DynamicScan::by_index`], of the index and
/// then of those columns of the primary key that the index does not have; a bound stands for all keys that begin with it.
#[must_use = "a scan does nothing until it is run in a transaction"]
pub struct DynamicScan<'h, E: Engine = Silo> {
    table: &'h DynamicTable<E>,
    index: Option<Arc<IndexCore<E::Store>>>,
    bounds: Bounds,
    /// Bounds that go on into the primary key, where the entries of a unique index do not: those of the entries within `bounds`
    /// that the scan gives.
    within: Option<Bounds>,
    direction: Direction,
    limit: usize,
    columns: Option<Vec<usize>>,
}

impl<E: Engine> DynamicTable<E> {
    /// A scan of all rows.
    pub fn scan(&self) -> DynamicScan<'_, E> {
        DynamicScan {
            table: self,
            index: None,
            bounds: Bounds::ALL,
            within: None,
            direction: Direction::Forward,
            limit: usize::MAX,
            columns: None,
        }
    }
}

impl<E: Engine> DynamicScan<'_, E> {
    /// In the order of this index, and with bounds that are given after this call in its columns.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`].
    pub fn by_index(mut self, name: &str) -> Result<Self> {
        let indexes = self.table.core.indexes.snapshot();
        let index = indexes.into_iter().find(|index| &*index.name == name);
        self.index = Some(index.ok_or_else(|| Error::UnknownIndex(Name::new(name)))?);
        (self.bounds, self.within) = (Bounds::ALL, None);
        Ok(self)
    }

    /// The rows whose key begins with these values.
    ///
    /// # Errors
    /// [`Error::WrongType`], [`Error::KeyTooLong`].
    pub fn prefix(self, values: &[Value]) -> Result<Self> {
        self.between(Bound::Included(values), Bound::Included(values))
    }

    /// The rows whose keys lie between these bounds.
    ///
    /// # Errors
    /// [`Error::WrongType`], [`Error::KeyTooLong`].
    pub fn between(mut self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Result<Self> {
        (self.bounds, self.within) = (self.bounds_of(low, high)?, None);
        if let Some(index) = self.index.as_ref().filter(|index| index.schema.is_unique()) {
            let columns = index.schema.parts().len();
            if len_of(low).max(len_of(high)) > columns {
                let bounds = self.bounds_of(cut(low, columns), cut(high, columns))?;
                self.within = Some(std::mem::replace(&mut self.bounds, bounds));
            }
        }
        Ok(self)
    }

    /// From the last row to the first.
    pub fn reverse(mut self) -> Self {
        self.direction = Direction::Reverse;
        self
    }

    /// At most `limit` rows.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Only these columns of each row, in this order.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`].
    pub fn columns(mut self, names: &[&str]) -> Result<Self> {
        self.columns = Some(self.table.columns(names)?);
        Ok(self)
    }

    /// Calls `each` with the primary key and the columns of every row, until it returns [`ControlFlow::Break`].
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownIndex`] when the index was dropped, [`Error::IndexNotReady`],
    /// [`Error::IndexBroken`].
    pub fn for_each<'t, F: ScanFlow>(
        self,
        tx: &mut impl ReadTransaction<'t, E>,
        mut each: impl FnMut(&[Value], &[Value]) -> F,
    ) -> Result<()> {
        tx.statement(|inner| {
            self.table.core.check(inner.local)?;
            if self.limit == 0 {
                return Ok(());
            }
            let mut flow = Flow::new(self.limit, inner.local);
            let mut row = |key: &[Value], columns: &[Value]| flow.after(each(key, columns).into_flow());
            match self.index.clone() {
                None => self.run_primary(inner, &mut row)?,
                Some(index) => self.run_index(inner, &index, &mut row)?,
            }
            flow.end()
        })
    }

    /// The columns of all rows.
    ///
    /// # Errors
    /// As [`DynamicScan::for_each`].
    pub fn collect<'t>(self, tx: &mut impl ReadTransaction<'t, E>) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        self.for_each(tx, |_, columns| rows.push(columns.to_vec()))?;
        Ok(rows)
    }

    fn run_primary(
        self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        each: &mut impl FnMut(&[Value], &[Value]) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(bounds) = self.bounds.as_slices() else { return Ok(()) };
        let store = &self.table.core.store;
        let outcome = inner.raw.scan_to_read(
            store,
            bounds,
            self.direction,
            |key, row| self.decode(key, &RowWords(row)),
            |_, decoded| {
                let (key, columns) = whole(decoded);
                each(&key, &columns)
            },
        );
        outcome.map_err(|abort| inner.lost(abort))
    }

    fn run_index(
        self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        index: &IndexCore<E::Store>,
        each: &mut impl FnMut(&[Value], &[Value]) -> ControlFlow<()>,
    ) -> Result<()> {
        let table = &*self.table.core;
        let (bounds, direction, limit) = (self.bounds.clone(), self.direction, self.limit);
        let scan = ByIndex { table, index, bounds, direction, limit };
        scan.run(
            inner,
            |entry_key, key| self.is_within(index, entry_key, key),
            |key, row| self.decode(key.as_bytes(), row),
            |_, (key, columns)| each(&key, &columns),
        )
    }

    /// Whether the scan gives the row of an entry within `bounds`.
    fn is_within(&self, index: &IndexCore<E::Store>, entry_key: &KeyBuf, key: &KeyBuf) -> bool {
        let Some(within) = &self.within else { return true };
        let mut full = entry_key.clone();
        whole(self.table.core.schema.complete_index_key(&index.schema, key.as_bytes(), &mut full));
        within.contains(&full)
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

/// How many columns a bound has values for.
const fn len_of(bound: Bound<&[Value]>) -> usize {
    match bound {
        Bound::Included(values) | Bound::Excluded(values) => values.len(),
        Bound::Unbounded => 0,
    }
}

/// The bound that has values for the first `columns` alone and leaves out nothing that `bound` does not.
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
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
