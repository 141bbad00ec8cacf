//! A table as all handles to it share it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ensilo_engine::{Engine, NewStoreError, Store, StoredRow, TableId};
use ensilo_row::{ROW_LEN_MAX, RowBuf, Schema, SchemaHistory, WordSlice};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;

use super::index_core::{CHANGED, DROPPED, IndexCore, IndexState};
use super::index_set::IndexSetCell;
use crate::error::{Abort, DuplicateKey, KeyShape, MissingRow, Name, NameInTable, SumOutOfRange, TooLong};
use crate::loading::LoadCell;
use crate::local::Local;
use crate::long_values::{LongStore, LongValues};
use crate::older_rows::OlderRows;
use crate::queue::{Queues, TableQueue};
use crate::sequence::Numbers;
use crate::{Error, Result};

/// A table.
pub(crate) struct TableCore<S> {
    /// The id of the database that the table belongs to; [`DROPPED`], or [`CHANGED`] if handles are of an older schema.
    accepts: AtomicU64,
    pub(crate) store: Arc<S>,
    /// The secondary indexes that writers keep.
    pub(crate) indexes: IndexSetCell<S>,
    /// Until all of its rows are in memory.
    pub(crate) load: LoadCell<S>,
    pub(crate) name: Arc<str>,
    /// As it was created or changed: indexes that were made since are not in it, and some that are may have been
    /// dropped.
    pub(crate) schema: Arc<Schema>,
    /// If the schema was changed.
    pub(crate) older: Option<Box<OlderRows>>,
    /// Values that do not lie in their rows; `None` where no column can have one.
    pub(crate) long: Option<LongValues<S>>,
    pub(crate) queue: Arc<TableQueue>,
    pub(crate) queues: Arc<Queues>,
    /// What gives keys, if the table gives any.
    numbers: OnceLock<Arc<dyn Numbers<S>>>,
}

impl<S: Store> TableCore<S> {
    pub(crate) fn new(
        database: u64,
        name: Arc<str>,
        (schema, history): (Schema, SchemaHistory),
        store: Arc<S>,
        long: Option<Arc<LongStore<S>>>,
        queues: &Arc<Queues>,
    ) -> Self {
        let schema = Arc::new(schema);
        TableCore {
            accepts: AtomicU64::new(database),
            store,
            indexes: IndexSetCell::default(),
            load: LoadCell::default(),
            name,
            older: OlderRows::new(&schema, history),
            long: long.map(|store| LongValues::new(&schema, store)),
            schema,
            queue: Arc::default(),
            queues: Arc::clone(queues),
            numbers: OnceLock::new(),
        }
    }

    /// Checks whether a statement of this worker's transaction may use the table.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] when it was dropped or belongs to another database; [`Error::Cancelled`] and
    /// [`Error::DeadlineExceeded`] when the transaction is to stop.
    #[inline(always)]
    pub(crate) fn check<F>(&self, local: &Local<F>) -> Result<()> {
        // Relaxed: a statement that misses the drop gets an abort from the store itself, and is retried.
        if self.accepts.load(Ordering::Relaxed) == local.database {
            return local.check_control();
        }
        Err(self.unknown())
    }

    /// Returns whether the table is one of this database, and neither dropped nor changed.
    #[inline]
    pub(crate) fn accepts(&self, database: u64) -> bool {
        // Relaxed: as in `check`.
        self.accepts.load(Ordering::Relaxed) == database
    }

    /// # Errors
    /// [`Error::UnknownTable`] when it was dropped or belongs to another database than this one; [`Error::TableChanged`].
    pub(crate) fn check_is_of(&self, database: u64) -> Result<()> {
        if self.accepts(database) { Ok(()) } else { Err(self.unknown()) }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.accepts.load(Ordering::Relaxed) == DROPPED
    }

    /// Returns the table as it is after a change of its schema, with the same rows and without indexes; `long` are its long values.
    pub(super) fn changed(
        &self,
        database: u64,
        (schema, history): (Schema, SchemaHistory),
        long: Option<Arc<LongStore<S>>>,
    ) -> Self {
        let (name, store) = (Arc::clone(&self.name), Arc::clone(&self.store));
        let changed = Self::new(database, name, (schema, history), store, long, &self.queues);
        TableCore { queue: Arc::clone(&self.queue), numbers: self.numbers.clone(), ..changed }
    }

    /// Returns what gives keys.
    ///
    /// # Errors
    /// [`Error::UnknownSequence`] when the table gives none.
    pub(crate) fn numbers(&self) -> Result<&dyn Numbers<S>> {
        let numbers = self.numbers.get().map(|numbers| &**numbers);
        numbers.ok_or_else(|| Error::UnknownSequence(Name::new(format!("for the keys of {}", self.name))))
    }

    /// Lets the table give keys from now on, if it does not yet.
    pub(crate) fn set_numbers(&self, numbers: Arc<dyn Numbers<S>>) {
        let _ = self.numbers.set(numbers);
    }

    /// Returns this table as the one that takes the place of `before`: those who wait for rows of that wait for its rows.
    pub(super) fn in_place_of(self, before: &Self) -> Self {
        TableCore { queue: Arc::clone(&before.queue), ..self }
    }

    /// Returns the schemas that the table had before.
    pub(super) fn history(&self) -> SchemaHistory {
        self.older.as_ref().map(|older| older.history.clone()).unwrap_or_default()
    }

    /// Returns a stored row of the table as one of the schema as it is, for which `converted` is the room.
    pub(crate) fn stored_in_schema<'r>(
        &self,
        row: &StoredRow<'r>,
        converted: &'r mut RowBuf,
    ) -> WordSlice<'r> {
        let words = WordSlice::new(row.words, row.len_bytes);
        match &self.older {
            Some(older) if older.convert_stored(row.tid.epoch(), &words, converted) => {
                WordSlice::new(converted.words(), converted.len_bytes())
            }
            _ => words,
        }
    }

    /// Returns whether all rows and all long values were loaded.
    #[inline(always)]
    pub(crate) fn is_loaded(&self) -> bool {
        self.load.is_over() && self.long.as_ref().is_none_or(|long| long.store.pieces.load.is_over())
    }

    /// Gives up what is not loaded yet: the table is being dropped.
    pub(super) fn give_up_load(&self) {
        self.load.give_up();
        self.long.iter().for_each(|long| long.store.pieces.load.give_up());
    }

    /// Refuses the table to the handles that there are: its schema is about to change.
    pub(super) fn mark_changed(&self) {
        self.accepts.store(CHANGED, Ordering::Relaxed);
    }

    /// Takes [`mark_changed`](Self::mark_changed) back.
    pub(super) fn mark_unchanged(&self, database: u64) {
        self.accepts.store(database, Ordering::Relaxed);
    }

    /// Refuses the table to all statements that begin from now on.
    pub(crate) fn mark_dropped(&self) {
        self.accepts.store(DROPPED, Ordering::Relaxed);
    }

    /// Returns whether handles to the table are refused, because its schema was changed or is being changed.
    pub(crate) fn is_changed(&self) -> bool {
        self.accepts.load(Ordering::Relaxed) == CHANGED
    }

    /// # Errors
    /// [`Error::UnknownTable`] when the table was dropped, [`Error::TableChanged`].
    pub(crate) fn check_exists(&self) -> Result<()> {
        if self.is_dropped() || self.is_changed() { Err(self.unknown()) } else { Ok(()) }
    }

    /// Returns the index of this name, also one that is being built or is broken.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`].
    pub(crate) fn index(&self, name: &str) -> Result<Arc<IndexCore<S>>> {
        let indexes = self.indexes.snapshot();
        let index = indexes.iter().find(|index| &*index.name == name);
        index.cloned().ok_or_else(|| {
            let names: Vec<_> = indexes.iter().map(|index| &*index.name).collect();
            Error::UnknownIndex(NameInTable::not_among(&self.name, name, &names))
        })
    }

    #[cold]
    fn unknown(&self) -> Error {
        if self.is_dropped() {
            return Error::UnknownTable(Name::new(&*self.name));
        }
        if self.is_changed() {
            return Error::TableChanged(Name::new(&*self.name));
        }
        Error::UnknownTable(Name::new(format!("{} in this transaction's database", self.name)))
    }

    /// Returns what the primary keys consist of, or the keys in an index.
    pub(crate) fn keys(&self, index: Option<&IndexCore<S>>) -> KeyShape {
        KeyShape::new(&self.schema, index.map(|index| &index.schema))
    }

    #[cold]
    pub(crate) fn duplicate(&self, index: Option<&IndexCore<S>>, key: &[u8]) -> Error {
        let keys = self.keys(index);
        let index = index.map(|index| Arc::clone(&index.name));
        Error::DuplicateKey(DuplicateKey::new(Arc::clone(&self.name), index, keys, key))
    }

    #[cold]
    pub(crate) fn missing(&self, key: &[u8]) -> Error {
        Error::MissingRow(MissingRow::new(Arc::clone(&self.name), self.keys(None), key))
    }

    /// Makes the error of a sum that column `column` has no room for.
    #[cold]
    pub(crate) fn sum_out_of_range(&self, column: usize, key: &[u8]) -> Error {
        let column = &self.schema.columns()[column].name;
        Error::SumOutOfRange(SumOutOfRange::new(Arc::clone(&self.name), self.keys(None), key, column))
    }

    #[cold]
    pub(crate) fn row_too_large(&self, len_bytes: usize) -> Error {
        Error::RowTooLarge(TooLong::new(Arc::clone(&self.name), len_bytes, ROW_LEN_MAX))
    }

    /// Returns the schema with the indexes that there are now, broken ones too.
    pub(crate) fn current_schema(&self) -> Schema {
        self.schema_with(|index| index.state() != IndexState::Building)
    }

    /// Returns the schema with all indexes that there are now, also those that have no entries yet because the rows are being loaded.
    pub(super) fn schema_with_all_indexes(&self) -> Schema {
        self.schema_with(|_| true)
    }

    fn schema_with(&self, has: impl Fn(&IndexCore<S>) -> bool) -> Schema {
        let bare = self
            .schema
            .indexes()
            .iter()
            .fold((*self.schema).clone(), |schema, index| schema.without_index(index.name()));
        self.indexes.snapshot().iter().filter(|index| has(index)).fold(bare, |schema, index| {
            // An index that exists passed this check when it was made.
            schema.with_index(index.schema.clone()).unwrap_or(schema)
        })
    }
}

/// Makes an empty store for a table or an index.
pub(super) fn new_store<E: Engine>(engine: &E, id: TableId) -> Result<Arc<E::Store>> {
    engine.new_store(id).map_err(|error| match error {
        NewStoreError::OutOfMemory(_) => Error::OutOfMemory(Abort::out_of_memory(id)),
        _ => Error::InvalidSchema(Name::new("the database has used up its ids of tables and indexes")),
    })
}

impl<S: Store> fmt::Debug for TableCore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name)
            .field("is_dropped", &self.is_dropped())
            .finish_non_exhaustive()
    }
}
