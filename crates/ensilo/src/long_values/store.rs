//! The store of a table's long values.

use std::sync::Arc;

use ensilo_engine::{Engine, Store, TableId};
use ensilo_row::{ColumnType, Schema, SchemaHistory, Slot, Words};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicBool;

use super::form::Wants;
use crate::catalog::table_core::TableCore;
use crate::queue::Queues;
use crate::{Error, Result};

/// The pieces of all long values of a table, whatever its columns are.
pub(crate) struct LongStore<S> {
    /// The store as a table, whose rows are loaded like those of others.
    pub(crate) pieces: Arc<TableCore<S>>,
    /// The id of the table.
    pub(super) table: TableId,
    /// Whether it may have pieces: V3. Never unset.
    is_used: AtomicBool,
    /// Whether values are to stay in their rows: because changes are kept, or because the catalog does not name this store.
    pub(super) keeps_inline: bool,
}

/// The long values of a table: its columns of variable length, and where they lie.
pub(crate) struct LongValues<S> {
    pub(crate) store: Arc<LongStore<S>>,
    pub(super) columns: Vec<(usize, Slot)>,
    /// The length of the part of a row that comes before their bytes.
    pub(super) fixed_len: usize,
}

impl<S: Store> LongStore<S> {
    /// Returns the long values in `store` of the table of this id and name.
    pub(crate) fn new(
        database: u64,
        (table, name): (TableId, &Arc<str>),
        store: Arc<S>,
        queues: &Arc<Queues>,
        (is_used, keeps_inline): (bool, bool),
    ) -> Result<Arc<Self>> {
        let schema = Schema::builder(&**name).column("piece", ColumnType::Bytes).build();
        let schema = (schema.map_err(Error::from_schema)?, SchemaHistory::default());
        let pieces = TableCore::new(database, Arc::clone(name), schema, store, None, queues);
        let (pieces, is_used) = (Arc::new(pieces), AtomicBool::new(is_used));
        Ok(Arc::new(LongStore { pieces, table, is_used, keeps_inline }))
    }

    /// Returns the same pieces, beside which values that are written stay in their rows, or do not. Nobody writes to the table meanwhile.
    pub(crate) fn keeping(self: &Arc<Self>, keeps_inline: bool) -> Arc<Self> {
        if self.keeps_inline == keeps_inline {
            return Arc::clone(self);
        }
        let (pieces, is_used) = (Arc::clone(&self.pieces), AtomicBool::new(self.is_used()));
        Arc::new(LongStore { pieces, table: self.table, is_used, keeps_inline })
    }

    pub(crate) fn id(&self) -> TableId {
        self.pieces.store.id()
    }

    /// Returns whether there may be pieces.
    #[inline(always)]
    pub(super) fn is_used(&self) -> bool {
        // Relaxed: V3. Who has found a row with a long value sees what its writer did before the commit.
        self.is_used.load(Ordering::Relaxed)
    }

    /// Notes that there are pieces, before the transaction commits that writes them.
    pub(super) fn note_use(&self) {
        if !self.is_used() {
            // Relaxed: the commit carries it.
            self.is_used.store(true, Ordering::Relaxed);
        }
    }
}

impl<S> LongValues<S> {
    /// Returns the long values of a table with this schema.
    pub(crate) fn new(schema: &Schema, store: Arc<LongStore<S>>) -> Self {
        LongValues { store, columns: schema.variable_slots().collect(), fixed_len: schema.fixed_len() }
    }

    /// Returns whether the row has a long value in a column that is asked for.
    #[inline]
    pub(super) fn are_in(&self, row: &impl Words, wanted: impl Wants) -> bool {
        self.columns.iter().any(|&(column, slot)| slot.has_long_value(row) && wanted.has(column))
    }
}

impl<S: Store> TableCore<S> {
    /// Returns whether rows that have long values get them back when they change.
    #[inline(always)]
    pub(crate) fn keeps_long_inline(&self) -> bool {
        self.long.as_ref().is_some_and(|long| long.store.keeps_inline && long.store.is_used())
    }
}

/// Returns whether a table with these columns has long values.
pub(crate) fn can_have_long_values(schema: &Schema) -> bool {
    schema.variable_slots().next().is_some()
}

/// Drops the store of a table's long values, if it has one.
pub(crate) fn drop_store<E: Engine>(engine: &E, table: &TableCore<E::Store>) {
    if let Some(long) = &table.long {
        engine.drop_store(long.store.id());
        long.store.pieces.load.end();
    }
}
