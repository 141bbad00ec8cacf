//! Range scans, forwards and backwards.
//!
//! A scan copies what it needs of a border node between two looks at its version, reports the node with this version, and
//! then hands out what it copied. It goes on to the node that was next at that moment. If that one has left the tree, the
//! place is looked up again from the layer's root: a scan never returns to what it has handed out, and misses no key that
//! is there from beginning to end.
//!
//! Keys that come and go while the scan is under way may be seen or not. The stamps tell: if all of them are current,
//! nothing came or went. A layer may be gone when the scan comes to it, or in the middle of it: then the node above is reported once
//! more, with the version that it has by then.
//!
//! # Waiting for memory
//! A scan that follows links waits for one node after the other. So it asks for memory ahead: for what lies behind the next
//! few values, for the next node, and from its second node on, since then it is not one of a few keys, for the node behind
//! the next one too. That one the parent names. The parent is read without a look at its version: what it names may be
//! outdated, and then a load is in vain.

use std::ops::{Bound, ControlFlow};

use ensilo_epoch::Guard;
use ensilo_sync::Backoff;
use ensilo_sync::region::{self, Caller, Region};

use crate::Masstree;
use crate::border::Border;
use crate::descend::{Responsible, advance, find_border, true_root};
use crate::edge::{Edge, Side};
use crate::key::{LAYER, PATH, SUFFIX, leads_to_a_layer};
use crate::key_buffer::KeyBuffer;
use crate::leaf_copy::{Entry, LeafCopy};
use crate::node::{Node, NodeRef};
use crate::remove::first_border;
use crate::stamp::NodeStamp;

/// The two ends of a range of keys.
pub type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// The order in which a scan hands out keys.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Direction {
    /// From small to large.
    Forward,
    /// From large to small.
    Reverse,
}

/// Receives what a scan finds.
pub trait ScanVisitor {
    /// The scan relies on this node: what it hands out next, or does not hand out, is what the node held at this version. Comes
    /// before the node's entries. A node is reported again, with a later version, when a layer below it is found gone.
    fn node(&mut self, stamp: NodeStamp);

    /// Comes a few entries before [`entry`](ScanVisitor::entry), for most of them, when what lies where the value points to is about to be
    /// in the cache: where that leads to something else, its turn to be loaded is now.
    #[inline]
    fn approach(&mut self, value: u64) {
        let _ = value;
    }

    /// Takes a key within the bounds and its value; `Break` ends the scan.
    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()>;
}

/// So many values ahead of the visitor the scan starts to load what lies behind them.
const VALUES_AHEAD: usize = 4;

/// So many values ahead it has the visitor load what lies behind that.
const APPROACH_AHEAD: usize = 2;

/// So many border nodes ahead of itself the scan starts to load one, in the order of its direction.
const NODES_AHEAD: isize = 2;

/// The part of the range that lies in one layer.
#[derive(Debug, Copy, Clone)]
struct LayerRange<'b> {
    low: Edge<'b>,
    high: Edge<'b>,
}

/// A scan under way.
struct TreeScan<'s, V, const REVERSE: bool> {
    visitor: &'s mut V,
    /// Whose time the visitor takes.
    caller: Caller,
    key: KeyBuffer,
}

impl Masstree {
    /// Hands every key within the bounds to the visitor, in order, and before them the border nodes relied on, until the
    /// visitor breaks off.
    pub fn scan(
        &self,
        bounds: Bounds<'_>,
        direction: Direction,
        guard: &Guard<'_>,
        visitor: &mut impl ScanVisitor,
    ) {
        let index = region::enter(Region::Index);
        let range = LayerRange { low: Edge::new(bounds.0), high: Edge::new(bounds.1) };
        let root = self.root(guard);
        let (caller, key) = (index.caller(), KeyBuffer::new());
        // The visitor knows whether it broke off.
        let _ = match direction {
            Direction::Forward => TreeScan::<_, false> { visitor, caller, key }.layer(root, 0, None, range),
            Direction::Reverse => TreeScan::<_, true> { visitor, caller, key }.layer(root, 0, None, range),
        };
    }
}

impl<V: ScanVisitor, const REVERSE: bool> TreeScan<'_, V, REVERSE> {
    /// Hands out what lies in the range in the layer of `root`, to which a slot of `above` led. Its keys begin with `8 * depth` bytes that
    /// the key buffer holds already.
    fn layer(
        &mut self,
        root: NodeRef<'_>,
        depth: usize,
        above: Option<&Border>,
        range: LayerRange<'_>,
    ) -> ControlFlow<()> {
        let (first, last) = (range.low.slice_or(0), range.high.slice_or(u64::MAX));
        if first > last {
            return ControlFlow::Continue(());
        }
        let mut cursor = if REVERSE { last } else { first };
        let mut place = settle(root, cursor);
        let mut copy = LeafCopy::new();
        let mut is_first = true;
        loop {
            let Some((border, version)) = place.and_then(|place| copy_stable(&mut copy, place, root, cursor))
            else {
                self.report_end(root, above);
                break;
            };
            self.node(NodeStamp::new(border, version));
            let next = if REVERSE { border.previous.load() } else { copy.next() };
            if let Some(next) = next {
                next.node().prefetch();
            }
            if !is_first {
                prefetch_ahead::<REVERSE>(border);
            }
            is_first = false;
            self.entries(&copy, border, depth, cursor, range)?;
            if REVERSE {
                if border.low() <= first {
                    break;
                }
                cursor = border.low() - 1;
            } else {
                match next.map(Border::low) {
                    Some(low) if low <= last => cursor = low,
                    _ => break,
                }
            }
            place = next.and_then(not_deleted).or_else(|| settle(root, cursor));
        }
        ControlFlow::Continue(())
    }

    /// Reports what says that a layer is gone: its first node, which knows of all removals from the layer, and the node above, as that is
    /// now. Without a layer above nothing is gone.
    #[cold]
    fn report_end(&mut self, root: NodeRef<'_>, above: Option<&Border>) {
        if let Some(above) = above {
            for border in [first_border(root), above] {
                self.node(NodeStamp::new(border, border.version().stable()));
            }
        }
    }

    /// Hands out the entries of one node that are in the range and not before the cursor.
    #[inline]
    fn entries(
        &mut self,
        copy: &LeafCopy<'_>,
        border: &Border,
        depth: usize,
        cursor: u64,
        range: LayerRange<'_>,
    ) -> ControlFlow<()> {
        let entries = copy.entries();
        // What was handed out before its node left the tree is not handed out again.
        let is_before = |entry: &Entry| {
            range.low.of_low(entry.slice, entry.kind) == Side::Outside || (!REVERSE && entry.slice < cursor)
        };
        let is_within = |entry: &Entry| {
            range.high.of_high(entry.slice, entry.kind) != Side::Outside && !(REVERSE && entry.slice > cursor)
        };
        let start = entries.iter().take_while(|entry| is_before(entry)).count();
        let entries = &entries[start..];
        let entries = &entries[..entries.iter().take_while(|entry| is_within(entry)).count()];
        let len = entries.len();
        let at = |step: usize| entries[if REVERSE { len - 1 - step } else { step }];
        (0..len.min(VALUES_AHEAD)).for_each(|step| at(step).prefetch());
        (0..len.min(APPROACH_AHEAD)).for_each(|step| self.approach(at(step)));
        for step in 0..len {
            if step + VALUES_AHEAD < len {
                at(step + VALUES_AHEAD).prefetch();
            }
            if step + APPROACH_AHEAD < len {
                self.approach(at(step + APPROACH_AHEAD));
            }
            self.entry(copy, border, at(step), depth, range)?;
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn node(&mut self, stamp: NodeStamp) {
        let _caller = self.caller.enter();
        self.visitor.node(stamp);
    }

    #[inline]
    fn approach(&mut self, entry: Entry) {
        if !leads_to_a_layer(entry.kind) {
            let _caller = self.caller.enter();
            self.visitor.approach(entry.value);
        }
    }

    /// Hands out an entry, or what lies behind it.
    #[inline]
    fn entry(
        &mut self,
        copy: &LeafCopy<'_>,
        border: &Border,
        entry: Entry,
        depth: usize,
        range: LayerRange<'_>,
    ) -> ControlFlow<()> {
        self.key.set_slice(depth, entry.slice);
        if entry.kind < SUFFIX {
            return self.hand_out(8 * depth + usize::from(entry.kind), entry.value);
        }
        let range = range.behind(entry);
        if entry.kind == LAYER {
            return self.layer_behind(entry, depth + 1, border, range);
        }
        let suffix = self.key.set_suffix(depth, copy.suffix(entry));
        if entry.kind == PATH {
            let depth = depth + 1 + suffix.len() / 8;
            let range = range.behind_path(suffix);
            return range
                .map_or(ControlFlow::Continue(()), |range| self.layer_behind(entry, depth, border, range));
        }
        if !range.low.admits_as_low(suffix) || !range.high.admits_as_high(suffix) {
            return ControlFlow::Continue(());
        }
        let len = 8 * (depth + 1) + suffix.len();
        self.hand_out(len, entry.value)
    }

    /// Hands out what lies in the range in the layer to which an entry leads.
    #[inline]
    fn layer_behind(
        &mut self,
        entry: Entry,
        depth: usize,
        border: &Border,
        range: LayerRange<'_>,
    ) -> ControlFlow<()> {
        // SAFETY: the slot led to a layer at the version at which the node was copied, while pinned.
        let layer = unsafe { NodeRef::from_word(entry.value) };
        self.layer(layer, depth, Some(border), range)
    }

    #[inline]
    fn hand_out(&mut self, key_len: usize, value: u64) -> ControlFlow<()> {
        let _caller = self.caller.enter();
        self.visitor.entry(self.key.bytes(key_len), value)
    }
}

impl<'b> LayerRange<'b> {
    /// Returns the part of the range behind an entry that goes on, and is in the range or on its edge.
    fn behind(self, entry: Entry) -> LayerRange<'b> {
        let low = match self.low.of_low(entry.slice, entry.kind) {
            Side::On => self.low.below(),
            _ => Edge::Open,
        };
        let high = match self.high.of_high(entry.slice, entry.kind) {
            Side::On => self.high.below(),
            _ => Edge::Open,
        };
        LayerRange { low, high }
    }

    /// Returns the part of the range behind a path that all its keys begin with; none if that is empty.
    fn behind_path(self, path: &[u8]) -> Option<LayerRange<'b>> {
        Some(LayerRange {
            low: self.low.behind_path_as_low(path)?,
            high: self.high.behind_path_as_high(path)?,
        })
    }
}

/// Copies the node that is responsible for the cursor; `place` was, at its version, or is to the left of it. None if the layer
/// is gone.
fn copy_stable<'g>(
    copy: &mut LeafCopy<'g>,
    place: Responsible<'g>,
    root: NodeRef<'g>,
    cursor: u64,
) -> Option<Responsible<'g>> {
    let (mut border, mut version) = place;
    loop {
        copy.take(border);
        let moved = if border.version().has_changed(version) {
            advance(border, version, cursor)
        } else {
            match copy.next() {
                Some(next) if next.low() <= cursor => not_deleted(next),
                _ => return Some((border, version)),
            }
        };
        (border, version) = moved.or_else(|| settle(root, cursor))?;
    }
}

/// Starts to load the node `NODES_AHEAD` places ahead of `border`, if it has the same parent.
#[inline]
fn prefetch_ahead<const REVERSE: bool>(border: &Border) {
    let distance = if REVERSE { -NODES_AHEAD } else { NODES_AHEAD };
    if let Some(parent) = border.parent.load()
        && let Some(ahead) = parent.sibling(border.low(), distance)
    {
        ahead.prefetch();
    }
}

/// Returns a node with its version, unless it has left the tree.
fn not_deleted(border: &Border) -> Option<Responsible<'_>> {
    let version = border.version().stable();
    (!version.is_deleted()).then_some((border, version))
}

/// Returns the node of the layer that is responsible for the cursor; none if the layer is gone, and with it all its
/// keys.
fn settle(root: NodeRef<'_>, cursor: u64) -> Option<Responsible<'_>> {
    let mut backoff = Backoff::new();
    loop {
        let place = find_border(root, cursor);
        if place.is_some() || true_root(root).is_none() {
            return place;
        }
        backoff.wait();
    }
}
