//! Pairs of keys of which one is there at each moment.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::*;
use ensilo_engine::Remains;
use ensilo_txn::{Abort, Direction, Engine, Read, Session, Store, Worker, Write};

fn name(pair: u64, side: u64) -> String {
    match pair % 4 {
        0 => format!("g{:07}{side}-{pair}", pair / 8),
        1 => format!("g{:07}{side}", pair),
        2 => format!("k{pair:02}{side}"),
        _ => format!("g{:07}mmmmmmmm{side}-{pair}", pair / 16),
    }
}

const PAIRS: u64 = 48;

fn check(seen: &[(String, u64)], direction: Direction, what: &str) {
    let mut sorted = seen.to_vec();
    sorted.sort();
    if direction == Direction::Reverse {
        sorted.reverse();
    }
    assert_eq!(seen, sorted, "{what}: order");
    sorted.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(sorted.len(), seen.len(), "{what}: twice");
    let mut sides = vec![0; PAIRS as usize];
    for (_, pair) in seen {
        sides[*pair as usize] += 1;
    }
    for (pair, sides) in sides.iter().enumerate() {
        assert_eq!(*sides, 1, "{what}: pair {pair} {}", name(pair as u64, 0));
    }
}

/// A random number that follows `number`, which is not 0.
fn next(number: &mut u64) -> u64 {
    *number ^= *number << 13;
    *number ^= *number >> 7;
    *number ^= *number << 17;
    *number
}

/// Moves some pairs to their other sides in one transaction, which may be given up in the end.
fn move_pairs(worker: &mut Worker, store: &Store, random: u64) -> Result<(), Abort> {
    let (first, is_large, is_given_up) = (random % PAIRS, random >> 20 & 3 == 0, random >> 24 & 7 == 0);
    let more = if random >> 40 & 63 == 0 { PAIRS } else { random >> 32 & 3 };
    let mut tx = worker.begin();
    for pair in (first..=first + more).map(|pair| pair % PAIRS) {
        let row = vec![pair; if is_large { 40 } else { 1 }];
        let [one, other] = [name(pair, 0), name(pair, 1)];
        let found = [tx.find(store, one.as_bytes())?, tx.find(store, other.as_bytes())?];
        let (from, to) = match found {
            [Some(found), None] => (found, other),
            [None, Some(found)] => (found, one),
            _ => return Err(tx.check().expect_err("an inconsistent state is not current")),
        };
        tx.delete(from)?;
        if !tx.insert(store, to.as_bytes(), &row, row.len() * 8)? {
            return Err(tx.check().expect_err("it was missing"));
        }
    }
    if is_given_up {
        tx.abort();
        return Ok(());
    }
    tx.commit().map(|_| ())
}

/// Looks at everything by a snapshot: its scan, and each key.
fn look_at_snapshot(worker: &mut Worker, store: &Store, direction: Direction) {
    let mut snapshot = worker.begin_snapshot();
    let Ok(seen) = try_scan_all(&mut snapshot, store, direction) else { return };
    check(&seen, direction, "snapshot");
    for pair in 0..PAIRS {
        for side in [0, 1].map(|side| name(pair, side)) {
            let Ok(row) = try_read(&mut snapshot, store, &side) else { return };
            assert_eq!(row.is_some(), seen.iter().any(|(key, _)| *key == side), "{side}");
        }
    }
}

fn look_at_present(worker: &mut Worker, store: &Store, direction: Direction) {
    let mut tx = worker.begin();
    if let Ok(seen) = try_scan_all(&mut tx, store, direction)
        && tx.commit().is_ok()
    {
        check(&seen, direction, "transaction");
    }
}

#[test]
fn one_of_each_pair_is_seen() {
    let (engine, store) = engine_and_store();
    let mut first = engine.session();
    commit(&mut first, |tx| (0..PAIRS).for_each(|pair| assert!(insert(tx, &store, &name(pair, 0), &[pair]))));
    drop(first);
    pass_snapshot(&engine);
    let (until, moves) = (Instant::now() + Duration::from_secs(4), AtomicU64::new(0));
    let is_over = || Instant::now() > until;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                engine.epochs().advance();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        for seed in 1..3 {
            let (engine, store, moves) = (&engine, &store, &moves);
            scope.spawn(move || {
                let (mut worker, mut random) = (engine.session(), seed);
                while !is_over() {
                    let outcome = move_pairs(&mut worker, store, next(&mut random));
                    moves.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
                }
            });
        }
        for look in [look_at_snapshot, look_at_snapshot, look_at_present] {
            let (engine, store) = (&engine, &store);
            scope.spawn(move || {
                let mut worker = engine.session();
                while !is_over() {
                    look(&mut worker, store, Direction::Forward);
                    look(&mut worker, store, Direction::Reverse);
                }
            });
        }
    });
    assert!(moves.into_inner() > 0);
    let mut worker = engine.session();
    for _ in 0..20 {
        pass_snapshot(&engine);
        while worker.collect() == Remains::Now {}
        while engine.collect_orphaned() == Remains::Now {}
    }
    let left = engine.statistics().transactions;
    assert_eq!((left.versions, left.deleted_records), (0, 0));
}
