//! The records whose links lead to something, until nothing older can come for them.
//!
//! # Invariants
//! - T1: a record that stands in its tree and whose link leads to anything is among those of one worker, once, or about to be: it had pending words
//!   when it came into the tree, and the worker that has put it there adds it next.
//! - T2: a record that another has replaced while its link led to anything is freed in the end, after all workers have let go of it.

use ensilo_epoch::Epoch;

use super::apply::lock_latest;
use super::side::Side;
use crate::record::RecordPtr;

/// So many times as many records as were kept the last time are touched before they are gone through again.
const GROWTH: usize = 16;

/// A record's header is loaded so many records ahead.
const RECORDS_AHEAD: usize = 16;

/// The records that one worker has touched.
#[derive(Default)]
pub(super) struct TouchedRecords {
    records: Vec<RecordPtr>,
    /// How many were kept the last time.
    kept: usize,
}

impl TouchedRecords {
    /// Adds a record, whose link has led to nothing before (T1).
    #[inline]
    pub(super) fn push(&mut self, record: RecordPtr) {
        self.records.push(record);
    }

    /// Lets go of records of epochs before `frontier`, once there are many more than were kept the last time.
    pub(super) fn let_go_of_many(&mut self, frontier: Epoch) {
        if self.records.len() > GROWTH * (self.kept + 1) {
            self.let_go(frontier);
        }
    }

    /// Lets go of records to which nothing before `frontier` can come any more.
    pub(super) fn let_go(&mut self, frontier: Epoch) {
        self.kept = 0;
        for at in 0..self.records.len() {
            if let Some(soon) = self.records.get(at + RECORDS_AHEAD) {
                soon.prefetch_header();
            }
            let record = self.records[at];
            if !is_over(record, frontier) {
                self.records[self.kept] = record;
                self.kept += 1;
            }
        }
        self.records.truncate(self.kept);
    }

    /// Has no link lead to memory of a replay that has failed.
    pub(super) fn abandon(&mut self) {
        self.records.drain(..).for_each(|record| Side::Unknown.put(record));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// Returns whether a worker need not know a record any more, whose link leads to nothing then. A list stays until it is folded.
fn is_over(record: RecordPtr, frontier: Epoch) -> bool {
    // The record that has replaced it is among some worker's, if it has to be.
    let Some(word) = lock_latest(record) else { return true };
    let is_over = match Side::of(record) {
        Side::Unknown | Side::Chain(None) => true,
        Side::Chain(Some(_)) => word.tid().epoch() < frontier,
        Side::List(_) => false,
    };
    if is_over {
        Side::Unknown.put(record);
    }
    record.publish(word);
    is_over
}
