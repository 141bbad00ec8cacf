//! What a transaction remembers of the border nodes it relied on.

use std::ptr::NonNull;

use ensilo_epoch::Guard;
use ensilo_sync::atomic::{Ordering, fence};
use ensilo_sync::region::{self, Region};

use crate::Masstree;
use crate::border::Border;
use crate::node::Node;
use crate::version::NodeVersion;

/// A border node, to be compared and hashed. It means this node only as long as the guard lives under which it was reported.
#[derive(Debug, Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(NonNull<Border>);

// SAFETY: an id is an address; only `Masstree::is_current` follows it, whose caller answers for that.
unsafe impl Send for NodeId {}
// SAFETY: as for `Send`.
unsafe impl Sync for NodeId {}

impl NodeId {
    pub(crate) fn new(border: &Border) -> Self {
        NodeId(NonNull::from(border))
    }

    /// Its address, as a number.
    #[must_use]
    pub fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Returns whether nobody holds the node locked. It is one of a tree that nothing has left yet.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn is_at_rest(self) -> bool {
        // SAFETY: a node of a tree is allocated until it leaves it.
        unsafe { self.0.as_ref() }.version().is_at_rest()
    }
}

/// A border node at one version: as long as it is current, the same keys are reachable through the node's range.
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct NodeStamp {
    /// The node.
    pub node: NodeId,
    /// Its version.
    pub version: NodeVersion,
}

impl NodeStamp {
    pub(crate) fn new(border: &Border, version: NodeVersion) -> Self {
        NodeStamp { node: NodeId::new(border), version }
    }
}

impl Masstree {
    /// Returns the largest number that was given to a removal from the node's range, 0 if there was none: at least that of every key that
    /// was removed before the node was found to miss it.
    ///
    /// # Safety
    /// The node was reported under `guard`, or under another guard of the same participant while this pin lasted.
    #[must_use]
    #[inline]
    pub unsafe fn latest_removal(node: NodeId, guard: &Guard<'_>) -> u64 {
        let _ = guard;
        // SAFETY: the node was reachable when it was reported, under a pin that has not ended: it is not freed.
        unsafe { node.0.as_ref() }.latest_removal()
    }

    /// Returns the same for the node that is responsible for `key`: at least the number of every removal of this key that is over.
    #[must_use]
    pub fn latest_removal_near(&self, key: &[u8], guard: &Guard<'_>) -> u64 {
        let _index = region::enter(Region::Index);
        self.descend_to_read(key, guard).border.latest_removal()
    }

    /// Notes `number` as one of a removal from the node's range, for somebody who has found keys missing there, and returns whether the
    /// node still has that version: then whatever comes into the range from now on finds a [latest
    /// removal](Masstree::latest_removal_near) of at least this number, also when the node was split since.
    ///
    /// # Safety
    /// As for [`Masstree::is_current`].
    #[must_use]
    pub unsafe fn note_absence(stamp: NodeStamp, number: u64, guard: &Guard<'_>) -> bool {
        let _ = guard;
        // SAFETY: as in `is_current`.
        let border = unsafe { stamp.node.0.as_ref() };
        border.note_removal(number);
        // [absence] Partner of the fence in `Border::number_to_inherit`.
        fence(Ordering::SeqCst);
        border.version().rests_at(stamp.version)
    }

    /// Returns whether the node still has that version: no key has come or gone in what was read of it. A deleted
    /// node has changed.
    ///
    /// Whether the node is locked makes no difference. A writer that holds the lock but has not stored the new version has not
    /// returned to its caller either: the keys it brings belong to a transaction that has yet to commit, hence later
    /// than one that validates now. (Before it commits, it reads what the validating transaction has locked or written.)
    ///
    /// # Safety
    /// The stamp was reported under `guard`, or under another guard of the same participant while this pin lasted.
    #[must_use]
    #[inline]
    pub unsafe fn is_current(stamp: NodeStamp, guard: &Guard<'_>) -> bool {
        let _ = guard;
        // SAFETY: the node was reachable when the stamp was taken, under a pin that has not ended: it is not freed.
        let border = unsafe { stamp.node.0.as_ref() };
        border.version().is_still(stamp.version)
    }

    /// Like [`Masstree::is_current`], at a moment at which nobody holds the node: a writer that has locked it is waited for. It holds the
    /// lock for a moment only.
    ///
    /// # Safety
    /// As for [`Masstree::is_current`].
    #[must_use]
    pub unsafe fn is_current_at_rest(stamp: NodeStamp, guard: &Guard<'_>) -> bool {
        let _ = guard;
        // SAFETY: as in `is_current`.
        let border = unsafe { stamp.node.0.as_ref() };
        border.version().rests_at(stamp.version)
    }
}
