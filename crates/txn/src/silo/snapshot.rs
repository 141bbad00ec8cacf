//! A read-only transaction on a recent consistent point of the serial order.
//!
//! # Source
//! Silo (SOSP 2013) §4.9. A snapshot at epoch `s` shows, for every key, the newest version with an epoch *before* `s`: with
//! the paper's "at most `s`", its rule that a version may be overwritten by one of the same snapshot interval
//! would destroy what the snapshot shows.
//!
//! A record that was deleted since is no longer in the tree of its store: it stands in the second tree, where a snapshot looks for what it
//! has missed in the first. A record goes into the second before it leaves the first, so a snapshot that looks into the first first
//! finds it in one of them.

mod scan;

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use ensilo_engine::history::recorded_range;
use ensilo_engine::{Abort, AbortReason, Direction, Fault, KeyBounds, Read, RowRef, Tid};
use ensilo_epoch::{Epoch, ExclusiveGuard, Participant};
use ensilo_index::{Lookup, NodeStamp};
use ensilo_sync::Backoff;

use self::scan::{NextDeleted, SnapshotScan};
use super::context::Context;
use super::node_set::latest_removal;
use super::variant::{Variant, has_fault};
use crate::handle::RecordHandle;
use crate::record::RecordPtr;
use crate::shared::SiloShared;
use crate::store::Store;
use crate::tid::TidWord;

/// A read-only transaction that never conflicts with others: it validates nothing and aborts only when it has grown older
/// than the limit.
pub struct Snapshot<'w, V: Variant> {
    shared: &'w SiloShared,
    guard: ExclusiveGuard<'w>,
    context: &'w mut Context,
    epoch: Epoch,
    /// How many snapshot epochs there had been.
    begun_at: u64,
    /// The latest epoch of the versions that were read, deletions that have left the tree included.
    latest_seen: Epoch,
    variant: PhantomData<V>,
}

impl<'w, V: Variant> Snapshot<'w, V> {
    #[inline]
    pub(crate) fn begin(
        shared: &'w SiloShared,
        participant: &'w mut Participant,
        context: &'w mut Context,
    ) -> Self {
        assert!(V::SNAPSHOTS, "this variant keeps no versions for snapshots");
        let (guard, epoch) = participant.pin_snapshot_exclusively();
        let begun_at = guard.epochs().snapshots();
        context.number = context.number.next();
        Snapshot { shared, guard, context, epoch, begun_at, latest_seen: Epoch::new(0), variant: PhantomData }
    }

    /// Returns the snapshot epoch: the snapshot shows the database before the first commit of it.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    #[inline]
    fn check(&self, store: &Store) -> Result<(), Abort> {
        let age = self.guard.epochs().snapshots() - self.begun_at;
        if age > self.shared.snapshot_age_max {
            return Err(Abort::new(AbortReason::SnapshotTooOld, store.id(), &[]));
        }
        store.check()
    }

    /// Looks many keys up, and calls `each` with what this snapshot shows of every key until it breaks.
    fn resolve_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &Store,
        keys: &[K],
        mut decode: impl FnMut(usize, RowRef<'_>) -> R,
        mut each: impl FnMut(usize, Option<(RecordHandle, R)>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.check(store)?;
        let mut lookups = std::mem::take(&mut self.context.lookups);
        lookups.look_up(store.index(), keys, &self.guard, &mut self.context.held)?;
        for (at, (key, lookup)) in keys.iter().zip(lookups.iter()).enumerate() {
            let shown = self.resolve(store, key.as_ref(), lookup, |row| decode(at, row));
            if each(at, shown).is_break() {
                break;
            }
        }
        self.context.lookups = lookups;
        // A snapshot holds nothing else.
        self.context.lookups.clear();
        self.context.held.release();
        Ok(())
    }

    /// Turns what the tree says about `key` into what this snapshot shows.
    #[inline]
    fn resolve<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        lookup: Lookup,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Option<(RecordHandle, R)> {
        match lookup {
            Lookup::Found(value) => {
                // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
                let record = unsafe { RecordPtr::from_index_value(value) };
                let (word, value) = version_at(record, self.epoch, &mut decode);
                if word.tid() == Tid::ZERO {
                    // It came into the tree later. What was there before may have been deleted.
                    self.note_latest(Tid::from_raw(store.index().latest_removal_near(key, &self.guard)));
                    return self.find_deleted(store, key, decode);
                }
                self.latest_seen = self.latest_seen.max(word.tid().epoch());
                if V::RECORDS_HISTORY {
                    self.context.record_read(record, key, word);
                }
                value.map(|value| (self.context.handle(record, 0), value))
            }
            Lookup::Missing(stamp) => {
                self.note_removal(stamp);
                self.find_deleted(store, key, decode)
            }
        }
    }

    /// Looks for a key among the deleted records.
    fn find_deleted<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Option<(RecordHandle, R)> {
        let shown = match store.deleted().get(key, &self.guard) {
            Lookup::Found(value) => self.resolve_deleted(key, value, decode),
            Lookup::Missing(_) => None,
        };
        if V::RECORDS_HISTORY && shown.is_none() {
            self.context.recording.missing.push((store.id(), key.into()));
        }
        shown
    }

    /// Turns a value of the tree of deleted records into what this snapshot shows: the row, if it was deleted later. If not, this deletion
    /// need not be the last one that the snapshot covers: of a row that came and went since, nothing is kept.
    fn resolve_deleted<R>(
        &mut self,
        key: &[u8],
        value: u64,
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Option<(RecordHandle, R)> {
        if has_fault::<V>(Fault::ForgetDeleted) {
            return None;
        }
        // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
        let record = unsafe { RecordPtr::from_index_value(value) };
        let (word, value) = version_at(record, self.epoch, decode);
        self.latest_seen = self.latest_seen.max(word.tid().epoch());
        let value = value?;
        if V::RECORDS_HISTORY {
            self.context.record_read(record, key, word);
        }
        Some((self.context.handle(record, 0), value))
    }

    /// Notes that deletions have left the node's range. Those of this snapshot's time are part of what it shows.
    #[inline]
    fn note_removal(&mut self, stamp: NodeStamp) {
        // SAFETY: the stamp was reported under a guard of this participant, which is pinned as long as this snapshot lasts.
        self.note_latest(unsafe { latest_removal(stamp.node, &self.guard) });
    }

    fn note_latest(&mut self, latest: Tid) {
        let last = Epoch::new(self.epoch.get() - 1);
        self.latest_seen = self.latest_seen.max(latest.epoch().min(last));
    }
}

/// Returns the newest version of a record before `epoch`: its TID word and, if the key existed, what `decode` made of its row.
#[inline]
pub(super) fn version_at<R>(
    newest: RecordPtr,
    epoch: Epoch,
    mut decode: impl FnMut(RowRef<'_>) -> R,
) -> (TidWord, Option<R>) {
    // Where the row of `version` lies: a mark has none of its own (I4 of a record).
    let (mut version, mut holder) = (newest, newest);
    let mut backoff = Backoff::new();
    loop {
        let word = version.tid();
        if word.tid().epoch() >= epoch {
            // Too new, whether or not a writer is at work on it. If one moves this very version aside between the load above
            // and the one below, the link leads to its copy, which is too new as well, and on to the same older version.
            match version.previous() {
                Some(older) => {
                    holder = if older.is_mark() { version } else { older };
                    version = older;
                }
                None => return (TidWord::PLACEHOLDER, None),
            }
        } else if word.is_locked() && !word.is_prepared() {
            // A writer is about to supersede the version we want, or to give up. One that is prepared has not begun: the version stands
            // until its decision, which changes the word before the row, and chooses an epoch that this snapshot does not show.
            backoff.wait();
        } else if word.is_absent() {
            return (word, None);
        } else {
            let value = decode(holder.row().committed_in(word.tid().epoch()));
            if version.is_still(word) {
                return (word, Some(value));
            }
        }
    }
}

impl<V: Variant> Read for Snapshot<'_, V> {
    type Store = Store;
    type Found = RecordHandle;

    #[inline]
    fn has_found(&self, found: RecordHandle) -> bool {
        self.context.has_found(found)
    }

    #[inline]
    fn find(&mut self, store: &Store, key: &[u8]) -> Result<Option<RecordHandle>, Abort> {
        self.check(store)?;
        let lookup = store.index().get(key, &self.guard);
        Ok(self.resolve(store, key, lookup, |_| ()).map(|(found, ())| found))
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &Store,
        keys: &[K],
        mut each: impl FnMut(usize, Option<RecordHandle>),
    ) -> Result<(), Abort> {
        self.resolve_many(
            store,
            keys,
            |_, _| (),
            |at, seen| {
                each(at, seen.map(|(found, ())| found));
                ControlFlow::Continue(())
            },
        )
    }

    #[inline]
    fn read<R>(&mut self, found: RecordHandle, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.context.refuse_others(found);
        let (_, value) = version_at(found.record, self.epoch, decode);
        let Some(value) = value else { unreachable!("what a snapshot has found stays what it is") };
        Ok(value)
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        self.check(store)?;
        let lookup = store.index().get(key, &self.guard);
        Ok(self.resolve(store, key, lookup, decode).map(|(_, value)| value))
    }

    fn get_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &Store,
        keys: &[K],
        decode: impl FnMut(usize, RowRef<'_>) -> R,
        mut each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.resolve_many(store, keys, decode, |at, seen| each(at, seen.map(|(_, value)| value)))
    }

    fn scan<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(RecordHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.check(store)?;
        let deleted = NextDeleted::new(bounds, direction);
        let mut scan = SnapshotScan {
            snapshot: self,
            store,
            decode,
            each,
            deleted,
            stopped_at: None,
            is_over: false,
            failed: None,
        };
        scan.run(bounds, direction);
        let (stopped_at, failed) = (scan.stopped_at.take(), scan.failed.take());
        if let Some(abort) = failed {
            return Err(abort);
        }
        if V::RECORDS_HISTORY {
            let range = recorded_range(store.id(), bounds, direction, stopped_at.as_deref());
            self.context.recording.ranges.push(range);
        }
        Ok(())
    }

    #[inline]
    fn largest_epoch_seen(&self) -> Epoch {
        self.latest_seen
    }
}

impl<V: Variant> Drop for Snapshot<'_, V> {
    fn drop(&mut self) {
        self.context.counters.count_snapshot();
        if V::RECORDS_HISTORY {
            self.context.record_snapshot(self.epoch);
        }
    }
}

impl<V: Variant> fmt::Debug for Snapshot<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
