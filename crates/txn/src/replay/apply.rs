//! One write of the log, or one record of a checkpoint, applied to its key.
//!
//! The result does not depend on the order: the base with the largest TID wins, and each word takes the value of the
//! latest patch after the base. A patch that comes in its order, as most do, becomes part of the base and the record's chain longer; any other write
//! to a record with a chain makes a list of pending words of it, or ends it.

use std::ptr::NonNull;

use ensilo_engine::Tid;
use ensilo_epoch::Guard;
use ensilo_index::{Inserted, Lookup};
use ensilo_log::{Change, ReplayError, Write as LogWrite};
use ensilo_sync::cpu_relax;

use super::chain::{self, ChainEntry};
use super::leftover::Leftover;
use super::list_memory::NoMemory;
use super::pending::{LockedRecord, PendingWord};
use super::side::Side;
use crate::record::RecordPtr;
use crate::silo::{self, Variant, free, retire};
use crate::store::Store;
use crate::tid::TidWord;

/// Applies `write`; `found` is the record that the tree had for its key a moment ago.
pub(super) fn apply<V: Variant>(
    store: &Store,
    guard: &Guard<'_>,
    leftover: &mut Leftover,
    write: &LogWrite<'_>,
    mut found: Option<RecordPtr>,
) -> Result<(), ReplayError> {
    loop {
        let record = match found {
            Some(record) => record,
            None => match insert::<V>(store, guard, leftover, write)? {
                None => return Ok(()),
                Some(existing) => existing,
            },
        };
        if let Some(word) = lock_latest(record) {
            let mut target = ReplayTarget { store, guard, leftover, write, record, word };
            return target.apply::<V>();
        }
        cpu_relax();
        found = look_up(store, guard, write.key);
    }
}

fn look_up(store: &Store, guard: &Guard<'_>, key: &[u8]) -> Option<RecordPtr> {
    match store.index().get(key, guard) {
        // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
        Lookup::Found(value) => Some(unsafe { RecordPtr::from_index_value(value) }),
        Lookup::Missing(_) => None,
    }
}

/// Locks the record as it is; `None` when another one has taken its place in the tree.
pub(super) fn lock_latest(record: RecordPtr) -> Option<TidWord> {
    loop {
        let word = record.tid().unlocked();
        if !word.is_latest() {
            return None;
        }
        if record.try_lock(word) {
            return Some(word);
        }
        cpu_relax();
    }
}

/// Puts a record for a key that the tree has not, or was not asked for. Returns the record that is there already.
fn insert<V: Variant>(
    store: &Store,
    guard: &Guard<'_>,
    leftover: &mut Leftover,
    write: &LogWrite<'_>,
) -> Result<Option<RecordPtr>, ReplayError> {
    let tid = Tid::from_raw(write.tid);
    let (row, word) = match &write.change {
        Change::Put(row) => (*row, TidWord::live(tid)),
        Change::Patch(_) => (&[][..], TidWord::PLACEHOLDER),
        Change::Delete if leftover.forgets_tombstones => return Ok(None),
        Change::Delete => (&[][..], TidWord::deleted(tid)),
    };
    let record = match allocate::<V>(store, guard, row, word) {
        Ok(record) => record,
        // What takes the place of a row that is there may need none.
        Err(error) => return look_up(store, guard, write.key).map(Some).ok_or(error),
    };
    if let Change::Patch(words) = &write.change {
        let mut locked = LockedRecord::new(record);
        let words = words.clone().map(|(index, word)| PendingWord { index, tid, word });
        locked.set_words(&mut leftover.memory, words, |_| {})?;
    }
    let inserted = store.index().insert_if_absent(write.key, record.index_value(), guard, &mut ());
    if matches!(inserted, Ok(Inserted::New)) {
        match &write.change {
            Change::Put(_) => {
                leftover.count_row(store.id(), 1);
                leftover.puts_are_new = true;
            }
            Change::Patch(_) => {
                // Others may have found it meanwhile, and even replaced it: its list says that it is known.
                leftover.touched.push(record);
                leftover.push_pending(record, tid.epoch());
            }
            Change::Delete => leftover.tombstones.push((store.id(), write.key.into())),
        }
        return Ok(None);
    }
    LockedRecord::new(record).end(&mut leftover.memory);
    // SAFETY: the tree did not take the record, so nobody else knows it.
    unsafe { free::<V>(record, guard) };
    match inserted {
        // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
        Ok(Inserted::Existing(value)) => Ok(Some(unsafe { RecordPtr::from_index_value(value) })),
        Ok(Inserted::New) => unreachable!("handled above"),
        Err(ensilo_index::InsertError::OutOfMemory(_)) => Err(ReplayError::OutOfMemory),
        Err(_) => Err(ReplayError::Refused("a key longer than an index takes".into())),
    }
}

fn allocate<V: Variant>(
    store: &Store,
    guard: &Guard<'_>,
    row: &[u8],
    word: TidWord,
) -> Result<RecordPtr, ReplayError> {
    if row.len() > crate::ROW_LEN_MAX {
        return Err(ReplayError::Refused("a row longer than a record takes".into()));
    }
    let record =
        silo::allocate::<V>(guard, store.id(), row.len(), word).map_err(|_| ReplayError::OutOfMemory)?;
    record.store_row_bytes(row);
    Ok(record)
}

/// A write and the record of its key, locked.
struct ReplayTarget<'a, 'b> {
    store: &'a Store,
    guard: &'a Guard<'a>,
    leftover: &'a mut Leftover,
    write: &'a LogWrite<'b>,
    record: RecordPtr,
    /// What the record's TID word was before it was locked.
    word: TidWord,
}

impl ReplayTarget<'_, '_> {
    /// Applies the write and frees the lock.
    fn apply<V: Variant>(&mut self) -> Result<(), ReplayError> {
        let tid = Tid::from_raw(self.write.tid);
        self.leftover.puts_are_new &= !matches!(self.write.change, Change::Put(_));
        if self.extend_chain(tid) {
            return Ok(());
        }
        match (self.leave_chain(tid), &self.write.change) {
            (Ok(true), Change::Put(row)) => return self.put::<V>(row, tid),
            (Ok(true), Change::Delete) => self.delete(tid),
            (Ok(true), Change::Patch(words)) => return self.patch(words.clone(), tid),
            (Ok(false), _) => self.record.publish(self.word),
            (Err(error), _) => {
                self.record.publish(self.word);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Makes a patch that comes in its order part of a live row, and frees the lock. Returns whether it was one, and there was room to remember it.
    #[inline]
    fn extend_chain(&mut self, tid: Tid) -> bool {
        let Change::Patch(words) = &self.write.change else { return false };
        let (first, is_known) = match Side::of(self.record) {
            Side::Unknown => (None, false),
            Side::Chain(first) => (first, true),
            Side::List(_) => return false,
        };
        if !self.is_live() || tid <= self.word.tid() {
            return false;
        }
        let len_words = self.record.row().len_words();
        let Some(mut room) = self.leftover.chains.room(words.len()) else { return false };
        for (index, word) in words.clone() {
            if index as usize >= len_words {
                // The list stores those before it again.
                return false;
            }
            room.push(index);
            self.record.store_word(index as usize, word);
        }
        let entry = self.leftover.chains.add(room, first, self.word.tid(), tid);
        Side::Chain(Some(entry)).put(self.record);
        if !is_known {
            self.leftover.touched.push(self.record);
        }
        self.record.publish(TidWord::live(tid));
        true
    }

    /// Returns whether the write counts beside what has come before. If it does, the record has no chain then, or one of nothing but older patches than
    /// this base.
    fn leave_chain(&mut self, tid: Tid) -> Result<bool, NoMemory> {
        if let Side::Chain(Some(first)) = Side::of(self.record) {
            let is_base = !matches!(self.write.change, Change::Patch(_));
            if is_base && tid >= self.word.tid() {
                return Ok(true);
            }
            if tid == self.word.tid() {
                return Ok(false);
            }
            // Also for a write that does not count: the next one of this kind would go through the chain as well.
            self.make_list(first)?;
        }
        Ok(!self.has_base() || tid > self.word.tid())
    }

    /// Makes a list of pending words of a chain, as far as older writes may come. The base is what is before them.
    fn make_list(&mut self, first: NonNull<ChainEntry>) -> Result<(), NoMemory> {
        let row = self.record.row();
        // By word, the last patch that has set it.
        let mut setters: Vec<Option<Tid>> = Vec::new();
        setters.try_reserve_exact(row.len_words()).map_err(|_| NoMemory)?;
        setters.resize(row.len_words(), None);
        let (mut entry, mut tid) = (Some(first), self.word.tid());
        while let Some(patch) = entry
            && tid.epoch() >= self.leftover.floor
        {
            // SAFETY: H3: it is not before this worker's floor, which does not rise during this call.
            let (indexes, patch) = unsafe { (chain::indexes(patch), patch.as_ref()) };
            for &index in indexes {
                setters[index as usize].get_or_insert(tid);
            }
            (entry, tid) = patch.previous();
        }
        let mut words = Vec::new();
        words.try_reserve_exact(setters.iter().flatten().count()).map_err(|_| NoMemory)?;
        let word_at = |(at, tid): (usize, Option<Tid>)| {
            tid.map(|tid| PendingWord { index: at as u32, tid, word: row.word(at) })
        };
        words.extend(setters.into_iter().enumerate().filter_map(word_at));
        Side::Chain(None).put(self.record);
        self.leftover.push_pending(self.record, self.word.tid().epoch());
        self.word = TidWord::live(tid);
        LockedRecord::new(self.record).set_words(&mut self.leftover.memory, words.into_iter(), |_| {})
    }

    fn has_base(&self) -> bool {
        self.word != TidWord::PLACEHOLDER
    }

    fn is_live(&self) -> bool {
        !self.word.is_absent()
    }

    fn put<V: Variant>(&mut self, row: &[u8], tid: Tid) -> Result<(), ReplayError> {
        let new = self.replacement::<V>(row, tid)?;
        let target = new.unwrap_or(self.record);
        if new.is_none() {
            target.store_row_bytes(row);
        }
        let is_known = Side::of(self.record) != Side::Unknown;
        let mut locked = self.forget_before(tid);
        let len_words = row.len().div_ceil(8);
        // Those outside belong to a longer row that is still to come.
        let within = locked.words().iter().filter(|word| (word.index as usize) < len_words);
        within.for_each(|word| target.store_word(word.index as usize, word.word));
        if let Some(new) = new
            && locked.has_list()
        {
            locked.hand_to(new);
            self.leftover.touched.push(new);
            self.leftover.push_pending(new, tid.epoch());
        }
        if !self.is_live() {
            self.leftover.count_row(self.store.id(), 1);
        }
        match new {
            None => self.record.publish(TidWord::live(tid)),
            Some(new) => self.take_place::<V>(new, is_known),
        }
        Ok(())
    }

    /// Returns a record for a row that does not fit into the one that is there, or that takes little of its large block. Frees the lock when there is no
    /// memory for it and there has to be one.
    fn replacement<V: Variant>(&self, row: &[u8], tid: Tid) -> Result<Option<RecordPtr>, ReplayError> {
        let fits = self.record.fits(row.len());
        if fits && !self.record.wastes_large(row.len()) {
            return Ok(None);
        }
        match allocate::<V>(self.store, self.guard, row, TidWord::live(tid)) {
            Ok(new) => Ok(Some(new)),
            Err(_) if fits => Ok(None),
            Err(error) => {
                self.record.publish(self.word);
                Err(error)
            }
        }
    }

    /// Puts `new` into the tree instead of the record. One that a worker may know stays until the replay is over (T2).
    fn take_place<V: Variant>(&mut self, new: RecordPtr, is_known: bool) {
        let (old, new) = (self.record.index_value(), new.index_value());
        let is_replaced = self.store.index().replace(self.write.key, old, new, self.guard);
        assert!(is_replaced, "a locked, latest record is the one in the tree");
        self.record.publish(self.word.superseded());
        if is_known {
            self.leftover.superseded.push(self.record);
        } else {
            // SAFETY: the tree does not lead to it any more, whoever finds it superseded asks the tree again, and no worker knows it.
            unsafe { retire::<V>(self.record, self.guard, &mut self.leftover.garbage) };
        }
    }

    /// Forgets all patches before a new base.
    fn forget_before(&self, tid: Tid) -> LockedRecord {
        if let Side::Chain(Some(_)) = Side::of(self.record) {
            Side::Chain(None).put(self.record);
        }
        let mut locked = LockedRecord::new(self.record);
        locked.keep(|other| other > tid);
        locked
    }

    fn delete(&mut self, tid: Tid) {
        self.forget_before(tid);
        if self.is_live() {
            self.leftover.count_row(self.store.id(), -1);
        }
        self.leftover.tombstones.push((self.store.id(), self.write.key.into()));
        self.record.publish(TidWord::deleted(tid));
    }

    fn patch(
        &mut self,
        words: impl ExactSizeIterator<Item = (u32, u64)>,
        tid: Tid,
    ) -> Result<(), ReplayError> {
        let outcome = self.set_words(words, tid);
        self.record.publish(self.word);
        Ok(outcome?)
    }

    fn set_words(
        &mut self,
        words: impl ExactSizeIterator<Item = (u32, u64)>,
        tid: Tid,
    ) -> Result<(), NoMemory> {
        let mut locked = LockedRecord::new(self.record);
        let side = Side::of(self.record);
        let len_words = if self.is_live() { self.record.row().len_words() } else { 0 };
        let words = words.map(|(index, word)| PendingWord { index, tid, word });
        let outcome = locked.set_words(&mut self.leftover.memory, words, |word| {
            if (word.index as usize) < len_words {
                self.record.store_word(word.index as usize, word.word);
            }
        });
        if !matches!(side, Side::List(_)) && locked.has_list() {
            if side == Side::Unknown {
                self.leftover.touched.push(self.record);
            }
            self.leftover.push_pending(self.record, tid.epoch());
        }
        outcome
    }
}
