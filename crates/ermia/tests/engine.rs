//! What ERMIA's engine does beyond what every engine passes.
#![allow(clippy::unwrap_used, clippy::mem_forget, reason = "tests")]

use std::mem::forget;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo_engine::{
    AbortReason, Direction, Engine, EngineOptions, Read, Replayer as _, Session, TableId, TransactionOf,
    Write,
};
use ensilo_epoch::Advance;
use ensilo_ermia::{Ermia, ErmiaSession, ErmiaStore, Isolation, Serializable, SnapshotIsolation};
use ensilo_log::{Change, Replay as _, Write as LogWrite};

type Started<I> = (Arc<Ermia<I>>, Arc<ErmiaStore>, [ErmiaSession<I>; 2]);

fn start<I: Isolation>() -> Started<I> {
    start_with(EngineOptions::default())
}

/// The same, whose epochs move on when they are told to.
fn start_by_hand<I: Isolation>() -> Started<I> {
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    start_with(options)
}

fn start_with<I: Isolation>(options: EngineOptions) -> Started<I> {
    let engine = Ermia::<I>::start(options).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let sessions = [(); 2].map(|()| engine.session());
    (engine, store, sessions)
}

fn set<I: Isolation>(tx: &mut TransactionOf<'_, Ermia<I>>, store: &ErmiaStore, key: &[u8], value: u64) {
    match tx.find(store, key).unwrap() {
        Some(found) => tx.put(found, &[value], 8).unwrap(),
        None => assert!(tx.insert(store, key, &[value], 8).unwrap()),
    }
}

fn get<I: Isolation>(tx: &mut TransactionOf<'_, Ermia<I>>, store: &ErmiaStore, key: &[u8]) -> Option<u64> {
    tx.get(store, key, |row| row.word(0)).unwrap()
}

/// Two transactions read what the other one writes. Returns whether both have committed.
fn skew_commits<I: Isolation>() -> bool {
    let (_engine, store, [mut first, mut second]) = start::<I>();
    let mut tx = first.begin();
    [b"a", b"b"].iter().for_each(|key| set::<I>(&mut tx, &store, *key, 1));
    tx.commit().unwrap();
    let (mut one, mut other) = (first.begin(), second.begin());
    assert_eq!(get::<I>(&mut one, &store, b"a"), Some(1));
    assert_eq!(get::<I>(&mut other, &store, b"b"), Some(1));
    set::<I>(&mut one, &store, b"b", 2);
    set::<I>(&mut other, &store, b"a", 2);
    // Two that look at what they have read, at one place in the order of commits, do not wait for each other.
    thread::scope(|scope| {
        let checks = [scope.spawn(|| one.check()), scope.spawn(|| other.check())];
        checks.into_iter().for_each(|check| _ = check.join().unwrap().unwrap());
    });
    let first = one.commit();
    first.and(other.commit()).is_ok()
}

#[test]
fn write_skew_is_possible_under_snapshot_isolation_alone() {
    assert!(skew_commits::<SnapshotIsolation>());
    assert!(!skew_commits::<Serializable>());
}

#[test]
fn a_long_reader_commits_beside_writers_of_what_it_reads() {
    let (_engine, store, [mut reader, mut writer]) = start::<Serializable>();
    let mut tx = writer.begin();
    for number in 0..100_u64 {
        set::<Serializable>(&mut tx, &store, &number.to_be_bytes(), 0);
    }
    tx.commit().unwrap();
    let mut report = reader.begin();
    let mut sum = 0;
    for number in 0..100_u64 {
        sum += get::<Serializable>(&mut report, &store, &number.to_be_bytes()).unwrap();
        let mut tx = writer.begin();
        set::<Serializable>(&mut tx, &store, &(99 - number).to_be_bytes(), 1);
        tx.commit().unwrap();
    }
    assert_eq!(sum, 0);
    assert!(report.insert(&store, b"report", &[sum], 8).unwrap());
    report.commit().unwrap();
}

/// A long transaction notes a version once that it reads again and again; the next one of its session notes it anew.
#[test]
fn a_long_transaction_depends_on_every_row_that_it_has_read() {
    const ROWS: u64 = 3000;
    let (_engine, store, [mut long, mut short]) = start::<Serializable>();
    let mut tx = short.begin();
    (0..ROWS).for_each(|number| set::<Serializable>(&mut tx, &store, &number.to_be_bytes(), 0));
    set::<Serializable>(&mut tx, &store, b"report", 0);
    tx.commit().unwrap();
    for round in 1..=20_u64 {
        let (mut report, mut order) = (long.begin(), short.begin());
        for number in (0..ROWS).chain(0..ROWS) {
            get::<Serializable>(&mut report, &store, &number.to_be_bytes()).unwrap();
        }
        // Each has read what the other one writes.
        get::<Serializable>(&mut order, &store, b"report").unwrap();
        set::<Serializable>(&mut order, &store, &(900 + round * 97).to_be_bytes(), round);
        set::<Serializable>(&mut report, &store, b"report", round);
        let (first, second) = if round % 2 == 0 {
            (report.commit(), order.commit())
        } else {
            (order.commit(), report.commit())
        };
        first.unwrap();
        assert_eq!(second.unwrap_err().reason(), AbortReason::ReadValidation, "round {round}");
    }
}

#[test]
fn of_two_that_write_a_row_the_second_aborts_at_once() {
    let (_engine, store, [mut first, mut second]) = start::<Serializable>();
    let mut tx = first.begin();
    set::<Serializable>(&mut tx, &store, b"a", 1);
    tx.commit().unwrap();
    let (mut one, mut other) = (first.begin(), second.begin());
    set::<Serializable>(&mut one, &store, b"a", 2);
    let found = other.find(&store, b"a").unwrap().unwrap();
    assert_eq!(other.put(found, &[3], 8).unwrap_err().reason(), AbortReason::LockHeld);
    one.commit().unwrap();
    drop(other);
    let mut late = first.begin();
    assert_eq!(get::<Serializable>(&mut late, &store, b"a"), Some(2));
}

/// Threads insert and delete one key within a transaction, while others insert it and read it back.
#[test]
fn rows_that_are_inserted_beside_cancelled_ones_stay() {
    fn run<I: Isolation>() {
        let (engine, store, [mut cancelling, mut inserting]) = start::<I>();
        let mut tx = cancelling.begin();
        set::<I>(&mut tx, &store, b"other", 0);
        tx.commit().unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    number += 1;
                    let mut tx = cancelling.begin();
                    set::<I>(&mut tx, &store, b"other", number);
                    if tx.insert(&store, b"key", &[0], 8).is_ok_and(|inserted| inserted) {
                        let found = tx.find(&store, b"key").unwrap().unwrap();
                        tx.delete(found).unwrap();
                        tx.commit().unwrap();
                    }
                }
            });
            for number in 1..20_000 {
                let mut tx = inserting.begin();
                if !tx.insert(&store, b"key", &[number], 8).is_ok_and(|inserted| inserted)
                    || tx.commit().is_err()
                {
                    continue;
                }
                let mut tx = inserting.begin();
                let found = tx.find(&store, b"key").unwrap().expect("a row that was committed");
                assert_eq!(tx.read(found, |row| row.word(0)).unwrap(), number);
                tx.delete(found).unwrap();
                tx.commit().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        drop(engine);
    }
    run::<Serializable>();
    run::<SnapshotIsolation>();
}

#[test]
fn versions_that_nobody_needs_are_freed_also_behind_leaked_transactions() {
    let (engine, store, [mut leaking, mut session]) = start::<Serializable>();
    let mut tx = session.begin();
    set::<Serializable>(&mut tx, &store, b"a", 0);
    tx.commit().unwrap();
    forget(leaking.begin_snapshot());
    let mut tx = leaking.begin();
    set::<Serializable>(&mut tx, &store, b"leaked", 1);
    forget(tx);
    for number in 0..1000 {
        let mut tx = session.begin();
        set::<Serializable>(&mut tx, &store, b"a", number);
        tx.commit().unwrap();
    }
    forget(leaking.begin_snapshot());
    drop(leaking);
    let began = Instant::now();
    while engine.statistics().transactions.versions > 0 {
        session.collect();
        engine.collect_orphaned();
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", engine.statistics());
        thread::yield_now();
    }
    let mut tx = session.begin();
    assert_eq!(get::<Serializable>(&mut tx, &store, b"a"), Some(999));
    assert_eq!(get::<Serializable>(&mut tx, &store, b"leaked"), None);
}

/// Leaves a deletion.
fn insert_and_delete(session: &mut ErmiaSession<Serializable>, store: &ErmiaStore, key: &[u8]) {
    let mut tx = session.begin();
    set::<Serializable>(&mut tx, store, key, 0);
    tx.commit().unwrap();
    let mut tx = session.begin();
    let found = tx.find(store, key).unwrap().unwrap();
    tx.delete(found).unwrap();
    tx.commit().unwrap();
}

/// A transaction that inserts over a deletion and aborts leaves the deletion to be collected, also where that was tried meanwhile.
#[test]
fn a_deleted_key_leaves_the_index_behind_an_insert_that_aborts() {
    let (engine, store, [mut deleting, mut inserting]) = start::<Serializable>();
    insert_and_delete(&mut deleting, &store, b"a");
    let mut tx = inserting.begin();
    assert!(tx.insert(&store, b"a", &[1], 8).unwrap());
    // Tries to take the deletion out.
    for _ in 0..100 {
        engine.epochs().advance();
        deleting.collect();
    }
    drop(tx);
    for _ in 0..100 {
        engine.epochs().advance();
        inserting.collect();
        deleting.collect();
    }
    assert_eq!(engine.last_key(&store), None);
}

/// The same beside a transaction that has begun behind the deletion, and stays.
#[test]
fn a_deleted_key_that_was_covered_does_not_wait_for_later_readers() {
    let (engine, store, [mut deleting, mut inserting]) = start::<Serializable>();
    let (mut reading, mut writing) = (engine.session(), engine.session());
    insert_and_delete(&mut deleting, &store, b"a");
    let reader = reading.begin();
    let mut tx = writing.begin();
    set::<Serializable>(&mut tx, &store, b"A", 1);
    tx.commit().unwrap();
    let mut tx = inserting.begin();
    assert!(tx.insert(&store, b"a", &[1], 8).unwrap());
    for _ in 0..100 {
        engine.epochs().advance();
        deleting.collect();
    }
    drop(tx);
    for _ in 0..100 {
        engine.epochs().advance();
        deleting.collect();
    }
    assert_eq!(engine.last_key(&store), Some(b"A".to_vec()));
    drop(reader);
}

/// Overwrites a row so often that a snapshot would be taken anew.
fn overwrite_often<I: Isolation>(session: &mut ErmiaSession<I>, store: &ErmiaStore, key: &[u8]) {
    for number in 0..1000 {
        let mut tx = session.begin();
        set::<I>(&mut tx, store, key, number);
        tx.commit().unwrap();
    }
}

/// A transaction reads a row that others overwrite, beside snapshots, and writes another one. Returns whether it has committed.
fn commits_beside_snapshots(is_favored: bool) -> bool {
    let (engine, store, [mut first, mut second]) = start_by_hand::<Serializable>();
    let mut reading = engine.session();
    overwrite_often(&mut first, &store, b"a");
    if is_favored {
        first.favor_next();
    }
    let mut tx = first.begin();
    assert_eq!(get::<Serializable>(&mut tx, &store, b"a"), Some(999));
    overwrite_often(&mut second, &store, b"a");
    let mut snapshot = reading.begin_snapshot();
    let shown = snapshot.get(&store, b"b", |row| row.word(0)).unwrap();
    assert_eq!(shown, None);
    drop(snapshot);
    assert!(tx.insert(&store, b"b", &[1], 8).unwrap());
    tx.commit().is_ok()
}

#[test]
fn new_snapshots_keep_out_of_the_way_of_a_favored_transaction() {
    assert!(!commits_beside_snapshots(false), "a snapshot lies between it and what came before");
    assert!(commits_beside_snapshots(true));
}

#[test]
fn snapshots_are_taken_anew_behind_favored_transactions_that_were_leaked() {
    let (_engine, store, [mut first, mut second]) = start_by_hand::<Serializable>();
    drop(second.begin_snapshot());
    first.favor_next();
    forget(first.begin());
    drop(first);
    overwrite_often(&mut second, &store, b"a");
    let mut snapshot = second.begin_snapshot();
    assert_eq!(snapshot.get(&store, b"a", |row| row.word(0)).unwrap(), Some(999));
}

#[test]
fn what_was_overwritten_is_freed_before_the_epoch_ends() {
    fn run<I: Isolation>() {
        let (engine, store, [mut writing, mut reading]) = start_by_hand::<I>();
        for _ in 0..20 {
            overwrite_often(&mut writing, &store, b"a");
            drop(reading.begin_snapshot());
            let kept = engine.statistics().transactions.versions;
            assert!(kept <= 1000, "{kept} versions are kept");
        }
    }
    run::<Serializable>();
    run::<SnapshotIsolation>();
}

/// Inserts rows until the limit leaves no memory, and returns how many there are.
fn fill_up<I: Isolation>(session: &mut ErmiaSession<I>, store: &ErmiaStore) -> u64 {
    let row = [7; 50];
    for number in 0_u64.. {
        let mut tx = session.begin();
        match tx.insert(store, &number.to_be_bytes(), &row, 400) {
            Ok(inserted) => assert!(inserted),
            Err(abort) if abort.reason() == AbortReason::OutOfMemory => return number,
            Err(abort) => panic!("{abort:?}"),
        }
        tx.commit().unwrap();
    }
    unreachable!("the limit is reached")
}

/// While a snapshot keeps all that was there, so that nothing is freed meanwhile.
#[test]
fn rows_can_be_deleted_where_the_limit_leaves_no_memory() {
    fn run<I: Isolation>() {
        let mut options = EngineOptions::default();
        options.memory_limit_bytes = Some(16 << 20);
        let (engine, store, [mut session, mut reader]) = start_with::<I>(options);
        for _ in 0..2 {
            let rows = fill_up(&mut session, &store);
            let snapshot = reader.begin_snapshot();
            for number in 0..rows / 4 {
                let mut tx = session.begin();
                let found = tx.find(&store, &number.to_be_bytes()).unwrap().unwrap();
                tx.delete(found).unwrap();
                match number % 8 {
                    0 => drop(tx),
                    _ => _ = tx.commit().unwrap(),
                }
            }
            drop(snapshot);
            let mut tx = session.begin();
            tx.scan(
                &store,
                (Bound::Unbounded, Bound::Unbounded),
                Direction::Forward,
                |_, row| assert_eq!(row.word(0), 7),
                |_, ()| ControlFlow::Continue(()),
            )
            .unwrap();
            drop(tx);
            let mut left = (0..rows).filter(|number| *number >= rows / 4 || number % 8 == 0);
            assert!(left.all(|number| delete_if_there(&mut session, &store, number)));
            let began = Instant::now();
            while engine.last_key(&store).is_some() {
                engine.epochs().advance();
                session.collect();
                assert!(began.elapsed() < Duration::from_secs(20), "{:?}", engine.statistics());
            }
        }
    }
    run::<Serializable>();
    run::<SnapshotIsolation>();
}

fn delete_if_there<I: Isolation>(session: &mut ErmiaSession<I>, store: &ErmiaStore, number: u64) -> bool {
    let mut tx = session.begin();
    let Some(found) = tx.find(store, &number.to_be_bytes()).unwrap() else { return false };
    tx.delete(found).unwrap();
    tx.commit().is_ok()
}

#[test]
fn a_replay_needs_no_memory_for_large_rows_that_were_deleted_or_are_short_now() {
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    options.memory_limit_bytes = Some(24 << 20);
    let engine = Ermia::<Serializable>::start(options).unwrap();
    let replayer = engine.replayer();
    let mut worker = replayer.worker();
    let large = vec![7; 8 << 20];
    for key in 0..20_u64 {
        let second = if key % 2 == 0 { Change::Delete } else { Change::Put(&large[..100]) };
        for (number, change) in (1..).zip([Change::Put(&large), second]) {
            let write = LogWrite { tid: (2 * key + number) << 3, table: 1, key: &key.to_be_bytes(), change };
            replayer.apply(&mut worker, &[write]).unwrap();
        }
    }
    drop(worker);
    assert_eq!(replayer.finish().unwrap().stores[0].rows, 10);
}
