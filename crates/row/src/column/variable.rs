//! Columns of any length.

use crate::key::escaped;
use crate::{ColumnType, ColumnValue, KeyBuf, KeyReader, Malformed, Slot, Words};

impl ColumnValue for Vec<u8> {
    const TYPE: ColumnType = ColumnType::Bytes;
    const KEY_LEN: Option<usize> = None;

    #[inline]
    fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
        let (start, end) = slot.variable_range(row)?;
        row.bytes_at(start, end - start)
    }

    #[inline(always)]
    fn write(&self, _words: &mut [u64], _slot: Slot) {}

    #[inline(always)]
    fn variable_bytes(&self) -> &[u8] {
        self
    }

    #[inline]
    fn encode_value_key(&self, key: &mut KeyBuf) {
        escaped::encode(self, key);
    }

    #[inline]
    fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        let mut bytes = Vec::new();
        key.take_escaped(|byte| {
            bytes.push(byte);
            Ok(())
        })?;
        Ok(bytes)
    }
}

impl ColumnValue for String {
    const TYPE: ColumnType = ColumnType::Text;
    const KEY_LEN: Option<usize> = None;

    #[inline]
    fn read(row: &impl Words, slot: Slot) -> Result<Self, Malformed> {
        Self::from_utf8(Vec::read(row, slot)?).map_err(|_| Malformed)
    }

    #[inline(always)]
    fn write(&self, _words: &mut [u64], _slot: Slot) {}

    #[inline(always)]
    fn variable_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    #[inline]
    fn encode_value_key(&self, key: &mut KeyBuf) {
        escaped::encode(self.as_bytes(), key);
    }

    #[inline]
    fn decode_value_key(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        Self::from_utf8(Vec::decode_value_key(key)?).map_err(|_| Malformed)
    }
}
