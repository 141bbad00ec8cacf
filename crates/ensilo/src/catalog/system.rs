//! The system tables: the catalog as rows.
//!
//! # Layout
//! | table | key | columns |
//! |---|---|---|
//! | `ensilo.tables` | `store` u32 | `name` text (unique index `by_name`), `schema` bytes: the schema as the table was created or changed, with those before ([`SchemaHistory`]) |
//! | `ensilo.indexes` | `table` u32, `store` u32 | `name` text, `definition` bytes: a schema with this one index |
//!
//! A row of `ensilo.indexes` whose `store` is odd, and that has a table, is that of the table's [long values](crate::long_values): its `name` is empty, and its
//! `definition` is the schema of the table.
//!
//! A row of `ensilo.indexes` whose `table` is 0 is none of an index: its `store` is the largest id of a table whose changes may be kept for the
//! change feed; the next odd one may have been that of its long values. Its `name` is that of the table where that has taken the place of one that was truncated, and empty otherwise.
//!
//! Their rows are written by ordinary transactions, so that the log and checkpoints hold them like all
//! others; checkpoints hold them twice, because without them no other row can be read.

use std::sync::Arc;

use ensilo_engine::{Engine, Store, TableId};
use ensilo_log::DEFINITION_TABLES;
use ensilo_row::{ColumnType, Order, RowBuf, Schema, SchemaError, SchemaHistory, Value};

use super::index_core::IndexCore;
use super::table_core::{TableCore, new_store};
use crate::dynamic::DynamicTable;
use crate::queue::Queues;
use crate::row_words::whole;
use crate::transaction::Transaction;
use crate::{Error, Result};

/// Of no table: in `ensilo.indexes` it stands before the largest id of a table whose changes may be kept.
pub(super) const NO_TABLE: TableId = TableId(0);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct SystemTables<E: Engine> {
    tables: Arc<TableCore<E::Store>>,
    indexes: Arc<TableCore<E::Store>>,
}

impl<E: Engine> SystemTables<E> {
    pub(super) fn new(engine: &E, database: u64, queues: &Arc<Queues>) -> Result<Self> {
        let tables_schema = Schema::builder("ensilo.tables")
            .column("store", ColumnType::U32)
            .column("name", ColumnType::Text)
            .column("schema", ColumnType::Bytes)
            .key([("store", Order::Ascending)])
            .unique_index("by_name", [("name", Order::Ascending)])
            .build();
        let indexes_schema = Schema::builder("ensilo.indexes")
            .column("table", ColumnType::U32)
            .column("store", ColumnType::U32)
            .column("name", ColumnType::Text)
            .column("definition", ColumnType::Bytes)
            .key([("table", Order::Ascending), ("store", Order::Ascending)])
            .build();
        let [tables_id, indexes_id] = DEFINITION_TABLES.map(TableId);
        let tables = system_table(engine, (database, queues), tables_id, tables_schema)?;
        let by_name = tables.schema.indexes().iter().enumerate().map(|(number, schema)| {
            let store = new_store(engine, TableId(2))?;
            let index = IndexCore::new(database, schema.clone(), store, Some(number));
            index.mark_ready(0);
            Ok(Arc::new(index))
        });
        tables.indexes.publish(by_name.collect::<Result<_>>()?, engine.epochs());
        let indexes = system_table(engine, (database, queues), indexes_id, indexes_schema)?;
        Ok(SystemTables { tables, indexes })
    }

    pub(super) fn all(&self) -> [&Arc<TableCore<E::Store>>; 2] {
        [&self.tables, &self.indexes]
    }

    /// Returns the stores of the system tables and of their indexes.
    pub(super) fn stores(&self) -> impl Iterator<Item = TableId> + '_ {
        self.all().into_iter().flat_map(|table| {
            let indexes = table.indexes.snapshot();
            let indexes: Vec<_> = indexes.iter().map(|index| index.store.id()).collect();
            std::iter::once(table.store.id()).chain(indexes)
        })
    }

    /// Adds the rows of a new table.
    pub(super) fn insert_table(
        &self,
        tx: &mut Transaction<'_, E>,
        table: &TableCore<E::Store>,
        indexes: &[Arc<IndexCore<E::Store>>],
    ) -> Result<()> {
        DynamicTable::<E>::new(Arc::clone(&self.tables)).insert(tx, &row_of(table))?;
        self.upsert_long_values(tx, table)?;
        indexes.iter().try_for_each(|index| self.insert_index(tx, table, index))
    }

    /// Replaces the rows of a table whose schema was changed, and of its indexes.
    pub(super) fn replace_table(
        &self,
        tx: &mut Transaction<'_, E>,
        table: &TableCore<E::Store>,
        indexes: &[Arc<IndexCore<E::Store>>],
    ) -> Result<()> {
        DynamicTable::<E>::new(Arc::clone(&self.tables)).replace(tx, &row_of(table))?;
        self.upsert_long_values(tx, table)?;
        let rows = DynamicTable::<E>::new(Arc::clone(&self.indexes));
        indexes.iter().try_for_each(|index| rows.replace(tx, &row_of_index(table, index)?))
    }

    /// Adds the row of a table's long values, if it has any, or makes it anew.
    fn upsert_long_values(&self, tx: &mut Transaction<'_, E>, table: &TableCore<E::Store>) -> Result<()> {
        let Some(long) = &table.long else { return Ok(()) };
        let mut definition = Vec::new();
        table.schema.encode(&mut definition);
        let row = [table.store.id().0.into(), long.store.id().0.into(), "".into(), definition.into()];
        DynamicTable::<E>::new(Arc::clone(&self.indexes)).upsert(tx, &row)
    }

    /// Adds the row of a new index.
    pub(super) fn insert_index(
        &self,
        tx: &mut Transaction<'_, E>,
        table: &TableCore<E::Store>,
        index: &IndexCore<E::Store>,
    ) -> Result<()> {
        DynamicTable::<E>::new(Arc::clone(&self.indexes)).insert(tx, &row_of_index(table, index)?).map(|_| ())
    }

    /// Notes that the ids of a table and of its long values were given (G3). When the table is dropped an opening may find nothing else of it, while
    /// log files that are kept for the change feed name it still. There are notes of the last table alone. The note of a table that takes the place
    /// of a truncated one says so to consumers of the change feed ([`SystemTables::emptied`]): it has the table's own id.
    pub(super) fn note_given(
        &self,
        tx: &mut Transaction<'_, E>,
        table: &TableCore<E::Store>,
        is_truncated: bool,
    ) -> Result<()> {
        let indexes = DynamicTable::<E>::new(Arc::clone(&self.indexes));
        let own = table.store.id();
        // The note of the table's own id is one of the next id as well.
        let later =
            table.long.as_ref().map(|long| long.store.id()).filter(|long| *long > with_long_values(own));
        let (no_table, largest) = (Value::from(NO_TABLE.0), u64::from(later.unwrap_or(own).0));
        let mut before = Vec::new();
        indexes
            .scan()
            .prefix(std::slice::from_ref(&no_table))?
            .for_each(tx, |key, _| before.push(key.to_vec()))?;
        if before.iter().any(|key| matches!(key[1], Value::Unsigned(known) if known >= largest)) {
            return Ok(());
        }
        before.iter().try_for_each(|key| indexes.delete(tx, key).map(|_| ()))?;
        let mut definition = Vec::new();
        table.schema.encode(&mut definition);
        let name = if is_truncated { &*table.name } else { "" };
        for (id, name) in [(own, name)].into_iter().chain(later.map(|long| (long, ""))) {
            let note = [no_table.clone(), id.0.into(), name.into(), definition.clone().into()];
            indexes.insert(tx, &note)?;
        }
        Ok(())
    }

    /// Returns the id of the store in whose favour a table was truncated, if that is what this row of `ensilo.indexes` says.
    pub(crate) fn emptied(&self, key: &[u8], row: &[u8]) -> Option<TableId> {
        let mut words = RowBuf::new();
        words.set_bytes(row);
        let mut values = Vec::new();
        whole(self.indexes.schema.decode_row(key, &words, &mut values));
        match &values[..] {
            [Value::Unsigned(table), Value::Unsigned(store), Value::Text(name), _] => {
                let is_note = *table == u64::from(NO_TABLE.0) && !name.is_empty();
                u32::try_from(*store).ok().filter(|_| is_note).map(TableId)
            }
            _ => None,
        }
    }

    /// Deletes the rows of a table and of its indexes.
    pub(super) fn delete_table(
        &self,
        tx: &mut Transaction<'_, E>,
        table: &TableCore<E::Store>,
    ) -> Result<()> {
        let id: Value = table.store.id().0.into();
        DynamicTable::<E>::new(Arc::clone(&self.tables)).delete(tx, std::slice::from_ref(&id))?;
        let indexes = DynamicTable::<E>::new(Arc::clone(&self.indexes));
        let mut keys = Vec::new();
        indexes.scan().prefix(&[id])?.for_each(tx, |key, _| keys.push(key.to_vec()))?;
        keys.iter().try_for_each(|key| indexes.delete(tx, key).map(|_| ()))
    }

    /// Deletes the row of an index.
    pub(super) fn delete_index(
        &self,
        tx: &mut Transaction<'_, E>,
        table: &TableCore<E::Store>,
        index: &IndexCore<E::Store>,
    ) -> Result<()> {
        let key = [table.store.id().0.into(), index.store.id().0.into()];
        DynamicTable::<E>::new(Arc::clone(&self.indexes)).delete(tx, &key).map(|_| ())
    }
}

/// Returns the id that the long values of a table have if they were made with it.
pub(super) const fn with_long_values(table: TableId) -> TableId {
    TableId(table.0 + 2)
}

/// Returns the row of a table.
fn row_of<S: Store>(table: &TableCore<S>) -> [Value; 3] {
    let mut schema = Vec::new();
    table.history().encode(&table.schema, &mut schema);
    [table.store.id().0.into(), (*table.name).into(), schema.into()]
}

/// Returns the row of an index.
fn row_of_index<S: Store>(table: &TableCore<S>, index: &IndexCore<S>) -> Result<[Value; 4]> {
    let mut definition = Vec::new();
    alone(table, index).map_err(Error::from_schema)?.encode(&mut definition);
    Ok([table.store.id().0.into(), index.store.id().0.into(), (*index.name).into(), definition.into()])
}

/// Returns the table's schema with this one index.
fn alone<S: Store>(table: &TableCore<S>, index: &IndexCore<S>) -> Result<Schema, SchemaError> {
    let names: Vec<_> = table.schema.indexes().iter().map(|index| index.name().to_owned()).collect();
    let bare = names.iter().fold((*table.schema).clone(), |schema, name| schema.without_index(name));
    bare.with_index(index.schema.clone())
}

fn system_table<E: Engine>(
    engine: &E,
    (database, queues): (u64, &Arc<Queues>),
    id: TableId,
    schema: Result<Schema, SchemaError>,
) -> Result<Arc<TableCore<E::Store>>> {
    let schema = schema.map_err(Error::from_schema)?;
    let name: Arc<str> = schema.name().into();
    Ok(Arc::new(TableCore::new(
        database,
        name,
        (schema, SchemaHistory::default()),
        new_store(engine, id)?,
        None,
        queues,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Database;
    use crate::long_values::LongStore;

    /// As where memory was freed between the two, and the second try took another id.
    #[test]
    fn a_truncation_is_noted_under_the_tables_own_id_wherever_its_long_values_lie() {
        let db = Database::in_memory().unwrap();
        let shared = &db.shared;
        for (own, long) in [(101, 103), (201, 205), (301, 281)] {
            let own = TableId(own);
            let schema = Schema::builder("t").column("text", ColumnType::Text).build().unwrap();
            let name: Arc<str> = "t".into();
            let [store, pieces] = [own, TableId(long)].map(|id| new_store(&*shared.engine, id).unwrap());
            let queues = &shared.catalog.queues;
            let long_values =
                LongStore::new(shared.id(), (own, &name), pieces, queues, (false, false)).unwrap();
            let schema = (schema, SchemaHistory::default());
            let table = TableCore::new(shared.id(), name, schema, store, Some(long_values), queues);
            let system = &shared.catalog.system;
            let notes = DynamicTable::<crate::Silo>::new(Arc::clone(&system.indexes));
            let prefix = [Value::from(NO_TABLE.0)];
            let noted = db.transact(|tx| {
                system.note_given(tx, &table, true)?;
                let mut keys = Vec::new();
                notes.scan().prefix(&prefix)?.for_each(tx, |key, _| keys.push(key.to_vec()))?;
                let mut noted = Vec::new();
                for key in keys {
                    let name = notes.get_columns(tx, &key, &["name"])?.unwrap().remove(0);
                    notes.delete(tx, &key)?;
                    noted.push((key[1].clone(), name));
                }
                Ok(noted)
            });
            let noted = noted.unwrap();
            assert!(noted.contains(&(own.0.into(), "t".into())), "{noted:?}");
            assert_eq!(noted.len(), if long > own.0 + 2 { 2 } else { 1 }, "{noted:?}");
        }
    }
}
