//! Emptying a tree that nobody else uses.

use ensilo_epoch::Guard;
use ensilo_slab::AccountId;

use crate::Masstree;
use crate::border::Border;
use crate::key::LAYER;
use crate::locked::Locked;
use crate::node::{Kind, Node, NodeRef};
use crate::remove::first_border;

impl Masstree {
    /// Removes all keys and gives the memory of all nodes but one back; `each` gets every value, in no particular order.
    ///
    /// It takes the tree alone: nobody can be inside it. Stamps that were taken before are not current any more, and stay
    /// safe to ask about until their guards end.
    pub fn drain(&mut self, guard: &Guard<'_>, mut each: impl FnMut(u64)) {
        let account = self.account;
        let root = self.root(guard);
        let kept = first_border(root);
        drain_node(root, kept, guard, account, &mut each);
        kept.clear(guard, account);
        self.set_root(kept.node());
    }
}

/// Retires the node and all below it, except the one that is kept.
fn drain_node(
    node: NodeRef<'_>,
    kept: &Border,
    guard: &Guard<'_>,
    account: AccountId,
    each: &mut dyn FnMut(u64),
) {
    match node.kind() {
        Kind::Interior(interior) => {
            for child in (0..=interior.len()).filter_map(|place| interior.child(place)) {
                drain_node(child, kept, guard, account, each);
            }
            // SAFETY: the tree is ours alone, made with this account, and forgets the node.
            unsafe { interior.retire(guard, account) };
        }
        Kind::Border(border) => {
            drain_slots(border, kept, guard, account, each);
            if !std::ptr::eq(border, kept) {
                Locked::lock(border).unlock_deleted();
                // SAFETY: as for interior nodes.
                unsafe { border.retire_with_suffixes(guard, account) };
            }
        }
    }
}

fn drain_slots(
    border: &Border,
    kept: &Border,
    guard: &Guard<'_>,
    account: AccountId,
    each: &mut dyn FnMut(u64),
) {
    for slot in border.permuter().slots() {
        let value = border.value(slot);
        if border.kind(slot) == LAYER {
            // SAFETY: the slot has kind LAYER, and nobody else is here to change that.
            drain_node(top_of(unsafe { NodeRef::from_word(value) }), kept, guard, account, each);
        } else {
            each(value);
        }
    }
}

/// The root of a layer, from a node on its left edge.
fn top_of(mut node: NodeRef<'_>) -> NodeRef<'_> {
    while let Some(parent) = node.parent() {
        node = parent.node();
    }
    node
}
