//! The node set: which border nodes a transaction relies on to reach the same keys at its commit.
//!
//! # Source
//! Silo (SOSP 2013) §4.6.

use ensilo_index::{NodeId, NodeStamp, NodeVersion};

use super::pointer_map::PointerMap;
use super::set_buffer::{HeldMemory, SetBuffer};
use crate::abort::Abort;
use crate::store::TableId;

/// Up to this many stamps a walk over them is cheaper than a map.
const WALKED_MAX: usize = 8;

/// Stamps of border nodes, one a node.
#[derive(Debug, Default)]
pub struct NodeSet {
    stamps: SetBuffer<NodeStamp>,
    /// Positions by node, kept once the stamps are more than [`WALKED_MAX`].
    positions: PointerMap,
    /// The stores that keys were missed or ranges read in, in this order; one that is used again may be there again.
    stores: SetBuffer<TableId>,
}

impl NodeSet {
    /// Adds a stamp; false when the node was stamped before with another version, so that the transaction cannot commit.
    ///
    /// # Errors
    /// As for [`SetBuffer::push`].
    #[inline]
    pub fn add(&mut self, stamp: NodeStamp, held: &mut HeldMemory) -> Result<bool, Abort> {
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
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Notes a store, so that its nodes may be added.
    ///
    /// # Errors
    /// As for [`SetBuffer::push`].
    #[inline]
    pub fn note_store(&mut self, id: TableId, held: &mut HeldMemory) -> Result<(), Abort> {
        if self.stores.last() == Some(&id) { Ok(()) } else { self.stores.push(id, held).map(|_| ()) }
    }

    /// Returns the stores that keys were missed or ranges read in.
    #[must_use]
    pub fn stores(&self) -> &[TableId] {
        &self.stores
    }

    /// Returns the stamps.
    #[must_use]
    pub fn stamps(&self) -> &[NodeStamp] {
        &self.stamps
    }

    /// Carries a stamp of `node` over a change by the transaction itself; false when somebody else has changed the node before.
    #[inline]
    pub fn change(&mut self, node: NodeId, before: NodeVersion, after: NodeVersion) -> bool {
        let Some(at) = self.position(node) else { return true };
        let stamp = &mut self.stamps[at];
        let is_own = stamp.version == before;
        stamp.version = after;
        is_own
    }

    /// Returns whether the node has a stamp.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.position(node).is_some()
    }

    /// Forgets all nodes and stores.
    pub fn clear(&mut self) {
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
