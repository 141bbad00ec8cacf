//! The catalog of a database that is opened again: the system tables' rows become tables and indexes.
//!
//! It happens before any transaction begins, on stores that hold the recovered rows; indexes get their
//! entries afterwards.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_engine::{Engine, KeyRange, Store, StoredRow, TableId};
use ensilo_epoch::Epoch;
use ensilo_row::{PrimaryKey, RowId, Schema, SchemaHistory, Value, WordSlice};

use super::index_core::IndexCore;
use super::system::{NO_TABLE, with_long_values};
use super::table_core::{TableCore, new_store};
use crate::error::Name;
use crate::loading::Loads;
use crate::long_values::{LongStore, can_have_long_values};
use crate::row_words::whole;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// The stores that a replay has filled.
type StoresById<E> = HashMap<TableId, Arc<<E as Engine>::Store>>;

/// The rows of `ensilo.indexes`, by table.
type IndexRowsByTable = HashMap<TableId, Vec<IndexRow>>;

/// What the files have had of tables and indexes.
struct Recovered<E: Engine> {
    stores: StoresById<E>,
    /// Those with rows in the checkpoint that are not in these stores yet.
    loaded_later: HashSet<TableId>,
    /// Those that rows of the system tables name.
    named: HashSet<TableId>,
}

/// A row of `ensilo.tables`.
struct TableRow {
    store: TableId,
    schema: Schema,
    history: SchemaHistory,
}

/// A row of `ensilo.indexes`.
struct IndexRow {
    store: TableId,
    name: String,
    /// A schema with this one index.
    definition: Schema,
}

impl<E: Engine> DatabaseShared<E> {
    /// Makes the tables and indexes that the system tables name, and drops all other stores: those of dropped
    /// tables.
    ///
    /// With `loads`, the rows of the checkpoint are not in these stores yet.
    pub(crate) fn load_catalog(&self, mut loads: Option<&mut Loads<E>>) -> Result<()> {
        let mut changes = self.catalog.change();
        if let Some(loads) = loads.as_deref_mut() {
            self.catalog.system.all().into_iter().try_for_each(|table| loads.load_now(table))?;
        }
        let (tables, mut indexes) = self.read_system_rows()?;
        let recovered = Recovered::new(&*self.engine, &tables, &indexes, loads.as_deref());
        let of_long_values = tables
            .iter()
            .filter(|table| can_have_long_values(&table.schema))
            .map(|table| with_long_values(table.store));
        recovered.ids().chain(of_long_values).for_each(|id| changes.pass_over(id));
        let given = indexes.remove(&NO_TABLE);
        given.iter().flatten().for_each(|given| changes.pass_over(with_long_values(given.store)));
        let mut known: HashSet<TableId> = self.catalog.system.stores().collect();
        for row in tables {
            let store = existing_or_new(&*self.engine, &recovered.stores, row.store)?;
            known.insert(row.store);
            let name: Arc<str> = row.schema.name().into();
            let own = indexes.remove(&row.store).unwrap_or_default();
            let (long, own) = own.into_iter().partition::<Vec<_>, _>(|row| row.store.is_logged());
            let long = match long.first() {
                Some(long) => Some(self.load_long_values((row.store, &name), &recovered, long.store)?),
                // A salvage may have lost the row, or the table is from before there were long values: a row that has had one is refused.
                None => self.create_long_values(&mut changes, (row.store, &name), &row.schema, true)?,
            };
            known.extend(long.iter().map(|long| long.id()));
            let table = TableCore::new(
                self.id(),
                Arc::clone(&name),
                (row.schema, row.history),
                store,
                long,
                &self.catalog.queues,
            );
            let table = Arc::new(table);
            if let Some(loads) = loads.as_deref_mut() {
                loads.add(&table);
                table.long.iter().for_each(|long| loads.add(&long.store.pieces));
            }
            let cores = own.iter().map(|index| self.load_index(&table, &recovered.stores, index));
            let cores = cores.collect::<Result<Vec<_>>>()?;
            known.extend(cores.iter().map(|index| index.store.id()));
            self.pass_over_row_ids(&table)?;
            table.indexes.publish(cores, self.engine.epochs());
            self.catalog.write().insert(name, table);
        }
        self.drop_unknown(&known);
        Ok(())
    }

    /// Row ids that the table has are not invented again, whatever invented them: earlier versions did not go
    /// by the epochs.
    fn pass_over_row_ids(&self, table: &TableCore<E::Store>) -> Result<()> {
        if *table.schema.primary_key() != PrimaryKey::RowId {
            return Ok(());
        }
        let last = self.last_key(table)?;
        if let Some(id) = last.and_then(|key| key.try_into().ok()) {
            self.row_ids.pass_over(RowId(u64::from_be_bytes(id)));
        }
        Ok(())
    }

    /// Returns the long values in this store, of the table of this id and name.
    fn load_long_values(
        &self,
        table: (TableId, &Arc<str>),
        recovered: &Recovered<E>,
        id: TableId,
    ) -> Result<Arc<LongStore<E::Store>>> {
        let store = existing_or_new(&*self.engine, &recovered.stores, id)?;
        let is_used = recovered.loaded_later.contains(&id) || self.records.of(id) > 0;
        let flags = (is_used, self.keeps_long_values_inline());
        LongStore::new(self.id(), table, store, &self.catalog.queues, flags)
    }

    fn load_index(
        &self,
        table: &TableCore<E::Store>,
        stores: &StoresById<E>,
        row: &IndexRow,
    ) -> Result<Arc<IndexCore<E::Store>>> {
        let definition = row.definition.index(&row.name).ok_or_else(|| damaged(&row.name))?.clone();
        let declared = table.schema.indexes().iter().position(|index| *index == definition);
        let store = existing_or_new(&*self.engine, stores, row.store)?;
        let index = IndexCore::new(self.id(), definition, store, declared);
        index.mark_ready(0);
        Ok(Arc::new(index))
    }

    fn drop_unknown(&self, known: &HashSet<TableId>) {
        for store in self.engine.stores() {
            if !known.contains(&store.id()) {
                self.engine.drop_store(store.id());
            }
        }
    }

    /// Returns the rows of tables, and those of indexes by their tables.
    fn read_system_rows(&self) -> Result<(Vec<TableRow>, IndexRowsByTable)> {
        let [tables, indexes] = self.catalog.system.all();
        let (mut table_rows, mut index_rows) = (Vec::new(), IndexRowsByTable::new());
        for row in rows_of(&*self.engine, tables) {
            let [Value::Unsigned(store), Value::Text(name), Value::Bytes(schema)] = &row[..] else {
                return Err(damaged("ensilo.tables"));
            };
            let (schema, history) = SchemaHistory::decode(schema).map_err(|_| damaged(name))?;
            table_rows.push(TableRow { store: id_of(*store)?, schema, history });
        }
        for row in rows_of(&*self.engine, indexes) {
            let [Value::Unsigned(table), Value::Unsigned(store), Value::Text(name), Value::Bytes(definition)] =
                &row[..]
            else {
                return Err(damaged("ensilo.indexes"));
            };
            let definition = Schema::decode(definition).map_err(|_| damaged(name))?;
            let (table, store) = (id_of(*table)?, id_of(*store)?);
            let row = IndexRow { store, name: name.to_string(), definition };
            index_rows.entry(table).or_default().push(row);
        }
        Ok((table_rows, index_rows))
    }
}

impl<E: Engine> Recovered<E> {
    fn new(
        engine: &E,
        tables: &[TableRow],
        indexes: &IndexRowsByTable,
        loads: Option<&Loads<E>>,
    ) -> Recovered<E> {
        let of_indexes = indexes
            .iter()
            .flat_map(|(table, rows)| iter::once(*table).chain(rows.iter().map(|index| index.store)));
        Recovered {
            stores: engine.stores().into_iter().map(|store| (store.id(), store)).collect(),
            loaded_later: loads.iter().flat_map(|loads| loads.ids()).collect(),
            named: tables.iter().map(|table| table.store).chain(of_indexes).collect(),
        }
    }

    /// Returns the ids that files have anything of (G3), also those of dropped tables, and of tables whose definitions a salvage has lost.
    fn ids(&self) -> impl Iterator<Item = TableId> + '_ {
        self.stores.keys().chain(&self.loaded_later).chain(&self.named).copied()
    }
}

/// Returns all rows of a system table, in key order.
fn rows_of<E: Engine>(engine: &E, table: &TableCore<E::Store>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let _ = engine.walk(
        &table.store,
        &KeyRange::ALL,
        Epoch::MAX,
        |StoredRow { key, words, len_bytes, .. }| {
            let mut values = Vec::new();
            whole(table.schema.decode_row(key, &WordSlice::new(words, len_bytes), &mut values));
            rows.push(values);
            ControlFlow::Continue(())
        },
        || ControlFlow::Continue(()),
    );
    rows
}

fn existing_or_new<E: Engine>(engine: &E, stores: &StoresById<E>, id: TableId) -> Result<Arc<E::Store>> {
    stores.get(&id).cloned().map_or_else(|| new_store(engine, id), Ok)
}

fn id_of(store: u64) -> Result<TableId> {
    u32::try_from(store).map(TableId).map_err(|_| damaged("ensilo.tables"))
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::DamagedCatalog(Name::new(what))
}
