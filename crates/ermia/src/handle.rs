//! Handles to records.

use ensilo_engine::TransactionNumber;

/// A handle to a record that this transaction has found. Another one refuses it.
#[derive(Copy, Clone, Debug)]
pub struct ErmiaHandle {
    /// Of the transaction that has found it.
    pub(crate) number: TransactionNumber,
    /// Its place among those that were found.
    pub(crate) at: u32,
}
