//! Snapshots that last: what they show stays, and what nobody needs is not kept for them.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{EPOCHS_PER_SNAPSHOT, commit, delete, insert, manual_engine_of, pass_snapshot, put, read};
use ensilo_txn::{Engine, EngineOptions, Session, Silo, Snapshot, Standard, Store, TableId, Worker, Write};
use proptest::prelude::*;

const KEYS: [&str; 3] = ["a", "b", "c"];

type Rows = BTreeMap<&'static str, Vec<u64>>;

/// An engine whose snapshots may grow as old as they like.
fn engine_and_store() -> (Arc<Silo>, Arc<Store>) {
    let mut options = EngineOptions::default();
    options.snapshot_age_max = u64::MAX;
    let engine = manual_engine_of::<Standard>(options);
    let store = engine.new_store(TableId(1)).unwrap();
    (engine, store)
}

#[test]
fn versions_stay_few_however_long_a_snapshot_lasts() {
    let (engine, store) = engine_and_store();
    let (mut one, mut other, mut reader) = (engine.session(), engine.session(), engine.session());
    commit(&mut one, |tx| {
        for key in 0..10 {
            insert(tx, &store, &format!("{key}"), &[0, key]);
        }
    });
    pass_snapshot(&engine);
    let mut snapshot = reader.begin_snapshot();
    let mut most = [0; 2];
    for round in 1..200 {
        let writer = if round % 2 == 0 { &mut one } else { &mut other };
        commit(writer, |tx| (0..10).for_each(|key| put(tx, &store, &format!("{key}"), &[round, key])));
        for _ in 0..EPOCHS_PER_SNAPSHOT {
            engine.epochs().advance();
        }
        let half = usize::from(round >= 100);
        most[half] = most[half].max(engine.statistics().transactions.versions);
    }
    for key in 0..10 {
        assert_eq!(read(&mut snapshot, &store, &format!("{key}")), Some(vec![0, key]));
    }
    drop(snapshot);
    assert!(most[0] <= 50 && most[1] <= most[0], "{most:?} versions of ten rows");
    for _ in 0..4 {
        pass_snapshot(&engine);
        one.collect();
        other.collect();
    }
    assert_eq!(engine.statistics().transactions.versions, 0);
}

/// What happens, one after the other.
#[derive(Clone, Debug)]
enum Step {
    /// One of two workers writes a row of so many words, or deletes it.
    Write {
        by: usize,
        key: usize,
        words: usize,
    },
    Delete {
        by: usize,
        key: usize,
    },
    Advance(u64),
    Begin,
    /// The snapshot ends that began so many snapshots ago.
    End(usize),
    Collect(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (by, key) = (0..2_usize, 0..KEYS.len());
    prop_oneof![
        8 => (by.clone(), key.clone(), 1..5_usize).prop_map(|(by, key, words)| Step::Write { by, key, words }),
        1 => (by.clone(), key).prop_map(|(by, key)| Step::Delete { by, key }),
        6 => (1..2 * EPOCHS_PER_SNAPSHOT).prop_map(Step::Advance),
        2 => Just(Step::Begin),
        1 => (0..4_usize).prop_map(Step::End),
        2 => by.prop_map(Step::Collect),
    ]
}

/// The rows after each commit, with its epoch.
struct Past(Vec<(u64, Rows)>);

impl Past {
    fn now(&self) -> Rows {
        self.0.last().map(|(_, rows)| rows.clone()).unwrap_or_default()
    }

    /// What a snapshot at this epoch shows: the commits with an earlier one.
    fn before(&self, epoch: u64) -> Rows {
        self.0
            .iter()
            .rfind(|(committed, _)| *committed < epoch)
            .map(|(_, rows)| rows.clone())
            .unwrap_or_default()
    }
}

fn shown(snapshot: &mut Snapshot<'_, Standard>, store: &Store) -> Rows {
    KEYS.iter().filter_map(|key| Some((*key, read(snapshot, store, key)?))).collect()
}

fn write(worker: &mut Worker, store: &Store, key: &'static str, row: Option<&Vec<u64>>) -> u64 {
    let mut tx = worker.begin();
    match (row, read(&mut tx, store, key)) {
        (Some(row), Some(_)) => put(&mut tx, store, key, row),
        (Some(row), None) => assert!(insert(&mut tx, store, key, row)),
        (None, Some(_)) => delete(&mut tx, store, key),
        (None, None) => {}
    }
    tx.commit().unwrap().epoch.get()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_snapshot_shows_what_was_there_when_it_began(steps in prop::collection::vec(step(), 1..200)) {
        let (engine, store) = engine_and_store();
        let mut workers = [engine.session(), engine.session()];
        let begins = steps.iter().filter(|step| matches!(step, Step::Begin)).count();
        let mut readers: Vec<_> = (0..begins).map(|_| engine.session()).collect();
        let mut idle = readers.iter_mut();
        let mut open: Vec<(Snapshot<'_, Standard>, Rows)> = Vec::new();
        let mut past = Past(Vec::new());
        for (at, step) in steps.iter().enumerate() {
            match *step {
                Step::Write { by, key, words } => {
                    let row: Vec<_> = (0..words as u64).map(|word| at as u64 * 10 + word).collect();
                    let epoch = write(&mut workers[by], &store, KEYS[key], Some(&row));
                    let mut rows = past.now();
                    rows.insert(KEYS[key], row);
                    past.0.push((epoch, rows));
                }
                Step::Delete { by, key } => {
                    let epoch = write(&mut workers[by], &store, KEYS[key], None);
                    let mut rows = past.now();
                    if rows.remove(KEYS[key]).is_some() {
                        past.0.push((epoch, rows));
                    }
                }
                Step::Advance(epochs) => (0..epochs).for_each(|_| engine.epochs().advance()),
                Step::Begin => {
                    let snapshot = idle.next().unwrap().begin_snapshot();
                    let expected = past.before(snapshot.epoch().get());
                    open.push((snapshot, expected));
                }
                Step::End(ago) if ago < open.len() => drop(open.remove(open.len() - 1 - ago)),
                Step::End(_) => {}
                Step::Collect(by) => {
                    workers[by].collect();
                }
            }
            for (snapshot, expected) in &mut open {
                let rows = shown(snapshot, &store);
                prop_assert_eq!(&rows, expected, "snapshot of {} after step {}", snapshot.epoch(), at);
            }
        }
        drop(open);
        for _ in 0..6 {
            pass_snapshot(&engine);
            for worker in &mut workers {
                worker.collect();
            }
        }
        prop_assert_eq!(engine.statistics().transactions.versions, 0);
    }
}
