//! The lock of a node, as a value.
//!
//! # Order of locks
//! A thread that holds locks and waits for another takes them in this order, so that there is no deadlock:
//! 1. a layer before the layers below it;
//! 2. within a layer border nodes before interior nodes;
//! 3. border nodes from right to left;
//! 4. interior nodes from the bottom to the top.

use std::ops::Deref;

use crate::interior::Interior;
use crate::node::Node;
use crate::version::NodeVersion;

/// A node that this thread has locked. It must be unlocked by one of the methods that consume it.
#[derive(Debug)]
#[must_use = "a lock that is forgotten is never released"]
pub(crate) struct Locked<'g, N: Node> {
    node: &'g N,
    held: NodeVersion,
}

impl<'g, N: Node> Locked<'g, N> {
    #[inline]
    pub(crate) fn lock(node: &'g N) -> Self {
        Locked { node, held: node.version().lock() }
    }

    /// For a node that was made locked, with this version.
    pub(crate) fn made(node: &'g N, version: NodeVersion) -> Self {
        Locked { node, held: version }
    }

    /// Returns the node itself, for as long as the guard lives.
    #[inline]
    pub(crate) fn node_ref(&self) -> &'g N {
        self.node
    }

    /// Returns the version that the node had when it was locked.
    #[inline]
    pub(crate) fn held(&self) -> NodeVersion {
        self.held
    }

    /// Makes readers wait.
    pub(crate) fn mark_changing(&self) {
        self.node.version().mark_changing(self.held);
    }

    /// Unlocks a node that has the keys and the range that it had.
    #[inline]
    pub(crate) fn unlock_unchanged(self) {
        let after = self.held;
        self.unlock_as(after);
    }

    /// Unlocks a node that has other keys and the same range; returns the new version.
    #[inline]
    pub(crate) fn unlock_after_insert(self) -> NodeVersion {
        let after = self.held.after_insert();
        self.unlock_as(after)
    }

    /// Unlocks a node that has a smaller range; returns the new version.
    pub(crate) fn unlock_after_shrink(self) -> NodeVersion {
        let after = self.held.after_shrink();
        self.unlock_as(after)
    }

    /// Unlocks a node that was a root, was split, and has a new root above it; returns the new version.
    pub(crate) fn unlock_below_a_new_root(self) -> NodeVersion {
        let after = self.held.after_shrink().below_a_new_root();
        self.unlock_as(after)
    }

    /// Unlocks a node that has left the tree.
    pub(crate) fn unlock_deleted(self) {
        let after = self.held.after_deletion();
        self.unlock_as(after);
    }

    #[inline]
    fn unlock_as(self, after: NodeVersion) -> NodeVersion {
        self.node.version().unlock(after);
        after
    }

    /// Locks the parent; none if the node is a root.
    pub(crate) fn lock_parent(&self) -> Option<Locked<'g, Interior>> {
        loop {
            let parent = self.node.node().parent()?;
            let locked = Locked::lock(parent);
            // I3: it cannot change any more, now that we hold the lock of the one that it was.
            if self.node.node().has_parent(parent) {
                return Some(locked);
            }
            locked.unlock_unchanged();
        }
    }
}

impl<N: Node> Deref for Locked<'_, N> {
    type Target = N;

    #[inline]
    fn deref(&self) -> &N {
        self.node
    }
}
