//! One column of a dynamic key.

use super::Column;
use crate::key::{NOT_NULL, escaped};
use crate::{ColumnType, KeyBuf, KeyReader, Malformed, Order, RowError, Value};

#[cfg(test)]
thread_local! {
    /// How many columns of keys were stepped over.
    pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Column {
    /// Appends the value in this order.
    pub(super) fn append_key_part(
        &self,
        value: &Value,
        order: Order,
        out: &mut KeyBuf,
    ) -> Result<(), RowError> {
        self.check(value)?;
        let start = out.len();
        if self.nullable {
            out.append_array([if matches!(value, Value::Null) { order.null_tag() } else { NOT_NULL }]);
        }
        if !matches!(value, Value::Null) {
            self.append_value(value, out)?;
        }
        if order.is_descending() {
            out.invert_from(start);
        }
        Ok(())
    }

    /// Takes the value from an encoded key.
    pub(super) fn decode_key_part(&self, order: Order, key: &mut KeyReader<'_>) -> Result<Value, Malformed> {
        let null_tag = order.null_tag();
        if order.is_descending() {
            key.descending(|key| self.decode_ascending(key, null_tag))
        } else {
            self.decode_ascending(key, null_tag)
        }
    }

    /// Steps over the value in an encoded key.
    pub(super) fn skip_key_part(&self, order: Order, key: &mut KeyReader<'_>) -> Result<(), Malformed> {
        #[cfg(test)]
        STEPS.set(STEPS.get() + 1);
        let null_tag = order.null_tag();
        if order.is_descending() {
            key.descending(|key| self.skip_ascending(key, null_tag))
        } else {
            self.skip_ascending(key, null_tag)
        }
    }

    /// Appends the bits of a number, as the row holds them, so that keys order it.
    pub(super) fn append_ordered(&self, bits: u64, out: &mut KeyBuf) {
        let width = self.column_type.scalar_width() as usize;
        let bits = self.column_type.ordered_bits(bits);
        out.append(&bits.to_be_bytes()[8 - width..]);
    }

    /// Appends the bits of a number of 16 bytes, as the row holds them, so that keys order it.
    pub(super) fn append_ordered_wide(&self, bits: u128, out: &mut KeyBuf) {
        out.append_array(self.column_type.ordered_wide(bits).to_be_bytes());
    }

    fn append_value(&self, value: &Value, out: &mut KeyBuf) -> Result<(), RowError> {
        if self.column_type.scalar_width() > 0 {
            self.append_ordered(self.scalar_bits(value)?, out);
        } else if self.column_type.is_wide() {
            self.append_ordered_wide(self.wide_bits(value)?, out);
        } else if matches!(self.column_type, ColumnType::FixedBytes { .. }) {
            out.append(self.bytes_of(value)?);
        } else {
            escaped::encode(self.bytes_of(value)?, out);
        }
        Ok(())
    }

    fn decode_ascending(&self, key: &mut KeyReader<'_>, null_tag: u8) -> Result<Value, Malformed> {
        if self.nullable && is_null(key, null_tag)? {
            return Ok(Value::Null);
        }
        if self.column_type.scalar_width() > 0 {
            let ordered = self.take_number(key)?;
            return self.scalar_value(self.column_type.bits_of_ordered(ordered));
        }
        if self.column_type.is_wide() {
            let ordered = u128::from_be_bytes(key.take()?);
            return Ok(self.wide_value(self.column_type.ordered_wide(ordered)));
        }
        if let ColumnType::FixedBytes { len } = self.column_type {
            return key.take_slice(usize::from(len)).map(Value::Bytes);
        }
        let mut bytes = Vec::new();
        key.take_escaped(|byte| {
            bytes.push(byte);
            Ok(())
        })?;
        if let ColumnType::FixedText { len_max } = self.column_type
            && bytes.len() > usize::from(len_max)
        {
            return Err(Malformed);
        }
        self.column_type.value_of_bytes(bytes)
    }

    fn skip_ascending(&self, key: &mut KeyReader<'_>, null_tag: u8) -> Result<(), Malformed> {
        if self.nullable && is_null(key, null_tag)? {
            return Ok(());
        }
        if self.column_type.scalar_width() > 0 {
            self.take_number(key).map(|_| ())
        } else if self.column_type.is_wide() || matches!(self.column_type, ColumnType::FixedBytes { .. }) {
            key.skip(self.column_type.width() as usize)
        } else {
            key.take_escaped(|_| Ok(()))
        }
    }

    fn take_number(&self, key: &mut KeyReader<'_>) -> Result<u64, Malformed> {
        match self.column_type.scalar_width() {
            1 => key.take_bits::<1>(),
            2 => key.take_bits::<2>(),
            4 => key.take_bits::<4>(),
            _ => key.take_bits::<8>(),
        }
    }
}

fn is_null(key: &mut KeyReader<'_>, null_tag: u8) -> Result<bool, Malformed> {
    match key.take()? {
        [NOT_NULL] => Ok(false),
        [tag] if tag == null_tag => Ok(true),
        _ => Err(Malformed),
    }
}
