//! The commit protocol.
//!
//! # Source
//! Silo (SOSP 2013) §4.4, figure 2. The phases: lock the write set in address order; read the epoch; validate the
//! read set and the node set; choose the TID; take the memory and the room in the log that the writes need; log; install.
//!
//! # Memory ordering
//! The serialization point is the read of the global epoch. All write locks are taken before it (a locked
//! read-modify-write, then [`barrier::after_rmw`]) and all validation loads come after it. Of two transactions that each
//! read what the other writes, the one whose barrier comes second sees the other's lock or its new TID, and aborts:
//! that is the store-buffering pattern, which needs the full barrier on both sides.

use ensilo_engine::{Abort, AbortReason, Committed, Fault, TableId, Tid};
use ensilo_epoch::Epoch;
use ensilo_index::Masstree;
use ensilo_slab::OutOfMemory;
use ensilo_sync::barrier;

use super::collect::{Retired, Unhook};
use super::context::{Change, Context, RowSpan, Spare, StorePtr, WriteEntry};
use super::memory;
use super::transaction::Transaction;
use super::variant::{Variant, has_fault};
use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::TidWord;

/// Why a commit stopped before it installed anything. The locks are free again.
pub(super) enum Stop {
    Abort(Abort),
    /// The log has no buffer to spare.
    LogFull,
    /// The epoch has no TID left that is larger than all that this transaction saw.
    EpochExhausted(Epoch),
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Stop::Abort(abort)
    }
}

impl<V: Variant> Transaction<'_, V> {
    pub(super) fn try_commit(&mut self) -> Result<Committed, Abort> {
        if self.context.writes.is_empty() {
            return self.commit_reads();
        }
        self.order_write_set()?;
        loop {
            self.guard.participant().begin_commit();
            let outcome = self.commit_writes();
            self.guard.participant().end_commit();
            match outcome {
                Ok(committed) => return Ok(committed),
                Err(Stop::Abort(abort)) => return Err(abort),
                Err(Stop::LogFull) => self.wait_for_log()?,
                Err(Stop::EpochExhausted(epoch)) => self.leave_epoch(epoch)?,
            }
        }
    }

    /// Commits a transaction that wrote nothing: everything it read was current at one moment, which lies between its
    /// last read and the first look of the validation.
    #[inline]
    fn commit_reads(&mut self) -> Result<Committed, Abort> {
        let epoch = if V::RECORDS_HISTORY { self.guard.epochs().global_epoch() } else { Epoch::new(0) };
        // A single look at shared memory is a consistent state without a second one; only whoever asks for the epoch has
        // to know that it still was one then.
        if V::RECORDS_HISTORY || self.context.reads.len() + self.context.nodes.stamps().len() > 1 {
            self.validate_read_set()?;
            self.validate_node_set()?;
        }
        let tid = self.context.largest_tid_seen();
        Ok(Committed { tid, epoch: epoch.max(tid.epoch()) })
    }

    /// Phase 2 without a commit: says whether what was read is current, and the last epoch that it is of.
    pub(super) fn check_reads(&mut self) -> Result<Epoch, Abort> {
        let outcome = self.validate_read_set().and_then(|()| self.validate_node_set());
        let outcome = outcome.and_then(|()| self.validate_placeholders());
        outcome.map_err(|abort| self.doom(abort))?;
        Ok(self.context.largest_tid_seen().epoch())
    }

    fn commit_writes(&mut self) -> Result<Committed, Stop> {
        self.lock_write_set()?;
        barrier::after_rmw();
        let epoch = self.serialization_epoch();
        match self.prepare(epoch) {
            Ok(tid) => {
                self.log_writes(tid);
                self.install_writes(tid);
                self.context.last_tid = tid;
                Ok(Committed { tid, epoch })
            }
            Err(stop) => {
                self.unlock_write_set(self.context.writes.len());
                Err(stop)
            }
        }
    }

    /// Everything between locking and installing that can fail.
    fn prepare(&mut self, epoch: Epoch) -> Result<Tid, Stop> {
        self.validate_read_set()?;
        self.validate_node_set()?;
        let seen = self.context.largest_tid_seen().max(self.context.last_tid);
        let tid = self.next_tid(seen, epoch).ok_or(Stop::EpochExhausted(epoch))?;
        self.reserve_log()?;
        self.reserve_memory(epoch)?;
        Ok(tid)
    }

    /// A TID in `epoch` that is larger than `seen`, unless there is none.
    #[inline]
    fn next_tid(&self, seen: Tid, epoch: Epoch) -> Option<Tid> {
        if !V::GLOBAL_TID {
            return seen.next_in(epoch);
        }
        let tid = self.shared.global_tid.next_in(epoch);
        debug_assert!(tid.is_none_or(|tid| tid > seen), "the counter is behind a TID that it gave out");
        tid
    }

    #[inline]
    fn serialization_epoch(&self) -> Epoch {
        if has_fault::<V>(Fault::EarlyEpoch) {
            self.begin_epoch()
        } else {
            self.guard.epochs().global_epoch()
        }
    }

    /// Sorts the write set by record address: every transaction locks in the same order, so that none waits in a circle.
    #[inline]
    fn order_write_set(&mut self) -> Result<(), Abort> {
        let Context { lock_order, writes, held, .. } = &mut *self.context;
        lock_order.reserve(writes.len(), held)?;
        lock_order.extend_reserved(writes.iter().map(|write| write.record.address()).zip(0..));
        if lock_order.len() > 1 && !has_fault::<V>(Fault::UnorderedLocks) {
            lock_order.sort_unstable();
        }
        Ok(())
    }

    /// Phase 1.
    #[inline]
    fn lock_write_set(&mut self) -> Result<(), Abort> {
        for position in 0..self.context.lock_order.len() {
            let write = &self.context.writes[self.context.lock_order[position].1 as usize];
            if let Err(reason) = lock_record(write) {
                let abort = self.context.abort_at(reason, write.record, write.key);
                self.unlock_write_set(position);
                return Err(abort);
            }
        }
        Ok(())
    }

    /// Frees the first `count` locks, in lock order, without having changed anything.
    #[cold]
    fn unlock_write_set(&mut self, count: usize) {
        for &(_, at) in &self.context.lock_order[..count] {
            let write = &self.context.writes[at as usize];
            write.record.publish(write.observed);
        }
    }

    /// Phase 2 for records: each still carries the TID that was read and nobody else has locked it.
    #[inline]
    fn validate_read_set(&self) -> Result<(), Abort> {
        if self.begin_epoch() < self.shared.stores.dropped_before() {
            self.refuse_dropped_stores()?;
        }
        if has_fault::<V>(Fault::SkipReadValidation) {
            return Ok(());
        }
        for read in &*self.context.reads {
            let now = read.record.tid();
            let is_valid = now == read.word
                || (now == read.word.locked() && self.context.own_write(read.record).is_some());
            if !is_valid {
                return Err(self.context.abort_at(AbortReason::ReadValidation, read.record, read.key));
            }
        }
        Ok(())
    }

    /// Phase 2 after a store was dropped: it is none of those that were used. An index that was only written may be: its entries just go
    /// with it.
    #[cold]
    fn refuse_dropped_stores(&self) -> Result<(), Abort> {
        let read = self.context.reads.iter().map(|read| read.record.table());
        let written = self.context.writes.iter().map(|write| write.record.table());
        let written = written.filter(|table| table.is_logged());
        let mut used = read.chain(written).chain(self.context.nodes.stores().iter().copied());
        match used.find(|&table| self.shared.stores.store(table).is_none()) {
            Some(dropped) => Err(Abort::new(AbortReason::StoreDropped, dropped, &[])),
            None => Ok(()),
        }
    }

    /// Phase 2 for nodes: each still holds the keys it held.
    #[inline]
    fn validate_node_set(&self) -> Result<(), Abort> {
        if has_fault::<V>(Fault::SkipNodeValidation) {
            return Ok(());
        }
        for &stamp in self.context.nodes.stamps() {
            // SAFETY: the stamp was taken by this transaction, under the guard that it still holds.
            if !unsafe { Masstree::is_current(stamp, &self.guard) } {
                return Err(Abort::new(AbortReason::NodeValidation, TableId::NONE, &[]));
            }
        }
        Ok(())
    }

    /// Phase 2 without locks: the keys that were inserted are still missing. Whoever else inserts one of them writes into the placeholder,
    /// which changes no node.
    fn validate_placeholders(&self) -> Result<(), Abort> {
        for write in self.context.writes.iter().filter(|write| write.is_created) {
            if !write.record.still(write.observed) {
                return Err(self.context.abort_at(AbortReason::KeyExists, write.record, write.key));
            }
        }
        Ok(())
    }

    /// Takes the memory that the writes will need, so that installing cannot fail.
    fn reserve_memory(&mut self, epoch: Epoch) -> Result<(), Abort> {
        let snapshot = self.guard.epochs().snapshot_of(epoch);
        for at in 0..self.context.writes.len() {
            match self.spare_for(&self.context.writes[at], snapshot) {
                Ok(spare) => self.context.writes[at].spare = spare,
                Err(reason) => {
                    let write = self.context.writes[at];
                    self.give_back_memory(at);
                    return Err(self.context.abort_at(reason, write.record, write.key));
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn give_back_memory(&mut self, count: usize) {
        for write in &mut self.context.writes[..count] {
            match std::mem::replace(&mut write.spare, Spare::None) {
                Spare::None => {}
                // SAFETY: as below.
                Spare::Mark(mark) => unsafe { memory::free_mark(mark, &self.guard) },
                // SAFETY: as below.
                Spare::ReserveVersion(record) => unsafe { memory::free_reserve(record, &self.guard) },
                // SAFETY: reserved by this commit and not yet linked anywhere.
                Spare::Version(record) | Spare::Replacement(record, _) => unsafe {
                    memory::free::<V>(record, &self.guard)
                },
            }
        }
    }

    /// The memory that a write needs: a copy of the old version if a snapshot before `snapshot` may read it (§4.9), or a
    /// record to replace one that must not or cannot be overwritten (§4.5). A deletion leaves the row where it is, so that it needs no
    /// copy: otherwise nothing could be deleted once the memory limit is reached.
    #[inline]
    fn spare_for(&self, write: &WriteEntry, snapshot: Epoch) -> Result<Spare, AbortReason> {
        let record = write.record;
        let row_len = match write.change {
            Change::Placed | Change::Cancelled => return Ok(Spare::None),
            Change::Put(row) if needs_replacement::<V>(write, row.len as usize) => {
                return self.replacement_for(record, row.len as usize);
            }
            Change::Put(_) if write.observed.is_absent() => return Ok(Spare::None),
            Change::Patch(_) if !V::OVERWRITES => {
                return self.replacement_for(record, record.row().len_bytes());
            }
            Change::Put(_) | Change::Patch(_) | Change::Delete => record.row().len_bytes(),
        };
        if !V::SNAPSHOTS || write.observed.tid().epoch() >= snapshot {
            return Ok(Spare::None);
        }
        match write.change {
            Change::Delete => memory::allocate_mark(&self.guard).map(Spare::Mark).map_err(out_of_memory),
            _ => self.allocate(record, row_len).map(Spare::Version).or_else(|_| {
                let reserve = memory::allocate_reserve(&self.guard, record.table(), row_len);
                reserve.map(Spare::ReserveVersion).map_err(out_of_memory)
            }),
        }
    }

    /// A record to replace this one in the tree, with room for a row of so many bytes.
    #[inline]
    fn replacement_for(&self, record: RecordPtr, row_len: usize) -> Result<Spare, AbortReason> {
        let Some(store) = self.shared.stores.store(record.table()) else {
            return Err(AbortReason::StoreDropped);
        };
        let store = StorePtr::new(store);
        self.allocate(record, row_len).map(|replacement| Spare::Replacement(replacement, store))
    }

    fn allocate(&self, like: RecordPtr, row_len: usize) -> Result<RecordPtr, AbortReason> {
        memory::allocate::<V>(&self.guard, like.table(), row_len, TidWord::PLACEHOLDER).map_err(out_of_memory)
    }

    /// Phase 3: each record gets its new version and, in the same store, its lock back.
    fn install_writes(&mut self, tid: Tid) {
        let snapshot = self.guard.epochs().snapshot_of(tid.epoch());
        for at in 0..self.context.writes.len() {
            let write = self.context.writes[at];
            match write.spare {
                Spare::Version(copy) => {
                    write.record.push_version(copy, write.observed);
                    self.keep(copy, Retired::Copy(copy), snapshot);
                }
                Spare::ReserveVersion(copy) => {
                    write.record.push_version(copy, write.observed);
                    self.keep(copy, Retired::ReserveCopy(copy), snapshot);
                }
                Spare::Mark(mark) => {
                    write.record.push_mark(mark, write.observed);
                    self.keep(mark, Retired::Mark(mark), snapshot);
                }
                Spare::None | Spare::Replacement(..) => {}
            }
            match write.change {
                Change::Patch(patch) => match write.spare {
                    Spare::Replacement(replacement, store) if !V::OVERWRITES => {
                        // SAFETY: reserved by this very commit.
                        let store = unsafe { store.get() };
                        self.replace(at, store, replacement, tid, snapshot);
                    }
                    _ => {
                        self.store_patch(write.record, patch);
                        write.record.publish(TidWord::live(tid));
                    }
                },
                Change::Put(row) => match write.spare {
                    Spare::Replacement(replacement, store) => {
                        // SAFETY: reserved by this very commit.
                        let store = unsafe { store.get() };
                        self.replace(at, store, replacement, tid, snapshot);
                    }
                    _ => {
                        write.record.store_row_words(self.context.row_words(row), row.len as usize);
                        write.record.publish(TidWord::live(tid));
                    }
                },
                Change::Placed => write.record.publish(TidWord::live(tid)),
                Change::Delete => {
                    let word = TidWord::deleted(tid);
                    if V::COLLECTS {
                        let key = self.context.key(write.key).into();
                        let unhook = Unhook { record: write.record, word, key };
                        self.context.garbage.unhooks.push(snapshot, unhook);
                    }
                    self.context.counters.unhook_waits();
                    write.record.publish(word);
                }
                Change::Cancelled => write.record.publish(write.observed),
            }
        }
    }

    /// Writes the words of a patch over a record of ours.
    #[inline]
    fn store_patch(&self, record: RecordPtr, patch: RowSpan) {
        for pair in 0..patch.len as usize {
            let (index, word) = self.context.patch_word(patch, pair);
            record.store_word(index, word);
        }
    }

    /// Keeps a version that was just linked until no snapshot reads it.
    #[inline]
    fn keep(&mut self, version: RecordPtr, retired: Retired, snapshot: Epoch) {
        self.context.counters.version_kept(version.size_bytes());
        self.context.garbage.versions.push(snapshot, retired);
    }

    /// Puts `replacement` into the tree in place of the record of write `at`, which stays as its previous version.
    #[cold]
    fn replace(&mut self, at: usize, store: &Store, replacement: RecordPtr, tid: Tid, snapshot: Epoch) {
        let write = self.context.writes[at];
        match write.change {
            Change::Put(row) => {
                replacement.store_row_words(self.context.row_words(row), row.len as usize);
            }
            Change::Patch(patch) => {
                replacement.copy_row(write.record);
                self.store_patch(replacement, patch);
            }
            _ => unreachable!("only rows replace a record"),
        }
        let is_owned_elsewhere = write.observed.is_absent() && !write.is_created;
        // A variant that replaces records all the time keeps those only that snapshots need. A mark needs the deleted record (I4).
        let is_kept =
            V::OVERWRITES || is_owned_elsewhere || V::SNAPSHOTS && write.observed.tid().epoch() < snapshot;
        replacement.set_previous(if is_kept { Some(write.record) } else { write.record.previous() });
        replacement.set_unpublished_tid(TidWord::live(tid));
        let (old, new) = (write.record.index_value(), replacement.index_value());
        let is_replaced = store.index().replace(self.context.key(write.key), old, new, &self.guard);
        assert!(is_replaced, "a locked, latest record is the one in the tree");
        write.record.publish(write.observed.superseded());
        let Context { garbage, counters, .. } = &mut *self.context;
        if is_owned_elsewhere {
            return;
        }
        if is_kept {
            garbage.keep_replaced::<V>(snapshot, write.record, counters);
        } else {
            // SAFETY: it has left the tree, no snapshot that begins from now on needs it, and O1: the tree owned it, now this commit does.
            unsafe { memory::retire::<V>(write.record, &self.guard, garbage) };
        }
    }

    /// Moves on to an epoch after this one, in which there are TIDs again: epochs may be long, and nobody else may be about to.
    #[cold]
    fn leave_epoch(&self, epoch: Epoch) -> Result<(), Abort> {
        if self.guard.epochs().advance_past(epoch) {
            return Ok(());
        }
        Err(Abort::new(AbortReason::EpochsExhausted, TableId::NONE, &[]))
    }
}

fn out_of_memory(_: OutOfMemory) -> AbortReason {
    AbortReason::OutOfMemory
}

/// Locks a record that still carries the version that was seen.
#[inline]
fn lock_record(write: &WriteEntry) -> Result<(), AbortReason> {
    loop {
        if write.record.try_lock(write.observed) {
            return Ok(());
        }
        match write.record.stable_tid() {
            None => return Err(AbortReason::LockHeld),
            Some(now) if now == write.observed => {}
            Some(now) if write.observed.is_absent() && !now.is_absent() && now.is_latest() => {
                return Err(AbortReason::KeyExists);
            }
            Some(_) => return Err(AbortReason::ReadValidation),
        }
    }
}

/// Whether a new row of `len_bytes` needs a record of its own. A deleted record is never brought back to life: the worker
/// that deleted it has it on its list.
#[inline]
fn needs_replacement<V: Variant>(write: &WriteEntry, len_bytes: usize) -> bool {
    let is_deleted = write.observed.is_absent() && write.observed != TidWord::PLACEHOLDER;
    is_deleted || !write.record.fits(len_bytes) || !V::OVERWRITES && !write.observed.is_absent()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
