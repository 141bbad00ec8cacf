//! Adding to numbers of rows.
//!
//! Where the engine [can](Write::ADDS), a row is not read for it, so that transactions that add to one row do not conflict. Otherwise it is, and
//! the sums are written like any update: for a number in a column of an index, whose entries move; for a row of an older schema; and for a sum that its
//! column has no room for, which is an error of the statement then.

use ensilo_engine::{Addition, Write};
use ensilo_epoch::Epoch;
use ensilo_row::{ColumnType, KeyBuf, RowBuf, Slot, WordPatch, Words};
use ensilo_sync::region::{self, Region};

use crate::Result;
use crate::catalog::index_set::column_mask;
use crate::catalog::table_core::TableCore;
use crate::local::Local;
use crate::maintain;
use crate::older_rows::is_replaced_whole;
use crate::transaction::Inner;

/// Returns the addition of an amount to a column, or its subtraction. `bits` are those of the amount as a row holds them, and others above.
pub(crate) fn addition_to(slot: Slot, column_type: ColumnType, bits: u64, is_subtraction: bool) -> Addition {
    let width = (slot.width() * 8) as u32;
    let unused = u64::BITS - width;
    let is_signed = column_type.has_negative_sums();
    let (amount, is_negative) = if is_signed {
        let amount = bits.cast_signed() << unused >> unused;
        (amount.unsigned_abs(), amount < 0)
    } else {
        (bits << unused >> unused, false)
    };
    Addition {
        word: (slot.offset() / 8) as u32,
        shift: (slot.offset() % 8 * 8) as u8,
        bits: width as u8,
        is_signed,
        is_subtraction: is_subtraction != is_negative,
        amount,
    }
}

/// Adds to numbers of the row with this primary key: to `columns`, which may not be null, what `local.additions` says of each.
///
/// # Errors
/// Those of every statement; [`Error::MissingRow`](crate::Error::MissingRow), [`Error::SumOutOfRange`](crate::Error::SumOutOfRange).
pub(crate) fn add_to_row<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    columns: &[usize],
) -> Result<()> {
    inner.load_to_write(table)?;
    inner.load_key(table, key)?;
    let is_indexed = table.indexes.load(inner.pinned).touches(column_mask(columns));
    let reads = is_indexed || inner.local.adds_by_reading || table.keeps_long_inline();
    if Raw::ADDS && !reads && add_unread(inner, table, key)? {
        inner.note_change(table);
        return Ok(());
    }
    add_by_reading(inner, table, key, columns)
}

/// Returns `false` where the row has to be read.
fn add_unread<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
) -> Result<bool> {
    let since = table.older.as_ref().map_or(Epoch::new(0), |older| older.since());
    let engine = region::enter(Region::Engine);
    let added = inner.raw.add(&table.store, key.as_bytes(), since, &inner.local.additions);
    engine.leave();
    added.map_err(|abort| inner.lost(abort))
}

fn add_by_reading<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    columns: &[usize],
) -> Result<()> {
    let found = inner.find_row_to_write(table, key)?;
    // Once the row has been read: M2 of `maintain`.
    maintain::copy_row(inner, table, found)?;
    let local = &mut *inner.local;
    if let Err(failed) = sums(&local.before, &local.additions, &mut local.sums) {
        return Err(table.sum_out_of_range(columns[failed], key.as_bytes()));
    }
    let indexes = table.indexes.load(inner.pinned);
    if indexes.touches(column_mask(columns)) {
        inner.local.make_row_of_sums();
        return maintain::change_row(inner, table, indexes, key, found);
    }
    if is_replaced_whole(inner, table, found)? {
        inner.local.make_row_of_sums();
        return maintain::replace_row(inner, table, indexes, key, found);
    }
    inner.note_change(table);
    let _engine = region::enter(Region::Engine);
    inner.raw.patch(found, &inner.local.sums).map_err(|abort| inner.lost(abort))
}

impl<F> Local<F> {
    /// Makes `row` the one in `before` with the sums.
    fn make_row_of_sums(&mut self) {
        self.row.set_words(&WithSums { row: &self.before, sums: &self.sums });
    }
}

/// Makes `sums` the words of the row with all that is added to them. On an error, the place of the addition whose sum its number has no room for.
fn sums(row: &RowBuf, additions: &[Addition], sums: &mut Vec<WordPatch>) -> Result<(), usize> {
    sums.clear();
    for (at, addition) in additions.iter().enumerate() {
        let known = sums.iter().position(|(index, _)| *index == addition.word);
        let before = known.map_or_else(|| row.word(addition.word as usize), |known| sums[known].1);
        let sum = addition.apply(before).ok_or(at)?;
        match known {
            Some(known) => sums[known].1 = sum,
            None => sums.push((addition.word, sum)),
        }
    }
    Ok(())
}

/// A row with other words in some places.
struct WithSums<'a> {
    row: &'a RowBuf,
    sums: &'a [WordPatch],
}

impl Words for WithSums<'_> {
    fn len_bytes(&self) -> usize {
        self.row.len_bytes()
    }

    fn word(&self, index: usize) -> u64 {
        let sum = self.sums.iter().find(|(changed, _)| *changed as usize == index);
        sum.map_or_else(|| self.row.word(index), |(_, word)| *word)
    }
}
