//! Writes of a read-write transaction: they wait in the write set until the commit.
//!
//! # Source
//! Silo (SOSP 2013) §4.5 "Deletes" and "Inserts".
//!
//! What several statements of one transaction do to one record is folded into one entry:
//! ```text
//! existing:  Patch -> Put (a second patch, or a read, sees the whole row) ; Patch | Put -> Delete -> Put
//!            Add -> Add | Patch (see `addition`)
//! inserted:  Placed | Put -> Cancelled -> Put
//! ```

use std::ops::ControlFlow;

use ensilo_engine::{
    Abort, AbortReason, Addition, Committed, Direction, Fault, KeyBounds, KeyChange, RowRef, Write,
    assert_is_row,
};
use ensilo_epoch::Epoch;
use ensilo_index::{InsertError, Inserted, KEY_LEN_MAX};
use ensilo_sync::cpu_relax;

use super::context::Context;
use super::memory;
use super::node_set::OwnInsert;
use super::prepared::PreparedTransaction;
use super::read::{ReadOutcome, read_record};
use super::transaction::Transaction;
use super::variant::Variant;
use super::write_set::{InstallPlan, RecordChange, RowSpan, WriteEntry};
use crate::handle::RecordHandle;
use crate::prefetch::prefetch_changes;
use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::TidWord;

impl<'w, V: Variant> Write for Transaction<'w, V> {
    const FAULT: Option<Fault> = V::FAULT;

    const ADDS: bool = V::VALIDATES;

    type Prepared = PreparedTransaction<'w, V>;

    #[inline]
    fn patch(&mut self, found: RecordHandle, words: &[(u32, u64)]) -> Result<(), Abort> {
        self.context.refuse_others(found);
        match self.context.own_write(found.record) {
            None => {
                self.check_patch(found, words)?;
                let patch = self.context.push_patch(words).map_err(|abort| self.doom(abort))?;
                self.push_found(found, RecordChange::Patch(patch))
            }
            Some(at) => {
                self.settle_for(found, at)?;
                self.context.patch_own(at, words).map_err(|abort| self.doom(abort))
            }
        }
    }

    #[inline]
    fn add(
        &mut self,
        store: &Store,
        key: &[u8],
        since: Epoch,
        additions: &[Addition],
    ) -> Result<bool, Abort> {
        self.add_unread(store, key, since, additions)
    }

    fn put(&mut self, found: RecordHandle, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.context.refuse_others(found);
        assert_is_row(row, len_bytes);
        let span = self.push_row(row, len_bytes)?;
        match self.context.own_write(found.record) {
            None => self.push_found(found, RecordChange::Put(span)),
            Some(at) => {
                self.settle_for(found, at)?;
                assert!(self.context.writes[at].change.leaves_a_row(), "a deleted record is written");
                self.context.writes[at].change = RecordChange::Put(span);
                Ok(())
            }
        }
    }

    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        assert_is_row(row, len_bytes);
        assert!(key.len() <= KEY_LEN_MAX, "a key longer than KEY_LEN_MAX");
        self.check_store(store)?;
        let placeholder = memory::allocate::<V>(&self.guard, store.id(), len_bytes, TidWord::PLACEHOLDER)
            .map_err(|_| self.doom_at(AbortReason::OutOfMemory, store.id(), key))?;
        placeholder.store_row(row.iter().copied(), len_bytes);
        loop {
            match self.insert_into_tree(store, key, placeholder)? {
                Inserted::New => return Ok(true),
                Inserted::Existing(value) => {
                    // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
                    let existing = unsafe { RecordPtr::from_index_value(value) };
                    let outcome = self.insert_over(existing, key, row, len_bytes).transpose();
                    if let Some(is_inserted) = outcome {
                        // SAFETY: the tree did not take the placeholder, so nobody else knows it.
                        unsafe { memory::free::<V>(placeholder, &self.guard) };
                        return is_inserted;
                    }
                    cpu_relax();
                }
            }
        }
    }

    fn prefetch_changes<'k>(
        &mut self,
        count: usize,
        key: impl Fn(usize) -> (&'k Store, &'k [u8], KeyChange),
    ) {
        prefetch_changes::<V>(&self.guard, count, key);
    }

    fn delete(&mut self, found: RecordHandle) -> Result<(), Abort> {
        self.context.refuse_others(found);
        match self.context.own_write(found.record) {
            None => self.push_found(found, RecordChange::Delete),
            Some(at) => {
                self.settle_for(found, at)?;
                let write = &mut self.context.writes[at];
                assert!(write.change.leaves_a_row(), "a deleted record is deleted again");
                write.change =
                    if write.observed.is_absent() { RecordChange::Cancelled } else { RecordChange::Delete };
                Ok(())
            }
        }
    }

    fn peek<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(R) -> ControlFlow<()>,
        _: impl FnMut(R),
    ) -> Result<(), Abort> {
        self.peek_range(store, bounds, direction, decode, each)
    }

    #[inline]
    fn commit(self) -> Result<Committed, Abort> {
        self.end()
    }

    fn prepare(self) -> Result<Self::Prepared, Abort> {
        self.vote()
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        self.check_reads()
    }

    fn check_so_far(&mut self) -> Result<(), Abort> {
        self.check_reads_so_far()
    }

    #[inline]
    fn has_writes(&self) -> bool {
        !self.context.writes.is_empty()
    }

    fn note_abort(&mut self, abort: &Abort) {
        self.doom(abort.clone());
    }

    fn abort(mut self) {
        self.roll_back();
    }
}

impl<V: Variant> Transaction<'_, V> {
    /// Adds the first change of a record that was read before.
    #[inline]
    fn push_found(&mut self, found: RecordHandle, change: RecordChange) -> Result<(), Abort> {
        let seen = self.context.reads[found.entry as usize];
        debug_assert!(seen.key.is_kept(), "a handle comes with its key");
        let write = WriteEntry {
            record: found.record,
            observed: seen.word,
            change,
            key: seen.key,
            entry: found.entry,
            is_created: false,
            plan: InstallPlan::Open,
        };
        self.context.push_write(write).map_err(|abort| self.doom(abort))
    }

    /// Copies a row into the transaction's own words.
    fn push_row(&mut self, row: &[u64], len_bytes: usize) -> Result<RowSpan, Abort> {
        self.context.push_row(row.iter().copied(), len_bytes).map_err(|abort| self.doom(abort))
    }

    /// Sees to it that the patch lies within the row, as it was when it was read.
    #[inline]
    fn check_patch(&mut self, found: RecordHandle, words: &[(u32, u64)]) -> Result<(), Abort> {
        let len_words = found.record.row().len_words();
        if words.iter().all(|&(index, _)| (index as usize) < len_words) {
            return Ok(());
        }
        let seen = self.context.reads[found.entry as usize];
        assert!(!found.record.is_still(seen.word), "a patch outside the row");
        // Somebody has made the row shorter since.
        let abort = self.context.abort_at(AbortReason::ReadValidation, found.record, seen.key);
        Err(self.doom(abort))
    }

    /// Tries to put the placeholder into the tree; what that does to stamped nodes is carried over.
    fn insert_into_tree(
        &mut self,
        store: &Store,
        key: &[u8],
        placeholder: RecordPtr,
    ) -> Result<Inserted, Abort> {
        if let Err(abort) = self.context.reserve_insert(key) {
            // SAFETY: nobody else knows the placeholder yet.
            unsafe { memory::free::<V>(placeholder, &self.guard) };
            return Err(self.doom(abort));
        }
        let Context { nodes, held, protection, .. } = &mut *self.context;
        let protection = protection.as_deref_mut();
        let mut observer =
            OwnInsert::new(nodes, held, protection, &self.shared.prepared, placeholder, &self.guard);
        let outcome =
            store.index().insert_if_absent(key, placeholder.index_value(), &self.guard, &mut observer);
        let OwnInsert { is_overtaken, failed, latest_removal, .. } = observer;
        match outcome {
            Ok(Inserted::New) => {
                let has_lost_write = self.has_lost_write(store, key, latest_removal);
                self.context.note_removed(latest_removal);
                self.context.push_insert_reserved(placeholder, key);
                if V::RECORDS_HISTORY {
                    self.context.record_missing(&self.shared.recorded_removals, store.id(), key);
                }
                if let Some(abort) = failed {
                    return Err(self.doom(abort));
                }
                if is_overtaken {
                    return Err(self.doom_at(AbortReason::NodeValidation, store.id(), key));
                }
                if has_lost_write.map_err(|abort| self.doom(abort))? {
                    return Err(self.doom_at(AbortReason::ReadValidation, store.id(), key));
                }
                Ok(Inserted::New)
            }
            Ok(existing) => Ok(existing),
            Err(error) => {
                // SAFETY: the tree did not take the placeholder, so nobody else knows it.
                unsafe { memory::free::<V>(placeholder, &self.guard) };
                match error {
                    InsertError::KeyTooLong { .. } => unreachable!("the key's length was checked"),
                    InsertError::Refused => Err(self.doom_at(AbortReason::PreparedRead, store.id(), key)),
                    _ => Err(self.doom_at(AbortReason::OutOfMemory, store.id(), key)),
                }
            }
        }
    }

    /// Inserts where the tree has a record: `Some(false)` when the key exists, `None` when the tree must be asked again.
    fn insert_over(
        &mut self,
        existing: RecordPtr,
        key: &[u8],
        row: &[u64],
        len_bytes: usize,
    ) -> Result<Option<bool>, Abort> {
        if let Some(at) = self.context.own_write(existing) {
            self.context.settle(at).map_err(|abort| self.doom(abort))?;
            if self.context.writes[at].change.leaves_a_row() {
                return Ok(Some(false));
            }
            let span = self.push_row(row, len_bytes)?;
            self.context.writes[at].change = RecordChange::Put(span);
            return Ok(Some(true));
        }
        let entry = self.context.reads.end();
        let (shared, guard) = (self.shared, &self.guard);
        let outcome = read_record::<V, true, ()>(shared, self.context, existing, key, guard, |_| ());
        match outcome.map_err(|abort| self.doom(abort))? {
            ReadOutcome::Present(..) => Ok(Some(false)),
            ReadOutcome::Superseded => Ok(None),
            ReadOutcome::Absent => {
                let span = self.push_row(row, len_bytes)?;
                self.push_found(self.context.handle(existing, entry), RecordChange::Put(span))?;
                self.context.note_revived().map_err(|abort| self.doom(abort))?;
                Ok(Some(true))
            }
        }
    }
}
