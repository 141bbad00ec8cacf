//! A walk over the whole tree that checks its invariants.

use ensilo_epoch::Guard;

use crate::Masstree;
use crate::WIDTH;
use crate::border::{Border, NO_SLICE};
use crate::interior::Interior;
use crate::key::{PATH, SUFFIX, class_of, leads_to_a_layer};
use crate::node::{Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::statistics::Statistics;
use crate::suffix::Suffix;

/// The walk over one layer.
struct LayerWalk<'g> {
    depth: usize,
    /// The border node met last.
    previous: Option<&'g Border>,
}

impl Masstree {
    /// Checks the invariants of every node and counts them. Nobody may write meanwhile.
    ///
    /// # Panics
    /// When an invariant does not hold.
    pub fn verify(&self, guard: &Guard<'_>) -> Statistics {
        verify_layer(self.root(guard), 0);
        self.statistics(guard)
    }
}

fn verify_layer(node: NodeRef<'_>, depth: usize) {
    let mut root = node;
    while let Some(parent) = root.parent() {
        root = parent.node();
    }
    let mut walk = LayerWalk { depth, previous: None };
    walk.node(root, None, 0, None);
    let last = walk.previous.unwrap_or_else(|| panic!("a layer has a border node"));
    assert!(last.next.load().is_none(), "B3: the last border node has no next one");
    let is_one_empty_node = last.is_empty() && last.previous.load().is_none();
    assert!(depth == 0 || !is_one_empty_node, "an empty layer has left the tree");
}

impl<'g> LayerWalk<'g> {
    fn node(&mut self, node: NodeRef<'g>, parent: Option<&Interior>, low: u64, high: Option<u64>) {
        assert!(node.version().is_at_rest(), "V1: no writer left a node locked");
        let (version, kind) = node.enter();
        assert!(!version.is_deleted(), "no link leads to a deleted node");
        assert_eq!(version.is_root(), parent.is_none(), "the root bit is set on roots only");
        match kind {
            NodeKind::Interior(interior) => {
                assert!(interior.parent.is(parent), "I3: the parent of a child has it");
                self.interior(interior, low, high);
            }
            NodeKind::Border(border) => {
                assert!(border.parent.is(parent), "I3: the parent of a child has it");
                self.border(border, low, high);
            }
        }
    }

    fn interior(&mut self, interior: &'g Interior, low: u64, high: Option<u64>) {
        let len = interior.len();
        let mut child_low = low;
        for place in 0..=len {
            let child_high = if place < len { Some(interior.low(place)) } else { high };
            assert!(child_high.is_none_or(|bound| bound > child_low), "I1: bounds rise");
            assert!(
                high.is_none_or(|high| child_high.is_some_and(|bound| bound <= high)),
                "I1: bounds are within the node's range"
            );
            let child = interior.child(place).unwrap_or_else(|| panic!("I2: every child is there"));
            self.node(child, Some(interior), child_low, child_high);
            child_low = child_high.unwrap_or(u64::MAX);
        }
        for place in len + 1..=crate::INTERIOR_WIDTH {
            assert!(interior.child(place).is_none(), "I2: links behind the last child are empty");
            assert!(interior.is_unbounded(place - 1), "I4: bounds behind the last are NO_BOUND");
        }
    }

    fn border(&mut self, border: &'g Border, low: u64, high: Option<u64>) {
        assert_eq!(border.low(), low, "B2: the parent knows where the range begins");
        assert!(border.previous.is(self.previous), "B3: the link to the left");
        match self.previous {
            Some(previous) => {
                assert!(previous.next.is(Some(border)), "B3: the link to the right");
                assert!(!border.is_empty(), "an empty node that is not the first has left the tree");
            }
            None => assert_eq!(low, 0, "B2: the first node begins at 0"),
        }
        self.previous = Some(border);
        self.slots(border, low, high);
    }

    fn slots(&self, border: &Border, low: u64, high: Option<u64>) {
        assert!(border.permuter().is_valid(), "P1");
        let permuter = border.permuter();
        for slot in (0..WIDTH).filter(|&slot| !permuter.has(slot)) {
            assert_eq!(border.slice(slot), NO_SLICE, "B5");
        }
        let mut before = None;
        for slot in border.permuter().slots().map(|slot| (slot, border.slot(slot))) {
            let (number, slot) = slot;
            let order = (slot.slice, class_of(slot.kind));
            assert!(before < Some(order), "B1: slots rise");
            before = Some(order);
            assert!(
                slot.slice >= low && high.is_none_or(|high| slot.slice < high),
                "B2: slots are in the range"
            );
            assert!(slot.kind <= PATH && slot.value != 0);
            assert!(self.depth == 0 || slot.kind > 0, "only the top layer has the empty key");
            let len_bytes = || border.suffix(number).map_or(0, Suffix::len);
            match slot.kind {
                SUFFIX => assert!(len_bytes() > 0),
                PATH => assert!(len_bytes() > 0 && len_bytes() % 8 == 0, "B7: a path is whole slices"),
                _ => {}
            }
            if leads_to_a_layer(slot.kind) {
                // SAFETY: the slot leads to a layer, and nobody writes.
                verify_layer(unsafe { NodeRef::from_word(slot.value) }, self.depth + 1);
            }
        }
    }
}
