//! The read set: the versions that a transaction has read, for the serial safety net.

use ensilo_engine::Abort;
use ensilo_engine::parts::{HeldMemory, SetBuffer, spread};

use crate::isolation::Isolation;
use crate::version::Version;

/// A transaction that has read more is a long one: those of a short one stay in the cache from when they are read until the commit.
const SHORT_MAX: usize = 1000;

/// How many versions ahead of it a walk over the set of a long transaction loads into the cache.
const AHEAD: usize = 8;

/// So many versions a long transaction remembers to have noted, as a power of two.
const REMEMBERED_BITS: u32 = 12;

/// A version that was read, or one that was passed over where there was none to be seen.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ReadEntry<I: Isolation> {
    pub(crate) version: Version<I>,
    /// The version is an insert that was not committed when the transaction began: what was read is that the key was missing.
    pub(crate) is_passed_over: bool,
}

/// See the module's documentation. A long transaction often reads the same versions again, and notes most of them once.
#[derive(Debug)]
pub(crate) struct ReadSet<I: Isolation> {
    entries: SetBuffer<ReadEntry<I>>,
    /// Words of entries, each where its address says, for those noted last; empty until there is a long transaction, and 0 between them.
    remembered: Vec<u64>,
}

impl<I: Isolation> ReadSet<I> {
    pub(crate) fn new() -> Self {
        ReadSet { entries: SetBuffer::new(), remembered: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry, unless it is remembered to be there.
    #[inline]
    pub(crate) fn add(&mut self, entry: ReadEntry<I>, held: &mut HeldMemory) -> Result<(), Abort> {
        if self.entries.len() > SHORT_MAX && self.remembers(entry) {
            return Ok(());
        }
        self.entries.push(entry, held).map(|_| ())
    }

    /// Returns whether the entry is remembered, and remembers it.
    fn remembers(&mut self, entry: ReadEntry<I>) -> bool {
        if self.remembered.is_empty() {
            self.remembered.resize(1 << REMEMBERED_BITS, 0);
        }
        // The low bits of an address are 0.
        let word = entry.version.to_word() | u64::from(entry.is_passed_over);
        let at = spread(word as usize) >> (u64::BITS - REMEMBERED_BITS);
        std::mem::replace(&mut self.remembered[at as usize], word) == word
    }

    /// Returns the entries in the order in which they were added. A long transaction has read them long ago: headers of versions that come
    /// soon are loaded ahead.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ReadEntry<I>> {
        let entries = &*self.entries;
        let mut ahead = if entries.len() > SHORT_MAX { &entries[AHEAD..] } else { &[] }.iter();
        entries.iter().inspect(move |_| {
            if let Some(soon) = ahead.next() {
                soon.version.record().prefetch_header();
            }
        })
    }

    /// Empties the set.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.entries.len() > SHORT_MAX {
            self.remembered.fill(0);
        }
        self.entries.clear();
    }
}
