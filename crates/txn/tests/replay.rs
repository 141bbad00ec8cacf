//! A log replays in any order to what the transactions left.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_log::{
    Cursor, Replay, ReplayError, Transactions, delete_bytes, encode_delete, encode_patch, encode_put,
    encode_transaction, patch_bytes_max, put_bytes, transaction_bytes,
};
use ensilo_txn::{
    Advance, Allocator, Engine, EngineOptions, Epoch, Read, Remains, Replayer, Session, Silo, SiloReplayer,
    Simple, Standard, TableId, Tid, Variant, Write,
};
use proptest::prelude::*;

/// What a transaction does to a key.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u64>),
    Patch(Vec<(usize, u64)>),
    Delete,
}

/// The rows by table and key, with the TID of the last change.
type Rows = BTreeMap<(u32, Vec<u8>), (u64, Vec<u64>)>;

fn tid(number: usize) -> u64 {
    // Three transactions an epoch.
    (number as u64 / 3 + 1) << 20 | (number as u64 % 3 + 1) << 3
}

fn steps() -> impl Strategy<Value = Vec<(u32, u8, Step)>> {
    let step = prop_oneof![
        2 => prop::collection::vec(any::<u64>(), 1..40).prop_map(Step::Put),
        4 => prop::collection::vec((0..40usize, any::<u64>()), 1..4).prop_map(Step::Patch),
        1 => Just(Step::Delete),
    ];
    prop::collection::vec((prop_oneof![Just(1u32), Just(3)], 0..6u8, step), 1..60)
}

fn key(key: u8) -> Vec<u8> {
    vec![key; usize::from(key)]
}

/// Applies the steps in order and encodes the log of those that change something, each a transaction.
fn run(steps: &[(u32, u8, Step)]) -> (Rows, Vec<Vec<u8>>) {
    let (mut rows, mut log) = (Rows::new(), Vec::new());
    for (number, (table, name, step)) in steps.iter().enumerate() {
        let place = (*table, key(*name));
        let Some(step) = change(&mut rows, &place, step, tid(number)) else { continue };
        log.push(encode(*table, &place.1, &step, tid(number)));
    }
    (rows, log)
}

/// Changes the rows; returns the step as it can be logged.
fn change(rows: &mut Rows, place: &(u32, Vec<u8>), step: &Step, tid: u64) -> Option<Step> {
    match step {
        Step::Put(row) => _ = rows.insert(place.clone(), (tid, row.clone())),
        Step::Delete => _ = rows.remove(place)?,
        Step::Patch(words) => {
            let (last, row) = rows.get_mut(place)?;
            let words: BTreeMap<_, _> = words.iter().map(|&(at, word)| (at % row.len(), word)).collect();
            words.iter().for_each(|(&at, &word)| row[at] = word);
            *last = tid;
            return Some(Step::Patch(words.into_iter().collect()));
        }
    }
    Some(step.clone())
}

fn encode(table: u32, key: &[u8], step: &Step, tid: u64) -> Vec<u8> {
    let body = match step {
        Step::Put(row) => put_bytes(table, key.len(), 8 * row.len()),
        Step::Patch(words) => patch_bytes_max(table, key.len(), words.len()),
        Step::Delete => delete_bytes(table, key.len()),
    };
    let mut bytes = vec![0; transaction_bytes(1) + body];
    let mut cursor = Cursor::new(&mut bytes);
    encode_transaction(&mut cursor, tid, 1);
    match step {
        Step::Put(row) => encode_put(&mut cursor, table, key, 8 * row.len(), row.iter().copied()),
        Step::Patch(words) => {
            let pairs: Vec<_> = words.iter().map(|&(at, word)| (at as u32, word)).collect();
            encode_patch(&mut cursor, table, key, pairs.iter().copied());
        }
        Step::Delete => encode_delete(&mut cursor, table, key),
    }
    let filled = cursor.filled();
    bytes.truncate(filled);
    bytes
}

fn engine<V: Variant>() -> Arc<Silo<V>> {
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    options.epochs.first_epoch = Epoch::new(1000);
    Silo::start(options)
}

/// Replays the log by as many threads as it has parts.
fn replay<V: Variant>(engine: &Silo<V>, parts: &[Vec<Vec<u8>>]) -> Result<Vec<(TableId, u64)>, ReplayError> {
    let replayer = engine.replayer();
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.iter().map(|part| scope.spawn(|| replay_part(&replayer, part))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    let recovered = replayer.finish()?;
    Ok(recovered.stores.iter().map(|store| (store.id, store.rows)).collect())
}

fn replay_part<V: Variant>(replayer: &SiloReplayer<'_, V>, part: &[Vec<u8>]) -> Result<(), ReplayError> {
    let mut worker = replayer.worker();
    let mut writes = Vec::new();
    for entry in part {
        let mut transactions = Transactions::new(entry);
        while let Some(write) = transactions.next_write().unwrap() {
            writes.push(write);
        }
    }
    replayer.apply(&mut worker, &writes)
}

fn rows_of<V: Variant>(engine: &Silo<V>) -> Rows {
    let mut rows = Rows::new();
    for store in engine.stores() {
        for range in engine.key_ranges(&store, 5) {
            let _ = engine.walk(
                &store,
                &range,
                Epoch::MAX,
                |record| {
                    let place = (store.id().0, record.key.to_vec());
                    let twice = rows.insert(place, (record.tid.get(), record.words.to_vec()));
                    assert!(twice.is_none(), "a key in two ranges");
                    ControlFlow::Continue(())
                },
                || ControlFlow::Continue(()),
            );
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_order_on_any_number_of_threads_leaves_the_same_rows(
        steps in steps(),
        order in any::<prop::sample::Index>(),
        seed: u64,
        threads in 1..4usize,
    ) {
        let (rows, mut log) = run(&steps);
        shuffle(&mut log, seed ^ order.index(usize::MAX) as u64);
        let mut parts = vec![Vec::new(); threads];
        for (at, entry) in log.into_iter().enumerate() {
            // Some entries twice: a crash may leave them so.
            if at % 5 == 0 {
                parts[(at + 1) % threads].push(entry.clone());
            }
            parts[at % threads].push(entry);
        }
        let engine = engine::<Standard>();
        let counts = replay(&engine, &parts).unwrap();
        prop_assert_eq!(&rows_of(&engine), &rows);
        for (table, count) in counts {
            prop_assert_eq!(count, rows.keys().filter(|place| place.0 == table.0).count() as u64);
        }
    }
}

fn shuffle(entries: &mut [Vec<u8>], mut seed: u64) {
    for at in (1..entries.len()).rev() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        entries.swap(at, (seed >> 33) as usize % (at + 1));
    }
}

#[test]
fn words_without_their_row_are_damage() {
    let engine = engine::<Standard>();
    for words in [vec![(0, 7)], vec![]] {
        let patch = encode(1, b"key", &Step::Patch(words), tid(4));
        assert!(matches!(replay(&engine, &[vec![patch]]), Err(ReplayError::Refused(_))));
    }
}

#[test]
fn words_outside_their_row_are_damage() {
    let engine = engine::<Standard>();
    let put = encode(1, b"key", &Step::Put(vec![1, 2]), tid(1));
    let patch = encode(1, b"key", &Step::Patch(vec![(2, 7)]), tid(4));
    let orders = [[put.clone(), patch.clone()], [patch, put]];
    for order in orders {
        assert!(matches!(replay(&engine, &[order.to_vec()]), Err(ReplayError::Refused(_))));
    }
}

#[test]
fn an_old_put_does_not_revive_a_deleted_key() {
    let engine = engine::<Standard>();
    let put = encode(1, b"key", &Step::Put(vec![1, 2]), tid(1));
    let delete = encode(1, b"key", &Step::Delete, tid(4));
    replay(&engine, &[vec![delete, put]]).unwrap();
    assert!(rows_of(&engine).is_empty());
    assert!(Tid::from_raw(tid(4)) > Tid::from_raw(tid(1)));
}

/// Replays rows that grow, are patched and deleted, and overwrites what is left of them.
fn replayed_records_go_to_where_they_came_from<V: Variant>() {
    let engine = engine::<V>();
    let put = |number, len| encode(1, b"key", &Step::Put(vec![number; len]), tid(number as usize));
    let patch = encode(1, b"key", &Step::Patch(vec![(1, 7)]), tid(9));
    let gone = encode(1, b"gone", &Step::Put(vec![1]), tid(1));
    let delete = encode(1, b"gone", &Step::Delete, tid(2));
    let parts = [vec![patch, put(1, 2), put(3, 30), put(2, 400)], vec![gone, delete, put(4, 200)]];
    replay(&engine, &parts).unwrap();
    let store = engine.stores().pop().unwrap();
    let mut session = engine.session();
    for len in [1, 300] {
        let mut tx = session.begin();
        let found = tx.find(&store, b"key").unwrap().unwrap();
        tx.put(found, &vec![5; len], 8 * len).unwrap();
        tx.commit().unwrap();
        for _ in 0..100 {
            engine.epochs().advance();
            session.collect();
        }
    }
    assert!(engine.drop_store(TableId(1)));
    while engine.collect_orphaned() != Remains::Nothing {
        engine.epochs().advance();
    }
}

#[test]
fn records_of_a_replay_go_to_where_they_came_from() {
    replayed_records_go_to_where_they_came_from::<Standard>();
    replayed_records_go_to_where_they_came_from::<Allocator>();
    replayed_records_go_to_where_they_came_from::<Simple>();
}
