//! What keys take in memory that share long prefixes: a constant and their lengths, whatever they are.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{ACCOUNT, epochs, insert};
use ensilo_index::{KEY_LEN_MAX, Masstree};

/// Bytes of the tree's account with these keys, once all that is retired is freed. The tree is empty again afterwards, and has its first
/// node alone, with hardly anything in it.
fn bytes_with(keys: &[Vec<u8>]) -> u64 {
    bytes_after(keys, &[])
}

/// The same once other keys have come as well, and were removed.
fn bytes_after(keys: &[Vec<u8>], removed: &[Vec<u8>]) -> u64 {
    let epochs = epochs();
    let participant = epochs.participant();
    let settle = || {
        for _ in 0..3 {
            epochs.advance();
            participant.collect(usize::MAX);
        }
        epochs.pool().usage().of(ACCOUNT)
    };
    let tree = Masstree::new(&participant.pin(), ACCOUNT).unwrap();
    for key in keys.iter().chain(removed) {
        insert(&tree, key, 1, &participant.pin());
    }
    for key in removed {
        assert!(tree.remove(key, 1, &participant.pin()));
    }
    assert_eq!(tree.verify(&participant.pin()).keys, keys.len() as u64);
    let bytes = settle();
    for key in keys {
        assert!(tree.remove(key, 1, &participant.pin()));
    }
    let statistics = tree.verify(&participant.pin());
    assert_eq!((statistics.keys, statistics.layers, statistics.border_nodes), (0, 1, 1));
    let left = settle();
    assert!(left <= 1024, "{left} bytes of the empty tree");
    bytes
}

/// A key of `len` bytes with this first slice and this end.
fn key(first: u64, len: usize, end: u8) -> Vec<u8> {
    [&first.to_be_bytes()[..], &vec![b'p'; len - 9], &[end]].concat()
}

fn bytes_of(keys: &[Vec<u8>]) -> u64 {
    keys.iter().map(|key| key.len() as u64).sum()
}

#[test]
fn a_pair_of_keys_takes_little_more_than_their_bytes() {
    let first_node = bytes_with(&[]);
    for len in [17, 32, 100, 208, 1000, KEY_LEN_MAX] {
        let pair = [key(1, len, b'x'), key(1, len, b'y')];
        let bytes = bytes_with(&pair) - first_node;
        assert!(bytes <= 512 + bytes_of(&pair), "{bytes} bytes for two keys of {len}");
    }
    let bytes = bytes_with(&[key(1, 208, b'x'), key(1, 208, b'y')]) - first_node;
    assert!(bytes <= 1000, "{bytes} bytes for two keys of 208");
}

#[test]
fn a_thousand_pairs_take_little_more_than_their_bytes() {
    let keys: Vec<_> = (0..1000).flat_map(|first| [key(first, 208, b'x'), key(first, 208, b'y')]).collect();
    let bytes = bytes_with(&keys);
    assert!(bytes <= 1000 * 1000, "{} bytes for each pair", bytes / 1000);
}

/// Keys that leave one path at every slice of it, from either end.
#[test]
fn keys_that_leave_a_path_take_a_constant_each() {
    let longest = [key(1, KEY_LEN_MAX, b'x'), key(1, KEY_LEN_MAX, b'y')];
    let leaving: Vec<_> = (0..500).map(|slices| key(1, 9 + 8 * slices, b'z')).collect();
    for order in [leaving.iter().collect::<Vec<_>>(), leaving.iter().rev().collect()] {
        let keys: Vec<_> = longest.iter().chain(order).cloned().collect();
        let bytes = bytes_with(&keys);
        assert!(bytes <= 450 * keys.len() as u64, "{bytes} bytes");
    }
}

/// Two keys of the longest length, and keys as long that leave their path at one slice after the other.
fn leaving_long() -> ([Vec<u8>; 2], Vec<Vec<u8>>) {
    let pair = [key(1, KEY_LEN_MAX, b'x'), key(1, KEY_LEN_MAX, b'y')];
    let leaving = |slice: usize| {
        let mut leaving = pair[0].clone();
        leaving[8 * slice + 7] = b'z';
        leaving
    };
    let leaving = (1..=500).map(leaving).collect();
    (pair, leaving)
}

#[test]
fn long_keys_that_leave_a_path_take_little_more_than_their_bytes() {
    let (pair, leaving) = leaving_long();
    for count in [10, 100, 300, 500] {
        for is_rising in [true, false] {
            let mut keys = pair.to_vec();
            keys.extend_from_slice(&leaving[..count]);
            if !is_rising {
                keys.reverse();
            }
            let bytes = bytes_with(&keys);
            let len = keys.len() as u64;
            assert!(bytes <= 600 * len + 2 * bytes_of(&keys), "{} bytes for each of {len} keys", bytes / len);
        }
    }
}

#[test]
fn long_keys_that_are_removed_leave_no_bytes_of_theirs() {
    let (pair, mut leaving) = leaving_long();
    for _ in 0..2 {
        let bytes = bytes_after(&pair, &leaving);
        assert!(bytes <= 10_000 + 500 * leaving.len() as u64, "{bytes} bytes");
        leaving.reverse();
    }
    // In one node.
    let beside: Vec<_> = (b'a'..=b'n').map(|first| vec![first; KEY_LEN_MAX]).collect();
    let bytes = bytes_after(&[b"q".to_vec()], &beside);
    assert!(bytes <= 1024, "{bytes} bytes");
}

/// So many keys for each of 480 slices of a long one, from the last slice on, that differ there from it and are shorter.
fn leaving_short(long: &[u8], count: u64) -> Vec<Vec<u8>> {
    let leaving =
        |slice: usize, number: u64| [&long[..8 * slice], &number.to_be_bytes(), &[b's'; 184]].concat();
    (1..=480).rev().flat_map(|slice| (0..count).map(move |number| leaving(slice, number))).collect()
}

#[test]
fn keys_that_are_removed_leave_no_more_than_the_guide_says_for_each_slice_of_one_that_stays() {
    let (pair, _) = leaving_long();
    for (count, each_max) in [(1, 1024), (16, 2048), (100, 2048)] {
        let mut leaving = leaving_short(&pair[0], count);
        for _ in 0..2 {
            let bytes = bytes_after(&pair, &leaving);
            assert!(bytes <= 20_000 + 480 * each_max, "{bytes} bytes after {count} for each slice");
            leaving.reverse();
        }
    }
}

#[test]
fn prefixes_of_many_lengths_take_a_constant_for_each_key_beside_its_bytes() {
    let mut numbers = common::Numbers(3);
    let keys: Vec<_> = (0..3000u64)
        .map(|number| {
            let shared = 8 + numbers.below(400) as usize;
            let prefix = vec![b'p'; shared];
            [&numbers.below(40).to_be_bytes()[..], &prefix, &number.to_be_bytes()].concat()
        })
        .collect();
    let bytes = bytes_with(&keys);
    assert!(bytes <= keys.len() as u64 + 3 * bytes_of(&keys) / 2, "{bytes} for {}", bytes_of(&keys));
}
