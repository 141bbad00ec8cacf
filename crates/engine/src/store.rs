//! A store as the layers above know it.

use std::fmt;

use ensilo_slab::OutOfMemory;

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

    /// Returns whether the log and checkpoints hold the store's records: those of odd ids. Stores of even ids hold what follows from
    /// others: the entries of secondary indexes.
    #[inline]
    #[must_use]
    pub const fn is_logged(self) -> bool {
        self.0 & 1 == 1
    }
}

/// An ordered map from keys to rows: a table's primary tree, or one of its secondary indexes.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Returns the store's id.
    fn id(&self) -> TableId;
}

/// Why a store could not be made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NewStoreError {
    /// The id is 0, too large, or was used before.
    IdTaken(TableId),
    /// The memory limit is reached.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for NewStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NewStoreError::IdTaken(id) => write!(f, "table id {} is reserved or was used before", id.0),
            NewStoreError::OutOfMemory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NewStoreError {}
