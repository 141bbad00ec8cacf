//! A node by its type, and what depends on it: the way to its parent, and the cache lines that it takes.

use ensilo_sync::{LINE_BYTES, prefetch};

use crate::border::Border;
use crate::interior::Interior;
use crate::node::{Link, NodeRef};
use crate::version::NodeVersion;

/// A node, as what it is.
#[derive(Debug, Copy, Clone)]
pub(crate) enum NodeKind<'g> {
    Border(&'g Border),
    Interior(&'g Interior),
}

impl<'g> NodeRef<'g> {
    /// Returns the node's stable version, and the node by its kind.
    #[inline]
    pub(crate) fn enter(self) -> (NodeVersion, NodeKind<'g>) {
        let version = self.version().stable();
        // SAFETY: the version is this node's.
        (version, unsafe { self.of_kind(version.is_border()) })
    }

    /// Returns the node by its kind, also while somebody changes it.
    #[inline]
    pub(crate) fn kind(self) -> NodeKind<'g> {
        // SAFETY: the version is this node's.
        unsafe { self.of_kind(self.version().is_of_a_border()) }
    }

    /// # Safety
    /// `is_border` is the border bit of this node.
    #[inline]
    unsafe fn of_kind(self, is_border: bool) -> NodeKind<'g> {
        // SAFETY: N2: the border bit says what lies behind the header; the node is not freed during 'g, and what
        // others write to are atomics.
        unsafe {
            if is_border {
                NodeKind::Border(self.pointer().cast::<Border>().as_ref())
            } else {
                NodeKind::Interior(self.pointer().cast::<Interior>().as_ref())
            }
        }
    }

    /// Starts to load all cache lines that a search may touch.
    #[inline]
    pub(crate) fn prefetch(self) {
        prefetch_lines(self.as_ptr().cast());
    }

    /// Returns the link to the interior node above it.
    #[inline]
    fn parent_link(self) -> &'g Link<Interior> {
        match self.kind() {
            NodeKind::Border(border) => &border.parent,
            NodeKind::Interior(interior) => &interior.parent,
        }
    }

    /// Returns the interior node above it, unless it is (or just was) a root.
    #[inline]
    pub(crate) fn parent(self) -> Option<&'g Interior> {
        self.parent_link().load()
    }

    /// The caller holds the lock of the parent that the node had, or of the node if it was a root.
    pub(crate) fn set_parent(self, parent: &Interior) {
        self.parent_link().store(Some(parent));
    }

    /// Returns whether this is its parent; for the holder of the lock of that one.
    pub(crate) fn has_parent(self, parent: &Interior) -> bool {
        self.parent_link().is(Some(parent))
    }
}

/// Starts to load the lines of a node at `node`.
#[inline]
pub(crate) fn prefetch_lines(node: *const u8) {
    for line in 0..size_of::<Border>().div_ceil(LINE_BYTES).min(5) {
        prefetch(node.wrapping_add(line * LINE_BYTES));
    }
}
