//! Reads of a read-write transaction.
//!
//! # Source
//! Silo (SOSP 2013) §4.5 "Reads and writes"; a missing key is protected as in §4.6.

use std::ops::ControlFlow;

use ensilo_engine::{Abort, AbortReason, Direction, Fault, KeyBounds, Read, RowRef, Tid};
use ensilo_epoch::{Epoch, Guard};
use ensilo_index::{Lookup, NodeStamp};
use ensilo_sync::cpu_relax;

use super::context::Context;
use super::node_set::latest_removal;
use super::transaction::Transaction;
use super::variant::{Variant, has_fault};
use super::write_set::KeySpan;
use crate::handle::RecordHandle;
use crate::record::RecordPtr;
use crate::shared::SiloShared;
use crate::store::Store;
use crate::tid::TidWord;

/// What a transaction sees of a record.
pub(super) enum ReadOutcome<R> {
    /// It exists, and this was computed from its row.
    Present(RecordHandle, R),
    /// The key does not exist; the read set says so.
    Absent,
    /// The record is not the newest of its key: the tree knows a newer one, or none.
    Superseded,
}

/// Reads a record that the tree returned for `key`: own write or committed version, existing or not. Adds what
/// it sees to the read set, with the key if something may be written there.
#[inline]
pub(super) fn read_record<V: Variant, const MAY_WRITE: bool, R>(
    shared: &SiloShared,
    context: &mut Context,
    record: RecordPtr,
    key: &[u8],
    guard: &Guard<'_>,
    mut decode: impl FnMut(RowRef<'_>) -> R,
) -> Result<ReadOutcome<R>, Abort> {
    if let Some(at) = context.own_write(record) {
        return Ok(match context.read_own(at, decode)? {
            Some(value) => ReadOutcome::Present(context.handle(record, context.writes[at].entry), value),
            None => ReadOutcome::Absent,
        });
    }
    // Before the record is looked at: its lines are on their way.
    let span = if MAY_WRITE || V::RECORDS_HISTORY { context.push_key(key)? } else { KeySpan::NOT_KEPT };
    loop {
        let word = match record.stable_tid() {
            Ok(word) => word,
            Err(reason) => return Err(Abort::new(reason, record.store(), key)),
        };
        if !word.is_latest() {
            return Ok(ReadOutcome::Superseded);
        }
        if context.may_hide_write(word, guard.epoch()) && context.has_written(record.store(), key)? {
            return Err(Abort::new(AbortReason::ReadValidation, record.store(), key));
        }
        if word.is_absent() && !(has_fault::<V>(Fault::IgnoreAbsent) && word != TidWord::PLACEHOLDER) {
            if !context.protect_record::<V>(shared, record, word)? {
                continue;
            }
            if word == TidWord::PLACEHOLDER {
                note_removed_before::<V>(shared, context, record, key, guard);
            }
            context.push_read(record, word, span)?;
            return Ok(ReadOutcome::Absent);
        }
        let value = decode(record.row().committed_in(word.tid().epoch()));
        if record.is_still(word) && context.protect_record::<V>(shared, record, word)? {
            let entry = context.push_read(record, word, span)?;
            return Ok(ReadOutcome::Present(context.handle(record, entry), value));
        }
    }
}

/// Notes the deletion that may have left the tree before this placeholder came into it: it is what the transaction reads.
#[cold]
fn note_removed_before<V: Variant>(
    shared: &SiloShared,
    context: &mut Context,
    placeholder: RecordPtr,
    key: &[u8],
    guard: &Guard<'_>,
) {
    let id = placeholder.store();
    // A transaction that has read of a dropped store does not commit.
    let Some(store) = shared.stores.store(id) else { return };
    context.note_removed(Tid::from_raw(store.index().latest_removal_near(key, guard)));
    if V::RECORDS_HISTORY {
        context.record_removed(&shared.recorded_removals, id, key);
    }
}

impl<V: Variant> Read for Transaction<'_, V> {
    type Store = Store;
    type Found = RecordHandle;

    #[inline]
    fn has_found(&self, found: RecordHandle) -> bool {
        self.context.has_found(found)
    }

    #[inline]
    fn find(&mut self, store: &Store, key: &[u8]) -> Result<Option<RecordHandle>, Abort> {
        let lookup = self.lookup(store, key)?;
        Ok(self.resolve(store, key, lookup, |_| ())?.map(|(found, ())| found))
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
    fn read<R>(&mut self, found: RecordHandle, mut decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.context.refuse_others(found);
        let record = found.record;
        if let Some(at) = self.context.own_write(record) {
            let Some(value) = self.context.read_own(at, decode).map_err(|abort| self.doom(abort))? else {
                panic!("a record is read that the same transaction has deleted");
            };
            return Ok(value);
        }
        let seen = self.context.reads[found.entry as usize];
        loop {
            match record.stable_tid() {
                Ok(word) if word == seen.word => {}
                other => {
                    let reason = other.err().unwrap_or(AbortReason::ReadValidation);
                    let abort = self.context.abort_at(reason, record, seen.key);
                    return Err(self.doom(abort));
                }
            }
            let value = decode(record.row().committed_in(seen.word.tid().epoch()));
            if record.is_still(seen.word) {
                return Ok(value);
            }
        }
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        let lookup = self.lookup(store, key)?;
        Ok(self.resolve(store, key, lookup, decode)?.map(|(_, value)| value))
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
        self.check_store(store)?;
        self.scan_range::<true, R>(store, bounds, direction, decode, each)
    }

    fn scan_to_read<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.check_store(store)?;
        self.scan_range::<false, R>(store, bounds, direction, decode, |_, value| each(value))
    }

    fn check_reads(&mut self) -> Result<(), Abort> {
        self.check_reads_so_far()
    }

    fn largest_epoch_seen(&self) -> Epoch {
        self.context.largest_tid_seen().epoch()
    }
}

impl<V: Variant> Transaction<'_, V> {
    #[inline]
    fn lookup(&mut self, store: &Store, key: &[u8]) -> Result<Lookup, Abort> {
        self.check_store(store)?;
        Ok(store.index().get(key, &self.guard))
    }

    /// Looks many keys up, and calls `each` with what this transaction sees of every key until it breaks.
    fn resolve_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &Store,
        keys: &[K],
        mut decode: impl FnMut(usize, RowRef<'_>) -> R,
        mut each: impl FnMut(usize, Option<(RecordHandle, R)>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.check_store(store)?;
        let mut lookups = std::mem::take(&mut self.context.lookups);
        let filled = lookups.look_up(store.index(), keys, &self.guard, &mut self.context.held);
        let mut outcome = filled.map_err(|abort| self.doom(abort));
        for (at, (key, lookup)) in keys.iter().zip(lookups.iter()).enumerate() {
            match self.resolve(store, key.as_ref(), lookup, |row| decode(at, row)).map(|seen| each(at, seen))
            {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(abort) => {
                    outcome = Err(abort);
                    break;
                }
            }
        }
        self.context.lookups = lookups;
        outcome
    }

    /// Turns what the tree says about `key` into what this transaction sees.
    #[inline]
    fn resolve<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        lookup: Lookup,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<(RecordHandle, R)>, Abort> {
        let mut value = self.value_of(store, key, lookup)?;
        loop {
            let Some(record) = value else { return Ok(None) };
            // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
            let record = unsafe { RecordPtr::from_index_value(record) };
            match read_record::<V, true, R>(self.shared, self.context, record, key, &self.guard, &mut decode)
            {
                Ok(ReadOutcome::Present(found, value)) => return Ok(Some((found, value))),
                Ok(ReadOutcome::Absent) => return Ok(None),
                Ok(ReadOutcome::Superseded) => {
                    cpu_relax();
                    value = self.value_of(store, key, store.index().get(key, &self.guard))?;
                }
                Err(abort) => return Err(self.doom(abort)),
            }
        }
    }

    /// Returns whether this transaction has written a key that is missing from a node with this latest removal.
    #[inline]
    pub(super) fn has_lost_write(&mut self, store: &Store, key: &[u8], latest: Tid) -> Result<bool, Abort> {
        let may_miss = self.context.may_miss_write(latest, self.begin_epoch());
        Ok(may_miss && self.context.has_written(store.id(), key)?)
    }

    /// Returns the word that the tree has under `key`; if none, the transaction relies on that.
    #[inline(always)]
    fn value_of(&mut self, store: &Store, key: &[u8], lookup: Lookup) -> Result<Option<u64>, Abort> {
        match lookup {
            Lookup::Found(value) => Ok(Some(value)),
            Lookup::Missing(stamp) => self.note_missing(store, key, stamp).map(|()| None),
        }
    }

    /// Notes that the tree has no such key, unless this transaction has written it. A function of its own, so that a look-up that finds
    /// its key does not pay for it.
    #[inline(never)]
    fn note_missing(&mut self, store: &Store, key: &[u8], stamp: NodeStamp) -> Result<(), Abort> {
        // SAFETY: the stamp was reported under this guard just now.
        let latest = unsafe { latest_removal(stamp.node, &self.guard) };
        self.context.note_removed(latest);
        if self.has_lost_write(store, key, latest).map_err(|abort| self.doom(abort))? {
            return Err(self.doom_at(AbortReason::ReadValidation, store.id(), key));
        }
        self.rely_on_missing(store, key, stamp)
    }
}
