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
///
/// # Panics
/// All methods that take a guard, but for [`Masstree::is_current`], panic when it is not one of the epochs that the index was made in.
#[derive(Debug)]
pub struct Masstree {
    root: Child,
    pub(crate) account: AccountId,
    /// The epochs by which nodes are freed, and in the pool of which they lie:
    /// [`Epochs::id`](ensilo_epoch::Epochs::id). A guard of these keeps both alive.
    pub(crate) epochs: u64,
}

impl Masstree {
    /// Creates an empty index. Its memory is counted on `account`.
    ///
    /// # Errors
    /// [`OutOfMemory`] when there is no memory for its first node.
    pub fn new(guard: &Guard<'_>, account: AccountId) -> Result<Masstree, OutOfMemory> {
        let root = Border::empty_root().allocate(guard, account)?;
        Ok(Masstree { root: Child::new(Some(root.node())), account, epochs: guard.epochs().id() })
    }

    /// Returns the root of the top layer, or what was the root until just now.
    #[inline]
    pub(crate) fn root<'g>(&'g self, guard: &'g Guard<'_>) -> NodeRef<'g> {
        check_guard(self.epochs, guard);
        // N1 for the root: the first border node lives as long as the tree, and so does what is above it.
        self.root.load().unwrap_or_else(|| panic!("a tree has a root"))
    }

    /// Returns the root of the top layer of a tree that nobody uses any more.
    pub(crate) fn into_root(self) -> NonNull<Header> {
        self.root.load().unwrap_or_else(|| panic!("a tree has a root")).pointer()
    }

    /// The caller holds the lock of the old root.
    pub(crate) fn set_root(&self, root: NodeRef<'_>) {
        self.root.store(Some(root));
    }
}

/// Every way into a tree begins here: a guard of other epochs would hold back nothing of it.
#[inline(always)]
pub(crate) fn check_guard(epochs: u64, guard: &Guard<'_>) {
    if guard.epochs().id() != epochs {
        refuse_guard();
    }
}

#[cold]
#[inline(never)]
fn refuse_guard() -> ! {
    panic!("a guard of other epochs than the tree's");
}
