//! What the index reports about border nodes: stamps notice every change to the keys they speak for, and an insert tells
//! enough to keep them up to date.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::ops::Bound;

use common::{NodeSet, epochs, insert, missing, scan};
use ensilo_epoch::Guard;
use ensilo_index::{Direction, InsertError, Masstree};
use proptest::prelude::*;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

fn with_tree(test: impl FnOnce(&Masstree, &Guard<'_>)) {
    let epochs = epochs();
    let participant = epochs.participant();
    let guard = participant.pin();
    test(&Masstree::new(&guard, common::ACCOUNT).unwrap(), &guard);
}

fn number(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put(tree: &Masstree, key: &[u8], value: u64, guard: &Guard<'_>) {
    insert(tree, key, value, guard);
}

/// Whether all stamps that a look at `key` leads to are still current after `change`.
fn survives(tree: &Masstree, key: &[u8], guard: &Guard<'_>, change: impl FnOnce()) -> bool {
    let stamps = [missing(tree, key, guard)];
    change();
    NodeSet::of(&stamps).is_current(guard)
}

#[test]
fn a_missing_key_is_noticed_when_it_comes() {
    with_tree(|tree, guard| {
        assert!(!survives(tree, b"key", guard, || put(tree, b"key", 1, guard)));
        assert!(survives(tree, b"other", guard, || put(tree, b"key", 2, guard)), "it was there");
        assert!(survives(tree, b"other", guard, || assert!(tree.replace(b"key", 1, 3, guard))));
        assert!(!survives(tree, b"other", guard, || assert!(tree.remove(b"key", 3, guard))));
        assert!(survives(tree, b"other", guard, || assert!(!tree.remove(b"key", 3, guard))));
    });
}

#[test]
fn a_missing_key_is_noticed_when_its_slot_becomes_a_layer() {
    with_tree(|tree, guard| {
        insert(tree, b"aaaaaaaabbbbbbbbx", 1, guard);
        let key = b"aaaaaaaabbbbbbbby";
        assert!(!survives(tree, key, guard, || put(tree, key, 2, guard)));
        let key = b"aaaaaaaabbbbbbbbz";
        assert!(!survives(tree, key, guard, || put(tree, key, 3, guard)));
        let key = b"aaaaaaaac";
        assert!(!survives(tree, key, guard, || put(tree, key, 4, guard)));
    });
}

#[test]
fn a_missing_key_is_noticed_when_it_leaves_a_path() {
    with_tree(|tree, guard| {
        let along = |len: usize, end: &str| [&vec![b'a'; len][..], end.as_bytes()].concat();
        put(tree, &along(80, "x"), 1, guard);
        put(tree, &along(80, "y"), 1, guard);
        for key in [along(40, "b"), along(72, ""), along(16, ""), along(11, ""), along(80, "")] {
            assert!(!survives(tree, &key, guard, || put(tree, &key, 1, guard)));
            let other = [&key[..], b"z"].concat();
            assert!(!survives(tree, &other, guard, || put(tree, &other, 1, guard)));
            assert!(tree.remove(&other, 1, guard));
        }
        assert_eq!(tree.verify(guard).keys, 7);
    });
}

/// What is behind the path speaks for itself: keys that leave the path in front of it do not disturb who relies on it.
#[test]
fn a_layer_behind_a_path_is_not_changed_by_keys_that_leave_the_path() {
    with_tree(|tree, guard| {
        let along = |len: usize, end: &str| [&vec![b'a'; len][..], end.as_bytes()].concat();
        put(tree, &along(80, "x"), 1, guard);
        put(tree, &along(80, "y"), 1, guard);
        assert!(survives(tree, &along(80, "z"), guard, || put(tree, &along(40, "b"), 1, guard)));
        assert!(!survives(tree, &along(80, "z"), guard, || put(tree, &along(80, "w"), 1, guard)));
    });
}

#[test]
fn a_missing_key_is_noticed_after_a_split_moved_its_place() {
    with_tree(|tree, guard| {
        for key in 0..15 {
            insert(tree, &number(key * 10), 1, guard);
        }
        for key in [1, 141] {
            let stamp = missing(tree, &number(key), guard);
            insert(tree, &number(75 + key), 1, guard);
            assert!(!NodeSet::of(&[stamp]).is_current(guard));
            insert(tree, &number(key), 1, guard);
        }
    });
}

#[test]
fn a_missing_key_is_noticed_after_its_node_or_layer_left_the_tree() {
    with_tree(|tree, guard| {
        for key in 0..100 {
            insert(tree, &number(key * 10), 1, guard);
        }
        let stamp = missing(tree, &number(905), guard);
        for key in 50..100 {
            assert!(tree.remove(&number(key * 10), 1, guard));
        }
        assert!(!NodeSet::of(&[stamp]).is_current(guard));
        assert!(!survives(tree, &number(905), guard, || put(tree, &number(905), 1, guard)));

        insert(tree, b"aaaaaaaax", 1, guard);
        insert(tree, b"aaaaaaaay", 1, guard);
        let stamp = missing(tree, b"aaaaaaaaz", guard);
        assert!(tree.remove(b"aaaaaaaax", 1, guard));
        assert!(tree.remove(b"aaaaaaaay", 1, guard));
        assert!(!NodeSet::of(&[stamp]).is_current(guard));
        assert!(!survives(tree, b"aaaaaaaaz", guard, || put(tree, b"aaaaaaaaz", 1, guard)));
    });
}

#[test]
fn own_inserts_keep_a_node_set_current_over_splits_and_layers() {
    with_tree(|tree, guard| {
        let mut nodes = NodeSet::of(&scan(tree, ALL, Direction::Forward, guard).stamps);
        for key in 0u64..2000 {
            let composite = [key % 5, key * 7919 % 2000].map(u64::to_be_bytes).concat();
            tree.insert_if_absent(&composite, 1, guard, &mut nodes).unwrap();
            tree.insert_if_absent(&number(key * 31 % 2003), 1, guard, &mut nodes).unwrap();
        }
        assert!(nodes.split.len() > 100, "there were splits");
        assert!(nodes.is_current(guard));
        for stamp in scan(tree, ALL, Direction::Forward, guard).stamps {
            assert!(nodes.stamps.contains(&stamp), "the set has every node that a scan relies on");
        }
        insert(tree, b"somebody else's", 1, guard);
        assert!(!nodes.is_current(guard));
    });
}

#[test]
fn a_change_by_others_before_an_own_insert_is_not_covered_up() {
    with_tree(|tree, guard| {
        insert(tree, b"b", 1, guard);
        let mut nodes = NodeSet::of(&[missing(tree, b"a", guard)]);
        insert(tree, b"a", 1, guard);
        tree.insert_if_absent(b"c", 1, guard, &mut nodes).unwrap();
        assert!(!nodes.is_current(guard));
    });
}

#[test]
fn an_insert_that_finds_the_key_reports_nothing() {
    with_tree(|tree, guard| {
        insert(tree, b"a", 1, guard);
        let mut nodes = NodeSet::default();
        tree.insert_if_absent(b"a", 2, guard, &mut nodes).unwrap();
        assert!(nodes.changed.is_empty() && nodes.split.is_empty());
    });
}

#[test]
fn an_insert_without_memory_changes_nothing() {
    let epochs = common::epochs_with_limit(Some(8 << 20));
    let participant = epochs.participant();
    let guard = participant.pin();
    let tree = Masstree::new(&guard, common::ACCOUNT).unwrap();
    refuse_some(&tree, &guard, |round| {
        let long =
            [round.wrapping_mul(0x9E37_79B9_7F4A_7C15), round % 3, round].map(u64::to_be_bytes).concat();
        long[..if round % 2 == 0 { 8 } else { 24 }].to_vec()
    });
}

/// Each key leaves the path of those before somewhere, with a suffix of another length: what is missing is a node, or its bag.
#[test]
fn an_insert_without_memory_for_a_layer_changes_nothing() {
    let epochs = common::epochs_with_limit(Some(8 << 20));
    let participant = epochs.participant();
    let tree = Masstree::new(&participant.pin(), common::ACCOUNT).unwrap();
    let inserted = refuse_some(&tree, &participant.pin(), |round| {
        let mixed = round.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (first, slices, rest) = (mixed >> 60, (mixed >> 40) % 60, (mixed >> 20) % 1500);
        [&[first as u8; 8][..], &vec![7; 8 * slices as usize], &mixed.to_be_bytes(), &vec![9; rest as usize]]
            .concat()
    });
    for key in inserted {
        assert!(tree.remove(&key, 1, &participant.pin()));
    }
    for _ in 0..3 {
        epochs.advance();
        participant.collect(usize::MAX);
    }
    let left = epochs.pool().usage().of(common::ACCOUNT);
    assert!(left <= 1024, "{left} bytes of a tree that is empty");
}

/// Inserts keys until 2000 were refused, and returns the others.
fn refuse_some(tree: &Masstree, guard: &Guard<'_>, key: impl Fn(u64) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut refused = 0;
    let mut inserted = Vec::new();
    for round in 0u64..400_000 {
        let key = key(round);
        let mut nodes = NodeSet::default();
        match tree.insert_if_absent(&key, 1, guard, &mut nodes) {
            Ok(_) => inserted.push(key),
            Err(InsertError::OutOfMemory(_)) => {
                refused += 1;
                assert!(nodes.changed.is_empty());
                if refused == 1 {
                    assert_eq!(tree.verify(guard).keys, inserted.len() as u64);
                }
            }
            Err(error) => panic!("{error}"),
        }
        if refused == 2000 {
            break;
        }
    }
    assert_eq!(refused, 2000);
    assert_eq!(tree.verify(guard).keys, inserted.len() as u64);
    inserted
}

#[derive(Debug, Clone)]
enum Step {
    Own(Vec<u8>),
    Others(Vec<u8>),
    OthersRemove(Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0u64..300).prop_map(|key| key.to_be_bytes().to_vec()),
        (0u64..3, 0u64..40).prop_map(|(a, b)| [a, b].map(u64::to_be_bytes).concat()),
        prop::collection::vec(0u8..2, 7..=17),
        (0usize..6, prop::collection::vec(0u8..2, 1..=9)).prop_map(|(slices, tail)| [
            vec![1; 8 * slices],
            tail
        ]
        .concat()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![key().prop_map(Step::Own), key().prop_map(Step::Others), key().prop_map(Step::OthersRemove)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A range is read, then keys come and go. The stamps stay current under own inserts, and not when somebody else changed
    /// the keys of the range.
    #[test]
    fn stamps_notice_exactly_what_they_must(
        before in prop::collection::vec(key(), 0..200),
        steps in prop::collection::vec(step(), 1..12),
        bounds in (key(), key()),
        reverse in any::<bool>(),
    ) {
        let epochs = epochs();
        let participant = epochs.participant();
        let guard = participant.pin();
        let tree = Masstree::new(&guard, common::ACCOUNT).unwrap();
        let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
        for key in before {
            insert(&tree, &key, 1, &guard);
            keys.insert(key);
        }
        let range = (Bound::Included(bounds.0.as_slice()), Bound::Included(bounds.1.as_slice()));
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let mut nodes = NodeSet::of(&scan(&tree, range, direction, &guard).stamps);
        let (mut disturbed, mut others) = (false, false);
        for step in steps {
            let within = |key: &Vec<u8>| *key >= bounds.0 && *key <= bounds.1;
            match step {
                Step::Own(key) => {
                    tree.insert_if_absent(&key, 1, &guard, &mut nodes).unwrap();
                    keys.insert(key);
                }
                Step::Others(key) => {
                    insert(&tree, &key, 1, &guard);
                    let came = keys.insert(key.clone());
                    others |= came;
                    disturbed |= came && within(&key);
                }
                Step::OthersRemove(key) => {
                    let went = keys.remove(&key);
                    prop_assert_eq!(tree.remove(&key, 1, &guard), went);
                    others |= went;
                    disturbed |= went && within(&key);
                }
            }
        }
        if disturbed {
            prop_assert!(!nodes.is_current(&guard));
        }
        if !others {
            prop_assert!(nodes.is_current(&guard));
        }
    }
}
