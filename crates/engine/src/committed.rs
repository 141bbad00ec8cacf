//! How a transaction committed.

use ensilo_epoch::Epoch;

use crate::tid::Tid;

/// How a transaction committed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction's TID; of a read-only transaction the largest TID that it read.
    pub tid: Tid,
    /// The epoch that has to be durable before the transaction is: that of its TID; of a read-only transaction the
    /// last one that it has seen anything of, deletions included.
    pub epoch: Epoch,
}
