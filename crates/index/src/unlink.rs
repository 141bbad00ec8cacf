//! An empty border node leaves its layer.
//!
//! A node that is not the first of its layer leaves as soon as it is empty; its range goes to the node before it. Interior
//! nodes are never merged: one leaves when its last child does. (Trees that free nodes when they are empty, instead of
//! merging half empty ones, are known to stay well filled; and the paper does the same.)
//!
//! # How the range moves
//! Let `N` leave, `P` be the node before it, and `s` the lower bound of the node behind it. If `N` is not the first child of
//! its parent, taking `N` and its lower bound out of the parent leads its range to the child before, of which `P` is the
//! last border node. If `N` is the first child, the parent's own range has to begin at `s` from now on: the bound in
//! front of it, in the first ancestor of which it is not on the left edge, is raised.
//!
//! ```text
//!           [ 30 ]                     [ 40 ]
//!          /      \                   /      \
//!     [ 10 20 ]  [ 40 50 ]   ->  [ 10 20 ]  [ 50 ]      N = 30..40 leaves; P = 20..30 becomes 20..40
//! ```
//! `P` stays locked until all of this is done: nothing is inserted into its new range before every way leads there. Every node
//! that loses the lower end of its range gets a version that says so; `P` has no more and no fewer keys than before, and keeps
//! its version. All marks are set before the first of these nodes is released: a reader cannot see a part of it.

use ensilo_epoch::Guard;

use crate::border::Border;
use crate::interior::Interior;
use crate::locked::Locked;
use crate::node::{Node, NodeRef};
use crate::planted::{Fault, is_planted};
use crate::remove::{LayerState, state_of_layer};
use crate::unlinked::Unlinked;
use crate::{HEIGHT_MAX, Masstree};

/// What happens to an ancestor of the node that leaves.
#[derive(Debug)]
enum AncestorChange {
    /// Its only child leaves, and so does it.
    Leaves,
    /// It loses the child at this place, and if that is the first, the beginning of its range.
    LosesChild(usize),
    /// It is on the left edge of a subtree that loses the beginning of its range.
    LosesRange,
    /// The bound in front of such a subtree, at this place, is raised: the subtree begins here now.
    RaisesBound(usize, u64),
}

/// The locked ancestors from the bottom to the top, with what happens to each.
#[derive(Debug)]
struct AncestorPath<'g> {
    levels: [Option<(Locked<'g, Interior>, AncestorChange)>; HEIGHT_MAX],
    height: usize,
}

impl Masstree {
    /// Takes a locked node that is empty and not the first of its layer out of the tree.
    #[cold]
    pub(crate) fn unlink(&self, border: Locked<'_, Border>, guard: &Guard<'_>) -> LayerState {
        let previous = lock_previous(&border);
        let path = AncestorPath::lock(&border);
        border.mark_changing();
        path.mark_changing();
        if !is_planted(Fault::RemovalForgotten) {
            // Before any way leads there with the range.
            previous.note_removal(border.number_to_inherit());
        }
        let next = border.next.load();
        previous.next.store(next);
        if let Some(next) = next {
            next.previous.store(Some(&previous));
        }
        path.change(self, guard);
        let left = border.node_ref();
        border.unlock_deleted();
        let layer = state_of_layer(&previous);
        previous.unlock_unchanged();
        // SAFETY: neither its neighbours nor its parent lead to it any more; it was made with the tree's account; only who
        // finds it not deleted, under its lock, comes here.
        unsafe { Unlinked::new(left, self.account) }.retire(guard);
        layer
    }
}

/// Locks the node before a locked one: B3: it cannot change while we hold the lock of the one that it was.
fn lock_previous<'g>(border: &Locked<'g, Border>) -> Locked<'g, Border> {
    loop {
        let node = border.node_ref();
        let previous = node.previous.load().unwrap_or_else(|| panic!("B2: the first node stays the first"));
        let locked = Locked::lock(previous);
        if !locked.held().is_deleted() && locked.next.is(Some(node)) {
            return locked;
        }
        locked.unlock_unchanged();
    }
}

impl<'g> AncestorPath<'g> {
    /// Locks the ancestors that change when the locked `border` leaves.
    fn lock(border: &Locked<'g, Border>) -> Self {
        let mut path = AncestorPath { levels: [const { None }; HEIGHT_MAX], height: 0 };
        let mut child = border.node_ref().node();
        let mut parent = lock_existing_parent(border);
        while parent.len() == 0 {
            let above = lock_existing_parent(&parent);
            child = parent.node_ref().node();
            path.push(parent, AncestorChange::Leaves);
            parent = above;
        }
        let place = parent.place_of(child);
        if place > 0 {
            path.push(parent, AncestorChange::LosesChild(place));
        } else {
            let low = parent.low(0);
            let above = lock_existing_parent(&parent);
            child = parent.node_ref().node();
            path.push(parent, AncestorChange::LosesChild(0));
            path.lock_left_edge(above, child, low);
        }
        path
    }

    /// Locks upwards to the ancestor that bounds the subtree of which `child` is on the left edge.
    fn lock_left_edge(&mut self, mut parent: Locked<'g, Interior>, mut child: NodeRef<'g>, low: u64) {
        loop {
            let place = parent.place_of(child);
            if place > 0 {
                self.push(parent, AncestorChange::RaisesBound(place - 1, low));
                return;
            }
            let above = lock_existing_parent(&parent);
            child = parent.node_ref().node();
            self.push(parent, AncestorChange::LosesRange);
            parent = above;
        }
    }

    fn push(&mut self, node: Locked<'g, Interior>, change: AncestorChange) {
        self.levels[self.height] = Some((node, change));
        self.height += 1;
    }

    fn mark_changing(&self) {
        for (node, _) in self.levels.iter().flatten() {
            node.mark_changing();
        }
    }

    /// Makes the changes and unlocks the nodes, from the top to the bottom.
    fn change(self, tree: &Masstree, guard: &Guard<'_>) {
        for (node, change) in self.levels.into_iter().rev().flatten() {
            match change {
                AncestorChange::Leaves => {
                    let interior = node.node_ref();
                    node.unlock_deleted();
                    // SAFETY: its parent does not lead to it any more: the change above, made before, took it or one that led
                    // to it out; it was made with the tree's account; its lock was held from before it was deleted.
                    unsafe { Unlinked::new(interior, tree.account) }.retire(guard);
                }
                AncestorChange::LosesChild(place) => {
                    node.take_out(place);
                    if place == 0 && !is_planted(Fault::ShrinkCountedAsInsert) {
                        node.unlock_after_shrink();
                    } else {
                        node.unlock_after_insert();
                    }
                }
                AncestorChange::LosesRange => {
                    node.unlock_after_shrink();
                }
                AncestorChange::RaisesBound(place, low) => {
                    if !is_planted(Fault::BoundNotRaised) {
                        node.set_low(place, low);
                    }
                    node.unlock_after_insert();
                }
            }
        }
    }
}

/// Returns the parent of a node that is not a root, since there is a border node to the left of it.
fn lock_existing_parent<'g, N: Node>(node: &Locked<'g, N>) -> Locked<'g, Interior> {
    node.lock_parent().unwrap_or_else(|| panic!("a layer with two border nodes has an interior root"))
}
