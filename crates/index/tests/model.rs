//! The index against `BTreeMap`, one thread.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{ACCOUNT, Numbers, epochs, insert, scan};
use ensilo_epoch::Guard;
use ensilo_index::{Direction, Inserted, KEY_LEN_MAX, Lookup, Masstree};
use proptest::prelude::*;

type Model = BTreeMap<Vec<u8>, u64>;

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>),
    Remove(Vec<u8>),
    RemoveRange(Vec<u8>, usize),
    Replace(Vec<u8>),
    Get(Vec<u8>),
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>, bool, Option<usize>),
}

/// Keys that meet: few different bytes, shared prefixes, lengths around multiples of 8.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let short = prop::collection::vec(0u8..3, 0..=9);
    let around =
        (0usize..4, 0usize..3, prop::collection::vec(0u8..2, 3)).prop_map(|(slices, length, tail)| {
            let mut key = vec![1; 8 * slices];
            key.extend(&tail[..length]);
            key
        });
    let number = (0u64..400).prop_map(|number| number.to_be_bytes().to_vec());
    let composite = (0u64..2, 0u64..3, 0u64..60)
        .prop_map(|(a, b, c)| [a, b, c].iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>());
    let long = (0usize..5, 0u8..3).prop_map(|(length, end)| {
        let mut key = vec![7; 60 + length];
        key.push(end);
        key
    });
    // Keys along one path of many slices, which leave it anywhere: below it, above it, or by their ends.
    let path = (0usize..12, prop::collection::vec(prop::sample::select(vec![0u8, 4, 9]), 0..=9))
        .prop_map(|(slices, tail)| [vec![4; 8 * slices], tail].concat());
    prop_oneof![1 => short, 1 => around, 1 => number, 1 => composite, 1 => long, 2 => path]
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        2 => key().prop_map(Bound::Included),
        2 => key().prop_map(Bound::Excluded),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => key().prop_map(Step::Insert),
        3 => key().prop_map(Step::Remove),
        1 => (key(), 1usize..60).prop_map(|(key, count)| Step::RemoveRange(key, count)),
        1 => key().prop_map(Step::Replace),
        2 => key().prop_map(Step::Get),
        2 => (bound(), bound(), any::<bool>(), prop::option::of(1usize..5))
            .prop_map(|(low, high, reverse, limit)| Step::Scan(low, high, reverse, limit)),
    ]
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn model_range(
    model: &Model,
    low: &Bound<Vec<u8>>,
    high: &Bound<Vec<u8>>,
    reverse: bool,
) -> Vec<(Vec<u8>, u64)> {
    let within = |key: &[u8]| {
        let above = match low {
            Bound::Unbounded => true,
            Bound::Included(low) => key >= low.as_slice(),
            Bound::Excluded(low) => key > low.as_slice(),
        };
        let below = match high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high.as_slice(),
            Bound::Excluded(high) => key < high.as_slice(),
        };
        above && below
    };
    let mut found: Vec<_> =
        model.iter().filter(|(key, _)| within(key)).map(|(key, &value)| (key.clone(), value)).collect();
    if reverse {
        found.reverse();
    }
    found
}

fn check_scan(
    tree: &Masstree,
    model: &Model,
    bounds: (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
    (reverse, limit): (bool, Option<usize>),
    guard: &Guard<'_>,
) {
    let direction = if reverse { Direction::Reverse } else { Direction::Forward };
    let mut collect = common::Collect { limit, ..Default::default() };
    tree.scan((as_slice(bounds.0), as_slice(bounds.1)), direction, guard, &mut collect);
    let mut expected = model_range(model, bounds.0, bounds.1, reverse);
    expected.truncate(limit.unwrap_or(usize::MAX));
    assert_eq!(collect.entries, expected);
}

fn apply(tree: &Masstree, model: &mut Model, step: &Step, value: u64, guard: &Guard<'_>) {
    match step {
        Step::Insert(key) => {
            let expected = model.get(key).map_or(Inserted::New, |&value| Inserted::Existing(value));
            assert_eq!(insert(tree, key, value, guard), expected);
            model.entry(key.clone()).or_insert(value);
        }
        Step::Remove(key) => {
            assert!(!tree.remove(key, u64::MAX, guard));
            let expected = model.remove(key);
            assert_eq!(tree.remove(key, expected.unwrap_or(1), guard), expected.is_some());
        }
        Step::RemoveRange(from, count) => {
            let keys: Vec<_> =
                model.range(from.clone()..).take(*count).map(|(key, &value)| (key.clone(), value)).collect();
            for (key, value) in keys {
                assert!(tree.remove(&key, value, guard));
                model.remove(&key);
            }
        }
        Step::Replace(key) => {
            let old = model.get(key).copied();
            assert_eq!(tree.replace(key, old.unwrap_or(1), value, guard), old.is_some());
            if old.is_some() {
                model.insert(key.clone(), value);
            }
        }
        Step::Get(key) => match tree.get(key, guard) {
            Lookup::Found(value) => assert_eq!(model.get(key), Some(&value)),
            Lookup::Missing(_) => assert_eq!(model.get(key), None),
        },
        Step::Scan(low, high, reverse, limit) => {
            check_scan(tree, model, (low, high), (*reverse, *limit), guard);
        }
    }
}

fn check_all(tree: &Masstree, model: &Model, guard: &Guard<'_>) {
    let statistics = tree.verify(guard);
    assert_eq!(statistics.keys, model.len() as u64);
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut entries = scan(tree, (Bound::Unbounded, Bound::Unbounded), direction, guard).entries;
        if direction == Direction::Reverse {
            entries.reverse();
        }
        assert!(entries.iter().map(|(key, value)| (key, value)).eq(model));
    }
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    let mut seen = 0;
    tree.get_many(&keys, guard, |index, lookup| {
        seen += 1;
        assert_eq!(lookup, Lookup::Found(model[keys[index]]));
    });
    assert_eq!(seen, keys.len());
}

fn run(steps: &[Step]) {
    let epochs = epochs();
    let participant = epochs.participant();
    let (tree, mut model) = {
        let guard = participant.pin();
        (Masstree::new(&guard, common::ACCOUNT).unwrap(), Model::new())
    };
    for (number, step) in steps.iter().enumerate() {
        let guard = participant.pin();
        apply(&tree, &mut model, step, number as u64 + 1000, &guard);
        drop(guard);
        if number % 16 == 0 {
            epochs.advance();
            participant.collect(usize::MAX);
        }
    }
    let guard = participant.pin();
    check_all(&tree, &model, &guard);
    let (mut drained, mut drain) = (Vec::new(), tree.into_drain());
    while !drain.step(&guard, 2, |value| drained.push(value)) {}
    drained.sort_unstable();
    let mut expected: Vec<u64> = model.into_values().collect();
    expected.sort_unstable();
    assert_eq!(drained, expected);
    drop(guard);
    for _ in 0..3 {
        epochs.advance();
        participant.collect(usize::MAX);
    }
    assert_eq!(epochs.pool().usage().of(common::ACCOUNT), 0, "all nodes went back");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn it_behaves_like_a_btree_map(steps in prop::collection::vec(step(), 0..600)) {
        run(&steps);
    }
}

/// Fills a tree with these keys, then removes them in this order, and checks it in between.
fn fill_and_empty(keys: &[Vec<u8>], removals: &[Vec<u8>]) {
    let epochs = epochs();
    let participant = epochs.participant();
    let guard = participant.pin();
    let tree = Masstree::new(&guard, common::ACCOUNT).unwrap();
    let mut model = Model::new();
    for (number, key) in keys.iter().enumerate() {
        apply(&tree, &mut model, &Step::Insert(key.clone()), number as u64 + 1, &guard);
    }
    check_all(&tree, &model, &guard);
    for (number, key) in removals.iter().enumerate() {
        apply(&tree, &mut model, &Step::Remove(key.clone()), 0, &guard);
        if number % (removals.len() / 8 + 1) == 0 {
            check_all(&tree, &model, &guard);
        }
    }
    check_all(&tree, &model, &guard);
}

fn shuffled(keys: &[Vec<u8>], seed: u64) -> Vec<Vec<u8>> {
    let mut keys = keys.to_vec();
    let mut numbers = Numbers(seed);
    for place in (1..keys.len()).rev() {
        keys.swap(place, numbers.below(place as u64 + 1) as usize);
    }
    keys
}

#[test]
fn every_order_of_inserts_and_removes_fills_and_empties_a_large_tree() {
    let numbers: Vec<Vec<u8>> = (0u64..5000).map(|number| (number * 3).to_be_bytes().to_vec()).collect();
    let composites: Vec<Vec<u8>> = (0u64..5000)
        .map(|number| [number % 7, number / 50, number].iter().flat_map(|part| part.to_be_bytes()).collect())
        .collect();
    for keys in [numbers, composites] {
        let reversed: Vec<Vec<u8>> = keys.iter().rev().cloned().collect();
        let orders = [keys.clone(), reversed, shuffled(&keys, 1)];
        for inserts in &orders {
            for removals in &orders {
                fill_and_empty(inserts, removals);
            }
        }
    }
}

/// One path of 25 slices, also where keys have left it, and every place at which a range can begin or end along it.
#[test]
fn ranges_begin_and_end_within_a_path() {
    let epochs = epochs();
    let participant = epochs.participant();
    let guard = participant.pin();
    let tree = Masstree::new(&guard, common::ACCOUNT).unwrap();
    let mut model = Model::new();
    let along = |len: usize, end: &[u8]| [&vec![4; len][..], end].concat();
    let key = |len: usize, end: u8| Step::Insert(along(len, &[end]));
    let before_and_behind = [b"\x04\x04".to_vec(), vec![5; 9], vec![3; 208]].map(Step::Insert);
    let leaving = [key(64, 0), key(64, 9), key(100, 0), Step::Insert(along(136, &[])), key(199, 9)];
    let pair = [key(207, 1), key(207, 2)];
    for steps in [&pair[..], &before_and_behind[..], &leaving[..]] {
        for step in steps {
            let value = model.len() as u64 + 1;
            apply(&tree, &mut model, step, value, &guard);
        }
        let ends = (0..=216).flat_map(|len| [&[][..], &[0], &[5]].map(|end| along(len, end)));
        for end in ends {
            for bound in [Bound::Included(end.clone()), Bound::Excluded(end.clone())] {
                for reverse in [false, true] {
                    check_scan(&tree, &model, (&bound, &Bound::Unbounded), (reverse, None), &guard);
                    check_scan(&tree, &model, (&Bound::Unbounded, &bound), (reverse, None), &guard);
                }
            }
        }
    }
    check_all(&tree, &model, &guard);
}

#[test]
fn a_key_along_a_path_is_a_few_nodes_below_the_top() {
    let epochs = epochs();
    let participant = epochs.participant();
    let guard = participant.pin();
    let tree = Masstree::new(&guard, common::ACCOUNT).unwrap();
    let key = |end: u8| [vec![7; KEY_LEN_MAX - 1], vec![end]].concat();
    for end in 0..3 {
        insert(&tree, &key(end), 1, &guard);
    }
    let statistics = tree.verify(&guard);
    assert_eq!((statistics.depth, statistics.layers, statistics.border_nodes), (2, 2, 2));
    // One more layer where a key leaves.
    insert(&tree, &[7; 100], 1, &guard);
    let statistics = tree.verify(&guard);
    assert_eq!((statistics.depth, statistics.layers, statistics.border_nodes), (3, 3, 3));
}

#[test]
fn keys_up_to_the_longest_are_taken_and_longer_ones_refused() {
    let epochs = epochs();
    let participant = epochs.participant();
    let guard = participant.pin();
    let tree = Masstree::new(&guard, common::ACCOUNT).unwrap();
    let mut model = Model::new();
    let lengths = [0, 1, 7, 8, 9, 1000, 1024, KEY_LEN_MAX - 9, KEY_LEN_MAX - 8, KEY_LEN_MAX - 1, KEY_LEN_MAX];
    for (number, length) in lengths.into_iter().enumerate() {
        for byte in [0, 0xFF] {
            let value = number as u64 * 2 + 2;
            apply(&tree, &mut model, &Step::Insert(vec![byte; length]), value, &guard);
        }
    }
    check_all(&tree, &model, &guard);
    let refused = tree.insert_if_absent(&vec![0; KEY_LEN_MAX + 1], 1, &guard, &mut ());
    assert!(refused.is_err());
    assert!(matches!(tree.get(&vec![0; KEY_LEN_MAX + 1], &guard), Lookup::Missing(_)));
    check_all(&tree, &model, &guard);
    for key in model.keys().cloned().collect::<Vec<_>>() {
        apply(&tree, &mut model, &Step::Remove(key), 0, &guard);
    }
    check_all(&tree, &model, &guard);
}

#[test]
fn keys_of_several_trees_are_looked_up_together() {
    let epochs = epochs();
    let participant = epochs.participant();
    let guard = participant.pin();
    let trees = [0, 1, 2].map(|_| Masstree::new(&guard, common::ACCOUNT).unwrap());
    // Of three keys that follow each other, each is in one tree. Some end in layers below the first.
    let key_of = |number: u64| [vec![7; (number % 4) as usize * 8], number.to_be_bytes().to_vec()].concat();
    for number in 0..3000 {
        trees[number as usize % 3].insert_if_absent(&key_of(number), number + 1, &guard, &mut ()).unwrap();
    }
    let asked: Vec<(usize, Vec<u8>)> = (0..4000).map(|at| (at / 7 % 3, key_of(at as u64))).collect();
    let mut answers = vec![None; asked.len()];
    let ask = |at: usize| (&trees[asked[at].0], asked[at].1.as_slice());
    Masstree::get_many_of(asked.len(), ask, &guard, |at, lookup| answers[at] = Some(lookup));
    for (at, answer) in answers.into_iter().enumerate() {
        match answer.unwrap() {
            Lookup::Found(value) => assert!(value == at as u64 + 1 && at % 3 == asked[at].0),
            Lookup::Missing(_) => assert!(at >= 3000 || at % 3 != asked[at].0),
        }
    }
    Masstree::get_many_of(0, |_| unreachable!("there is none"), &guard, |_, _| panic!("nor an answer"));
}

#[test]
fn a_guard_of_other_epochs_is_refused_by_every_method() {
    let (own, other) = (epochs(), epochs());
    let (own, other) = (own.participant(), other.participant());
    let (guard, stranger) = (own.pin(), other.pin());
    let tree = Masstree::new(&guard, ACCOUNT).unwrap();
    tree.insert_if_absent(b"key", 1, &guard, &mut ()).unwrap();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let calls: [&dyn Fn(&Guard<'_>); 9] = [
        &|guard| _ = tree.get(b"key", guard),
        &|guard| tree.get_many(&[b"key"], guard, |_, _| ()),
        &|guard| Masstree::get_many_of(1, |_| (&tree, b"key"), guard, |_, _| ()),
        &|guard| _ = tree.insert_if_absent(b"other", 1, guard, &mut ()),
        &|guard| _ = tree.remove(b"missing", 1, guard),
        &|guard| _ = tree.replace(b"key", 1, 1, guard),
        &|guard| _ = scan(&tree, all, Direction::Reverse, guard),
        &|guard| _ = tree.statistics(guard),
        &|guard| _ = tree.verify(guard),
    ];
    for (number, call) in calls.into_iter().enumerate() {
        call(&guard);
        let refused = catch_unwind(AssertUnwindSafe(|| call(&stranger)));
        assert!(refused.is_err(), "call {number}");
    }
    let mut drain = tree.into_drain();
    assert!(catch_unwind(AssertUnwindSafe(|| drain.step(&stranger, 9, drop))).is_err());
    assert!(drain.step(&guard, 9, drop));
}
