//! What the tests of the index share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test file uses a part of it; tests")]

use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_epoch::{Advance, EpochOptions, Epochs, Guard};
use ensilo_index::{
    Bounds, Direction, InsertObserver, Inserted, Lookup, Masstree, NodeId, NodeStamp, NodeVersion,
    ScanVisitor,
};
use ensilo_slab::{AccountId, Pool};

pub const ACCOUNT: AccountId = AccountId(7);

pub fn epochs() -> Arc<Epochs> {
    epochs_with_limit(None)
}

pub fn epochs_with_limit(limit_bytes: Option<u64>) -> Arc<Epochs> {
    Epochs::new(EpochOptions { advance: Advance::Manual, ..EpochOptions::default() }, Pool::new(limit_bytes))
}

/// Keeps all that a scan reports.
#[derive(Debug, Default)]
pub struct Collect {
    pub entries: Vec<(Vec<u8>, u64)>,
    pub stamps: Vec<NodeStamp>,
    pub limit: Option<usize>,
}

impl ScanVisitor for Collect {
    fn node(&mut self, stamp: NodeStamp) {
        self.stamps.push(stamp);
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        self.entries.push((key.to_vec(), value));
        if self.limit.is_some_and(|limit| self.entries.len() >= limit) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

pub fn scan(tree: &Masstree, bounds: Bounds<'_>, direction: Direction, guard: &Guard<'_>) -> Collect {
    let mut collect = Collect::default();
    tree.scan(bounds, direction, guard, &mut collect);
    collect
}

/// What a transaction remembers: stamps, kept up to date over its own inserts.
#[derive(Debug, Default)]
pub struct NodeSet {
    pub stamps: Vec<NodeStamp>,
    pub spoilt: bool,
    pub changed: Vec<(NodeId, NodeVersion, NodeVersion)>,
    pub split: Vec<(NodeId, NodeStamp)>,
}

impl NodeSet {
    pub fn of(stamps: &[NodeStamp]) -> Self {
        NodeSet { stamps: stamps.to_vec(), ..NodeSet::default() }
    }

    pub fn is_current(&self, guard: &Guard<'_>) -> bool {
        // SAFETY: the tests take all stamps under the guard that they pass here.
        !self.spoilt && self.stamps.iter().all(|&stamp| unsafe { Masstree::is_current(stamp, guard) })
    }
}

impl InsertObserver for NodeSet {
    fn changed(&mut self, node: NodeId, before: NodeVersion, after: NodeVersion) {
        self.changed.push((node, before, after));
        for stamp in self.stamps.iter_mut().filter(|stamp| stamp.node == node) {
            if stamp.version == before {
                stamp.version = after;
            } else {
                self.spoilt = true;
            }
        }
    }

    fn split(&mut self, from: NodeId, new: NodeStamp) {
        self.split.push((from, new));
        if self.stamps.iter().any(|stamp| stamp.node == from) {
            self.stamps.push(new);
        }
    }
}

pub fn insert(tree: &Masstree, key: &[u8], value: u64, guard: &Guard<'_>) -> Inserted {
    tree.insert_if_absent(key, value, guard, &mut ()).unwrap()
}

pub fn missing(tree: &Masstree, key: &[u8], guard: &Guard<'_>) -> NodeStamp {
    match tree.get(key, guard) {
        Lookup::Missing(stamp) => stamp,
        Lookup::Found(value) => panic!("{key:?} is there, with {value}"),
    }
}

/// A small generator of numbers that look random.
#[derive(Debug, Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
