//! Moving what is left in files that are mostly empty, so that these can go.

use std::collections::HashMap;
use std::sync::Arc;

use ensilo_engine::{RowRef, TableId};
use ensilo_epoch::Guard;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::record::ColdRecord;
use super::segments::{SEGMENT_WORDS, Segment};
use super::{ColdRows, ColdWord, Leaving};
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::session::SessionState;
use crate::shared::ErmiaShared;
use crate::store::{ErmiaStore, lock};

/// So many words of the files may be rows that are cold no more, beside as many as are cold.
const WASTE_WORDS: u64 = 4 * SEGMENT_WORDS;

/// Records that are moved at a time.
const BATCH_LEN: usize = 512;

/// Empties one file, if too much of all of them is waste.
pub(super) fn clean<I: Isolation>(shared: &ErmiaShared, cold: &ColdRows, state: &mut SessionState<I>) {
    let Some((number, segment)) = cold.emptiest_segment() else { return };
    // What cannot be read stays: whoever needs it gets the error.
    let Ok(bytes) = segment.read_all() else { return segment.leave() };
    let records = records_of(&bytes, number as u64 * SEGMENT_WORDS);
    let words = records.iter().map(|(place, _)| place.len_words() as u64).sum::<u64>();
    if words < segment.filled_words() {
        segment.leave();
    }
    for batch in records.chunks(BATCH_LEN) {
        let moved = state.look(shared, |guard, _| move_all(shared, cold, batch, guard));
        if moved.is_err() {
            return;
        }
    }
}

impl ColdRows {
    /// Returns the file that has the fewest cold rows, if there is waste.
    fn emptiest_segment(&self) -> Option<(usize, Arc<Segment>)> {
        let all = self.segments.all();
        let words = |of: fn(&Segment) -> u64| all.iter().map(|(_, segment)| of(segment)).sum::<u64>();
        if words(Segment::filled_words) <= 2 * words(Segment::live_words) + WASTE_WORDS {
            return None;
        }
        let writer = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let may_go =
            |(number, segment): &(usize, Arc<Segment>)| !writer.is_filling(*number) && !segment.is_left();
        all.into_iter().filter(may_go).min_by_key(|(_, segment)| segment.live_words())
    }
}

/// Returns the records in these bytes, which lie at `place`, each with its own place, up to one that is damaged.
fn records_of(bytes: &[u8], place: u64) -> Vec<(ColdWord, ColdRecord)> {
    let mut records = Vec::new();
    let mut at = 0;
    while let Some((record, len_words)) = ColdRecord::first_of(&bytes[at * 8..], place + at as u64) {
        records.push((ColdWord::new(place + at as u64, len_words), record));
        at += len_words;
    }
    records
}

/// Moves those of the records that are cold still.
fn move_all(
    shared: &ErmiaShared,
    cold: &ColdRows,
    records: &[(ColdWord, ColdRecord)],
    guard: &Guard<'_>,
) -> std::io::Result<()> {
    let mut stores = HashMap::new();
    let moving: Vec<_> = records
        .iter()
        .filter_map(|(place, record)| {
            let store = stores.entry(record.table()).or_insert_with(|| store_of(shared, record.table()));
            let slot = slot_of(store.as_ref()?, record, guard);
            let words: Vec<_> = record.words().map(AtomicU64::new).collect();
            (slot.load(Ordering::Acquire) == place.to_slot()).then_some((
                *place,
                std::ptr::from_ref(slot).addr(),
                record,
                words,
            ))
        })
        .collect();
    let rows: Vec<_> = moving
        .iter()
        .map(|(_, slot, record, words)| Leaving {
            slot: *slot,
            table: record.table(),
            stamp: record.stamp(),
            predecessor: record.predecessor(),
            row: RowRef::new(words, record.len_bytes()),
        })
        .collect();
    for ((from, _, record, _), to) in moving.iter().zip(cold.write(&rows)?) {
        let is_moved = stores.get(&record.table()).and_then(Option::as_ref).is_some_and(|store| {
            let slot = slot_of(store, record, guard);
            // AcqRel: [cold].
            slot.compare_exchange(from.to_slot(), to.to_slot(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        cold.forget(if is_moved { *from } else { to });
    }
    Ok(())
}

fn store_of(shared: &ErmiaShared, table: TableId) -> Option<Arc<ErmiaStore>> {
    lock(&shared.stores).get(&table).filter(|store| !store.is_dropped()).cloned()
}

/// Returns the slot of a record of this store, which was not dropped after the caller has pinned.
fn slot_of<'s>(store: &'s ErmiaStore, record: &ColdRecord, _: &Guard<'_>) -> &'s AtomicU64 {
    // SAFETY: the record has its slot's address, which it had from the store; the store goes once nobody is pinned who may have found it.
    store.slot(unsafe { Oid::from_index_value(record.slot() as u64) })
}
