//! Slots that become layers, and the paths in front of layers.
//!
//! # Source
//! Masstree (EuroSys 2012) §4.1 makes a layer for each further slice that two keys share: keys of 208 bytes that differ at their ends
//! would take 25 nodes of one slot each. Here the slot keeps these slices, as *compressed path* in the words of radix trees (Morrison,
//! PATRICIA, JACM 1968), and an insert that parts from it makes one node.
//!
//! # Two keys share a slice and go on differently behind it
//! ```text
//! before   slot: "aaaaaaaa", SUFFIX "bbbbbbbbccccccccx" -> 1          insert "aaaaaaaabbbbbbbbccccccccy" -> 2
//! after    slot: "aaaaaaaa", PATH "bbbbbbbbcccccccc" -> node: "x" -> 1, "y" -> 2
//! ```
//! The path has the whole slices behind which both keys go on; where there is none, the slot is of kind `LAYER`. It is the beginning of
//! the suffix that the slot had, and stays where that is (S1).
//!
//! # A key leaves a path
//! ```text
//! before   slot: "aaaaaaaa", PATH "bbbbbbbbcccccccc" -> layer          insert "aaaaaaaabbbbbbbbd" -> 3
//! after    slot: "aaaaaaaa", PATH "bbbbbbbb" -> node: "cccccccc", LAYER -> layer; "d" -> 3
//! ```
//! The layer stays what it is: its keys have lost the same bytes on both ways. What has come to it by the old way may go on there.
//!
//! # Invariants
//! - The new node is made before the slot is touched: with no memory for it the tree stays as it was.
//! - A key that leaves a path is missing by the version of the border node that has the slot: no other node is responsible for it. An insert
//!   of such a key changes that version, and the observer learns of the new node, which is responsible from then on. Versions of the
//!   nodes in the layer behind the path stay: they speak for the keys of that layer alone.
//! - The slot, which readers use, is rewritten under a mark: nobody takes the old path for the way to the new node (`[changing]`).
//! - A new node has the removals of the one above (B6): keys that have been in the range that it takes over were removed there.
//! - A layer that gets one more above it is one slot further from the top. Hence who takes an empty layer out looks again for where it is.
//!
//! # What it does not do
//! A path that was left is not put together again when the key that left it is removed: the node, without what that key took in it, stays until
//! the layer is empty. So keys that were removed leave a layer for each slice of a key that is there: as a rule one node, and where the layer had been split its
//! first node, that of the key, and the ones above these, whose bags are trimmed only if they are long ([`crate::border`]).

use ensilo_slab::OutOfMemory;

use crate::KEY_LEN_MAX;
use crate::border::{Border, KeyPlace};
use crate::insert::{InsertObserver, Insertion, write_new_slot};
use crate::key::{KeyTail, LAYER, PATH, SUFFIX, class_of};
use crate::node::Node;
use crate::planted::{Fault, is_planted};
use crate::stamp::{NodeId, NodeStamp};
use crate::suffix::words_for;
use crate::version::NodeVersion;

/// Most suffixes are no longer.
const SHORT_SUFFIX_BYTES: usize = 64;

/// What moves from a slot into the new layer below it: a key, or the way to a layer.
#[derive(Debug, Copy, Clone)]
struct Displaced<'b> {
    tail: KeyTail<'b>,
    kind: u8,
    value: u64,
}

impl<'a, O: InsertObserver> Insertion<'a, O> {
    /// Puts a layer with what it has and the new key into the slot at `place`, of which the key has the slice and nothing else.
    #[cold]
    pub(crate) fn make_layer(self, place: KeyPlace) -> Result<(), OutOfMemory> {
        let slot = place.slot.unwrap_or_else(|| panic!("another suffix is in a slot"));
        let bytes = self
            .border
            .suffix(slot)
            .unwrap_or_else(|| panic!("a slot that another key leaves has a suffix or path"));
        // Room for the longest suffix is cleared for a long one alone: that takes longer than all the rest.
        let (mut short, mut long);
        let buffer = if bytes.len() <= SHORT_SUFFIX_BYTES {
            short = [0; SHORT_SUFFIX_BYTES];
            &mut short[..bytes.len()]
        } else {
            long = [0; KEY_LEN_MAX];
            &mut long[..bytes.len()]
        };
        bytes.copy_to(buffer);
        let (mut old, mut new) = (KeyTail::new(buffer), self.key.below());
        while old.slice() == new.slice() && old.goes_on() && new.goes_on() {
            (old, new) = (old.below(), new.below());
        }
        let path_bytes = bytes.len() - old.bytes().len();
        let displaced = Displaced::new(old, self.border.kind(slot), self.border.value(slot));
        match self.make_node(displaced, new) {
            Ok(node) => {
                self.publish_layer(slot, node, path_bytes);
                Ok(())
            }
            Err(error) => {
                self.border.unlock_unchanged();
                Err(error)
            }
        }
    }

    /// Makes the node in which the new key, with what is left of it, parts from what was in the slot.
    fn make_node(&self, old: Displaced<'_>, new: KeyTail<'_>) -> Result<&'a Border, OutOfMemory> {
        let (guard, account) = (self.guard, self.tree.account);
        let node = Border::empty_root().allocate(guard, account)?;
        node.note_removal(self.border.number_to_inherit());
        let words = words_behind_slice(old.tail) + words_behind_slice(new);
        if words > 0
            && let Err(error) = node.reserve_words(words, guard, account)
        {
            // SAFETY: it was made just now with this account, and nobody else knows it.
            unsafe { node.free(guard, account) };
            return Err(error);
        }
        let new_position = usize::from((old.tail.slice(), class_of(old.kind)) < (new.slice(), new.class()));
        write_new_slot(node, 0, old.tail, old.kind, old.value);
        write_new_slot(node, new_position, new, new.class(), self.value);
        Ok(node)
    }

    /// Lets the slot lead to the new node. It is reported before the lock is released: until then nobody else can reach it.
    fn publish_layer(self, slot: usize, node: &'a Border, path_bytes: usize) {
        let (from, before) = (NodeId::new(&self.border), self.border.held());
        if !is_planted(Fault::UnmarkedLayer) {
            self.border.mark_changing();
        }
        self.border.set_layer(slot, node.node().to_word(), path_bytes);
        self.border.trim_suffixes(self.guard, self.tree.account);
        if is_planted(Fault::SilentLayer) {
            return self.border.unlock_unchanged();
        }
        self.observer.changed(from, before, before.after_insert());
        self.observer.split(from, NodeStamp::new(node, NodeVersion::BORDER_ROOT));
        self.border.unlock_after_insert();
    }
}

impl<'b> Displaced<'b> {
    /// `tail` is what the new layer sees of the bytes of a slot of this kind. What goes on behind a path is in the layer behind it.
    fn new(tail: KeyTail<'b>, kind: u8, value: u64) -> Self {
        let kind = match kind {
            SUFFIX => tail.class(),
            _ if tail.goes_on() => PATH,
            _ => LAYER,
        };
        Displaced { tail, kind, value }
    }
}

/// Returns the words that a slot with this needs in its node's bag.
fn words_behind_slice(tail: KeyTail<'_>) -> usize {
    if tail.goes_on() { words_for(tail.suffix().len()) } else { 0 }
}
