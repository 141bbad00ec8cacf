//! Key-Value: the index and its records with gets and puts of single keys, each atomic by itself.
//!
//! # Source
//! Silo (SOSP 2013) §5.2: "the concurrent B+-tree underneath Silo", without read and write sets, TIDs, versions or a commit. What remains
//! of a record's TID word is a version that readers look at before and after they copy, and a lock for writers.
//!
//! # What it does not do
//! Nothing spans two operations: each write takes place when it is made, an abort takes nothing back, and what was read may be out of date
//! when it is written back. There are no snapshots and there is no log.

#[cfg(all(test, loom))]
mod model;

use ensilo_engine::{Abort, RowRef, assert_is_row};
use ensilo_epoch::{Epoch, Guard};
use ensilo_index::Lookup;
use ensilo_sync::cpu_relax;

use crate::handle::BaselineHandle;
use crate::record::{Record, new_record};
use crate::store::{Insertion, Store};
use crate::transaction::{BaselineTransaction, Protocol};
use crate::version::Version;

/// Gets and puts of single keys.
#[derive(Debug)]
pub struct SingleKeys;

type KeyValueTransaction<'s> = BaselineTransaction<'s, SingleKeys>;

impl Protocol for SingleKeys {
    const IS_TRANSACTIONAL: bool = false;

    /// Nothing is taken back.
    type Undo = ();

    /// Returns the record that the tree has under `key` and that nobody has taken out of it since.
    #[inline]
    fn resolve(store: &Store, key: &[u8], mut value: u64, guard: &Guard<'_>) -> Option<Record> {
        loop {
            // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
            let record = unsafe { Record::from_index_value(value) };
            if !Version::of(record).is_gone() {
                return Some(record);
            }
            cpu_relax();
            match store.index().get(key, guard) {
                Lookup::Found(newer) => value = newer,
                Lookup::Missing(_) => return None,
            }
        }
    }

    #[inline]
    fn read_row<R>(record: Record, mut decode: impl FnMut(RowRef<'_>) -> R) -> R {
        loop {
            let version = Version::of(record);
            // It has no TID, and so no epoch.
            let value = decode(record.row().committed_in(Epoch::MAX));
            if version.is_still(record) {
                return value;
            }
        }
    }

    /// Returns the record that has taken the place of a handle's; if there is none, the handle's own, which was current after it was found.
    #[inline]
    fn successor(tx: &KeyValueTransaction<'_>, found: BaselineHandle) -> Record {
        let is_gone = Version::of(found.record).is_gone();
        if is_gone { look_again(tx, found).unwrap_or(found.record) } else { found.record }
    }

    #[inline]
    fn patch(
        tx: &mut KeyValueTransaction<'_>,
        found: BaselineHandle,
        words: &[(u32, u64)],
    ) -> Result<(), Abort> {
        let Some((record, version)) = lock(tx, found) else { return Ok(()) };
        let len_words = record.row().len_words();
        if words.iter().any(|&(index, _)| index as usize >= len_words) {
            version.publish(record);
            panic!("a patch outside the row");
        }
        record.store_words(words.iter().map(|&(index, word)| (index as usize, word)));
        version.next().publish(record);
        Ok(())
    }

    fn put(
        tx: &mut KeyValueTransaction<'_>,
        found: BaselineHandle,
        (row, len_bytes): (&[u64], usize),
    ) -> Result<(), Abort> {
        // Before the lock, which a panic would leave held.
        assert_is_row(row, len_bytes);
        let Some((record, version)) = lock(tx, found) else { return Ok(()) };
        if !record.fits(len_bytes) {
            return replace(tx, (record, version), found, (row, len_bytes));
        }
        record.store_row(row.iter().copied(), len_bytes);
        version.next().publish(record);
        Ok(())
    }

    fn insert(
        tx: &mut KeyValueTransaction<'_>,
        store: &Store,
        key: &[u8],
        row: (&[u64], usize),
    ) -> Result<bool, Abort> {
        let insertion = store.insert(key, row, Version::FIRST.raw(), &tx.guard)?;
        Ok(matches!(insertion, Insertion::New(_)))
    }

    fn delete(tx: &mut KeyValueTransaction<'_>, found: BaselineHandle) -> Result<(), Abort> {
        let Some((record, version)) = lock(tx, found) else { return Ok(()) };
        let (store, key) = tx.place_of(found);
        assert!(store.take_out(key, record, &tx.guard), "a locked record that is not gone is in the tree");
        version.gone().publish(record);
        Ok(())
    }

    #[inline]
    fn complete(_: &mut KeyValueTransaction<'_>) {}

    #[inline]
    fn take_back(_: &mut KeyValueTransaction<'_>) {}
}

/// Returns the record that is in the place of a handle's now.
#[cold]
fn look_again(tx: &KeyValueTransaction<'_>, found: BaselineHandle) -> Option<Record> {
    let (store, key) = tx.place_of(found);
    tx.lookup(store, key)
}

/// Returns the record of a handle, locked, with its version; another one if that has taken its place. `None` if the key is gone.
fn lock(tx: &KeyValueTransaction<'_>, found: BaselineHandle) -> Option<(Record, Version)> {
    let mut record = found.record;
    loop {
        let version = Version::of(record);
        if version.is_gone() {
            record = look_again(tx, found)?;
        } else if version.try_lock(record) {
            return Some((record, version));
        }
    }
}

/// Puts a record with another row in the place of a locked one.
fn replace(
    tx: &KeyValueTransaction<'_>,
    (record, version): (Record, Version),
    found: BaselineHandle,
    row: (&[u64], usize),
) -> Result<(), Abort> {
    let (store, key) = tx.place_of(found);
    let new = new_record(&tx.guard, record.store(), key, row, Version::FIRST.raw())
        .inspect_err(|_| version.publish(record))?;
    let is_replaced = store.index().replace(key, record.index_value(), new.index_value(), &tx.guard);
    assert!(is_replaced, "a locked record that is not gone is in the tree");
    version.gone().publish(record);
    // SAFETY: it has just left the tree, by the hand of the one that held its lock.
    unsafe { record.retire(&tx.guard) };
    Ok(())
}
