//! Entries of secondary indexes, which are not logged: they are made anew from the rows.

use ensilo_engine::StoredRow;
use ensilo_epoch::Participant;
use ensilo_index::{InsertError, Inserted};
use ensilo_slab::OutOfMemory;

use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::TidWord;

/// Puts a record into a store on which no transaction has begun; `false`, and nothing changed, when the key exists.
///
/// # Errors
/// [`OutOfMemory`].
///
/// # Panics
/// When key or row are longer than a record's may be.
pub(crate) fn derive_record(
    participant: &Participant,
    store: &Store,
    row: &StoredRow<'_>,
) -> Result<bool, OutOfMemory> {
    let StoredRow { key, tid, words, len_bytes } = *row;
    let guard = participant.pin();
    let record = RecordPtr::allocate(&guard, store.id(), len_bytes, TidWord::live(tid))?;
    record.store_row(words.iter().copied(), len_bytes);
    let inserted = store.index().insert_if_absent(key, record.index_value(), &guard, &mut ());
    if matches!(inserted, Ok(Inserted::New)) {
        return Ok(true);
    }
    // SAFETY: the tree did not take the record, so nobody else knows it.
    unsafe { record.free(&guard) };
    match inserted {
        Ok(_) => Ok(false),
        Err(InsertError::OutOfMemory(error)) => Err(error),
        Err(error) => panic!("a key that was checked when its row was written: {error}"),
    }
}
