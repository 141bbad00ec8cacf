//! What the workers of a replay leave to do until its end.

use bumpalo::Bump;
use ensilo_engine::TableId;

use super::pending::LockedRecord;
use crate::record::RecordPtr;
use crate::silo::Garbage;

/// What a worker leaves to do until everything is replayed, and what it has counted.
#[derive(Default)]
pub(super) struct Leftover {
    /// Records to which this worker gave a list of pending words. Each record stands in one place.
    pub(super) pending: Vec<RecordPtr>,
    /// Where those lists lie.
    pub(super) arena: Bump,
    /// Keys that this worker deleted.
    pub(super) tombstones: Vec<(TableId, Box<[u8]>)>,
    /// Records outside of slabs that longer ones have replaced; a replay that fails leaves them where they are.
    pub(super) garbage: Garbage,
    /// Rows by store, as the difference that this worker made.
    pub(super) rows: Vec<i64>,
    /// See [`crate::Fault::ForgetTombstones`].
    pub(super) forgets_tombstones: bool,
}

impl Leftover {
    pub(super) fn count_row(&mut self, table: TableId, difference: i64) {
        let at = table.0 as usize;
        if self.rows.len() <= at {
            self.rows.resize(at + 1, 0);
        }
        self.rows[at] += difference;
    }
}

impl Drop for Leftover {
    /// No record keeps a link to an arena that is gone; after a replay that has ended well none has one.
    fn drop(&mut self) {
        self.pending.iter().for_each(|&record| LockedRecord::new(record).forget());
    }
}
