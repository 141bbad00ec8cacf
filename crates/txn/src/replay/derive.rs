//! Rows that follow from what is on disk: entries of secondary indexes, which are not logged, and records of a checkpoint that are loaded
//! late, beside transactions.
//!
//! # Why the row is as if it had always been there
//! Its record comes into the tree complete, live and unlocked, with a TID of an epoch before the first of the engine. So it is older than what
//! any transaction has read, each snapshot shows it, and a commit that overwrites it chooses a larger TID. Nobody has missed its key,
//! which the caller promises. The node that takes it changes its version as with any insert, so that a transaction
//! which relies on the node for other keys aborts in its validation.

use ensilo_engine::StoredRow;
use ensilo_epoch::Participant;
use ensilo_index::{InsertError, Inserted};
use ensilo_slab::OutOfMemory;

use crate::silo::{Variant, allocate, free};
use crate::store::Store;
use crate::tid::TidWord;

/// Puts a record into a store, for [`Engine::derive`](ensilo_engine::Engine::derive).
///
/// # Errors
/// [`OutOfMemory`].
///
/// # Panics
/// When key or row are longer than a record's may be.
pub(crate) fn derive_record<V: Variant>(
    participant: &Participant,
    store: &Store,
    row: &StoredRow<'_>,
) -> Result<bool, OutOfMemory> {
    let StoredRow { key, tid, words, len_bytes } = *row;
    let guard = participant.pin();
    // Behind the pin: from there on nobody takes the store apart.
    if store.is_dropped() {
        return Ok(false);
    }
    let record = allocate::<V>(&guard, store.id(), len_bytes, TidWord::live(tid))?;
    record.store_row(words.iter().copied(), len_bytes);
    let inserted = store.index().insert_if_absent(key, record.index_value(), &guard, &mut ());
    if matches!(inserted, Ok(Inserted::New)) {
        return Ok(true);
    }
    // SAFETY: the tree did not take the record, so nobody else knows it.
    unsafe { free::<V>(record, &guard) };
    match inserted {
        Ok(_) => Ok(false),
        Err(InsertError::OutOfMemory(error)) => Err(error),
        Err(error) => panic!("a key that was checked when its row was written: {error}"),
    }
}
