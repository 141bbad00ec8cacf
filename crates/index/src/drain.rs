//! Takes a tree apart that nobody else uses, in pieces.

use std::ptr::NonNull;

use ensilo_epoch::Guard;
use ensilo_slab::AccountId;

use crate::Masstree;
use crate::border::Border;
use crate::key::leads_to_a_layer;
use crate::locked::Locked;
use crate::node::{Header, Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::tree::check_guard;
use crate::unlinked::Unlinked;

/// A tree that is being taken apart.
///
/// Where it is dropped before the end, the nodes that are left go with the pool.
#[derive(Debug)]
pub struct Drain {
    /// Nodes that are left, each with all below it. A node stands once either here or below one that stands here.
    pending: Vec<NonNull<Header>>,
    account: AccountId,
    epochs: u64,
}

// SAFETY: the nodes belong to the `Drain` alone: `Masstree::into_drain` takes the tree from everybody else. Blocks of memory may be
// given back on any thread.
unsafe impl Send for Drain {}

impl Masstree {
    /// Begins to take the tree apart: see [`Drain::step`].
    #[must_use]
    pub fn into_drain(self) -> Drain {
        let (account, epochs) = (self.account, self.epochs);
        Drain { pending: vec![self.into_root()], account, epochs }
    }
}

impl Drain {
    /// Gives the memory of at most `nodes_max` nodes back, once it cannot be reached any more; `each` gets every value in them, in no
    /// particular order. True when nothing is left.
    ///
    /// Stamps that were taken before are not current any more, and stay safe to ask about until their guards end.
    ///
    /// # Panics
    /// When the guard is not one of the epochs that the tree was made in.
    pub fn step(&mut self, guard: &Guard<'_>, nodes_max: usize, mut each: impl FnMut(u64)) -> bool {
        check_guard(self.epochs, guard);
        for _ in 0..nodes_max {
            let Some(node) = self.pending.pop() else { return true };
            // SAFETY: N2 for the node; it is not freed before it is retired below.
            let node = unsafe { NodeRef::new(node) };
            match node.kind() {
                NodeKind::Interior(interior) => {
                    let children = (0..=interior.len()).filter_map(|place| interior.child(place));
                    self.pending.extend(children.map(NodeRef::pointer));
                    Locked::lock(interior).unlock_deleted();
                    // SAFETY: the tree is ours alone, made with this account, and the node has left it; its children are remembered.
                    unsafe { Unlinked::new(interior, self.account) }.retire(guard);
                }
                NodeKind::Border(border) => self.drain_border(border, guard, &mut each),
            }
        }
        self.pending.is_empty()
    }

    fn drain_border(&mut self, border: &Border, guard: &Guard<'_>, each: &mut impl FnMut(u64)) {
        for slot in border.permuter().slots() {
            let value = border.value(slot);
            if leads_to_a_layer(border.kind(slot)) {
                // SAFETY: the slot leads to a layer, and nobody else is here to change that.
                self.pending.push(top_of(unsafe { NodeRef::from_word(value) }).pointer());
            } else {
                each(value);
            }
        }
        Locked::lock(border).unlock_deleted();
        // SAFETY: as for interior nodes.
        unsafe { Unlinked::new(border, self.account) }.retire(guard);
    }
}

/// Returns the root of a layer, from a node on its left edge.
fn top_of(mut node: NodeRef<'_>) -> NodeRef<'_> {
    while let Some(parent) = node.parent() {
        node = parent.node();
    }
    node
}
