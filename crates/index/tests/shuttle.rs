//! Models of the node protocol: nodes of 3 slots, and interleavings chosen by shuttle. Run with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p ensilo-index --profile quick --test shuttle`.
//!
//! A failure prints the schedule; `shuttle::replay(scenario, schedule)` runs it again. Shuttle executes every atomic access
//! in the order of the schedule: it finds errors of the protocol, not of the memory ordering.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex};

use common::{NodeSet, epochs, insert, scan};
use ensilo_epoch::{Epochs, Guard};
use ensilo_index::{
    Direction, Fault, InsertError, InsertObserver, Inserted, Lookup, Masstree, NodeId, NodeStamp,
    NodeVersion, Removal, ScanVisitor, plant,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

type Key = Vec<u8>;

/// A tree that several threads share, and the keys that nobody takes away.
struct Shared {
    epochs: Arc<Epochs>,
    tree: Masstree,
    stable: BTreeSet<Key>,
    /// The number of the last removal of each key that is over. No thread loses its turn while it holds the lock.
    removals: Mutex<BTreeMap<Key, u64>>,
}

fn number(number: u8) -> Key {
    vec![number]
}

/// A key behind a slice that all such keys share, `depth` slices deep.
fn deep(depth: usize, number: u8) -> Key {
    [vec![50; 8 * depth], vec![number]].concat()
}

fn value_of(key: &[u8]) -> u64 {
    key.iter().fold(1, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)) | 1
}

impl Shared {
    fn new(stable: &[Key], others: &[Key]) -> Arc<Shared> {
        let epochs = epochs();
        let participant = epochs.participant();
        let tree = Masstree::new(&participant.pin(), common::ACCOUNT).unwrap();
        for key in stable.iter().chain(others) {
            assert_eq!(insert(&tree, key, value_of(key), &participant.pin()), Inserted::New);
        }
        drop(participant);
        let (stable, removals) = (stable.iter().cloned().collect(), Mutex::default());
        Arc::new(Shared { epochs, tree, stable, removals })
    }

    fn insert(&self, key: &[u8], guard: &Guard<'_>) -> bool {
        insert(&self.tree, key, value_of(key), guard) == Inserted::New
    }

    fn remove(&self, key: &[u8], guard: &Guard<'_>) -> bool {
        let number = self.removals.lock().unwrap().values().max().unwrap_or(&0) + 1;
        let removal = self.tree.remove_if(key, value_of(key), number, guard, |_| true);
        if removal == Removal::Done {
            self.removals.lock().unwrap().insert(key.to_vec(), number);
        }
        removal == Removal::Done
    }

    /// What misses a key that was removed knows a number of a removal that is no smaller.
    fn check_removals(&self, guard: &Guard<'_>) {
        let removals = self.removals.lock().unwrap().clone();
        for (key, number) in &removals {
            assert!(
                self.tree.latest_removal_near(key, guard) >= *number,
                "the removal of {key:?} is forgotten"
            );
            if let Lookup::Missing(stamp) = self.tree.get(key, guard) {
                // SAFETY: it was reported under this guard.
                let latest = unsafe { Masstree::latest_removal(stamp.node, guard) };
                assert!(latest >= *number, "the removal of {key:?} is forgotten");
            }
        }
        let mut watch = WatchRemovals { removals: &removals, guard, latest: 0, cursor: Bound::Unbounded };
        self.tree.scan(ALL, Direction::Forward, guard, &mut watch);
        watch.check(Bound::Unbounded);
    }

    fn has(&self, key: &[u8], guard: &Guard<'_>) -> bool {
        match self.tree.get(key, guard) {
            Lookup::Found(value) => {
                assert_eq!(value, value_of(key));
                true
            }
            Lookup::Missing(_) => false,
        }
    }

    /// Every stable key is found by look-ups and scans, and scans are in order.
    fn watch(&self, guard: &Guard<'_>) {
        self.check_removals(guard);
        for key in &self.stable {
            assert!(self.has(key, guard), "{key:?} is missed");
        }
        let keys: Vec<&Key> = self.stable.iter().collect();
        self.tree.get_many(&keys, guard, |index, lookup| {
            assert_eq!(lookup, Lookup::Found(value_of(keys[index])));
        });
        for direction in BOTH {
            let mut watch = Watch { stable: &self.stable, seen: 0, previous: None, direction };
            self.tree.scan(ALL, direction, guard, &mut watch);
            assert_eq!(watch.seen, self.stable.len(), "a scan misses no stable key");
        }
    }

    /// At the end: the tree is well formed and holds just these keys.
    fn finish(&self, keys: &BTreeSet<Key>) {
        let participant = self.epochs.participant();
        let guard = participant.pin();
        assert_eq!(self.tree.verify(&guard).keys, keys.len() as u64);
        self.check_removals(&guard);
        for key in keys {
            assert!(self.has(key, &guard), "{key:?} is lost");
        }
    }
}

struct Watch<'a> {
    stable: &'a BTreeSet<Key>,
    seen: usize,
    previous: Option<Key>,
    direction: Direction,
}

impl ScanVisitor for Watch<'_> {
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        assert_eq!(value, value_of(key));
        let rises = self.previous.as_deref().is_none_or(|previous| previous < key);
        let falls = self.previous.as_deref().is_none_or(|previous| previous > key);
        assert!(if self.direction == Direction::Forward { rises } else { falls }, "a scan is in order");
        self.previous = Some(key.to_vec());
        self.seen += usize::from(self.stable.contains(key));
        ControlFlow::Continue(())
    }
}

/// Looks at the nodes that a forward scan relies on: where it misses a key that was removed, it has met a node that knows of this.
struct WatchRemovals<'a> {
    removals: &'a BTreeMap<Key, u64>,
    guard: &'a Guard<'a>,
    /// Of the nodes so far.
    latest: u64,
    cursor: Bound<Key>,
}

impl WatchRemovals<'_> {
    fn check(&self, until: Bound<Key>) {
        for (key, number) in self.removals.range((self.cursor.clone(), until)) {
            assert!(self.latest >= *number, "a scan over {key:?} does not learn of its removal");
        }
    }
}

impl ScanVisitor for WatchRemovals<'_> {
    fn node(&mut self, stamp: NodeStamp) {
        // SAFETY: it is reported under this guard.
        self.latest = self.latest.max(unsafe { Masstree::latest_removal(stamp.node, self.guard) });
    }

    fn entry(&mut self, key: &[u8], _: u64) -> ControlFlow<()> {
        self.check(Bound::Excluded(key.to_vec()));
        self.cursor = Bound::Excluded(key.to_vec());
        ControlFlow::Continue(())
    }
}

/// Runs these parts side by side, each with a pin of its own for each step, and waits for all.
fn side_by_side(shared: &Arc<Shared>, parts: Vec<Vec<Step>>) {
    let threads: Vec<_> = parts
        .into_iter()
        .map(|steps| {
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                let participant = shared.epochs.participant();
                for step in steps {
                    step(&shared, &participant.pin());
                    participant.collect(usize::MAX);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

type Step = Box<dyn Fn(&Shared, &Guard<'_>) + Send>;

fn inserting(keys: Vec<Key>) -> Vec<Step> {
    keys.into_iter()
        .map(|key| -> Step { Box::new(move |shared, guard| assert!(shared.insert(&key, guard))) })
        .collect()
}

fn removing(keys: Vec<Key>) -> Vec<Step> {
    keys.into_iter()
        .map(|key| -> Step { Box::new(move |shared, guard| assert!(shared.remove(&key, guard))) })
        .collect()
}

fn watching(times: usize) -> Vec<Step> {
    (0..times)
        .map(|_| -> Step { Box::new(|shared: &Shared, guard: &Guard<'_>| shared.watch(guard)) })
        .collect()
}

/// Ticks, so that what is retired is freed while others still read.
fn ticking(times: usize) -> Vec<Step> {
    (0..times)
        .map(|_| -> Step { Box::new(|shared: &Shared, _: &Guard<'_>| shared.epochs.advance()) })
        .collect()
}

fn numbers(from: impl IntoIterator<Item = u8>) -> Vec<Key> {
    from.into_iter().map(number).collect()
}

fn splits_under_readers() {
    let stable = numbers([10, 20, 30, 40, 50]);
    let shared = Shared::new(&stable, &[]);
    let (left, right) = (numbers([11, 12, 13]), numbers([41, 51, 52, 53]));
    side_by_side(&shared, vec![inserting(left.clone()), inserting(right.clone()), watching(2)]);
    shared.finish(&[stable, left, right].concat().into_iter().collect());
}

fn nodes_leave_under_readers() {
    let stable = numbers([1, 2, 100, 101]);
    let leaving = numbers((10..=90).step_by(5));
    let shared = Shared::new(&stable, &leaving);
    let (low, high): (Vec<Key>, Vec<Key>) = leaving.into_iter().partition(|key| key[0] < 45);
    let new = numbers([12, 33, 52, 77]);
    side_by_side(
        &shared,
        vec![removing(low), removing(high), inserting(new.clone()), watching(1), ticking(4)],
    );
    shared.finish(&[stable, new].concat().into_iter().collect());
}

/// Inserts into the range of a node that leaves. Ascending inserts fill nodes of 3 slots and parents of 3 children, so that 28
/// to 32 lie in the first child of the second parent: the bound in the root has to be raised.
fn ranges_move_under_writers() {
    let stable = numbers([10, 12, 14, 16, 18, 20, 22, 24, 26, 34, 36, 38, 40, 42, 44, 46]);
    let gone = numbers([28, 30, 32]);
    let shared = Shared::new(&[], &[&stable[..9], &gone[..], &stable[9..]].concat());
    let participant = shared.epochs.participant();
    for key in &gone[..2] {
        assert!(shared.remove(key, &participant.pin()));
    }
    drop(participant);
    let (first, second) = (numbers([29]), numbers([31]));
    side_by_side(
        &shared,
        vec![removing(gone[2..].to_vec()), inserting(first.clone()), inserting(second.clone())],
    );
    shared.finish(&[stable, first, second].concat().into_iter().collect());
}

fn layers_come_under_readers() {
    let stable = vec![deep(1, 1), vec![50; 8], number(3)];
    let shared = Shared::new(&stable, &[]);
    let (first, second) = (vec![deep(1, 2), deep(2, 5)], vec![deep(2, 6), deep(1, 4)]);
    side_by_side(&shared, vec![inserting(first.clone()), inserting(second.clone()), watching(2)]);
    shared.finish(&[stable, first, second].concat().into_iter().collect());
}

fn layers_leave_under_readers() {
    let stable = vec![vec![50; 8], number(3)];
    let leaving = vec![deep(1, 1), deep(1, 2), deep(2, 1), deep(2, 2), deep(1, 3), deep(1, 4)];
    let shared = Shared::new(&stable, &leaving);
    let new = vec![deep(1, 7), deep(2, 9)];
    let (first, second) = (leaving[..3].to_vec(), leaving[3..].to_vec());
    side_by_side(
        &shared,
        vec![removing(first), removing(second), inserting(new.clone()), watching(1), ticking(4)],
    );
    shared.finish(&[stable, new].concat().into_iter().collect());
}

/// Keys leave a path in front of other keys, at three places of it, and one of these goes again.
fn paths_are_left_under_readers() {
    let stable = vec![deep(5, 1), deep(5, 2), number(3)];
    let shared = Shared::new(&stable, &[]);
    let (first, second) = (vec![deep(2, 9), deep(4, 0)], vec![deep(3, 9), deep(5, 3)]);
    let mut leaves_again = inserting(second.clone());
    leaves_again.extend(removing(second[..1].to_vec()));
    side_by_side(&shared, vec![inserting(first.clone()), leaves_again, watching(2), ticking(3)]);
    shared.finish(&[stable, first, second[1..].to_vec()].concat().into_iter().collect());
}

/// The layer behind a path becomes empty while keys leave the path: it is one layer further down than it was when its last key went.
fn layers_leave_behind_paths_that_are_left() {
    let stable = vec![number(3)];
    let leaving = vec![deep(4, 1), deep(4, 2)];
    let shared = Shared::new(&stable, &leaving);
    let (first, second) = (vec![deep(2, 9)], vec![deep(3, 9), deep(1, 9)]);
    let mut comes_and_goes = inserting(second[..1].to_vec());
    comes_and_goes.extend(removing(second[..1].to_vec()));
    comes_and_goes.extend(inserting(second[1..].to_vec()));
    side_by_side(
        &shared,
        vec![removing(leaving), inserting(first.clone()), comes_and_goes, watching(1), ticking(4)],
    );
    shared.finish(&[stable, first, second[1..].to_vec()].concat().into_iter().collect());
}

/// A layer leaves while the epochs move on as fast as they can. A reader that pins late does not come to freed memory.
fn a_layer_leaves_while_epochs_race() {
    // The second key makes the layer, in which the first is left alone.
    let shared = Shared::new(&numbers([3]), &[deep(1, 1), deep(1, 2)]);
    assert!(shared.remove(&deep(1, 2), &shared.epochs.participant().pin()));
    let looking: Step = Box::new(|shared: &Shared, guard: &Guard<'_>| {
        shared.has(&deep(1, 1), guard);
    });
    let racing = || -> Step {
        Box::new(|shared: &Shared, _: &Guard<'_>| {
            thread::yield_now();
            // Twice: a reader that pins next is pinned two epochs after what was retired before.
            shared.epochs.advance();
            shared.epochs.advance();
        })
    };
    side_by_side(&shared, vec![removing(vec![deep(1, 1)]), vec![looking], vec![racing(), racing()]]);
    shared.finish(&shared.stable);
}

/// Each thread sees that the other's key is missing and inserts its own. Both cannot have been first.
fn write_skew_on_missing_keys(before: &[Key], mine: &Key, theirs: &Key) {
    let shared = Shared::new(before, &[]);
    let threads: Vec<_> = [(mine.clone(), theirs.clone()), (theirs.clone(), mine.clone())]
        .into_iter()
        .map(|(mine, theirs)| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let participant = shared.epochs.participant();
                let guard = participant.pin();
                let Lookup::Missing(stamp) = shared.tree.get(&theirs, &guard) else { return false };
                let mut nodes = NodeSet::of(&[stamp]);
                shared.tree.insert_if_absent(&mine, value_of(&mine), &guard, &mut nodes).unwrap();
                nodes.is_current(&guard)
            })
        })
        .collect();
    let both = threads.into_iter().all(|thread| thread.join().unwrap());
    assert!(!both, "each saw the other's key missing");
}

fn write_skew() {
    let pairs = [
        (numbers([10]), number(1), number(2)),
        (numbers([10, 20, 30]), number(15), number(25)),
        (numbers([10, 20, 30, 40, 50]), number(5), number(45)),
        (vec![deep(1, 1)], deep(1, 2), deep(1, 3)),
        (vec![deep(2, 1)], deep(2, 2), deep(1, 3)),
        (vec![deep(2, 1)], deep(1, 7), deep(2, 3)),
        (vec![deep(4, 1), deep(4, 2)], deep(2, 7), deep(3, 3)),
        (vec![deep(4, 1), deep(4, 2)], deep(1, 7), deep(2, 3)),
        (vec![deep(4, 1), deep(4, 2)], deep(4, 3), deep(2, 3)),
    ];
    let (before, mine, theirs) = pairs[thread_rng().gen_range(0..pairs.len())].clone();
    write_skew_on_missing_keys(&before, &mine, &theirs);
}

/// Nodes that must not change, as prepared transactions keep them.
#[derive(Default)]
struct Protected {
    nodes: shuttle::sync::Mutex<Vec<NodeId>>,
    /// Keys on whose way such nodes keep an empty layer. They come under the lock of the nodes.
    kept: shuttle::sync::Mutex<Vec<Key>>,
}

impl Protected {
    fn may_change(&self, node: NodeId) -> bool {
        !self.nodes.lock().unwrap().contains(&node)
    }

    /// Leaves an empty layer to the end of the protection, unless that has come: then it is dropped now.
    fn keep_layer(&self, mut node: NodeId, key: &[u8], tree: &Masstree, guard: &Guard<'_>) {
        loop {
            let nodes = self.nodes.lock().unwrap();
            if nodes.contains(&node) {
                return self.kept.lock().unwrap().push(key.to_vec());
            }
            drop(nodes);
            match tree.drop_empty_layer(key, guard, |node| self.may_change(node)) {
                Ok(()) => return,
                Err(again) => node = again,
            }
        }
    }

    /// Ends the protection; the layers that it has kept leave.
    fn end(&self, tree: &Masstree, guard: &Guard<'_>) {
        let mut nodes = self.nodes.lock().unwrap();
        nodes.clear();
        let kept = std::mem::take(&mut *self.kept.lock().unwrap());
        drop(nodes);
        for key in kept {
            tree.drop_empty_layer(&key, guard, |_| true).unwrap();
        }
    }
}

impl InsertObserver for &Protected {
    fn may_change(&mut self, node: NodeId) -> bool {
        Protected::may_change(self, node)
    }

    fn changed(&mut self, _: NodeId, _: NodeVersion, _: NodeVersion) {}

    fn split(&mut self, _: NodeId, _: NodeStamp) {}
}

/// One thread reads a range, protects its nodes, and validates them at rest. If that succeeds no key comes into the range or leaves it, also
/// without a pin, until the protection ends. Others ask before they insert or remove.
fn ranges_stay_while_protected(stamps_are_current: fn(NodeStamp, &Guard<'_>) -> bool) {
    let keys: Vec<Key> =
        (1u8..8).map(|byte| number(byte * 10)).chain([deep(1, 1), deep(4, 1), deep(4, 2)]).collect();
    let shared = Shared::new(&keys, &[]);
    let protected = Arc::new(Protected::default());
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let (shared, protected) = (Arc::clone(&shared), Arc::clone(&protected));
            thread::spawn(move || {
                let participant = shared.epochs.participant();
                for _ in 0..4 {
                    let guard = participant.pin();
                    let byte = thread_rng().gen_range(5..75);
                    let key = match thread_rng().gen_range(0..4) {
                        0 => deep(1, byte % 4),
                        1 => deep(usize::from(byte % 3) + 2, byte % 4),
                        _ => number(byte / 5 * 5),
                    };
                    let value = value_of(&key);
                    if thread_rng().gen_range(0..2) == 0 {
                        let inserted = shared.tree.insert_if_absent(&key, value, &guard, &mut &*protected);
                        assert!(matches!(inserted, Ok(_) | Err(InsertError::Refused)));
                    } else {
                        let may_change = |node| protected.may_change(node);
                        let removal = shared.tree.remove_if(&key, value, 0, &guard, may_change);
                        if let Removal::KeptLayer(node) = removal {
                            protected.keep_layer(node, &key, &shared.tree, &guard);
                        }
                    }
                    drop(guard);
                    shared.epochs.advance();
                    participant.collect(usize::MAX);
                }
            })
        })
        .collect();
    let participant = shared.epochs.participant();
    let ends = [number(thread_rng().gen_range(5..75)), number(thread_rng().gen_range(5..75))];
    let bounds = || (Bound::Included(&ends[0][..]), Bound::Included(&ends[1][..]));
    let guard = participant.pin();
    let before = scan(&shared.tree, bounds(), Direction::Forward, &guard);
    *protected.nodes.lock().unwrap() = before.stamps.iter().map(|stamp| stamp.node).collect();
    let is_prepared = before.stamps.iter().all(|&stamp| stamps_are_current(stamp, &guard));
    drop(guard);
    if is_prepared {
        for _ in 0..2 {
            let now = scan(&shared.tree, bounds(), Direction::Reverse, &participant.pin());
            assert!(now.entries.iter().rev().eq(&before.entries), "a protected range has changed");
        }
    }
    protected.end(&shared.tree, &participant.pin());
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    // No layer is left empty.
    shared.tree.verify(&participant.pin());
}

fn protected_ranges() {
    // SAFETY: the stamps were taken under this guard.
    ranges_stay_while_protected(|stamp, guard| unsafe { Masstree::is_current_at_rest(stamp, guard) });
}

/// As validation does for a commit that does not wait: a node may be locked by who has asked before.
fn protected_ranges_validated_while_locked() {
    // SAFETY: as above.
    ranges_stay_while_protected(|stamp, guard| unsafe { Masstree::is_current(stamp, guard) });
}

/// Each thread has keys of its own among those of the others, and knows what every step must return.
fn random_programs() {
    let pool: Vec<Key> = (1u8..16)
        .map(|byte| number(byte * 10))
        .chain((1..6).map(|n| deep(1, n)))
        .chain((1..4).map(|n| deep(2, n)))
        .chain((3..6).flat_map(|depth| (1..4).map(move |n| deep(depth, n))))
        .collect();
    let stable = numbers([5, 85, 255]);
    let shared = Shared::new(&stable, &[]);
    let threads: Vec<_> = (0..3)
        .map(|me| {
            let shared = Arc::clone(&shared);
            let mine: Vec<Key> = pool.iter().skip(me).step_by(3).cloned().collect();
            thread::spawn(move || {
                let participant = shared.epochs.participant();
                let mut present = BTreeSet::new();
                for _ in 0..14 {
                    let guard = participant.pin();
                    let key = &mine[thread_rng().gen_range(0..mine.len())];
                    match thread_rng().gen_range(0..8) {
                        0..4 => assert_eq!(shared.insert(key, &guard), present.insert(key.clone())),
                        4..7 => assert_eq!(shared.remove(key, &guard), present.remove(key)),
                        _ => assert_eq!(shared.has(key, &guard), present.contains(key)),
                    }
                    drop(guard);
                    shared.epochs.advance();
                    participant.collect(usize::MAX);
                }
                shared.watch(&participant.pin());
                present
            })
        })
        .collect();
    let mut keys: BTreeSet<Key> = stable.into_iter().collect();
    for thread in threads {
        keys.extend(thread.join().unwrap());
    }
    shared.finish(&keys);
}

const ITERATIONS: usize = 2000;

fn check(scenario: fn()) {
    shuttle::check_random(scenario, ITERATIONS);
    shuttle::check_pct(scenario, ITERATIONS / 2, 3);
}

#[test]
fn readers_and_writers_pass_splits() {
    check(splits_under_readers);
}

#[test]
fn readers_and_writers_pass_nodes_that_leave() {
    check(nodes_leave_under_readers);
}

#[test]
fn writers_pass_ranges_that_move() {
    check(ranges_move_under_writers);
}

#[test]
fn readers_and_writers_pass_slots_that_become_layers() {
    check(layers_come_under_readers);
}

#[test]
fn readers_and_writers_pass_layers_that_leave() {
    check(layers_leave_under_readers);
}

#[test]
fn readers_and_writers_pass_paths_that_are_left() {
    check(paths_are_left_under_readers);
}

#[test]
fn an_empty_layer_is_found_behind_a_path_that_is_left() {
    check(layers_leave_behind_paths_that_are_left);
}

#[test]
fn readers_that_pin_late_pass_layers_that_leave() {
    check(a_layer_leaves_while_epochs_race);
}

#[test]
fn two_inserts_cannot_both_have_seen_the_other_missing() {
    check(write_skew);
}

#[test]
fn a_range_whose_nodes_are_protected_keeps_its_keys() {
    check(protected_ranges);
}

#[test]
#[should_panic(expected = "a protected range has changed")]
fn a_validation_that_looks_past_locks_is_caught() {
    check(protected_ranges_validated_while_locked);
}

#[test]
fn random_programs_find_what_they_left() {
    check(random_programs);
}

/// Whether any of the scenarios fails with the fault planted.
fn is_caught(fault: Fault, scenario: fn()) {
    plant(fault);
    shuttle::check_random(scenario, 20 * ITERATIONS);
}

#[test]
#[should_panic]
fn a_look_without_check_is_caught() {
    is_caught(Fault::LookWithoutCheck, splits_under_readers);
}

#[test]
#[should_panic]
fn a_silent_insert_is_caught() {
    is_caught(Fault::SilentInsert, write_skew);
}

#[test]
#[should_panic]
fn an_unmarked_split_is_caught() {
    is_caught(Fault::UnmarkedSplit, splits_under_readers);
}

#[test]
#[should_panic]
fn a_path_that_is_left_without_a_mark_is_caught() {
    is_caught(Fault::UnmarkedLayer, paths_are_left_under_readers);
}

#[test]
#[should_panic]
fn a_layer_that_comes_silently_is_caught() {
    is_caught(Fault::SilentLayer, write_skew);
}

#[test]
#[should_panic(expected = "an empty layer has left the tree")]
fn an_empty_layer_that_is_not_looked_for_again_is_caught() {
    is_caught(Fault::LayerLookedForOnce, layers_leave_behind_paths_that_are_left);
}

#[test]
#[should_panic]
fn a_shrink_counted_as_an_insert_is_caught() {
    is_caught(Fault::ShrinkCountedAsInsert, ranges_move_under_writers);
}

#[test]
#[should_panic]
fn a_bound_that_is_not_raised_is_caught() {
    is_caught(Fault::BoundNotRaised, nodes_leave_under_readers);
}

#[test]
#[should_panic]
fn a_forgotten_removal_is_caught() {
    is_caught(Fault::RemovalForgotten, nodes_leave_under_readers);
}

#[test]
#[should_panic]
fn nodes_retired_before_they_are_unlinked_are_caught() {
    plant(Fault::RetiredBeforeUnlinked);
    shuttle::check_pct(a_layer_leaves_while_epochs_race, 20 * ITERATIONS, 2);
}
