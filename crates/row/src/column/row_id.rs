//! Keys that a table invents.

use std::fmt;

/// The key of a row in a table without key columns: a number that the table has assigned to no other row, also not before a database on disk
/// was opened again.
///
/// - Ids that tables assign are unique in the whole database, for ever. An id of a row that was rolled back, or deleted, is not assigned again.
/// - The ids that one session, or one thread without a session, gets by its inserts rise as long as the database is open, wherever the session runs. They also
///   rise from one opening to the next.
/// - Where one client alone inserts, by threads, jobs or sessions in turn, they are consecutive, from 1 on in a database in memory. Threads and sessions that insert at the same
///   time take blocks of ids, at first of 32 and later of up to 4096: each sees consecutive ids in its block, and then a gap.
/// - The first id of a database on disk is a large one. Each opening begins with ids that are larger than all before it, by 65536 or by many times that.
///
/// Nothing else follows from ids: rows that were inserted later by others may have smaller ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u64);

impl RowId {
    /// Returns the number.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for RowId {
    fn from(id: u64) -> Self {
        Self(id)
    }
}
