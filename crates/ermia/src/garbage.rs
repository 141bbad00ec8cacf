//! What a session has to free: versions that were overwritten, deleted records, and their identifiers.
//!
//! A version that was overwritten belongs to the session that has overwritten it, which frees it once every transaction sees the newer one:
//! who sees a version does not ask for the one behind it, so that the link to it may be left as it is. One that is in the way of
//! [long readers](crate::long_readers::LongReaders) goes before that.

use std::collections::VecDeque;
use std::ptr::NonNull;

use ensilo_engine::{Failpoint, Store as _, WorkerCounters};
use ensilo_epoch::{Epoch, Guard};
use ensilo_slab::OutOfMemory;
use ensilo_sync::atomic::Ordering;

use crate::deletions::{Deletion, Deletions};
use crate::isolation::{Certificates, Isolation};
use crate::long_readers::Fate;
use crate::oid_array::{DEAD, Oid};
use crate::overwritten::{Overwritten, OverwrittenVersions};
use crate::shared::ErmiaShared;
use crate::stamp::Stamp;
use crate::store::ErmiaStore;
use crate::version::Version;

/// What a transaction frees at most when it begins.
const BUDGET: usize = 64;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Garbage<I: Isolation> {
    overwritten: OverwrittenVersions<I>,
    /// In a box: models run on small stacks.
    deletions: Box<Deletions<I>>,
    unreachable: Unreachable<I>,
    /// Identifiers that may be used, by store.
    free: Vec<(NonNull<ErmiaStore>, Vec<Oid>)>,
}

// SAFETY: the addresses of stores are used under a pin, on whatever thread the session is by then.
unsafe impl<I: Isolation> Send for Garbage<I> {}

impl<I: Isolation> Garbage<I> {
    pub(crate) fn new() -> Self {
        Garbage {
            overwritten: OverwrittenVersions::new(),
            deletions: Box::new(Deletions::new()),
            unreachable: Unreachable { versions: VecDeque::new(), records: VecDeque::new() },
            free: Vec::new(),
        }
    }

    /// Takes over a version.
    pub(crate) fn add_overwritten(&mut self, overwritten: Overwritten<I>, counters: &WorkerCounters) {
        counters.version_kept(overwritten.version.record().block().1.size());
        self.overwritten.add(overwritten);
    }

    /// Takes over a record that a commit at `stamp` has deleted by `version`.
    pub(crate) fn add_deletion(
        &mut self,
        stamp: Stamp,
        record: (NonNull<ErmiaStore>, Oid),
        key: &[u8],
        version: Version<I>,
        counters: &WorkerCounters,
    ) {
        counters.unhook_waits();
        self.deletions.add(Deletion::new(stamp, record, key.into(), version));
    }

    /// Returns whether there is nothing to free, now or later.
    pub(crate) fn is_empty(&self) -> bool {
        self.overwritten.is_empty()
            && self.deletions.is_empty()
            && self.unreachable.versions.is_empty()
            && self.unreachable.records.is_empty()
    }

    /// Returns how many versions wait for those who may have found them.
    #[cfg(all(test, loom))]
    pub(crate) fn retired_len(&self) -> usize {
        self.unreachable.versions.len()
    }

    /// Returns whether something can be freed.
    #[inline]
    pub(crate) fn is_ripe(&self, shared: &ErmiaShared) -> bool {
        self.has_ripe_versions(shared)
            || self.overwritten.may_be_in_the_way(&shared.horizon)
            || self.unreachable.are_ripe(shared)
    }

    /// Returns whether a version can be freed that every transaction is past, or a deletion may end.
    #[inline]
    fn has_ripe_versions(&self, shared: &ErmiaShared) -> bool {
        self.overwritten.has_before(shared.horizon.get()) || self.deletions.are_ripe(&shared.horizon)
    }

    /// Frees a bounded amount. The caller is pinned, and has begun.
    #[cold]
    pub(crate) fn collect(&mut self, shared: &ErmiaShared, guard: &Guard<'_>, counters: &WorkerCounters) {
        let _epochs = crate::region::epochs();
        self.free_overwritten(shared, guard, counters);
        let unreachable = &mut self.unreachable;
        let take_out = |deletion: &_| unreachable.take_out(shared, guard, deletion, counters);
        let ended = self.deletions.go_over(&shared.horizon, BUDGET, take_out);
        (0..ended).for_each(|_| counters.unhook_ended());
        let look_horizon = shared.horizon.look_horizon();
        for _ in 0..BUDGET {
            let retired = self.unreachable.versions.pop_front_if(|(epoch, _)| *epoch < look_horizon);
            let Some((_, version)) = retired else { break };
            // SAFETY: it was retired: whoever may have found it has ceased to look since.
            unsafe { free(version, guard, counters) }
        }
        let memory_horizon = shared.epochs.memory_horizon();
        for _ in 0..BUDGET {
            let dead = self.unreachable.records.pop_front_if(|(epoch, ..)| *epoch < memory_horizon);
            let Some((_, store, oid)) = dead else { break };
            self.free_list(store).push(oid);
        }
    }

    /// Frees versions that every transaction is past, or retires some that nobody needs either.
    fn free_overwritten(&mut self, shared: &ErmiaShared, guard: &Guard<'_>, counters: &WorkerCounters) {
        let horizon = shared.horizon.get();
        for _ in 0..BUDGET {
            let Some(version) = self.overwritten.pop_before(horizon) else { break };
            // SAFETY: every transaction sees a version in front of it, and none looks behind that (V3).
            unsafe { free(version, guard, counters) }
        }
        if !self.overwritten.may_be_in_the_way(&shared.horizon) {
            return;
        }
        let retired = &mut self.unreachable.versions;
        self.overwritten.clear_the_way(shared, BUDGET, |version, fate| match fate {
            // SAFETY: as above.
            Fate::Free => unsafe { free(version, guard, counters) },
            _ => retired.push_back((guard.participant().retire_epoch(), version)),
        });
    }

    /// Frees a version once nobody looks at it any more that may have found it.
    ///
    /// # Safety
    /// Nothing leads to the version any more, and it is retired only this once.
    pub(crate) unsafe fn retire(
        &mut self,
        guard: &Guard<'_>,
        version: Version<I>,
        counters: &WorkerCounters,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.unreachable.retire(guard, version, counters) }
    }

    /// A record is dead and has left its index: its identifier can be used again, once nobody is left who may have found it.
    pub(crate) fn bury(&mut self, guard: &Guard<'_>, store: NonNull<ErmiaStore>, oid: Oid) {
        self.unreachable.bury(guard, store, oid);
    }

    /// Takes over an identifier that nobody else has seen.
    pub(crate) fn give_back(&mut self, store: &ErmiaStore, oid: Oid) {
        self.free_list(NonNull::from(store)).push(oid);
    }

    /// Returns an identifier that is not in use. Its slot holds nothing, or is dead.
    #[inline]
    pub(crate) fn take_oid(&mut self, store: &ErmiaStore) -> Result<Oid, OutOfMemory> {
        let _indirection = crate::region::indirection();
        let free = self.free_list(NonNull::from(store));
        if let Some(oid) = free.pop() {
            return Ok(oid);
        }
        free.extend(store.records().take_block()?.rev());
        Ok(free.remove(free.len() - 1))
    }

    fn free_list(&mut self, store: NonNull<ErmiaStore>) -> &mut Vec<Oid> {
        let at = self.free.iter().position(|(of, _)| *of == store).unwrap_or_else(|| {
            // SAFETY: the engine keeps all of its stores.
            self.free.retain(|(of, _)| !unsafe { of.as_ref() }.is_dropped());
            self.free.push((store, Vec::new()));
            self.free.len() - 1
        });
        &mut self.free[at].1
    }
}

/// What nothing leads to any more.
#[derive(Debug)]
struct Unreachable<I: Isolation> {
    /// Versions, each with the epoch since which that is so.
    versions: VecDeque<(Epoch, Version<I>)>,
    /// Identifiers of records that are gone, each with the epoch in which it was.
    records: VecDeque<(Epoch, NonNull<ErmiaStore>, Oid)>,
}

impl<I: Isolation> Unreachable<I> {
    #[inline]
    fn are_ripe(&self, shared: &ErmiaShared) -> bool {
        self.versions.front().is_some_and(|(epoch, _)| *epoch < shared.horizon.look_horizon())
            || self.records.front().is_some_and(|(epoch, ..)| *epoch < shared.epochs.memory_horizon())
    }

    /// Takes a record out of its index whose newest version is a deletion. False if somebody has put a version over it meanwhile.
    fn take_out(
        &mut self,
        shared: &ErmiaShared,
        guard: &Guard<'_>,
        deletion: &Deletion<I>,
        counters: &WorkerCounters,
    ) -> bool {
        // SAFETY: the engine keeps all of its stores.
        let store = unsafe { deletion.store.as_ref() };
        let (slot, word) = (store.slot(deletion.oid), deletion.version.to_word());
        let remove = || {
            // AcqRel: [head] who finds the slot dead finds the key missing, or waits for that.
            let is_dead = slot.compare_exchange(word, DEAD, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            if is_dead {
                I::reached(Failpoint::UnhookBegun);
                // Not before: until the slot is dead a transaction may put a row over the deletion, give that up, and have read it. Whoever
                // inserts the key comes later than that.
                let readers = deletion.version.certificates().map_or(Stamp::ZERO, Certificates::predecessor);
                store.index().remove_if(
                    &deletion.key,
                    deletion.oid.index_value(),
                    deletion.stamp.max(readers).get(),
                    guard,
                    |_| true,
                );
            }
            (is_dead, is_dead)
        };
        let is_dead = if I::RECORDS_HISTORY {
            // Who has found the slot dead, and asks for the deletion, waits until it is noted.
            shared.recorded_removals.note((store.id(), deletion.key.clone()), deletion.stamp.tid(), remove)
        } else {
            remove().0
        };
        if is_dead {
            // SAFETY: nothing leads to the version any more, and its slot became dead only this once.
            unsafe { self.retire(guard, deletion.version, counters) };
            self.bury(guard, deletion.store, deletion.oid);
        }
        is_dead
    }

    /// # Safety
    /// As [`Garbage::retire`].
    unsafe fn retire(&mut self, guard: &Guard<'_>, version: Version<I>, counters: &WorkerCounters) {
        counters.version_kept(version.record().block().1.size());
        self.versions.push_back((guard.participant().retire_epoch(), version));
    }

    fn bury(&mut self, guard: &Guard<'_>, store: NonNull<ErmiaStore>, oid: Oid) {
        self.records.push_back((guard.participant().retire_epoch(), store, oid));
    }
}

/// Frees a version that was counted.
///
/// # Safety
/// As [`Version::free`].
unsafe fn free<I: Isolation>(version: Version<I>, guard: &Guard<'_>, counters: &WorkerCounters) {
    counters.version_freed(version.record().block().1.size());
    // SAFETY: the caller's promise.
    unsafe { version.free(guard) }
}
