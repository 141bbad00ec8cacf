//! Secondary indexes of static tables.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::Engine;
use ensilo_row::{Key, KeyBuf, KeyPrefix, Row};

use super::{Bounds, IndexScan, Table};
use crate::catalog::IndexCore;
use crate::error::{Name, SchemaMismatch};
use crate::transaction::ReadTransaction;
use crate::{Error, Result};

/// An index of a table over columns of the Rust types `K`: one type, or a tuple in the order of the index's columns, with
/// [`Reverse`](std::cmp::Reverse) around those in descending order.
///
/// The engine keeps it with every write to the table. A look-up through it takes two descents, one in the index and one in the
/// table; the latter are made in batches.
pub struct Index<T: Row, K: Key, E: Engine = Silo> {
    pub(super) table: Table<T, E>,
    pub(super) core: Arc<IndexCore<E::Store>>,
    keys: PhantomData<fn(K) -> K>,
}

impl<T: Row, E: Engine> Table<T, E> {
    /// The index of this name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] when the table was dropped, [`Error::UnknownIndex`];
    /// [`Error::SchemaMismatch`] when `K` are not the types of its columns.
    pub fn index<K: Key>(&self, name: &str) -> Result<Index<T, K, E>> {
        if self.core.is_dropped() {
            return Err(self.core.unknown());
        }
        let core = self.core.indexes.snapshot().into_iter().find(|index| &*index.name == name);
        let core = core.ok_or_else(|| Error::UnknownIndex(Name::new(name)))?;
        self.check_types::<K>(&core)?;
        Ok(Index { table: self.clone(), core, keys: PhantomData })
    }

    fn check_types<K: Key>(&self, index: &IndexCore<E::Store>) -> Result<()> {
        let columns = self.core.schema.columns();
        let fits = index.schema.parts().iter().map(|part| {
            let column = &columns[part.column];
            (column.column_type, column.nullable, part.order)
        });
        if fits.eq(K::PARTS.iter().map(|part| (part.column_type, part.nullable, part.order))) {
            return Ok(());
        }
        let difference = format!("index {} has columns of other types or orders than its handle", index.name);
        Err(Error::SchemaMismatch(SchemaMismatch::new(self.name(), difference)))
    }
}

impl<T: Row, K: Key, E: Engine> Index<T, K, E> {
    /// The index's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// A scan of all rows in the order of the index.
    pub fn scan(&self) -> IndexScan<'_, T, K, T, E> {
        IndexScan::new(self, Bounds::ALL)
    }

    /// A scan of the rows whose indexed columns lie in `range`.
    #[inline]
    pub fn range(&self, range: impl RangeBounds<K>) -> IndexScan<'_, T, K, T, E> {
        IndexScan::new(self, Bounds::range(&range, |key, bytes| key.encode(bytes)).of_prefixes())
    }

    /// A scan of the rows whose indexed columns begin with these: `(a,)`, `(a, b)`, and so on.
    #[inline]
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> IndexScan<'_, T, K, T, E> {
        let mut bytes = KeyBuf::new();
        prefix.append_prefix(&mut bytes);
        IndexScan::new(self, Bounds::prefix(bytes))
    }

    /// A scan of the rows with exactly these indexed columns: at most one if the index is unique and none of them is null.
    #[inline]
    pub fn equal(&self, key: &K) -> IndexScan<'_, T, K, T, E> {
        let mut bytes = KeyBuf::new();
        key.encode(&mut bytes);
        IndexScan::new(self, Bounds::prefix(bytes))
    }

    /// The first row with these indexed columns, or `None`: the row, if the index is unique.
    ///
    /// # Errors
    /// As [`IndexScan::for_each`].
    #[inline]
    pub fn get<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, key: &K) -> Result<Option<T>> {
        self.equal(key).first(tx)
    }
}

impl<T: Row, K: Key, E: Engine> Clone for Index<T, K, E> {
    fn clone(&self) -> Self {
        Index { table: self.table.clone(), core: Arc::clone(&self.core), keys: PhantomData }
    }
}

impl<T: Row, K: Key, E: Engine> fmt::Debug for Index<T, K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
