//! Transactions over keys, with the index, side by side in random orders of their steps.
//!
//! A failure prints the schedule. Shuttle executes every atomic access in the order of the schedule: it finds errors of the protocol, not of
//! the memory ordering.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use ensilo_engine::{Abort, Direction, Read};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::serial_order::{Deed, is_serializable};
use super::{ModelSession, Stage, fails, fails_without};
use crate::isolation::{Fault, Isolation, Serializable, SnapshotIsolation};
use crate::planted::Step;
use crate::store::ErmiaStore;
use crate::transaction::Transaction;

const ROW_BYTES: usize = 8;

/// So many keys there are.
const KEYS: usize = 3;

/// What a transaction does, one after the other.
#[derive(Copy, Clone, Debug)]
enum Op {
    Get(usize),
    /// Inserts the key if it is missing, and overwrites its row otherwise.
    Put(usize),
    /// Inserts the key if it is missing, without a look at it before.
    Insert(usize),
    /// The same, and takes the row back.
    TakeBack(usize),
    /// Deletes the key if it is there.
    Delete(usize),
    /// Looks at all keys.
    Scan,
    /// Checks what was read.
    Check,
}

fn key_of(key: usize) -> [u8; 1] {
    [key as u8]
}

/// Runs operations, and adds what the transaction has seen and made. What it makes is `number`.
fn operate<I: Isolation>(
    tx: &mut Transaction<'_, I>,
    stage: &Stage,
    (number, ops): (u64, &[Op]),
    deeds: &mut Vec<Deed>,
) -> Result<(), Abort> {
    for op in ops {
        let key = match *op {
            Op::Get(key) | Op::Put(key) | Op::Delete(key) => key,
            Op::Insert(key) | Op::TakeBack(key) => {
                insert(tx, stage, (number, key), matches!(op, Op::TakeBack(_)), deeds)?;
                continue;
            }
            Op::Scan => {
                deeds.extend(seen_by(&scan(tx, stage)?));
                continue;
            }
            Op::Check => {
                tx.check_reads()?;
                continue;
            }
        };
        let found = tx.find_key(&stage.store, &key_of(key))?;
        let row = found.map(|found| tx.read_found(found, |row| row.word(0))).transpose()?;
        deeds.push(Deed::Saw(key, row));
        match (*op, found) {
            (Op::Put(_), Some(found)) => tx.put_found(found, &[number], ROW_BYTES)?,
            (Op::Put(_), None) => {
                assert!(tx.insert_row(&stage.store, &key_of(key), &[number], ROW_BYTES)?, "it was missing");
            }
            (Op::Delete(_), Some(found)) => tx.delete_found(found)?,
            _ => continue,
        }
        deeds.push(Deed::Made(key, Some(number).filter(|_| matches!(op, Op::Put(_)))));
    }
    Ok(())
}

/// Inserts a key without a look at it, and adds what comes of that.
fn insert<I: Isolation>(
    tx: &mut Transaction<'_, I>,
    stage: &Stage,
    (number, key): (u64, usize),
    is_taken_back: bool,
    deeds: &mut Vec<Deed>,
) -> Result<(), Abort> {
    if !tx.insert_row(&stage.store, &key_of(key), &[number], ROW_BYTES)? {
        return Ok(());
    }
    deeds.push(Deed::Saw(key, None));
    if is_taken_back {
        let own = tx.find_key(&stage.store, &key_of(key))?.unwrap();
        return tx.delete_found(own);
    }
    deeds.push(Deed::Made(key, Some(number)));
    Ok(())
}

fn seen_by(rows: &BTreeMap<usize, u64>) -> impl Iterator<Item = Deed> {
    (0..KEYS).map(|key| Deed::Saw(key, rows.get(&key).copied()))
}

fn scan(tx: &mut impl Read<Store = ErmiaStore>, stage: &Stage) -> Result<BTreeMap<usize, u64>, Abort> {
    let mut rows = BTreeMap::new();
    let each = |_, (key, row)| {
        rows.insert(key, row);
        ControlFlow::Continue(())
    };
    let decode = |key: &[u8], row: ensilo_engine::RowRef<'_>| (usize::from(key[0]), row.word(0));
    tx.scan(&stage.store, (Bound::Unbounded, Bound::Unbounded), Direction::Forward, decode, each)?;
    Ok(rows)
}

/// Runs a transaction; what it has seen and made, if it has committed.
fn run<I: Isolation>(session: &mut ModelSession<I>, number: u64, ops: &[Op]) -> Option<Vec<Deed>> {
    let (stage, mut deeds) = (session.stage.clone(), Vec::new());
    let mut tx = session.begin();
    let done = operate(&mut tx, &stage, (number, ops), &mut deeds);
    done.and_then(|()| tx.end_by_commit()).ok().map(|_| deeds)
}

/// Frees what the session has deleted, as far as nobody needs it: keys leave the index.
fn collect<I: Isolation>(session: &mut ModelSession<I>) {
    session.stage.shared.keep_up_now();
    drop(session.begin());
}

/// Runs transactions side by side, of which those that have committed have a serial order. Before that, keys are made, and some are deleted;
/// beside them these leave the index, and a safe snapshot is looked at.
fn side_by_side<I: Isolation>(prepared: [&[Op]; 2], programs: Vec<Vec<Op>>) {
    let stage = Stage::new();
    let mut first = stage.session::<I>();
    prepared.iter().for_each(|ops| assert!(run(&mut first, 100, ops).is_some()));
    let begin = scan(&mut first.begin(), &stage).unwrap();
    let threads: Vec<_> = (1..)
        .zip(programs.clone())
        .map(|(number, ops)| {
            let mut session = stage.session::<I>();
            thread::spawn(move || {
                let deeds = run(&mut session, number, &ops);
                collect(&mut session);
                (deeds, session)
            })
        })
        .collect();
    let mut session = stage.session::<I>();
    let looks_back = thread::spawn(move || {
        let stage = session.stage.clone();
        scan(&mut session.begin_snapshot(), &stage).unwrap()
    });
    collect(&mut first);
    let seen: Vec<Deed> = seen_by(&looks_back.join().unwrap()).collect();
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let end = scan(&mut first.begin(), &stage).unwrap();
    let committed = ended.iter().filter_map(|(deeds, _)| deeds.as_deref()).chain([&*seen]);
    let committed: Vec<&[Deed]> = committed.collect();
    assert!(
        is_serializable(&committed, &begin, &end),
        "no serial order of {programs:?} from {begin:?}: {committed:?}, and {end:?} in the end"
    );
}

/// Three transactions of some operations each.
fn any_transactions<I: Isolation>() {
    let any_op = || match (thread_rng().gen_range(0..12), thread_rng().gen_range(0..KEYS)) {
        (0..3, key) => Op::Get(key),
        (3..6, key) => Op::Put(key),
        (6, key) => Op::Delete(key),
        (7, key) => Op::Insert(key),
        (8..10, key) => Op::TakeBack(key),
        (10, _) => Op::Check,
        _ => Op::Scan,
    };
    let programs = (0..3).map(|_| (0..thread_rng().gen_range(1..4)).map(|_| any_op()).collect());
    side_by_side::<I>([&[Op::Put(0), Op::Put(1)], &[Op::Delete(0)]], programs.collect());
}

/// A key that is leaving the index comes back beside one that misses it: neither sees the other.
fn a_key_returns_beside_a_miss<I: Isolation>() {
    let programs = vec![vec![Op::Get(0), Op::Put(1)], vec![Op::Get(1), Op::Put(0)]];
    side_by_side::<I>([&[Op::Put(0), Op::Put(1)], &[Op::Delete(0)]], programs);
}

/// A row that is taken back beside one that is inserted under its key by somebody who must come before: neither looks at the key.
fn an_insert_is_taken_back_beside_another<I: Isolation>() {
    let programs = vec![vec![Op::Put(1), Op::TakeBack(0)], vec![Op::Get(1), Op::Insert(0)]];
    side_by_side::<I>([&[Op::Put(0), Op::Put(1)], &[Op::Delete(0)]], programs);
}

/// Runs so many schedules, with few switches between threads in half of them.
fn explore(schedules: usize, model: impl Fn() + Copy + Send + Sync + 'static) {
    shuttle::check_pct(model, schedules / 2, 3);
    shuttle::check_random(model, schedules / 2);
}

level!(NoNodes, Some(Fault::SkipNodes), "Without the node set.");
level!(NoMisses, Some(Fault::ForgetMisses), "Without the stamps of those who miss a key.");
level!(
    NoTakenBack,
    Some(Fault::ForgetTakenBack),
    "Without the stamps of those who have taken back what they inserted."
);
level!(NoPassedOver, Some(Fault::ForgetPassedOver), "Without the inserts that were passed over.");

#[test]
fn any_transactions_over_some_keys_have_a_serial_order() {
    explore(60_000, any_transactions::<Serializable>);
}

#[test]
fn a_key_that_returns_is_not_missed_by_one_that_comes_later() {
    explore(40_000, a_key_returns_beside_a_miss::<Serializable>);
}

#[test]
fn an_insert_that_is_taken_back_has_missed_its_key() {
    explore(20_000, an_insert_is_taken_back_beside_another::<Serializable>);
}

#[test]
fn the_model_finds_cycles_under_snapshot_isolation() {
    assert!(fails(|| explore(20_000, any_transactions::<SnapshotIsolation>)));
}

#[test]
fn the_model_notices_a_commit_without_the_node_set() {
    assert!(fails(|| explore(20_000, any_transactions::<NoNodes>)));
}

#[test]
fn the_model_notices_misses_that_leave_no_stamp() {
    assert!(fails(|| explore(20_000, any_transactions::<NoMisses>)));
}

#[test]
fn the_model_notices_inserts_that_are_taken_back_and_leave_no_stamp() {
    assert!(fails(|| explore(40_000, an_insert_is_taken_back_beside_another::<NoTakenBack>)));
}

#[test]
fn the_model_notices_inserts_that_were_passed_over() {
    assert!(fails(|| explore(20_000, any_transactions::<NoPassedOver>)));
}

#[test]
fn the_model_notices_an_entry_of_the_index_that_is_not_looked_at_again() {
    let model = || explore(40_000, a_key_returns_beside_a_miss::<Serializable>);
    assert!(fails_without(Step::SecondLookAtRecord, model));
}
