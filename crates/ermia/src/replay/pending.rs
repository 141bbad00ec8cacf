//! Words that were logged without their row, until all that is older is there.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use ensilo_engine::{TableId, Tid};
use ensilo_epoch::{Epoch, Guard, Participant};
use ensilo_log::ReplayError;
use ensilo_sync::atomic::{AtomicUsize, Ordering};
use ensilo_sync::side_by_side;
use ensilo_sync::sync::Mutex;

use super::{ErmiaReplayer, LockedRecord, find};
use crate::engine::Ermia;
use crate::isolation::Isolation;
use crate::stamp::Stamp;
use crate::store::{ErmiaStore, lock};
use crate::version::Version;

/// So many threads may add words at once.
const SHARDS: usize = 64;

/// So many shards are looked through each time that the frontier moves on.
const SHARDS_A_FOLD: usize = 8;

/// One word that was logged.
#[derive(Copy, Clone, Debug)]
struct PendingWord {
    index: u32,
    tid: Tid,
    word: u64,
}

/// The words of one row, as they came.
///
/// An index may stand here more than once until there is no more room: only then are the words sorted, and the older ones of an index go.
/// There is room for as many again each time, so that a word is moved a few times in whatever order patches come.
#[derive(Debug, Default)]
struct PendingRow {
    words: Vec<PendingWord>,
    /// The largest TID of them.
    latest: Tid,
    /// How many words were sorted in all.
    #[cfg(test)]
    sorted: usize,
}

/// The words of some rows.
#[derive(Debug, Default)]
struct Shard {
    /// By table and key.
    tables: HashMap<TableId, HashMap<Box<[u8]>, PendingRow>>,
    /// The frontier for which they were looked through last.
    frontier: Epoch,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct PendingRows {
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
    /// How many shards were looked through.
    folded: AtomicUsize,
}

impl PendingRows {
    pub(super) fn new() -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        PendingRows { hasher: RandomState::new(), shards, folded: AtomicUsize::new(0) }
    }

    /// Adds words of a row, with their indexes.
    pub(super) fn add(
        &self,
        (table, key): (TableId, &[u8]),
        tid: Tid,
        words: impl ExactSizeIterator<Item = (u32, u64)>,
    ) -> Result<(), ReplayError> {
        let shard = self.hasher.hash_one((table, key)) as usize % SHARDS;
        let mut shard = lock(&self.shards[shard]);
        let rows = shard.tables.entry(table).or_default();
        let row = match rows.get_mut(key) {
            Some(row) => row,
            None => rows.entry(key.into()).or_default(),
        };
        row.add(tid, words)
    }

    /// Writes words into their rows, for the next few shards: those of rows whose last word is of an epoch before `frontier`.
    ///
    /// All writes of epochs before it were applied: nothing that is older comes any more, neither words nor rows.
    pub(super) fn fold<I: Isolation>(
        &self,
        frontier: Epoch,
        replayer: &ErmiaReplayer<'_, I>,
        participant: &Participant,
    ) -> Result<(), ReplayError> {
        // Relaxed: the numbers need only differ.
        let first = self.folded.fetch_add(SHARDS_A_FOLD, Ordering::Relaxed);
        let mut shards = first..first + SHARDS_A_FOLD;
        shards.try_for_each(|shard| {
            fold_shard(&mut lock(&self.shards[shard % SHARDS]), frontier, replayer, participant)
        })
    }

    /// Writes all words into their rows, by so many threads.
    pub(super) fn finish<I: Isolation>(
        &self,
        threads: usize,
        replayer: &ErmiaReplayer<'_, I>,
    ) -> Result<(), ReplayError> {
        let threads = threads.max(1);
        let finish_share = |share| {
            let participant = replayer.engine.shared.epochs.participant();
            let mut shards = self.shards.iter().skip(share).step_by(threads);
            shards.try_for_each(|shard| fold_shard(&mut lock(shard), Epoch::MAX, replayer, &participant))
        };
        side_by_side("ensilo-replay", threads, finish_share).into_iter().collect()
    }
}

/// The caller holds the shard's lock until its words are in their rows: words that come later are not folded before.
fn fold_shard<I: Isolation>(
    shard: &mut Shard,
    frontier: Epoch,
    replayer: &ErmiaReplayer<'_, I>,
    participant: &Participant,
) -> Result<(), ReplayError> {
    if frontier <= shard.frontier {
        return Ok(());
    }
    shard.frontier = frontier;
    for (&table, rows) in &mut shard.tables {
        let store = replayer.store(table)?;
        for (key, mut row) in rows.extract_if(|_, row| row.latest.epoch() < frontier) {
            row.settle();
            let guard = participant.pin();
            let finish = || finish_row::<I>(replayer.engine, &store, &key, &row.words, &guard);
            replayer.within_limit(&guard, finish)?;
        }
    }
    Ok(())
}

impl PendingRow {
    /// Adds words that a transaction with this TID has logged.
    fn add(&mut self, tid: Tid, words: impl ExactSizeIterator<Item = (u32, u64)>) -> Result<(), ReplayError> {
        if self.words.capacity() - self.words.len() < words.len() {
            self.make_room(words.len())?;
        }
        self.latest = self.latest.max(tid);
        self.words.extend(words.map(|(index, word)| PendingWord { index, tid, word }));
        Ok(())
    }

    /// Makes room for so many words, and for as many as there are.
    fn make_room(&mut self, len: usize) -> Result<(), ReplayError> {
        self.settle();
        let more = len.max(self.words.len());
        self.words.try_reserve(more).map_err(|_| ReplayError::OutOfMemory)
    }

    /// Leaves the latest word of each index, in the order of the indexes.
    fn settle(&mut self) {
        #[cfg(test)]
        {
            self.sorted += self.words.len();
        }
        self.words.sort_unstable_by_key(|word| (word.index, Reverse(word.tid)));
        self.words.dedup_by_key(|word| word.index);
    }
}

/// Writes the words into their row that were logged behind it.
fn finish_row<I: Isolation>(
    engine: &Ermia<I>,
    store: &ErmiaStore,
    key: &[u8],
    words: &[PendingWord],
    guard: &Guard<'_>,
) -> Result<(), ReplayError> {
    let record = find(store, key, guard).map(|oid| LockedRecord::lock(store.slot(oid)));
    let version = record.as_ref().map(|record| record.version::<I>(engine, store, guard)).transpose()?;
    let logged = version.as_ref().map_or(Stamp::ZERO, Version::committed_stamp);
    let words = words.iter().filter(|word| Stamp::of(word.tid) > logged);
    let Some(last) = words.clone().map(|word| word.tid).max() else { return Ok(()) };
    let Some(version) = version.filter(|version| !version.is_deletion()) else {
        return Err(ReplayError::Refused("words of a row that was not logged".into()));
    };
    let len_words = version.row().len_words();
    if words.clone().any(|word| word.index as usize >= len_words) {
        return Err(ReplayError::Refused("words outside their row".into()));
    }
    version.record().store_words(words.map(|word| (word.index as usize, word.word)));
    version.set_created(Stamp::of(last));
    Ok(())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const PATCH_WORDS: u32 = 1000;

    fn add(row: &mut PendingRow, first: u32, len: u32, tid: u64) {
        row.add(Tid::from_raw(tid), (first..first + len).map(|index| (index, tid))).unwrap();
    }

    #[test]
    fn patches_in_descending_order_are_sorted_a_few_times() {
        let mut row = PendingRow::default();
        (0..60).rev().for_each(|patch| add(&mut row, patch * PATCH_WORDS, PATCH_WORDS, 1));
        row.settle();
        assert!(row.words.iter().map(|word| word.index).eq(0..60 * PATCH_WORDS));
        assert!(row.sorted < 4 * row.words.len(), "{} words were sorted", row.sorted);
    }

    #[test]
    fn words_in_descending_order_are_sorted_a_few_times() {
        let mut row = PendingRow::default();
        (0..10_000).rev().for_each(|index| add(&mut row, index, 1, 1));
        row.settle();
        assert!(row.words.iter().map(|word| word.index).eq(0..10_000));
        assert!(row.sorted < 4 * row.words.len(), "{} words were sorted", row.sorted);
    }

    #[test]
    fn the_latest_word_of_an_index_stays_and_no_more_room_is_taken() {
        let mut row = PendingRow::default();
        // 7 is prime to 1000: every TID comes, none in its order.
        (0..1000).for_each(|patch| add(&mut row, 5, 2, 1 + patch * 7 % 1000));
        assert!(row.words.capacity() < 16, "room for {} words", row.words.capacity());
        row.settle();
        let words: Vec<_> = row.words.iter().map(|word| (word.index, word.word)).collect();
        assert_eq!(words, [(5, 1000), (6, 1000)]);
    }
}
