//! What a scan takes along from a border node.

use std::ptr;

use ensilo_sync::prefetch;

use crate::WIDTH;
use crate::border::Border;
use crate::key::{has_bytes, leads_to_a_layer};
use crate::node_kind::prefetch_lines;
use crate::suffix::{Suffix, SuffixBag, SuffixEntry};

/// An entry of a copied node.
#[derive(Debug, Copy, Clone, Default)]
pub(crate) struct Entry {
    pub(crate) slice: u64,
    pub(crate) value: u64,
    suffix: SuffixEntry,
    pub(crate) kind: u8,
}

/// A copy of a border node's slots in key order. It is consistent if the node's version did not change meanwhile; then it stays
/// usable as long as the guard lives, whatever becomes of the node.
#[derive(Debug)]
pub(crate) struct LeafCopy<'g> {
    entries: [Entry; WIDTH],
    len: usize,
    bag: Option<SuffixBag<'g>>,
    next: Option<&'g Border>,
}

impl<'g> LeafCopy<'g> {
    pub(crate) fn new() -> Self {
        LeafCopy { entries: [Entry::default(); WIDTH], len: 0, bag: None, next: None }
    }

    /// Copies a node that others may be changing.
    #[inline]
    pub(crate) fn take(&mut self, border: &'g Border) {
        let slots = border.permuter().slots();
        self.len = slots.len();
        self.next = border.next.load();
        self.bag = border.suffixes();
        for (entry, slot) in self.entries.iter_mut().zip(slots) {
            let kind = border.kind(slot);
            let suffix = match self.bag {
                Some(bag) if has_bytes(kind) => bag.entry(slot),
                _ => SuffixEntry::default(),
            };
            *entry = Entry { slice: border.slice(slot), value: border.value(slot), suffix, kind };
        }
    }

    #[inline]
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[..self.len]
    }

    /// Returns the node behind it.
    #[inline]
    pub(crate) fn next(&self) -> Option<&'g Border> {
        self.next
    }

    /// Returns the suffix of an entry of kind `SUFFIX`, or the path of one of kind `PATH`.
    #[inline]
    pub(crate) fn suffix(&self, entry: Entry) -> Suffix<'g> {
        let bag = self.bag.unwrap_or_else(|| panic!("a node with suffixes has a bag"));
        bag.follow(entry.suffix)
    }
}

impl Entry {
    /// Starts to load what lies behind the value: where a record begins, or a whole node.
    #[inline]
    pub(crate) fn prefetch(self) {
        let address = ptr::without_provenance(self.value as usize);
        if leads_to_a_layer(self.kind) { prefetch_lines(address) } else { prefetch(address) }
    }
}
