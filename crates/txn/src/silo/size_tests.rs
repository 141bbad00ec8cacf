//! Transactions that are too large: for their positions of 32 bits, which the tests make fewer, and for the memory limit.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_engine::{Abort, AbortReason, Direction, Engine, EngineOptions, Read, Session, TableId, Write};

use super::Transaction;
use crate::engine::Silo;
use crate::store::Store;
use crate::worker::Worker;

type SiloWorker = Worker;

struct Rig {
    engine: Arc<Silo>,
    store: Arc<Store>,
    worker: SiloWorker,
}

fn rig(memory_limit_bytes: Option<u64>) -> Rig {
    let mut options = EngineOptions::default();
    options.memory_limit_bytes = memory_limit_bytes;
    let engine = <Silo>::start(options).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let worker = engine.session();
    Rig { engine, store, worker }
}

fn long_key(number: u32) -> Vec<u8> {
    let mut key = vec![7; 4096];
    key[..4].copy_from_slice(&number.to_be_bytes());
    key
}

impl Rig {
    fn commit(&mut self, work: impl FnOnce(&mut Transaction<'_, super::Standard>, &Store)) {
        let mut tx = self.worker.begin();
        work(&mut tx, &self.store);
        tx.commit().unwrap();
    }

    /// Runs work until it is refused, in a transaction with positions that end at `len_max`.
    fn refused(
        &mut self,
        len_max: usize,
        mut work: impl FnMut(&mut Transaction<'_, super::Standard>, &Store) -> Result<(), Abort>,
    ) -> Abort {
        let mut tx = self.worker.begin();
        let before = std::mem::replace(&mut tx.context.held.len_max, len_max);
        let refused = (0..1_000_000).find_map(|_| work(&mut tx, &self.store).err()).unwrap();
        tx.context.held.len_max = before;
        assert_eq!(tx.commit().unwrap_err().reason(), refused.reason(), "it cannot commit any more");
        refused
    }

    fn mapped_bytes(&self) -> u64 {
        self.engine.statistics().memory.mapped_bytes
    }

    /// The database works, and what the worker held is given back.
    fn works_and_holds_no_more_than(&mut self, mapped_bytes: u64) {
        assert!(self.mapped_bytes() <= mapped_bytes, "{} > {mapped_bytes}", self.mapped_bytes());
        self.commit(|tx, store| assert!(tx.insert(store, b"later", &[1], 8).unwrap()));
        self.commit(|tx, store| {
            let found = tx.find(store, b"later").unwrap().unwrap();
            tx.delete(found).unwrap();
        });
        for _ in 0..4 {
            self.engine.epochs().advance();
            self.worker.collect();
        }
    }
}

#[test]
fn more_key_bytes_than_positions_are_refused_before_one_wraps() {
    let mut rig = rig(None);
    let before = rig.mapped_bytes();
    let mut number = 0;
    let refused = rig.refused(300_000, |tx, store| {
        number += 1;
        tx.get(store, &long_key(number), |_| ()).map(|_| ())?;
        tx.insert(store, &long_key(number), &[1], 8).map(|_| ())
    });
    assert_eq!(refused.reason(), AbortReason::TransactionTooLarge);
    assert!(!refused.is_retryable());
    assert!((70..=74).contains(&number), "{number} keys of 4096 bytes");
    rig.commit(|tx, store| {
        assert!(tx.get(store, &long_key(1), |_| ()).unwrap().is_none(), "nothing changed")
    });
    // Nodes and records came and went meanwhile.
    rig.works_and_holds_no_more_than(before + (4 << 20));
}

#[test]
fn more_row_words_than_positions_are_refused_before_one_wraps() {
    let mut rig = rig(None);
    rig.commit(|tx, store| assert!(tx.insert(store, b"row", &[1; 10_000], 80_000).unwrap()));
    let before = rig.mapped_bytes();
    let mut puts = 0;
    let refused = rig.refused(100_000, |tx, store| {
        let found = tx.find(store, b"row")?.unwrap();
        tx.put(found, &[2; 10_000], 80_000)?;
        puts += 1;
        Ok(())
    });
    assert_eq!((refused.reason(), puts), (AbortReason::TransactionTooLarge, 10));
    rig.commit(|tx, store| {
        let word = tx.get(store, b"row", |row| row.word(9_999)).unwrap();
        assert_eq!(word, Some(1), "nothing changed");
    });
    rig.works_and_holds_no_more_than(before);
}

#[test]
fn what_a_transaction_holds_for_itself_counts_against_the_limit_and_goes_back() {
    let mut rig = rig(Some(4 << 20));
    rig.commit(|tx, store| assert!(tx.insert(store, b"row", &[1], 8).unwrap()));
    let before = rig.mapped_bytes();
    let refused = rig.refused(ensilo_engine::parts::LEN_MAX, |tx, store| tx.find(store, b"row").map(|_| ()));
    assert_eq!(refused.reason(), AbortReason::OutOfMemory);
    rig.works_and_holds_no_more_than(before);
}

#[test]
fn a_transaction_of_many_writes_counts_its_sets_and_commits() {
    let mut rig = rig(Some(256 << 20));
    let before = rig.mapped_bytes();
    let mut tx = rig.worker.begin();
    for number in 0..50_000_u32 {
        assert!(tx.insert(&rig.store, &number.to_be_bytes(), &[1], 8).unwrap());
    }
    let held = tx.context.held.bytes();
    assert!(held > 50_000 * 72, "{held} bytes");
    assert!(rig.engine.statistics().memory.mapped_bytes >= before + held);
    tx.commit().unwrap();
    rig.commit(|tx, store| {
        for number in [0_u32, 49_999] {
            assert!(tx.get(store, &number.to_be_bytes(), |_| ()).unwrap().is_some());
        }
    });
    let mut tx = rig.worker.begin();
    assert_eq!(tx.context.held.bytes(), 0);
    tx.find(&rig.store, b"none").unwrap();
}

#[test]
fn a_scan_that_only_reads_keeps_no_keys() {
    let mut rig = rig(None);
    rig.commit(|tx, store| {
        (0..100).for_each(|number| assert!(tx.insert(store, &long_key(number), &[1], 8).unwrap()));
    });
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut tx = rig.worker.begin();
    let each = |()| ControlFlow::Continue(());
    tx.scan_to_read(&rig.store, all, Direction::Forward, |_, _| (), each).unwrap();
    assert_eq!((tx.context.reads.len(), tx.context.keys.len()), (100, 0));
    let each = |_, ()| ControlFlow::Continue(());
    tx.scan(&rig.store, all, Direction::Forward, |_, _| (), each).unwrap();
    assert_eq!((tx.context.reads.len(), tx.context.keys.len()), (200, 100 * 4096));
    tx.commit().unwrap();
}
