//! Rows and parts of rows as Rust structs; `#[derive(Row)]` and `#[derive(Columns)]` implement these traits.

use crate::{
    ColumnValue, Key, KeyBuf, Malformed, RowBuf, RowDescription, RowId, Schema, Slot, WordPatch, Words,
};

/// A struct that is the row of a table.
///
/// Derived; `ensilo_derive::Row` documents the attributes. Decoding a whole row is [`Columns::decode`], which every row
/// implements for itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the row of a table",
    note = "a struct with named fields becomes one by `#[derive(Row)]`"
)]
pub trait Row: Columns<Self> + Sized + 'static {
    /// The primary key: the type of the one key column, a tuple of several, or [`RowId`] where no column is the key.
    type Key: Key;
    /// Has a constant for each field, of its name: the index of its column. So a part of a row names fields, and the compiler reports one that
    /// is not there under its own name.
    type Fields;

    /// What the schema is made from.
    const DESCRIPTION: RowDescription;
    /// Where the columns lie, by their index in the schema.
    const SLOTS: &'static [Slot];
    /// The length in bytes of the fixed part: every row of the table is at least as long.
    const FIXED_LEN: usize;
    /// Whether no column is the key, so that the table invents a [`RowId`] for each inserted row.
    const INVENTS_ROW_ID: bool;
    /// The place in the key of the column whose numbers the table gives, if the row is an [`AutoKey`].
    const AUTO_KEY: Option<usize> = None;

    /// Returns the schema of the table.
    fn schema() -> &'static Schema;

    /// Returns the key to insert the row under: its key columns or, where it has none, what `row_id` invents.
    fn insert_key(&self, row_id: impl FnOnce() -> RowId) -> Self::Key;

    /// Encodes every column that is not in the key.
    fn encode(&self, row: &mut RowBuf);

    /// Makes `out` the key of this row in the index with this number among the declared ones: the index's columns and,
    /// unless the index is unique and none of them is null, the other columns of the primary key `key`.
    ///
    /// An update moves the row's index entry exactly if the index keys of the old and the new row differ.
    ///
    /// # Panics
    /// If fewer indexes are declared.
    fn index_key(&self, key: &Self::Key, index: usize, out: &mut KeyBuf);
}

/// A [`Row`] with key columns: the struct knows its own key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no row with key columns",
    note = "without a field that is `#[row(key)]`, the table makes the key, and the struct does not hold it"
)]
pub trait KeyedRow: Row {
    /// Returns the primary key.
    fn key(&self) -> Self::Key;
}

/// A [`Row`] with a key column that is `#[row(key, auto)]`: the table can give its value, a number.
#[diagnostic::on_unimplemented(
    message = "the table gives no keys to rows of `{Self}`",
    note = "it gives a number to a field that is `#[row(key, auto)]`"
)]
pub trait AutoKey: KeyedRow {}

/// That a row has a column with this index, and how it is read.
pub trait HasColumn<const INDEX: usize>: Row {
    /// The Rust type of the column.
    type Value: ColumnValue;

    /// Reads the column from its row, which is at least [`Row::FIXED_LEN`] long, or from its key.
    ///
    /// # Errors
    /// [`Malformed`] if the row's words are no value of the type.
    fn read_column(key: &Self::Key, row: &impl Words) -> Result<Self::Value, Malformed>;

    /// Returns whether the column is part of the key and has another value there.
    fn differs_from_key(key: &Self::Key, value: &Self::Value) -> bool;
}

/// That the field of a row has the type that a part of the row has it as: the same one.
#[diagnostic::on_unimplemented(
    message = "a field of a part of a row has another type than in the row: `{T}` instead of `{Self}`",
    label = "write `{Self}`, as in the row"
)]
pub trait IsType<T> {
    /// Returns the value, as what it is.
    fn owned(self) -> T;

    /// Returns the reference, as what it is.
    fn borrowed(value: &T) -> &Self;
}

impl<T> IsType<T> for T {
    #[inline(always)]
    fn owned(self) -> T {
        self
    }

    #[inline(always)]
    fn borrowed(value: &T) -> &Self {
        value
    }
}

/// Some or all columns of the rows `T`.
///
/// An update by columns is either a patch or a rewrite:
/// - where [`PATCHABLE`](Self::PATCHABLE), take [`patch_base`](Self::patch_base) in the same read that decodes the columns,
///   then let [`patch`](Self::patch) change it: the outcome lists the words of the row to overwrite;
/// - otherwise give the row to [`rewrite`](Self::rewrite), which makes the whole new row.
///
/// Either way the update is to be refused unless [`keeps_key`](Self::keeps_key), and index entries can only have
/// changed in indexes of [`TOUCHED_INDEXES`](Self::TOUCHED_INDEXES).
pub trait Columns<T: Row>: Sized {
    /// The words to overwrite, as an array on the stack: `[WordPatch; N]`.
    type Patch: AsRef<[WordPatch]> + Copy;

    /// Whether every column outside the key has a fixed width, so that it can be overwritten in place.
    const PATCHABLE: bool;
    /// Whether all columns are numbers that another one can be [added to](ColumnValue::IS_SUMMABLE), none of them in the key. Of a whole row it is
    /// not said.
    const ARE_SUMMABLE: bool = false;
    /// The indexes of the columns in `T`'s schema.
    const COLUMNS: &'static [usize];
    /// One bit per declared index of `T`: whether one of the columns is part of it.
    const TOUCHED_INDEXES: u64 = touched_indexes(&T::DESCRIPTION, Self::COLUMNS);

    /// Reads the columns.
    ///
    /// # Errors
    /// [`Malformed`] if the words are no such row; never a panic, whatever the words.
    fn decode(key: &T::Key, row: &impl Words) -> Result<Self, Malformed>;

    /// Returns whether the columns that are part of the key, if any, have the values they have in `key`.
    fn keeps_key(&self, key: &T::Key) -> bool;

    /// Returns the words of the row that [`patch`](Self::patch) changes, as they are.
    fn patch_base(row: &impl Words) -> Self::Patch;

    /// Puts the columns into the words taken from the row by [`patch_base`](Self::patch_base).
    ///
    /// # Panics
    /// Unless [`PATCHABLE`](Self::PATCHABLE).
    fn patch(&self, words: &mut Self::Patch);

    /// Makes `out` the row `base` with these columns instead of its own.
    ///
    /// # Errors
    /// [`Malformed`] if `base` is no row of `T`.
    fn rewrite(&self, base: &impl Words, out: &mut RowBuf) -> Result<(), Malformed>;
}

/// Returns which indexes, one bit each, have one of the columns.
pub const fn touched_indexes(description: &RowDescription, columns: &[usize]) -> u64 {
    let mut touched = 0;
    let mut index = 0;
    while index < description.indexes.len() {
        let parts = description.indexes[index].parts;
        let mut part = 0;
        while part < parts.len() {
            let mut column = 0;
            while column < columns.len() {
                if columns[column] == parts[part].0 {
                    touched |= 1 << index;
                }
                column += 1;
            }
            part += 1;
        }
        index += 1;
    }
    touched
}

/// Does what a derived [`Columns::rewrite`] has to do: copies the fixed part of `base`, lets `write` put fixed columns
/// into it, and takes the bytes of every variable column from `bytes_of` or, where that has none, from `base`.
///
/// # Errors
/// [`Malformed`] if `base` is no row of `T`.
pub fn rewrite_row<'a, T: Row>(
    base: &impl Words,
    out: &mut RowBuf,
    write: impl FnOnce(&mut [u64]),
    bytes_of: impl Fn(usize) -> Option<&'a [u8]>,
) -> Result<(), Malformed> {
    if base.len_bytes() < T::FIXED_LEN {
        return Err(Malformed);
    }
    out.set_fixed_of(base, T::FIXED_LEN);
    write(out.words_mut());
    for (column, spec) in T::DESCRIPTION.columns.iter().enumerate() {
        if spec.in_key || !spec.column_type.is_variable() {
            continue;
        }
        let slot = T::SLOTS[column];
        match bytes_of(column) {
            Some(bytes) => out.append_variable(slot, bytes),
            None => out.append_variable_of(slot, base)?,
        }
    }
    Ok(())
}
