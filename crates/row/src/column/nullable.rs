//! Columns that may be null: `Option` of a column that may not.

use crate::words::{put_bit, put_zeros};
use crate::{ColumnType, ColumnValue, KeyBuf, KeyReader, Malformed, Slot, Words};

impl<T: ColumnValue> ColumnValue for Option<T> {
    const TYPE: ColumnType = {
        assert!(!T::NULLABLE, "a column is nullable once: Option<Option<_>> is no column");
        T::TYPE
    };
    const NULLABLE: bool = true;
    const KEY_LEN: Option<usize> = None;

    #[inline(always)]
    fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
        match slot.null_bit() {
            Some(bit) if row.bit(bit) => Ok(None),
            _ => T::read(row, slot).map(Some),
        }
    }

    #[inline(always)]
    fn write(&self, words: &mut [u64], slot: Slot) {
        if let Some(bit) = slot.null_bit() {
            put_bit(words, bit, self.is_none());
        }
        match self {
            Some(value) => value.write(words, slot),
            None if T::TYPE.is_variable() => {}
            None => put_zeros(words, slot.offset(), slot.width()),
        }
    }

    #[inline(always)]
    fn variable_bytes(&self) -> &[u8] {
        self.as_ref().map_or(&[], T::variable_bytes)
    }

    #[inline(always)]
    fn is_null(&self) -> bool {
        self.is_none()
    }

    #[inline(always)]
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(left), Some(right)) => left.is_same(right),
            (left, right) => left.is_none() == right.is_none(),
        }
    }

    #[inline]
    fn encode_value_key(&self, key: &mut KeyBuf) {
        key.append_array([u8::from(self.is_some())]);
        if let Some(value) = self {
            value.encode_value_key(key);
        }
    }

    #[inline]
    fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        match key.take()? {
            [0] => Ok(None),
            [1] => T::decode_value_key(key).map(Some),
            _ => Err(Malformed),
        }
    }
}
