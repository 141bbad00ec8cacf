//! A read-only transaction on a safe snapshot: it is not tracked, and conflicts with nobody. Cold rows stay where they are, so that it needs no
//! memory for them, however many it reads. However long it lasts, it keeps the versions that it sees, and no others.

use std::fmt;
use std::ops::ControlFlow;

use ensilo_engine::history::recorded_range;
use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, Read, RowRef, Store as _};
use ensilo_epoch::{Epoch, ExclusiveGuard, Participant};
use ensilo_index::{Lookup, NodeStamp, ScanVisitor};

use crate::cold::{ColdRecord, Newest};
use crate::context::{Context, FoundEntry, KeyAt};
use crate::handle::ErmiaHandle;
use crate::isolation::{Isolation, Serializable};
use crate::oid_array::Oid;
use crate::shared::ErmiaShared;
use crate::stamp::Stamp;
use crate::store::ErmiaStore;
use crate::transaction_table::Entry;
use crate::version::Version;

/// A read-only transaction on the newest [safe snapshot](crate). It aborts only when it has grown older than the limit.
pub struct Snapshot<'s, I: Isolation = Serializable> {
    shared: &'s ErmiaShared,
    guard: ExclusiveGuard<'s>,
    context: &'s mut Context<I>,
    entry: &'s Entry,
    begin: Stamp,
    /// How many snapshot epochs there had been.
    begun_at: u64,
}

impl<'s, I: Isolation> Snapshot<'s, I> {
    pub(crate) fn open(
        shared: &'s ErmiaShared,
        participant: &'s mut Participant,
        context: &'s mut Context<I>,
        slot: u16,
    ) -> Self {
        let entry = shared.table.entry(slot);
        let mut begun_at = 0;
        let current = |_: &ExclusiveGuard<'_>| {
            begun_at = shared.epochs.snapshots();
            shared.snapshot.current(&shared.epochs, &shared.clock)
        };
        let (guard, begin) = shared.horizon.enter(entry, || participant.pin_exclusively(), current);
        context.number = context.number.next();
        Snapshot { shared, guard, context, entry, begin, begun_at }
    }

    fn check(&self, store: &ErmiaStore) -> Result<(), Abort> {
        let age = self.shared.epochs.snapshots() - self.begun_at;
        if age > self.shared.snapshot_age_max {
            return Err(Abort::new(AbortReason::SnapshotTooOld, store.id(), &[]));
        }
        store.check(&self.shared.epochs)
    }

    /// Looks at versions from now on.
    #[inline]
    fn look(&self) -> Look<'s> {
        self.entry.begin_look(self.shared.epochs.last_tick());
        self.guard.participant().light_barrier();
        Look(self.entry)
    }

    /// Returns the row of a record that the snapshot shows, for a caller that [looks](Snapshot::look).
    pub(crate) fn see(
        &mut self,
        store: &ErmiaStore,
        oid: Oid,
        key: &[u8],
    ) -> Result<Option<ShownRow<I>>, Abort> {
        let _indirection = crate::region::indirection();
        let newest = self.find_newest(store, oid, key)?;
        if newest.is_none() {
            // The record is dead: its deletion was committed before the snapshot. The index may not say so yet.
            self.context.latest_miss = self.begin.before();
        }
        let Some((row, stamp)) = self.shown_of(newest) else { return Ok(None) };
        self.context.latest_read = self.context.latest_read.max(stamp);
        let is_deletion = row.is_deletion();
        if I::RECORDS_HISTORY {
            self.context.record_read(store.id(), key, stamp, is_deletion);
        }
        Ok(Some(row).filter(|_| !is_deletion))
    }

    #[inline]
    fn find_newest(&self, store: &ErmiaStore, oid: Oid, key: &[u8]) -> Result<Option<Newest<I>>, Abort> {
        let newest = store.find_newest::<I>(oid, self.shared.cold.as_ref());
        newest.map_err(|unreadable| Abort::new(unreadable.into(), store.id(), key))
    }

    /// Returns what the snapshot shows of a record with this newest version, and its stamp.
    #[inline]
    fn shown_of(&self, newest: Option<Newest<I>>) -> Option<(ShownRow<I>, Stamp)> {
        match newest? {
            Newest::InMemory(version) => {
                let shown = Version::visible_from(Some(version), &self.shared.table, self.begin);
                shown.map(|(version, stamp)| (ShownRow::InMemory(version, stamp), stamp))
            }
            // Everybody sees it: C1 of `cold`.
            Newest::Cold(record, _) => {
                let stamp = record.stamp();
                Some((ShownRow::Cold(record), stamp))
            }
        }
    }

    /// Returns the first word of a record's row.
    #[cfg(all(test, loom))]
    pub(crate) fn first_word(&mut self, store: &ErmiaStore, oid: Oid) -> Option<u64> {
        let _look = self.look();
        self.see(store, oid, b"key").unwrap().map(|row| row.read(|row| row.word(0)))
    }

    /// Notes that keys are missing in a node.
    ///
    /// # Safety
    /// The node was reported during the snapshot.
    unsafe fn note_miss(&mut self, stamp: NodeStamp) {
        // SAFETY: the caller's promise: under the snapshot's pin, or another one of the same participant.
        unsafe { self.context.note_miss(stamp.node, self.begin, &self.guard) };
    }

    /// Returns what the snapshot shows where an index has found something, for a caller that [looks](Snapshot::look); or nothing.
    #[inline]
    fn resolve(
        &mut self,
        store: &ErmiaStore,
        key: &[u8],
        lookup: Lookup,
    ) -> Result<Option<(Oid, ShownRow<I>)>, Abort> {
        match lookup {
            Lookup::Found(value) => {
                // SAFETY: the value was read from the store's index, under a pin.
                let oid = unsafe { Oid::from_index_value(value) };
                if let Some(row) = self.see(store, oid, key)? {
                    return Ok(Some((oid, row)));
                }
                // The key may have been deleted, have left the index, and be inserted again.
                let removed = store.index().latest_removal_near(key, &self.guard);
                self.context.note_removal(removed, self.begin);
            }
            // SAFETY: the node was reported under the snapshot's guard.
            Lookup::Missing(stamp) => unsafe { self.note_miss(stamp) },
        }
        if I::RECORDS_HISTORY {
            self.context.record_missing_unless_read(&self.shared.recorded_removals, store.id(), key);
        }
        Ok(None)
    }

    fn add_found(&mut self, store: &ErmiaStore, oid: Oid, row: &ShownRow<I>) -> Result<ErmiaHandle, Abort> {
        let version = match *row {
            ShownRow::InMemory(version, stamp) => Some((version, stamp)),
            ShownRow::Cold(_) => None,
        };
        let entry = FoundEntry { store: store.into(), oid, version, key: KeyAt::default() };
        let at = self.context.found.push(entry, &mut self.context.held)?;
        Ok(ErmiaHandle { number: self.context.number, at })
    }

    /// Looks many keys up, and calls `each` with what `take` makes of the row under every key, until it breaks.
    fn look_up_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &ErmiaStore,
        keys: &[K],
        mut take: impl FnMut(&mut Self, usize, (Oid, ShownRow<I>)) -> Result<R, Abort>,
        mut each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.check(store)?;
        let mut lookups = std::mem::take(&mut self.context.lookups);
        lookups.look_up(store.index(), keys, &self.guard, &mut self.context.held)?;
        let look = self.look();
        store.load_rows::<I>(&lookups);
        drop(look);
        for (at, (key, lookup)) in keys.iter().zip(lookups.iter()).enumerate() {
            let look = self.look();
            let shown = self.resolve(store, key.as_ref(), lookup)?;
            let taken = shown.map(|row| take(self, at, row)).transpose()?;
            // What the caller does takes its time.
            drop(look);
            if each(at, taken).is_break() {
                break;
            }
        }
        self.context.lookups = lookups;
        Ok(())
    }

    /// Passes what `hold` returns for every row, such as a handle, and the value computed from it to `each`.
    fn scan_range<T, R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(T, R) -> ControlFlow<()>,
        hold: impl Fn(&mut Self, Oid, &ShownRow<I>) -> Result<T, Abort>,
    ) -> Result<(), Abort> {
        self.check(store)?;
        // A guard beside that of the snapshot, which is used meanwhile.
        let participant = std::ptr::from_ref(self.guard.participant());
        // SAFETY: the participant outlives the snapshot, which borrows it; the guard ends before the snapshot can move to another thread.
        let guard = unsafe { &*participant }.pin();
        let mut scan =
            SnapshotScan { snapshot: &mut *self, store, decode, each, hold, failed: None, stopped_at: None };
        store.scan(bounds, direction, &guard, &mut scan);
        let (failed, stopped_at) = (scan.failed, scan.stopped_at);
        // A scan that has failed says nothing of the keys behind.
        if I::RECORDS_HISTORY && failed.is_none() {
            let range = recorded_range(store.id(), bounds, direction, stopped_at.as_deref());
            let read = self.context.recording.reads.iter().filter(|read| read.key.0 == range.table);
            let met: Vec<_> = read.map(|read| read.key.1.clone()).collect();
            let removed = self.shared.recorded_removals.in_range(&range, &met);
            self.context.recording.reads.extend(removed);
            self.context.recording.ranges.push(range);
        }
        failed.map_or(Ok(()), Err)
    }
}

impl<I: Isolation> Read for Snapshot<'_, I> {
    type Store = ErmiaStore;
    type Found = ErmiaHandle;

    fn has_found(&self, found: ErmiaHandle) -> bool {
        found.number == self.context.number
    }

    fn find(&mut self, store: &ErmiaStore, key: &[u8]) -> Result<Option<ErmiaHandle>, Abort> {
        self.check(store)?;
        let lookup = store.index().get(key, &self.guard);
        let _look = self.look();
        match self.resolve(store, key, lookup)? {
            Some((oid, row)) => self.add_found(store, oid, &row).map(Some),
            None => Ok(None),
        }
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &ErmiaStore,
        keys: &[K],
        mut each: impl FnMut(usize, Option<ErmiaHandle>),
    ) -> Result<(), Abort> {
        self.look_up_many(
            store,
            keys,
            |snapshot, _, (oid, row)| snapshot.add_found(store, oid, &row),
            |at, found| {
                each(at, found);
                ControlFlow::Continue(())
            },
        )
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &ErmiaStore,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        self.check(store)?;
        let lookup = store.index().get(key, &self.guard);
        let _look = self.look();
        Ok(self.resolve(store, key, lookup)?.map(|(_, row)| row.read(decode)))
    }

    fn get_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &ErmiaStore,
        keys: &[K],
        mut decode: impl FnMut(usize, RowRef<'_>) -> R,
        each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.look_up_many(store, keys, |_, at, (_, row)| Ok(row.read(|row| decode(at, row))), each)
    }

    fn read<R>(&mut self, found: ErmiaHandle, mut decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        assert!(self.has_found(found), "a handle of another transaction");
        let found = self.context.found[found.at as usize];
        // SAFETY: the engine keeps all of its stores.
        let store = unsafe { found.store.as_ref() };
        self.check(store)?;
        let _look = self.look();
        // As long as the version is not newest, it is kept for the snapshot. The newest one may have left memory.
        if let Some((version, stamp)) = found.version
            && self.shared.cold.is_none()
        {
            return Ok(decode(version.row().committed_in(stamp.tid().epoch())));
        }
        let newest = self.find_newest(store, found.oid, &[])?;
        match self.shown_of(newest) {
            Some((row, _)) => Ok(row.read(decode)),
            None => unreachable!("what the snapshot has shown stays as long as it does"),
        }
    }

    fn scan<R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(ErmiaHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let hold = |snapshot: &mut Self, oid, row: &ShownRow<I>| snapshot.add_found(store, oid, row);
        self.scan_range(store, bounds, direction, decode, each, hold)
    }

    fn scan_to_read<R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_range(store, bounds, direction, decode, |(), value| each(value), |_, _, _| Ok(()))
    }

    fn largest_epoch_seen(&self) -> Epoch {
        self.context.epoch_seen()
    }
}

/// Ends a look at versions.
struct Look<'e>(&'e Entry);

impl Drop for Look<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.end_look();
    }
}

/// What a snapshot shows of a record.
#[derive(Debug)]
pub(crate) enum ShownRow<I: Isolation> {
    /// With its stamp.
    InMemory(Version<I>, Stamp),
    Cold(ColdRecord),
}

impl<I: Isolation> ShownRow<I> {
    fn is_deletion(&self) -> bool {
        match self {
            ShownRow::InMemory(version, _) => version.is_deletion(),
            ShownRow::Cold(_) => false,
        }
    }

    /// Computes a value from the row.
    #[inline]
    pub(crate) fn read<R>(&self, read: impl FnOnce(RowRef<'_>) -> R) -> R {
        match self {
            ShownRow::InMemory(version, stamp) => read(version.row().committed_in(stamp.tid().epoch())),
            ShownRow::Cold(record) => record.read(read),
        }
    }
}

/// Visits entries on behalf of a snapshot.
struct SnapshotScan<'a, 's, I: Isolation, D, E, H> {
    snapshot: &'a mut Snapshot<'s, I>,
    store: &'a ErmiaStore,
    decode: D,
    each: E,
    hold: H,
    failed: Option<Abort>,
    /// The key at which `each` had enough, when histories are recorded.
    stopped_at: Option<Vec<u8>>,
}

impl<'s, I, R, T, D, E, H> ScanVisitor for SnapshotScan<'_, 's, I, D, E, H>
where
    I: Isolation,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(T, R) -> ControlFlow<()>,
    H: Fn(&mut Snapshot<'s, I>, Oid, &ShownRow<I>) -> Result<T, Abort>,
{
    fn node(&mut self, stamp: NodeStamp) {
        self.failed = self.snapshot.check(self.store).err();
        // SAFETY: the scan goes on under the snapshot's pin.
        unsafe { self.snapshot.note_miss(stamp) };
    }

    #[inline]
    fn approach(&mut self, value: u64) {
        // SAFETY: the value was read from the store's index, under a pin.
        self.store.load_header::<I>(unsafe { Oid::from_index_value(value) });
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        if self.failed.is_some() {
            return ControlFlow::Break(());
        }
        // SAFETY: the value was read from the store's index, under a pin.
        let oid = unsafe { Oid::from_index_value(value) };
        let look = self.snapshot.look();
        let row = match self.snapshot.see(self.store, oid, key) {
            Ok(Some(row)) => row,
            Ok(None) => return ControlFlow::Continue(()),
            Err(abort) => {
                self.failed = Some(abort);
                return ControlFlow::Break(());
            }
        };
        let value = row.read(|row| (self.decode)(key, row));
        // What the caller does takes its time.
        drop(look);
        match (self.hold)(self.snapshot, oid, &row) {
            Ok(held) => {
                let flow = (self.each)(held, value);
                if I::RECORDS_HISTORY && flow.is_break() {
                    self.stopped_at = Some(key.to_vec());
                }
                flow
            }
            Err(abort) => {
                self.failed = Some(abort);
                ControlFlow::Break(())
            }
        }
    }
}

impl<I: Isolation> Drop for Snapshot<'_, I> {
    fn drop(&mut self) {
        self.context.counters.count_snapshot();
        if I::RECORDS_HISTORY {
            self.context.record_commit(self.begin);
        }
        self.entry.end();
        self.context.clear();
    }
}

impl<I: Isolation> fmt::Debug for Snapshot<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("begin", &self.begin).finish_non_exhaustive()
    }
}
