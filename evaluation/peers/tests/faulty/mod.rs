//! A store that does something wrong once.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use ensilo_bench::driver::{Aborts, Failure};
use ensilo_bench::peer::Setting;
use ensilo_peers::engine::{
    End, ORDERED_TABLES_MAX, OrderedClient, OrderedRange, OrderedRead, OrderedStore, OrderedTable,
    OrderedWrite, ReadBody, Visit, WriteBody,
};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a store does wrong once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "each test program plants some")]
pub enum Fault {
    None,
    /// A row is not written to the table.
    LostPut(OrderedTable),
    /// The first half of a row is written to the table.
    TornPut(OrderedTable),
    /// A row is not deleted from the table.
    LostDelete(OrderedTable),
    /// Nothing of a transaction is written.
    LostTransaction,
    /// A transaction that is rolled back is committed.
    LostRollback,
}

/// A store with one lock around everything.
#[derive(Debug)]
pub struct Faulty {
    tables: Mutex<[Rows; ORDERED_TABLES_MAX]>,
    fault: Fault,
    /// How often the fault could have been planted.
    chances: AtomicU64,
}

/// The chance that is taken.
const CHANCE: u64 = 2;

struct FaultyTransaction<'t> {
    store: &'t Faulty,
    tables: MutexGuard<'t, [Rows; ORDERED_TABLES_MAX]>,
    /// What rows were before.
    undo: Vec<(OrderedTable, Vec<u8>, Option<Vec<u8>>)>,
}

impl Faulty {
    pub fn with(fault: Fault) -> Self {
        Self { tables: Mutex::default(), fault, chances: AtomicU64::new(0) }
    }

    /// Whether something was done wrong.
    pub fn has_planted(&self) -> bool {
        self.chances.load(Relaxed) > CHANCE
    }

    fn plants(&self, fault: Fault) -> bool {
        self.fault == fault && self.chances.fetch_add(1, Relaxed) == CHANCE
    }

    fn begin(&self) -> FaultyTransaction<'_> {
        FaultyTransaction { store: self, tables: self.tables.lock().unwrap(), undo: Vec::new() }
    }
}

impl OrderedStore for Faulty {
    type Client<'a> = &'a Self;

    fn open(_place: &Path, _setting: Setting, _tables: &[OrderedTable]) -> Result<Self, Failure> {
        Ok(Self::with(Fault::None))
    }

    fn client(&self) -> Result<&Self, Failure> {
        Ok(self)
    }

    fn load<B: AsRef<[u8]>>(
        &self,
        table: OrderedTable,
        rows: impl Iterator<Item = (impl AsRef<[u8]>, B)>,
    ) -> Result<(), Failure> {
        let rows: Vec<_> = rows.map(|(key, row)| (key.as_ref().to_vec(), row.as_ref().to_vec())).collect();
        assert!(rows.is_sorted());
        self.tables.lock().unwrap()[table.number()].extend(rows);
        Ok(())
    }
}

impl OrderedClient for &Faulty {
    fn write(&mut self, _aborts: &mut Aborts, body: WriteBody<'_>) -> Result<End, Failure> {
        let mut transaction = self.begin();
        let end = body(&mut transaction)?;
        let is_undone = match end {
            End::Commit => self.plants(Fault::LostTransaction),
            End::RollBack => !self.plants(Fault::LostRollback),
        };
        if is_undone {
            transaction.undo();
        }
        Ok(end)
    }

    fn read(&mut self, body: ReadBody<'_>) -> Result<(), Failure> {
        body(&mut self.begin())
    }
}

impl FaultyTransaction<'_> {
    fn set(&mut self, table: OrderedTable, key: &[u8], row: Option<&[u8]>) {
        let rows = &mut self.tables[table.number()];
        let before = match row {
            Some(row) => rows.insert(key.to_vec(), row.to_vec()),
            None => rows.remove(key),
        };
        self.undo.push((table, key.to_vec(), before));
    }

    fn undo(&mut self) {
        for (table, key, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            self.set(table, &key, before.as_deref());
        }
    }
}

impl OrderedRead for FaultyTransaction<'_> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.tables[table.number()].get(key);
        row.clone_from(found.unwrap_or(&Vec::new()));
        Ok(found.is_some())
    }

    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure> {
        let mut rows = self.tables[range.table.number()].range(range.start.to_vec()..range.end.to_vec());
        let mut visit = |(key, row): (&Vec<u8>, &Vec<u8>)| -> ControlFlow<()> { visit(key, row) };
        let _ = if range.is_reverse {
            rows.rev().try_for_each(&mut visit)
        } else {
            rows.try_for_each(&mut visit)
        };
        Ok(())
    }
}

impl OrderedWrite for FaultyTransaction<'_> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        if self.store.plants(Fault::TornPut(table)) {
            let mut torn = self.tables[table.number()][key].clone();
            torn[..row.len() / 2].copy_from_slice(&row[..row.len() / 2]);
            self.set(table, key, Some(&torn));
        } else if !self.store.plants(Fault::LostPut(table)) {
            self.set(table, key, Some(row));
        }
        Ok(())
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        if !self.store.plants(Fault::LostDelete(table)) {
            self.set(table, key, None);
        }
        Ok(())
    }
}
