//! Whether a change of a row changes its key in an index, without making the keys.

use super::{Column, IndexSchema, Schema};
use crate::{Malformed, Slot, Words};

impl Schema {
    /// Returns whether two stored rows with one primary key have the same key in the index. Only the columns of the
    /// index are read.
    ///
    /// # Errors
    /// [`Malformed`] if one of them is no row of this table; never a panic, whatever the words.
    pub fn have_same_index_key(
        &self,
        index: &IndexSchema,
        left: &impl Words,
        right: &impl Words,
    ) -> Result<bool, Malformed> {
        if left.len_bytes().min(right.len_bytes()) < self.fixed_len {
            return Err(Malformed);
        }
        for part in index.parts() {
            if !self.columns[part.column].is_same(self.slots[part.column], left, right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Column {
    /// Returns whether the column has one value in both rows. A column of the primary key is in neither.
    fn is_same(&self, slot: Slot, left: &impl Words, right: &impl Words) -> Result<bool, Malformed> {
        if !slot.is_stored() {
            return Ok(true);
        }
        if let Some(bit) = slot.null_bit()
            && (left.bit(bit) || right.bit(bit))
        {
            return Ok(left.bit(bit) == right.bit(bit));
        }
        let (offset, width) = (slot.offset(), self.column_type.scalar_width() as usize);
        if width > 0 {
            return Ok(left.aligned_bits(offset, width) == right.aligned_bits(offset, width));
        }
        if self.column_type.is_variable() && (slot.has_long_value(left) || slot.has_long_value(right)) {
            return Ok(slot.long_value(left)? == slot.long_value(right)?);
        }
        let (left_start, left_end) = self.column_type.bytes_range(left, slot)?;
        let (right_start, right_end) = self.column_type.bytes_range(right, slot)?;
        let len = left_end - left_start;
        let is_same_word = |at: usize| {
            let beyond = 8 * 8usize.saturating_sub(len - at);
            (left.unaligned_word(left_start + at) ^ right.unaligned_word(right_start + at)) << beyond == 0
        };
        Ok(len == right_end - right_start && (0..len).step_by(8).all(is_same_word))
    }
}
