//! Writing rows together with their entries in the table's indexes.
//!
//! # Source
//! Silo (SOSP 2013) §4.7: a secondary index is a table of its own, and a change that affects it is an extra
//! access of the same transaction. A transaction that used an entry which has changed aborts in the usual
//! way.
//!
//! # Invariants
//! - M1: a statement does first what may be refused, which are inserts into trees, and takes those back when
//!   one is. So it is applied as a whole or not at all, and the transaction stays usable.
//! - M2: the set of indexes is loaded after the row that is changed has joined the read set. Whoever sees a
//!   row that a maintaining transaction has written then also sees the index that it maintained: no entry
//!   goes stale while an index is being introduced.
//!   An addition ([`addition`](crate::addition)) changes a row that is not in the read set: it is made to columns alone that no index has, and
//!   none that is announced. An index is introduced once all transactions have ended that may have loaded a set from before its announcement.
//! - M3: an entry goes only with the row that it leads to. Until an index is ready, rows may lack their
//!   entries in it, and then the entry under a row's key in a unique index is missing or another row's, which
//!   stays. Afterwards an entry that is missing or another's means that this transaction's reads do not
//!   belong together. The entry that was compared is in the read set.

use std::mem;
use std::sync::Arc;

use ensilo_engine::{Fault, KeyChange, Read, Store, Write};
use ensilo_row::{KeyBuf, ROW_LEN_MAX, RowBuf, Words};
use ensilo_sync::region::{self, Region};

use crate::catalog::index_core::IndexCore;
use crate::catalog::index_set::IndexSet;
use crate::catalog::table_core::TableCore;
use crate::entry_changes::EntryChange;
use crate::local::Local;
use crate::long_values::{before_change, before_delete, before_insert, delete_pieces, write_pieces};
use crate::older_rows::{LONG_ROW_BYTES, in_schema, is_older};
use crate::row_words::{RowWords, primary_key_of, whole};
use crate::transaction::Inner;
use crate::{Error, Result};

/// Inserts the row in the scratch `local.row` under `key`, with its entries, which `index_key` makes.
#[inline]
pub(crate) fn insert_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    index_key: impl FnMut(&IndexCore<Raw::Store>, &RowBuf, &mut KeyBuf),
) -> Result<()> {
    if inner.local.row.len_bytes() > LONG_ROW_BYTES {
        check_long_row(inner, table)?;
    }
    inner.load_to_write(table)?;
    inner.load_key(table, key)?;
    let mut split = before_insert(inner, table, key)?;
    let inserted = insert_short_row(inner, table, key, index_key);
    if inserted.is_err()
        && let Some(split) = &mut split
    {
        // The caller may try it under another key.
        split.take_back(inner);
    }
    inserted?;
    write_pieces(inner, table, key, split)
}

/// Inserts the row in `local.row` as it is, with its entries.
#[inline(always)]
fn insert_short_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    index_key: impl FnMut(&IndexCore<Raw::Store>, &RowBuf, &mut KeyBuf),
) -> Result<()> {
    if !inner.insert_row(&table.store, key)? {
        return Err(table.duplicate(None, key.as_bytes()));
    }
    inner.note_change(table);
    if table.indexes.load(inner.pinned).indexes.is_empty() {
        return Ok(());
    }
    insert_entries(inner, table, key, index_key)
}

/// Checks that the row in the scratch `local.row`, which is long, may be written.
#[cold]
fn check_long_row<Raw: Read>(inner: &mut Inner<'_, Raw>, table: &TableCore<Raw::Store>) -> Result<()> {
    inner.local.note_long_row();
    let len_bytes = inner.local.row.len_bytes();
    if len_bytes <= ROW_LEN_MAX { Ok(()) } else { Err(table.row_too_large(len_bytes)) }
}

/// Adds the entries of a row that was just inserted, or takes the row back.
fn insert_entries<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    mut index_key: impl FnMut(&IndexCore<Raw::Store>, &RowBuf, &mut KeyBuf),
) -> Result<()> {
    let indexes = &table.indexes.load(inner.pinned).indexes;
    let Local { row, entry_changes, .. } = &mut *inner.local;
    entry_changes.clear();
    let made = indexes.iter().enumerate().try_for_each(|(at, index)| {
        entry_changes.add(at, index, KeyChange::Insert, |entry_key| index_key(index, row, entry_key))
    });
    let inserted = if made.is_ok() { change_entries(inner, table, indexes, key)? } else { made };
    let Err(refusal) = inserted else { return Ok(()) };
    delete_new_row(inner, table, key)?;
    Err(refusal)
}

/// Deletes a row and its entries.
#[inline]
pub(crate) fn delete_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Result<()> {
    inner.load_to_write(table)?;
    let long_values = before_delete(inner, table, key, found)?;
    if !table.indexes.load(inner.pinned).indexes.is_empty() {
        delete_entries(inner, table, key, found)?;
    }
    inner.delete(&table.store, found)?;
    delete_pieces(inner, table, key, &long_values)
}

/// Deletes rows that were found, with their entries, and says how many these are.
pub(crate) fn delete_rows<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    rows: &[(KeyBuf, Raw::Found)],
) -> Result<usize> {
    if !table.is_loaded() {
        // All that may fail to be loaded, before anything is deleted.
        rows.iter().try_for_each(|(key, found)| before_delete(inner, table, key, *found).map(drop))?;
    }
    for (number, (key, found)) in rows.iter().enumerate() {
        match delete_row(inner, table, key, *found) {
            // The table takes no writes any more, since a moment ago.
            Err(_) if number > 0 && !inner.is_doomed() => {
                return Err(inner.inconsistent(table.store.id(), &[]));
            }
            deleted => deleted?,
        }
    }
    Ok(rows.len())
}

/// Deletes the row under `key` with its entries, and says whether there was one.
#[inline]
pub(crate) fn delete_row_if_there<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
) -> Result<bool> {
    let Some(found) = inner.find_in_to_write(table, key)? else { return Ok(false) };
    delete_row(inner, table, key, found).map(|()| true)
}

fn delete_entries<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Result<()> {
    copy_row(inner, table, found)?;
    let indexes = &table.indexes.load(inner.pinned).indexes;
    let Local { before, entry_changes, .. } = &mut *inner.local;
    entry_changes.clear();
    for (at, index) in indexes.iter().enumerate() {
        entry_changes.add(at, index, KeyChange::Delete, |entry_key| {
            stored_index_key(table, index, key, before, entry_key);
        })?;
    }
    change_entries(inner, table, indexes, key)?
}

/// Copies the row as this transaction sees it to the scratch `local.before`, without its long values.
pub(crate) fn copy_row<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    found: Raw::Found,
) -> Result<()> {
    let Local { before, converted, .. } = &mut *inner.local;
    let older = table.older.as_deref();
    let _engine = region::enter(Region::Engine);
    let copied = inner.raw.read(found, |row| before.set_words(&RowWords(in_schema(older, row, converted))));
    if inner.local.before.len_bytes() > LONG_ROW_BYTES {
        inner.local.note_long_row();
    }
    copied.map_err(|abort| inner.lost(abort))
}

/// Puts the row in the scratch `local.before`, where [`copy_row`] has copied it, in its own place: as a whole, as O2 of
/// [`older_rows`](crate::older_rows) asks for.
pub(crate) fn put_copied_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Result<()> {
    let Local { row, before, .. } = &mut *inner.local;
    row.set_words(before);
    if row.len_bytes() > LONG_ROW_BYTES {
        check_long_row(inner, table)?;
    }
    let split = before_change(inner, table, key, found)?;
    put_row(inner, found)?;
    write_pieces(inner, table, key, split)
}

/// Puts the row in the scratch `local.row` in the place of the one that was found, as it is.
fn put_row<Raw: Write>(inner: &mut Inner<'_, Raw>, found: Raw::Found) -> Result<()> {
    let row = &inner.local.row;
    let _engine = region::enter(Region::Engine);
    inner.raw.put(found, row.words(), row.len_bytes()).map_err(|abort| inner.lost(abort))
}

/// Puts the row in the scratch `local.row` in the place of the one that was found, and moves its entries in
/// `indexes`, which are those in force. Unless there are none, `local.before` is the row that was found.
pub(crate) fn replace_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    indexes: &IndexSet<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Result<()> {
    if inner.local.row.len_bytes() > LONG_ROW_BYTES {
        check_long_row(inner, table)?;
    }
    let split = before_change(inner, table, key, found)?;
    prepare_replacing(inner, table, indexes, key)?;
    put_row(inner, found)?;
    write_pieces(inner, table, key, split)
}

/// Like [`replace_row`], where `local.before` is the row that was found in any case. Where both rows are as long, only the words that differ are
/// written, unless they are many: the others are neither copied nor logged.
pub(crate) fn change_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    indexes: &IndexSet<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Result<()> {
    if inner.local.row.len_bytes() > LONG_ROW_BYTES {
        check_long_row(inner, table)?;
    }
    let split = before_change(inner, table, key, found)?;
    let is_patched = !is_older(inner, table, found)? && inner.local.note_changed_words();
    prepare_replacing(inner, table, indexes, key)?;
    if is_patched {
        let _engine = region::enter(Region::Engine);
        inner.raw.patch(found, &inner.local.changed_words).map_err(|abort| inner.lost(abort))?;
    } else {
        put_row(inner, found)?;
    }
    write_pieces(inner, table, key, split)
}

/// Does what comes before a row that was found is replaced by the one in `local.row`.
fn prepare_replacing<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    indexes: &IndexSet<Raw::Store>,
    key: &KeyBuf,
) -> Result<()> {
    if !indexes.indexes.is_empty() {
        move_entries(inner, table, &indexes.indexes, key)?;
    }
    inner.note_change(table);
    Ok(())
}

/// Moves the entries of a row where its index keys differ between `local.before` and `local.row`. The keys in
/// other indexes are not made.
fn move_entries<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    indexes: &[Arc<IndexCore<Raw::Store>>],
    key: &KeyBuf,
) -> Result<()> {
    let Local { before, row, entry_changes, .. } = &mut *inner.local;
    entry_changes.clear();
    for (change, stored) in [(KeyChange::Insert, &*row), (KeyChange::Delete, &*before)] {
        for (at, index) in indexes.iter().enumerate() {
            if !whole(table.schema.have_same_index_key(&index.schema, before, row)) {
                entry_changes.add(at, index, change, |entry_key| {
                    stored_index_key(table, index, key, stored, entry_key);
                })?;
            }
        }
    }
    change_entries(inner, table, indexes, key)?
}

/// Makes the changes in `local.entry_changes` of entries of the row with the primary key `key`. Where the trees are descended to is loaded
/// first, for all of them side by side. Returns why none was made, when that leaves the transaction usable.
fn change_entries<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    indexes: &[Arc<IndexCore<Raw::Store>>],
    key: &KeyBuf,
) -> Result<Result<()>> {
    let Local { entry, entry_changes, .. } = &mut *inner.local;
    entry.set_bytes(key.as_bytes());
    let changes = mem::take(entry_changes);
    inner.prefetch_changes(changes.as_slice(), indexes);
    let outcome = make_changes(inner, table, indexes, key, changes.as_slice());
    inner.local.entry_changes = changes;
    outcome
}

/// Makes the changes one after the other. Where one is refused, those before it, which are inserts (M1), are taken back.
fn make_changes<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    indexes: &[Arc<IndexCore<Raw::Store>>],
    key: &KeyBuf,
    changes: &[EntryChange],
) -> Result<Result<()>> {
    for (at, change) in changes.iter().enumerate() {
        let index = &*indexes[change.index];
        if change.change == KeyChange::Delete {
            delete_entry(inner, index, key, &change.key)?;
        } else if let Some(refusal) = insert_entry(inner, table, index, &change.key)? {
            for made in &changes[..at] {
                delete_own_entry(inner, &indexes[made.index], key, &made.key)?;
            }
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(()))
}

/// Adds an entry for the primary key in the scratch `local.entry`. Returns why it cannot be, when that leaves
/// the transaction usable.
fn insert_entry<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    index: &IndexCore<Raw::Store>,
    entry_key: &KeyBuf,
) -> Result<Option<Error>> {
    // Of an index that is not unique, an entry that is there already is this row's own.
    if inner.insert_entry(&index.store, entry_key)? || !index.schema.is_unique() {
        return Ok(None);
    }
    // Once writers leave an index alone, entries outlive their rows. A transaction that sees such an entry,
    // and that its row is gone, also sees the set without the index.
    let kept = &table.indexes.load(inner.pinned).indexes;
    if !kept.iter().any(|kept| std::ptr::eq(&**kept, index)) {
        return Err(inner.inconsistent(index.store.id(), entry_key.as_bytes()));
    }
    Ok(Some(table.duplicate(Some(index), entry_key.as_bytes())))
}

/// Deletes the entry of the row with the primary key `key`, see M3.
fn delete_entry<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    index: &IndexCore<Raw::Store>,
    key: &KeyBuf,
    entry_key: &KeyBuf,
) -> Result<()> {
    if delete_own_entry(inner, index, key, entry_key)? || !index.is_ready() {
        return Ok(());
    }
    Err(inner.inconsistent(index.store.id(), entry_key.as_bytes()))
}

/// Deletes the entry under `entry_key` if it is there and holds the primary key `key`, and says whether.
fn delete_own_entry<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    index: &IndexCore<Raw::Store>,
    key: &KeyBuf,
    entry_key: &KeyBuf,
) -> Result<bool> {
    let Some(found) = inner.find_to_write(&index.store, entry_key)? else { return Ok(false) };
    // The keys of other indexes end with the primary key.
    if index.schema.is_unique() && Raw::FAULT != Some(Fault::RemoveEntriesOfOthers) {
        let is_own = inner.read_stored(found, |entry| primary_key_of(entry) == *key)?;
        if !is_own {
            return Ok(false);
        }
    }
    inner.delete(&index.store, found).map(|()| true)
}

/// Takes back a row that this transaction has inserted.
fn delete_new_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
) -> Result<()> {
    match inner.find_to_write(&table.store, key)? {
        Some(found) => inner.delete(&table.store, found),
        None => Ok(()),
    }
}

/// Makes `out` the key of a stored row in an index.
pub(crate) fn stored_index_key<S: Store>(
    table: &TableCore<S>,
    index: &IndexCore<S>,
    key: &KeyBuf,
    row: &impl Words,
    out: &mut KeyBuf,
) {
    #[cfg(test)]
    tests::KEYS_MADE.set(tests::KEYS_MADE.get() + 1);
    whole(table.schema.index_key(&index.schema, key.as_bytes(), row, out));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ensilo_row::{ColumnType, Order, Schema, Value};

    use crate::{Database, Error};

    thread_local! {
        /// How many index keys were made of stored rows.
        pub(super) static KEYS_MADE: Cell<usize> = const { Cell::new(0) };
    }

    /// Returns the schema of a table with three indexes, and a text that none of them has.
    fn schema() -> Schema {
        Schema::builder("t")
            .column("id", ColumnType::U32)
            .column("text", ColumnType::Text)
            .nullable("a", ColumnType::Text)
            .column("b", ColumnType::U8)
            .key([("id", Order::Ascending)])
            .index("by_a", [("a", Order::Ascending), ("id", Order::Descending)])
            .unique_index("by_b", [("b", Order::Ascending)])
            .index("by_id", [("id", Order::Descending)])
            .build()
            .unwrap()
    }

    #[test]
    fn an_update_makes_the_keys_of_the_indexes_that_it_touches() {
        let db = Database::in_memory().unwrap();
        let table = db.create_dynamic_table(schema()).unwrap();
        let row = |id: u32, b: u8| [id.into(), "text".into(), "a".into(), b.into()];
        db.transact(|tx| [1, 2].iter().try_for_each(|id| table.insert(tx, &row(*id, *id as u8)).map(|_| ())))
            .unwrap();
        let update = |changes: &[(&str, Value)]| {
            db.transact(|tx| {
                let before = KEYS_MADE.get();
                let outcome = table.update(tx, &[1u32.into()], changes);
                Ok((KEYS_MADE.get() - before, outcome))
            })
            .unwrap()
        };
        for (changes, keys) in [
            (&[("text", "longer text".into())][..], 0),
            (&[("a", "a".into()), ("b", 1u8.into())], 0),
            (&[("a", "b".into()), ("text", "".into())], 2),
            (&[("a", Value::Null)], 2),
            (&[("a", Value::Null), ("b", 7u8.into())], 2),
            (&[("a", "c".into()), ("b", 8u8.into())], 4),
        ] {
            let (made, outcome) = update(changes);
            assert_eq!((made, outcome.is_ok()), (keys, true), "{changes:?}");
        }
        // Taken by the other row: the entry of the other index is taken back.
        let (made, outcome) = update(&[("a", "d".into()), ("b", 2u8.into())]);
        assert!(made == 4 && matches!(outcome, Err(Error::DuplicateKey(_))), "{made} {outcome:?}");
        let by_a = |a: &str| {
            db.transact(|tx| Ok(table.scan().by_index("by_a")?.prefix(&[a.into()])?.collect(tx)?.len()))
        };
        assert_eq!((by_a("c").unwrap(), by_a("d").unwrap()), (1, 0));
        // The whole row anew.
        let replace = |row: &[Value]| {
            let before = KEYS_MADE.get();
            db.transact(|tx| table.replace(tx, row)).unwrap();
            KEYS_MADE.get() - before
        };
        let same = [1u32.into(), "another text".into(), "c".into(), 8u8.into()];
        assert_eq!((replace(&same), replace(&row(1, 8))), (0, 2));
    }
}
