//! Walking a store for a checkpoint, while transactions go on.
//!
//! A walk holds versions back as a transaction does, a batch at a time: it has a place in the table of transactions, and publishes where it
//! has begun. What has changed since the checkpoint began is in the log, and left out. Rows that have left memory are read where they are, and
//! stay there; if one cannot be read, the [engine says so](ensilo_engine::Engine::unreadable_rows), and if there was no memory for one, it
//! [counts it](ensilo_engine::Engine::rows_left_out).

use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};

use ensilo_engine::{Direction, KeyRange, StoredRow, Tid};
use ensilo_epoch::Epoch;
use ensilo_index::{NodeStamp, ScanVisitor};

use crate::cold::{ColdRows, Newest, Unreadable};
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::session::SessionState;
use crate::shared::ErmiaShared;
use crate::stamp::Stamp;
use crate::store::ErmiaStore;
use crate::version::Version;

/// So many records are visited at a time: a walk of minutes keeps no memory from being freed.
const BATCH_LEN: usize = 512;

/// Walks a store for [`Engine::walk`](ensilo_engine::Engine::walk), in the place of a session.
pub(crate) fn walk<I: Isolation>(
    shared: &ErmiaShared,
    state: &mut SessionState<I>,
    store: &ErmiaStore,
    range: &KeyRange,
    before: Epoch,
    mut each: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
    mut pause: impl FnMut() -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut left = range.clone();
    loop {
        let last = state.look(shared, |guard, begin| {
            let mut batch = WalkBatch::<I, _> {
                shared,
                store,
                begin,
                before,
                each: &mut each,
                words: Vec::new(),
                visited: 0,
                last: None,
                is_over: false,
                isolation: PhantomData,
            };
            if !store.is_dropped() {
                store.scan(left.bounds(), Direction::Forward, guard, &mut batch);
            }
            if batch.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(batch.last) }
        })?;
        pause()?;
        let Some(last) = last else { return ControlFlow::Continue(()) };
        left.low = Bound::Excluded(last);
    }
}

/// A batch of a walk.
struct WalkBatch<'a, I: Isolation, E> {
    shared: &'a ErmiaShared,
    store: &'a ErmiaStore,
    /// What has a smaller stamp is seen.
    begin: Stamp,
    before: Epoch,
    each: &'a mut E,
    words: Vec<u64>,
    visited: usize,
    /// The last key, if there may be more.
    last: Option<Vec<u8>>,
    /// Whether `each` had enough.
    is_over: bool,
    isolation: PhantomData<I>,
}

impl<I: Isolation, E: FnMut(StoredRow<'_>) -> ControlFlow<()>> ScanVisitor for WalkBatch<'_, I, E> {
    fn node(&mut self, _: NodeStamp) {}

    #[inline]
    fn approach(&mut self, value: u64) {
        // SAFETY: the value was read from the store's index, under a pin.
        self.store.load_header::<I>(unsafe { Oid::from_index_value(value) });
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        // SAFETY: the value was read from the store's index, under a pin.
        if let Some((tid, len_bytes)) = self.copy(unsafe { Oid::from_index_value(value) }) {
            let row = StoredRow { key, tid, words: &self.words, len_bytes };
            self.is_over = (self.each)(row).is_break();
        }
        self.visited += 1;
        if self.visited == BATCH_LEN {
            self.last = Some(key.to_vec());
        }
        if self.is_over || self.last.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<I: Isolation, E> WalkBatch<'_, I, E> {
    /// Leaves a row out for which there is no memory, and counts it.
    fn leave_out<T>(&self) -> Option<T> {
        self.shared.cold.iter().for_each(ColdRows::note_left_out);
        None
    }

    /// Copies the row of a record; `None` if the checkpoint leaves it out.
    fn copy(&mut self, oid: Oid) -> Option<(Tid, usize)> {
        let newest = match self.store.find_newest::<I>(oid, self.shared.cold.as_ref()) {
            Ok(newest) => newest?,
            Err(Unreadable::OutOfMemory) => return self.leave_out(),
            // The engine says so by itself.
            Err(Unreadable::Damaged) => return None,
        };
        let newest = match newest {
            Newest::InMemory(newest) => newest,
            Newest::Cold(record, _) => {
                self.words.clear();
                if self.words.try_reserve(record.len_bytes().div_ceil(8)).is_err() {
                    return self.leave_out();
                }
                self.words.extend(record.words());
                return self.belongs(record.stamp(), record.len_bytes());
            }
        };
        let (version, stamp) = Version::visible_from(Some(newest), &self.shared.table, self.begin)?;
        if version.is_deletion() {
            return None;
        }
        let row = version.row();
        self.words.clear();
        row.copy_to(&mut self.words);
        self.belongs(stamp, row.len_bytes())
    }

    /// Returns the TID of a row with its length, unless it has changed since the checkpoint began.
    fn belongs(&self, stamp: Stamp, len_bytes: usize) -> Option<(Tid, usize)> {
        let tid = stamp.tid();
        (tid.epoch() < self.before).then_some((tid, len_bytes))
    }
}
