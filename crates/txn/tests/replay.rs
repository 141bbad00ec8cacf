//! What is particular to the replay into Silo's engine; what every engine does lies in the suite of tests for engines.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use ensilo_log::{
    Change, Cursor, Replay, ReplayError, Transactions, Write as LogWrite, encode_patch, encode_transaction,
    patch_bytes_max, transaction_bytes,
};
use ensilo_txn::{
    Advance, Allocator, Engine, EngineOptions, Epoch, Read, Remains, Replayer, Session, Silo, Simple,
    Standard, TableId, Variant, Write,
};

fn engine<V: Variant>() -> Arc<Silo<V>> {
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    options.epochs.first_epoch = Epoch::new(1000);
    Silo::start(options).unwrap()
}

fn tid(number: u64) -> u64 {
    number << 20 | 1 << 3
}

/// Returns what a transaction logs that has changed these words.
fn logged_patch(words: &[(u32, u64)], tid: u64) -> Vec<u8> {
    let mut bytes = vec![0; transaction_bytes(1) + patch_bytes_max(1, 3, words.len())];
    let mut cursor = Cursor::new(&mut bytes);
    encode_transaction(&mut cursor, tid, 1);
    encode_patch(&mut cursor, 1, b"key", words.iter().copied());
    let filled = cursor.filled();
    bytes.truncate(filled);
    bytes
}

#[test]
fn a_patch_of_no_words_without_its_row_is_damage() {
    let engine = engine::<Standard>();
    let patch = logged_patch(&[], tid(4));
    let write = Transactions::new(&patch).next_write().unwrap().unwrap();
    let replayer = engine.replayer();
    replayer.apply(&mut replayer.worker(), &[write]).unwrap();
    assert!(matches!(replayer.finish(), Err(ReplayError::Refused(_))));
}

#[test]
fn a_row_of_a_checkpoint_takes_the_place_of_the_patch_that_it_has() {
    let patch = logged_patch(&[(1, 7)], tid(3));
    let patch = Transactions::new(&patch).next_write().unwrap().unwrap();
    let put = |number, row: &'static [u8; 16]| LogWrite {
        tid: tid(number),
        table: 1,
        key: b"key",
        change: Change::Put(row),
    };
    let writes = [put(1, &[1; 16]), patch, put(3, &[3; 16])];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let engine = engine::<Standard>();
        let replayer = engine.replayer();
        replayer.apply(&mut replayer.worker(), &order.map(|at| writes[at].clone())).unwrap();
        replayer.finish().unwrap();
        let store = engine.stores().pop().unwrap();
        let words = engine.session().begin().get(&store, b"key", |row| [row.word(0), row.word(1)]).unwrap();
        assert_eq!(words, Some([0x0303_0303_0303_0303; 2]), "{order:?}");
    }
}

/// Each of them would go through all patches of the row, which took minutes.
#[test]
fn old_writes_to_a_row_of_many_patches_go_through_them_once() {
    const PATCHES: u64 = 200_000;
    let engine = engine::<Standard>();
    let replayer = engine.replayer();
    let mut worker = replayer.worker();
    let put = LogWrite { tid: tid(PATCHES), table: 1, key: b"key", change: Change::Put(&[0; 16]) };
    replayer.apply(&mut worker, &[put]).unwrap();
    let patches = (PATCHES + 1..2 * PATCHES).map(|number| (number, number)).collect::<Vec<_>>();
    let older = (1..PATCHES).map(|number| (number, 0));
    for (number, word) in patches.iter().copied().chain(older).chain(patches.iter().copied()) {
        let patch = logged_patch(&[(number as u32 % 2, word)], tid(number));
        let write = Transactions::new(&patch).next_write().unwrap().unwrap();
        replayer.apply(&mut worker, &[write]).unwrap();
    }
    drop(worker);
    replayer.finish().unwrap();
    let store = engine.stores().pop().unwrap();
    let words = engine.session().begin().get(&store, b"key", |row| [row.word(0), row.word(1)]).unwrap();
    assert_eq!(words, Some([2 * PATCHES - 2, 2 * PATCHES - 1]));
}

#[test]
fn rows_that_are_there_are_put_again_when_memory_is_used_up() {
    let engine = engine::<Standard>();
    let pool = engine.epochs().pool();
    let replayer = engine.replayer();
    let mut worker = replayer.worker();
    let mut put = |version: u64, numbers: &[u64], is_refused: bool| {
        let row = [version as u8; 16];
        let keys: Vec<_> = numbers.iter().map(|number| number.to_be_bytes()).collect();
        let write = |key| LogWrite { tid: tid(version), table: 1, key, change: Change::Put(&row) };
        let writes: Vec<_> = keys.iter().map(|key| write(&key[..])).collect();
        pool.fail_one_in(u64::from(is_refused), 0);
        let applied = replayer.apply(&mut worker, &writes);
        pool.fail_one_in(0, 0);
        applied
    };
    for number in (0..100).step_by(2) {
        // Behind these, neighbours are taken for new.
        put(1, &[number, number + 1], false).unwrap();
        put(2, &[number, number + 1], true).unwrap();
    }
    assert_eq!(put(1, &[100], true), Err(ReplayError::OutOfMemory));
    drop(worker);
    assert_eq!(replayer.finish().unwrap().stores[0].rows, 100);
    let store = engine.stores().pop().unwrap();
    let mut session = engine.session();
    let mut tx = session.begin();
    for number in 0..100_u64 {
        let first = tx.get(&store, &number.to_be_bytes(), |row| row.word(0)).unwrap();
        assert_eq!(first, Some(0x0202_0202_0202_0202));
    }
}

/// Replays rows that grow, are patched and deleted, and overwrites what is left of them. Folds before each write as far as `frontiers` say.
fn replayed_records_go_to_where_they_came_from<V: Variant>(frontiers: [u64; 7]) {
    let engine = engine::<V>();
    let rows = [1, 3, 2, 4].map(|number| vec![number as u8; 8 * [0, 2, 400, 30, 200][number]]);
    let put = |number: usize| LogWrite {
        tid: tid([1, 3, 2, 4][number]),
        table: 1,
        key: b"key",
        change: Change::Put(&rows[number]),
    };
    let patch = logged_patch(&[(1, 7)], tid(9));
    let patch = Transactions::new(&patch).next_write().unwrap().unwrap();
    let gone = |tid, change| LogWrite { tid, table: 1, key: b"gone", change };
    let writes = [
        patch,
        put(0),
        put(1),
        put(2),
        gone(tid(1), Change::Put(&[0; 8])),
        gone(tid(2), Change::Delete),
        put(3),
    ];
    let replayer = engine.replayer();
    let mut workers = [replayer.worker(), replayer.worker()];
    for (at, (write, frontier)) in writes.iter().zip(frontiers).enumerate() {
        replayer.apply(&mut workers[at / 4], std::slice::from_ref(write)).unwrap();
        workers.iter_mut().for_each(|worker| replayer.fold(worker, Epoch::new(frontier)).unwrap());
    }
    drop(workers);
    replayer.finish().unwrap();
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
    // The second folds what is superseded beside what is not, the third all as soon as it can.
    for frontiers in [[0; 7], [0, 0, 0, 0, 1, 1, 5], [1, 1, 1, 1, 2, 4, 10]] {
        replayed_records_go_to_where_they_came_from::<Standard>(frontiers);
        replayed_records_go_to_where_they_came_from::<Allocator>(frontiers);
        replayed_records_go_to_where_they_came_from::<Simple>(frontiers);
    }
}
