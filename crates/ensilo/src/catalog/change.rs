//! Creating and dropping tables and indexes while others run.

use std::sync::Arc;

use ensilo_engine::{Engine, Failpoint, Store, TableId};
use ensilo_row::{IndexSchema, Schema, SchemaHistory};

use super::dropped::DroppedName;
use super::index_core::{IndexCore, IndexState};
use super::table_core::TableCore;
use super::{AlsoWrites, AlsoWritesTo, Changes, StoreKind, check_is_of_program, is_of_system};
use crate::durability::Durability;
use crate::error::{Name, NameInTable};
use crate::long_values::{LongStore, can_have_long_values, drop_store};
use crate::outcome::Outcome;
use crate::shared::DatabaseShared;
use crate::transaction::Transaction;
use crate::{Error, Result, attempt, worker};

/// The indexes of a table.
pub(super) type Indexes<E> = Vec<Arc<IndexCore<<E as Engine>::Store>>>;

impl<E: Engine> DatabaseShared<E> {
    /// Creates a table with the indexes that its schema names.
    pub(crate) fn create_table(
        &self,
        schema: Schema,
        also: AlsoWrites<'_, E>,
    ) -> Result<Arc<TableCore<E::Store>>> {
        self.check_may_change()?;
        check_is_of_program(schema.name())?;
        self.create_any_table(schema, &|tx, _| also(tx))
    }

    /// Creates a table, also one of the system.
    pub(crate) fn create_any_table(
        &self,
        schema: Schema,
        also: AlsoWritesTo<'_, E>,
    ) -> Result<Arc<TableCore<E::Store>>> {
        self.check_may_change()?;
        let mut changes = self.catalog.change();
        if self.catalog.any_table(schema.name()).is_some() {
            return Err(Error::TableExists(Name::new(schema.name())));
        }
        let mut stores = Vec::new();
        let created = self.create_stores(&mut changes, schema, &mut stores).and_then(|(table, indexes)| {
            let table = Arc::new(table);
            self.change_rows(|tx| {
                self.catalog.system.insert_table(tx, &table, &indexes)?;
                self.note_given(tx, &table, false)?;
                also(tx, &table)
            })?;
            Ok((table, indexes))
        });
        if created.is_err() {
            stores.into_iter().for_each(|store| _ = self.engine.drop_store(store));
        }
        let (table, indexes) = created.map_err(|error| self.explain(error))?;
        table.indexes.publish(indexes, self.engine.epochs());
        self.catalog.write().insert(Arc::clone(&table.name), Arc::clone(&table));
        Ok(table)
    }

    /// Makes an empty table that nobody knows, and its indexes, which are not in its set yet; `stores` are those made, also when it
    /// fails.
    pub(super) fn create_stores(
        &self,
        changes: &mut Changes,
        schema: Schema,
        stores: &mut Vec<TableId>,
    ) -> Result<(TableCore<E::Store>, Indexes<E>)> {
        let name = schema.name().into();
        let store = self.new_store(changes, StoreKind::Table)?;
        stores.push(store.id());
        let keeps_inline = self.keeps_long_values_inline();
        let long = self.create_long_values(changes, (store.id(), &name), &schema, keeps_inline)?;
        stores.extend(long.iter().map(|long| long.id()));
        let table = TableCore::new(
            self.id(),
            name,
            (schema, SchemaHistory::default()),
            store,
            long,
            &self.catalog.queues,
        );
        let mut indexes = Vec::new();
        for (number, schema) in table.schema.indexes().iter().enumerate() {
            let store = self.new_store(changes, StoreKind::Index)?;
            stores.push(store.id());
            let index = IndexCore::new(self.id(), schema.clone(), store, Some(number));
            // Rows and entries of an index that is as old as its table appear at the same points in time.
            index.mark_ready(0);
            indexes.push(Arc::new(index));
        }
        Ok((table, indexes))
    }

    /// Makes a store for the long values of a table with these columns, if it can have any.
    pub(super) fn create_long_values(
        &self,
        changes: &mut Changes,
        (table, name): (TableId, &Arc<str>),
        schema: &Schema,
        keeps_inline: bool,
    ) -> Result<Option<Arc<LongStore<E::Store>>>> {
        if is_of_system(name) || !can_have_long_values(schema) {
            return Ok(None);
        }
        let store = self.new_store(changes, StoreKind::Table)?;
        let flags = (false, keeps_inline);
        LongStore::new(self.id(), (table, name), store, &self.catalog.queues, flags).map(Some)
    }

    /// Returns whether long values stay in their rows, because changes are kept.
    pub(super) fn keeps_long_values_inline(&self) -> bool {
        self.options.durable.change_feed.is_some()
    }

    /// Makes an empty store; at the memory limit after what can be freed was freed.
    fn new_store(&self, changes: &mut Changes, kind: StoreKind) -> Result<Arc<E::Store>> {
        match changes.new_store(&*self.engine, kind) {
            Err(Error::OutOfMemory(_)) if self.free_memory_of_all() => changes.new_store(&*self.engine, kind),
            outcome => outcome,
        }
    }

    /// Drops a table and its indexes.
    pub(crate) fn drop_table(&self, name: &str, also: AlsoWrites<'_, E>) -> Result<()> {
        self.check_may_change()?;
        let _changes = self.catalog.change();
        let table = self.catalog.table(name)?;
        self.change_rows(|tx| {
            self.catalog.system.delete_table(tx, &table)?;
            self.delete_numbers_of_table(tx, table.store.id().0)?;
            // As a rule it is noted since the table was made: a drop takes no memory.
            self.note_given(tx, &table, false)?;
            also(tx)
        })?;
        E::reached(Failpoint::TableRowsDeleted);
        self.catalog.note_dropped(&table);
        self.catalog.write().remove(&table.name);
        table.mark_dropped();
        self.forget_numbers_of_table(table.store.id().0);
        table.give_up_load();
        self.catalog.queues.end_table(&table.queue);
        self.notifier.note();
        E::reached(Failpoint::TableForgotten);
        table.indexes.snapshot().iter().for_each(|index| index.mark_dropped());
        self.drop_stores(&table);
        // Another table of this name has stores of its own, which know nothing of the rows of this one. Who commits with those now is refused.
        self.engine.fence_serial_order();
        Ok(())
    }

    /// Drops the stores of a table that statements cannot use any more. [`Catalog::note_dropped`](super::Catalog::note_dropped) comes before it.
    pub(super) fn drop_stores(&self, table: &TableCore<E::Store>) {
        for index in table.indexes.snapshot() {
            self.engine.drop_store(index.store.id());
        }
        drop_store(&*self.engine, table);
        self.engine.drop_store(table.store.id());
        // From here on the engine refuses every read, so that no row seems to be missing.
        table.load.end();
        self.catalog.dropped.note_drop(self.engine.epochs());
    }

    /// Drops an index.
    pub(crate) fn drop_index(&self, table: &str, name: &str, also: AlsoWrites<'_, E>) -> Result<()> {
        self.check_may_change()?;
        self.load_whole(&*self.catalog.table(table)?)?;
        let _changes = self.catalog.change();
        let table = self.catalog.table(table)?;
        let index = table.index(name)?;
        if index.state() == IndexState::Building {
            return Err(Error::IndexNotReady(NameInTable::new(&*table.name, name)));
        }
        self.change_rows(|tx| {
            self.catalog.system.delete_index(tx, &table, &index)?;
            also(tx)
        })?;
        self.take_index_out(&table, &index);
        Ok(())
    }

    /// Makes an index that writers are about to keep.
    pub(super) fn announce_index(
        &self,
        table: &Arc<TableCore<E::Store>>,
        schema: IndexSchema,
    ) -> Result<Arc<IndexCore<E::Store>>> {
        let mut changes = self.catalog.change();
        table.check_exists()?;
        let mut indexes = table.indexes.snapshot();
        if indexes.iter().any(|index| &*index.name == schema.name()) {
            return Err(Error::IndexExists(NameInTable::new(&*table.name, schema.name())));
        }
        table.current_schema().with_index(schema.clone()).map_err(Error::from_schema)?;
        let store = self.new_store(&mut changes, StoreKind::Index)?;
        let index = Arc::new(IndexCore::new(self.id(), schema, store, None));
        index.mark_announced();
        indexes.push(Arc::clone(&index));
        table.indexes.publish(indexes, self.engine.epochs());
        Ok(index)
    }

    /// Has writers keep an index that was announced.
    pub(super) fn introduce_index(&self, table: &TableCore<E::Store>, index: &IndexCore<E::Store>) {
        let _changes = self.catalog.change();
        index.mark_building();
        table.indexes.publish(table.indexes.snapshot(), self.engine.epochs());
    }

    /// Lets transactions read an index that has all of its entries.
    pub(super) fn finish_index(
        &self,
        table: &Arc<TableCore<E::Store>>,
        index: &Arc<IndexCore<E::Store>>,
        also: AlsoWrites<'_, E>,
    ) -> Result<()> {
        let _changes = self.catalog.change();
        table.check_exists()?;
        self.change_rows(|tx| {
            self.catalog.system.insert_index(tx, table, index)?;
            also(tx)
        })?;
        self.let_index_be_read(index);
        Ok(())
    }

    /// Lets transactions read an index. Its last entry was just committed.
    pub(super) fn let_index_be_read(&self, index: &IndexCore<E::Store>) {
        // A snapshot of an epoch shows what was committed before it: the last entry may be of the present
        // one.
        index.mark_ready(self.engine.epochs().global_epoch().get() + 1);
    }

    /// Removes an index that could not be built.
    pub(super) fn abandon_index(&self, table: &TableCore<E::Store>, index: &Arc<IndexCore<E::Store>>) {
        let _changes = self.catalog.change();
        // A dropped table has dropped its indexes.
        if !table.is_dropped() {
            self.take_index_out(table, index);
        }
    }

    fn take_index_out(&self, table: &TableCore<E::Store>, index: &Arc<IndexCore<E::Store>>) {
        let name = DroppedName::Index { table: Arc::clone(&table.name), index: Arc::clone(&index.name) };
        self.catalog.dropped.add(index.store.id(), name);
        index.mark_dropped();
        self.engine.drop_store(index.store.id());
        self.catalog.dropped.note_drop(self.engine.epochs());
        E::reached(Failpoint::IndexDropped);
        // Not before: a transaction that writes without keeping the index could commit beside one that still
        // reads it. Until then, one that writes an entry is undone, and runs again.
        let mut indexes = table.indexes.snapshot();
        indexes.retain(|other| !Arc::ptr_eq(other, index));
        table.indexes.publish(indexes, self.engine.epochs());
    }

    /// Waits until all of a table is in memory: its indexes are about to change, or their set.
    pub(super) fn load_whole(&self, table: &TableCore<E::Store>) -> Result<()> {
        match table.load.get() {
            Some(load) => load.load_whole(table, false, &|| Ok(())),
            None => Ok(()),
        }
    }

    /// Refuses a change of the catalog from inside a transaction of the same thread: it might wait for
    /// itself.
    pub(crate) fn check_may_change(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        if self.read_only().is_some() {
            return Err(Error::ReadOnly);
        }
        self.check_may_wait()?;
        worker::check_outside_transactions(self.id())
    }

    /// Notes that the id of a table was given, where changes of it are kept, and whether it takes the place of a truncated one.
    pub(super) fn note_given(
        &self,
        tx: &mut Transaction<'_, E>,
        table: &TableCore<E::Store>,
        is_truncated: bool,
    ) -> Result<()> {
        let keeps_changes = self.durable().is_some_and(|durable| durable.keeps_changes);
        if keeps_changes { self.catalog.system.note_given(tx, table, is_truncated) } else { Ok(()) }
    }

    /// Changes the system tables, and waits until that is stored: what nobody could open again must not be acknowledged.
    fn change_rows(&self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<()>) -> Result<()> {
        self.answer(self.commit_rows(body), Durability::Stored)
    }

    /// Changes the system tables.
    pub(super) fn commit_rows(&self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<()>) -> Outcome<()> {
        attempt::run(self, attempt::RetryPolicy::internal(self.retries), &mut |_| (), body)
    }
}
