//! What prepared transactions rely on, for all others to ask.
//!
//! The number of prepared transactions comes first: while it is 0, nobody looks any further. What they have read stands in a set that is
//! locked for one address at a time ([`Addresses`]), and the rest under one lock that is held for a moment.
//!
//! # What is deferred
//! The placeholder of an insert that did not commit leaves the tree at once, but not while a prepared transaction holds it locked,
//! has read it, or relies on its node. Its maker does not wait for the decision: it leaves the placeholder here, and the next
//! prepared transaction that ends withdraws it. In the same way it takes out of the tree a layer that became empty while the
//! layer's node, or the one above it, had to stay as it was. An item is put here only under the one lock, and only while a
//! registered transaction stands in its way: that one comes for the items under the same lock, after it has let go of all that it
//! has read. Until then nobody commits into such a placeholder, and the item's store is not taken apart. Only a
//! [protected](super::super::protection) transaction does that has read the placeholder: it takes the item over first, and is the
//! placeholder's maker from then on.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use ensilo_engine::TableId;
use ensilo_epoch::Epoch;
use ensilo_index::NodeId;
use ensilo_slab::Pool;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ensilo_sync::barrier;
use ensilo_sync::sync::{Mutex, MutexGuard};

use super::addresses::Addresses;
use crate::record::RecordPtr;
use crate::registry::lock;
use crate::silo::key_bytes::KeyBytes;

/// What the prepared transactions of an engine rely on.
#[derive(Debug)]
pub(crate) struct PreparedRegistry {
    /// How many transactions are prepared, or about to be.
    count: CachePadded<AtomicU64>,
    /// Records that were read, or wait here for their withdrawal, and border nodes of keys that were read.
    addresses: Addresses,
    uses: Mutex<PreparedUses>,
    /// Whether there is a protected transaction, or about to be.
    is_turn_taken: AtomicBool,
}

/// What prepared transactions use beside what they have read, each with their number.
#[derive(Debug, Default)]
struct PreparedUses {
    /// Stores that were used, or in which something is deferred.
    stores: Counted<TableId>,
    /// The prepared transactions themselves, by the epochs at which they began.
    transactions: Counted<Epoch>,
    deferred: Vec<Deferred>,
}

/// What a prepared transaction relies on until it has ended, beyond what it has read.
#[derive(Debug)]
pub(in crate::silo) struct PreparedUse {
    /// The epoch at which it began.
    pub(in crate::silo) began: Epoch,
    /// The stores in which it has read or written, each once.
    pub(in crate::silo) stores: Vec<TableId>,
}

/// What is to leave a tree.
#[derive(Debug)]
pub(in crate::silo) enum Deferred {
    /// A placeholder.
    Placeholder { record: RecordPtr, key: KeyBytes },
    /// The lowest layer on the way to a key, if it is empty.
    Layer { store: TableId, key: KeyBytes },
}

impl Deferred {
    /// Returns the store of the tree.
    pub(in crate::silo) fn store(&self) -> TableId {
        match *self {
            Deferred::Placeholder { record, .. } => record.store(),
            Deferred::Layer { store, .. } => store,
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
    /// Returns the registry of a database with this pool: it counts against the limit of that.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        PreparedRegistry {
            count: CachePadded::new(AtomicU64::new(0)),
            addresses: Addresses::new(pool),
            uses: Mutex::default(),
            is_turn_taken: AtomicBool::new(false),
        }
    }

    /// Returns whether no transaction is prepared. A caller that has locked what it will change looks behind a full barrier: see
    /// [`prepared`](super).
    #[inline]
    pub(in crate::silo) fn is_empty(&self) -> bool {
        // Acquire: [decision] a thread that finds a transaction gone reads an epoch that is not before that of its decision.
        self.count.load(Ordering::Acquire) == 0
    }

    /// Registers a transaction, which registers next what it relies on. A full barrier follows: what the caller looks at next it
    /// finds as it is now, or later.
    pub(in crate::silo) fn enter(&self, used: &PreparedUse) {
        let mut uses = self.lock();
        used.stores.iter().for_each(|&store| uses.stores.add(store));
        uses.transactions.add(used.began);
        drop(uses);
        // SeqCst: with the barrier that follows, a store before loads.
        self.count.fetch_add(1, Ordering::SeqCst);
        barrier::after_rmw();
    }

    /// Registers a record or a border node, by its address, of a transaction that has entered. Returns `false`, and has not registered it,
    /// when there is no memory.
    #[must_use]
    pub(in crate::silo) fn rely_on(&self, address: usize) -> bool {
        self.addresses.try_add(address)
    }

    /// Ends the protection of what a transaction has read, by address; its stores stay in use. The caller is pinned, and
    /// carries out what is returned.
    #[must_use]
    pub(in crate::silo) fn release(&self, addresses: impl Iterator<Item = usize>) -> Vec<Deferred> {
        addresses.for_each(|address| self.addresses.remove(address));
        let deferred = std::mem::take(&mut self.lock().deferred);
        for item in &deferred {
            if let Deferred::Placeholder { record, .. } = item {
                self.addresses.remove(record.address());
            }
        }
        // Release: [decision].
        self.count.fetch_sub(1, Ordering::Release);
        deferred
    }

    /// Ends a transaction's use of its stores: it has ended.
    pub(in crate::silo) fn end(&self, used: &PreparedUse) {
        let mut uses = self.lock();
        used.stores.iter().for_each(|&store| uses.stores.remove(store));
        uses.transactions.remove(used.began);
    }

    /// Ends the use of a store by something that was deferred: it is done, or deferred again.
    pub(in crate::silo) fn end_deferred(&self, store: TableId) {
        self.lock().stores.remove(store);
    }

    /// Leaves the withdrawal of a placeholder to the next prepared transaction that ends. Returns `false`, and keeps nothing, when
    /// the obstacle is gone.
    ///
    /// The caller holds the record's lock, unless that is the obstacle.
    #[must_use]
    pub(in crate::silo) fn defer(&self, record: RecordPtr, key: &[u8], obstacle: Obstacle) -> bool {
        let mut uses = self.lock();
        let is_there = match obstacle {
            // A transaction frees its locks before it releases what it has read: it is still to come here.
            Obstacle::Lock => record.tid().is_prepared(),
            Obstacle::Record => self.addresses.contains(record.address()),
            Obstacle::Node(node) => self.addresses.contains(node.address()),
        };
        if is_there {
            self.addresses.add(record.address());
            uses.stores.add(record.store());
            uses.deferred.push(Deferred::Placeholder { record, key: key.into() });
        }
        is_there
    }

    /// Makes the caller, which holds the record's lock and has registered the record, the owner of a placeholder that was left here. Returns
    /// `false` when it was not, or somebody is about to withdraw it, who waits for the lock.
    #[must_use]
    pub(in crate::silo) fn take_over(&self, placeholder: RecordPtr) -> bool {
        let mut uses = self.lock();
        let is_it =
            |item: &Deferred| matches!(item, Deferred::Placeholder { record, .. } if *record == placeholder);
        let Some(at) = uses.deferred.iter().position(is_it) else { return false };
        let item = uses.deferred.swap_remove(at);
        uses.stores.remove(item.store());
        self.addresses.remove(placeholder.address());
        true
    }

    /// The same for an empty layer on the way to `key`, which `node` keeps.
    #[must_use]
    pub(in crate::silo) fn defer_layer(&self, store: TableId, key: &[u8], node: NodeId) -> bool {
        let mut uses = self.lock();
        let is_there = self.addresses.contains(node.address());
        if is_there {
            uses.stores.add(store);
            uses.deferred.push(Deferred::Layer { store, key: key.into() });
        }
        is_there
    }

    /// Returns whether a prepared transaction has read this record, which the caller has locked.
    #[inline]
    pub(in crate::silo) fn protects_record(&self, record: RecordPtr) -> bool {
        barrier::after_rmw();
        !self.is_empty() && self.addresses.contains(record.address())
    }

    /// Returns the first of these records, which the caller has locked, that a transaction other than its own has registered; `own` returns
    /// how often its own has.
    pub(in crate::silo) fn first_protected(
        &self,
        mut records: impl Iterator<Item = RecordPtr>,
        own: impl Fn(usize) -> u32,
    ) -> Option<usize> {
        records.position(|record| self.addresses.count(record.address()) > own(record.address()))
    }

    /// Returns whether a transaction other than the caller's, which has locked this node, relies on its keys; `own` returns how often the
    /// caller's does.
    #[inline]
    pub(in crate::silo) fn protects_node(&self, node: NodeId, own: impl FnOnce() -> u32) -> bool {
        barrier::after_rmw();
        !self.is_empty() && self.addresses.count(node.address()) > own()
    }

    /// Takes the turn of the one [protected](super::super::protection) transaction. Returns `false` while another one has it.
    pub(in crate::silo) fn take_turn(&self) -> bool {
        // Acquire: with the Release in `end_turn`. What the one before has registered is gone.
        !self.is_turn_taken.swap(true, Ordering::Acquire)
    }

    /// Gives the turn back.
    pub(in crate::silo) fn end_turn(&self) {
        // Release: with the Acquire in `take_turn`.
        self.is_turn_taken.store(false, Ordering::Release);
    }

    /// Returns whether a prepared transaction uses the store, or something that is deferred lies in it.
    pub(crate) fn uses_store(&self, store: TableId) -> bool {
        self.lock().stores.contains(store)
    }

    /// Returns whether a transaction that began at this epoch or earlier is prepared and has not ended.
    pub(crate) fn has_begun_by(&self, epoch: Epoch) -> bool {
        self.lock().transactions.0.keys().any(|&began| began <= epoch)
    }

    fn lock(&self) -> MutexGuard<'_, PreparedUses> {
        lock(&self.uses)
    }
}

/// A set that has each member as often as it was added.
#[derive(Debug)]
struct Counted<K>(HashMap<K, u32>);

impl<K> Default for Counted<K> {
    fn default() -> Self {
        Counted(HashMap::new())
    }
}

impl<K: Eq + Hash> Counted<K> {
    fn add(&mut self, key: K) {
        *self.0.entry(key).or_insert(0) += 1;
    }

    fn remove(&mut self, key: K) {
        match self.0.get_mut(&key) {
            Some(1) => _ = self.0.remove(&key),
            Some(count) => *count -= 1,
            None => unreachable!("what is removed was added"),
        }
    }

    fn contains(&self, key: K) -> bool {
        self.0.contains_key(&key)
    }
}
