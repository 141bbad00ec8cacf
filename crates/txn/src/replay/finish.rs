//! The end of a replay: the last pending words are folded, deleted keys leave the trees.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use ensilo_engine::{Engine, Recovered, RecoveredStore, TableId};
use ensilo_epoch::{Epoch, Guard};
use ensilo_index::Lookup;
use ensilo_log::ReplayError;
use ensilo_sync::side_by_side;
use ensilo_sync::sync::Mutex;

use super::SiloReplayer;
use super::leftover::Leftover;
use crate::record::RecordPtr;
use crate::registry::lock;
use crate::silo::{Variant, free, free_garbage, retire};
use crate::store::Store;

impl<V: Variant> ensilo_engine::Replayer for SiloReplayer<'_, V> {
    fn finish(self) -> Result<Recovered, ReplayError> {
        let mut left = std::mem::take(&mut *lock(&self.left));
        // All of these first: words of a row that was not logged are damage, also where its key is deleted.
        self.finish_pending(&mut left)?;
        self.finish_touched(&mut left);
        let deleted = self.finish_tombstones(&mut left);
        self.finish_superseded(&mut left);
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
    /// Folds all words that are left; a share for each worker that there was.
    fn finish_pending(&self, left: &mut [Leftover]) -> Result<(), ReplayError> {
        let left: Vec<_> = left.iter_mut().map(Mutex::new).collect();
        let fold = |share: usize| lock(&left[share]).fold(Epoch::MAX);
        side_by_side("ensilo-replay", left.len(), fold).into_iter().collect()
    }

    /// Has the workers let go of all records, none of which has pending words now; a share for each worker that there was.
    fn finish_touched(&self, left: &mut [Leftover]) {
        let left: Vec<_> = left.iter_mut().map(Mutex::new).collect();
        side_by_side("ensilo-replay", left.len(), |share: usize| {
            lock(&left[share]).touched.let_go(Epoch::MAX)
        });
        assert!(left.iter().all(|left| lock(left).touched.is_empty()), "all words are folded");
    }

    /// Frees what was replaced; a share for each worker that there was.
    fn finish_superseded(&self, left: &mut [Leftover]) {
        let left: Vec<_> = left.iter_mut().map(Mutex::new).collect();
        let free_share = |share: usize| {
            let participant = self.engine.shared.epochs.participant();
            let mut leftover = lock(&left[share]);
            let (superseded, mut garbage) =
                (std::mem::take(&mut leftover.superseded), std::mem::take(&mut leftover.garbage));
            let guard = participant.pin();
            for record in superseded {
                // SAFETY: its tree leads to the record that has replaced it, it was put there once, and no worker remembers it any more (T2).
                unsafe { retire::<V>(record, &guard, &mut garbage) };
            }
            drop(guard);
            free_garbage::<V>(&participant, garbage);
        };
        side_by_side("ensilo-replay", left.len(), free_share);
    }

    /// Takes deleted keys out of the trees; a share for each worker that there was. All that workers say of one key is in one share. Returns
    /// the keys.
    fn finish_tombstones(&self, left: &mut [Leftover]) -> Vec<(TableId, Box<[u8]>)> {
        let tombstones: Vec<_> =
            left.iter_mut().map(|leftover| std::mem::take(&mut leftover.tombstones)).collect();
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let take_out_share = |share: usize| {
            let participant = self.engine.shared.epochs.participant();
            let guard = participant.pin();
            let is_of_share = |key: &[u8]| hasher.hash_one(key) % tombstones.len() as u64 == share as u64;
            for (table, key) in tombstones.iter().flatten().filter(|(_, key)| is_of_share(key)) {
                if let Some(store) = self.engine.shared.stores.store(*table) {
                    take_out::<V>(store, key, &guard);
                }
            }
        };
        side_by_side("ensilo-replay", tombstones.len(), take_out_share);
        tombstones.into_iter().flatten().collect()
    }
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
