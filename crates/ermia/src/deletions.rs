//! The deletions that a session has committed: each record leaves its index when every transaction is past its deletion.
//!
//! Where some transactions have begun [long ago](crate::long_readers::LongReaders), a deletion waits for them, unless somebody has put a new version over
//! it: then it ends when it is looked at. Where one is kept, two of those kept before are looked at. So beside a long reader a session has no more than
//! some two times as many as were ever deleted, and not overwritten, at one time.

use std::collections::VecDeque;
use std::ptr::NonNull;

use ensilo_epoch::Epoch;

use crate::horizon::Horizon;
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::stamp::{Author, Stamp};
use crate::store::ErmiaStore;
use crate::version::Version;

/// A record that was deleted.
#[derive(Debug)]
pub(crate) struct Deletion<I: Isolation> {
    /// That of the commit: the record can leave its index when the horizon is past it.
    pub(crate) stamp: Stamp,
    pub(crate) store: NonNull<ErmiaStore>,
    pub(crate) oid: Oid,
    pub(crate) key: Box<[u8]>,
    pub(crate) version: Version<I>,
}

/// What has become of a deletion.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// It is the newest version of its record.
    Newest,
    /// Somebody has put a version over it who may still give up.
    Covered,
    /// A later version was committed, or the record or its store is gone: there is nothing to take out of the index.
    Over,
}

impl<I: Isolation> Deletion<I> {
    pub(crate) fn new(
        stamp: Stamp,
        (store, oid): (NonNull<ErmiaStore>, Oid),
        key: Box<[u8]>,
        version: Version<I>,
    ) -> Self {
        Deletion { stamp, store, oid, key, version }
    }

    /// The caller is pinned, and has begun.
    fn standing(&self) -> Standing {
        // SAFETY: the engine keeps all of its stores.
        let store = unsafe { self.store.as_ref() };
        if store.is_dropped() {
            return Standing::Over;
        }
        // A slot without a version that stays in memory is dead, or its row was committed long ago: no deletion leaves memory.
        let Some(newest) = store.in_memory::<I>(self.oid) else { return Standing::Over };
        match newest.author() {
            // Another version may lie where the deletion did: it has another stamp.
            Author::At(created) if created == self.stamp => Standing::Newest,
            Author::At(created) if created > self.stamp && created != Stamp::NEVER => Standing::Over,
            // What is seen by nobody gives the place back.
            _ => Standing::Covered,
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Deletions<I: Isolation> {
    /// In the order of their stamps.
    recent: VecDeque<Deletion<I>>,
    /// Those that wait for long readers, in no order.
    kept: VecDeque<Deletion<I>>,
    /// The smallest stamp of those kept, or a smaller one.
    kept_since: Stamp,
    /// How many of those kept, from the front on, are still to be looked at in a round, since some may be past.
    round_left: usize,
    /// The smallest stamp of those that the round leaves, and of those that have come since it began.
    round_since: Stamp,
    /// Those that every transaction is past, but for those who have covered them, in no order.
    covered: VecDeque<Deletion<I>>,
    /// How many of those covered, from the front on, are still to be looked at behind this tick of the horizon.
    covered_left: usize,
    covered_tick: Epoch,
}

impl<I: Isolation> Deletions<I> {
    pub(crate) fn new() -> Self {
        Deletions {
            recent: VecDeque::new(),
            kept: VecDeque::new(),
            kept_since: Stamp::NEVER,
            round_left: 0,
            round_since: Stamp::NEVER,
            covered: VecDeque::new(),
            covered_left: 0,
            covered_tick: Epoch::new(0),
        }
    }

    /// Takes one over that was committed last.
    pub(crate) fn add(&mut self, deletion: Deletion<I>) {
        self.recent.push_back(deletion);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether some may end.
    #[inline]
    pub(crate) fn are_ripe(&self, horizon: &Horizon) -> bool {
        let past = horizon.get();
        self.recent.front().is_some_and(|next| next.stamp < past || horizon.may_be_in_the_way(next.stamp))
            || self.kept_since < past
            || self.covered_left > 0
            || self.are_covered_due(horizon)
    }

    /// Those who have covered deletions are not asked all the time.
    #[inline]
    fn are_covered_due(&self, horizon: &Horizon) -> bool {
        !self.covered.is_empty() && self.covered_tick != horizon.tick()
    }

    /// Goes over some, and ends those that can end, where `take_out` takes records out that every transaction has seen deleted: it returns whether
    /// that has succeeded. Returns how many have ended. The caller is pinned, and has begun.
    pub(crate) fn go_over(
        &mut self,
        horizon: &Horizon,
        budget: usize,
        mut take_out: impl FnMut(&Deletion<I>) -> bool,
    ) -> usize {
        let (past, before) = (horizon.get(), self.len());
        self.begin_rounds(horizon);
        for _ in 0..budget.min(self.covered_left) {
            let Some(deletion) = self.covered.pop_front() else { break };
            self.covered_left -= 1;
            self.end_or_keep(past, deletion, &mut take_out);
        }
        let mut looks = budget.min(self.round_left);
        for _ in 0..budget {
            let is_due = |next: &mut Deletion<I>| next.stamp < past || horizon.may_be_in_the_way(next.stamp);
            let Some(deletion) = self.recent.pop_front_if(is_due) else { break };
            self.end_or_keep(past, deletion, &mut take_out);
            // More than come: what was overwritten since it was kept is found.
            looks += 2;
        }
        for _ in 0..looks.min(self.kept.len()) {
            let Some(deletion) = self.kept.pop_front() else { break };
            self.end_or_keep(past, deletion, &mut take_out);
            self.note_look();
        }
        self.give_back();
        before - self.len()
    }

    fn len(&self) -> usize {
        self.recent.len() + self.kept.len() + self.covered.len()
    }

    fn begin_rounds(&mut self, horizon: &Horizon) {
        if self.round_left == 0 && self.kept_since < horizon.get() {
            (self.round_left, self.round_since) = (self.kept.len(), Stamp::NEVER);
        }
        if self.covered_left == 0 && self.are_covered_due(horizon) {
            (self.covered_left, self.covered_tick) = (self.covered.len(), horizon.tick());
        }
    }

    fn end_or_keep(
        &mut self,
        past: Stamp,
        deletion: Deletion<I>,
        take_out: &mut impl FnMut(&Deletion<I>) -> bool,
    ) {
        let is_past = deletion.stamp < past;
        let is_over = match deletion.standing() {
            Standing::Over => true,
            Standing::Newest => is_past && take_out(&deletion),
            Standing::Covered => false,
        };
        if is_over {
            return;
        }
        if is_past {
            self.covered.push_back(deletion);
        } else {
            self.kept_since = self.kept_since.min(deletion.stamp);
            self.round_since = self.round_since.min(deletion.stamp);
            self.kept.push_back(deletion);
        }
    }

    /// Notes that the first of those kept was looked at.
    fn note_look(&mut self) {
        if self.round_left > 0 {
            self.round_left -= 1;
            if self.round_left == 0 {
                self.kept_since = self.round_since;
            }
        }
    }

    /// Gives memory back that was needed beside a long reader.
    fn give_back(&mut self) {
        if self.kept.is_empty() && self.covered.is_empty() {
            *self = Deletions { recent: std::mem::take(&mut self.recent), ..Deletions::new() };
        }
    }
}
