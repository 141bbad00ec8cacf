//! Additions to numbers of rows that the transaction has not read.
//!
//! A transaction that reads a counter, to write one more, is in conflict with everybody who counts meanwhile. An addition says what is to be
//! added, and the number is read at the commit, under the record's lock: so transactions that add to one row come one after the other.
//!
//! # Source
//! Deviates from Silo (SOSP 2013), whose writes replace what was read. STO (VLDB 2020, "commit-time updates") has the like.
//!
//! # States
//! ```text
//! Add -> Add      another addition
//!  |
//!  |--> Patch     once the transaction reads the record, or writes it otherwise
//!  |--> Patch     at the commit, once the record is locked; back to Add, if the commit has to let go of its locks to wait
//! ```
//! Either way the version that the numbers are of joins the read set then, so that all that holds for a patch holds from there on: its TID is less
//! than that of the commit, and a history shows the read.
//!
//! # Layout
//! Among the row words of the transaction: the additions, two words each; how many they are; and the pairs of the patch that becomes of them, as
//! many as additions at most.

use ensilo_engine::{Abort, AbortReason, Addition, Fault};
use ensilo_epoch::Epoch;
use ensilo_index::Lookup;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::cpu_relax;

use super::context::{Context, NOT_READ};
use super::transaction::Transaction;
use super::variant::{Variant, has_fault};
use super::write_set::{InstallPlan, RecordChange, RowSpan, WriteEntry};
use crate::handle::RecordHandle;
use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::TidWord;

/// So many additions are noted for one record. With more of them the row is read: each is noted in a place of its own.
const ADDITIONS_MAX: usize = 16;

/// What comes of an addition to the record that the tree has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noting {
    /// It was noted.
    Noted,
    /// The row has to be read instead.
    NotAlone,
    /// The tree knows a newer record.
    Superseded,
}

impl<V: Variant> Transaction<'_, V> {
    /// Notes additions to the row under a key; see [`Write::add`](ensilo_engine::Write::add).
    pub(super) fn add_unread(
        &mut self,
        store: &Store,
        key: &[u8],
        since: Epoch,
        additions: &[Addition],
    ) -> Result<bool, Abort> {
        self.check_store(store)?;
        // What it adds to would have to be registered before, and with that it is as good as read.
        if self.context.protection.is_some() {
            return Ok(false);
        }
        loop {
            let Lookup::Found(value) = store.index().get(key, &self.guard) else { return Ok(false) };
            // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
            let record = unsafe { RecordPtr::from_index_value(value) };
            match self.add_to_record(record, key, since, additions)? {
                Noting::Noted => return Ok(true),
                Noting::NotAlone => return Ok(false),
                Noting::Superseded => cpu_relax(),
            }
        }
    }

    /// Notes additions to the row of a record that the tree has under a key.
    pub(super) fn add_to_record(
        &mut self,
        record: RecordPtr,
        key: &[u8],
        since: Epoch,
        additions: &[Addition],
    ) -> Result<Noting, Abort> {
        let began = self.guard.epoch();
        let noting = self.context.note_additions(record, key, began, since, additions);
        if has_fault::<V>(Fault::EarlyAddition) && noting == Ok(Noting::Noted) {
            let noted = self.context.own_write(record);
            let _ = noted.and_then(|at| self.context.sums(&self.context.writes[at]));
        }
        noting.map_err(|abort| self.doom(abort))
    }

    /// Reads what the transaction has added to unread, before it writes otherwise to the record of its write at `at` by this handle.
    #[inline]
    pub(super) fn settle_for(&mut self, found: RecordHandle, at: usize) -> Result<(), Abort> {
        if !matches!(self.context.writes[at].change, RecordChange::Add(_)) {
            return Ok(());
        }
        let settled = self.context.settle(at).and_then(|()| {
            let (seen, write) = (self.context.reads[found.entry as usize], &self.context.writes[at]);
            if seen.word == write.observed {
                return Ok(());
            }
            // What the caller knows of the row by the handle is of an earlier version.
            Err(self.context.abort_at(AbortReason::ReadValidation, found.record, seen.key))
        });
        settled.map_err(|abort| self.doom(abort))
    }

    /// Reads all that the transaction has added to unread.
    pub(super) fn settle_all(&mut self) -> Result<(), Abort> {
        (0..self.context.writes.len()).try_for_each(|at| self.context.settle(at))
    }

    /// Lets others go on with the record that the commit locks first, if that is added to and is contended.
    #[inline]
    pub(super) fn stand_back(&mut self) {
        let Context { lock_order, writes, contention, .. } = &mut *self.context;
        let Some(&(_, first)) = lock_order.first() else { return };
        let write = &writes[first as usize];
        if matches!(write.change, RecordChange::Add(_)) {
            contention.stand_back(write.record.tid() != write.observed);
        }
    }

    /// Locks the record of the additions at `at` of the write set, whatever version it has, and makes a patch of them. On an error the record
    /// is not locked.
    #[cold]
    pub(super) fn lock_additions(&mut self, at: usize) -> Result<(), Abort> {
        let write = self.context.writes[at];
        let observed = self.context.lock_any_version(&write)?;
        let sums = match write.change {
            RecordChange::Add(span) if has_fault::<V>(Fault::EarlyAddition) => {
                Some(span.pairs(span.len as usize))
            }
            _ => self.context.sums(&write),
        };
        let patched = self.context.patch_with_sums(at, observed, sums);
        if patched.is_err() {
            write.record.publish(observed);
        }
        patched
    }
}

impl Context {
    fn note_additions(
        &mut self,
        record: RecordPtr,
        key: &[u8],
        began: Epoch,
        since: Epoch,
        additions: &[Addition],
    ) -> Result<Noting, Abort> {
        if let Some(at) = self.own_write(record) {
            return self.note_more(at, additions);
        }
        let word = record.stable_tid().map_err(|reason| Abort::new(reason, record.store(), key))?;
        if !word.is_latest() {
            return Ok(Noting::Superseded);
        }
        if word.is_absent() || word.tid().epoch() < since || additions.len() > ADDITIONS_MAX {
            return Ok(Noting::NotAlone);
        }
        // Reading finds out that a record has come into the place of one that the transaction has written.
        if self.may_hide_write(word, began) && self.has_written(record.store(), key)? {
            return Ok(Noting::NotAlone);
        }
        let len_words = record.row().len_words();
        let is_in_row = additions.iter().all(|addition| (addition.word as usize) < len_words);
        if !is_in_row {
            assert!(!record.is_still(word), "an addition outside the row");
            return Ok(Noting::NotAlone);
        }
        let span = self.push_additions(additions)?;
        let key = self.push_key(key)?;
        self.push_write(WriteEntry {
            record,
            observed: word,
            change: RecordChange::Add(span),
            key,
            entry: NOT_READ,
            is_created: false,
            plan: InstallPlan::Open,
        })?;
        Ok(Noting::Noted)
    }

    /// Notes additions to a record that the transaction has written at `at`.
    fn note_more(&mut self, at: usize, additions: &[Addition]) -> Result<Noting, Abort> {
        let RecordChange::Add(span) = self.writes[at].change else { return Ok(Noting::NotAlone) };
        let mut all = AllAdditions::default();
        let noted = self.additions(span);
        if !noted.chain(additions.iter().copied()).all(|addition| all.add(addition)) {
            return Ok(Noting::NotAlone);
        }
        let all = all.as_slice();
        if all.len() == span.len as usize {
            self.set_additions(span, all);
        } else {
            self.writes[at].change = RecordChange::Add(self.push_additions(all)?);
        }
        Ok(Noting::Noted)
    }

    /// Puts additions among the row words, with room for the patch that becomes of them.
    fn push_additions(&mut self, additions: &[Addition]) -> Result<RowSpan, Abort> {
        let len = additions.len();
        self.rows.reserve(4 * len + 1, &mut self.held)?;
        let span = RowSpan { start: self.rows.end(), len: len as u32 };
        self.rows.extend_reserved((0..4 * len + 1).map(|_| AtomicU64::new(0)));
        self.set_additions(span, additions);
        Ok(span)
    }

    // Relaxed, here and below: these words are the worker's own.

    fn set_additions(&self, span: RowSpan, additions: &[Addition]) {
        let words = &self.rows[span.start as usize..][..2 * additions.len() + 1];
        let packed = additions.iter().flat_map(|addition| addition.pack()).chain([additions.len() as u64]);
        words.iter().zip(packed).for_each(|(word, packed)| word.store(packed, Ordering::Relaxed));
    }

    fn additions(&self, span: RowSpan) -> impl Iterator<Item = Addition> {
        let (words, _) = self.rows[span.start as usize..][..2 * span.len as usize].as_chunks::<2>();
        words.iter().map(|words| Addition::unpack(words.each_ref().map(|word| word.load(Ordering::Relaxed))))
    }

    /// Locks the record of a write that has not read it.
    fn lock_any_version(&self, write: &WriteEntry) -> Result<TidWord, Abort> {
        loop {
            let word = self.version_to_add_to(write)?;
            if write.record.try_lock(word) {
                return Ok(word);
            }
        }
    }

    /// Returns the version of a record that is added to, unless its row is gone.
    fn version_to_add_to(&self, write: &WriteEntry) -> Result<TidWord, Abort> {
        let reason = match write.record.stable_tid() {
            Ok(word) if has_row(word) => return Ok(word),
            Ok(_) => AbortReason::ReadValidation,
            Err(reason) => reason,
        };
        Err(self.abort_at(reason, write.record, write.key))
    }

    /// Checks, without locks, that the rows that are added to are there.
    pub(super) fn validate_additions(&self) -> Result<(), Abort> {
        let mut additions = self.writes.iter().filter(|write| matches!(write.change, RecordChange::Add(_)));
        additions.try_for_each(|write| self.version_to_add_to(write).map(drop))
    }

    /// If the write at `at` is one of additions, reads the row for them, and makes a patch of them.
    #[inline]
    pub(super) fn settle(&mut self, at: usize) -> Result<(), Abort> {
        if matches!(self.writes[at].change, RecordChange::Add(_)) {
            self.settle_additions(at)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn settle_additions(&mut self, at: usize) -> Result<(), Abort> {
        let write = self.writes[at];
        loop {
            let word = self.version_to_add_to(&write)?;
            let sums = self.sums(&write);
            if write.record.is_still(word) {
                return self.patch_with_sums(at, word, sums);
            }
        }
    }

    /// Makes a patch of the additions at `at` to a record that the transaction reads in this version.
    fn patch_with_sums(&mut self, at: usize, observed: TidWord, sums: Option<RowSpan>) -> Result<(), Abort> {
        let WriteEntry { record, key, .. } = self.writes[at];
        let Some(sums) = sums else { return Err(self.abort_at(AbortReason::SumOutOfRange, record, key)) };
        let entry = self.push_read(record, observed, key)?;
        let write = &mut self.writes[at];
        (write.observed, write.entry, write.change) = (observed, entry, RecordChange::Patch(sums));
        Ok(())
    }

    /// Makes additions again of the patches that the commit has made of them since there were so many reads. No lock is held.
    #[cold]
    pub(super) fn take_sums_back(&mut self, reads: usize) {
        for at in 0..self.writes.len() {
            let write = &self.writes[at];
            let RecordChange::Patch(patch) = write.change else { continue };
            if write.entry == NOT_READ || (write.entry as usize) < reads {
                continue;
            }
            let count = self.rows[patch.start as usize - 1].load(Ordering::Relaxed) as u32;
            let additions = RowSpan { start: patch.start - 1 - 2 * count, len: count };
            let write = &mut self.writes[at];
            (write.change, write.entry) = (RecordChange::Add(additions), NOT_READ);
        }
        self.reads.truncate(reads);
    }

    /// Computes the words of a record's row with all that is added to them, in the room behind the additions; `None` where a number has no room for a
    /// sum. Words of a row that is being overwritten give any sums.
    fn sums(&self, write: &WriteEntry) -> Option<RowSpan> {
        let RecordChange::Add(span) = write.change else { unreachable!("there are additions") };
        let row = write.record.row();
        let room = span.pairs(span.len as usize);
        let (pairs, _) = self.rows[room.start as usize..][..2 * room.len as usize].as_chunks::<2>();
        let mut used = 0;
        for addition in self.additions(span) {
            let index = addition.word as usize;
            if index >= row.len_words() {
                return None;
            }
            let known = pairs[..used].iter().find(|pair| pair[0].load(Ordering::Relaxed) == index as u64);
            let before = known.map_or_else(|| row.word(index), |pair| pair[1].load(Ordering::Relaxed));
            let sum = addition.apply(before)?;
            let pair = known.unwrap_or(&pairs[used]);
            used += usize::from(known.is_none());
            pair[0].store(index as u64, Ordering::Relaxed);
            pair[1].store(sum, Ordering::Relaxed);
        }
        Some(span.pairs(used))
    }
}

impl RowSpan {
    /// Returns the span of the first `len` pairs in the room behind additions.
    fn pairs(self, len: usize) -> RowSpan {
        RowSpan { start: self.start + 2 * self.len + 1, len: len as u32 }
    }
}

/// Returns whether a record with this version, locked or not, is the newest of its key and has a row.
pub(super) fn has_row(word: TidWord) -> bool {
    word.is_latest() && !word.is_absent()
}

/// The additions to one record.
struct AllAdditions {
    additions: [Addition; ADDITIONS_MAX],
    len: usize,
}

impl Default for AllAdditions {
    fn default() -> Self {
        let none = Addition::unpack([0, 0]);
        AllAdditions { additions: [none; ADDITIONS_MAX], len: 0 }
    }
}

impl AllAdditions {
    fn as_slice(&self) -> &[Addition] {
        &self.additions[..self.len]
    }

    /// Adds one; `false` if there is no room for it. It becomes one with the last addition to the same number, if both go in one direction: then no sum
    /// between them can be out of range unless the last one is.
    fn add(&mut self, addition: Addition) -> bool {
        let last = self.additions[..self.len].iter_mut().rev().find(|last| last.has_number_of(addition));
        if let Some(last) = last
            && last.is_subtraction == addition.is_subtraction
            && let Some(amount) = last.amount.checked_add(addition.amount)
        {
            last.amount = amount;
            return true;
        }
        if self.len == ADDITIONS_MAX {
            return false;
        }
        self.additions[self.len] = addition;
        self.len += 1;
        true
    }
}
