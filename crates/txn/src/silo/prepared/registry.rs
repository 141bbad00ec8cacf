//! What prepared transactions rely on, for all others to ask.
//!
//! The number of prepared transactions comes first: while it is 0, nobody looks any further.
//!
//! # What is put off
//! A placeholder whose insert did not commit leaves the tree at once, but not while a prepared transaction holds it locked, has read it, or
//! relies on its node. Its maker does not wait for the decision: it leaves the placeholder here, and the next prepared transaction that
//! ends withdraws it. In the same way it takes out of the tree a layer that became empty while the layer's node, or the one above it, had
//! to stay as it was. An item is put here only under the lock, and only while a registered transaction stands in its way, so that one is
//! still to come. Until then nobody commits into such a placeholder, and the item's store is not taken apart.

use std::collections::HashMap;
use std::hash::Hash;

use ensilo_engine::TableId;
use ensilo_epoch::Epoch;
use ensilo_index::NodeId;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::barrier;
use ensilo_sync::sync::{Mutex, MutexGuard};

use crate::record::RecordPtr;
use crate::registry::lock;
use crate::silo::collect::KeyBytes;

/// What a record or a node that is read takes in a registry, about.
const ENTRY_BYTES: usize = 32;

/// So many entries a registry has room for without asking again.
const KEPT_ENTRIES: usize = 4096;

/// What the prepared transactions of an engine rely on.
#[derive(Debug)]
pub(crate) struct PreparedRegistry {
    /// How many transactions are prepared, or about to be.
    count: CachePadded<AtomicU64>,
    relied_on: Mutex<ReliedOn>,
}

/// Each with the number of prepared transactions that rely on it.
#[derive(Debug, Default)]
struct ReliedOn {
    /// Records that were read, or wait here for their withdrawal, by address.
    records: Counted<usize>,
    /// Border nodes whose keys were read, by address.
    nodes: Counted<usize>,
    /// Stores that were used.
    stores: Counted<TableId>,
    /// The prepared transactions themselves, by the epochs at which they began.
    transactions: Counted<Epoch>,
    put_off: Vec<PutOff>,
}

/// What a prepared transaction relies on until it has ended, beyond what it has read.
#[derive(Debug)]
pub(in crate::silo) struct Use {
    /// The epoch at which it began.
    pub(in crate::silo) began: Epoch,
    /// The stores in which it has read or written, each once.
    pub(in crate::silo) stores: Vec<TableId>,
}

/// What is to leave a tree.
#[derive(Debug)]
pub(in crate::silo) enum PutOff {
    /// A placeholder.
    Placeholder { record: RecordPtr, key: KeyBytes },
    /// The lowest layer on the way to a key, if it is empty.
    Layer { store: TableId, key: KeyBytes },
}

impl PutOff {
    /// The store whose tree it is.
    pub(in crate::silo) fn store(&self) -> TableId {
        match *self {
            PutOff::Placeholder { record, .. } => record.table(),
            PutOff::Layer { store, .. } => store,
        }
    }
}

/// What stands in the way of a removal.
#[derive(Copy, Clone, Debug)]
pub(in crate::silo) enum Obstacle {
    /// A prepared transaction holds the record locked.
    Lock,
    /// A prepared transaction has read the record.
    Record,
    /// A prepared transaction relies on this node.
    Node(NodeId),
}

impl PreparedRegistry {
    pub(crate) fn new() -> Self {
        PreparedRegistry {
            count: CachePadded::new(AtomicU64::new(0)),
            relied_on: Mutex::new(ReliedOn::default()),
        }
    }

    /// Whether no transaction is prepared. A caller that has locked what it will change looks behind a full barrier: see
    /// [`prepared`](super).
    #[inline]
    pub(in crate::silo) fn is_empty(&self) -> bool {
        // Acquire: [decision] who finds a transaction gone reads an epoch that is not before that of its decision.
        self.count.load(Ordering::Acquire) == 0
    }

    /// The memory that so many records and nodes take here, about.
    pub(in crate::silo) fn bytes_for(records: usize, nodes: usize) -> usize {
        (records + nodes) * ENTRY_BYTES
    }

    /// Registers a transaction. A full barrier follows: what the caller looks at next it finds as it is now, or later.
    ///
    /// Returns `false`, and has changed nothing, when the system has no memory.
    pub(in crate::silo) fn register(
        &self,
        records: impl ExactSizeIterator<Item = RecordPtr>,
        nodes: impl ExactSizeIterator<Item = NodeId>,
        used: &Use,
    ) -> bool {
        let mut relied_on = self.lock();
        let is_reserved = relied_on.records.reserve(records.len())
            && relied_on.nodes.reserve(nodes.len())
            && relied_on.stores.reserve(used.stores.len())
            && relied_on.transactions.reserve(1);
        if !is_reserved {
            return false;
        }
        records.for_each(|record| relied_on.records.add(record.address()));
        nodes.for_each(|node| relied_on.nodes.add(node.address()));
        used.stores.iter().for_each(|&store| relied_on.stores.add(store));
        relied_on.transactions.add(used.began);
        // Under the lock: who sees the number finds the entries. SeqCst: with the barrier that follows, a store before loads.
        self.count.fetch_add(1, Ordering::SeqCst);
        drop(relied_on);
        barrier::after_rmw();
        true
    }

    /// Ends the protection of what a transaction has read; its stores stay in use. The caller, who is pinned, goes on with what is
    /// returned.
    #[must_use]
    pub(in crate::silo) fn release(
        &self,
        records: impl Iterator<Item = RecordPtr>,
        nodes: impl Iterator<Item = NodeId>,
    ) -> Vec<PutOff> {
        let mut relied_on = self.lock();
        records.for_each(|record| relied_on.records.remove(record.address()));
        nodes.for_each(|node| relied_on.nodes.remove(node.address()));
        let put_off = std::mem::take(&mut relied_on.put_off);
        for item in &put_off {
            if let PutOff::Placeholder { record, .. } = item {
                relied_on.records.remove(record.address());
            }
        }
        // Release: [decision].
        self.count.fetch_sub(1, Ordering::Release);
        put_off
    }

    /// Ends a transaction's use of its stores: it has ended.
    pub(in crate::silo) fn end(&self, used: &Use) {
        let mut relied_on = self.lock();
        used.stores.iter().for_each(|&store| relied_on.stores.remove(store));
        relied_on.transactions.remove(used.began);
    }

    /// Says that what was put off is done, or put off again.
    pub(in crate::silo) fn end_put_off(&self, store: TableId) {
        self.lock().stores.remove(store);
    }

    /// Leaves the withdrawal of a placeholder to the next prepared transaction that ends. Returns `false`, and keeps nothing, when the obstacle is gone.
    ///
    /// The caller holds the record's lock, unless that is the obstacle.
    #[must_use]
    pub(in crate::silo) fn put_off(&self, record: RecordPtr, key: &[u8], obstacle: Obstacle) -> bool {
        let mut relied_on = self.lock();
        let is_there = match obstacle {
            // A transaction frees its locks before it releases what it has read: it is still to come here.
            Obstacle::Lock => record.tid().is_prepared(),
            Obstacle::Record => relied_on.records.contains(record.address()),
            Obstacle::Node(node) => relied_on.nodes.contains(node.address()),
        };
        if is_there {
            relied_on.records.add(record.address());
            relied_on.stores.add(record.table());
            relied_on.put_off.push(PutOff::Placeholder { record, key: key.into() });
        }
        is_there
    }

    /// The same for an empty layer on the way to `key`, which `node` keeps.
    #[must_use]
    pub(in crate::silo) fn put_off_layer(&self, store: TableId, key: &[u8], node: NodeId) -> bool {
        let mut relied_on = self.lock();
        let is_there = relied_on.nodes.contains(node.address());
        if is_there {
            relied_on.stores.add(store);
            relied_on.put_off.push(PutOff::Layer { store, key: key.into() });
        }
        is_there
    }

    /// Whether a prepared transaction has read this record, which the caller has locked.
    #[inline]
    pub(in crate::silo) fn protects_record(&self, record: RecordPtr) -> bool {
        barrier::after_rmw();
        !self.is_empty() && self.has_record(record)
    }

    /// The first of these records, which the caller has locked, that a prepared transaction has read.
    pub(in crate::silo) fn first_protected(
        &self,
        mut records: impl Iterator<Item = RecordPtr>,
    ) -> Option<usize> {
        let relied_on = self.lock();
        records.position(|record| relied_on.records.contains(record.address()))
    }

    /// Whether a prepared transaction relies on the keys of this node, which the caller has locked.
    #[inline]
    pub(in crate::silo) fn protects_node(&self, node: NodeId) -> bool {
        barrier::after_rmw();
        !self.is_empty() && self.has_node(node)
    }

    #[cold]
    fn has_record(&self, record: RecordPtr) -> bool {
        self.lock().records.contains(record.address())
    }

    #[cold]
    fn has_node(&self, node: NodeId) -> bool {
        self.lock().nodes.contains(node.address())
    }

    /// Whether a prepared transaction uses the store, or something that is put off lies in it.
    pub(crate) fn uses_store(&self, store: TableId) -> bool {
        self.lock().stores.contains(store)
    }

    /// Whether a transaction that began at this epoch or earlier is prepared and has not ended.
    pub(crate) fn has_begun_by(&self, epoch: Epoch) -> bool {
        self.lock().transactions.0.keys().any(|&began| began <= epoch)
    }

    fn lock(&self) -> MutexGuard<'_, ReliedOn> {
        lock(&self.relied_on)
    }
}

/// A set whose members are there as often as they were added.
#[derive(Debug)]
struct Counted<K>(HashMap<K, u32>);

impl<K> Default for Counted<K> {
    fn default() -> Self {
        Counted(HashMap::new())
    }
}

impl<K: Eq + Hash> Counted<K> {
    /// Whether there is memory for so many members more.
    fn reserve(&mut self, more: usize) -> bool {
        self.0.try_reserve(more).is_ok()
    }

    fn add(&mut self, key: K) {
        *self.0.entry(key).or_insert(0) += 1;
    }

    fn remove(&mut self, key: K) {
        match self.0.get_mut(&key) {
            Some(1) => _ = self.0.remove(&key),
            Some(count) => *count -= 1,
            None => unreachable!("what is removed was added"),
        }
        if self.0.is_empty() && self.0.capacity() > KEPT_ENTRIES {
            self.0.shrink_to(KEPT_ENTRIES);
        }
    }

    fn contains(&self, key: K) -> bool {
        self.0.contains_key(&key)
    }
}
