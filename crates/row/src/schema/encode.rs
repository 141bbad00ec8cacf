//! Dynamic rows to bytes.

use super::{Column, Schema, float};
use crate::column::power_of_ten;
use crate::value::Integer;
use crate::words::{put_bit, put_bits, put_bytes, put_unaligned, put_wide, put_zeros};
use crate::{ColumnType, RowBuf, RowError, Slot, Value, Words};

impl Schema {
    /// Makes `out` the encoding of the row with these values, one per column. Key columns are checked but not stored: see
    /// [`encode_insert_key`](Self::encode_insert_key).
    ///
    /// # Errors
    /// `ValueCount`, `WrongType`, `OutOfRange`, `Null`, `WrongLength`, `RowTooLarge`.
    pub fn encode_row(&self, row: &[Value], out: &mut RowBuf) -> Result<(), RowError> {
        if row.len() != self.columns.len() {
            return Err(RowError::ValueCount { expected: self.columns.len(), found: row.len() });
        }
        out.set_zeros(self.fixed_len);
        for (column, value) in row.iter().enumerate() {
            if self.is_key_column(column) {
                self.columns[column].check(value)?;
            } else {
                self.columns[column].write(value, self.slots[column], out.words_mut())?;
            }
        }
        for (column, slot) in self.variable_slots() {
            out.append_variable(slot, row[column].variable_bytes());
        }
        out.check_len()
    }

    /// Makes `out` the row `base` with these columns changed.
    ///
    /// # Errors
    /// `UnknownColumn`, `KeyColumn`, `WrongType`, `OutOfRange`, `Null`, `WrongLength`, `RowTooLarge`, `Malformed`.
    pub fn update_row(
        &self,
        base: &impl Words,
        changes: &[(usize, Value)],
        out: &mut RowBuf,
    ) -> Result<(), RowError> {
        if base.len_bytes() < self.fixed_len {
            return Err(RowError::Malformed);
        }
        out.set_fixed_of(base, self.fixed_len);
        for (index, value) in changes {
            let column = self.column_at(*index)?;
            if self.is_key_column(*index) {
                return Err(RowError::KeyColumn { column: column.name.clone() });
            }
            column.write(value, self.slots[*index], out.words_mut())?;
        }
        for (index, slot) in self.variable_slots() {
            match changes.iter().rev().find(|(changed, _)| *changed == index) {
                Some((_, value)) => out.append_variable(slot, value.variable_bytes()),
                None => out.append_variable_of(slot, base)?,
            }
        }
        out.check_len()
    }

    /// Returns the bits of a number of up to 64 bits as a row holds them in this column.
    ///
    /// # Errors
    /// `UnknownColumn`, `WrongType`, `OutOfRange`.
    pub fn number_bits(&self, column: usize, value: &Value) -> Result<u64, RowError> {
        self.column_at(column)?.scalar_bits(value)
    }

    /// Returns the column with this index.
    pub(super) fn column_at(&self, index: usize) -> Result<&Column, RowError> {
        self.columns
            .get(index)
            .ok_or_else(|| RowError::UnknownColumn { column: index, table: self.name.clone() })
    }

    /// Returns the variable columns that are stored in the row, with their slots.
    pub fn variable_slots(&self) -> impl Iterator<Item = (usize, Slot)> {
        let stored = |(index, column): &(usize, &Column)| {
            column.column_type.is_variable() && !self.is_key_column(*index)
        };
        self.columns.iter().enumerate().filter(stored).map(|(index, _)| (index, self.slots[index]))
    }
}

impl Column {
    /// Checks that the value can stand in the column.
    pub(super) fn check(&self, value: &Value) -> Result<(), RowError> {
        match value {
            Value::Null if self.nullable => Ok(()),
            Value::Null => Err(RowError::Null { column: self.name.clone() }),
            value if self.column_type.scalar_width() > 0 => self.scalar_bits(value).map(|_| ()),
            value if self.column_type.is_wide() => self.wide_bits(value).map(|_| ()),
            value => self.bytes_of(value).map(|_| ()),
        }
    }

    /// Writes what the fixed part of a row holds of the column, apart from the end of a variable column.
    pub(super) fn write(&self, value: &Value, slot: Slot, words: &mut [u64]) -> Result<(), RowError> {
        self.check(value)?;
        if let Some(bit) = slot.null_bit() {
            put_bit(words, bit, matches!(value, Value::Null));
        }
        if self.column_type.is_variable() {
            return Ok(());
        }
        put_zeros(words, slot.offset(), slot.width());
        if matches!(value, Value::Null) {
            return Ok(());
        }
        let width = self.column_type.scalar_width() as usize;
        if width > 0 {
            put_bits(words, slot.offset(), width, self.scalar_bits(value)?);
            return Ok(());
        }
        if self.column_type.is_wide() {
            put_wide(words, slot.offset(), self.wide_bits(value)?);
            return Ok(());
        }
        let bytes = self.bytes_of(value)?;
        let prefix_len = self.column_type.prefix_len();
        if prefix_len > 0 {
            put_unaligned(words, slot.offset(), bytes.len() as u64, prefix_len);
        }
        put_bytes(words, slot.offset() + prefix_len, bytes);
        Ok(())
    }

    /// Returns the bits of a number as the row holds them.
    pub(super) fn scalar_bits(&self, value: &Value) -> Result<u64, RowError> {
        let bits = match (self.column_type, value) {
            (ColumnType::Bool, Value::Bool(value)) => Some(u64::from(*value)),
            (ColumnType::F32, Value::Float32(value)) => Some(u64::from(value.to_bits())),
            (ColumnType::F32, Value::Float64(value)) => float::narrow(*value).map(u64::from),
            (ColumnType::F64, Value::Float32(value)) => Some(float::widen(*value)),
            (ColumnType::F64, Value::Float64(value)) => Some(value.to_bits()),
            (ColumnType::Decimal { scale }, value) => self.decimal_bits(value, scale)?,
            (ColumnType::Timestamp, Value::Timestamp(time)) => Some(time.micros().cast_unsigned()),
            (column_type, value) if column_type.is_integer() => {
                let integer = value.integer().ok_or_else(|| self.wrong_type(value))?;
                signed(integer).and_then(|value| integer_bits(column_type, value))
            }
            _ => return Err(self.wrong_type(value)),
        };
        bits.ok_or_else(|| self.out_of_range())
    }

    /// Returns the bits of a number of 16 bytes as the row holds them.
    pub(super) fn wide_bits(&self, value: &Value) -> Result<u128, RowError> {
        let integer = value.integer().ok_or_else(|| self.wrong_type(value))?;
        let bits = match self.column_type {
            ColumnType::I128 => signed(integer).map(i128::cast_unsigned),
            _ => (!integer.is_negative).then_some(integer.bits),
        };
        bits.ok_or_else(|| self.out_of_range())
    }

    /// Returns the bytes of text or bytes that fit the column.
    pub(super) fn bytes_of<'v>(&self, value: &'v Value) -> Result<&'v [u8], RowError> {
        let bytes = match (self.column_type, value) {
            (ColumnType::FixedText { .. } | ColumnType::Text, Value::Text(text)) => text.as_bytes(),
            (ColumnType::FixedBytes { .. } | ColumnType::Bytes, Value::Bytes(bytes)) => bytes,
            _ => return Err(self.wrong_type(value)),
        };
        let fits = match self.column_type {
            ColumnType::FixedText { len_max } => bytes.len() <= usize::from(len_max),
            ColumnType::FixedBytes { len } => bytes.len() == usize::from(len),
            _ => true,
        };
        if fits {
            return Ok(bytes);
        }
        let (column, expected) = (self.name.clone(), self.column_type);
        Err(RowError::WrongLength { column, expected, len: bytes.len() })
    }

    fn decimal_bits(&self, value: &Value, scale: u8) -> Result<Option<u64>, RowError> {
        let Value::Decimal { units, scale: from } = value else { return Err(self.wrong_type(value)) };
        let (up, down) =
            (power_of_ten(scale.saturating_sub(*from)), power_of_ten(from.saturating_sub(scale)));
        let units = i128::from(*units);
        let is_exact = units % down == 0;
        let rescaled = is_exact.then_some(units * up / down).and_then(|units| i64::try_from(units).ok());
        Ok(rescaled.map(i64::cast_unsigned))
    }

    fn out_of_range(&self) -> RowError {
        RowError::OutOfRange { column: self.name.clone(), expected: self.column_type }
    }

    fn wrong_type(&self, value: &Value) -> RowError {
        RowError::WrongType { column: self.name.clone(), expected: self.column_type, found: value.kind() }
    }
}

/// `None` where the number is too large.
fn signed(integer: Integer) -> Option<i128> {
    let value = integer.bits.cast_signed();
    ((value < 0) == integer.is_negative).then_some(value)
}

/// `None` where the type cannot hold the number.
fn integer_bits(column_type: ColumnType, value: i128) -> Option<u64> {
    let width = column_type.scalar_width() * 8;
    let (min, max) = if column_type.is_signed() {
        (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)
    } else {
        (0, (1i128 << width) - 1)
    };
    (min..=max).contains(&value).then_some(value as u64 & (u64::MAX >> (64 - width)))
}

impl Value {
    pub(super) fn variable_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}
