//! The deletions that a session has committed: each record leaves its index when every transaction is past its deletion.
//!
//! Where some transactions have begun [long ago](crate::long_readers::LongReaders), a deletion waits for them, unless somebody has put a new version over
//! it: then it ends when it is looked at. Where one is kept, two of those kept before are looked at. So beside a long reader a session has no more than
//! some two times as many as were ever deleted, and not overwritten, at one time.

use std::collections::VecDeque;
use std::ptr::NonNull;

use crate::horizon::Horizon;
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::stamp::{Author, Stamp};
use crate::store::ErmiaStore;
use crate::version::Version;

/// A record that was deleted.
#[derive(Debug)]
pub(crate) struct Deletion<I: Isolation> {
    /// That of the commit.
    pub(crate) stamp: Stamp,
    pub(crate) store: NonNull<ErmiaStore>,
    pub(crate) oid: Oid,
    pub(crate) key: Box<[u8]>,
    pub(crate) version: Version<I>,
}

impl<I: Isolation> Deletion<I> {
    /// Returns whether somebody has committed a version over the deletion, or the store was dropped: then there is nothing to take out of the
    /// index. The caller is pinned, and has begun.
    fn is_overwritten(&self) -> bool {
        // SAFETY: the engine keeps all of its stores.
        let store = unsafe { self.store.as_ref() };
        if store.is_dropped() {
            return true;
        }
        // Another version may lie where the deletion did: it has another stamp. What is seen by nobody gives the place back to the deletion.
        let is_later = |created: Stamp| created > self.stamp && created != Stamp::NEVER;
        let newest = store.in_memory::<I>(self.oid);
        newest.is_some_and(|newest| matches!(newest.author(), Author::At(created) if is_later(created)))
    }
}

/// How a deletion ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeletionEnd {
    /// Every transaction is past it: the record can leave its index.
    Past,
    /// It was overwritten.
    Overwritten,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Deletions<I: Isolation> {
    /// In the order in which they came, which is that of their stamps but for those that were [given back](Deletions::add).
    recent: VecDeque<Deletion<I>>,
    /// Those that wait for long readers, in no order.
    kept: VecDeque<Deletion<I>>,
    /// The smallest stamp of those kept, or a smaller one.
    kept_since: Stamp,
    /// How many of those kept, from the front on, are still to be looked at in a round, since some may be past.
    round_left: usize,
    /// The smallest stamp of those that the round leaves, and of those that have come since it began.
    round_since: Stamp,
}

impl<I: Isolation> Deletions<I> {
    pub(crate) fn new() -> Self {
        Deletions {
            recent: VecDeque::new(),
            kept: VecDeque::new(),
            kept_since: Stamp::NEVER,
            round_left: 0,
            round_since: Stamp::NEVER,
        }
    }

    /// Takes one over that was committed last, or given back by a transaction that had put a version over it: that one may wait for later ones in
    /// front of it.
    pub(crate) fn add(&mut self, deletion: Deletion<I>) {
        self.recent.push_back(deletion);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.kept.is_empty()
    }

    /// Returns whether some may end.
    #[inline]
    pub(crate) fn are_ripe(&self, horizon: &Horizon) -> bool {
        let past = horizon.get();
        self.recent.front().is_some_and(|next| next.stamp < past || horizon.may_be_in_the_way(next.stamp))
            || self.kept_since < past
    }

    /// Goes over some, and hands those over that end. The caller is pinned, and has begun.
    pub(crate) fn go_over(
        &mut self,
        horizon: &Horizon,
        budget: usize,
        mut end: impl FnMut(Deletion<I>, DeletionEnd),
    ) {
        let past = horizon.get();
        if self.round_left == 0 && self.kept_since < past {
            (self.round_left, self.round_since) = (self.kept.len(), Stamp::NEVER);
        }
        let mut looks = budget.min(self.round_left);
        for _ in 0..budget {
            let is_due = |next: &mut Deletion<I>| next.stamp < past || horizon.may_be_in_the_way(next.stamp);
            let Some(deletion) = self.recent.pop_front_if(is_due) else { break };
            self.end_or_keep(deletion, past, &mut end);
            // More than come: what was overwritten since it was kept is found.
            looks += 2;
        }
        for _ in 0..looks.min(self.kept.len()) {
            let Some(deletion) = self.kept.pop_front() else { break };
            self.end_or_keep(deletion, past, &mut end);
            self.note_look();
        }
    }

    fn end_or_keep(
        &mut self,
        deletion: Deletion<I>,
        past: Stamp,
        end: &mut impl FnMut(Deletion<I>, DeletionEnd),
    ) {
        if deletion.stamp < past {
            end(deletion, DeletionEnd::Past);
        } else if deletion.is_overwritten() {
            end(deletion, DeletionEnd::Overwritten);
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
        if self.kept.is_empty() {
            // What was needed beside a long reader is not needed any more.
            *self = Deletions { recent: std::mem::take(&mut self.recent), ..Deletions::new() };
        }
    }
}
