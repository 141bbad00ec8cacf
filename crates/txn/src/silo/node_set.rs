//! The node set: which border nodes a transaction relies on to reach the same keys at its commit.
//!
//! # Source
//! Silo (SOSP 2013) §4.6.

use ensilo_engine::{Abort, TableId, Tid};
use ensilo_epoch::Guard;
use ensilo_index::{InsertObserver, Masstree, NodeId, NodeStamp, NodeVersion};

use super::buffer::{HeldMemory, SetBuffer};
use super::prepared::registry::PreparedRegistry;
use super::protection::{Protection, own_count};
use crate::pointer_map::PointerMap;
use crate::record::RecordPtr;

/// Up to this many stamps a walk over them is cheaper than a map.
const WALKED_MAX: usize = 8;

/// Stamps of border nodes, one a node.
#[derive(Debug, Default)]
pub(super) struct NodeSet {
    stamps: SetBuffer<NodeStamp>,
    /// Positions by node, kept once the stamps are more than [`WALKED_MAX`].
    positions: PointerMap,
    /// The stores that keys were missed or ranges read in, in this order; one that is used again may be there again.
    stores: SetBuffer<TableId>,
}

impl NodeSet {
    /// Adds a stamp; false when the node was stamped before with another version, so that the transaction cannot commit.
    #[inline]
    pub(super) fn add(&mut self, stamp: NodeStamp, held: &mut HeldMemory) -> Result<bool, Abort> {
        if let Some(at) = self.position(stamp.node) {
            return Ok(self.stamps[at].version == stamp.version);
        }
        if self.stamps.len() >= WALKED_MAX && self.positions.is_full() {
            held.add(self.positions.growth_bytes(1))?;
        }
        let at = self.stamps.push(stamp, held)?;
        if self.stamps.len() == WALKED_MAX + 1 {
            for (at, stamp) in (0..).zip(&*self.stamps) {
                self.positions.insert(stamp.node.address(), at);
            }
        } else if self.stamps.len() > WALKED_MAX {
            self.positions.insert(stamp.node.address(), at);
        }
        Ok(true)
    }

    /// Returns whether nothing was noted; a node is added after its store only.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Notes a store, so that its nodes may be added.
    #[inline]
    pub(super) fn note_store(&mut self, id: TableId, held: &mut HeldMemory) -> Result<(), Abort> {
        if self.stores.last() == Some(&id) { Ok(()) } else { self.stores.push(id, held).map(|_| ()) }
    }

    /// Returns the stores that keys were missed or ranges read in.
    pub(super) fn stores(&self) -> &[TableId] {
        &self.stores
    }

    /// Returns the stamps.
    pub(super) fn stamps(&self) -> &[NodeStamp] {
        &self.stamps
    }

    pub(super) fn clear(&mut self) {
        self.stamps.clear();
        self.positions.clear();
        self.stores.clear();
    }

    #[inline]
    fn position(&self, node: NodeId) -> Option<usize> {
        if self.stamps.len() > WALKED_MAX {
            return self.positions.get(node.address()).map(|at| at as usize);
        }
        self.stamps.iter().position(|stamp| stamp.node == node)
    }
}

/// Returns a TID that is no smaller than that of any deletion which had left the node's range when the node was reported.
///
/// # Safety
/// The node was reported under `guard`.
#[inline]
pub(super) unsafe fn latest_removal(node: NodeId, guard: &Guard<'_>) -> Tid {
    // SAFETY: the caller's promise.
    Tid::from_raw(unsafe { Masstree::latest_removal(node, guard) })
}

/// Carries a node set over an insert of its own transaction: what that insert changed stays valid, what anybody else changed does not.
#[derive(Debug)]
pub(super) struct OwnInsert<'a> {
    nodes: &'a mut NodeSet,
    held: &'a mut HeldMemory,
    /// What the transaction has registered, if it is protected.
    protection: Option<&'a mut Protection>,
    prepared: &'a PreparedRegistry,
    /// What is inserted.
    placeholder: RecordPtr,
    guard: &'a Guard<'a>,
    /// Of the node that the placeholder goes into.
    pub(super) latest_removal: Tid,
    /// Whether a stamped node had changed before this insert did.
    pub(super) is_overtaken: bool,
    /// Why the placeholder, or a node that the insert made, could not be added.
    pub(super) failed: Option<Abort>,
}

impl<'a> OwnInsert<'a> {
    pub(super) fn new(
        nodes: &'a mut NodeSet,
        held: &'a mut HeldMemory,
        protection: Option<&'a mut Protection>,
        prepared: &'a PreparedRegistry,
        placeholder: RecordPtr,
        guard: &'a Guard<'a>,
    ) -> Self {
        OwnInsert {
            nodes,
            held,
            protection,
            prepared,
            placeholder,
            guard,
            latest_removal: Tid::ZERO,
            is_overtaken: false,
            failed: None,
        }
    }

    /// Adds a node that this insert has made and still holds locked: nobody can have begun to change it.
    fn add(&mut self, new: NodeStamp) -> Result<bool, Abort> {
        let is_current = self.nodes.add(new, self.held)?;
        if let Some(protection) = &mut self.protection {
            protection.register(self.prepared, self.held, new.node.address())?;
        }
        Ok(is_current)
    }
}

impl InsertObserver for OwnInsert<'_> {
    #[inline]
    fn may_change(&mut self, node: NodeId) -> bool {
        // SAFETY: the insert reports the node, and goes on under this guard.
        self.latest_removal = unsafe { latest_removal(node, self.guard) };
        let may_change =
            !self.prepared.protects_node(node, || own_count(self.protection.as_deref(), node.address()));
        if may_change && let Some(protection) = &mut self.protection {
            // Before anybody finds the placeholder and commits into it.
            let address = self.placeholder.address();
            self.failed = protection.register(self.prepared, self.held, address).err();
        }
        may_change
    }

    #[inline]
    fn changed(&mut self, node: NodeId, before: NodeVersion, after: NodeVersion) {
        if let Some(at) = self.nodes.position(node) {
            let stamp = &mut self.nodes.stamps[at];
            self.is_overtaken |= stamp.version != before;
            stamp.version = after;
        }
    }

    fn split(&mut self, from: NodeId, new: NodeStamp) {
        if self.nodes.position(from).is_some() {
            match self.add(new) {
                Ok(is_current) => self.is_overtaken |= !is_current,
                Err(abort) => self.failed = Some(abort),
            }
        }
    }
}
