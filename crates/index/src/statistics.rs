//! How large the tree is, and how well filled.

use ensilo_epoch::Guard;

use crate::Masstree;
use crate::key::leads_to_a_layer;
use crate::node::{Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::{WIDTH, descend::true_root};

/// The size and shape of a tree. While others write, the numbers belong to no single moment.
#[derive(Debug, Copy, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Keys, in all layers.
    pub keys: u64,
    /// Layers, the top one included.
    pub layers: u64,
    /// Border nodes, in all layers.
    pub border_nodes: u64,
    /// Interior nodes, in all layers.
    pub interior_nodes: u64,
    /// Slots in use in border nodes; a layer takes one in the layer above.
    pub slots_used: u64,
    /// The largest number of nodes on the way from the top to a key.
    pub depth: u64,
}

impl Statistics {
    /// Returns the share of the border nodes' slots that are in use, 0 to 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share, for people to read")]
    pub fn fill(&self) -> f64 {
        self.slots_used as f64 / (self.border_nodes * WIDTH as u64).max(1) as f64
    }
}

impl Masstree {
    /// Counts keys and nodes. Reads every node of the tree.
    #[must_use]
    pub fn statistics(&self, guard: &Guard<'_>) -> Statistics {
        let mut statistics = Statistics::default();
        statistics.add_layer(self.root(guard), 0);
        statistics
    }
}

impl Statistics {
    fn add_layer(&mut self, root: NodeRef<'_>, above: u64) {
        // A layer that is gone by now has no keys.
        if let Some((_, kind)) = true_root(root) {
            self.layers += 1;
            self.add_node(kind, above + 1);
        }
    }

    fn add_node(&mut self, kind: NodeKind<'_>, depth: u64) {
        self.depth = self.depth.max(depth);
        match kind {
            NodeKind::Interior(interior) => {
                self.interior_nodes += 1;
                for child in (0..=interior.len()).filter_map(|place| interior.child(place)) {
                    self.add_node(child.kind(), depth + 1);
                }
            }
            NodeKind::Border(border) => {
                self.border_nodes += 1;
                let version = border.version().stable();
                let slots: Vec<_> = border.permuter().slots().map(|slot| border.slot(slot)).collect();
                let is_stable = !border.version().has_changed(version);
                for slot in slots {
                    self.slots_used += 1;
                    if !leads_to_a_layer(slot.kind) {
                        self.keys += 1;
                    } else if is_stable {
                        // SAFETY: the slot led to a layer at the version that was just compared, while pinned.
                        self.add_layer(unsafe { NodeRef::from_word(slot.value) }, depth);
                    }
                }
            }
        }
    }
}
