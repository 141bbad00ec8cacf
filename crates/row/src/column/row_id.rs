//! Keys that a table invents.

use std::fmt;

/// The key of a row in a table without key columns: a number that no other row of the table has had, also not before a database on disk was
/// opened again. Numbers have gaps, and rows that were inserted later may have smaller ones.
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
