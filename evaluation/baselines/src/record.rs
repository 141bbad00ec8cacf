//! A record: a word of its engine's, and the row in the same allocation.
//!
//! What the word, the *state*, means is the engine's business. A record has no version beside its own, so it is 8 bytes shorter than one
//! of Silo.

use ensilo_engine::{Abort, AbortReason, RawRecord, TableId, assert_is_row};
use ensilo_epoch::Guard;
use ensilo_sync::atomic::AtomicU64;

/// A record with its state as the header.
pub type Record = RawRecord<AtomicU64>;

/// Makes a record with a row.
///
/// # Errors
/// [`AbortReason::OutOfMemory`], which names `key`.
///
/// # Panics
/// As [`assert_is_row`].
pub(crate) fn new_record(
    guard: &Guard<'_>,
    store: TableId,
    key: &[u8],
    (row, len_bytes): (&[u64], usize),
    state: u64,
) -> Result<Record, Abort> {
    assert_is_row(row, len_bytes);
    let record = Record::allocate(guard, store, len_bytes, AtomicU64::new(state))
        .map_err(|_| Abort::new(AbortReason::OutOfMemory, store, key))?;
    record.store_row(row.iter().copied(), len_bytes);
    Ok(record)
}
