//! Moving what is left in files that are mostly empty, so that these can go.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use ensilo_engine::{RawRow, Remains, TableId};
use ensilo_epoch::Guard;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::record::ColdRecord;
use super::segments::Segment;
use super::{ColdRows, ColdWord, Leaving};
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::session::SessionState;
use crate::shared::ErmiaShared;
use crate::store::{ErmiaStore, lock};

/// So many whole files may be rows that are cold no more, beside as much as is cold.
const WASTE_SEGMENTS: u64 = 2;

/// What is read of a file at a time, unless a single record is longer.
const PIECE_WORDS: u64 = 256 << 10;

/// Records that are moved at a time.
const BATCH_LEN: usize = 512;

/// Empties files, one after the other.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    current: Option<Cleaning>,
    /// The disk took nothing the last time, or there was no memory.
    is_refused: bool,
}

/// A file that is being emptied.
#[derive(Debug)]
struct Cleaning {
    segment: Arc<Segment>,
    /// So many words of it were looked at.
    done_words: u64,
}

impl Cleaner {
    /// Moves some rows, if too much of the files is waste, and the disk takes rows. What cannot be read stays: whoever needs it gets the
    /// error.
    pub(super) fn step<I: Isolation>(
        &mut self,
        shared: &ErmiaShared,
        cold: &ColdRows,
        state: &mut SessionState<I>,
    ) -> Remains {
        if !cold.takes_rows() || (self.is_refused && !cold.segments.has_room(PIECE_WORDS)) {
            return Remains::Nothing;
        }
        self.current = self.current.take().or_else(|| cold.wasteful_segment());
        let Some(cleaning) = &mut self.current else { return Remains::Nothing };
        let moved = cleaning.move_piece(shared, cold, state);
        self.is_refused = moved.is_err();
        match moved {
            Ok(true) => return Remains::Now,
            // What is left is damaged, or of a store that was dropped: it goes with that.
            Ok(false) => cleaning.segment.leave(),
            // The disk takes nothing, or there was no memory for the rows.
            Err(_) => {}
        }
        self.current = None;
        Remains::Later
    }
}

impl Cleaning {
    /// Moves the rows of one piece that are cold still. False if there is no other piece, or it cannot be read.
    fn move_piece<I: Isolation>(
        &mut self,
        shared: &ErmiaShared,
        cold: &ColdRows,
        state: &mut SessionState<I>,
    ) -> io::Result<bool> {
        let left_words = self.segment.filled_words() - self.done_words;
        if self.segment.live_words() == 0 || left_words == 0 {
            return Ok(false);
        }
        let bytes = match self.read_piece(cold, left_words) {
            Ok(bytes) => bytes,
            // There may be memory later.
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => return Err(error),
            Err(_) => return Ok(false),
        };
        let records = records_of(&bytes, self.segment.first_word() + self.done_words)?;
        for batch in records.chunks(BATCH_LEN) {
            state.look(shared, |guard, _| move_all(shared, cold, batch, guard))?;
        }
        self.done_words += records.iter().map(|(place, _)| place.len_words() as u64).sum::<u64>();
        Ok(!records.is_empty())
    }

    /// Returns the next piece, with at least one whole record.
    fn read_piece(&self, cold: &ColdRows, left_words: u64) -> io::Result<Vec<u8>> {
        let read = |words: u64| cold.segments.read_words(&self.segment, self.done_words, words as usize);
        let piece = read(left_words.min(PIECE_WORDS))?;
        match ColdRecord::len_of_first(&piece).map(|len| len.get() as u64) {
            Some(first) if PIECE_WORDS < first && first <= left_words => read(first),
            _ => Ok(piece),
        }
    }
}

impl ColdRows {
    /// Returns the file that has the fewest cold rows, if there is waste. Those that cannot be emptied do not count.
    fn wasteful_segment(&self) -> Option<Cleaning> {
        let mut segments = self.segments.all();
        {
            let writer = self.lock_writer();
            segments.retain(|(number, segment)| !writer.is_filling(*number) && !segment.is_left());
        }
        let words = |of: fn(&Segment) -> u64| segments.iter().map(|(_, segment)| of(segment)).sum::<u64>();
        let waste_words = WASTE_SEGMENTS * self.segments.segment_words();
        if words(Segment::filled_words) <= 2 * words(Segment::live_words) + waste_words {
            return None;
        }
        let emptiest = segments.into_iter().min_by_key(|(_, segment)| segment.live_words());
        emptiest.map(|(_, segment)| Cleaning { segment, done_words: 0 })
    }
}

/// Returns the records in these bytes, which lie at `place`, each with its own place, up to one that is damaged.
fn records_of(bytes: &[u8], place: u64) -> io::Result<Vec<(ColdWord, ColdRecord)>> {
    let mut records = Vec::new();
    let mut at = 0;
    while let Some((record, len)) = ColdRecord::first_of(&bytes[at * 8..], place + at as u64)? {
        records.push((ColdWord::new(place + at as u64, len), record));
        at += len.get();
    }
    Ok(records)
}

/// Moves those of the records that are cold still.
fn move_all(
    shared: &ErmiaShared,
    cold: &ColdRows,
    records: &[(ColdWord, ColdRecord)],
    guard: &Guard<'_>,
) -> io::Result<()> {
    let mut stores = HashMap::new();
    let moving = records
        .iter()
        .filter_map(|(place, record)| {
            let store = stores.entry(record.table()).or_insert_with(|| store_of(shared, record.table()));
            let slot = slot_of(store.as_ref()?, record, guard);
            // Acquire: [cold].
            let is_cold = slot.load(Ordering::Acquire) == place.to_slot();
            let moving = |words| (*place, std::ptr::from_ref(slot).addr(), record, words);
            is_cold.then(|| record.own_words().map(moving))
        })
        .collect::<io::Result<Vec<_>>>()?;
    let rows: Vec<_> = moving
        .iter()
        .map(|(_, slot, record, words)| Leaving {
            slot: *slot,
            table: record.table(),
            stamp: record.stamp(),
            predecessor: record.predecessor(),
            row: RawRow::new(words, record.len_bytes()),
        })
        .collect();
    for ((from, _, record, _), to) in moving.iter().zip(cold.append(&rows)?) {
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
