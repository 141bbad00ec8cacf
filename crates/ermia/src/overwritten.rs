//! The versions that a session has overwritten: it frees them when nobody needs them any more.
//!
//! As a rule that is when every transaction sees the newer ones. Where some have begun [long ago](LongReaders), what these do not need is taken
//! out of its chain, and what one of them needs is set aside until that one has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use ensilo_engine::{Store as _, TableId};

use crate::horizon::Horizon;
use crate::isolation::{Fault, Isolation, has_fault};
use crate::long_readers::{Fate, LongReaders};
use crate::oid_array::Oid;
use crate::shared::ErmiaShared;
use crate::stamp::Stamp;
use crate::store::{ErmiaStore, lock};
use crate::version::Version;

/// A version that was overwritten.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Overwritten<I: Isolation> {
    pub(crate) version: Version<I>,
    /// The stamp of the version that has overwritten it.
    pub(crate) stamp: Stamp,
    /// Of its record.
    pub(crate) oid: Oid,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OverwrittenVersions<I: Isolation> {
    /// In the order of their stamps.
    recent: VecDeque<Overwritten<I>>,
    /// Those that a long reader needs, by where it has begun.
    needed: Vec<(Stamp, VecDeque<Overwritten<I>>)>,
    /// Those that one has needed that has ended.
    returned: VecDeque<Overwritten<I>>,
    /// How many times long readers had ended by the last look at them.
    ends_seen: u64,
}

impl<I: Isolation> OverwrittenVersions<I> {
    pub(crate) fn new() -> Self {
        OverwrittenVersions {
            recent: VecDeque::new(),
            needed: Vec::new(),
            returned: VecDeque::new(),
            ends_seen: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.needed.is_empty() && self.returned.is_empty()
    }

    /// Takes over one that was overwritten last.
    #[inline]
    pub(crate) fn add(&mut self, overwritten: Overwritten<I>) {
        self.recent.push_back(overwritten);
    }

    /// Returns the next one that every transaction is past, if the horizon is here.
    #[inline]
    pub(crate) fn pop_before(&mut self, horizon: Stamp) -> Option<Version<I>> {
        self.recent.pop_front_if(|next| next.stamp < horizon).map(|next| next.version)
    }

    /// Returns whether [`pop_before`](OverwrittenVersions::pop_before) would return one.
    #[inline]
    pub(crate) fn has_before(&self, horizon: Stamp) -> bool {
        self.recent.front().is_some_and(|next| next.stamp < horizon)
    }

    /// Returns whether some may be in the way of long readers, or were needed by one that has ended.
    #[inline]
    pub(crate) fn may_be_in_the_way(&self, horizon: &Horizon) -> bool {
        self.recent.front().is_some_and(|next| horizon.may_be_in_the_way(next.stamp))
            || !self.returned.is_empty()
            || (!self.needed.is_empty() && horizon.long_readers_ended() != self.ends_seen)
    }

    /// Goes over some that may be in the way of long readers, at most so many, and hands those over that nobody needs: [`Fate::Free`], or
    /// [`Fate::InTheWay`] of some who have found them before. The caller is pinned, and has begun.
    pub(crate) fn clear_the_way(
        &mut self,
        shared: &ErmiaShared,
        budget: usize,
        mut each: impl FnMut(Version<I>, Fate),
    ) {
        let Some(readers) = shared.horizon.try_long_readers() else { return };
        self.take_back(&readers);
        let mut chains = Chains { shared, readers: &readers, stores: Vec::new() };
        for _ in 0..budget {
            let Some(next) = self.returned.pop_front().or_else(|| self.recent.pop_front()) else { return };
            match readers.fate_of(next.version, next.stamp) {
                Fate::NeededBy(reader) => self.set_aside(reader, next),
                Fate::Undecided => return self.recent.push_front(next),
                Fate::InTheWay if !next.version.is_taken_out() && !chains.clear(&next) => {
                    // It stays in the chain until nobody walks as far: some have found the store before it was dropped.
                    self.set_aside(readers.oldest(), next);
                }
                fate => each(next.version, fate),
            }
        }
    }

    /// Goes over those once more that a reader has needed that has ended.
    fn take_back(&mut self, readers: &LongReaders) {
        self.ends_seen = readers.ended();
        for (_, needed) in self.needed.extract_if(.., |(reader, _)| !readers.has(*reader)) {
            self.returned.extend(needed);
        }
    }

    fn set_aside(&mut self, reader: Stamp, overwritten: Overwritten<I>) {
        match self.needed.iter_mut().find(|(of, _)| *of == reader) {
            Some((_, needed)) => needed.push_back(overwritten),
            None => self.needed.push((reader, VecDeque::from([overwritten]))),
        }
    }
}

/// The chains of records, in stores that were found.
struct Chains<'a> {
    shared: &'a ErmiaShared,
    readers: &'a LongReaders,
    stores: Vec<Arc<ErmiaStore>>,
}

impl Chains<'_> {
    /// Takes a version out of its chain, and others that are in the way there. False if the store was dropped.
    fn clear<I: Isolation>(&mut self, overwritten: &Overwritten<I>) -> bool {
        let readers = self.readers;
        let Some(store) = self.store(overwritten.version.record().store()) else { return false };
        readers.clear_chain::<I>(store, overwritten.oid);
        let is_taken_out = overwritten.version.is_taken_out() || has_fault::<I>(Fault::OverwriteUncommitted);
        assert!(is_taken_out, "a version is in its chain until nobody needs it");
        true
    }

    fn store(&mut self, id: TableId) -> Option<&ErmiaStore> {
        let known = self.stores.iter().position(|store| store.id() == id);
        let at = known.or_else(|| {
            self.stores.push(Arc::clone(lock(&self.shared.stores).get(&id)?));
            Some(self.stores.len() - 1)
        })?;
        // Behind the pin of the caller.
        Some(&*self.stores[at]).filter(|store| !store.is_dropped())
    }
}
