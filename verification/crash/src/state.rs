//! All that a database of the workloads holds, as plain values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use ensilo::generic::{Database, Table, Transaction};
use ensilo::{Durability, Engine, Error, Result};

use crate::further_work;
use crate::schema::{Blob, Event, Pair, Progress, Wide, table};

/// The rows and indexes of a database. Copies share their rows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DatabaseState {
    /// By worker, how far it is; `None` without the table, as everywhere here.
    pub progress: Option<BTreeMap<u32, u64>>,
    /// Rows by key.
    pub wide: Option<BTreeMap<u32, Arc<Wide>>>,
    /// Rows by key.
    pub pairs: Option<BTreeMap<(u8, u32), u64>>,
    /// Rows by key.
    pub blobs: Option<BTreeMap<u32, Arc<Blob>>>,
    /// The steps that wrote an event, in the order of the row ids.
    pub events: Option<Vec<u64>>,
    /// Table and name of each index.
    pub indexes: BTreeSet<(String, String)>,
}

impl DatabaseState {
    /// Reads everything, in one transaction, and checks that each index leads to the rows that it should.
    ///
    /// # Errors
    /// Those of the database; an [`Error::User`] when an index and its table disagree.
    pub fn read<E: Engine>(db: &Database<E>) -> Result<DatabaseState> {
        DatabaseState::read_at(db, Durability::Stored)
    }

    /// Like [`DatabaseState::read`], at some level.
    ///
    /// # Errors
    /// As [`DatabaseState::read`].
    pub fn read_at<E: Engine>(db: &Database<E>, level: Durability) -> Result<DatabaseState> {
        let db = &Reader { db, level };
        let mut state = DatabaseState::default();
        for table in db.db.list_tables()?.into_iter().filter(|table| table != further_work::TABLE) {
            for index in db.db.schema(&table)?.indexes() {
                state.indexes.insert((table.clone(), index.name().to_owned()));
            }
        }
        if let Some(table) = table::<Progress, E>(db.db)? {
            let rows = db.transact(|tx| table.scan().rows(tx))?;
            state.progress = Some(rows.into_iter().map(|row| (row.worker, row.step)).collect());
        }
        if let Some(table) = table::<Wide, E>(db.db)? {
            let rows = db.transact(|tx| table.scan().rows(tx))?;
            check_wide(db, &table, &rows, &state.indexes)?;
            state.wide = Some(rows.into_iter().map(|row| (row.id, Arc::new(row))).collect());
        }
        if let Some(table) = table::<Pair, E>(db.db)? {
            let rows = db.transact(|tx| table.scan().rows(tx))?;
            let by_value = table.index::<u64>("pair_by_value")?;
            let keys = db.transact(|tx| by_value.scan().primary_keys(tx))?;
            let mut expected: Vec<_> = rows.iter().map(|row| (row.value, (row.left, row.right))).collect();
            expected.sort_unstable();
            agree("pair_by_value", keys, expected.into_iter().map(|(_, key)| key).collect())?;
            state.pairs = Some(rows.into_iter().map(|row| ((row.left, row.right), row.value)).collect());
        }
        if let Some(table) = table::<Blob, E>(db.db)? {
            let rows = db.transact(|tx| table.scan().rows(tx))?;
            state.blobs = Some(rows.into_iter().map(|row| (row.id, Arc::new(row))).collect());
        }
        if let Some(table) = table::<Event, E>(db.db)? {
            let rows: Vec<Event> = db.transact(|tx| table.scan().rows(tx))?;
            state.events = Some(rows.into_iter().map(|row| row.step).collect());
        }
        Ok(state)
    }

    /// Returns the last step of a worker; 0 before the first.
    #[must_use]
    pub fn step_of(&self, worker: u32) -> u64 {
        self.progress.as_ref().and_then(|progress| progress.get(&worker).copied()).unwrap_or(0)
    }

    /// In what this state differs from `expected`, in few words.
    #[must_use]
    pub fn difference(&self, expected: &DatabaseState) -> String {
        let mut text = Vec::new();
        compare_maps("progress", &self.progress, &expected.progress, &mut text);
        compare_maps("wide", &self.wide, &expected.wide, &mut text);
        compare_maps("pair", &self.pairs, &expected.pairs, &mut text);
        let lengths = |blobs: &Option<BTreeMap<u32, Arc<Blob>>>| {
            let blobs = blobs.as_ref()?;
            Some(blobs.iter().map(|(&id, blob)| (id, (blob.bytes.len(), checksum(&blob.bytes)))).collect())
        };
        compare_maps("blob", &lengths(&self.blobs), &lengths(&expected.blobs), &mut text);
        let events = |events: &Option<Vec<u64>>| Some(events.as_ref()?.iter().copied().enumerate().collect());
        compare_maps("event", &events(&self.events), &events(&expected.events), &mut text);
        if self.indexes != expected.indexes {
            text.push(format!("indexes {:?} instead of {:?}", self.indexes, expected.indexes));
        }
        text.join("; ")
    }
}

impl fmt::Debug for DatabaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = |len: Option<usize>| len.map_or("none".to_owned(), |len| len.to_string());
        f.debug_struct("DatabaseState")
            .field("progress", &self.progress)
            .field("wide", &len(self.wide.as_ref().map(BTreeMap::len)))
            .field("pairs", &len(self.pairs.as_ref().map(BTreeMap::len)))
            .field("blobs", &len(self.blobs.as_ref().map(BTreeMap::len)))
            .field("events", &len(self.events.as_ref().map(Vec::len)))
            .field("indexes", &self.indexes)
            .finish()
    }
}

/// A database that is read at some level.
struct Reader<'d, E: Engine> {
    db: &'d Database<E>,
    level: Durability,
}

impl<E: Engine> Reader<'_, E> {
    fn transact<R>(&self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        self.db.request().durability(self.level).transact(body)
    }
}

fn check_wide<E: Engine>(
    db: &Reader<'_, E>,
    table: &Table<Wide, E>,
    rows: &[Wide],
    indexes: &BTreeSet<(String, String)>,
) -> Result<()> {
    let by_group = table.index::<u16>("by_group")?;
    let keys = db.transact(|tx| by_group.scan().primary_keys(tx))?;
    let mut expected: Vec<_> = rows.iter().map(|row| (row.group, row.id)).collect();
    expected.sort_unstable();
    agree("by_group", keys, expected.into_iter().map(|(_, id)| id).collect())?;
    if indexes.contains(&("wide".to_owned(), "by_amount".to_owned())) {
        let by_amount = table.index::<i64>("by_amount")?;
        let keys = db.transact(|tx| by_amount.scan().primary_keys(tx))?;
        let mut expected: Vec<_> = rows.iter().map(|row| (row.amount, row.id)).collect();
        expected.sort_unstable();
        agree("by_amount", keys, expected.into_iter().map(|(_, id)| id).collect())?;
    }
    Ok(())
}

fn agree<K: PartialEq + fmt::Debug>(index: &str, found: Vec<K>, expected: Vec<K>) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::rollback(format!("index {index} leads to {found:?} instead of {expected:?}")))
}

fn compare_maps<K: Ord + fmt::Debug, V: PartialEq + fmt::Debug>(
    name: &str,
    found: &Option<BTreeMap<K, V>>,
    expected: &Option<BTreeMap<K, V>>,
    text: &mut Vec<String>,
) {
    let (found, expected) = match (found, expected) {
        (Some(found), Some(expected)) => (found, expected),
        (None, None) => return,
        (found, _) => {
            text.push(format!("table {name} is {}", if found.is_some() { "there" } else { "missing" }));
            return;
        }
    };
    let keys: BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<_> = keys.into_iter().filter(|key| found.get(key) != expected.get(key)).collect();
    for key in differing.iter().take(3) {
        let (found, expected) = (found.get(key), expected.get(key));
        text.push(format!("{name} {key:?}: {found:?} instead of {expected:?}"));
    }
    if differing.len() > 3 {
        text.push(format!("{} rows of {name} differ", differing.len()));
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, &byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
