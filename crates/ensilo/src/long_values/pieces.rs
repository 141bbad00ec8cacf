//! Writing and deleting the pieces of long values.

use ensilo_engine::Write;
use ensilo_row::{KeyBuf, LongValue, RowBuf, Words as _};
use ensilo_sync::region::{self, Region};

use super::split::{Split, WrittenValue};
use super::store::LongStore;
use super::{PIECE_LEN, pieces_of, set_piece_key};
use crate::Result;
use crate::catalog::table_core::TableCore;
use crate::local::Local;
use crate::row_words::RowWords;
use crate::transaction::Inner;

/// Sees to it that what there is of the pieces of these values is in memory, before the statement writes anything: nothing that may fail and leaves
/// the transaction as it is comes behind that.
pub(super) fn load_pieces<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    store: &LongStore<Raw::Store>,
    key: &KeyBuf,
    values: impl Iterator<Item = LongValue>,
) -> Result<()> {
    if store.pieces.load.is_over() {
        return Ok(());
    }
    let mut piece_key = KeyBuf::new();
    for value in values {
        for piece in 0..pieces_of(value.len_bytes as usize) {
            set_piece_key(&mut piece_key, key, value.number, piece);
            inner.load_key(&store.pieces, &piece_key)?;
        }
    }
    Ok(())
}

/// Writes the pieces of what has left a row, which is written by now, and deletes those that the row does not need any more.
pub(crate) fn write_pieces<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    split: Option<Box<Split>>,
) -> Result<()> {
    let (Some(split), Some(long)) = (split, &table.long) else { return Ok(()) };
    if !split.written.is_empty() {
        long.store.note_use();
    }
    for written in &split.written {
        write_value(inner, &long.store, key, &split, written)?;
    }
    delete_pieces(inner, table, key, &split.deleted)
}

/// Deletes the pieces of long values that a row had.
pub(crate) fn delete_pieces<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    values: &[LongValue],
) -> Result<()> {
    let Some(long) = &table.long else { return Ok(()) };
    for value in values {
        delete_from(inner, &long.store, key, value, 0)?;
    }
    Ok(())
}

/// Writes the pieces of a value that are others than before, and deletes those behind its end.
fn write_value<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    store: &LongStore<Raw::Store>,
    key: &KeyBuf,
    split: &Split,
    written: &WrittenValue,
) -> Result<()> {
    let (mut piece_key, mut bytes) = (KeyBuf::new(), [0; PIECE_LEN]);
    let pieces_before = written.before.map_or(0, |before| pieces_of(before.len_bytes as usize));
    for (piece, start) in written.range.clone().step_by(PIECE_LEN).enumerate() {
        let part = &mut bytes[..(written.range.end - start).min(PIECE_LEN)];
        split.whole.copy_bytes(start, part);
        set_piece_key(&mut piece_key, key, written.value.number, piece);
        write_piece(inner, store, &piece_key, part, piece < pieces_before)?;
    }
    match &written.before {
        Some(before) => delete_from(inner, store, key, before, pieces_of(written.range.len())),
        None => Ok(()),
    }
}

/// Writes a piece, unless it is there as it is to be.
fn write_piece<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    store: &LongStore<Raw::Store>,
    key: &KeyBuf,
    bytes: &[u8],
    was_there: bool,
) -> Result<()> {
    let pieces = &*store.pieces.store;
    inner.local.entry.set_bytes(bytes);
    if !was_there && inner.insert_entry(pieces, key)? {
        return Ok(());
    }
    // Also where one is there that no row knows of, as after a salvage that has lost the row.
    let Some(found) = inner.find_to_write(pieces, key)? else {
        return inner.insert_entry(pieces, key).map(drop);
    };
    let mut before = RowBuf::new();
    inner.read_stored(found, |row| before.set_words(&RowWords(row)))?;
    if before == inner.local.entry {
        return Ok(());
    }
    let is_patched = inner.local.note_changed_words_of_entry(&before);
    let Local { entry, changed_words, .. } = &*inner.local;
    let _engine = region::enter(Region::Engine);
    let written = match is_patched {
        true => inner.raw.patch(found, changed_words),
        false => inner.raw.put(found, entry.words(), entry.len_bytes()),
    };
    written.map_err(|abort| inner.lost(abort))
}

/// Deletes the pieces of a value from this one on. One that is missing, as after damage, does not keep the others.
fn delete_from<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    store: &LongStore<Raw::Store>,
    key: &KeyBuf,
    value: &LongValue,
    first: usize,
) -> Result<()> {
    let mut piece_key = KeyBuf::new();
    for piece in first..pieces_of(value.len_bytes as usize) {
        set_piece_key(&mut piece_key, key, value.number, piece);
        if let Some(found) = inner.find_to_write(&store.pieces.store, &piece_key)? {
            inner.delete(&store.pieces.store, found)?;
        }
    }
    Ok(())
}
