//! How a transaction committed.

use ensilo_epoch::Epoch;

use crate::tid::Tid;

/// How a transaction committed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction's TID; of a read-only transaction the largest TID that it read.
    pub tid: Tid,
    /// The epoch that has to be durable before the transaction is.
    pub epoch: Epoch,
}
