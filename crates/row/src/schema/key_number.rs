//! Numbers that a table gives, as a column of its keys.

use super::key_columns::KeyColumns;
use super::{PartSchema, Schema};
use crate::{KeyBuf, Order, RowError, Value};

impl Schema {
    /// Returns whether the column at this place of the primary key can have numbers that the table gives: it is an integer of up to 64 bits in
    /// ascending order that may not be null.
    pub fn is_key_number(&self, place: usize) -> bool {
        self.key_parts().get(place).is_some_and(|part| {
            let column = &self.columns[part.column];
            part.order == Order::Ascending && !column.nullable && column.column_type.is_number()
        })
    }

    /// Makes `out` the primary key `key` with another number in the column at this place.
    ///
    /// # Errors
    /// `OutOfRange` for a number that the column's type does not have; `Malformed` if `key` is no key of the table.
    ///
    /// # Panics
    /// Unless [`is_key_number`](Self::is_key_number).
    pub fn replace_key_number(
        &self,
        key: &[u8],
        place: usize,
        number: i128,
        out: &mut KeyBuf,
    ) -> Result<(), RowError> {
        assert!(self.is_key_number(place), "no number is at place {place} of the key");
        let PartSchema { column, order } = self.key_parts()[place];
        let columns = KeyColumns::of(self, key).map_err(|_| RowError::Malformed)?;
        out.clear();
        out.append(columns.before(place));
        self.columns[column].append_key_part(&Value::Int128(number), order, out)?;
        out.append(columns.behind(place));
        Ok(())
    }

    /// Returns the columns of the primary key `key` before the one at this place: with which a scan by prefix begins.
    ///
    /// # Errors
    /// `Malformed` if `key` is no key of the table.
    pub fn key_before<'k>(&self, key: &'k [u8], place: usize) -> Result<&'k [u8], RowError> {
        KeyColumns::of(self, key).map(|columns| columns.before(place)).map_err(|_| RowError::Malformed)
    }
}
