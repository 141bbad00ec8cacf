//! Where a key is in a border node: for readers without a lock, and for writers under it.

use std::ptr;

use ensilo_sync::prefetch;

use super::Border;
use crate::key::{KeyTail, LAYER, SUFFIX, class_of};
use crate::search::{count_less, equal_words};

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
            LAYER => Probe::Layer(value),
            SUFFIX if !self.suffix_equals(slot, key) => Probe::Missing,
            _ => Probe::Value(value),
        }
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
    #[inline(always)]
    pub(crate) fn content(&self, key: KeyTail<'_>, place: Place) -> Content {
        let Some(slot) = place.slot else { return Content::Nothing };
        match self.kind(slot) {
            LAYER => Content::Layer,
            SUFFIX if !self.suffix_equals(slot, key) => Content::OtherSuffix,
            _ => Content::Value(self.value(slot)),
        }
    }
}
