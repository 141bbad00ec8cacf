//! Border nodes: the leaves of a layer, which hold the slots.
//!
//! # Layout
//! ```text
//! line 0         version, permutation, 15 kinds, run, slices 0 to 3
//! line 1, 2      slices 4 to 14, values 0 to 4
//! line 3, 4      values 5 to 14, suffix bag, next, previous, parent, low, latest removal
//! ```
//! A slot is a slice, a kind and a value; for the kinds `LAYER` and `PATH` the value is the address of the layer's node.
//!
//! # Invariants
//! - **B1** The slots in use, in the order of the permutation, rise strictly by slice and class. All keys with one slice lie
//!   in one node.
//! - **B2** A node's range begins at `low`, which never changes, and ends at the `low` of the next node. The first node of a
//!   layer has `low` 0 and stays the first until the layer is gone.
//! - **B3** The links between a node and the next one, in both directions, are written under the first one's lock.
//! - **B4** A slot that is not in use is written without a mark: a reader that comes to it through an older permutation finds that the
//!   version has changed since.
//! - **B5** The slice of a slot that is not in use is [`NO_SLICE`]: so the slots before a key are counted without asking which
//!   ones are in use.
//! - **B6** A node's latest removal is at least the number of every key that was removed from its range, by whatever node had this range
//!   then: it rises before the key is missing, and goes with the range where that moves (to the right half of a split, to a new layer and
//!   back, to the node before one that leaves).
//! - **B7** A slot of kind `PATH` has one or more whole slices in the bag.
//!
//! # Memory ordering
//! `[slot]` a new permutation is stored with Release after the slot's words, and loaded with Acquire before them. `[value]` a
//! value is stored with Release and loaded with Acquire: what its owner wrote behind it is visible. `[removal]` a latest removal is stored
//! before the lock is released, or before the first link by which the node becomes responsible for a range; both are stores with Release.
//! It is loaded after the version or the link that made the node responsible, which is a load with Acquire.

mod suffixes;

use std::ptr;

use ensilo_sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering, fence};
use ensilo_sync::prefetch;

use crate::WIDTH;
use crate::interior::Interior;
use crate::key::{KeyTail, LAYER, PATH, SUFFIX, class_of, has_bytes, leads_to_a_layer};
use crate::node::{Link, Node};
use crate::permuter::Permuter;
use crate::run::Run;
use crate::search::{count_less, equal_words};
use crate::suffix::BagHeader;
use crate::unlinked::check_is_allocated;
use crate::version::{NodeVersion, Version};

/// What stands in slots that are not in use.
pub(crate) const NO_SLICE: u64 = u64::MAX;

/// A border node.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Border {
    version: Version,
    permutation: AtomicU64,
    kinds: [AtomicU8; WIDTH],
    run: AtomicU8,
    slices: [AtomicU64; WIDTH],
    values: [AtomicU64; WIDTH],
    suffixes: AtomicPtr<BagHeader>,
    pub(crate) next: Link<Border>,
    pub(crate) previous: Link<Border>,
    pub(crate) parent: Link<Interior>,
    low: u64,
    latest_removal: AtomicU64,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Border>() == 320);

/// What a slot holds besides its suffix.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct BorderSlot {
    pub(crate) slice: u64,
    pub(crate) kind: u8,
    pub(crate) value: u64,
}

/// What a slot held until it was taken out of use. Only [`Border::take_out`] makes one.
#[derive(Debug)]
pub(crate) struct CutSlot {
    held: BorderSlot,
}

impl CutSlot {
    /// Returns whether the slot led to a layer.
    pub(crate) fn led_to_a_layer(&self) -> bool {
        leads_to_a_layer(self.held.kind)
    }
}

/// What an unlocked look at a node finds for a key; means nothing until the version was compared again.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    /// No slot for the key.
    Missing,
    /// The key's value.
    Value(u64),
    /// The key goes on in a layer.
    Layer {
        /// The value word of the slot that leads there.
        node: u64,
        /// The bytes that the keys of that layer have lost: the slice, and the path if there is one.
        skipped_bytes: u32,
    },
}

/// What a locked node has for a key.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum KeyContent {
    /// No slot has its slice and class.
    Nothing,
    /// Another key has its slice and goes on differently; or all others do that have its slice, and differ from it within their path.
    OtherSuffix,
    /// All keys that go on behind its slice are in a layer.
    Layer,
    /// The key is there, with this value.
    Value(u64),
}

/// Where a key is or would be, in a locked node.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct KeyPlace {
    /// Its position in the permutation.
    pub(crate) position: usize,
    /// The slot there, if it has the key's slice and class.
    pub(crate) slot: Option<usize>,
}

// SAFETY: repr(C), and the version comes first.
unsafe impl Node for Border {
    fn version(&self) -> &Version {
        &self.version
    }
}

impl Border {
    /// Returns a node without slots, the first of its layer.
    pub(crate) fn empty_root() -> Self {
        Self::with_version(Version::new(NodeVersion::BORDER_ROOT), 0)
    }

    /// Returns a locked node without slots, with a range that begins at `low`. It is not the first of its layer.
    pub(crate) fn empty_locked(low: u64) -> Self {
        Self::with_version(Version::new_locked(NodeVersion::BORDER), low)
    }

    fn with_version(version: Version, low: u64) -> Self {
        Border {
            version,
            permutation: AtomicU64::new(Permuter::EMPTY.word()),
            kinds: std::array::from_fn(|_| AtomicU8::new(0)),
            run: AtomicU8::new(Run::NONE.to_byte()),
            slices: std::array::from_fn(|_| AtomicU64::new(NO_SLICE)),
            values: std::array::from_fn(|_| AtomicU64::new(0)),
            suffixes: AtomicPtr::new(ptr::null_mut()),
            next: Link::new(None),
            previous: Link::new(None),
            parent: Link::new(None),
            low,
            latest_removal: AtomicU64::new(0),
        }
    }

    /// Returns where the node's range begins.
    #[inline]
    pub(crate) fn low(&self) -> u64 {
        self.low
    }

    /// Returns the largest number of a removal from the node's range (B6).
    #[inline]
    pub(crate) fn latest_removal(&self) -> u64 {
        // Relaxed: [removal].
        self.latest_removal.load(Ordering::Relaxed)
    }

    /// Notes a removal from the node's range, or those of a range that it takes over, or somebody who has missed a key there.
    pub(crate) fn note_removal(&self, number: u64) {
        if number > self.latest_removal() {
            // Relaxed: [removal]. A read-modify-write: who has missed a key notes it without the lock.
            self.latest_removal.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// Returns the largest number that the node has been given, for a node that takes part of its range over. The caller holds the lock.
    pub(crate) fn number_to_inherit(&self) -> u64 {
        // [absence] Who notes a number without the lock and finds the node at rest behind it has its fence before this one, and the
        // number is seen here; or it finds the node locked, or changed, and does not rely on it.
        fence(Ordering::SeqCst);
        self.latest_removal()
    }

    /// Returns the order of the slots.
    #[inline]
    pub(crate) fn permuter(&self) -> Permuter {
        // Acquire: [slot].
        let word = self.permutation.load(Ordering::Acquire);
        check_is_allocated(word);
        Permuter::from_word(word)
    }

    /// The caller holds the lock.
    #[inline]
    pub(crate) fn set_permuter(&self, permuter: Permuter) {
        debug_assert!(permuter.is_valid(), "P1");
        // Release: [slot].
        self.permutation.store(permuter.word(), Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.permuter().len() == 0
    }

    #[inline]
    pub(crate) fn slice(&self, slot: usize) -> u64 {
        self.slices[slot].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn kind(&self, slot: usize) -> u8 {
        self.kinds[slot].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn value(&self, slot: usize) -> u64 {
        // Acquire: [value].
        self.values[slot].load(Ordering::Acquire)
    }

    pub(crate) fn slot(&self, slot: usize) -> BorderSlot {
        BorderSlot { slice: self.slice(slot), kind: self.kind(slot), value: self.value(slot) }
    }

    /// The caller holds the lock, and either the slot is free (B4) or readers wait.
    pub(crate) fn set_slot(&self, slot: usize, content: BorderSlot) {
        self.slices[slot].store(content.slice, Ordering::Relaxed);
        self.kinds[slot].store(content.kind, Ordering::Relaxed);
        self.set_value(slot, content.value);
    }

    /// The caller holds the lock.
    pub(crate) fn set_value(&self, slot: usize, value: u64) {
        // Release: [value].
        self.values[slot].store(value, Ordering::Release);
    }

    /// Makes a slot of kind `SUFFIX` or `PATH` one that leads to another layer, behind a path of the first `path_bytes` of its bytes.
    /// The caller holds the lock and readers wait.
    pub(crate) fn set_layer(&self, slot: usize, layer: u64, path_bytes: usize) {
        if path_bytes > 0 {
            self.shorten_bytes(slot, path_bytes);
        }
        self.kinds[slot].store(if path_bytes > 0 { PATH } else { LAYER }, Ordering::Relaxed);
        self.set_value(slot, layer);
    }

    /// Takes the slots from `position` on out of use. The caller holds the lock and readers wait.
    pub(crate) fn truncate(&self, position: usize) {
        let permuter = self.permuter();
        for slot in permuter.slots().skip(position) {
            self.slices[slot].store(NO_SLICE, Ordering::Relaxed);
        }
        self.set_permuter(permuter.truncate(position));
    }

    /// Takes the slot at `position` out of use. The caller holds the lock and readers wait: a scan that has the permutation from
    /// before would take [`NO_SLICE`] for the slot's key. Returns what the slot held, to which it does not lead any more.
    pub(crate) fn take_out(&self, position: usize) -> CutSlot {
        let permuter = self.permuter();
        let slot = permuter.slot(position);
        let held = self.slot(slot);
        self.set_permuter(permuter.remove(position));
        self.slices[slot].store(NO_SLICE, Ordering::Relaxed);
        CutSlot { held }
    }

    /// The caller holds the lock.
    pub(crate) fn run(&self) -> Run {
        Run::from_byte(self.run.load(Ordering::Relaxed))
    }

    /// The caller holds the lock.
    pub(crate) fn set_run(&self, run: Run) {
        self.run.store(run.to_byte(), Ordering::Relaxed);
    }

    /// Copies the slot `from` of another node, with its suffix or path if it has one, for which room was reserved. The caller owns this
    /// node and holds the lock of the other.
    pub(crate) fn copy_slot(&self, slot: usize, other: &Border, from: usize) {
        let content = other.slot(from);
        self.set_slot(slot, content);
        if has_bytes(content.kind)
            && let (Some(bag), Some(suffix)) = (self.suffixes(), other.suffix(from))
        {
            bag.append_copy(slot, suffix);
        }
    }
}

/// Where a key is: for readers without a lock, and for writers under it.
impl Border {
    /// Looks for a key without a lock, and starts to load what lies behind its value.
    #[inline]
    pub(crate) fn probe(&self, key: KeyTail<'_>) -> Probe {
        let permuter = self.permuter();
        for slot in equal_words(&self.slices, key.slice()) {
            let kind = self.kind(slot);
            if class_of(kind) == key.class() && permuter.has(slot) {
                return self.probe_slot(slot, kind, key);
            }
        }
        Probe::Missing
    }

    /// Looks at a slot that has the key's slice and class.
    #[inline]
    fn probe_slot(&self, slot: usize, kind: u8, key: KeyTail<'_>) -> Probe {
        let value = self.value(slot);
        prefetch(ptr::without_provenance(value as usize));
        match kind {
            LAYER => Probe::Layer { node: value, skipped_bytes: 8 },
            PATH => self.probe_path(slot, value, key),
            SUFFIX if !self.suffix_equals(slot, key) => Probe::Missing,
            _ => Probe::Value(value),
        }
    }

    #[cold]
    fn probe_path(&self, slot: usize, node: u64, key: KeyTail<'_>) -> Probe {
        match self.path_before(slot, key) {
            Some(path_bytes) => Probe::Layer { node, skipped_bytes: 8 + path_bytes },
            None => Probe::Missing,
        }
    }

    /// Returns where the key is or belongs. The caller holds the lock.
    pub(crate) fn find(&self, key: KeyTail<'_>) -> KeyPlace {
        let permuter = self.permuter();
        let mut position = count_less(&self.slices, key.slice());
        while position < permuter.len() {
            let slot = permuter.slot(position);
            let class = class_of(self.kind(slot));
            if self.slice(slot) != key.slice() || class > key.class() {
                break;
            }
            if class == key.class() {
                return KeyPlace { position, slot: Some(slot) };
            }
            position += 1;
        }
        KeyPlace { position, slot: None }
    }

    /// Returns what is at a place that was found for the key. The caller holds the lock.
    #[inline(always)]
    pub(crate) fn content(&self, key: KeyTail<'_>, place: KeyPlace) -> KeyContent {
        let Some(slot) = place.slot else { return KeyContent::Nothing };
        match self.kind(slot) {
            LAYER => KeyContent::Layer,
            PATH if self.path_before(slot, key).is_some() => KeyContent::Layer,
            PATH => KeyContent::OtherSuffix,
            SUFFIX if !self.suffix_equals(slot, key) => KeyContent::OtherSuffix,
            _ => KeyContent::Value(self.value(slot)),
        }
    }
}
