//! The catalog: which tables and indexes a database has.
//!
//! It stands twice. What handles and statements use is in memory ([`TableCore`],
//! [`IndexCore`](index_core::IndexCore)). What is durable once there is a log, and what tells a reopened
//! database its tables, are rows of two tables of the engine itself, written by transactions like any other:
//! see [`system`].
//!
//! # Invariants
//! - G1: changes are made one at a time, under the lock of [`Catalog::change`].
//! - G2: a change is first made where it may fail, in the engine's stores and the system tables; then it is
//!   published in memory, which cannot.
//! - G3: the id of a store is never used again while files have anything of it: log, checkpoint, or what is kept for the change feed.

mod build_index;
mod change;
mod change_schema;
pub(crate) mod dropped;
pub(crate) mod index_core;
pub(crate) mod index_set;
mod load;
pub(crate) mod rebuild;
mod rebuild_broken;
pub(crate) mod refused_opening;
pub(crate) mod system;
mod system_rows;
pub(crate) mod table_core;
mod truncate;
mod wait;

use std::collections::HashMap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use ensilo_engine::{Engine, Store, TableId};

use self::dropped::{DroppedName, DroppedNames};
use self::system::SystemTables;
use self::table_core::{TableCore, new_store};
use crate::error::{Error, Name, NamedStore, Result};
use crate::mutex::lock;
use crate::queue::Queues;
use crate::sequence::Sequences;
use crate::transaction::Transaction;

/// The first number of a store that does not belong to the system. Number `n` stands for two ids: `2n` of an
/// index and `2n + 1` of a table, because stores of odd ids are logged and those of even ids are built anew
/// from them.
const FIRST_STORE_NUMBER: u32 = 8;

/// Names that begin so belong to the system.
const SYSTEM_PREFIX: &str = "ensilo.";

type TablesByName<S> = HashMap<Arc<str>, Arc<TableCore<S>>>;

/// The tables of a database.
pub(crate) struct Catalog<E: Engine> {
    pub(crate) system: SystemTables<E>,
    tables: RwLock<TablesByName<E::Store>>,
    pub(crate) dropped: DroppedNames,
    pub(crate) queues: Arc<Queues>,
    pub(crate) sequences: Sequences,
    changes: Mutex<Changes>,
}

/// What the transaction that changes the catalog's rows writes besides.
pub(crate) type AlsoWrites<'a, E> = &'a dyn Fn(&mut Transaction<'_, E>) -> Result<()>;

/// The same of the transaction that makes a table, which nobody else knows yet.
pub(crate) type AlsoWritesTo<'a, E> =
    &'a dyn Fn(&mut Transaction<'_, E>, &Arc<TableCore<<E as Engine>::Store>>) -> Result<()>;

/// What changes of the catalog alone need.
pub(crate) struct Changes {
    next_number: u32,
}

/// What a new store is to hold.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// The rows of a table.
    Table,
    /// The entries of a secondary index.
    Index,
}

impl<E: Engine> Catalog<E> {
    pub(crate) fn new(engine: &E, database: u64) -> Result<Self> {
        let queues = Queues::new();
        let system = SystemTables::new(engine, database, &queues)?;
        let changes = Mutex::new(Changes { next_number: FIRST_STORE_NUMBER });
        let (tables, dropped) = (RwLock::default(), DroppedNames::default());
        Ok(Catalog { system, tables, dropped, queues, sequences: Sequences::default(), changes })
    }

    /// Returns the table of this name, which is none of the system.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<TableCore<E::Store>>> {
        let table = self.any_table(name).filter(|_| !is_of_system(name));
        table.ok_or_else(|| Error::UnknownTable(Name::new(name)))
    }

    /// Returns the table of this name, also that of the sequences.
    pub(crate) fn any_table(&self, name: &str) -> Option<Arc<TableCore<E::Store>>> {
        self.read().get(name).cloned()
    }

    /// Returns the tables that programs have made, in the order of their names.
    pub(crate) fn tables_of_programs(&self) -> Vec<Arc<TableCore<E::Store>>> {
        let mut tables = self.tables();
        tables.retain(|table| !is_of_system(&table.name));
        tables
    }

    /// Returns all tables in the order of their names, without those that the catalog consists of.
    pub(crate) fn tables(&self) -> Vec<Arc<TableCore<E::Store>>> {
        let mut tables: Vec<_> = self.read().values().cloned().collect();
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        tables
    }

    /// Returns the table or index that a store is, or was.
    pub(crate) fn named_store(&self, id: TableId) -> Option<NamedStore> {
        for table in self.tables().iter().chain(self.system.all()) {
            if table.store.id() == id {
                return Some(NamedStore { name: Arc::clone(&table.name), keys: Some(table.keys(None)) });
            }
            if table.long.as_ref().is_some_and(|long| long.store.id() == id) {
                let keys = table.keys(None).of_pieces();
                return Some(NamedStore { name: Arc::clone(&table.name), keys: Some(keys) });
            }
            if let Some(index) = table.indexes.snapshot().iter().find(|index| index.store.id() == id) {
                let name = format!("{}.{}", table.name, index.name).into();
                return Some(NamedStore { name, keys: Some(table.keys(Some(index))) });
            }
        }
        self.dropped.get(id).map(|dropped| NamedStore { name: dropped.in_abort(), keys: None })
    }

    /// Notes the names of a table and of its indexes, the stores of which are about to be dropped.
    fn note_dropped(&self, table: &TableCore<E::Store>) {
        let name = || DroppedName::Table(Arc::clone(&table.name));
        for index in table.indexes.snapshot() {
            self.dropped.add(index.store.id(), name());
        }
        if let Some(long) = &table.long {
            self.dropped.add(long.store.id(), name());
        }
        self.dropped.add(table.store.id(), name());
    }

    /// Locks the catalog for a change.
    pub(crate) fn change(&self) -> MutexGuard<'_, Changes> {
        lock(&self.changes)
    }

    /// Returns whether somebody has it locked for a change.
    pub(crate) fn is_being_changed(&self) -> bool {
        matches!(self.changes.try_lock(), Err(TryLockError::WouldBlock))
    }

    fn read(&self) -> RwLockReadGuard<'_, TablesByName<E::Store>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, TablesByName<E::Store>> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses the name of a table of the system for one of a program.
pub(crate) fn check_is_of_program(name: &str) -> Result<()> {
    if is_of_system(name) {
        return Err(Error::InvalidSchema(Name::new(format!(
            "names with {SYSTEM_PREFIX} belong to the system"
        ))));
    }
    Ok(())
}

/// Returns whether a table of this name belongs to the system.
pub(crate) fn is_of_system(name: &str) -> bool {
    name.starts_with(SYSTEM_PREFIX)
}

impl Changes {
    /// Makes an empty store.
    fn new_store<E: Engine>(&mut self, engine: &E, kind: StoreKind) -> Result<Arc<E::Store>> {
        let id = TableId(2 * self.next_number + u32::from(kind == StoreKind::Table));
        self.next_number += 1;
        new_store(engine, id)
    }

    /// Sees to it that no store gets this id any more.
    fn pass_over(&mut self, id: TableId) {
        self.next_number = self.next_number.max(id.0 / 2 + 1);
    }
}
