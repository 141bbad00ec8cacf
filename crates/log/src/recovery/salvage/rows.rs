//! The rows as they come together from a checkpoint and a log, in any order.
//!
//! The rule is that of [`Replay`]: the base with the largest TID wins, and each word takes the value of the
//! latest patch after it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use ensilo_epoch::Epoch;

use crate::format::{Change, Write, epoch_of};
use crate::recovery::{Replay, ReplayError};

/// Which record it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// The number of its table.
    pub table: u32,
    /// Its key.
    pub key: Vec<u8>,
}

/// Takes writes.
#[derive(Debug, Default)]
pub(super) struct RowCollector(Mutex<BTreeMap<RecordKey, CollectedRow>>);

/// What has come for a key.
#[derive(Debug, Default)]
struct CollectedRow {
    /// Whether the checkpoint has it.
    is_in_checkpoint: bool,
    /// The latest put or delete, with its TID.
    base: Option<(u64, Option<Box<[u8]>>)>,
    /// The latest value of each word that a patch after the base has set: its index, the TID and the word.
    words: Vec<(u32, u64, u64)>,
}

/// A row, and the TID that changed it last.
#[derive(Debug)]
pub(super) struct KeptRow {
    pub(super) tid: u64,
    pub(super) row: Box<[u8]>,
}

/// What there is when everything has come.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) rows: BTreeMap<RecordKey, KeptRow>,
    /// Rows of which there are only changes.
    pub(super) incomplete: Vec<RecordKey>,
    /// How many records of each table could be read in the checkpoint. What is there twice counts once.
    pub(super) records: BTreeMap<u32, u64>,
    /// No row, and nothing in the damaged database, has a later epoch.
    pub(super) last_epoch: Epoch,
}

impl RowCollector {
    /// Takes records of the checkpoint.
    pub(super) fn take_records(&self, records: &[Write<'_>]) {
        self.take(records, true);
    }

    fn take(&self, writes: &[Write<'_>], is_in_checkpoint: bool) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for write in writes {
            let key = RecordKey { table: write.table, key: write.key.to_vec() };
            let collected = rows.entry(key).or_default();
            collected.is_in_checkpoint |= is_in_checkpoint;
            collected.take(write);
        }
    }

    /// Takes what copies of records have come to: over the records of the same keys if `is_proved`, which
    /// says that they are what the checkpoint had, otherwise only where there is no other. Nothing of the log
    /// has come yet.
    pub(super) fn take_copies(&self, copies: RowCollector, is_proved: bool) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, copy) in copies.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match rows.entry(key) {
                Entry::Occupied(mut record) if is_proved => _ = record.insert(copy),
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => _ = place.insert(copy),
            }
        }
    }

    /// Returns what has come of a database in which nothing has an epoch after `last_epoch`, as far as is
    /// known.
    pub(super) fn finish(self, last_epoch: Epoch) -> Kept {
        let mut kept = Kept { last_epoch, ..Kept::default() };
        for (key, collected) in self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            if collected.is_in_checkpoint {
                *kept.records.entry(key.table).or_default() += 1;
            }
            match collected.base {
                Some((_, None)) => {}
                Some((tid, Some(row))) => match patched(tid, row, &collected.words) {
                    Some(row) => _ = kept.rows.insert(key, row),
                    None => kept.incomplete.push(key),
                },
                None => kept.incomplete.push(key),
            }
        }
        let epochs = kept.rows.values().map(|row| epoch_of(row.tid));
        kept.last_epoch = epochs.fold(last_epoch, Epoch::max);
        kept
    }
}

/// Returns a row with all words set that were changed; `None` if one of them lies outside of it, so that it
/// is not the row that was changed.
fn patched(tid: u64, mut row: Box<[u8]>, words: &[(u32, u64, u64)]) -> Option<KeptRow> {
    let mut last = tid;
    for &(index, tid, word) in words {
        let rest = row.get_mut(index as usize * 8..).filter(|rest| !rest.is_empty())?;
        let len = rest.len().min(8);
        rest[..len].copy_from_slice(&word.to_le_bytes()[..len]);
        last = last.max(tid);
    }
    Some(KeptRow { tid: last, row })
}

impl CollectedRow {
    fn take(&mut self, write: &Write<'_>) {
        match &write.change {
            Change::Put(row) => self.take_base(write.tid, Some((*row).into())),
            Change::Delete => self.take_base(write.tid, None),
            Change::Patch(words) => {
                words.clone().for_each(|(index, word)| self.take_word(index, write.tid, word))
            }
        }
    }

    fn take_base(&mut self, tid: u64, row: Option<Box<[u8]>>) {
        if self.base.as_ref().is_none_or(|(base, _)| *base <= tid) {
            self.base = Some((tid, row));
            self.words.retain(|word| word.1 > tid);
        }
    }

    fn take_word(&mut self, index: u32, tid: u64, word: u64) {
        if self.base.as_ref().is_some_and(|(base, _)| *base >= tid) {
            return;
        }
        match self.words.iter_mut().find(|known| known.0 == index) {
            Some(known) if known.1 > tid => {}
            Some(known) => *known = (index, tid, word),
            None => self.words.push((index, tid, word)),
        }
    }
}

impl Replay for RowCollector {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), writes: &[Write<'_>]) -> Result<(), ReplayError> {
        self.take(writes, false);
        Ok(())
    }
}
