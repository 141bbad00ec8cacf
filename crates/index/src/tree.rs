//! The tree itself: where its top layer begins.

use std::ptr::NonNull;

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};

use crate::border::Border;
use crate::node::{Child, Header, Node, NodeRef};

/// An ordered index from byte strings of up to [`KEY_LEN_MAX`](crate::KEY_LEN_MAX) bytes to words other than 0.
///
/// It may be used by any number of threads at once. The values are the caller's: the index neither follows nor frees
/// what they may point to.
#[derive(Debug)]
pub struct Masstree {
    root: Child,
    pub(crate) account: AccountId,
}

impl Masstree {
    /// An empty index, whose memory is counted on `account`.
    ///
    /// # Errors
    /// [`OutOfMemory`] when there is no memory for its first node.
    pub fn new(guard: &Guard<'_>, account: AccountId) -> Result<Masstree, OutOfMemory> {
        let root = Border::empty_root().allocate(guard, account)?;
        Ok(Masstree { root: Child::new(Some(root.node())), account })
    }

    /// The root of the top layer, or what was the root until just now.
    #[inline]
    pub(crate) fn root<'g>(&'g self, _guard: &'g Guard<'_>) -> NodeRef<'g> {
        // N1 for the root: the first border node lives as long as the tree, and so does what is above it.
        self.root.load().unwrap_or_else(|| panic!("a tree has a root"))
    }

    /// The root of the top layer of a tree that nobody uses any more.
    pub(crate) fn into_root(self) -> NonNull<Header> {
        self.root.load().unwrap_or_else(|| panic!("a tree has a root")).pointer()
    }

    /// The caller holds the lock of the old root.
    pub(crate) fn set_root(&self, root: NodeRef<'_>) {
        self.root.store(Some(root));
    }
}
