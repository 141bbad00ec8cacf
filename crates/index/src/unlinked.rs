//! What has left a tree, and the only way to give its memory back.
//!
//! A reader that pins after memory was retired does not keep it alive: it must not find a way to it any more. A thread that retires
//! memory may lose its core for many epochs between any two steps, so the order of the steps decides alone: first the last link
//! is cut, then the memory is retired. An [`Unlinked`] is made where the last link was cut, and nothing else can be retired.

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, FREED_WORD, POISONS};

/// Checks, where freed memory is overwritten, that a word of a node was read while the node was allocated.
#[inline]
pub(crate) fn check_is_allocated(word: u64) {
    if POISONS {
        assert_ne!(word, FREED_WORD, "N1: a node is read that was freed");
    }
}

/// A node, or a bag of suffixes, that can be retired.
pub(crate) trait TreePart {
    /// Returns whether the part is marked as one that has left the tree: a check of the callers of [`Unlinked::new`].
    fn has_left(&self) -> bool;

    /// Frees the memory once no reader can hold it any more.
    ///
    /// # Safety
    /// The part was made with this account, no reader that pins from now on finds a way to it, and it is retired once.
    unsafe fn retire(self, guard: &Guard<'_>, account: AccountId);
}

/// A part of a tree to which no link leads any more.
#[derive(Debug)]
#[must_use = "its memory is lost unless it is retired"]
pub(crate) struct Unlinked<P: TreePart> {
    part: P,
    account: AccountId,
}

impl<P: TreePart> Unlinked<P> {
    /// # Safety
    /// The part was made with this account. The last link by which a reader that pins from now on could come to it was cut before this
    /// call. It is declared unlinked once.
    pub(crate) unsafe fn new(part: P, account: AccountId) -> Self {
        debug_assert!(part.has_left(), "N1: what is still in use is to be retired");
        Unlinked { part, account }
    }

    /// Frees the memory once no reader can hold it any more.
    pub(crate) fn retire(self, guard: &Guard<'_>) {
        // SAFETY: `new` promised all of it.
        unsafe { self.part.retire(guard, self.account) };
    }
}
