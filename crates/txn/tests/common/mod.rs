//! What the tests of this crate share: an engine whose epochs advance by hand, and rows of numbers.
#![allow(dead_code, reason = "every test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use ensilo_txn::{
    Abort, Advance, Direction, Engine, EngineOptions, EpochOptions, Read, Session, Silo, Standard, Store,
    TableId, Transaction, Variant, Worker, Write,
};

pub(crate) const EPOCHS_PER_SNAPSHOT: u64 = 5;

pub(crate) fn manual_engine<V: Variant>() -> Arc<Silo<V>> {
    manual_engine_of(EngineOptions::default())
}

pub(crate) fn manual_engine_of<V: Variant>(mut options: EngineOptions) -> Arc<Silo<V>> {
    options.epochs = EpochOptions {
        epoch_interval: Duration::from_millis(1),
        epochs_per_snapshot: EPOCHS_PER_SNAPSHOT,
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    Silo::start(options).unwrap()
}

pub(crate) fn engine_and_store() -> (Arc<Silo>, Arc<Store>) {
    let engine = manual_engine::<Standard>();
    let store = engine.new_store(TableId(1)).unwrap();
    (engine, store)
}

/// Advances far enough that everything committed so far is in the snapshot.
pub(crate) fn pass_snapshot<V: Variant>(engine: &Silo<V>) {
    for _ in 0..2 * EPOCHS_PER_SNAPSHOT {
        engine.epochs().advance();
    }
}

pub(crate) fn insert<T: Write<Store = Store>>(tx: &mut T, store: &Store, key: &str, row: &[u64]) -> bool {
    tx.insert(store, key.as_bytes(), row, row.len() * 8).unwrap()
}

pub(crate) fn read<T: Read<Store = Store>>(tx: &mut T, store: &Store, key: &str) -> Option<Vec<u64>> {
    try_read(tx, store, key).unwrap()
}

pub(crate) fn try_read<T: Read<Store = Store>>(
    tx: &mut T,
    store: &Store,
    key: &str,
) -> Result<Option<Vec<u64>>, Abort> {
    tx.get(store, key.as_bytes(), |row| {
        let mut words = Vec::new();
        row.copy_to(&mut words);
        words
    })
}

pub(crate) fn put<T: Write<Store = Store>>(tx: &mut T, store: &Store, key: &str, row: &[u64]) {
    let found = tx.find(store, key.as_bytes()).unwrap().unwrap();
    tx.put(found, row, row.len() * 8).unwrap();
}

pub(crate) fn delete<T: Write<Store = Store>>(tx: &mut T, store: &Store, key: &str) {
    let found = tx.find(store, key.as_bytes()).unwrap().unwrap();
    tx.delete(found).unwrap();
}

pub(crate) fn scan_all<T: Read<Store = Store>>(
    tx: &mut T,
    store: &Store,
    direction: Direction,
) -> Vec<(String, u64)> {
    try_scan_all(tx, store, direction).unwrap()
}

pub(crate) fn try_scan_all<T: Read<Store = Store>>(
    tx: &mut T,
    store: &Store,
    direction: Direction,
) -> Result<Vec<(String, u64)>, Abort> {
    let mut seen = Vec::new();
    tx.scan(
        store,
        (Bound::Unbounded, Bound::Unbounded),
        direction,
        |key, row| (String::from_utf8_lossy(key).into_owned(), row.word(0)),
        |_, entry| {
            seen.push(entry);
            ControlFlow::Continue(())
        },
    )?;
    Ok(seen)
}

/// Runs `body` in a transaction that must commit.
pub(crate) fn commit<R>(
    worker: &mut Worker,
    body: impl FnOnce(&mut Transaction<'_, ensilo_txn::Standard>) -> R,
) -> R {
    let mut tx = worker.begin();
    let result = body(&mut tx);
    tx.commit().unwrap();
    result
}
