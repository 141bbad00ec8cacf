//! The check after TPC-C holds on a store that does as it is told, and says what one has lost that does not.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ensilo_bench::driver::{Aborts, Failure, Interrupt, RunOptions, View, Workload, run};
use ensilo_bench::tpcc::{Scale, TpccOptions};
use ensilo_peers::Setting;
use ensilo_peers::engine::{
    End, KeyAndRow, ORDERED_TABLES, OrderedClient, OrderedRead, OrderedStore, OrderedTable, OrderedWrite,
    Visit,
};
use ensilo_peers::workload::{LoadedRows, OrderedTpcc};

type Tables = [BTreeMap<Vec<u8>, Vec<u8>>; ORDERED_TABLES];

/// What a store does wrong once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// A row is not written to the table.
    LostPut(OrderedTable),
    /// A row is not deleted from the table.
    LostDelete(OrderedTable),
    /// Nothing of a transaction is written.
    LostTransaction,
    /// A transaction that is rolled back is committed.
    LostRollback,
}

/// A store with one lock around everything.
struct Faulty {
    tables: Mutex<Tables>,
    fault: Fault,
    /// How often the fault could have been planted.
    chances: AtomicU64,
}

/// The chance that is taken.
const CHANCE: u64 = 2;

struct Running<'t> {
    store: &'t Faulty,
    tables: MutexGuard<'t, Tables>,
    /// What rows were before.
    undo: Vec<(OrderedTable, Vec<u8>, Option<Vec<u8>>)>,
}

impl Faulty {
    fn with(fault: Fault) -> Self {
        Self { tables: Mutex::default(), fault, chances: AtomicU64::new(0) }
    }

    fn plants(&self, fault: Fault) -> bool {
        self.fault == fault && self.chances.fetch_add(1, Relaxed) == CHANCE
    }

    fn begin(&self) -> Running<'_> {
        Running { store: self, tables: self.tables.lock().unwrap(), undo: Vec::new() }
    }
}

impl OrderedStore for Faulty {
    type Client<'a> = &'a Faulty;

    fn open(_place: &Path, _setting: Setting) -> Result<Self, Failure> {
        Ok(Self::with(Fault::None))
    }

    fn client(&self) -> Result<&Faulty, Failure> {
        Ok(self)
    }

    fn load(&self, table: OrderedTable, rows: &[KeyAndRow]) -> Result<(), Failure> {
        assert!(rows.is_sorted());
        self.tables.lock().unwrap()[table.number()].extend(rows.iter().cloned());
        Ok(())
    }
}

impl OrderedClient for &Faulty {
    fn write(
        &mut self,
        _aborts: &mut Aborts,
        body: &mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        let mut running = self.begin();
        let end = body(&mut running)?;
        let is_undone = match end {
            End::Commit => self.plants(Fault::LostTransaction),
            End::RollBack => !self.plants(Fault::LostRollback),
        };
        if is_undone {
            running.undo();
        }
        Ok(end)
    }

    fn read(
        &mut self,
        body: &mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        body(&mut self.begin())
    }
}

impl Running<'_> {
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

impl OrderedRead for Running<'_> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.tables[table.number()].get(key);
        row.clone_from(found.unwrap_or(&Vec::new()));
        Ok(found.is_some())
    }

    fn scan(
        &mut self,
        table: OrderedTable,
        keys: Range<&[u8]>,
        is_reverse: bool,
        visit: Visit<'_>,
    ) -> Result<(), Failure> {
        let rows = self.tables[table.number()].range(keys.start.to_vec()..keys.end.to_vec());
        let mut visit = |(key, row): (&Vec<u8>, &Vec<u8>)| -> ControlFlow<()> { visit(key, row) };
        let _ = if is_reverse {
            rows.rev().try_for_each(&mut visit)
        } else {
            rows.into_iter().try_for_each(&mut visit)
        };
        Ok(())
    }
}

impl OrderedWrite for Running<'_> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        if !self.store.plants(Fault::LostPut(table)) {
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

/// The names of the checks that do not hold after a run.
fn violated_with(fault: Fault) -> Vec<&'static str> {
    let options =
        TpccOptions { warehouses: 2, scale: Scale { items: 200, customers: 30 }, ..TpccOptions::new(2) };
    let (mut view, interrupt) = (View::silent(), Interrupt::new());
    let rows = LoadedRows::new(&options, &mut view, &interrupt).unwrap();
    let tpcc = OrderedTpcc::load(Faulty::with(fault), options, &rows).unwrap();
    let measured = Duration::from_secs(1);
    let options = RunOptions { workers: 2, warmup: measured / 10, measured, pin: false };
    let result = run(&tpcc, &options, "run", &mut view, &interrupt).unwrap();
    assert!(result.measurements.committed() > 0);
    let chances = tpcc.store().chances.load(Relaxed);
    assert!(fault == Fault::None || chances > CHANCE, "the fault was not planted in a second");
    let checks = tpcc.check(&mut view, &interrupt).unwrap();
    assert_eq!(checks.len(), 12 + 2, "the conditions of clause 3.3.2, the indexes, and what was committed");
    checks.iter().filter(|check| !check.passed()).map(|check| check.name).collect()
}

#[test]
fn all_conditions_hold_where_nothing_is_lost() {
    assert_eq!(violated_with(Fault::None), [""; 0]);
}

#[test]
fn a_lost_row_is_noticed() {
    assert_eq!(violated_with(Fault::LostPut(OrderedTable::Warehouses)), ["3.3.2.1", "3.3.2.8"]);
    assert_eq!(violated_with(Fault::LostPut(OrderedTable::OrdersByCustomer)), ["index_entries"]);
    let of_history = violated_with(Fault::LostPut(OrderedTable::History));
    assert_eq!(of_history, ["3.3.2.8", "3.3.2.9", "3.3.2.10", "effects"]);
}

#[test]
fn a_lost_transaction_or_rollback_is_noticed() {
    assert!(violated_with(Fault::LostTransaction).contains(&"effects"));
    assert!(violated_with(Fault::LostRollback).contains(&"effects"));
}

#[test]
fn an_order_that_is_delivered_twice_is_noticed() {
    let violated = violated_with(Fault::LostDelete(OrderedTable::NewOrders));
    assert!(violated.contains(&"3.3.2.11") || violated.contains(&"3.3.2.5"), "{violated:?}");
}
