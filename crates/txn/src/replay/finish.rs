//! The end of a replay: pending words become part of their rows' versions, deleted keys leave the trees.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::thread;

use ensilo_engine::{Engine, Recovered, RecoveredStore, TableId};
use ensilo_epoch::Guard;
use ensilo_index::Lookup;
use ensilo_log::ReplayError;

use super::SiloReplayer;
use super::leftover::Leftover;
use super::pending::{LockedRecord, PendingWord};
use crate::record::RecordPtr;
use crate::registry::lock;
use crate::silo::{Variant, free, free_garbage};
use crate::store::Store;
use crate::tid::TidWord;

impl<V: Variant> ensilo_engine::Replayer for SiloReplayer<'_, V> {
    fn finish(self) -> Result<Recovered, ReplayError> {
        let mut left = std::mem::take(&mut *lock(&self.left));
        // All of these first: records with pending words are still allocated, and so are the words.
        finish_pending(&mut left)?;
        let deleted = self.finish_tombstones(&mut left);
        let participant = self.engine.shared.epochs.participant();
        for leftover in &mut left {
            free_garbage::<V>(&participant, std::mem::take(&mut leftover.garbage));
        }
        let mut rows: Vec<i64> = Vec::new();
        for leftover in &left {
            rows.resize(rows.len().max(leftover.rows.len()), 0);
            leftover.rows.iter().enumerate().for_each(|(at, difference)| rows[at] += difference);
        }
        let stores = self.engine.stores();
        let rows_of = |store: &Store| rows.get(store.id().0 as usize).map_or(0, |&rows| rows.cast_unsigned());
        let stores = stores.iter().map(|store| RecoveredStore { id: store.id(), rows: rows_of(store) });
        Ok(Recovered { stores: stores.collect(), deleted })
    }
}

impl<V: Variant> SiloReplayer<'_, V> {
    /// Takes deleted keys out of the trees; a thread for each worker that there was. All that workers say of one key goes to one thread. Returns
    /// the keys.
    fn finish_tombstones(&self, left: &mut [Leftover]) -> Vec<(TableId, Box<[u8]>)> {
        let tombstones: Vec<_> =
            left.iter_mut().map(|leftover| std::mem::take(&mut leftover.tombstones)).collect();
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let take_out_share = |share| {
            let participant = self.engine.shared.epochs.participant();
            let guard = participant.pin();
            let is_of_share = |key: &[u8]| hasher.hash_one(key) % tombstones.len() as u64 == share;
            for (table, key) in tombstones.iter().flatten().filter(|(_, key)| is_of_share(key)) {
                if let Some(store) = self.engine.shared.stores.store(*table) {
                    take_out::<V>(store, key, &guard);
                }
            }
        };
        thread::scope(|scope| {
            for share in 0..tombstones.len() as u64 {
                let take_out_share = &take_out_share;
                scope.spawn(move || take_out_share(share));
            }
        });
        tombstones.into_iter().flatten().collect()
    }
}

/// Gives records with pending words the TID of the last one; a thread for each worker that there was.
fn finish_pending(left: &mut [Leftover]) -> Result<(), ReplayError> {
    thread::scope(|scope| {
        let threads: Vec<_> =
            left.iter_mut().map(|leftover| scope.spawn(|| finish_records(&mut leftover.pending))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn finish_records(records: &mut Vec<RecordPtr>) -> Result<(), ReplayError> {
    while let Some(record) = records.pop() {
        let locked = LockedRecord::new(record);
        let finished = finish_record(record, locked.words());
        locked.forget();
        finished?;
    }
    Ok(())
}

fn finish_record(record: RecordPtr, words: &[PendingWord]) -> Result<(), ReplayError> {
    let word = record.tid();
    if word == TidWord::PLACEHOLDER || (word.is_absent() && !words.is_empty()) {
        return Err(ReplayError::Refused("words of a row that was not logged".into()));
    }
    let Some(last) = words.iter().map(|word| word.tid).max() else { return Ok(()) };
    let len_words = record.row().len_words();
    if words.iter().any(|word| word.index as usize >= len_words) {
        return Err(ReplayError::Refused("words outside their row".into()));
    }
    record.set_unpublished_tid(TidWord::live(last.max(word.tid())));
    Ok(())
}

/// Takes a key out of the tree if it is deleted. It may have come back since, or be gone already.
fn take_out<V: Variant>(store: &Store, key: &[u8], guard: &Guard<'_>) {
    let Lookup::Found(value) = store.index().get(key, guard) else { return };
    // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
    let record = unsafe { RecordPtr::from_index_value(value) };
    if record.tid().is_absent() {
        let is_removed = store.index().remove(key, value, guard);
        assert!(is_removed, "nobody else changes this key");
        // SAFETY: it has left the tree, and nobody else has found it: no transaction has begun, and other threads have other keys.
        unsafe { free::<V>(record, guard) };
    }
}
