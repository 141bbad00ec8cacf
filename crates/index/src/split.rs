//! An insert into a full border node: the node is split, and its ancestors as far as they are full.
//!
//! All that can fail comes first: the new nodes are made and the locks taken, from the border node upwards to the first
//! ancestor that has room. Then the nodes are rewritten with all these locks held, and released together. The paper
//! releases them hand over hand; but a full ancestor is rare, and so a split is one step: nobody meets a node that
//! its parent does not know yet.
//!
//! # Where a node is split
//! In the middle, except where the inserts come in order: see [`middle_of`]. Ascending inserts leave full nodes behind.

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};

use crate::border::Border;
use crate::insert::{InsertObserver, Insertion, reserve_for, write_new_slot};
use crate::interior::Interior;
use crate::key::has_bytes;
use crate::locked::Locked;
use crate::node::{Node, NodeRef};
use crate::planted::{Fault, is_planted};
use crate::stamp::{NodeId, NodeStamp};
use crate::suffix::words_for;
use crate::version::NodeVersion;
use crate::{HEIGHT_MAX, INTERIOR_WIDTH};

/// How the slots of a full node and a new key are shared out. Places count the slots and the new key, in key order.
#[derive(Debug, Copy, Clone)]
struct Division {
    /// The place of the new key.
    new: usize,
    /// The first place that goes to the right node.
    middle: usize,
    /// Whether the keys come in ascending order, so that the left node stays as it is.
    ascending: bool,
}

impl Division {
    fn new_goes_left(self) -> bool {
        self.new < self.middle
    }

    /// Returns the first position of the old permutation that goes to the right node.
    fn first_moved(self) -> usize {
        self.middle - usize::from(self.new_goes_left())
    }
}

impl<'a, O: InsertObserver> Insertion<'a, O> {
    /// Inserts the key at `position` of the full node.
    #[cold]
    pub(crate) fn split(self, position: usize) -> Result<(), OutOfMemory> {
        let division = self.divide(position);
        match self.make_room(division) {
            Ok((right, ancestors)) => {
                self.split_at(division, right, ancestors);
                Ok(())
            }
            Err(error) => {
                self.border.unlock_unchanged();
                Err(error)
            }
        }
    }

    /// Makes the right node, with its share of the slots, and locks the ancestors.
    fn make_room(&self, division: Division) -> Result<(Locked<'a, Border>, Ancestors<'a>), OutOfMemory> {
        let right = self.make_right(division)?;
        let room = if division.new_goes_left() {
            reserve_for(&self.border, self.key, self.guard, self.tree)
        } else {
            Ok(())
        };
        let ancestors = room.and_then(|()| Ancestors::lock(&self.border, self.guard, self.tree.account));
        match ancestors {
            Ok(ancestors) => Ok((Locked::made(right, NodeVersion::BORDER), ancestors)),
            Err(error) => {
                // SAFETY: `make_right` made it with the tree's account, and nobody else knows it.
                unsafe { right.free_with_suffixes(self.guard, self.tree.account) };
                Err(error)
            }
        }
    }

    fn divide(&self, position: usize) -> Division {
        let border = &*self.border;
        let ascending = border.next.load().is_none() && position == border.permuter().len()
            || border.run().is_ascending_at(position, border.permuter());
        let wish = middle_of(border, position, ascending);
        let slices = |place: usize| self.slice_at(position, place);
        let middle = nearest_boundary(wish, border.permuter().len(), slices);
        Division { new: position, middle, ascending: ascending && middle == wish }
    }

    /// Returns the slice at a place, with the new key counted in.
    fn slice_at(&self, new: usize, place: usize) -> u64 {
        if place == new {
            return self.key.slice();
        }
        let permuter = self.border.permuter();
        self.border.slice(permuter.slot(place - usize::from(place > new)))
    }

    /// Returns a locked node with the slots from the middle on, and the new key if it belongs there.
    fn make_right(&self, division: Division) -> Result<&'a Border, OutOfMemory> {
        let (guard, account) = (self.guard, self.tree.account);
        let low = self.slice_at(division.new, division.middle);
        let right = Border::empty_locked(low).allocate(guard, account)?;
        right.note_removal(self.border.number_to_inherit());
        if let Err(error) = self.fill_right(right, division) {
            // SAFETY: it was made just now with this account, and nobody else knows it.
            unsafe { right.free_with_suffixes(guard, account) };
            return Err(error);
        }
        Ok(right)
    }

    fn fill_right(&self, right: &Border, division: Division) -> Result<(), OutOfMemory> {
        let left = &*self.border;
        let moved = || left.permuter().slots().skip(division.first_moved());
        let suffixes =
            moved().filter(|&slot| has_bytes(left.kind(slot))).filter_map(|slot| left.suffix(slot));
        let mut words: usize = suffixes.map(|suffix| words_for(suffix.len())).sum();
        if !division.new_goes_left() && self.key.goes_on() {
            words += words_for(self.key.suffix().len());
        }
        if words > 0 {
            right.reserve_suffix(8 * words, self.guard, self.tree.account)?;
        }
        for from in moved() {
            let permuter = right.permuter();
            right.copy_slot(permuter.free_slot(), left, from);
            right.set_permuter(permuter.insert(permuter.len()));
        }
        if !division.new_goes_left() {
            write_new_slot(right, division.new - division.middle, self.key, self.key.class(), self.value);
            if division.ascending {
                right.set_run(left.run().carried_to(right.permuter().slot(0)));
            }
        }
        Ok(())
    }

    /// Rewrites the nodes; nothing can fail any more.
    fn split_at(self, division: Division, right: Locked<'a, Border>, ancestors: Ancestors<'a>) {
        let left = self.border;
        let (from, before) = (NodeId::new(&left), left.held());
        if !is_planted(Fault::UnmarkedSplit) {
            left.mark_changing();
        }
        link_behind(&left, &right);
        left.truncate(division.first_moved());
        if division.new_goes_left() {
            write_new_slot(&left, division.new, self.key, self.key.class(), self.value);
        }
        left.trim_suffixes(self.guard, self.tree.account);
        let sibling = NewSibling { old: left.node(), new: right.node(), low: right.low() };
        let new_root = ancestors.insert(sibling, division.ascending);
        if let Some(root) = new_root
            && self.depth == 0
        {
            self.tree.set_root(root.node());
        }
        let new = NodeStamp::new(&right, right.held());
        let after = match new_root {
            Some(_) => left.unlock_below_a_new_root(),
            None => left.unlock_after_shrink(),
        };
        self.observer.changed(from, before, after);
        // Before anybody else can change it.
        self.observer.split(from, new);
        right.unlock_unchanged();
    }
}

/// Puts `right` behind `left` into the list of border nodes. B3: both links of `left` are ours, and so are those of `right`.
fn link_behind(left: &Border, right: &Border) {
    let next = left.next.load();
    right.next.store(next);
    right.previous.store(Some(left));
    if let Some(next) = next {
        next.previous.store(Some(right));
    }
    left.next.store(Some(right));
}

/// Returns the first place that should go to the right node.
fn middle_of(border: &Border, new: usize, ascending: bool) -> usize {
    let len = border.permuter().len();
    if ascending {
        // The left node ends with the last of the ascending keys: full if these are the node's last ones, and otherwise it
        // will be filled by the next of them.
        if new == len { len } else { new + 1 }
    } else if new == 0 && border.previous.load().is_none() {
        // Descending keys at the left end: the right node stays full.
        1
    } else {
        len.div_ceil(2)
    }
}

/// Returns the place next to `wish` at which the slice differs from the one before, among places up to and with `last`.
///
/// There is one: keys with the same slice differ in their class, of which there are fewer than slots.
fn nearest_boundary(wish: usize, last: usize, slice_at: impl Fn(usize) -> u64) -> usize {
    let is_boundary = |place: &usize| slice_at(*place) != slice_at(*place - 1);
    let right = (wish..=last).find(is_boundary);
    let left = (1..wish).rev().find(is_boundary);
    match (left, right) {
        (Some(left), Some(right)) => {
            if right - wish <= wish - left {
                right
            } else {
                left
            }
        }
        (left, right) => right.or(left).unwrap_or_else(|| panic!("B1: a full node has two different slices")),
    }
}

/// A locked ancestor; one that is full has a new node beside it.
#[derive(Debug)]
struct Level<'g> {
    node: Locked<'g, Interior>,
    sibling: Option<&'g Interior>,
}

/// The ancestors from the parent up to the first that has room, or to a new root.
#[derive(Debug)]
struct Ancestors<'g> {
    levels: [Option<Level<'g>>; HEIGHT_MAX],
    height: usize,
    new_root: Option<&'g Interior>,
}

/// A node that has been split: `new` takes its range from `low` on.
#[derive(Debug, Copy, Clone)]
struct NewSibling<'g> {
    old: NodeRef<'g>,
    new: NodeRef<'g>,
    low: u64,
}

impl<'g> Ancestors<'g> {
    /// Locks the ancestors of a node that is to be split, and makes the nodes that will stand beside the full ones.
    fn lock<N: Node>(
        node: &Locked<'g, N>,
        guard: &'g Guard<'_>,
        account: AccountId,
    ) -> Result<Self, OutOfMemory> {
        let mut ancestors = Ancestors { levels: [const { None }; HEIGHT_MAX], height: 0, new_root: None };
        match ancestors.lock_upwards(node, guard, account) {
            Ok(()) => Ok(ancestors),
            Err(error) => {
                ancestors.give_up(guard, account);
                Err(error)
            }
        }
    }

    fn lock_upwards<N: Node>(
        &mut self,
        node: &Locked<'g, N>,
        guard: &'g Guard<'_>,
        account: AccountId,
    ) -> Result<(), OutOfMemory> {
        let mut parent = node.lock_parent();
        while let Some(node) = parent {
            let is_full = node.is_full();
            let above = if is_full { node.lock_parent() } else { None };
            let level = self.levels[self.height].insert(Level { node, sibling: None });
            self.height += 1;
            if !is_full {
                return Ok(());
            }
            parent = above;
            let sibling = Interior::empty_locked(NodeVersion::INTERIOR).allocate(guard, account);
            match sibling {
                Ok(sibling) => level.sibling = Some(sibling),
                Err(error) => {
                    if let Some(parent) = parent {
                        parent.unlock_unchanged();
                    }
                    return Err(error);
                }
            }
        }
        let root = Interior::empty_locked(NodeVersion::INTERIOR_ROOT);
        self.new_root = Some(root.allocate(guard, account)?);
        Ok(())
    }

    /// Undoes `lock`.
    fn give_up(self, guard: &'g Guard<'_>, account: AccountId) {
        for level in self.levels.into_iter().flatten() {
            level.node.unlock_unchanged();
            if let Some(sibling) = level.sibling {
                // SAFETY: it was made by `lock` with this account, and nobody else knows it.
                unsafe { sibling.free(guard, account) };
            }
        }
    }

    /// Gives each level its new child, and unlocks all of them; returns the new root if there is one.
    ///
    /// With `ascending`, a full node that gets a new last child stays full.
    fn insert(self, child: NewSibling<'g>, ascending: bool) -> Option<&'g Interior> {
        let mut child = Some(child);
        for level in self.levels[..self.height].iter().flatten() {
            level.node.mark_changing();
            child = child.and_then(|child| level.insert(child, ascending));
        }
        if let (Some(root), Some(child)) = (self.new_root, child) {
            set_first_child(root, child.old);
            insert_behind(root, 0, child);
        }
        let new_root = self.new_root;
        self.unlock();
        new_root
    }

    /// Unlocks all nodes once all are changed, so that no thread finds a new node before its parent is set.
    fn unlock(self) {
        let has_new_root = self.new_root.is_some();
        let top = self.height.saturating_sub(1);
        for (height, level) in self.levels.into_iter().flatten().enumerate() {
            match level.sibling {
                None => level.node.unlock_after_insert(),
                Some(_) if has_new_root && height == top => level.node.unlock_below_a_new_root(),
                Some(_) => level.node.unlock_after_shrink(),
            };
            if let Some(sibling) = level.sibling {
                Locked::made(sibling, NodeVersion::INTERIOR).unlock_unchanged();
            }
        }
        if let Some(root) = self.new_root {
            Locked::made(root, NodeVersion::INTERIOR_ROOT).unlock_unchanged();
        }
    }
}

impl<'g> Level<'g> {
    /// Takes the new child in; if the node was full it is split, and its own new sibling is returned.
    fn insert(&self, child: NewSibling<'g>, ascending: bool) -> Option<NewSibling<'g>> {
        let node = self.node.node_ref();
        let place = node.place_of(child.old);
        let Some(sibling) = self.sibling else {
            insert_behind(node, place, child);
            return None;
        };
        let low = if ascending && place == node.len() {
            set_first_child(sibling, child.new);
            child.low
        } else {
            let middle = INTERIOR_WIDTH / 2;
            let low = node.move_upper_half(middle, sibling);
            for moved in (0..=sibling.len()).filter_map(|place| sibling.child(place)) {
                moved.set_parent(sibling);
            }
            if place <= middle {
                insert_behind(node, place, child);
            } else {
                insert_behind(sibling, place - middle - 1, child);
            }
            low
        };
        Some(NewSibling { old: node.node(), new: sibling.node(), low })
    }
}

/// Gives an empty node its first child.
fn set_first_child(node: &Interior, child: NodeRef<'_>) {
    node.set_first_child(child);
    child.set_parent(node);
}

/// Puts the new node behind the child at `place`. The caller holds the lock, and there is room.
fn insert_behind(node: &Interior, place: usize, child: NewSibling<'_>) {
    node.insert_behind(place, child.low, child.new);
    child.new.set_parent(node);
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use ensilo_epoch::{Advance, EpochOptions, Epochs};
    use ensilo_slab::Pool;

    use super::*;
    use crate::Masstree;

    /// Notes how many new nodes were reported, and that others could change none of them yet.
    struct LockedNodes(usize);

    impl InsertObserver for LockedNodes {
        fn changed(&mut self, _: NodeId, _: NodeVersion, _: NodeVersion) {}

        fn split(&mut self, _: NodeId, new: NodeStamp) {
            assert!(!new.node.is_at_rest(), "others may have changed it");
            self.0 += 1;
        }
    }

    #[test]
    fn a_right_half_is_reported_before_others_can_change_it() {
        let options = EpochOptions { advance: Advance::Manual, ..EpochOptions::default() };
        let epochs = Epochs::new(options, Pool::new(None));
        let participant = epochs.participant();
        let guard = participant.pin();
        let tree = Masstree::new(&guard, AccountId(7)).unwrap();
        let mut observer = LockedNodes(0);
        for number in 0..1000_u32 {
            let key = number.reverse_bits().to_be_bytes();
            tree.insert_if_absent(&key, 1, &guard, &mut observer).unwrap();
        }
        assert!(observer.0 > 10, "{} splits", observer.0);
    }
}
