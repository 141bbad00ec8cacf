//! Interior nodes: they lead from a slice to the border node with the range that it lies in.
//!
//! # Layout
//! ```text
//! line 0, 1   version, bound count, 14 bounds
//! line 2, 3   15 children, parent
//! ```
//! 14 bounds, not 15: so a node is four cache lines, and a search reads three of them.
//!
//! # Invariants
//! - **I1** `bounds[i]` is the largest slice in the range of `children[i]`; bounds rise strictly. The last child has no bound.
//! - **I2** There is at least one child. Child links behind the last are empty.
//! - **I3** A node that is not locked and not a root is a child of its parent, and the parent of a child is the node that
//!   has it: both are changed under the parent's lock.
//! - **I4** Bounds behind the last are [`NO_BOUND`], less than no slice: the bounds in front of a slice are counted without
//!   asking how many there are.

use ensilo_epoch::Guard;
use ensilo_slab::AccountId;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::INTERIOR_WIDTH;
use crate::node::{Child, Link, Node, NodeRef};
use crate::search::count_less;
use crate::unlinked::TreePart;
use crate::version::{NodeVersion, Version};

/// What stands behind the last bound.
const NO_BOUND: u64 = u64::MAX;

/// An interior node.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Interior {
    version: Version,
    bound_count: AtomicU64,
    bounds: [AtomicU64; INTERIOR_WIDTH],
    children: [Child; INTERIOR_WIDTH + 1],
    pub(crate) parent: Link<Interior>,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Interior>() == 256);

// SAFETY: repr(C), and the version comes first.
unsafe impl Node for Interior {
    fn version(&self) -> &Version {
        &self.version
    }
}

impl TreePart for &Interior {
    fn has_left(&self) -> bool {
        self.version().is_of_a_deleted_node()
    }

    unsafe fn retire(self, guard: &Guard<'_>, account: AccountId) {
        // SAFETY: the caller's promise.
        unsafe { self.retire_node(guard, account) };
    }
}

impl Interior {
    /// Returns a locked node without children, which breaks I2 until the first is set.
    pub(crate) fn empty_locked(version: NodeVersion) -> Self {
        Interior {
            version: Version::new_locked(version),
            bound_count: AtomicU64::new(0),
            bounds: std::array::from_fn(|_| AtomicU64::new(NO_BOUND)),
            children: std::array::from_fn(|_| Child::new(None)),
            parent: Link::new(None),
        }
    }

    /// Returns the number of bounds, one less than the number of children.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        (self.bound_count.load(Ordering::Relaxed) as usize).min(INTERIOR_WIDTH)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == INTERIOR_WIDTH
    }

    /// Returns where the range of the child behind `place` begins.
    pub(crate) fn low(&self, place: usize) -> u64 {
        self.bounds[place].load(Ordering::Relaxed).wrapping_add(1)
    }

    /// Lets the range of the child behind `place` begin at `low`, which is not 0. The caller holds the lock.
    pub(crate) fn set_low(&self, place: usize, low: u64) {
        self.bounds[place].store(low - 1, Ordering::Relaxed);
    }

    /// Returns whether there is no bound at `place`.
    pub(crate) fn is_unbounded(&self, place: usize) -> bool {
        self.bounds[place].load(Ordering::Relaxed) == NO_BOUND
    }

    fn clear_bound(&self, place: usize) {
        self.bounds[place].store(NO_BOUND, Ordering::Relaxed);
    }

    pub(crate) fn child(&self, place: usize) -> Option<NodeRef<'_>> {
        self.children[place].load()
    }

    /// Returns the child with the range that `slice` lies in; none if a writer was seen at work.
    #[inline]
    pub(crate) fn child_for(&self, slice: u64) -> Option<NodeRef<'_>> {
        self.children[count_less(&self.bounds, slice)].load()
    }

    /// Returns the same, for a descent on its own: a branch decides whether it is the first child.
    ///
    /// The place of another child is computed, and what is loaded next waits for that at every level. Where keys leave in
    /// their order, the processor foresees that it is the first child, and goes on below at once.
    #[inline]
    pub(crate) fn child_for_or_first(&self, slice: u64) -> Option<NodeRef<'_>> {
        if slice <= self.bounds[0].load(Ordering::Relaxed) { self.child(0) } else { self.child_for(slice) }
    }

    /// Returns the child so many places behind the one for `slice`, or in front of it, if there is one; only
    /// for a hint, since a writer may be at work.
    #[inline]
    pub(crate) fn sibling(&self, slice: u64, distance: isize) -> Option<NodeRef<'_>> {
        let place = count_less(&self.bounds, slice).checked_add_signed(distance)?;
        self.children.get(place)?.load()
    }

    /// Returns where `child` is. The caller holds the lock, and the child is one of ours.
    pub(crate) fn place_of(&self, child: NodeRef<'_>) -> usize {
        let place = (0..=self.len()).find(|&place| self.children[place].load() == Some(child));
        place.unwrap_or_else(|| panic!("I3: a node's parent has it as a child"))
    }

    /// Gives an empty node its first child. The caller sets the child's parent.
    pub(crate) fn set_first_child(&self, child: NodeRef<'_>) {
        self.children[0].store(Some(child));
    }

    /// Puts `child`, with a range that begins at `low`, behind the child at `place`. The caller holds the lock, and sets the
    /// child's parent; there is room.
    pub(crate) fn insert_behind(&self, place: usize, low: u64, child: NodeRef<'_>) {
        let len = self.len();
        for later in (place..len).rev() {
            self.set_low(later + 1, self.low(later));
            self.children[later + 2].store(self.children[later + 1].load());
        }
        self.set_low(place, low);
        self.children[place + 1].store(Some(child));
        self.set_len(len + 1);
    }

    /// Takes out the child at `place`. Its range goes to the child before it; if it is the first one, the second takes its
    /// place, and the range of this node begins where that one's does. The caller holds the lock; there are two children.
    pub(crate) fn take_out(&self, place: usize) {
        let len = self.len();
        for later in place.saturating_sub(1) + 1..len {
            self.set_low(later - 1, self.low(later));
        }
        for later in place + 1..=len {
            self.children[later - 1].store(self.children[later].load());
        }
        self.clear_bound(len - 1);
        self.children[len].store(None);
        self.set_len(len - 1);
    }

    /// Moves the children behind `middle` to the empty node `right`; returns where their range begins. The caller holds the
    /// lock, and sets their parent.
    pub(crate) fn move_upper_half(&self, middle: usize, right: &Interior) -> u64 {
        let len = self.len();
        let low = self.low(middle);
        for place in middle + 1..len {
            right.set_low(place - middle - 1, self.low(place));
        }
        for place in middle + 1..=len {
            right.children[place - middle - 1].store(self.children[place].load());
            self.children[place].store(None);
            self.clear_bound(place - 1);
        }
        right.set_len(len - middle - 1);
        self.set_len(middle);
        low
    }

    fn set_len(&self, len: usize) {
        self.bound_count.store(len as u64, Ordering::Relaxed);
    }
}
