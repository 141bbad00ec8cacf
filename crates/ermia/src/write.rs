//! Writes: new versions in front of those that are seen.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.2 and §3.6.1. A version without a stamp at the head of a record is its write lock: the first to update wins, and the
//! others abort at once. So does who would write to a record with a version that was committed after it began.

use ensilo_engine::{Abort, AbortReason, Store as _, assert_is_row};
use ensilo_index::{InsertError, InsertObserver, Inserted, KEY_LEN_MAX, NodeId, NodeStamp, NodeVersion};
use ensilo_slab::OutOfMemory;
use ensilo_sync::Backoff;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::cold::COOLING;
use crate::context::{Context, FoundEntry, WriteEntry};
use crate::handle::ErmiaHandle;
use crate::isolation::{Fault, Isolation, has_fault};
use crate::oid_array::{DEAD, Oid};
use crate::planted::{Step, ordering_of};
use crate::read::Seen;
use crate::stamp::Author;
use crate::store::ErmiaStore;
use crate::transaction::Transaction;
use crate::version::Version;

/// How many times garbage is collected for want of memory.
const COLLECTIONS_MAX: usize = 1000;

impl<I: Isolation> Transaction<'_, I> {
    /// Replaces words of a row.
    pub(crate) fn patch_found(&mut self, handle: ErmiaHandle, words: &[(u32, u64)]) -> Result<(), Abort> {
        let found = self.found(handle);
        let store = Self::store_of(found.store);
        self.use_store(store)?;
        let pairs = || words.iter().map(|&(index, word)| (index as usize, word));
        let assert_within = |version: Version<I>| {
            let len_words = version.row().len_words();
            assert!(pairs().all(|(index, _)| index < len_words), "a word outside the row");
        };
        if let Some(at) = self.own_write(store, found.oid) {
            let own = self.own_row(at);
            assert_within(own);
            own.record().store_words(pairs());
            return Ok(());
        }
        let before = Self::shown(&found);
        assert_within(before);
        self.install(&found, before, before.row().len_bytes(), |version| {
            // SAFETY: nobody else knows the new version, and the one before does not change (V1).
            unsafe { version.record().copy_row(before.record()) };
            version.record().store_words(pairs());
        })
    }

    /// Replaces a row.
    pub(crate) fn put_found(
        &mut self,
        handle: ErmiaHandle,
        row: &[u64],
        len_bytes: usize,
    ) -> Result<(), Abort> {
        assert_is_row(row, len_bytes);
        let found = self.found(handle);
        let store = Self::store_of(found.store);
        self.use_store(store)?;
        match self.own_write(store, found.oid) {
            Some(at) => {
                self.own_row(at);
                self.overwrite_own(at, row, len_bytes)
            }
            None => self.install(&found, Self::shown(&found), len_bytes, |version| {
                version.record().store_row(row.iter().copied(), len_bytes);
            }),
        }
    }

    /// Deletes a record.
    pub(crate) fn delete_found(&mut self, handle: ErmiaHandle) -> Result<(), Abort> {
        let found = self.found(handle);
        let store = Self::store_of(found.store);
        self.use_store(store)?;
        match self.own_write(store, found.oid) {
            Some(at) => {
                self.own_row(at).set_deletion(true);
                if self.context.writes[at].is_cancelled() {
                    self.note_miss_of_own(at);
                }
                Ok(())
            }
            None => {
                let before = Self::shown(&found);
                self.context.reserve_write().map_err(|abort| self.doom(abort))?;
                let deletion = self.allocate(store, 0, Some(before)).or_else(|_| {
                    Version::allocate_deletion(&self.guard, store.id(), Author::By(self.id), before)
                });
                let deletion = deletion.map_err(|_| self.out_of_memory(store, &[]))?;
                deletion.record().store_row([].into_iter(), 0);
                deletion.set_deletion(true);
                self.publish_version(&found, before, deletion)
            }
        }
    }

    /// The transaction has made a record: it has missed the key, which may have been deleted before.
    fn note_miss_of_own(&mut self, at: usize) {
        let write = self.context.writes[at];
        let index = Self::store_of(write.store).index();
        let removed = index.latest_removal_near(self.context.key(write.key), &self.guard);
        self.context.note_removal(removed, self.begin);
    }

    /// The caller concludes something from what the transaction has seen: also from keys that it has missed by inserting them.
    pub(crate) fn note_misses_of_own(&mut self) {
        for at in 0..self.context.writes.len() {
            if self.context.writes[at].before.is_none() {
                self.note_miss_of_own(at);
            }
        }
    }

    /// Inserts a row; `false` when the key exists.
    pub(crate) fn insert_row(
        &mut self,
        store: &ErmiaStore,
        key: &[u8],
        row: &[u64],
        len_bytes: usize,
    ) -> Result<bool, Abort> {
        assert!(key.len() <= KEY_LEN_MAX, "a key of {} bytes", key.len());
        assert_is_row(row, len_bytes);
        self.use_store_to_insert(store)?;
        let mut backoff = Backoff::new();
        loop {
            let oid = match self.publish(store, key, row, len_bytes)? {
                None => return Ok(true),
                Some(oid) => oid,
            };
            // Acquire: [head].
            if store.slot(oid).load(Ordering::Acquire) == DEAD {
                // The key is about to leave the index.
                backoff.wait();
                continue;
            }
            // What is there is read.
            self.use_store(store)?;
            return self.insert_over(store, oid, key, row, len_bytes);
        }
    }

    /// Puts a new record into the index. Returns the one that is there already.
    fn publish(
        &mut self,
        store: &ErmiaStore,
        key: &[u8],
        row: &[u64],
        len_bytes: usize,
    ) -> Result<Option<Oid>, Abort> {
        self.context.reserve_write().map_err(|abort| self.doom(abort))?;
        let key_at = self.context.keep_key(key).map_err(|abort| self.doom(abort))?;
        let oid = self.garbage.take_oid(store).map_err(|_| self.out_of_memory(store, key))?;
        let version = self.allocate(store, len_bytes, None).map_err(|_| {
            self.garbage.give_back(store, oid);
            self.out_of_memory(store, key)
        })?;
        version.record().store_row(row.iter().copied(), len_bytes);
        let slot = store.slot(oid);
        // Release: [head]. The record is complete before its key leads to it.
        slot.store(version.to_word(), Ordering::Release);
        let mut own = OwnInsert { context: self.context, is_overtaken: false, failed: None };
        let inserted = store.index().insert_if_absent(key, oid.index_value(), &self.guard, &mut own);
        let (is_overtaken, failed) = (own.is_overtaken, own.failed);
        if inserted == Ok(Inserted::New) {
            if I::RECORDS_HISTORY {
                self.context.record_missing(&self.shared.recorded_removals, store.id(), key);
            }
            let write = WriteEntry { store: store.into(), oid, version, before: None, key: key_at };
            self.context.push_write(write, std::ptr::from_ref(slot).addr());
            let overtaken = is_overtaken.then(|| Abort::new(AbortReason::NodeValidation, store.id(), key));
            return failed.or(overtaken).map_or(Ok(None), |abort| Err(self.doom(abort)));
        }
        // Relaxed: who passes over all slots, and has found the version, looks at it.
        slot.store(DEAD, Ordering::Relaxed);
        // SAFETY: no key led to the record, and nothing leads to the version any more.
        unsafe { self.garbage.retire(&self.guard, version, &self.context.counters) };
        self.garbage.give_back(store, oid);
        match inserted {
            // SAFETY: the value was read from the store's index, under a pin.
            Ok(Inserted::Existing(value)) => Ok(Some(unsafe { Oid::from_index_value(value) })),
            Ok(Inserted::New) => unreachable!("seen above"),
            Err(InsertError::OutOfMemory(_)) => Err(self.out_of_memory(store, key)),
            Err(error) => unreachable!("{error}"),
        }
    }

    /// Inserts a row where the index has a record: over a deletion.
    fn insert_over(
        &mut self,
        store: &ErmiaStore,
        oid: Oid,
        key: &[u8],
        row: &[u64],
        len_bytes: usize,
    ) -> Result<bool, Abort> {
        match self.see(store, oid)? {
            Seen::Own(at) if self.context.writes[at].version.is_deletion() => {
                self.context.writes[at].version.set_deletion(false);
                self.overwrite_own(at, row, len_bytes)?;
                Ok(true)
            }
            Seen::Own(_) => Ok(false),
            Seen::Version(version, stamp) => {
                self.track(version, stamp)?;
                if I::RECORDS_HISTORY {
                    self.context.record_read(store.id(), key, stamp, version.is_deletion());
                }
                if !version.is_deletion() {
                    return Ok(false);
                }
                let key = self.context.keep_key(key).map_err(|abort| self.doom(abort))?;
                let found = FoundEntry { store: store.into(), oid, version: Some((version, stamp)), key };
                self.install(&found, version, len_bytes, |version| {
                    version.record().store_row(row.iter().copied(), len_bytes);
                })?;
                Ok(true)
            }
            // Somebody has inserted the key, or is about to.
            Seen::Nothing(_) => Err(self.doom_at(AbortReason::KeyExists, store, key)),
        }
    }

    /// Puts a new version in front of the one that the transaction sees, if that is the newest.
    fn install(
        &mut self,
        found: &FoundEntry<I>,
        before: Version<I>,
        len_bytes: usize,
        fill: impl FnOnce(Version<I>),
    ) -> Result<(), Abort> {
        let _indirection = crate::region::indirection();
        let store = Self::store_of(found.store);
        self.context.reserve_write().map_err(|abort| self.doom(abort))?;
        let version = self.allocate(store, len_bytes, Some(before));
        let version = version.map_err(|_| self.out_of_memory(store, &[]))?;
        fill(version);
        self.publish_version(found, before, version)
    }

    /// Makes a version, for which there is room among the writes, the newest one of its record, if `before` is.
    fn publish_version(
        &mut self,
        found: &FoundEntry<I>,
        before: Version<I>,
        version: Version<I>,
    ) -> Result<(), Abort> {
        let _indirection = crate::region::indirection();
        let store = Self::store_of(found.store);
        let slot = store.slot(found.oid);
        if !Self::replace_head(slot, before, version) {
            // SAFETY: nobody has seen it.
            unsafe { version.free(&self.guard) };
            return Err(self.conflict(found));
        }
        if let Some(certificates) = before.certificates() {
            // Release: [successor] who commits later looks here behind its stamp, which comes after this transaction's own.
            certificates.successor.store(self.id.to_word(), Ordering::Release);
        }
        let FoundEntry { store, oid, key, .. } = *found;
        let write = WriteEntry { store, oid, version, before: Some(before), key };
        self.context.push_write(write, std::ptr::from_ref(slot).addr());
        Ok(())
    }

    /// Puts a version in front of the one before, if that is the newest.
    fn replace_head(slot: &AtomicU64, before: Version<I>, version: Version<I>) -> bool {
        if has_fault::<I>(Fault::OverwriteUncommitted) {
            slot.store(version.to_word(), Ordering::Release);
            return true;
        }
        // AcqRel: [head] the version is complete, and so is the one before.
        let ordering = ordering_of(Step::OrderOfHead, Ordering::AcqRel);
        let replace =
            |word| slot.compare_exchange(word, version.to_word(), ordering, Ordering::Relaxed).map(|_| ());
        let mut expected = before.to_word();
        // The mark comes and goes: it was not used for a while, and now it is.
        while let Err(word) = replace(expected) {
            if word & !COOLING != before.to_word() {
                return false;
            }
            expected = word;
        }
        true
    }

    /// Returns a version by this transaction. Where there is no memory, the session's garbage goes first.
    fn allocate(
        &mut self,
        store: &ErmiaStore,
        row_len_bytes: usize,
        older: Option<Version<I>>,
    ) -> Result<Version<I>, OutOfMemory> {
        let author = Author::By(self.id);
        Version::allocate(&self.guard, store.id(), row_len_bytes, author, older).or_else(|_| {
            self.free_garbage();
            Version::allocate(&self.guard, store.id(), row_len_bytes, author, older)
        })
    }

    /// Frees what nobody needs that is no older than this transaction.
    #[cold]
    fn free_garbage(&mut self) {
        self.shared.keep_up_now();
        for _ in 0..COLLECTIONS_MAX {
            if !self.garbage.is_ripe(self.shared) {
                break;
            }
            self.garbage.collect(self.shared, &self.guard, &self.context.counters);
        }
    }

    /// Dooms the transaction because the record that it would write has a newer version.
    #[cold]
    fn conflict(&mut self, found: &FoundEntry<I>) -> Abort {
        let store = Self::store_of(found.store);
        // What cannot be read back is not locked.
        let newest = store.newest::<I>(found.oid, self.shared, &self.guard).unwrap_or_default();
        let is_locked = newest.is_some_and(|newest| matches!(newest.author(), Author::By(_)));
        let reason = if is_locked { AbortReason::LockHeld } else { AbortReason::ReadValidation };
        let abort = Abort::new(reason, store.id(), self.context.key(found.key));
        self.doom(abort)
    }

    #[cold]
    fn out_of_memory(&mut self, store: &ErmiaStore, key: &[u8]) -> Abort {
        self.doom_at(AbortReason::OutOfMemory, store, key)
    }

    /// Returns the transaction's own version of a record that it has not deleted.
    fn own_row(&self, at: usize) -> Version<I> {
        let version = self.context.writes[at].version;
        assert!(!version.is_deletion(), "a deleted record is written");
        version
    }

    /// Returns the version that a handle stands for, of a record that the transaction has not written.
    fn shown(found: &FoundEntry<I>) -> Version<I> {
        match found.version {
            Some((version, _)) => version,
            None => unreachable!("an own version was written"),
        }
    }

    /// Overwrites the row of a version of this transaction's own.
    fn overwrite_own(&mut self, at: usize, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        let write = self.context.writes[at];
        if write.version.record().fits(len_bytes) {
            write.version.record().store_row(row.iter().copied(), len_bytes);
            return Ok(());
        }
        // The version stays behind the larger one, for those who have passed it over and come back to ask for its author.
        let store = Self::store_of(write.store);
        let larger = self.allocate(store, len_bytes, Some(write.version));
        let larger = larger.map_err(|_| self.out_of_memory(store, &[]))?;
        larger.record().store_row(row.iter().copied(), len_bytes);
        // Release: [head].
        store.slot(write.oid).store(larger.to_word(), Ordering::Release);
        self.context.writes[at].version = larger;
        Ok(())
    }
}

/// Carries the node set over an insert of the transaction's own.
#[derive(Debug)]
struct OwnInsert<'a, I: Isolation> {
    context: &'a mut Context<I>,
    /// Whether a node had changed before this insert did.
    is_overtaken: bool,
    failed: Option<Abort>,
}

impl<I: Isolation> InsertObserver for OwnInsert<'_, I> {
    fn changed(&mut self, node: NodeId, before: NodeVersion, after: NodeVersion) {
        self.is_overtaken |= !self.context.nodes.change(node, before, after);
    }

    fn split(&mut self, from: NodeId, new: NodeStamp) {
        if self.context.nodes.contains(from) {
            match self.context.nodes.add(new, &mut self.context.held) {
                Ok(is_current) => self.is_overtaken |= !is_current,
                Err(abort) => self.failed = Some(abort),
            }
        }
    }
}
