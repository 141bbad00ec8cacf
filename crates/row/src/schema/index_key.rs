//! Index keys of stored rows, straight from their bytes.

use super::column_set::ColumnSet;
use super::key_columns::{KeyColumns, is_null};
use super::{Column, IndexSchema, PartSchema, Schema};
use crate::key::{NOT_NULL, escaped};
use crate::{ColumnType, KeyBuf, KeyReader, Malformed, ROW_LEN_MAX, Slot, Words};

impl Schema {
    /// Returns the columns of the index, then the others of the primary key; a row id is not among them.
    pub fn index_key_parts(&self, index: &IndexSchema) -> Vec<PartSchema> {
        let columns = ColumnSet::of(index.parts());
        let rest = self.key_parts().iter().filter(|part| !columns.has(part.column));
        index.parts().iter().chain(rest).copied().collect()
    }

    /// Makes `out` the key of a stored row in an index. It works for every row of the table, however it was written, takes
    /// time in proportion to the columns of both keys, and allocates nothing unless the primary key has more than 16.
    ///
    /// Of a [long value](crate::LongValue) there is no key: `out` is one that is too long then, about as long as that of the value.
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
        let key = KeyColumns::of(self, primary_key)?;
        let mut any_null = false;
        for part in index.parts() {
            any_null |= match self.key_position(part.column) {
                Some(position) => self.append_key_column(part, position, &key, out),
                None => self.append_row_column(part, row, out)?,
            };
        }
        if any_null || !index.is_unique() {
            self.append_rest_of_key(index, &key, out);
        }
        Ok(())
    }

    /// Appends to the key of an entry of the index what it does not have of the primary key: nothing, unless the index is
    /// unique and no column of it null. Every index orders its rows by these keys.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no keys of this table.
    pub fn complete_index_key(
        &self,
        index: &IndexSchema,
        primary_key: &[u8],
        entry_key: &mut KeyBuf,
    ) -> Result<(), Malformed> {
        if !index.is_unique() {
            return Ok(());
        }
        let mut reader = KeyReader::new(entry_key.as_bytes());
        for part in index.parts() {
            let column = &self.columns[part.column];
            if column.nullable && is_null(reader.rest(), part.order) {
                return Ok(());
            }
            column.skip_key_part(part.order, &mut reader)?;
        }
        self.append_rest_of_key(index, &KeyColumns::of(self, primary_key)?, entry_key);
        Ok(())
    }

    /// Appends the columns of the primary key that are not among those of the index, or the row id.
    fn append_rest_of_key(&self, index: &IndexSchema, key: &KeyColumns<'_>, out: &mut KeyBuf) {
        if self.key_parts().is_empty() {
            out.append(key.whole());
            return;
        }
        let columns = ColumnSet::of(index.parts());
        for (position, part) in self.key_parts().iter().enumerate() {
            if !columns.has(part.column) {
                out.append(key.bytes(position));
            }
        }
    }

    /// Appends a column of the primary key in the order of `part`, and says whether it is null.
    fn append_key_column(
        &self,
        part: &PartSchema,
        position: usize,
        key: &KeyColumns<'_>,
        out: &mut KeyBuf,
    ) -> bool {
        let (bytes, order) = (key.bytes(position), self.key_parts()[position].order);
        if self.columns[part.column].nullable && is_null(bytes, order) {
            out.append_array([part.order.null_byte()]);
            return true;
        }
        let start = out.len();
        out.append(bytes);
        if part.order.is_descending() != order.is_descending() {
            out.invert_from(start);
        }
        false
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
            out.append_array([if is_null { part.order.null_tag() } else { NOT_NULL }]);
        }
        if !is_null {
            column.append_stored(slot, row, out)?;
        }
        if part.order.is_descending() {
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
        if self.column_type.is_wide() {
            self.append_ordered_wide(row.wide_bits(slot.offset()), out);
            return Ok(());
        }
        if self.column_type.is_variable()
            && let Some(value) = slot.long_value(row)?
        {
            out.append(&vec![0; (value.len_bytes as usize).min(ROW_LEN_MAX)]);
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

#[cfg(test)]
mod tests {
    use crate::schema::key_part::STEPS;
    use crate::{ColumnType, KeyBuf, Order, RowBuf, RowId, Schema, Value};

    /// A table with so many key columns, one of which is text and one null, and indexes that have them in the other order.
    fn wide_table(count: usize) -> Schema {
        let mut builder = Schema::builder("t").column("text", ColumnType::Text);
        for number in 1..count {
            builder = builder.nullable(format!("c{number}"), ColumnType::U8);
        }
        let names = || (1..count).map(|number| (format!("c{number}"), Order::Ascending));
        let rest = ("text".to_owned(), Order::Descending);
        builder
            .key([("text".to_owned(), Order::Ascending)].into_iter().chain(names()))
            .column("value", ColumnType::U64)
            .index("reversed", names().rev().chain([rest]))
            .index("by_value", [("value", Order::Ascending)])
            .unique_index("last", names().rev().take(count / 2))
            .build()
            .unwrap()
    }

    #[test]
    fn an_index_key_takes_one_step_for_each_column_of_the_primary_key() {
        for count in [2, 16, 17, 18, 64, 512] {
            let schema = wide_table(count);
            let mut values = vec![Value::from("long text"); 1];
            values.extend((1..count).map(|number| Value::from((number % 200) as u8)));
            values[count - 1] = Value::Null;
            values.push(9u64.into());
            let (mut key, mut row, mut index_key) = (KeyBuf::new(), RowBuf::new(), KeyBuf::new());
            schema.encode_insert_key(&values, || RowId(0), &mut key).unwrap();
            schema.encode_row(&values, &mut row).unwrap();
            for index in schema.indexes() {
                let before = STEPS.get();
                schema.index_key(index, key.as_bytes(), &row, &mut index_key).unwrap();
                assert_eq!(STEPS.get() - before, count);
                let parts = schema.index_key_parts(index);
                let of_parts: Vec<Value> = parts.iter().map(|part| values[part.column].clone()).collect();
                let mut expected = KeyBuf::new();
                schema.encode_index_prefix(index, &of_parts, &mut expected).unwrap();
                assert_eq!(index_key, expected, "{} of {count}", index.name());
            }
        }
    }
}
