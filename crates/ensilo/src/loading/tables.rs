//! Which tables are to be loaded: made when a database is opened, before any transaction begins.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use ensilo_engine::{Direction, Engine, Store, TableId};
use ensilo_log::{CheckpointBlock, CheckpointBlocks};

use super::background::{Background, LoadedTable, Loading};
use super::cell::LoadRows;
use super::table_load::{LoadShared, TableLoad};
use crate::Result;
use crate::catalog::table_core::TableCore;
use crate::durable::RecoveryHook;
use crate::shared::DatabaseShared;

/// See the module's documentation.
pub(crate) struct Loads<E: Engine> {
    shared: Arc<LoadShared<E>>,
    /// The blocks that nobody has asked for yet, by table.
    blocks: BTreeMap<TableId, Vec<CheckpointBlock>>,
    /// Keys that the log has deleted.
    deleted: HashMap<TableId, HashSet<Box<[u8]>>>,
    tables: Vec<LoadedTable<E>>,
    bytes_at_once: u64,
}

impl<E: Engine> Loads<E> {
    /// Returns what there is to load: `blocks`, but for the keys that the log has `deleted`.
    pub(crate) fn new(
        database: &DatabaseShared<E>,
        mut blocks: CheckpointBlocks,
        deleted: Vec<(TableId, Box<[u8]>)>,
    ) -> Self {
        let mut by_table = BTreeMap::<_, Vec<_>>::new();
        for block in blocks.take() {
            by_table.entry(TableId(block.table)).or_default().push(block);
        }
        let mut deleted_by_table = HashMap::<_, HashSet<_>>::new();
        for (table, key) in deleted {
            deleted_by_table.entry(table).or_default().insert(key);
        }
        let shared = LoadShared {
            engine: Arc::clone(&database.engine),
            blocks,
            records: Arc::clone(&database.records),
            state: Arc::clone(&database.loading.state),
            threads: database.options.durable.recovery_threads,
            hands: Mutex::default(),
        };
        Loads {
            shared: Arc::new(shared),
            blocks: by_table,
            deleted: deleted_by_table,
            tables: Vec::new(),
            bytes_at_once: 0,
        }
    }

    /// Returns the tables that have rows in the checkpoint.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TableId> + '_ {
        let begun = self.tables.iter().map(|(_, load)| load.id());
        self.blocks.keys().copied().chain(begun)
    }

    /// Sees to it that rows of the table are loaded when they are touched, if it has any in the checkpoint.
    pub(crate) fn add(&mut self, table: &Arc<TableCore<E::Store>>) {
        if let Some(load) = self.take(table, true) {
            let blocks = load.blocks();
            let named = (load.id(), &table.name);
            self.shared.state.add_table(named, blocks.all().len() as u64, blocks.bytes());
            table.load.begin(Arc::clone(&load) as Arc<dyn LoadRows<E::Store>>);
            self.tables.push((Arc::clone(table), load));
        }
    }

    /// Loads the rows of a table at once; its indexes have to get their entries.
    pub(crate) fn load_now(&mut self, table: &Arc<TableCore<E::Store>>) -> Result<()> {
        let Some(load) = self.take(table, false) else { return Ok(()) };
        self.bytes_at_once += load.blocks().bytes();
        let all = (Bound::Unbounded, Bound::Unbounded);
        load.load_piece(all, Direction::Forward, usize::MAX).map(|_| ())
    }

    /// Returns how many bytes were loaded at once.
    pub(crate) fn bytes_at_once(&self) -> u64 {
        self.bytes_at_once
    }

    /// Begins to load all tables in the background.
    pub(crate) fn start(self, loading: &Loading, hook: Option<RecoveryHook>) {
        let Loads { shared, tables, .. } = self;
        loading.set_thread(Background { shared, tables, hook }.start());
    }

    fn take(&mut self, table: &TableCore<E::Store>, is_counted: bool) -> Option<Arc<TableLoad<E>>> {
        let blocks = self.blocks.remove(&table.store.id())?;
        let deleted = self.deleted.remove(&table.store.id()).unwrap_or_default();
        Some(Arc::new(TableLoad::new(&self.shared, table, blocks, deleted, is_counted)))
    }
}
