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
    /// The latest value of each word that a patch after the base has set, by its index.
    words: BTreeMap<u32, PatchedWord>,
}

/// A word, and the TID of the patch that has set it.
#[derive(Debug)]
struct PatchedWord {
    tid: u64,
    word: u64,
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
fn patched(tid: u64, mut row: Box<[u8]>, words: &BTreeMap<u32, PatchedWord>) -> Option<KeptRow> {
    let mut last = tid;
    for (&index, &PatchedWord { tid, word }) in words {
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
            self.words.retain(|_, word| word.tid > tid);
        }
    }

    fn take_word(&mut self, index: u32, tid: u64, word: u64) {
        if self.base.as_ref().is_some_and(|(base, _)| *base >= tid) {
            return;
        }
        match self.words.entry(index) {
            Entry::Occupied(known) if known.get().tid > tid => {}
            Entry::Occupied(mut known) => *known.get_mut() = PatchedWord { tid, word },
            Entry::Vacant(place) => _ = place.insert(PatchedWord { tid, word }),
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

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// What is done to a row, by a TID of its own.
    #[derive(Clone, Debug)]
    enum Done {
        Put { len_words: u32 },
        Deleted,
        Patched { index: u32 },
    }

    const WORDS_MAX: u32 = 40;

    fn done() -> impl Strategy<Value = Done> {
        prop_oneof![
            1 => (1..=WORDS_MAX).prop_map(|len_words| Done::Put { len_words }),
            1 => Just(Done::Deleted),
            30 => (0..WORDS_MAX).prop_map(|index| Done::Patched { index }),
        ]
    }

    fn row(len_words: u32, tid: u64) -> Vec<u64> {
        vec![tid; len_words as usize]
    }

    fn bytes(row: &[u64]) -> Box<[u8]> {
        row.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Returns the row after all that was done in the order of the TIDs, and the last of them; `Err` where it has no such word.
    fn in_order(all: &BTreeMap<u64, Done>) -> Result<Option<(u64, Vec<u64>)>, ()> {
        let is_base = |done: &Done| !matches!(done, Done::Patched { .. });
        let (&base, done) = all.iter().rfind(|(_, done)| is_base(done)).ok_or(())?;
        let &Done::Put { len_words } = done else { return Ok(None) };
        let (mut last, mut words) = (base, row(len_words, base));
        for (&tid, done) in all.range(base + 1..) {
            if let Done::Patched { index } = done {
                *words.get_mut(*index as usize).ok_or(())? = tid;
                last = tid;
            }
        }
        Ok(Some((last, words)))
    }

    proptest! {
        #[test]
        fn what_comes_in_any_order_makes_the_row_that_it_makes_in_order(
            arrivals in vec(done(), 1..300)
                .prop_map(|all| (1..).zip(all).collect::<Vec<(u64, Done)>>())
                .prop_shuffle(),
        ) {
            let mut collected = CollectedRow::default();
            for (tid, done) in &arrivals {
                match *done {
                    Done::Put { len_words } => collected.take_base(*tid, Some(bytes(&row(len_words, *tid)))),
                    Done::Deleted => collected.take_base(*tid, None),
                    Done::Patched { index } => collected.take_word(index, *tid, *tid),
                }
            }
            let found = match collected.base {
                None => Err(()),
                Some((_, None)) => Ok(None),
                Some((tid, Some(row))) => patched(tid, row, &collected.words).map(Some).ok_or(()),
            };
            let found = found.map(|kept| kept.map(|kept| (kept.tid, kept.row)));
            let expected = in_order(&arrivals.into_iter().collect());
            prop_assert_eq!(found, expected.map(|kept| kept.map(|(tid, words)| (tid, bytes(&words)))));
        }
    }

    #[test]
    fn a_row_of_megabytes_of_which_every_word_has_changed_is_collected() {
        // A search in a list for each would take as long as the square of that.
        let len_words = 1 << 20;
        let mut collected = CollectedRow::default();
        (0..len_words).rev().for_each(|index| collected.take_word(index, 2, u64::from(index)));
        collected.take_base(1, Some(bytes(&row(len_words, 1))));
        let kept = patched(1, bytes(&row(len_words, 1)), &collected.words).unwrap();
        assert!(kept.row == bytes(&(0..u64::from(len_words)).collect::<Vec<_>>()));
    }
}
