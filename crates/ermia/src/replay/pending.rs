//! Words that were logged without their row, until all rows are there.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::mem::take;
use std::thread;

use ensilo_engine::{TableId, Tid};
use ensilo_epoch::Guard;
use ensilo_log::ReplayError;
use ensilo_sync::sync::Mutex;

use super::{ErmiaReplayer, LockedRecord, find};
use crate::engine::Ermia;
use crate::isolation::Isolation;
use crate::stamp::Stamp;
use crate::store::{ErmiaStore, lock};
use crate::version::Version;

/// So many threads may add words at once.
const SHARDS: usize = 64;

/// One word that was logged.
#[derive(Copy, Clone, Debug)]
struct PendingWord {
    index: u32,
    tid: Tid,
    word: u64,
}

/// The words of some rows by table and key, of each row each index once, in their order.
type Shard = HashMap<TableId, HashMap<Box<[u8]>, Vec<PendingWord>>>;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct PendingRows {
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

impl PendingRows {
    pub(super) fn new() -> Self {
        let shards = std::array::from_fn(|_| Mutex::new(Shard::new()));
        PendingRows { hasher: RandomState::new(), shards }
    }

    /// Adds words of a row, with their indexes.
    pub(super) fn add(
        &self,
        (table, key): (TableId, &[u8]),
        tid: Tid,
        words: impl Iterator<Item = (u32, u64)>,
    ) {
        let shard = self.hasher.hash_one((table, key)) as usize % SHARDS;
        let mut shard = lock(&self.shards[shard]);
        let rows = shard.entry(table).or_default();
        let row = match rows.get_mut(key) {
            Some(row) => row,
            None => rows.entry(key.into()).or_default(),
        };
        for (index, word) in words {
            let pending = PendingWord { index, tid, word };
            match row.binary_search_by_key(&index, |pending| pending.index) {
                Ok(at) if row[at].tid <= tid => row[at] = pending,
                Ok(_) => {}
                Err(at) => row.insert(at, pending),
            }
        }
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
            for shard in self.shards.iter().skip(share).step_by(threads) {
                for (table, rows) in take(&mut *lock(shard)) {
                    let store = replayer.store(table)?;
                    for (key, words) in rows {
                        let guard = participant.pin();
                        let finish = || finish_row::<I>(replayer.engine, &store, &key, &words, &guard);
                        replayer.within_limit(&guard, finish)?;
                    }
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let finish_share = &finish_share;
            let threads: Vec<_> =
                (0..threads).map(|share| scope.spawn(move || finish_share(share))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().try_for_each(join)
        })
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
