//! The keys under which a transaction has found records: its handles lead to them.

use crate::protocol::Found;
use crate::record::RecordPtr;

/// The keys of records that were found. Their memory stays from one transaction to the next.
#[derive(Debug, Default)]
pub(super) struct FoundKeys {
    /// Where each key ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl FoundKeys {
    /// A handle to a record that was found under `key`.
    #[inline]
    pub(super) fn push(&mut self, record: RecordPtr, key: &[u8]) -> Found {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
        Found { record, entry: self.ends.len() as u32 - 1 }
    }

    /// The key of a handle.
    #[inline]
    pub(super) fn of(&self, entry: u32) -> &[u8] {
        let at = entry as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// Forgets all.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}
