//! Insert if absent: into a free slot. `split` has the inserts into full nodes, `path` those that make a layer.

use std::error::Error;
use std::fmt;

use ensilo_epoch::Guard;
use ensilo_slab::OutOfMemory;
use ensilo_sync::region::{self, Region};

use crate::border::{Border, BorderSlot, KeyContent, KeyPlace, Probe};
use crate::key::KeyTail;
use crate::locked::Locked;
use crate::planted::{Fault, is_planted};
use crate::stamp::{NodeId, NodeStamp};
use crate::version::NodeVersion;
use crate::{KEY_LEN_MAX, Masstree};

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
        write_new_slot(&self.border, position, self.key, self.key.class(), self.value);
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

/// Puts the key, or what all keys behind a slot begin with, into a free slot and the slot at `position`. Room for what comes behind the
/// slice is reserved; the caller holds the lock or owns the node. Always inlined into the way of most inserts, which the compiler leaves to the size of its callers otherwise.
#[inline(always)]
pub(crate) fn write_new_slot(border: &Border, position: usize, key: KeyTail<'_>, kind: u8, value: u64) {
    let permuter = border.permuter();
    let slot = permuter.free_slot();
    if key.goes_on() {
        border.append_suffix(slot, key.suffix());
    }
    border.set_slot(slot, BorderSlot { slice: key.slice(), kind, value });
    border.set_run(border.run().after_insert(position, slot, permuter));
    border.set_permuter(permuter.insert(position));
}
