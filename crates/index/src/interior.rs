//! Interior nodes: they lead from a slice to the border node whose range it lies in.
//!
//! # Layout
//! ```text
//! line 0, 1   version, key count, 14 keys
//! line 2, 3   15 children, parent
//! ```
//! 14 keys, not 15: so a node is four cache lines, and a search reads three of them.
//!
//! # Invariants
//! - **I1** `keys[i]` is the lower bound of the range of `children[i + 1]`; keys rise strictly.
//! - **I2** There is at least one child; with no key there is just this one. Child links behind the last are empty.
//! - **I3** A node that is not locked and not a root is a child of its parent, and the parent of a child is the node that
//!   has it: both are changed under the parent's lock.

use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::INTERIOR_WIDTH;
use crate::node::{Child, Link, Node, NodeRef};
use crate::version::{NodeVersion, Version};

/// An interior node.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Interior {
    version: Version,
    key_count: AtomicU64,
    keys: [AtomicU64; INTERIOR_WIDTH],
    children: [Child; INTERIOR_WIDTH + 1],
    pub(crate) parent: Link<Interior>,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Interior>() == 256);

// SAFETY: repr(C), and the version comes first.
unsafe impl Node for Interior {
    fn parent_link(&self) -> &Link<Interior> {
        &self.parent
    }

    fn version(&self) -> &Version {
        &self.version
    }
}

impl Interior {
    /// A locked node without children, which breaks I2 until the first is set.
    pub(crate) fn empty_locked(version: NodeVersion) -> Self {
        Interior {
            version: Version::new_locked(version),
            key_count: AtomicU64::new(0),
            keys: std::array::from_fn(|_| AtomicU64::new(0)),
            children: std::array::from_fn(|_| Child::new(None)),
            parent: Link::new(None),
        }
    }

    /// The number of keys, one less than the number of children.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        (self.key_count.load(Ordering::Relaxed) as usize).min(INTERIOR_WIDTH)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == INTERIOR_WIDTH
    }

    pub(crate) fn key(&self, place: usize) -> u64 {
        self.keys[place].load(Ordering::Relaxed)
    }

    pub(crate) fn child(&self, place: usize) -> Option<NodeRef<'_>> {
        self.children[place].load()
    }

    /// The child whose range `slice` lies in; none if a writer was seen at work.
    #[inline]
    pub(crate) fn child_for(&self, slice: u64) -> Option<NodeRef<'_>> {
        let len = self.len();
        let mut place = 0;
        while place < len && self.keys[place].load(Ordering::Relaxed) <= slice {
            place += 1;
        }
        self.children[place].load()
    }

    /// Where `child` is. The caller holds the lock, and the child is one of ours.
    pub(crate) fn place_of(&self, child: NodeRef<'_>) -> usize {
        let place = (0..=self.len()).find(|&place| self.children[place].load() == Some(child));
        place.unwrap_or_else(|| panic!("I3: a node's parent has it as a child"))
    }

    pub(crate) fn set_first_child<'g>(&'g self, child: NodeRef<'g>) {
        self.children[0].store(Some(child));
        child.set_parent(Some(self));
    }

    pub(crate) fn set_key(&self, place: usize, key: u64) {
        self.keys[place].store(key, Ordering::Relaxed);
    }

    /// Puts `child`, whose range begins at `key`, behind the child at `place`. The caller holds the lock and there is room.
    pub(crate) fn insert_behind(&self, place: usize, key: u64, child: NodeRef<'_>) {
        let len = self.len();
        for later in (place..len).rev() {
            self.set_key(later + 1, self.key(later));
            self.children[later + 2].store(self.children[later + 1].load());
        }
        self.set_key(place, key);
        self.children[place + 1].store(Some(child));
        self.set_len(len + 1);
        child.set_parent(Some(self));
    }

    /// Takes out the child at `place`, and with it the lower bound of its range, or if it is the first, that of the
    /// second, which is returned. The caller holds the lock; there are at least two children.
    pub(crate) fn take_out(&self, place: usize) -> u64 {
        let len = self.len();
        let key_place = place.saturating_sub(1);
        let key = self.key(key_place);
        for later in key_place + 1..len {
            self.set_key(later - 1, self.key(later));
        }
        for later in place + 1..=len {
            self.children[later - 1].store(self.children[later].load());
        }
        self.children[len].store(None);
        self.set_len(len - 1);
        key
    }

    /// Moves the keys behind `middle` and their children to the empty node `right`; returns the key at `middle`, which is
    /// then the lower bound of `right`. The caller holds the lock.
    pub(crate) fn move_upper_half<'g>(&'g self, middle: usize, right: &'g Interior) -> u64 {
        let len = self.len();
        for place in middle + 1..len {
            right.set_key(place - middle - 1, self.key(place));
        }
        for place in middle + 1..=len {
            let child = self.children[place].load();
            right.children[place - middle - 1].store(child);
            self.children[place].store(None);
            if let Some(child) = child {
                child.set_parent(Some(right));
            }
        }
        right.set_len(len - middle - 1);
        self.set_len(middle);
        self.key(middle)
    }

    fn set_len(&self, len: usize) {
        self.key_count.store(len as u64, Ordering::Relaxed);
    }
}
