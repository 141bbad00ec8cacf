//! Transactions that began long ago, and what they do not need of what was overwritten since.
//!
//! As long as one of them is under way, [the horizon](crate::horizon) stays where it began, and behind the newest version of a record lie all
//! that were made since. Of these it sees none: it walks over them to the one that it sees. So they are taken out of the middle of the chain.
//!
//! # Invariants
//! R1. Every transaction that is under way, or begins, has begun at one of `begins`, or at `until` or later. What is known stays true: those
//!     that begin later do so later.
//! R2. A version that was made at `c` and overwritten at `o`, before `until`, is needed only by those that have begun behind `c` and no later
//!     than `o`. Once there is none, there never is one.
//! R3. Links of a chain are changed under the lock of these readers alone. While it is held, the horizon stays where it is: what was overwritten
//!     at the horizon or later, and is still in its chain, is not freed.
//!
//! # Memory ordering
//! `[taken-out]` A version is taken out of its chain, and marked, Release; its owner finds the mark, Acquire, and reads the epoch until which
//! somebody may look at it (see [`Horizon::look_horizon`](crate::horizon::Horizon::look_horizon)).
//!
//! # Models
//! `models/long_readers.rs` runs readers, writers and collection under loom, with mistakes that it finds.

use ensilo_sync::atomic::Ordering;

use crate::cold::NOT_PLAIN;
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::stamp::{Author, Clock, Stamp};
use crate::store::ErmiaStore;
use crate::version::Version;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct LongReaders {
    /// Where they have begun, in order.
    begins: Vec<Stamp>,
    until: Stamp,
    /// Of the horizon that was derived last.
    horizon: Stamp,
    /// Where all transactions have begun that were under way by then.
    under_way: Vec<Stamp>,
    /// How many times some have ended.
    ended: u64,
    /// Whether all count as such, however lately they have begun: for tests.
    counts_all: bool,
}

/// What becomes of a version that was overwritten.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody walks as far as that.
    Free,
    /// A transaction needs it that has begun here.
    NeededBy(Stamp),
    /// Nobody needs it, and some walk over it.
    InTheWay,
    /// Others may begin that need it, or its author has committed just now.
    Undecided,
}

impl LongReaders {
    pub(crate) fn new(counts_all: bool) -> Self {
        LongReaders {
            begins: Vec::new(),
            until: Stamp::ZERO,
            horizon: Stamp::ZERO,
            under_way: Vec::new(),
            ended: 0,
            counts_all,
        }
    }

    /// Returns an empty list for where those have begun that are under way.
    pub(crate) fn under_way(&mut self) -> &mut Vec<Stamp> {
        self.under_way.clear();
        &mut self.under_way
    }

    /// Takes over where those have begun that are under way, of whom all are known; those that begin do so at `newest` or later.
    pub(crate) fn renew(&mut self, newest: Stamp, clock: &Clock) {
        let LongReaders { begins, until, under_way, ended, counts_all, .. } = self;
        under_way.sort_unstable();
        under_way.dedup();
        // What has begun long ago by one measure goes on to have, also where the measure changes with the epoch.
        let is_long = |begin| *counts_all || begins.binary_search(&begin).is_ok() || clock.is_long_ago(begin);
        let is_recent = |begin: &Stamp| *begin >= newest || !is_long(*begin);
        let recent = under_way.iter().position(is_recent).unwrap_or(under_way.len());
        *until = under_way.get(recent).copied().unwrap_or(newest).min(newest);
        under_way.truncate(recent);
        if begins.iter().any(|begin| under_way.binary_search(begin).is_err()) {
            *ended += 1;
        }
        std::mem::swap(begins, under_way);
    }

    /// The horizon has moved to this stamp.
    pub(crate) fn note_horizon(&mut self, horizon: Stamp) {
        self.horizon = self.horizon.max(horizon);
    }

    /// Returns the stamp before which a version was overwritten that may be in the way; the first one if none is.
    pub(crate) fn until(&self) -> Stamp {
        if self.begins.is_empty() { Stamp::ZERO } else { self.until }
    }

    /// Returns how many times some have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns where the first one has begun, of those that something is in the way of.
    pub(crate) fn oldest(&self) -> Stamp {
        match self.begins.first() {
            Some(begin) => *begin,
            None => unreachable!("without long readers everything before `until` lies before the horizon"),
        }
    }

    /// Returns whether a transaction that has begun here may be under way.
    pub(crate) fn has(&self, begin: Stamp) -> bool {
        self.begins.binary_search(&begin).is_ok()
    }

    /// Returns what becomes of a version that was overwritten at this stamp.
    pub(crate) fn fate_of<I: Isolation>(&self, version: Version<I>, overwritten: Stamp) -> Fate {
        if overwritten < self.horizon {
            return Fate::Free;
        }
        match version.author() {
            Author::At(created) if overwritten < self.until => {
                self.reader_between(created, overwritten).map_or(Fate::InTheWay, Fate::NeededBy)
            }
            _ => Fate::Undecided,
        }
    }

    /// R2.
    fn reader_between(&self, created: Stamp, overwritten: Stamp) -> Option<Stamp> {
        let behind = self.begins.partition_point(|begin| *begin <= created);
        self.begins.get(behind).copied().filter(|begin| *begin <= overwritten)
    }

    /// Takes the versions of a record out of its chain that are in the way, and marks them. The caller is pinned, has begun, and has found the
    /// store not dropped since.
    pub(crate) fn clear_chain<I: Isolation>(&self, store: &ErmiaStore, oid: Oid) {
        // Acquire: [head].
        let word = store.slot(oid).load(Ordering::Acquire);
        if word & NOT_PLAIN != 0 {
            // All of them see the newest version.
            return;
        }
        // SAFETY: see `ErmiaStore::newest`: the caller has begun.
        let mut newer = unsafe { Version::<I>::from_word(word) };
        while let Some(version) = newer {
            // Behind one without a stamp lies one that is not overwritten, or about to be.
            newer = match version.author() {
                Author::At(stamp) if stamp < self.horizon => return,
                Author::At(stamp) if stamp < self.until => self.clear_behind(version, stamp),
                // SAFETY: R3, the version was overwritten at the horizon or later, if it was; the caller has begun.
                _ => version.older(),
            };
        }
    }

    /// Takes the versions behind this one out, which has this stamp, up to one that is needed. Returns that one.
    fn clear_behind<I: Isolation>(&self, version: Version<I>, stamp: Stamp) -> Option<Version<I>> {
        let first = version.older();
        let (mut older, mut last) = (first, None);
        while let Some(next) = older
            && let Author::At(created) = next.author()
            && self.reader_between(created, stamp).is_none()
        {
            // What lies behind one that was made before the horizon may be freed (R3), and nobody walks there.
            older = if created < self.horizon { None } else { next.older() };
            last = Some(next);
        }
        if last.is_some() {
            version.set_older(older);
            // Behind that: who finds a mark relies on it.
            let mut taken_out = first;
            while let Some(next) = taken_out {
                taken_out = if taken_out == last { None } else { next.older() };
                next.mark_taken_out();
            }
        }
        older
    }
}
