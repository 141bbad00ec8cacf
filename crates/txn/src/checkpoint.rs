//! Walking a store for a checkpoint, while transactions go on.
//!
//! # Source
//! SiloR (OSDI 2014) §4.2: no transaction, no snapshot; each record is read as it is when the walk comes by. What has changed since
//! the checkpoint began is in the log, and left out.

use std::ops::{Bound, ControlFlow};

use ensilo_engine::{Direction, KeyRange, StoredRow, Tid};
use ensilo_epoch::{Epoch, Guard, Participant};
use ensilo_index::{Lookup, NodeStamp, ScanVisitor};
use ensilo_sync::cpu_relax;

use crate::record::RecordPtr;
use crate::store::Store;

/// So many records are visited under one pin: a walk of minutes keeps no memory from being freed.
const BATCH_LEN: usize = 512;

/// So many records wait for their rows to be loaded.
const RECORDS_AHEAD: usize = 4;

/// Walks a store for [`Engine::walk`](ensilo_engine::Engine::walk). A record that somebody holds locked for unreasonably long is
/// waited for.
pub(crate) fn walk(
    participant: &Participant,
    store: &Store,
    range: &KeyRange,
    before: Epoch,
    mut each: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
    mut pause: impl FnMut() -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut left = range.clone();
    loop {
        let last = walk_batch(participant, store, &left, before, &mut each)?;
        pause()?;
        let Some(last) = last else { return ControlFlow::Continue(()) };
        left.low = Bound::Excluded(last);
    }
}

/// Visits the first records of a range; returns the last one's key if there may be more.
fn walk_batch(
    participant: &Participant,
    store: &Store,
    range: &KeyRange,
    before: Epoch,
    each: &mut impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
) -> ControlFlow<(), Option<Vec<u8>>> {
    let guard = participant.pin();
    if store.is_dropped() {
        return ControlFlow::Continue(None);
    }
    let mut batch = WalkBatch {
        store,
        guard: &guard,
        before,
        each,
        words: Vec::new(),
        waiting: Default::default(),
        arrived: 0,
        is_over: false,
    };
    let bounds = (range.low.as_ref().map(Vec::as_slice), range.high.as_ref().map(Vec::as_slice));
    store.scan(bounds, Direction::Forward, &guard, &mut batch);
    for number in batch.arrived.saturating_sub(RECORDS_AHEAD)..batch.arrived {
        if batch.is_over {
            break;
        }
        batch.hand_out(number);
    }
    if batch.is_over {
        return ControlFlow::Break(());
    }
    let last = batch.arrived.checked_sub(1).filter(|_| batch.arrived == BATCH_LEN);
    ControlFlow::Continue(last.map(|number| std::mem::take(&mut batch.waiting[number % RECORDS_AHEAD].0)))
}

/// One pin's part of a walk.
struct WalkBatch<'a, 'g, E> {
    store: &'a Store,
    guard: &'a Guard<'g>,
    before: Epoch,
    each: &'a mut E,
    words: Vec<u64>,
    /// Keys and index values of the records that were shown last, each at the place of its number.
    waiting: [(Vec<u8>, u64); RECORDS_AHEAD],
    /// How many records were shown.
    arrived: usize,
    /// Whether `each` had enough.
    is_over: bool,
}

impl<E: FnMut(StoredRow<'_>) -> ControlFlow<()>> ScanVisitor for WalkBatch<'_, '_, E> {
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
        unsafe { RecordPtr::from_index_value(value) }.prefetch_row();
        if let Some(ripe) = self.arrived.checked_sub(RECORDS_AHEAD) {
            self.hand_out(ripe);
        }
        let (waiting_key, waiting_value) = &mut self.waiting[self.arrived % RECORDS_AHEAD];
        waiting_key.clear();
        waiting_key.extend_from_slice(key);
        *waiting_value = value;
        self.arrived += 1;
        if self.is_over || self.arrived == BATCH_LEN {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl<E: FnMut(StoredRow<'_>) -> ControlFlow<()>> WalkBatch<'_, '_, E> {
    /// Hands out the record of this number, which is among the waiting ones.
    fn hand_out(&mut self, number: usize) {
        let (key, value) = &mut self.waiting[number % RECORDS_AHEAD];
        let (key, value) = (std::mem::take(key), *value);
        if let Some((tid, len_bytes)) = self.copy(&key, value) {
            let record = StoredRow { key: &key, tid, words: &self.words, len_bytes };
            self.is_over = (self.each)(record).is_break();
        }
        self.waiting[number % RECORDS_AHEAD].0 = key;
    }
}

impl<E> WalkBatch<'_, '_, E> {
    /// Copies the row of a record; `None` if the checkpoint leaves it out.
    fn copy(&mut self, key: &[u8], mut value: u64) -> Option<(Tid, usize)> {
        loop {
            // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
            let record = unsafe { RecordPtr::from_index_value(value) };
            // The row of a record that a prepared transaction holds locked stands. What its decision puts there is of a later epoch.
            let Some(word) = record.standing_tid() else { continue };
            if !word.unlocked().is_latest() {
                cpu_relax();
                let Lookup::Found(newer) = self.store.index().get(key, self.guard) else { return None };
                value = newer;
                continue;
            }
            if word.is_absent() || word.tid().epoch() >= self.before {
                return None;
            }
            let row = record.row();
            self.words.clear();
            row.copy_to(&mut self.words);
            if record.is_still(word) {
                return Some((word.tid(), row.len_bytes()));
            }
        }
    }
}
