//! Handles to records.

use ensilo_engine::TransactionNumber;

use crate::record::RecordPtr;

/// A handle to an existing record that this transaction has found.
///
/// It is good in the transaction that returned it; another one refuses it.
#[derive(Copy, Clone, Debug)]
pub struct RecordHandle {
    pub(crate) record: RecordPtr,
    /// Of the transaction that has found it.
    pub(crate) number: TransactionNumber,
    /// The place of the record in the transaction's read set.
    pub(crate) entry: u32,
}
