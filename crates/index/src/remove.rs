//! Remove, and what it leaves behind: empty border nodes and empty layers leave the tree.

use ensilo_epoch::Guard;

use crate::Masstree;
use crate::border::{Border, Content, Probe};
use crate::key::LAYER;
use crate::locked::Locked;
use crate::node::{Kind, Node, NodeRef};

/// What is left of a layer after a border node lost a slot.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Other slots, as far as was seen.
    InUse,
    /// A single border node without slots, when it was looked at.
    Empty,
}

impl Masstree {
    /// Removes `key`, if it is mapped to `expected`; says whether it did. Nodes and layers that become empty leave the tree.
    pub fn remove(&self, key: &[u8], expected: u64, guard: &Guard<'_>) -> bool {
        loop {
            let position = self.descend_to_write(key, usize::MAX, guard);
            let Some(border) = position.lock() else { continue };
            let place = border.find(position.key);
            match border.content(position.key, place) {
                Content::Value(value) if value == expected => {}
                Content::Layer => {
                    border.unlock_unchanged();
                    continue;
                }
                _ => {
                    border.unlock_unchanged();
                    return false;
                }
            }
            let layer = self.take_out(border, place.position, guard);
            self.drop_empty_layers(key, position.depth, layer, guard);
            return true;
        }
    }

    /// Takes the slot at `position` out of a locked node.
    fn take_out(&self, border: Locked<'_, Border>, position: usize, guard: &Guard<'_>) -> Layer {
        border.mark_changing();
        border.take_out(position);
        if !border.is_empty() {
            border.unlock_after_insert();
            return Layer::InUse;
        }
        if border.previous.load().is_some() {
            return self.unlink(border, guard);
        }
        let layer = state_of_layer(&border);
        border.unlock_after_insert();
        layer
    }

    /// While the layer at `depth` on the way to `key` is empty, takes it out of the layer above.
    fn drop_empty_layers(&self, key: &[u8], depth: usize, mut layer: Layer, guard: &Guard<'_>) {
        for depth in (0..depth).rev() {
            if layer == Layer::InUse {
                return;
            }
            layer = self.drop_empty_layer(key, depth, guard);
        }
    }

    /// Takes the layer below `depth` on the way to `key` out of the layer at `depth`, if it is still empty.
    #[cold]
    fn drop_empty_layer(&self, key: &[u8], depth: usize, guard: &Guard<'_>) -> Layer {
        loop {
            let position = self.descend_to_write(key, depth, guard);
            if !matches!(position.probe, Some(Probe::Layer(_))) {
                return Layer::InUse;
            }
            let Some(border) = position.lock() else { continue };
            let place = border.find(position.key);
            let Some(slot) = place.slot.filter(|&slot| border.kind(slot) == LAYER) else {
                border.unlock_unchanged();
                return Layer::InUse;
            };
            // SAFETY: the slot has kind LAYER, and stays so while we hold the lock.
            let layer = unsafe { NodeRef::from_word(border.value(slot)) };
            let Some(nodes) = EmptyLayer::lock(layer) else {
                border.unlock_unchanged();
                return Layer::InUse;
            };
            nodes.delete(self, guard);
            return self.take_out(border, place.position, guard);
        }
    }
}

/// Whether the layer of a locked node seems to be empty.
pub(crate) fn state_of_layer(border: &Border) -> Layer {
    let alone = border.previous.load().is_none() && border.next.load().is_none();
    if alone && border.is_empty() { Layer::Empty } else { Layer::InUse }
}

/// The only border node of a layer, without slots, locked.
#[derive(Debug)]
struct EmptyLayer<'g> {
    border: Locked<'g, Border>,
}

impl<'g> EmptyLayer<'g> {
    /// Locks the first border node of the layer to which `node` belongs; none if the layer is not empty. The caller holds the
    /// lock of the node whose slot refers to the layer, so that the layer does not go away.
    fn lock(node: NodeRef<'g>) -> Option<Self> {
        let border = Locked::lock(first_border(node));
        debug_assert!(!border.held().is_deleted(), "the layer's slot is still there");
        match state_of_layer(&border) {
            Layer::Empty => Some(EmptyLayer { border }),
            Layer::InUse => {
                border.unlock_unchanged();
                None
            }
        }
    }

    /// Deletes the node and those above it: each has just this child, since any other would lead to another border node.
    fn delete(self, tree: &Masstree, guard: &Guard<'_>) {
        let mut parent = self.border.lock_parent();
        let border = self.border.node_ref();
        self.border.unlock_deleted();
        // SAFETY: the caller takes the slot out that leads here before it releases the lock, so that nobody who pins from
        // now on finds the node; it was made with the tree's account; it was not deleted before.
        unsafe { border.retire_with_suffixes(guard, tree.account) };
        while let Some(node) = parent {
            assert_eq!(node.len(), 0, "an empty layer has one path");
            parent = node.lock_parent();
            let interior = node.node_ref();
            node.unlock_deleted();
            // SAFETY: as for the border node.
            unsafe { interior.retire(guard, tree.account) };
        }
    }
}

/// The first border node of a layer, from a node on the left edge of its tree: first children never change.
pub(crate) fn first_border(mut node: NodeRef<'_>) -> &Border {
    loop {
        match node.kind() {
            Kind::Border(border) => return border,
            Kind::Interior(interior) => {
                node = interior.child(0).unwrap_or_else(|| panic!("I2: a node has a first child"));
            }
        }
    }
}
