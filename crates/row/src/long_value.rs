//! Long values: what a row has in the place of a value of variable length that lies elsewhere.
//!
//! # Layout
//! ```text
//! the end of the column, in the fixed part: bit 31 is set
//! the bytes of the column: u32 length of the value | u32 its CRC-32C | u16 its number among the long values of the row
//! ```
//! Numbers are little endian. A row is at most 32 MiB long, so that no other end has this bit: a decoder that does not know it sees an end
//! beyond the row, and one that does answers [`Malformed`] where it is asked for the value. Neither shows these bytes as the value.

use crate::{Malformed, ROW_LEN_MAX, RowBuf, Slot, Words};

/// The bytes that stand for a long value.
const LEN: usize = 10;

/// What a row says of a value that lies elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongValue {
    /// The length of the value in bytes.
    pub len_bytes: u32,
    /// The CRC-32C of its bytes.
    pub checksum: u32,
    /// Tells it from the other long values of the row.
    pub number: u16,
}

impl Slot {
    /// Returns whether the row has a long value in this variable column.
    #[inline(always)]
    pub fn has_long_value(self, row: &impl Words) -> bool {
        row.bit(self.offset() * 8 + 31)
    }

    /// Returns the long value that the row has in this variable column; `None` if it has the value itself.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are neither.
    pub fn long_value(self, row: &impl Words) -> Result<Option<LongValue>, Malformed> {
        let (start, end, is_long) = self.stored_range(row)?;
        if !is_long {
            return Ok(None);
        }
        if end - start != LEN {
            return Err(Malformed);
        }
        let (low, number) = (row.unaligned_word(start), row.unaligned_word(start + 8) as u16);
        let value = LongValue { len_bytes: low as u32, checksum: (low >> 32) as u32, number };
        if value.len_bytes as usize <= ROW_LEN_MAX { Ok(Some(value)) } else { Err(Malformed) }
    }
}

impl LongValue {
    /// Returns how many bytes longer the row is that has the value itself.
    pub const fn bytes_elsewhere(self) -> usize {
        (self.len_bytes as usize).saturating_sub(LEN)
    }
}

impl RowBuf {
    /// Appends what stands for a long value in the variable column `slot`.
    #[doc(hidden)]
    pub fn append_long_value(&mut self, slot: Slot, value: LongValue) {
        self.append_part(&value.len_bytes.to_le_bytes());
        self.append_part(&value.checksum.to_le_bytes());
        self.append_part(&value.number.to_le_bytes());
        self.end_variable(slot, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnType, Order, Schema, SchemaChange, SchemaHistory, Value};

    const LONG: LongValue = LongValue { len_bytes: 70_000, checksum: 0xfedc_ba98, number: 300 };

    fn schema() -> Schema {
        Schema::builder("t")
            .column("id", ColumnType::U32)
            .column("first", ColumnType::Text)
            .nullable("second", ColumnType::Bytes)
            .column("third", ColumnType::Text)
            .column("number", ColumnType::U16)
            .key([("id", Order::Ascending)])
            .build()
            .unwrap()
    }

    /// Returns a row with a long value in its second variable column.
    fn row(schema: &Schema) -> RowBuf {
        let (mut whole, mut row) = (RowBuf::new(), RowBuf::new());
        let values = [7u32.into(), "one".into(), Value::Bytes(vec![1]), "three".into(), 9u16.into()];
        schema.encode_row(&values, &mut whole).unwrap();
        row.begin_variables(&whole, schema.fixed_len());
        for (column, slot) in schema.variable_slots() {
            match column {
                2 => row.append_long_value(slot, LONG),
                _ => row.append_variable_of(slot, &whole).unwrap(),
            }
        }
        row
    }

    #[test]
    fn what_stands_for_a_long_value_is_never_shown_as_one() {
        let schema = schema();
        let row = row(&schema);
        let key = 7u32.to_be_bytes();
        let mut values = Vec::new();
        assert_eq!(schema.decode_row(&key, &row, &mut values), Err(Malformed));
        schema.decode_columns(&[1, 3, 4], &key, &row, &mut values).unwrap();
        assert_eq!(values, ["one".into(), "three".into(), 9u16.into()]);
        let slots: Vec<_> = schema.variable_slots().map(|(_, slot)| slot).collect();
        assert_eq!(
            slots.iter().map(|slot| slot.has_long_value(&row)).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert_eq!(slots[1].long_value(&row), Ok(Some(LONG)));
        assert_eq!(slots[2].long_value(&row), Ok(None));
        assert_eq!(slots[1].variable_range(&row), Err(Malformed));
    }

    #[test]
    fn an_update_of_other_columns_keeps_it_and_one_of_its_own_takes_its_place() {
        let schema = schema();
        let (row, mut changed) = (row(&schema), RowBuf::new());
        let slot = schema.slots()[2];
        schema.update_row(&row, &[(1, "a longer one".into()), (4, 1u16.into())], &mut changed).unwrap();
        assert_eq!(slot.long_value(&changed), Ok(Some(LONG)));
        for value in [Value::Null, Value::Bytes(Vec::new()), Value::Bytes(vec![1, 2, 3])] {
            let mut values = Vec::new();
            schema.update_row(&row, &[(2, value.clone())], &mut changed).unwrap();
            schema.decode_row(&7u32.to_be_bytes(), &changed, &mut values).unwrap();
            assert_eq!(values[2], value);
        }
    }

    #[test]
    fn a_row_of_an_older_schema_keeps_its_long_values() {
        let before = schema();
        let history = SchemaHistory::default();
        let change = SchemaChange::new().drop_column("first").rename("second", "other").add(
            "added",
            ColumnType::U8,
            3u8,
        );
        let (now, history) = history.changed(&before, &change, 10).unwrap();
        let (row, mut converted) = (row(&before), RowBuf::new());
        history.convert(&now, 9, &row, &mut converted).unwrap();
        assert_eq!(now.slots()[now.column("other").unwrap()].long_value(&converted), Ok(Some(LONG)));
        let dropped = SchemaChange::new().drop_column("other");
        let (now, history) = history.changed(&now, &dropped, 20).unwrap();
        history.convert(&now, 9, &row, &mut converted).unwrap();
        assert!(now.variable_slots().all(|(_, slot)| !slot.has_long_value(&converted)));
        assert_eq!(history.long_values(9, &row), Ok(vec![LONG]));
    }
}
