//! Point look-ups, one by one and many at once.
//!
//! # Many at once
//! A descent waits for memory at every level. Here a group of descents takes turns: each step reads a node that was asked for
//! one round ago, asks for the lines of the next one, and lets the next descent go on. So does one that comes to the suffixes of
//! a border node. A descent that meets a writer leaves the group and is done again by [`Masstree::get`]. So the cache misses of
//! a group lie side by side.

use ensilo_epoch::Guard;
use ensilo_sync::region::{self, Region};

use crate::Masstree;
use crate::border::{Border, Probe};
use crate::descend::Position;
use crate::interior::Interior;
use crate::key::KeyTail;
use crate::node::{Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::stamp::NodeStamp;
use crate::version::NodeVersion;

/// What a look-up found.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The key's value.
    Found(u64),
    /// The key is missing, and stays so as long as this stamp is current.
    Missing(NodeStamp),
}

impl Masstree {
    /// Looks a key up. Writes no shared memory; starts to load the cache line that the value, taken as an address,
    /// points to.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &[u8], guard: &Guard<'_>) -> Lookup {
        let _index = region::enter(Region::Index);
        self.descend_to_read(key, guard).lookup()
    }
}

impl Masstree {
    /// Looks a key up, and stamps the node that is responsible for it also where the key is there.
    #[must_use]
    pub fn get_with_node(&self, key: &[u8], guard: &Guard<'_>) -> (Lookup, NodeStamp) {
        let _index = region::enter(Region::Index);
        let position = self.descend_to_read(key, guard);
        (position.lookup(), NodeStamp::new(position.border, position.version))
    }
}

impl Position<'_, '_> {
    #[inline]
    pub(crate) fn lookup(&self) -> Lookup {
        match self.probe {
            Some(Probe::Value(value)) => Lookup::Found(value),
            _ => Lookup::Missing(NodeStamp::new(self.border, self.version)),
        }
    }
}

/// The descents under way at once: about as many cache misses as a core can have open, at several lines a node.
const GROUP: usize = 8;

/// One descent of the group.
#[derive(Debug, Copy, Clone)]
struct Descent<'g, 'k> {
    index: usize,
    key: KeyTail<'k>,
    state: DescentState<'g>,
}

/// Where a descent stands when its turn comes.
#[derive(Debug, Copy, Clone)]
enum DescentState<'g> {
    /// At a layer's root; its lines are on their way.
    Root(NodeRef<'g>),
    /// At a child that this node led to at this version; the child's lines are on their way.
    Child(&'g Interior, NodeVersion, NodeRef<'g>),
    /// At a border node that is responsible for the key at this version; the suffixes are on their way.
    Suffixes(&'g Border, NodeVersion),
    /// The answer is known, what lies behind the value is on its way.
    Done(Lookup),
    /// A writer was met.
    Disturbed,
}

impl Masstree {
    /// Looks all keys up and hands each answer out with the index of its key, in any order. Faster than one by one: the
    /// look-ups wait for memory together.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K], guard: &Guard<'_>, each: impl FnMut(usize, Lookup)) {
        Masstree::get_many_of(keys.len(), |at| (self, keys[at].as_ref()), guard, each);
    }

    /// Like [`Masstree::get_many`], for `count` keys of any trees: `key` returns each by its index, with its tree.
    pub fn get_many_of<'k>(
        count: usize,
        key: impl Fn(usize) -> (&'k Masstree, &'k [u8]),
        guard: &Guard<'_>,
        mut each: impl FnMut(usize, Lookup),
    ) {
        let _index = region::enter(Region::Index);
        let begin = |index: usize| {
            let (tree, bytes) = key(index);
            Descent { index, key: KeyTail::new(bytes), state: DescentState::Root(tree.root(guard)) }
        };
        let mut group: [Option<Descent<'_, '_>>; GROUP] = [None; GROUP];
        let mut begun = count.min(GROUP);
        for (index, descent) in group[..begun].iter_mut().enumerate() {
            *descent = Some(begin(index));
        }
        let (slots, mut open) = (&mut group[..begun], begun);
        while open > 0 {
            for slot in &mut *slots {
                let Some(descent) = slot else { continue };
                match descent.state {
                    DescentState::Root(node) => descent.enter_root(node),
                    DescentState::Child(parent, version, node) => descent.enter_child(parent, version, node),
                    DescentState::Suffixes(border, version) => descent.probe(version, border),
                    DescentState::Done(_) | DescentState::Disturbed => {
                        let lookup = match descent.state {
                            DescentState::Done(lookup) => lookup,
                            _ => {
                                let (tree, bytes) = key(descent.index);
                                tree.get(bytes, guard)
                            }
                        };
                        each(descent.index, lookup);
                        *slot = (begun < count).then(|| begin(begun));
                        begun += 1;
                        open -= usize::from(slot.is_none());
                    }
                }
            }
        }
    }
}

impl<'g> Descent<'g, '_> {
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
                DescentState::Root(parent.node())
            }
            _ => DescentState::Disturbed,
        };
    }

    #[inline]
    fn enter_child(&mut self, parent: &'g Interior, parent_version: NodeVersion, node: NodeRef<'g>) {
        let (version, kind) = node.enter();
        if parent.version().has_changed(parent_version) {
            self.state = DescentState::Disturbed;
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
                        DescentState::Child(interior, version, child)
                    }
                    None => DescentState::Disturbed,
                };
            }
            NodeKind::Border(border) => self.search_border(version, border),
        }
    }

    /// Waits for the suffixes first, where the key has one.
    #[inline]
    fn search_border(&mut self, version: NodeVersion, border: &'g Border) {
        if self.key.goes_on()
            && let Some(suffixes) = border.suffixes()
        {
            suffixes.prefetch();
            self.state = DescentState::Suffixes(border, version);
        } else {
            self.probe(version, border);
        }
    }

    #[inline]
    fn probe(&mut self, version: NodeVersion, border: &'g Border) {
        let probe = border.probe(self.key);
        self.state = if version.is_deleted() || border.version().has_changed(version) {
            DescentState::Disturbed
        } else {
            match probe {
                Probe::Value(value) => DescentState::Done(Lookup::Found(value)),
                Probe::Missing => DescentState::Done(Lookup::Missing(NodeStamp::new(border, version))),
                Probe::Layer { node, skipped_bytes } => {
                    // SAFETY: the slot led to a layer at the version that was just compared, while pinned.
                    let layer = unsafe { NodeRef::from_word(node) };
                    layer.prefetch();
                    self.key = self.key.behind(skipped_bytes as usize);
                    DescentState::Root(layer)
                }
            }
        };
    }
}
