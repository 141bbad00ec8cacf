//! Insert if absent: into a free slot, or with a new layer. `split` has the inserts into full nodes.
//!
//! # A slot becomes a layer
//! Two keys share a slice and go on differently behind it.
//! ```text
//! before   slot: "aaaaaaaa", SUFFIX "bbbbbbbbx" -> 1         insert "aaaaaaaabbbbbbbby" -> 2
//! after    slot: "aaaaaaaa", LAYER -> node: "bbbbbbbb", LAYER -> node: "x" -> 1, "y" -> 2
//! ```
//! The new nodes are made before the slot is touched. The set of keys behind the slot changes: the node that has it gets
//! a new version, and the observer learns of every new node.

use std::error::Error;
use std::fmt;

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};
use ensilo_sync::region::{self, Region};

use crate::border::{Border, BorderSlot, KeyContent, KeyPlace, Probe};
use crate::key::{KeyTail, LAYER};
use crate::locked::Locked;
use crate::node::{Node, NodeRef};
use crate::node_kind::NodeKind;
use crate::planted::{Fault, is_planted};
use crate::stamp::{NodeId, NodeStamp};
use crate::suffix::words_for;
use crate::version::NodeVersion;
use crate::{KEY_LEN_MAX, Masstree};

/// Most suffixes are no longer.
const SHORT_SUFFIX_BYTES: usize = 64;

/// What [`Masstree::insert_if_absent`] did.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// The key is new.
    New,
    /// The key was there, with this value; nothing was changed.
    Existing(u64),
}

/// Why [`Masstree::insert_if_absent`] did nothing.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// There is no memory for the nodes that it takes.
    OutOfMemory(OutOfMemory),
    /// The key is longer than [`KEY_LEN_MAX`].
    KeyTooLong {
        /// Its length in bytes.
        len_bytes: usize,
    },
    /// The observer does not let the node change: see [`InsertObserver::may_change`].
    Refused,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsertError::OutOfMemory(error) => error.fmt(f),
            InsertError::KeyTooLong { len_bytes } => {
                write!(f, "a key of {len_bytes} bytes; an index takes at most {KEY_LEN_MAX}")
            }
            InsertError::Refused => f.write_str("the keys of the node must not change"),
        }
    }
}

impl Error for InsertError {}

impl From<OutOfMemory> for InsertError {
    fn from(error: OutOfMemory) -> Self {
        InsertError::OutOfMemory(error)
    }
}

/// Learns which border nodes an insert changed, after the change is done.
///
/// It is what a transaction needs to keep its node set up to date over its own inserts: a stamp `(node, before)` becomes
/// `(node, after)`, and a transaction that relied on `from` relies on the nodes split from it too. A method may be called while a
/// node is locked: it must not use the index and must not panic.
pub trait InsertObserver {
    /// Returns whether a border node may change. Asked when the node is locked and nothing has changed yet.
    #[inline]
    fn may_change(&mut self, node: NodeId) -> bool {
        let _ = node;
        true
    }

    /// A node had version `before` when the insert locked it and has `after` now, with nothing but this insert in between.
    fn changed(&mut self, node: NodeId, before: NodeVersion, after: NodeVersion);

    /// `new` holds part of the keys that were reachable through `from`: it is the right half of a split, or belongs to
    /// a layer made below a slot of `from`. Comes after `changed` for `from`, and before anybody else can change `new`.
    fn split(&mut self, from: NodeId, new: NodeStamp);
}

/// For callers that need no report.
impl InsertObserver for () {
    fn changed(&mut self, _: NodeId, _: NodeVersion, _: NodeVersion) {}
    fn split(&mut self, _: NodeId, _: NodeStamp) {}
}

/// An insert that has found its node and locked it.
#[derive(Debug)]
pub(crate) struct Insertion<'a, O> {
    pub(crate) tree: &'a Masstree,
    pub(crate) guard: &'a Guard<'a>,
    pub(crate) key: KeyTail<'a>,
    pub(crate) value: u64,
    pub(crate) depth: usize,
    pub(crate) border: Locked<'a, Border>,
    pub(crate) observer: &'a mut O,
}

impl Masstree {
    /// Maps `key` to `value`, unless it is there already. The observer learns of every border node that was changed or made.
    ///
    /// # Errors
    /// [`InsertError`]; the tree is as it was.
    ///
    /// # Panics
    /// When `value` is 0.
    pub fn insert_if_absent(
        &self,
        key: &[u8],
        value: u64,
        guard: &Guard<'_>,
        observer: &mut impl InsertObserver,
    ) -> Result<Inserted, InsertError> {
        assert_ne!(value, 0, "values are not 0");
        let _index = region::enter(Region::Index);
        if key.len() > KEY_LEN_MAX {
            return Err(InsertError::KeyTooLong { len_bytes: key.len() });
        }
        loop {
            let position = self.descend_to_write(key, usize::MAX, guard);
            if let Some(Probe::Value(value)) = position.probe {
                return Ok(Inserted::Existing(value));
            }
            let Some(border) = position.lock() else { continue };
            let place = border.find(position.key);
            let insertion = Insertion {
                tree: self,
                guard,
                key: position.key,
                value,
                depth: position.depth,
                border,
                observer: &mut *observer,
            };
            if let Some(inserted) = insertion.insert_at(place)? {
                return Ok(inserted);
            }
        }
    }
}

impl<O: InsertObserver> Insertion<'_, O> {
    /// None if the key's way leads on into a layer by now.
    #[inline]
    fn insert_at(self, place: KeyPlace) -> Result<Option<Inserted>, InsertError> {
        match self.border.content(self.key, place) {
            KeyContent::Nothing | KeyContent::OtherSuffix
                if !self.observer.may_change(NodeId::new(&self.border)) =>
            {
                self.border.unlock_unchanged();
                return Err(InsertError::Refused);
            }
            KeyContent::Nothing if self.border.permuter().is_full() => self.split(place.position)?,
            KeyContent::Nothing => self.use_free_slot(place.position)?,
            KeyContent::OtherSuffix => self.make_layer(place)?,
            KeyContent::Layer => {
                self.border.unlock_unchanged();
                return Ok(None);
            }
            KeyContent::Value(value) => {
                self.border.unlock_unchanged();
                return Ok(Some(Inserted::Existing(value)));
            }
        }
        Ok(Some(Inserted::New))
    }

    /// B4: readers need no mark. They find the new key through the new permutation, or else the old one with its version.
    #[inline]
    fn use_free_slot(self, position: usize) -> Result<(), OutOfMemory> {
        if let Err(error) = reserve_for(&self.border, self.key, self.guard, self.tree) {
            self.border.unlock_unchanged();
            return Err(error);
        }
        write_new_slot(&self.border, position, self.key, self.value);
        let (node, before) = (NodeId::new(&self.border), self.border.held());
        let after = if is_planted(Fault::SilentInsert) {
            self.border.unlock_unchanged();
            before
        } else {
            self.border.unlock_after_insert()
        };
        self.observer.changed(node, before, after);
        Ok(())
    }
}

/// Makes room for the key's suffix, if it has one.
#[inline]
pub(crate) fn reserve_for(
    border: &Border,
    key: KeyTail<'_>,
    guard: &Guard<'_>,
    tree: &Masstree,
) -> Result<(), OutOfMemory> {
    if key.goes_on() { border.reserve_suffix(key.suffix().len(), guard, tree.account) } else { Ok(()) }
}

/// Puts the key into a free slot and the slot at `position`. Room for the suffix is reserved; the caller holds the lock or
/// owns the node. Always inlined into the way of most inserts, which the compiler leaves to the size of its callers otherwise.
#[inline(always)]
pub(crate) fn write_new_slot(border: &Border, position: usize, key: KeyTail<'_>, value: u64) {
    let permuter = border.permuter();
    let slot = permuter.free_slot();
    if key.goes_on() {
        border.append_suffix(slot, key.suffix());
    }
    border.set_slot(slot, BorderSlot { slice: key.slice(), kind: key.class(), value });
    border.set_run(border.run().after_insert(position, slot, permuter));
    border.set_permuter(permuter.insert(position));
}

impl<'a, O: InsertObserver> Insertion<'a, O> {
    /// Puts a layer with the old and the new key into the slot at `place`, which is of kind `SUFFIX`.
    #[cold]
    fn make_layer(self, place: KeyPlace) -> Result<(), OutOfMemory> {
        let slot = place.slot.unwrap_or_else(|| panic!("another suffix is in a slot"));
        let suffix = self.border.suffix(slot).unwrap_or_else(|| panic!("a slot of kind SUFFIX has a suffix"));
        // Room for the longest suffix is cleared for a long one alone: that takes longer than all the rest.
        let (mut short, mut long);
        let buffer = if suffix.len() <= SHORT_SUFFIX_BYTES {
            short = [0; SHORT_SUFFIX_BYTES];
            &mut short[..suffix.len()]
        } else {
            long = [0; KEY_LEN_MAX];
            &mut long[..suffix.len()]
        };
        suffix.copy_to(buffer);
        let old = KeyTail::new(buffer);
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
        top.note_removal(self.border.number_to_inherit());
        let mut lowest = top;
        while old.slice() == new.slice() && old.goes_on() && new.goes_on() {
            let made = Border::empty_root().allocate(guard, account);
            let next = made.inspect_err(|_| free_chain(top, guard, account))?;
            next.note_removal(top.latest_removal());
            lowest.set_slot(0, BorderSlot { slice: old.slice(), kind: LAYER, value: next.node().to_word() });
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
