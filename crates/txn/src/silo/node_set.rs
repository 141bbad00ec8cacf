//! What an insert of a transaction's own does to its node set.
//!
//! # Source
//! Silo (SOSP 2013) §4.6.

use ensilo_engine::parts::{HeldMemory, NodeSet};
use ensilo_engine::{Abort, Tid};
use ensilo_epoch::Guard;
use ensilo_index::{InsertObserver, Masstree, NodeId, NodeStamp, NodeVersion};

use super::prepared::registry::PreparedRegistry;
use super::protection::{Protection, own_count};
use crate::record::RecordPtr;

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

    /// Adds a node that this insert has made, and that nobody can have begun to change: it is locked, or the only way to it is.
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
        self.is_overtaken |= !self.nodes.change(node, before, after);
    }

    fn split(&mut self, from: NodeId, new: NodeStamp) {
        if self.nodes.contains(from) {
            match self.add(new) {
                Ok(is_current) => self.is_overtaken |= !is_current,
                Err(abort) => self.failed = Some(abort),
            }
        }
    }
}
