//! Secondary indexes of static tables.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::Engine;
use ensilo_row::{Key, Row};

use super::Table;
use crate::catalog::index_core::IndexCore;
use crate::database::index_key_type;
use crate::error::SchemaMismatch;
use crate::{Error, Result};

/// A secondary index of a table over columns of the Rust types `K`: one type, or a tuple in the order of the
/// index's columns, with [`Reverse`](std::cmp::Reverse) around those in descending order.
///
/// Every write to the table maintains the index (Silo (SOSP 2013) §4.7). A look-up takes two descents, one in
/// the index and one in the table; those in the table are made in batches.
pub struct Index<T: Row, K: Key, E: Engine = Silo> {
    pub(super) table: Table<T, E>,
    pub(crate) core: Arc<IndexCore<E::Store>>,
    keys: PhantomData<fn(K) -> K>,
}

impl<T: Row, E: Engine> Table<T, E> {
    /// Returns a handle to the index of this name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] when the table was dropped, [`Error::UnknownIndex`];
    /// [`Error::SchemaMismatch`] when `K` are not the types of its columns.
    pub fn index<K: Key>(&self, name: &str) -> Result<Index<T, K, E>> {
        self.core.check_exists()?;
        let core = self.core.index(name)?;
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
        let (name, keys) = (&index.name, index_key_type(&self.core.schema, index.schema.parts()));
        let difference =
            format!("its index has other columns than the handle: open it as index::<{keys}>(\"{name}\")");
        Err(Error::SchemaMismatch(SchemaMismatch::new(self.name(), vec![difference])))
    }
}

impl<T: Row, K: Key, E: Engine> Index<T, K, E> {
    /// Returns the index's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
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
