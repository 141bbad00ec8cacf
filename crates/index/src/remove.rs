//! Remove, and what it leaves behind: empty border nodes and empty layers leave the tree.

use ensilo_epoch::Guard;
use ensilo_sync::region::{self, Region};

use crate::Masstree;
use crate::border::{Border, CutSlot, KeyContent, Probe};
use crate::locked::Locked;
use crate::node::NodeRef;
use crate::node_kind::NodeKind;
use crate::planted::{self, Fault, Step, is_planted};
use crate::stamp::NodeId;
use crate::unlinked::Unlinked;

/// What [`Masstree::remove_if`] did.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Removal {
    /// The key is removed.
    Done,
    /// The key is removed. A layer that became empty stays, since this node must not change: [`Masstree::drop_empty_layer`] takes it out
    /// of the tree later.
    KeptLayer(NodeId),
    /// The key was not mapped to the expected value; nothing was changed.
    NotThere,
    /// This node must not change; nothing was changed.
    Refused(NodeId),
}

/// What is left of a layer after a border node lost a slot.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum LayerState {
    /// Other slots, as far as was seen.
    InUse,
    /// A single border node without slots, when it was looked at.
    Empty,
}

impl Masstree {
    /// Removes `key`, if it is mapped to `expected`; says whether it did. Nodes and layers that become empty leave the tree.
    pub fn remove(&self, key: &[u8], expected: u64, guard: &Guard<'_>) -> bool {
        self.remove_if(key, expected, 0, guard, |_| true) == Removal::Done
    }

    /// Like [`Masstree::remove`], where only those border nodes change for which `may_change` returns true. It is asked when the node is
    /// locked and has not changed yet. A layer that becomes empty stays, empty, where it or the slot that leads to it lies in a node
    /// that must not change; the caller learns of it ([`Removal::KeptLayer`]).
    ///
    /// Whatever finds the key missing afterwards finds a [latest removal](Masstree::latest_removal) of at least `number`.
    pub fn remove_if(
        &self,
        key: &[u8],
        expected: u64,
        number: u64,
        guard: &Guard<'_>,
        mut may_change: impl FnMut(NodeId) -> bool,
    ) -> Removal {
        let _index = region::enter(Region::Index);
        loop {
            let position = self.descend_to_write(key, usize::MAX, guard);
            let Some(border) = position.lock() else { continue };
            let place = border.find(position.key);
            match border.content(position.key, place) {
                KeyContent::Value(value) if value == expected => {}
                KeyContent::Layer => {
                    border.unlock_unchanged();
                    continue;
                }
                _ => {
                    border.unlock_unchanged();
                    return Removal::NotThere;
                }
            }
            let node = NodeId::new(&border);
            if !may_change(node) {
                border.unlock_unchanged();
                return Removal::Refused(node);
            }
            let layer = self.take_out(border, place.position, number, None, guard);
            let dropped = self.drop_empty_layers(key, position.depth, layer, guard, &mut may_change);
            return dropped.map_or_else(Removal::KeptLayer, |()| Removal::Done);
        }
    }

    /// Takes the lowest layer on the way to `key` out of the tree if it is empty, and those above that become empty
    /// by that. For a layer that
    /// a removal [has kept](Removal::KeptLayer); where a key was put into it since, the removal of that key takes the layer out.
    ///
    /// # Errors
    /// The node because of which a layer is kept again: `may_change` returns false for it, as in [`Masstree::remove_if`].
    pub fn drop_empty_layer(
        &self,
        key: &[u8],
        guard: &Guard<'_>,
        mut may_change: impl FnMut(NodeId) -> bool,
    ) -> Result<(), NodeId> {
        let _index = region::enter(Region::Index);
        let lowest = self.descend_to_write(key, usize::MAX, guard);
        let layer = state_of_layer(lowest.border);
        self.drop_empty_layers(key, lowest.depth, layer, guard, &mut may_change)
    }

    /// Takes the slot at `position`, and the layer that it leads to if it does, out of a locked node. It is the removal of this number,
    /// or the end of a layer with removals up to it.
    fn take_out(
        &self,
        border: Locked<'_, Border>,
        position: usize,
        number: u64,
        below: Option<DeletedLayer<'_>>,
        guard: &Guard<'_>,
    ) -> LayerState {
        border.mark_changing();
        border.note_removal(number);
        let cut = border.take_out(position);
        if let Some(below) = below {
            below.retire(&cut, self, guard);
        }
        border.trim_suffixes(guard, self.account);
        if !border.is_empty() {
            border.unlock_after_insert();
            return LayerState::InUse;
        }
        if border.previous.load().is_some() {
            return self.unlink(border, guard);
        }
        let layer = state_of_layer(&border);
        border.unlock_after_insert();
        layer
    }

    /// While the layer at `depth` on the way to `key` is empty, takes it out of the layer above. An error is the node that keeps it.
    ///
    /// Where another thread has put a layer between these two, or has taken this one out, the lowest one is looked for.
    fn drop_empty_layers(
        &self,
        key: &[u8],
        mut depth: usize,
        mut layer: LayerState,
        guard: &Guard<'_>,
        may_change: &mut impl FnMut(NodeId) -> bool,
    ) -> Result<(), NodeId> {
        while depth > 0 && layer == LayerState::Empty {
            match self.drop_layer_below(key, depth - 1, guard, may_change)? {
                Some(above) => (depth, layer) = (depth - 1, above),
                None if is_planted(Fault::LayerLookedForOnce) => return Ok(()),
                None => {
                    let lowest = self.descend_to_write(key, usize::MAX, guard);
                    (depth, layer) = (lowest.depth, state_of_layer(lowest.border));
                }
            }
        }
        Ok(())
    }

    /// Takes the layer below `depth` on the way to `key` out of the layer at `depth`, and returns what is left of that one; none if there is no
    /// empty one.
    #[cold]
    fn drop_layer_below(
        &self,
        key: &[u8],
        depth: usize,
        guard: &Guard<'_>,
        may_change: &mut impl FnMut(NodeId) -> bool,
    ) -> Result<Option<LayerState>, NodeId> {
        loop {
            let position = self.descend_to_write(key, depth, guard);
            if !matches!(position.probe, Some(Probe::Layer { .. })) {
                return Ok(None);
            }
            let Some(border) = position.lock() else { continue };
            let place = border.find(position.key);
            let leads_on = border.content(position.key, place) == KeyContent::Layer;
            let Some(slot) = place.slot.filter(|_| leads_on) else {
                border.unlock_unchanged();
                return Ok(None);
            };
            // SAFETY: the slot leads to a layer, the same while we hold the lock.
            let layer = unsafe { NodeRef::from_word(border.value(slot)) };
            let nodes = match EmptyLayer::lock(layer, &border, may_change) {
                Ok(Some(nodes)) => nodes,
                others => {
                    border.unlock_unchanged();
                    return others.map(|_| None);
                }
            };
            let deleted = nodes.delete();
            deleted.retire_early_if_planted(self, guard);
            planted::reach(Step::LayerDeleted);
            let latest =
                if is_planted(Fault::RemovalForgotten) { 0 } else { deleted.border.number_to_inherit() };
            return Ok(Some(self.take_out(border, place.position, latest, Some(deleted), guard)));
        }
    }
}

/// Returns whether the layer of a locked node seems to be empty.
pub(crate) fn state_of_layer(border: &Border) -> LayerState {
    let alone = border.previous.load().is_none() && border.next.load().is_none();
    if alone && border.is_empty() { LayerState::Empty } else { LayerState::InUse }
}

/// The only border node of a layer, without slots, locked.
#[derive(Debug)]
struct EmptyLayer<'g> {
    border: Locked<'g, Border>,
}

impl<'g> EmptyLayer<'g> {
    /// Locks the first border node of the layer to which `node` belongs; none if the layer is not empty. The slot that refers to the layer
    /// lies in `above`, which is locked, so that the layer does not go away. An error is the one of both nodes that must not change.
    fn lock(
        node: NodeRef<'g>,
        above: &Locked<'_, Border>,
        may_change: &mut impl FnMut(NodeId) -> bool,
    ) -> Result<Option<Self>, NodeId> {
        let border = Locked::lock(first_border(node));
        debug_assert!(!border.held().is_deleted(), "the layer's slot is still there");
        if state_of_layer(&border) == LayerState::InUse {
            border.unlock_unchanged();
            return Ok(None);
        }
        match [NodeId::new(above), NodeId::new(&border)].into_iter().find(|&node| !may_change(node)) {
            None => Ok(Some(EmptyLayer { border })),
            Some(node) => {
                border.unlock_unchanged();
                Err(node)
            }
        }
    }

    /// Deletes the node and those above it: each has just this child, since any other would lead to another border node.
    ///
    /// A thread that comes through the slot before it is taken out finds deleted nodes, and begins again at the top
    /// until then, as if it waited for a lock. The holder of the locks waits for no thread that descends.
    fn delete(self) -> DeletedLayer<'g> {
        let border = self.border.node_ref();
        let mut parent = self.border.lock_parent();
        self.border.unlock_deleted();
        while let Some(node) = parent {
            assert_eq!(node.len(), 0, "an empty layer has one path");
            parent = node.lock_parent();
            node.unlock_deleted();
        }
        DeletedLayer { border }
    }
}

/// The nodes of a layer that are deleted, while the slot in the layer above may still lead to them.
#[derive(Debug)]
#[must_use = "its memory is lost unless it is retired"]
struct DeletedLayer<'g> {
    border: &'g Border,
}

impl DeletedLayer<'_> {
    /// Retires the nodes: `cut` is the slot that led to them.
    fn retire(self, cut: &CutSlot, tree: &Masstree, guard: &Guard<'_>) {
        debug_assert!(cut.led_to_a_layer(), "the slot that led here");
        if !is_planted(Fault::RetiredBeforeUnlinked) {
            // SAFETY: the slot was the only way into the layer, and is cut: the caller has it.
            unsafe { self.retire_nodes(tree, guard) };
        }
    }

    fn retire_early_if_planted(&self, tree: &Masstree, guard: &Guard<'_>) {
        if is_planted(Fault::RetiredBeforeUnlinked) {
            // SAFETY: none: that is the fault.
            unsafe { self.retire_nodes(tree, guard) };
        }
    }

    /// # Safety
    /// No reader that pins from now on finds a way to the nodes, which were not retired before.
    unsafe fn retire_nodes(&self, tree: &Masstree, guard: &Guard<'_>) {
        // The links upwards of deleted nodes stay what they were, and our own pin keeps the nodes readable.
        let mut parent = self.border.parent.load();
        // SAFETY: the caller's promise; a tree's nodes are made with its account.
        unsafe { Unlinked::new(self.border, tree.account) }.retire(guard);
        while let Some(interior) = parent {
            parent = interior.parent.load();
            // SAFETY: as for the border node.
            unsafe { Unlinked::new(interior, tree.account) }.retire(guard);
        }
    }
}

/// Returns the first border node of a layer, from a node on the left edge of its tree: first children never change.
pub(crate) fn first_border(mut node: NodeRef<'_>) -> &Border {
    loop {
        match node.kind() {
            NodeKind::Border(border) => return border,
            NodeKind::Interior(interior) => {
                node = interior.child(0).unwrap_or_else(|| panic!("I2: a node has a first child"));
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use ensilo_epoch::{Advance, EpochOptions, Epochs};
    use ensilo_slab::{AccountId, Pool};

    use super::*;
    use crate::descend::find_border;
    use crate::key::{KeyTail, leads_to_a_layer};
    use crate::node::Node;
    use crate::planted::stop_at;

    const DEEP: &[u8] = b"aaaaaaaabbbbbbbbc";
    const SHALLOW: &[u8] = b"aaaaaaaab";
    const SIBLING: &[u8] = b"aaaaaaaac";

    /// The node of the layer that the first slot of the tree leads to, if it leads to one.
    fn layer_below<'g>(tree: &'g Masstree, guard: &'g Guard<'_>) -> Option<NodeRef<'g>> {
        let border = first_border(tree.root(guard));
        let slot = border.permuter().slots().next().filter(|&slot| leads_to_a_layer(border.kind(slot)))?;
        // SAFETY: the slot leads to a layer, and the only thread that changes it is this one.
        Some(unsafe { NodeRef::from_word(border.value(slot)) })
    }

    fn advance(epochs: &Epochs, times: usize) {
        (0..times).for_each(|_| epochs.advance());
    }

    /// The remover loses its core for some epochs, once the layer's nodes are deleted. A reader pins meanwhile and comes to them: they
    /// stay allocated until it has ended.
    #[test]
    fn a_layer_that_a_reader_can_still_find_is_not_freed_under_it() {
        let epochs = epochs();
        let (remover, reader) = (epochs.participant(), Rc::new(epochs.participant()));
        let tree = Arc::new(Masstree::new(&remover.pin(), AccountId(7)).unwrap());
        for key in [DEEP, b"aaaaaaaabbbbbbbbd", b"zzzz"] {
            tree.insert_if_absent(key, 1, &remover.pin(), &mut ()).unwrap();
        }
        assert!(tree.remove(b"aaaaaaaabbbbbbbbd", 1, &remover.pin()));
        let found = Rc::new(Cell::new(0));
        let stopped = {
            let (epochs, reader) = (Arc::clone(&epochs), Rc::clone(&reader));
            let (tree, found) = (Arc::clone(&tree), Rc::clone(&found));
            move || {
                advance(&epochs, 3);
                // Kept until the end of the test.
                let guard = std::mem::ManuallyDrop::new(reader.pin());
                let layer = layer_below(&tree, &guard).expect("a reader that pins now still comes here");
                found.set(layer.to_word());
            }
        };
        stop_at(Step::LayerDeleted, stopped);
        assert!(tree.remove(DEEP, 1, &remover.pin()));
        assert_ne!(found.get(), 0, "the remover came to the step");
        advance(&epochs, 5);
        remover.collect(usize::MAX);
        // SAFETY: the reader is pinned since before it read this word from a slot that led to a layer.
        let node = unsafe { NodeRef::from_word(found.get()) };
        let NodeKind::Border(border) = node.kind() else { panic!("one border node was left") };
        assert!(node.version().stable().is_deleted(), "it says that it has left the tree");
        assert!(border.is_empty());
    }

    fn epochs() -> Arc<Epochs> {
        let options = EpochOptions { advance: Advance::Manual, ..EpochOptions::default() };
        Epochs::new(options, Pool::new(None))
    }

    /// The layer's node as a reader finds it that may be overtaken by a remover; none if it was.
    fn look<'g>(tree: &'g Masstree, guard: &'g Guard<'_>) -> Option<NodeRef<'g>> {
        let (border, version) = find_border(tree.root(guard), KeyTail::new(SHALLOW).slice())?;
        let Probe::Layer { node, .. } = border.probe(KeyTail::new(SHALLOW)) else { return None };
        // SAFETY: the slot led to a layer at the version that is compared.
        (!border.version().has_changed(version)).then(|| unsafe { NodeRef::from_word(node) })
    }

    /// The remover loses its core at the worst place for some epochs each time, and readers with a node in their hands for more of
    /// them.
    #[test]
    fn readers_never_hold_freed_nodes_while_removers_lose_their_cores() {
        const ROUNDS: usize = 50;
        let epochs = epochs();
        let tree = Arc::new(Masstree::new(&epochs.participant().pin(), AccountId(7)).unwrap());
        let (is_over, looks) = (AtomicBool::new(false), Arc::new(AtomicUsize::new(0)));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let reader = epochs.participant();
                    while !is_over.load(Ordering::Relaxed) {
                        let guard = reader.pin();
                        if let Some(layer) = look(&tree, &guard) {
                            looks.fetch_add(1, Ordering::Relaxed);
                            let mut is_deleted = false;
                            for _ in 0..20 {
                                let now = layer.version().stable().is_deleted();
                                assert!(now || !is_deleted, "a node that was deleted came back as another");
                                is_deleted = now;
                                epochs.advance();
                            }
                        }
                        drop(guard);
                        reader.collect(usize::MAX);
                    }
                });
            }
            let remover = epochs.participant();
            for _ in 0..ROUNDS {
                for key in [SHALLOW, SIBLING] {
                    tree.insert_if_absent(key, 1, &remover.pin(), &mut ()).unwrap();
                }
                assert!(tree.remove(SIBLING, 1, &remover.pin()));
                let (epochs, looks) = (Arc::clone(&epochs), Arc::clone(&looks));
                let stopped = move || {
                    advance(&epochs, 3);
                    let until = looks.load(Ordering::Relaxed) + 4;
                    while looks.load(Ordering::Relaxed) < until {
                        thread::yield_now();
                    }
                };
                stop_at(Step::LayerDeleted, stopped);
                assert!(tree.remove(SHALLOW, 1, &remover.pin()));
                remover.epochs().advance();
                remover.collect(usize::MAX);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(tree.verify(&epochs.participant().pin()).keys, 0);
    }
}
