//! The way from a root down to the border node that is responsible for a key.
//!
//! # Source
//! Masstree (EuroSys 2012) §4.6.4: hand-over-hand validation. A node's version is read before its content, the child's
//! version before the node's version is compared again; so at the moment of that comparison the child was responsible.
//!
//! If the comparison fails after an insert, the same node is searched again; after a shrink the way begins again at the
//! layer's root; at a deleted node it begins again at the top, since the layer itself may be gone.

use ensilo_epoch::Guard;
use ensilo_sync::Backoff;

use crate::Masstree;
use crate::border::{Border, Probe};
use crate::key::KeyTail;
use crate::locked::Locked;
use crate::node::{Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::planted::{Fault, Step, is_planted, reach};
use crate::version::NodeVersion;

/// A border node, and the version at which it was responsible for what was looked for.
pub(crate) type Responsible<'g> = (&'g Border, NodeVersion);

/// What a descent found: the answer is that of one moment, at which the node had that version.
#[derive(Debug)]
pub(crate) struct Position<'g, 'k> {
    pub(crate) border: &'g Border,
    pub(crate) version: NodeVersion,
    /// The key from this layer on.
    pub(crate) key: KeyTail<'k>,
    /// The layer, counted from the top by the slots that lead there. Another thread may make one more on the way to it.
    pub(crate) depth: usize,
    /// `Layer` only where the descent had to stop above it. None where a writer has not looked: it looks under the lock.
    pub(crate) probe: Option<Probe>,
}

impl<'g> Position<'g, '_> {
    /// Locks the node; none if it may not be responsible any more.
    #[inline]
    pub(crate) fn lock(&self) -> Option<Locked<'g, Border>> {
        let locked = Locked::lock(self.border);
        if locked.held().has_shrunk_since(self.version) {
            locked.unlock_unchanged();
            return None;
        }
        Some(locked)
    }
}

impl Masstree {
    /// Looks for a key from the top.
    #[inline]
    pub(crate) fn descend_to_read<'g, 'k>(
        &'g self,
        bytes: &'k [u8],
        guard: &'g Guard<'_>,
    ) -> Position<'g, 'k> {
        self.descend::<false>(bytes, usize::MAX, guard)
    }

    /// Looks for the node in which a key belongs, no further down than `depth_max`.
    ///
    /// A key that ends in its slice is not looked for in the node: that comes when it is locked. In passing, slots are made to
    /// refer to the roots of their layers, so that readers have not to climb there.
    pub(crate) fn descend_to_write<'g, 'k>(
        &'g self,
        bytes: &'k [u8],
        depth_max: usize,
        guard: &'g Guard<'_>,
    ) -> Position<'g, 'k> {
        self.descend::<true>(bytes, depth_max, guard)
    }

    #[inline]
    fn descend<'g, 'k, const TO_WRITE: bool>(
        &'g self,
        bytes: &'k [u8],
        depth_max: usize,
        guard: &'g Guard<'_>,
    ) -> Position<'g, 'k> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(position) = self.try_descend::<TO_WRITE>(bytes, depth_max, guard) {
                return position;
            }
            backoff.wait();
        }
    }

    /// None if it met a node that is deleted.
    #[inline]
    fn try_descend<'g, 'k, const TO_WRITE: bool>(
        &'g self,
        bytes: &'k [u8],
        depth_max: usize,
        guard: &'g Guard<'_>,
    ) -> Option<Position<'g, 'k>> {
        let mut root = self.root(guard);
        let mut key = KeyTail::new(bytes);
        let mut depth = 0;
        loop {
            let (border, version) = find_border(root, key.slice())?;
            if TO_WRITE && !key.goes_on() {
                return Some(Position { border, version, key, depth, probe: None });
            }
            let ((border, version), probe) = probe_stable(border, version, key)?;
            match probe {
                Probe::Layer { node, skipped_bytes } if depth < depth_max => {
                    // SAFETY: the slot led to a layer at the version that was just compared, during the guard's life.
                    root = unsafe { NodeRef::from_word(node) };
                    reach(Step::LayerFound);
                    root.prefetch();
                    if TO_WRITE && !root.version().looks_like_a_root() {
                        refer_to_root(border, version, key, root);
                    }
                    key = key.behind(skipped_bytes as usize);
                    depth += 1;
                }
                _ => return Some(Position { border, version, key, depth, probe: Some(probe) }),
            }
        }
    }
}

/// Looks for the key until nobody disturbed the look; none if the node is deleted.
#[inline]
fn probe_stable<'g>(
    mut border: &'g Border,
    mut version: NodeVersion,
    key: KeyTail<'_>,
) -> Option<(Responsible<'g>, Probe)> {
    loop {
        let probe = border.probe(key);
        if !border.version().has_changed(version) || is_planted(Fault::LookWithoutCheck) {
            return Some(((border, version), probe));
        }
        (border, version) = advance(border, version, key.slice())?;
    }
}

/// Returns the border node that is responsible for `slice` in the layer of `root`; none if it met a deleted node.
#[inline]
pub(crate) fn find_border<'g>(root: NodeRef<'g>, slice: u64) -> Option<Responsible<'g>> {
    'root: loop {
        let (mut version, mut kind) = true_root(root)?;
        loop {
            let interior = match kind {
                NodeKind::Border(border) => return (!version.is_deleted()).then_some((border, version)),
                NodeKind::Interior(interior) => interior,
            };
            if let Some(child) = interior.child_for_or_first(slice) {
                child.prefetch();
                let below = child.enter();
                if !interior.version().has_changed(version) {
                    (version, kind) = below;
                    continue;
                }
            }
            let now = interior.version().stable();
            if now.is_deleted() {
                return None;
            }
            if now.has_shrunk_since(version) {
                continue 'root;
            }
            version = now;
        }
    }
}

/// Climbs from a node on the left edge of a layer to its root; none if the layer is gone.
#[inline]
pub(crate) fn true_root(mut node: NodeRef<'_>) -> Option<(NodeVersion, NodeKind<'_>)> {
    loop {
        let (version, kind) = node.enter();
        if version.is_deleted() {
            return None;
        }
        if version.is_root() {
            return Some((version, kind));
        }
        node = node.parent()?.node();
    }
}

/// From a node that was responsible for `slice` at version `since` to the one that is now; none if it is deleted.
#[cold]
pub(crate) fn advance(mut border: &Border, since: NodeVersion, slice: u64) -> Option<Responsible<'_>> {
    let mut version = border.version().stable();
    if version.has_shrunk_since(since) {
        while let Some(next) = border.next.load()
            && next.low() <= slice
            && !version.is_deleted()
        {
            border = next;
            version = border.version().stable();
        }
    }
    (!version.is_deleted()).then_some((border, version))
}

/// Makes a slot refer to the root of its layer. The set of keys is the same: the version does not change.
#[cold]
fn refer_to_root(border: &Border, version: NodeVersion, key: KeyTail<'_>, layer: NodeRef<'_>) {
    let locked = Locked::lock(border);
    if locked.held() == version
        && let Some(slot) = locked.find(key).slot
        && let Some((_, kind)) = true_root(layer)
    {
        let root = match kind {
            NodeKind::Border(border) => border.node(),
            NodeKind::Interior(interior) => interior.node(),
        };
        locked.set_value(slot, root.to_word());
    }
    locked.unlock_unchanged();
}
