//! Allocations that fail at random: what fails has changed nothing, whatever it was in the middle of.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::*;
use ensilo_txn::{
    Abort, AbortReason, Committed, Direction, Engine, Epoch, Prepared, Read, Session, Silo, Simple, Standard,
    Store, Variant, Worker, Write,
};

type Model = BTreeMap<String, u64>;

/// A small generator of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }
}

/// A key of one of some shapes: with layers and suffixes below, so that inserts allocate all kinds of nodes.
fn key(number: u64) -> String {
    match number % 3 {
        0 => format!("{number:03}"),
        1 => format!("shared prefix {number:03} and more"),
        _ => format!("shared prefix of another length {number:03}"),
    }
}

/// Rows of different lengths, so that records are replaced too; the first word is the value.
fn row(value: u64) -> Vec<u64> {
    vec![value; 1 + (value % 40) as usize]
}

/// One random operation, on the transaction and on the model.
fn step<T: Write<Store = Store>>(
    tx: &mut T,
    store: &Store,
    model: &mut Model,
    numbers: &mut Numbers,
) -> Result<(), Abort> {
    let (name, value) = (key(numbers.below(120)), numbers.below(1 << 30));
    let found = tx.find(store, name.as_bytes())?;
    assert_eq!(found.is_some(), model.contains_key(&name), "{name}");
    match (found, numbers.below(4)) {
        (None, _) => {
            assert!(tx.insert(store, name.as_bytes(), &row(value), row(value).len() * 8)?);
            model.insert(name, value);
        }
        (Some(found), 0) => {
            tx.delete(found)?;
            model.remove(&name);
        }
        (Some(found), 1) => {
            tx.put(found, &row(value), row(value).len() * 8)?;
            model.insert(name, value);
        }
        (Some(found), _) => {
            tx.patch(found, &[(0, value)])?;
            model.insert(name, value);
        }
    }
    Ok(())
}

fn entries(model: &Model) -> Vec<(String, u64)> {
    model.iter().map(|(key, &value)| (key.clone(), value)).collect()
}

/// How transactions end.
#[derive(Copy, Clone)]
enum End {
    Commit,
    /// In two phases, with an epoch between them; some decisions are to abort.
    TwoPhases,
}

impl End {
    /// The commit, if it is one. Only the vote may fail.
    fn end<V: Variant>(
        self,
        tx: impl Write,
        engine: &Silo<V>,
        numbers: &mut Numbers,
    ) -> Result<Option<Committed>, Abort> {
        let End::TwoPhases = self else { return tx.commit().map(Some) };
        let prepared = tx.prepare()?;
        engine.epochs().advance();
        if numbers.below(5) == 0 {
            prepared.abort();
            return Ok(None);
        }
        Ok(Some(prepared.commit().unwrap()))
    }
}

struct Run<V: Variant> {
    engine: Arc<Silo<V>>,
    end: End,
    worker: Worker<V>,
    model: Model,
    /// The model after the commits of each epoch, for snapshots.
    history: Vec<(Epoch, Model)>,
    failed: u64,
}

impl<V: Variant> Run<V> {
    /// A transaction of some operations.
    fn transaction(&mut self, store: &Store, numbers: &mut Numbers) {
        let mut after = self.model.clone();
        let mut tx = self.worker.begin();
        let steps = (0..1 + numbers.below(20)).try_for_each(|_| step(&mut tx, store, &mut after, numbers));
        match steps.and_then(|()| self.end.end(tx, &self.engine, numbers)) {
            Ok(None) => {}
            Ok(Some(committed)) => {
                self.model = after;
                self.history.push((committed.epoch, self.model.clone()));
            }
            Err(abort) => {
                assert_eq!(abort.reason(), AbortReason::OutOfMemory, "{abort}");
                self.failed += 1;
            }
        }
    }

    fn check(&mut self, store: &Store) {
        let mut tx = self.worker.begin();
        assert_eq!(scan_all(&mut tx, store, Direction::Forward), entries(&self.model));
        tx.commit().unwrap();
        let mut snapshot = self.worker.begin_snapshot();
        let epoch = self.engine.epochs().snapshot_epoch();
        let shown = self.history.iter().rev().find(|(committed, _)| *committed < epoch);
        let expected = shown.map(|(_, model)| entries(model)).unwrap_or_default();
        assert_eq!(scan_all(&mut snapshot, store, Direction::Forward), expected);
    }
}

fn failed_operations_change_nothing<V: Variant>(end: End, one_in: u64, seed: u64) {
    let engine = manual_engine::<V>();
    let store = engine.new_store(ensilo_txn::TableId(1)).unwrap();
    let pool = engine.epochs().pool();
    let mut run = Run {
        engine: Arc::clone(&engine),
        end,
        worker: engine.session(),
        model: Model::new(),
        history: Vec::new(),
        failed: 0,
    };
    let mut numbers = Numbers(seed);
    for round in 0..1500 {
        pool.fail_one_in(one_in, seed + round);
        run.transaction(&store, &mut numbers);
        pool.fail_one_in(0, 0);
        engine.epochs().advance();
        if round % 10 == 0 {
            run.check(&store);
        }
    }
    assert!((100..1400).contains(&run.failed), "{} of 1500 failed", run.failed);
    // Nothing was lost on the way: once all is deleted, all comes back.
    let mut tx = run.worker.begin();
    for name in run.model.keys() {
        let found = tx.find(&store, name.as_bytes()).unwrap().unwrap();
        tx.delete(found).unwrap();
    }
    tx.commit().unwrap();
    for _ in 0..200 {
        pass_snapshot(&engine);
        run.worker.collect();
    }
    let left = engine.statistics();
    assert_eq!((left.transactions.versions, left.transactions.deleted_records), (0, 0));
    let nodes_max = 8 << 10;
    let bytes = left.memory.of(ensilo_txn::AccountId(1));
    assert!(bytes < nodes_max, "{bytes} bytes are left of an empty table");
}

#[test]
fn an_operation_that_gets_no_memory_changes_nothing() {
    for (seed, one_in) in [(1, 12), (2, 40)] {
        failed_operations_change_nothing::<Standard>(End::Commit, one_in, seed);
    }
}

#[test]
fn nor_does_a_vote() {
    for (seed, one_in) in [(4, 12), (5, 40)] {
        failed_operations_change_nothing::<Standard>(End::TwoPhases, one_in, seed);
    }
}

#[test]
fn nor_does_one_of_a_variant_that_takes_records_from_elsewhere_and_replaces_them() {
    for end in [End::Commit, End::TwoPhases] {
        failed_operations_change_nothing::<Simple>(end, 20, 3);
    }
}
