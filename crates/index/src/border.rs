//! Border nodes: the leaves of a layer, which hold the slots.
//!
//! # Layout
//! ```text
//! line 0         version, permutation, 15 kinds, run, slices 0 to 3
//! line 1, 2      slices 4 to 14, values 0 to 4
//! line 3, 4      values 5 to 14, suffix bag, next, previous, parent, low
//! ```
//! A slot is a slice, a kind and a value; for kind `LAYER` the value is the address of the layer's node.
//!
//! # Invariants
//! - **B1** The slots in use, in the order of the permutation, rise strictly by slice and class. All keys with one slice lie
//!   in one node.
//! - **B2** A node's range begins at `low`, which never changes, and ends at the `low` of the next node. The first node of a
//!   layer has `low` 0 and stays the first until the layer is gone.
//! - **B3** The links between a node and the next one, in both directions, are written under the first one's lock.
//! - **B5** The slice of a slot that is not in use is [`NO_SLICE`]: so the slots before a key are counted without asking which
//!   ones are in use.
//! - **B4** A slot that is not in use is written without a mark: whoever reads it through an older permutation finds that the
//!   version has changed since.
//!
//! # Memory ordering
//! `[slot]` a new permutation is stored with Release after the slot's words, and loaded with Acquire before them. `[value]` a
//! value is stored with Release and loaded with Acquire: what its owner wrote behind it is visible.

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};
use ensilo_sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use ensilo_sync::prefetch;
use std::ptr::{self, NonNull};

use crate::WIDTH;
use crate::interior::Interior;
use crate::key::{KeyTail, LAYER, SUFFIX, class_of};
use crate::locked::Locked;
use crate::node::{Link, Node};
use crate::permuter::Permuter;
use crate::run::Run;
use crate::search::{count_less, equal_words};
use crate::suffix::{BagHeader, Suffix, SuffixBag, words_for};
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
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Border>() == 320);

/// What a slot holds besides its suffix.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) slice: u64,
    pub(crate) kind: u8,
    pub(crate) value: u64,
}

/// What an unlocked look at a node finds for a key; means nothing until the version was compared again.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    /// No slot for the key.
    Missing,
    /// The key's value.
    Value(u64),
    /// The value word of a slot of kind `LAYER`.
    Layer(u64),
}

/// What a node whose lock the caller holds has for a key.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// No slot has its slice and class.
    Nothing,
    /// Another key has its slice and goes on differently.
    OtherSuffix,
    /// All keys that go on behind its slice are in a layer.
    Layer,
    /// The key is there, with this value.
    Value(u64),
}

/// Where a key is or would be, in a node whose lock the caller holds.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its position in the permutation.
    pub(crate) position: usize,
    /// The slot there, if it has the key's slice and class.
    pub(crate) slot: Option<usize>,
}

// SAFETY: repr(C), and the version comes first.
unsafe impl Node for Border {
    fn parent_link(&self) -> &Link<Interior> {
        &self.parent
    }

    fn version(&self) -> &Version {
        &self.version
    }
}

impl Border {
    /// A node without slots, the first of its layer.
    pub(crate) fn empty_root() -> Self {
        Self::with_version(Version::new(NodeVersion::BORDER_ROOT), 0)
    }

    /// A locked node without slots whose range begins at `low`, not the first of its layer.
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
        }
    }

    /// Where the node's range begins.
    #[inline]
    pub(crate) fn low(&self) -> u64 {
        self.low
    }

    /// The order of the slots.
    #[inline]
    pub(crate) fn permuter(&self) -> Permuter {
        // Acquire: [slot].
        Permuter::from_word(self.permutation.load(Ordering::Acquire))
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

    pub(crate) fn slot(&self, slot: usize) -> Slot {
        Slot { slice: self.slice(slot), kind: self.kind(slot), value: self.value(slot) }
    }

    /// The caller holds the lock, and either the slot is free (B4) or readers wait.
    pub(crate) fn set_slot(&self, slot: usize, content: Slot) {
        self.slices[slot].store(content.slice, Ordering::Relaxed);
        self.kinds[slot].store(content.kind, Ordering::Relaxed);
        self.set_value(slot, content.value);
    }

    /// The caller holds the lock.
    pub(crate) fn set_value(&self, slot: usize, value: u64) {
        // Release: [value].
        self.values[slot].store(value, Ordering::Release);
    }

    /// Makes a slot of kind `SUFFIX` one of kind `LAYER`. The caller holds the lock and readers wait.
    pub(crate) fn set_layer(&self, slot: usize, layer: u64) {
        self.kinds[slot].store(LAYER, Ordering::Relaxed);
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
    /// before would take [`NO_SLICE`] for the slot's key.
    pub(crate) fn take_out(&self, position: usize) {
        let permuter = self.permuter();
        self.set_permuter(permuter.remove(position));
        self.slices[permuter.slot(position)].store(NO_SLICE, Ordering::Relaxed);
    }

    /// The caller holds the lock.
    pub(crate) fn run(&self) -> Run {
        Run::from_byte(self.run.load(Ordering::Relaxed))
    }

    /// The caller holds the lock.
    pub(crate) fn set_run(&self, run: Run) {
        self.run.store(run.to_byte(), Ordering::Relaxed);
    }

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
            LAYER => Probe::Layer(value),
            SUFFIX if !self.suffix_equals(slot, key) => Probe::Missing,
            _ => Probe::Value(value),
        }
    }

    /// Whether the slot's suffix is that of the key, which goes on; false if there is no bag.
    #[inline]
    pub(crate) fn suffix_equals(&self, slot: usize, key: KeyTail<'_>) -> bool {
        self.suffixes().is_some_and(|bag| bag.suffix(slot).equals(key.suffix()))
    }

    /// Where the key is or belongs. The caller holds the lock.
    pub(crate) fn find(&self, key: KeyTail<'_>) -> Place {
        let permuter = self.permuter();
        let mut position = count_less(&self.slices, key.slice());
        while position < permuter.len() {
            let slot = permuter.slot(position);
            let class = class_of(self.kind(slot));
            if self.slice(slot) != key.slice() || class > key.class() {
                break;
            }
            if class == key.class() {
                return Place { position, slot: Some(slot) };
            }
            position += 1;
        }
        Place { position, slot: None }
    }

    /// What is at a place that was found for the key. The caller holds the lock.
    #[inline]
    pub(crate) fn content(&self, key: KeyTail<'_>, place: Place) -> Content {
        let Some(slot) = place.slot else { return Content::Nothing };
        match self.kind(slot) {
            LAYER => Content::Layer,
            SUFFIX if !self.suffix_equals(slot, key) => Content::OtherSuffix,
            _ => Content::Value(self.value(slot)),
        }
    }

    /// The bag of suffixes, if the node ever had one.
    #[inline]
    pub(crate) fn suffixes(&self) -> Option<SuffixBag<'_>> {
        // Acquire: [link] the bag is initialised, and has the suffixes of all slots of the permutation read before.
        let header = NonNull::new(self.suffixes.load(Ordering::Acquire))?;
        // SAFETY: the node refers to this bag, or did when it was read, and it is retired only after it was replaced.
        Some(unsafe { SuffixBag::new(header) })
    }

    /// The suffix of a slot of kind `SUFFIX`; none if it has changed meanwhile.
    #[inline]
    pub(crate) fn suffix(&self, slot: usize) -> Option<Suffix<'_>> {
        self.suffixes().map(|bag| bag.suffix(slot))
    }

    /// Makes room for one more suffix. The caller holds the lock.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the node is as it was.
    pub(crate) fn reserve_suffix(
        &self,
        len_bytes: usize,
        guard: &Guard<'_>,
        account: AccountId,
    ) -> Result<(), OutOfMemory> {
        let old = self.suffixes();
        if old.is_some_and(|bag| bag.has_room_for(len_bytes)) {
            return Ok(());
        }
        let (mut words, mut count) = (words_for(len_bytes), 1);
        for (_, suffix) in self.live_suffixes() {
            words += words_for(suffix.len());
            count += 1;
        }
        let bag = SuffixBag::allocate(guard, account, bag_capacity(words, count))?;
        for (slot, suffix) in self.live_suffixes() {
            bag.append_copy(slot, suffix);
        }
        // Release: [link].
        self.suffixes.store(bag.as_ptr(), Ordering::Release);
        if let Some(old) = old {
            // SAFETY: it came from `allocate` with the tree's account, the node refers to the new bag now, and only the
            // holder of the lock replaces bags.
            unsafe { old.retire(guard, account) };
        }
        Ok(())
    }

    /// The slots of kind `SUFFIX` with their suffixes. The caller holds the lock.
    fn live_suffixes(&self) -> impl Iterator<Item = (usize, Suffix<'_>)> {
        let slots = self.permuter().slots().filter(|&slot| self.kind(slot) == SUFFIX);
        slots.filter_map(|slot| Some((slot, self.suffix(slot)?)))
    }

    /// Gives the slot a suffix, for which room was reserved. The caller holds the lock.
    pub(crate) fn append_suffix(&self, slot: usize, bytes: &[u8]) {
        self.suffixes().unwrap_or_else(|| panic!("room was reserved")).append(slot, bytes);
    }

    /// Copies the slot `from` of another node, with its suffix if it has one, for which room was reserved. The caller owns this
    /// node and holds the lock of the other.
    pub(crate) fn copy_slot(&self, slot: usize, other: &Border, from: usize) {
        let content = other.slot(from);
        self.set_slot(slot, content);
        if content.kind == SUFFIX
            && let (Some(bag), Some(suffix)) = (self.suffixes(), other.suffix(from))
        {
            bag.append_copy(slot, suffix);
        }
    }

    /// Makes it the root of an empty layer. The caller owns the tree alone.
    pub(crate) fn clear(&self, guard: &Guard<'_>, account: AccountId) {
        let locked = Locked::lock(self);
        self.truncate(0);
        self.set_run(Run::NONE);
        self.next.store(None);
        self.parent.store(None);
        let suffixes = self.suffixes();
        self.suffixes.store(ptr::null_mut(), Ordering::Release);
        if let Some(bag) = suffixes {
            // SAFETY: it was made with the tree's account, and this node, the only one that did, refers to it no more.
            unsafe { bag.retire(guard, account) };
        }
        locked.unlock_as_root();
    }

    /// Frees the node and its bag of suffixes, which nobody else has ever seen.
    ///
    /// # Safety
    /// The node came from [`Node::allocate`] with this account, was never published, and is not used again.
    pub(crate) unsafe fn free_with_suffixes(&self, guard: &Guard<'_>, account: AccountId) {
        let suffixes = self.suffixes();
        // SAFETY: the caller's promise; the bag was made with the same account and only this node refers to it.
        unsafe {
            if let Some(bag) = suffixes {
                bag.free(guard, account);
            }
            self.free(guard, account);
        }
    }

    /// Frees the node and its bag of suffixes once no reader can hold them any more.
    ///
    /// # Safety
    /// The node came from [`Node::allocate`] with this account, no link leads to it any more, and it is retired once.
    pub(crate) unsafe fn retire_with_suffixes(&self, guard: &Guard<'_>, account: AccountId) {
        let suffixes = self.suffixes();
        // SAFETY: the caller's promise; the bag was made with the same account and only this node refers to it.
        unsafe {
            if let Some(bag) = suffixes {
                bag.retire(guard, account);
            }
            self.retire(guard, account);
        }
    }
}

/// Room for twice as many suffixes of the same mean length, at most for all that a node can have.
fn bag_capacity(words: usize, count: usize) -> usize {
    let mean = words.div_ceil(count);
    let more = (count.max(2)).min(WIDTH.saturating_sub(count));
    words + mean * more
}
