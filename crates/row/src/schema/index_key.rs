//! Index keys of stored rows, straight from their bytes.

use super::{Column, IndexSchema, PartSchema, Schema};
use crate::key::escaped;
use crate::{ColumnType, KeyBuf, KeyReader, Malformed, Order, Slot, Words};

impl Schema {
    /// Makes `out` the key of a stored row in an index. It allocates nothing, and works for every row of the table,
    /// however it was written: an update takes the index keys of the row before and after and moves the entry if they
    /// differ.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no row of this table; never a panic, whatever the words.
    pub fn index_key(
        &self,
        index: &IndexSchema,
        primary_key: &[u8],
        row: &impl Words,
        out: &mut KeyBuf,
    ) -> Result<(), Malformed> {
        out.clear();
        if row.len_bytes() < self.fixed_len {
            return Err(Malformed);
        }
        let mut any_null = false;
        for part in index.parts() {
            let key_part = self.key_parts().iter().position(|key_part| key_part.column == part.column);
            any_null |= match key_part {
                Some(position) => self.append_key_column(position, part.order, primary_key, out)?,
                None => self.append_row_column(part, row, out)?,
            };
        }
        if any_null || !index.is_unique() {
            self.append_rest_of_key(index, primary_key, out)?;
        }
        Ok(())
    }

    /// Appends the columns of the primary key that are not among those of the index.
    fn append_rest_of_key(
        &self,
        index: &IndexSchema,
        primary_key: &[u8],
        out: &mut KeyBuf,
    ) -> Result<(), Malformed> {
        if self.key_parts().is_empty() {
            out.append(primary_key);
            return Ok(());
        }
        for (position, part) in self.key_parts().iter().enumerate() {
            if !index.touches(&[part.column]) {
                self.append_key_column(position, part.order, primary_key, out)?;
            }
        }
        Ok(())
    }

    /// Appends a column of the primary key and says whether it is null.
    fn append_key_column(
        &self,
        position: usize,
        order: Order,
        primary_key: &[u8],
        out: &mut KeyBuf,
    ) -> Result<bool, Malformed> {
        let mut reader = KeyReader::new(primary_key);
        let mut column = primary_key;
        let mut is_null = false;
        for part in &self.key_parts()[..=position] {
            column = reader.rest();
            is_null = self.columns[part.column].skip_key_part(part.order, &mut reader)?;
        }
        let start = out.len();
        out.append(&column[..column.len() - reader.rest().len()]);
        if self.key_parts()[position].order != order {
            out.invert_from(start);
        }
        Ok(is_null)
    }

    /// Appends a column of the row and says whether it is null.
    fn append_row_column(
        &self,
        part: &PartSchema,
        row: &impl Words,
        out: &mut KeyBuf,
    ) -> Result<bool, Malformed> {
        let (column, slot) = (&self.columns[part.column], self.slots[part.column]);
        let is_null = slot.null_bit().is_some_and(|bit| row.bit(bit));
        let start = out.len();
        if column.nullable {
            out.append_array([u8::from(!is_null)]);
        }
        if !is_null {
            column.append_stored(slot, row, out)?;
        }
        if part.order == Order::Descending {
            out.invert_from(start);
        }
        Ok(is_null)
    }
}

impl Column {
    /// Appends the key encoding of a value that is not null.
    fn append_stored(&self, slot: Slot, row: &impl Words, out: &mut KeyBuf) -> Result<(), Malformed> {
        let width = self.column_type.scalar_width() as usize;
        if width > 0 {
            self.append_ordered(row.aligned_bits(slot.offset(), width), out);
            return Ok(());
        }
        let is_raw = matches!(self.column_type, ColumnType::FixedBytes { .. });
        let (start, end) = self.column_type.bytes_range(row, slot)?;
        for at in (start..end).step_by(8) {
            let word = row.unaligned_word(at);
            let part = &word.to_le_bytes()[..(end - at).min(8)];
            match part.len() {
                _ if is_raw => out.append(part),
                8 => escaped::append_word(word, out),
                _ => escaped::append_escaped(part, out),
            }
        }
        if !is_raw {
            escaped::terminate(out);
        }
        Ok(())
    }
}
