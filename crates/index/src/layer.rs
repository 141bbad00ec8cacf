//! A slot becomes a layer: two keys share a slice and go on differently behind it.
//!
//! ```text
//! before   slot: "aaaaaaaa", SUFFIX "bbbbbbbbx" -> 1         insert "aaaaaaaabbbbbbbby" -> 2
//! after    slot: "aaaaaaaa", LAYER -> node: "bbbbbbbb", LAYER -> node: "x" -> 1, "y" -> 2
//! ```
//! The new nodes are made before the slot is touched. The set of keys behind the slot changes: the node that has it gets
//! a new version, and the observer learns of every new node.

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};

use crate::KEY_LEN_MAX;
use crate::border::{Border, Place, Slot};
use crate::insert::{InsertObserver, Insertion, write_new_slot};
use crate::key::{KeyTail, LAYER};
use crate::node::{Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::stamp::{NodeId, NodeStamp};
use crate::suffix::words_for;
use crate::version::NodeVersion;

impl<'a, O: InsertObserver> Insertion<'a, O> {
    /// Puts a layer with the old and the new key into the slot at `place`, whose kind is `SUFFIX`.
    #[cold]
    pub(crate) fn make_layer(self, place: Place) -> Result<(), OutOfMemory> {
        let slot = place.slot.unwrap_or_else(|| panic!("another suffix is in a slot"));
        let mut buffer = [0; KEY_LEN_MAX];
        let suffix = self.border.suffix(slot).unwrap_or_else(|| panic!("a slot of kind SUFFIX has a suffix"));
        suffix.copy_to(&mut buffer);
        let old = KeyTail::new(&buffer[..suffix.len()]);
        let old_value = self.border.value(slot);
        match self.make_nodes(old, old_value) {
            Ok(top) => {
                self.publish_layer(slot, top);
                Ok(())
            }
            Err(error) => {
                self.border.unlock_unchanged();
                Err(error)
            }
        }
    }

    /// Makes the nodes below the slot: one for each further slice that the keys share, and the one in which they part.
    fn make_nodes(&self, mut old: KeyTail<'_>, old_value: u64) -> Result<&'a Border, OutOfMemory> {
        let (guard, account) = (self.guard, self.tree.account);
        let mut new = self.key.below();
        let top = Border::empty_root().allocate(guard, account)?;
        let mut lowest = top;
        while old.slice() == new.slice() && old.goes_on() && new.goes_on() {
            let made = Border::empty_root().allocate(guard, account);
            let next = made.inspect_err(|_| free_chain(top, guard, account))?;
            lowest.set_slot(0, Slot { slice: old.slice(), kind: LAYER, value: next.node().to_word() });
            lowest.set_permuter(lowest.permuter().insert(0));
            (lowest, old, new) = (next, old.below(), new.below());
        }
        let room = reserve_for_both(lowest, old, new, guard, account);
        room.inspect_err(|_| free_chain(top, guard, account))?;
        let new_position = usize::from((old.slice(), old.class()) < (new.slice(), new.class()));
        write_new_slot(lowest, 0, old, old_value);
        write_new_slot(lowest, new_position, new, self.value);
        Ok(top)
    }

    /// Lets the slot refer to the new nodes. They are reported before the lock is released: until then nobody else can
    /// reach them, and each refers to the next one.
    fn publish_layer(self, slot: usize, top: &'a Border) {
        let (from, before) = (NodeId::new(&self.border), self.border.held());
        self.border.mark_changing();
        self.border.set_layer(slot, top.node().to_word());
        self.observer.changed(from, before, before.after_insert());
        let mut next = Some(top);
        while let Some(border) = next {
            self.observer.split(from, NodeStamp::new(border, NodeVersion::BORDER_ROOT));
            next = below_first_slot(border);
        }
        self.border.unlock_after_insert();
    }
}

/// Room for the suffixes of both keys in a new node.
fn reserve_for_both(
    border: &Border,
    old: KeyTail<'_>,
    new: KeyTail<'_>,
    guard: &Guard<'_>,
    account: AccountId,
) -> Result<(), OutOfMemory> {
    let words = |key: KeyTail<'_>| if key.goes_on() { words_for(key.suffix().len()) } else { 0 };
    match words(old) + words(new) {
        0 => Ok(()),
        words => border.reserve_suffix(8 * words, guard, account),
    }
}

/// In a chain of nodes that nobody else knows, the one behind `border`.
fn below_first_slot(border: &Border) -> Option<&Border> {
    let slot = border.permuter().slots().next()?;
    if border.kind(slot) != LAYER {
        return None;
    }
    // SAFETY: the slot has kind LAYER, and the node behind it lives as long as this one.
    match unsafe { NodeRef::from_word(border.value(slot)) }.kind() {
        NodeKind::Border(below) => Some(below),
        NodeKind::Interior(_) => unreachable!("a new layer is one node"),
    }
}

/// Frees a chain of nodes that was never published.
fn free_chain(top: &Border, guard: &Guard<'_>, account: AccountId) {
    let mut next = Some(top);
    while let Some(border) = next {
        next = below_first_slot(border);
        // SAFETY: the caller made the chain with this account, and drops it on an error before anybody else knows it.
        unsafe { border.free_with_suffixes(guard, account) };
    }
}
