//! The version word of a node: its latch, its kind, and a counter of its changes.
//!
//! # Layout
//! ```text
//! bit   0  locked     a writer holds the node
//! bit   1  changing   the holder rewrites what readers use: they wait
//! bit   2  deleted    the node has left the tree for good
//! bit   3  root       the node is the root of its layer
//! bit   4  border     the node is a border node (never changes)
//! bits  6 to 13       low byte of the change counter: inserts
//! bits 14 to 63       the rest of the change counter: shrinks
//! ```
//! The change counter is one number of 58 bits that only grows. What changes the keys of a node but not its range adds
//! 1 ("insert"), what takes range away from it adds 256 ("shrink": a split, a deletion). Readers that compare two
//! values taken microseconds apart ask for the upper 50 bits to learn whether the range shrank; the carry of every
//! 256th insert looks like a shrink to them, which costs a second look and nothing else. A counter that only grows and
//! has 58 bits cannot come back to a value that a long transaction remembers; two counters side by side, each
//! wrapping on its own, could.
//!
//! # Invariants
//! - **V1** Only the holder of the lock stores to the word, and an unlocked word is not `changing`.
//! - **V2** Each change to the set of keys reachable through a border node stores a larger counter before the lock is
//!   released. A deleted node's word never changes again.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[unlock]` | unlock, Release | stable, lock, Acquire | all that the holder wrote |
//! | `[changing]` | mark_changing: store, Release fence, rewrites | reads, Acquire fence, has_changed | a reader that saw any of the rewrites sees the mark or a later word |
//!
//! The lock bit itself is not part of a [`NodeVersion`]: a node that is locked with its old counter has not changed yet
//! as far as a reader can have seen, or the reader finds the change when it compares again.

use ensilo_sync::Backoff;
use ensilo_sync::atomic::{AtomicU64, Ordering, fence};

use crate::unlinked::check_is_allocated;

const LOCKED: u64 = 1 << 0;
const CHANGING: u64 = 1 << 1;
const DELETED: u64 = 1 << 2;
const ROOT: u64 = 1 << 3;
const BORDER: u64 = 1 << 4;
const INSERT: u64 = 1 << 6;
const SHRINK: u64 = 1 << 14;

/// The version of a node at a moment when no writer was changing it.
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub struct NodeVersion(u64);

impl NodeVersion {
    /// A new border node that is not a root.
    pub(crate) const BORDER: NodeVersion = NodeVersion(BORDER);
    /// A new border node that is a layer of its own.
    pub(crate) const BORDER_ROOT: NodeVersion = NodeVersion(BORDER | ROOT);
    /// A new interior node that is not a root.
    pub(crate) const INTERIOR: NodeVersion = NodeVersion(0);
    /// A new interior node that is the root of its layer.
    pub(crate) const INTERIOR_ROOT: NodeVersion = NodeVersion(ROOT);

    #[inline]
    pub(crate) fn is_deleted(self) -> bool {
        self.0 & DELETED != 0
    }

    #[inline]
    pub(crate) fn is_root(self) -> bool {
        self.0 & ROOT != 0
    }

    #[inline]
    pub(crate) fn is_border(self) -> bool {
        self.0 & BORDER != 0
    }

    /// Returns whether the node's range may have shrunk between `older` and this version.
    #[inline]
    pub(crate) fn has_shrunk_since(self, older: NodeVersion) -> bool {
        (self.0 ^ older.0) >= SHRINK
    }

    #[inline]
    pub(crate) fn after_insert(self) -> NodeVersion {
        NodeVersion(self.0 + INSERT)
    }

    #[inline]
    pub(crate) fn after_shrink(self) -> NodeVersion {
        NodeVersion(self.0 + SHRINK)
    }

    pub(crate) fn below_a_new_root(self) -> NodeVersion {
        NodeVersion(self.0 & !ROOT)
    }

    pub(crate) fn after_deletion(self) -> NodeVersion {
        NodeVersion((self.0 + SHRINK) | DELETED)
    }
}

/// The version word in a node.
#[derive(Debug)]
pub(crate) struct Version(AtomicU64);

impl Version {
    pub(crate) fn new(version: NodeVersion) -> Self {
        Version(AtomicU64::new(version.0))
    }

    /// Returns the version of a node that its maker holds locked.
    pub(crate) fn new_locked(version: NodeVersion) -> Self {
        Version(AtomicU64::new(version.0 | LOCKED))
    }

    /// Returns the version once no writer is changing the node.
    #[inline]
    pub(crate) fn stable(&self) -> NodeVersion {
        // Acquire: [unlock] what we read of the node next is at least as new as this version.
        let word = self.0.load(Ordering::Acquire);
        check_is_allocated(word);
        if word & CHANGING == 0 { NodeVersion(word & !LOCKED) } else { self.wait_until_stable() }
    }

    #[cold]
    fn wait_until_stable(&self) -> NodeVersion {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: [unlock] as in `stable`.
            let word = self.0.load(Ordering::Acquire);
            if word & CHANGING == 0 {
                return NodeVersion(word & !LOCKED);
            }
            backoff.wait();
        }
    }

    /// Returns whether what was read of the node since it had the version `since` may be mixed with later writes.
    #[inline]
    pub(crate) fn has_changed(&self, since: NodeVersion) -> bool {
        // Acquire fence: [changing] if any of the reads before it saw a rewrite, the load sees its mark.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) & !LOCKED != since.0
    }

    /// Returns whether the node still has the version `since`; for validation, where nothing was read of the node in
    /// between.
    #[inline]
    pub(crate) fn is_still(&self, since: NodeVersion) -> bool {
        // Acquire: [unlock] a validation that follows on this one sees what this one saw.
        self.0.load(Ordering::Acquire) & !LOCKED == since.0
    }

    /// Returns whether the node has the version `since` when nobody holds its lock.
    pub(crate) fn rests_at(&self, since: NodeVersion) -> bool {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: [unlock] as in `is_still`.
            let word = self.0.load(Ordering::Acquire);
            if word != since.0 | LOCKED {
                return word == since.0;
            }
            backoff.wait();
        }
    }

    /// Returns whether the node has left the tree, which never changes again.
    pub(crate) fn is_of_a_deleted_node(&self) -> bool {
        self.0.load(Ordering::Relaxed) & DELETED != 0
    }

    /// Returns a guess at whether the node is a root: what is true now may not be true later.
    #[inline]
    pub(crate) fn looks_like_a_root(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ROOT != 0
    }

    /// Returns whether nobody holds the lock.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (LOCKED | CHANGING) == 0
    }

    /// Returns whether the node is a border node; that never changes.
    #[inline]
    pub(crate) fn is_of_a_border(&self) -> bool {
        self.0.load(Ordering::Relaxed) & BORDER != 0
    }

    /// Takes the lock; returns the version that the node has.
    #[inline]
    pub(crate) fn lock(&self) -> NodeVersion {
        let word = self.0.load(Ordering::Relaxed);
        check_is_allocated(word);
        // Acquire: [unlock] we see all that earlier holders wrote.
        if word & LOCKED == 0
            && self.0.compare_exchange(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            Self::locked(word)
        } else {
            self.wait_for_lock()
        }
    }

    #[cold]
    fn wait_for_lock(&self) -> NodeVersion {
        let mut backoff = Backoff::new();
        loop {
            let word = self.0.load(Ordering::Relaxed);
            // Acquire: [unlock] as in `lock`.
            if word & LOCKED == 0
                && self
                    .0
                    .compare_exchange_weak(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Self::locked(word);
            }
            backoff.wait();
        }
    }

    #[inline]
    fn locked(word: u64) -> NodeVersion {
        debug_assert_eq!(word & CHANGING, 0, "V1");
        // Release fence: with slots that are free a writer begins without a mark. A reader that sees such a write in a slot
        // which an older permutation still lists also sees the version with which the slot was given free.
        fence(Ordering::Release);
        NodeVersion(word)
    }

    /// Makes readers wait. The caller holds the lock, taken at `held`.
    #[inline]
    pub(crate) fn mark_changing(&self, held: NodeVersion) {
        debug_assert_eq!(self.0.load(Ordering::Relaxed) & !CHANGING, held.0 | LOCKED, "V1");
        self.0.store(held.0 | LOCKED | CHANGING, Ordering::Relaxed);
        // Release fence: [changing] no rewrite is seen before the mark.
        fence(Ordering::Release);
    }

    /// Gives the lock back with the version `after`.
    #[inline]
    pub(crate) fn unlock(&self, after: NodeVersion) {
        debug_assert_ne!(self.0.load(Ordering::Relaxed) & LOCKED, 0, "V1");
        // Release: [unlock].
        self.0.store(after.0, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn inserts_and_shrinks_count_upwards_in_one_number() {
        let mut version = NodeVersion::BORDER_ROOT;
        for _ in 0..1000 {
            let next = version.after_insert();
            assert!(next.0 > version.0);
            version = next;
        }
        assert!(version.after_shrink().0 > version.0);
        assert!(version.after_shrink().has_shrunk_since(version));
        assert!(version.is_border() && version.is_root() && !version.is_deleted());
    }

    #[test]
    fn an_insert_is_no_shrink_until_the_low_byte_carries() {
        let mut version = NodeVersion::BORDER;
        for _ in 0..255 {
            let next = version.after_insert();
            assert!(!next.has_shrunk_since(version));
            version = next;
        }
        assert!(version.after_insert().has_shrunk_since(version));
    }

    #[test]
    fn a_locked_node_has_not_changed_and_a_changing_one_has() {
        let word = Version::new(NodeVersion::BORDER);
        let held = word.lock();
        assert_eq!(held, NodeVersion::BORDER);
        assert!(!word.has_changed(held) && word.is_still(held));
        word.mark_changing(held);
        assert!(word.has_changed(held) && !word.is_still(held));
        word.unlock(held.after_deletion());
        assert!(word.stable().is_deleted());
    }
}
