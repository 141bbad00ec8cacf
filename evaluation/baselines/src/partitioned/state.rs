//! The states of records: whether they are deleted, and to where they have moved.

use ensilo_sync::atomic::Ordering;

use crate::record::Record;

/// The state of every record that there is.
pub(super) const PRESENT: u64 = 0;
/// The state of a record that the running transaction has deleted. An address is larger.
pub(super) const DELETED: u64 = 1;

#[inline]
pub(super) fn state(record: Record) -> u64 {
    // Acquire: a thread that comes upon the record without having it to itself finds what was written before its state.
    record.header().load(Ordering::Acquire)
}

#[inline]
pub(super) fn set_state(record: Record, state: u64) {
    // Release: as in `state`.
    record.header().store(state, Ordering::Release);
}

/// Returns the record that has the row of this one now.
#[inline]
pub(super) fn moved_to(mut record: Record) -> Record {
    loop {
        match state(record) {
            PRESENT | DELETED => return record,
            // SAFETY: any other state is the address of a record that is retired only when this one no longer leads to it or is
            // retired too.
            address => record = unsafe { Record::from_index_value(address) },
        }
    }
}

/// Returns the record that an entry of a tree leads to, unless it is deleted.
#[inline]
pub(super) fn present(value: u64) -> Option<Record> {
    // SAFETY: a value of a store's tree is a record, read while the transaction is pinned.
    let record = unsafe { Record::from_index_value(value) };
    (state(record) != DELETED).then_some(record)
}
