//! Handles to records that a transaction has found, and the keys that they lead to.

use ensilo_engine::TransactionNumber;

use crate::record::Record;

/// A handle to a record that a transaction has found. It is good in the transaction that returned it; another one refuses it.
#[derive(Copy, Clone, Debug)]
pub struct BaselineHandle {
    pub(crate) record: Record,
    /// Of the transaction that has found it.
    pub(crate) number: TransactionNumber,
    /// The place of the record's key among those that were found.
    pub(crate) entry: u32,
}

/// The keys of records that were found. Their memory stays from one transaction to the next.
#[derive(Debug)]
pub(crate) struct FoundKeys {
    /// Of the transaction under way, or the last one.
    number: TransactionNumber,
    /// Where each key ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Default for FoundKeys {
    fn default() -> Self {
        FoundKeys { number: TransactionNumber::fresh(), ends: Vec::new(), bytes: Vec::new() }
    }
}

impl FoundKeys {
    /// Returns a handle to a record that was found under `key`.
    ///
    /// # Panics
    /// When the transaction has found 2^32 records: it is made for comparisons, where none does.
    #[inline]
    pub(crate) fn push(&mut self, record: Record, key: &[u8]) -> BaselineHandle {
        let Ok(entry) = u32::try_from(self.ends.len()) else { panic!("2^32 handles in one transaction") };
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        BaselineHandle { record, number: self.number, entry }
    }

    /// Returns the key of a handle.
    #[inline]
    pub(crate) fn of(&self, entry: u32) -> &[u8] {
        let at = entry as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// Forgets all.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
        self.number = self.number.next();
    }

    /// # Panics
    /// When another transaction has found it.
    #[inline]
    pub(crate) fn refuse_others(&self, found: BaselineHandle) {
        assert!(self.has(found), "a handle of another transaction");
    }

    #[inline]
    pub(crate) fn has(&self, found: BaselineHandle) -> bool {
        found.number == self.number
    }
}
