//! Bytes to dynamic rows.

use super::{Column, Schema};
use crate::{ColumnType, KeyReader, Malformed, RowError, Slot, Timestamp, Value, Words};

impl Schema {
    /// Makes `out` the values of all columns.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no row of this table; never a panic, whatever the words.
    pub fn decode_row(&self, key: &[u8], row: &impl Words, out: &mut Vec<Value>) -> Result<(), Malformed> {
        self.decode_columns_of(0..self.columns.len(), key, row, out)
    }

    /// Makes `out` the values of the columns with these indexes.
    ///
    /// # Errors
    /// `UnknownColumn`, and `Malformed` if the bytes are no row of this table.
    pub fn decode_columns(
        &self,
        columns: &[usize],
        key: &[u8],
        row: &impl Words,
        out: &mut Vec<Value>,
    ) -> Result<(), RowError> {
        for column in columns {
            self.column_at(*column)?;
        }
        Ok(self.decode_columns_of(columns.iter().copied(), key, row, out)?)
    }

    fn decode_columns_of(
        &self,
        columns: impl Iterator<Item = usize>,
        key: &[u8],
        row: &impl Words,
        out: &mut Vec<Value>,
    ) -> Result<(), Malformed> {
        out.clear();
        if row.len_bytes() < self.fixed_len {
            return Err(Malformed);
        }
        let mut reader = KeyReader::new(key);
        for part in self.key_parts() {
            out.push(self.columns[part.column].decode_key_part(part.order, &mut reader)?);
        }
        for column in columns {
            let value = match self.key_position(column) {
                Some(position) => out[position].clone(),
                None => self.columns[column].read(row, self.slots[column])?,
            };
            out.push(value);
        }
        out.drain(..self.key_parts().len());
        Ok(())
    }
}

impl Column {
    pub(super) fn read(&self, row: &impl Words, slot: Slot) -> Result<Value, Malformed> {
        if slot.null_bit().is_some_and(|bit| row.bit(bit)) {
            return Ok(Value::Null);
        }
        if self.column_type.is_wide() {
            return Ok(self.wide_value(row.wide_bits(slot.offset())));
        }
        let width = self.column_type.scalar_width() as usize;
        if width > 0 {
            return self.scalar_value(row.aligned_bits(slot.offset(), width));
        }
        let (start, end) = self.column_type.bytes_range(row, slot)?;
        self.column_type.value_of_bytes(row.bytes_at(start, end - start)?)
    }

    /// Returns the number that the row holds as these bits.
    pub(super) fn scalar_value(&self, bits: u64) -> Result<Value, Malformed> {
        Ok(match self.column_type {
            ColumnType::Bool if bits <= 1 => Value::Bool(bits == 1),
            ColumnType::I8 => Value::Int(i64::from(bits as i8)),
            ColumnType::I16 => Value::Int(i64::from(bits as i16)),
            ColumnType::I32 => Value::Int(i64::from(bits as i32)),
            ColumnType::I64 => Value::Int(bits.cast_signed()),
            ColumnType::U8 | ColumnType::U16 | ColumnType::U32 | ColumnType::U64 => Value::Unsigned(bits),
            ColumnType::F32 => Value::Float32(f32::from_bits(bits as u32)),
            ColumnType::F64 => Value::Float64(f64::from_bits(bits)),
            ColumnType::Decimal { scale } => Value::Decimal { units: bits.cast_signed(), scale },
            ColumnType::Timestamp => Value::Timestamp(Timestamp::from_micros(bits.cast_signed())),
            _ => return Err(Malformed),
        })
    }

    /// Returns the number of 16 bytes that the row holds as these bits.
    pub(super) fn wide_value(&self, bits: u128) -> Value {
        match self.column_type {
            ColumnType::I128 => Value::Int128(bits.cast_signed()),
            _ => Value::Unsigned128(bits),
        }
    }
}

impl ColumnType {
    /// Returns the first and the past-the-end offset of the bytes of text or bytes, or of a number of 16 bytes.
    pub(super) fn bytes_range(self, row: &impl Words, slot: Slot) -> Result<(usize, usize), Malformed> {
        let offset = slot.offset();
        match self {
            Self::FixedText { len_max } => {
                let prefix_len = self.prefix_len();
                let len = row.unaligned_word(offset) & ((1 << (8 * prefix_len)) - 1);
                let start = offset + prefix_len;
                if len > u64::from(len_max) { Err(Malformed) } else { Ok((start, start + len as usize)) }
            }
            Self::FixedBytes { .. } | Self::I128 | Self::U128 => Ok((offset, offset + slot.width())),
            _ => slot.variable_range(row),
        }
    }

    /// Text or bytes.
    pub(super) fn value_of_bytes(self, bytes: Vec<u8>) -> Result<Value, Malformed> {
        if matches!(self, Self::FixedText { .. } | Self::Text) {
            String::from_utf8(bytes).map(Value::Text).map_err(|_| Malformed)
        } else {
            Ok(Value::Bytes(bytes))
        }
    }
}
