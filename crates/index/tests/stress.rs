//! Many threads at once, with invariants checked while they run and the whole tree afterwards.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use common::{NodeSet, Numbers, epochs, insert, missing};
use ensilo_epoch::{Epochs, Guard, Participant};
use ensilo_index::{Direction, Inserted, Lookup, Masstree, NodeStamp, ScanVisitor};

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

/// Ends the threads that run until told, also when the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Steps for each thread; fewer where each costs more.
fn steps(full: u64) -> u64 {
    if cfg!(debug_assertions) { full / 5 } else { full }
}

/// The value that belongs to a key: a reader that gets another one read memory that was not the key's.
fn value_of(key: &[u8]) -> u64 {
    key.iter().fold(1, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)) | 1
}

/// Keys of different shapes from a number.
fn key_of(number: u64) -> Vec<u8> {
    match number % 5 {
        0 => number.to_be_bytes().to_vec(),
        1 => [number % 8, number].map(u64::to_be_bytes).concat(),
        2 => [vec![9; (number % 30) as usize], number.to_be_bytes().to_vec()].concat(),
        3 => [vec![9; 8 * (number % 40) as usize], number.to_be_bytes().to_vec()].concat(),
        _ => number.to_le_bytes()[..3].to_vec(),
    }
}

/// Checks order and values of what it sees, and counts the keys that must be there.
struct Watch<'a> {
    stable: &'a BTreeSet<Vec<u8>>,
    seen_stable: usize,
    previous: Option<Vec<u8>>,
    direction: Direction,
    nodes: Vec<NodeStamp>,
}

impl ScanVisitor for Watch<'_> {
    fn node(&mut self, stamp: NodeStamp) {
        self.nodes.push(stamp);
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        assert_eq!(value, value_of(key));
        if let Some(previous) = &self.previous {
            match self.direction {
                Direction::Forward => assert!(previous.as_slice() < key, "{previous:?} before {key:?}"),
                Direction::Reverse => assert!(previous.as_slice() > key, "{previous:?} before {key:?}"),
            }
        }
        self.previous = Some(key.to_vec());
        self.seen_stable += usize::from(self.stable.contains(key));
        ControlFlow::Continue(())
    }
}

fn watch_once(tree: &Masstree, stable: &BTreeSet<Vec<u8>>, direction: Direction, guard: &Guard<'_>) {
    let mut watch = Watch { stable, seen_stable: 0, previous: None, direction, nodes: Vec::new() };
    tree.scan(ALL, direction, guard, &mut watch);
    assert_eq!(watch.seen_stable, stable.len(), "no stable key is missed");
}

/// Moves the epochs on all the time, so that memory is reused as soon as it may be.
fn advance_until(stop: &AtomicBool, epochs: &Epochs) {
    while !stop.load(Ordering::Relaxed) {
        epochs.advance();
        thread::yield_now();
    }
}

/// Scans and looks up until told to stop.
fn watch_until(
    stop: &AtomicBool,
    tree: &Masstree,
    stable: &BTreeSet<Vec<u8>>,
    participant: &Participant,
    seed: u64,
) {
    let keys: Vec<&Vec<u8>> = stable.iter().collect();
    let mut numbers = Numbers(seed);
    while !stop.load(Ordering::Relaxed) {
        let guard = participant.pin();
        let direction = if numbers.below(2) == 0 { Direction::Forward } else { Direction::Reverse };
        watch_once(tree, stable, direction, &guard);
        for _ in 0..100 {
            let group: Vec<&Vec<u8>> =
                (0..20).map(|_| keys[numbers.below(keys.len() as u64) as usize]).collect();
            tree.get_many(&group, &guard, |index, lookup| {
                assert_eq!(lookup, Lookup::Found(value_of(group[index])));
            });
            let key = group[0];
            assert_eq!(tree.get(key, &guard), Lookup::Found(value_of(key)));
        }
        drop(guard);
        participant.collect(usize::MAX);
    }
}

/// Inserts and removes keys of its own, which nobody else touches: the result of every step is known.
fn churn_own(tree: &Masstree, participant: &Participant, (thread, threads): (u64, u64), rounds: u64) {
    let mut numbers = Numbers(thread);
    let mut present = BTreeSet::new();
    for round in 0..rounds {
        let guard = participant.pin();
        // Phases of growing and shrinking, so that nodes and layers come and go.
        let grow = (round / 2000) % 2 == 0;
        let number = numbers.below(600) * threads * 2 + thread * 2 + 1;
        let key = key_of(number);
        let value = value_of(&key);
        if numbers.below(8) < if grow { 6 } else { 1 } {
            let expected =
                if present.insert(key.clone()) { Inserted::New } else { Inserted::Existing(value) };
            assert_eq!(insert(tree, &key, value, &guard), expected);
        } else {
            assert_eq!(tree.remove(&key, value, &guard), present.remove(&key));
        }
        let probe = key_of(numbers.below(600) * threads * 2 + thread * 2 + 1);
        let found = matches!(tree.get(&probe, &guard), Lookup::Found(_));
        assert_eq!(found, present.contains(&probe));
        drop(guard);
        participant.collect(64);
    }
    let guard = participant.pin();
    for key in &present {
        assert!(tree.remove(key, value_of(key), &guard));
    }
}

fn new_tree(participant: &Participant) -> Masstree {
    Masstree::new(&participant.pin(), common::ACCOUNT).unwrap()
}

#[test]
fn threads_on_keys_of_their_own_find_what_they_left() {
    let epochs = epochs();
    let participant = epochs.participant();
    let tree = new_tree(&participant);
    let stable: BTreeSet<Vec<u8>> =
        (0..400).map(|number| key_of(number * 26)).filter(|key| key.len() != 3).collect();
    for key in &stable {
        insert(&tree, key, value_of(key), &participant.pin());
    }
    let before = tree.verify(&participant.pin());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| advance_until(&stop, &epochs));
        for seed in 0..2 {
            let (stop, tree, stable, epochs) = (&stop, &tree, &stable, &epochs);
            scope.spawn(move || watch_until(stop, tree, stable, &epochs.participant(), seed));
        }
        let _stop = StopOnDrop(&stop);
        let writers: Vec<_> = (0..3)
            .map(|thread| {
                let (tree, epochs) = (&tree, &epochs);
                scope.spawn(move || churn_own(tree, &epochs.participant(), (thread, 3), steps(300_000)))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    let after = tree.verify(&participant.pin());
    assert_eq!(after.keys, before.keys);
    for key in &stable {
        assert!(tree.remove(key, value_of(key), &participant.pin()));
    }
    let empty = tree.verify(&participant.pin());
    assert_eq!((empty.keys, empty.layers, empty.border_nodes), (0, 1, 1), "what became empty left the tree");
}

/// Inserts, removes and replaces keys that all threads fight for, and counts who won.
fn churn_shared(tree: &Masstree, participant: &Participant, balance: &[AtomicI64], seed: u64, rounds: u64) {
    let mut numbers = Numbers(seed);
    for _ in 0..rounds {
        let guard = participant.pin();
        let number = numbers.below(balance.len() as u64);
        let key = key_of(number);
        let value = value_of(&key);
        match numbers.below(3) {
            0 => match insert(tree, &key, value, &guard) {
                Inserted::New => {
                    balance[number as usize].fetch_add(1, Ordering::Relaxed);
                }
                Inserted::Existing(existing) => assert_eq!(existing, value),
            },
            1 => {
                if tree.remove(&key, value, &guard) {
                    balance[number as usize].fetch_sub(1, Ordering::Relaxed);
                }
            }
            _ => {
                tree.replace(&key, value, value, &guard);
            }
        }
        drop(guard);
        participant.collect(64);
    }
}

#[test]
fn of_two_inserts_or_removes_of_a_key_one_wins() {
    for keys in [8, 500] {
        let epochs = epochs();
        let participant = epochs.participant();
        let tree = new_tree(&participant);
        let balance: Vec<AtomicI64> = (0..keys).map(|_| AtomicI64::new(0)).collect();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| advance_until(&stop, &epochs));
            let _stop = StopOnDrop(&stop);
            let writers: Vec<_> = (0..4)
                .map(|seed| {
                    let (tree, epochs, balance) = (&tree, &epochs, &balance);
                    scope.spawn(move || {
                        churn_shared(tree, &epochs.participant(), balance, seed, steps(300_000))
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
        let guard = participant.pin();
        for (number, balance) in balance.iter().enumerate() {
            let found = matches!(tree.get(&key_of(number as u64), &guard), Lookup::Found(_));
            assert_eq!(balance.load(Ordering::Relaxed), i64::from(found));
        }
        tree.verify(&guard);
    }
}

/// A queue of ascending keys: appended at one end, removed at the other, by different threads.
#[test]
fn a_queue_moves_through_the_tree_and_leaves_no_nodes_behind() {
    const LENGTH: u64 = 400;
    let epochs = epochs();
    let participant = epochs.participant();
    let tree = new_tree(&participant);
    let total = steps(500_000);
    let (stop, none) = (AtomicBool::new(false), BTreeSet::from([b"\0".to_vec()]));
    insert(&tree, b"\0", value_of(b"\0"), &participant.pin());
    let tail = std::sync::atomic::AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| advance_until(&stop, &epochs));
        scope.spawn(|| watch_until(&stop, &tree, &none, &epochs.participant(), 5));
        let _stop = StopOnDrop(&stop);
        let consumer = scope.spawn(|| {
            let participant = epochs.participant();
            for number in 1..=total {
                while tail.load(Ordering::Acquire) < (number + LENGTH).min(total) {
                    thread::yield_now();
                }
                let key = number.to_be_bytes();
                assert!(tree.remove(&key, value_of(&key), &participant.pin()), "{number}");
                participant.collect(64);
            }
        });
        let participant = epochs.participant();
        for number in 1..=total {
            let key = number.to_be_bytes();
            assert_eq!(insert(&tree, &key, value_of(&key), &participant.pin()), Inserted::New);
            tail.store(number, Ordering::Release);
            participant.collect(64);
        }
        consumer.join().unwrap();
    });
    let statistics = tree.verify(&participant.pin());
    assert_eq!(statistics.keys, 1);
    assert_eq!(statistics.border_nodes, 1, "the first node stays, the others left");
}

/// Transactions in small: each reads that a key is missing and inserts it. By its stamps it learns whether it stayed
/// missing until then; of all who believe so, one inserted it.
#[test]
fn stamps_and_inserts_agree_on_who_was_first() {
    let epochs = epochs();
    let participant = epochs.participant();
    let tree = Arc::new(new_tree(&participant));
    let rounds = steps(100_000);
    let winners: Vec<AtomicI64> = (0..rounds).map(|_| AtomicI64::new(0)).collect();
    let barrier = std::sync::Barrier::new(3);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (tree, epochs, winners, barrier) = (&tree, &epochs, &winners, &barrier);
            scope.spawn(move || {
                let participant = epochs.participant();
                let mut numbers = Numbers(seed);
                barrier.wait();
                for round in 0..rounds {
                    let guard = participant.pin();
                    let key = key_of(round * 7 % rounds);
                    if matches!(tree.get(&key, &guard), Lookup::Found(_)) {
                        continue;
                    }
                    let mut nodes = match tree.get(&key, &guard) {
                        Lookup::Missing(stamp) => NodeSet::of(&[stamp]),
                        Lookup::Found(_) => continue,
                    };
                    let other = key_of(rounds + numbers.below(rounds));
                    tree.insert_if_absent(&other, value_of(&other), &guard, &mut nodes).unwrap();
                    let inserted = tree.insert_if_absent(&key, value_of(&key), &guard, &mut nodes).unwrap();
                    if inserted == Inserted::New && nodes.is_current(&guard) {
                        winners[(round * 7 % rounds) as usize].fetch_add(1, Ordering::Relaxed);
                    } else if inserted != Inserted::New {
                        // Whoever inserted it may still hold the lock, and the version is about to change.
                        while nodes.is_current(&guard) {
                            thread::yield_now();
                        }
                    }
                }
            });
        }
    });
    let guard = participant.pin();
    assert!(winners.iter().all(|count| count.load(Ordering::Relaxed) <= 1));
    assert!(winners.iter().any(|count| count.load(Ordering::Relaxed) == 1));
    let _ = missing(&tree, b"nobody's", &guard);
    tree.verify(&guard);
}
