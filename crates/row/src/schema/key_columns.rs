//! The columns of an encoded primary key, found in one pass.

use super::Schema;
use crate::{KeyReader, Malformed, Order};

/// Keys of at most that many columns are taken apart without an allocation.
const INLINE_COLUMNS: usize = 16;

/// Where the columns of a primary key end.
pub(super) struct KeyColumns<'k> {
    key: &'k [u8],
    count: usize,
    inline: [usize; INLINE_COLUMNS],
    /// The ends of the columns from `INLINE_COLUMNS` on.
    spill: Vec<usize>,
}

impl<'k> KeyColumns<'k> {
    /// Takes the key apart.
    ///
    /// # Errors
    /// [`Malformed`] if it does not have the columns of the schema's primary key.
    pub(super) fn of(schema: &Schema, key: &'k [u8]) -> Result<Self, Malformed> {
        let mut columns = Self { key, count: 0, inline: [0; INLINE_COLUMNS], spill: Vec::new() };
        let mut reader = KeyReader::new(key);
        for part in schema.key_parts() {
            schema.columns[part.column].skip_key_part(part.order, &mut reader)?;
            columns.push(key.len() - reader.rest().len());
        }
        Ok(columns)
    }

    fn push(&mut self, end: usize) {
        match self.inline.get_mut(self.count) {
            Some(slot) => *slot = end,
            None => self.spill.push(end),
        }
        self.count += 1;
    }

    fn end(&self, position: usize) -> usize {
        match self.inline.get(position) {
            Some(end) => *end,
            None => self.spill[position - INLINE_COLUMNS],
        }
    }

    /// Returns the whole key.
    pub(super) const fn whole(&self) -> &'k [u8] {
        self.key
    }

    /// Returns the bytes of the column at this place.
    pub(super) fn bytes(&self, position: usize) -> &'k [u8] {
        &self.key[self.start(position)..self.end(position)]
    }

    /// Returns the bytes of all columns before this place.
    pub(super) fn before(&self, position: usize) -> &'k [u8] {
        &self.key[..self.start(position)]
    }

    /// Returns the bytes of all columns behind this place.
    pub(super) fn behind(&self, position: usize) -> &'k [u8] {
        &self.key[self.end(position)..]
    }

    fn start(&self, position: usize) -> usize {
        if position == 0 { 0 } else { self.end(position - 1) }
    }
}

/// Returns whether these bytes of a nullable column in a key are null.
pub(super) fn is_null(bytes: &[u8], order: Order) -> bool {
    bytes.first() == Some(&order.null_byte())
}
