//! Many look-ups at once, their cache misses side by side.
//!
//! A descent waits for memory at every level. Here a group of descents takes turns: each step reads a node whose lines
//! were asked for one round ago, asks for the lines of the next one, and gives the turn away. A descent that meets a writer
//! leaves the group and is done again by [`Masstree::get`].

use ensilo_epoch::Guard;

use crate::Masstree;
use crate::border::{Border, Probe};
use crate::get::Lookup;
use crate::interior::Interior;
use crate::key::KeyTail;
use crate::node::{Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::stamp::NodeStamp;
use crate::version::NodeVersion;

/// The descents under way at once: about as many cache misses as a core can have open, at several lines a node.
const GROUP: usize = 8;

/// One descent of the group.
#[derive(Debug, Copy, Clone)]
struct Lane<'g, 'k> {
    index: usize,
    key: KeyTail<'k>,
    state: State<'g>,
}

/// Where a descent stands when its turn comes.
#[derive(Debug, Copy, Clone)]
enum State<'g> {
    /// At a layer's root; its lines are on their way.
    Root(NodeRef<'g>),
    /// At a child that this node led to at this version; the child's lines are on their way.
    Child(&'g Interior, NodeVersion, NodeRef<'g>),
    /// The answer is known, what lies behind the value is on its way.
    Done(Lookup),
    /// A writer was met.
    Disturbed,
}

impl Masstree {
    /// Looks all keys up and hands each answer out with the index of its key, in any order. Faster than one by one: the
    /// look-ups wait for memory together.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        guard: &Guard<'_>,
        mut each: impl FnMut(usize, Lookup),
    ) {
        let root = self.root(guard);
        let begin = |index: usize| {
            let key = KeyTail::new(keys[index].as_ref());
            Lane { index, key, state: State::Root(root) }
        };
        let mut lanes: [Option<Lane<'_, '_>>; GROUP] = [None; GROUP];
        let mut begun = keys.len().min(GROUP);
        for (index, lane) in lanes[..begun].iter_mut().enumerate() {
            *lane = Some(begin(index));
        }
        let mut open = begun;
        while open > 0 {
            for slot in &mut lanes {
                let Some(lane) = slot else { continue };
                match lane.state {
                    State::Root(node) => lane.enter_root(node),
                    State::Child(parent, version, node) => lane.enter_child(parent, version, node),
                    State::Done(_) | State::Disturbed => {
                        let lookup = match lane.state {
                            State::Done(lookup) => lookup,
                            _ => self.get(keys[lane.index].as_ref(), guard),
                        };
                        each(lane.index, lookup);
                        *slot = (begun < keys.len()).then(|| begin(begun));
                        begun += 1;
                        open -= usize::from(slot.is_none());
                    }
                }
            }
        }
    }
}

impl<'g> Lane<'g, '_> {
    #[inline]
    fn enter_root(&mut self, node: NodeRef<'g>) {
        let (version, kind) = node.enter();
        if version.is_root() && !version.is_deleted() {
            self.search(version, kind);
            return;
        }
        self.state = match node.parent() {
            Some(parent) if !version.is_deleted() => {
                parent.node().prefetch();
                State::Root(parent.node())
            }
            _ => State::Disturbed,
        };
    }

    #[inline]
    fn enter_child(&mut self, parent: &'g Interior, parent_version: NodeVersion, node: NodeRef<'g>) {
        let (version, kind) = node.enter();
        if parent.version().has_changed(parent_version) {
            self.state = State::Disturbed;
        } else {
            self.search(version, kind);
        }
    }

    /// Reads a node that was responsible for the key at `version`.
    #[inline]
    fn search(&mut self, version: NodeVersion, kind: NodeKind<'g>) {
        match kind {
            NodeKind::Interior(interior) => {
                self.state = match interior.child_for(self.key.slice()) {
                    Some(child) => {
                        child.prefetch();
                        State::Child(interior, version, child)
                    }
                    None => State::Disturbed,
                };
            }
            NodeKind::Border(border) => self.search_border(version, border),
        }
    }

    #[inline]
    fn search_border(&mut self, version: NodeVersion, border: &'g Border) {
        let probe = border.probe(self.key);
        self.state = if version.is_deleted() || border.version().has_changed(version) {
            State::Disturbed
        } else {
            match probe {
                Probe::Value(value) => State::Done(Lookup::Found(value)),
                Probe::Missing => State::Done(Lookup::Missing(NodeStamp::new(border, version))),
                Probe::Layer(word) => {
                    // SAFETY: the slot was one of kind LAYER at the version that was just compared, while pinned.
                    let layer = unsafe { NodeRef::from_word(word) };
                    layer.prefetch();
                    self.key = self.key.below();
                    State::Root(layer)
                }
            }
        };
    }
}
