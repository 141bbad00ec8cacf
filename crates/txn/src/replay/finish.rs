//! The end of a replay: pending words become part of their rows' versions, deleted keys leave the trees.

use std::thread;

use ensilo_epoch::Guard;
use ensilo_index::Lookup;
use ensilo_log::ReplayError;

use super::pending::LockedRecord;
use super::{Leftover, Replayer};
use crate::protocol::Protocol;
use crate::record::RecordPtr;
use crate::registry::lock;
use crate::store::{Store, TableId};
use crate::tid::TidWord;

/// What a replay has put into the engine.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The stores that got records, by id.
    pub stores: Vec<RecoveredStore>,
}

/// A store that got records.
#[derive(Debug, Copy, Clone)]
pub struct RecoveredStore {
    /// Its id.
    pub id: TableId,
    /// How many rows it has.
    pub rows: u64,
}

impl<P: Protocol> Replayer<'_, P> {
    /// Ends the replay: all writes were applied and their workers dropped.
    ///
    /// # Errors
    /// [`ReplayError::Refused`] when words of a row were logged and the row was not.
    pub fn finish(self) -> Result<Recovered, ReplayError> {
        let mut left = std::mem::take(&mut *lock(&self.left));
        let mut rows: Vec<i64> = Vec::new();
        let participant = self.engine.epochs().participant();
        let guard = participant.pin();
        // All of these first: records with pending words are still allocated.
        finish_pending(&mut left)?;
        for leftover in left {
            self.finish_tombstones(&leftover, &guard);
            rows.resize(rows.len().max(leftover.rows.len()), 0);
            leftover.rows.iter().enumerate().for_each(|(at, difference)| rows[at] += difference);
        }
        let stores = self.engine.stores();
        let rows_of = |store: &Store| rows.get(store.id().0 as usize).map_or(0, |&rows| rows.cast_unsigned());
        let stores = stores.iter().map(|store| RecoveredStore { id: store.id(), rows: rows_of(store) });
        Ok(Recovered { stores: stores.collect() })
    }

    fn finish_tombstones(&self, leftover: &Leftover, guard: &Guard<'_>) {
        for (table, key) in &leftover.tombstones {
            if let Some(store) = self.engine.shared.stores.store(*table) {
                take_out(store, key, guard);
            }
        }
    }
}

/// Gives records with pending words the TID of the last one; a thread for each worker that there was. A record that is left by two of them is
/// finished by the one that takes its words out.
fn finish_pending(left: &mut [Leftover]) -> Result<(), ReplayError> {
    thread::scope(|scope| {
        let pending = left.iter_mut().map(|leftover| std::mem::take(&mut leftover.pending));
        let threads: Vec<_> = pending.map(|records| scope.spawn(|| finish_records(records))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn finish_records(records: Vec<RecordPtr>) -> Result<(), ReplayError> {
    for record in records {
        let Some(pending) = LockedRecord::new(record).take_pending() else { continue };
        let word = record.tid();
        if word.is_absent() {
            return Err(ReplayError::Refused("words of a row that was not logged".into()));
        }
        let len_words = record.row().len_words();
        if pending.words.iter().any(|word| word.index as usize >= len_words) {
            return Err(ReplayError::Refused("words outside their row".into()));
        }
        let tid = pending.largest_tid().map_or(word.tid(), |tid| tid.max(word.tid()));
        record.set_unpublished_tid(TidWord::live(tid));
    }
    Ok(())
}

/// Takes a key out of the tree if it is deleted. It may have come back since, or be gone already.
fn take_out(store: &Store, key: &[u8], guard: &Guard<'_>) {
    let Lookup::Found(value) = store.index().get(key, guard) else { return };
    // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
    let record = unsafe { RecordPtr::from_index_value(value) };
    if record.tid().is_absent() {
        let is_removed = store.index().remove(key, value, guard);
        assert!(is_removed, "nobody else changes the tree");
        // SAFETY: it has left the tree, and no transaction has begun that could have found it.
        unsafe { record.free(guard) };
    }
}
