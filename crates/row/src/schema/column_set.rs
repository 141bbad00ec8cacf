//! Sets of columns.

use super::parts::PartSchema;
use crate::limits::COLUMNS_MAX;

/// Some columns of a table.
pub(super) struct ColumnSet([u64; COLUMNS_MAX / 64]);

impl ColumnSet {
    /// Returns the columns of a key.
    pub(super) fn of(parts: &[PartSchema]) -> Self {
        let mut words = [0; COLUMNS_MAX / 64];
        for part in parts {
            words[part.column / 64] |= 1 << (part.column % 64);
        }
        Self(words)
    }

    pub(super) const fn has(&self, column: usize) -> bool {
        self.0[column / 64] >> (column % 64) & 1 == 1
    }
}
