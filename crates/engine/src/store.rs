//! A store as the layers above know it.

use std::fmt;

/// The number of bits of a store's id.
const TABLE_ID_BITS: u32 = 25;

/// Names a store among all that a database ever had; ids are never used again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// No store: what an abort names that concerns none.
    pub const NONE: TableId = TableId(0);
    /// The largest id that a store can have.
    pub const MAX: TableId = TableId((1 << TABLE_ID_BITS) - 1);

    /// Whether the log and checkpoints hold the store's records: those of odd ids. Stores of even ids hold what follows from
    /// others: the entries of secondary indexes.
    #[inline]
    #[must_use]
    pub const fn is_logged(self) -> bool {
        self.0 & 1 == 1
    }
}

/// An ordered map from keys to rows: a table's primary tree, or one of its secondary indexes.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// The store's id.
    fn id(&self) -> TableId;
}
