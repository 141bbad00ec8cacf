//! An insert into a full border node: the node is split, and its ancestors as far as they are full.
//!
//! All that can fail comes first: the new nodes are made and the locks taken, from the border node upwards to the first
//! ancestor that has room. Then the nodes are rewritten with all these locks held, and released together. The paper
//! releases them hand over hand; but a full ancestor is rare, and so a split is one step: nobody meets a node that
//! its parent does not know yet.
//!
//! # Where a node is split
//! In the middle, except where the inserts come in order: see [`middle_of`]. Ascending inserts leave full nodes behind.

use ensilo_slab::OutOfMemory;

use crate::ancestors::{Ancestors, NewSibling};
use crate::border::Border;
use crate::insert::{InsertObserver, Insertion, reserve_for, write_new_slot};
use crate::key::SUFFIX;
use crate::locked::Locked;
use crate::node::Node;
use crate::planted::{Fault, is_planted};
use crate::stamp::{NodeId, NodeStamp};
use crate::suffix::words_for;
use crate::version::NodeVersion;

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

    /// The first position of the old permutation that goes to the right node.
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

    /// The slice at a place, with the new key counted in.
    fn slice_at(&self, new: usize, place: usize) -> u64 {
        if place == new {
            return self.key.slice();
        }
        let permuter = self.border.permuter();
        self.border.slice(permuter.slot(place - usize::from(place > new)))
    }

    /// A locked node with the slots from the middle on, and the new key if it belongs there.
    fn make_right(&self, division: Division) -> Result<&'a Border, OutOfMemory> {
        let (guard, account) = (self.guard, self.tree.account);
        let low = self.slice_at(division.new, division.middle);
        let right = Border::empty_locked(low).allocate(guard, account)?;
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
        let suffixes = moved().filter(|&slot| left.kind(slot) == SUFFIX).filter_map(|slot| left.suffix(slot));
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
            write_new_slot(right, division.new - division.middle, self.key, self.value);
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
            write_new_slot(&left, division.new, self.key, self.value);
        }
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
        right.unlock_unchanged();
        self.observer.changed(from, before, after);
        self.observer.split(from, new);
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

/// The first place that should go to the right node.
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

/// The place next to `wish` whose slice differs from the one before it, among places up to and with `last`.
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
