//! Where the columns of a row lie: one computation for rows known at compile time and at run time.
//!
//! # Layout
//! ```text
//! numbers of 16 bytes | of 8 bytes | of 4 bytes | ends of the variable columns, 4 bytes each | numbers of 2 bytes | of 1 byte
//!   | null bitmap | inline text and bytes | bytes of the variable columns
//! ```
//! Each group in schema order; key columns are not stored. Numbers are aligned to their width without padding, because
//! the widths fall; so each lies in one word, or in two. `docs/row-format.md` describes every byte.

use crate::{ColumnType, FIXED_LEN_MAX, Malformed, Words};

const NONE: u32 = u32::MAX;

/// The bit of an end that says that the bytes before it stand for a [long value](crate::LongValue).
pub(crate) const LONG: u32 = 1 << 31;

/// What the layout has to know of a column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
    /// Whether it is part of the primary key, hence not in the row.
    pub in_key: bool,
}

impl ColumnSpec {
    /// Returns the column, if numbers that a table gives can be in it.
    ///
    /// # Panics
    /// If it is no integer of up to 64 bits, or may be null; in a constant, that is a compile error.
    pub const fn checked_auto(self) -> Self {
        assert!(
            self.column_type.is_number() && !self.nullable,
            "`auto` is for a key of the type u8 to u64 or i8 to i64"
        );
        self
    }
}

/// Where a column lies in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Byte offset of the number, of the inline text or bytes, or of the end of the variable bytes.
    offset: u32,
    /// Bytes at `offset`; 0 for a key column.
    width: u32,
    /// Which bit of the row is set when the column is null.
    null_bit: u32,
    /// Variable columns: where the end of the variable column before it stands.
    previous_end: u32,
    /// The length of the fixed part, where the variable bytes begin.
    fixed_len: u32,
}

impl Slot {
    /// The slot of a column that is not in the row.
    pub const ABSENT: Self = Self { offset: 0, width: 0, null_bit: NONE, previous_end: NONE, fixed_len: 0 };

    /// Returns whether the fixed part of the row holds anything of the column.
    #[inline(always)]
    pub const fn is_stored(self) -> bool {
        self.width > 0 || self.null_bit != NONE
    }

    /// Returns the byte offset of the column in the fixed part.
    #[inline(always)]
    pub const fn offset(self) -> usize {
        self.offset as usize
    }

    /// Returns the bytes of the column in the fixed part.
    #[inline(always)]
    pub const fn width(self) -> usize {
        self.width as usize
    }

    /// Returns which bit of the row is set when the column is null; `None` where it cannot be.
    #[inline(always)]
    pub const fn null_bit(self) -> Option<usize> {
        if self.null_bit == NONE { None } else { Some(self.null_bit as usize) }
    }

    /// Returns the first and the past-the-end offset of the bytes of a variable column.
    ///
    /// # Errors
    /// [`Malformed`] if they are not in order and inside the row, or stand for a [long value](crate::LongValue).
    #[inline]
    pub fn variable_range(self, row: &impl Words) -> Result<(usize, usize), Malformed> {
        match self.stored_range(row)? {
            (start, end, false) => Ok((start, end)),
            (_, _, true) => Err(Malformed),
        }
    }

    /// Returns the same, and whether the bytes stand for a long value.
    #[inline]
    pub(crate) fn stored_range(self, row: &impl Words) -> Result<(usize, usize, bool), Malformed> {
        let fixed_len = self.fixed_len as usize;
        let end_at = |offset: usize| row.aligned_bits(offset, 4) as u32;
        let start = if self.previous_end == NONE {
            fixed_len
        } else {
            (end_at(self.previous_end as usize) & !LONG) as usize
        };
        let noted = end_at(self.offset());
        let end = (noted & !LONG) as usize;
        if fixed_len <= start && start <= end && end <= row.len_bytes() {
            Ok((start, end, noted & LONG != 0))
        } else {
            Err(Malformed)
        }
    }

    /// Returns the same slot in a window that holds only the words `window` (ascending) of the row.
    ///
    /// # Panics
    /// If the column does not lie in the window.
    pub const fn within(self, window: &[u32]) -> Self {
        let mut slot = self;
        if self.width > 0 {
            slot.offset = position(window, self.offset / 8) * 8 + self.offset % 8;
        }
        if self.null_bit != NONE {
            slot.null_bit = position(window, self.null_bit / 64) * 64 + self.null_bit % 64;
        }
        slot
    }

    /// Returns whether the column, or whether it is null, stands in this word.
    const fn touches(self, word: u32) -> bool {
        let value = self.width > 0 && self.offset / 8 <= word && word <= (self.offset + self.width - 1) / 8;
        value || (self.null_bit != NONE && self.null_bit / 64 == word)
    }
}

const fn position(window: &[u32], word: u32) -> u32 {
    let mut index = 0;
    while window[index] != word {
        index += 1;
    }
    index as u32
}

/// Returns how many words of the row hold the columns `slots`.
pub const fn window_len(slots: &[Slot]) -> usize {
    let mut count = 0;
    let mut word = 0;
    while word <= last_word(slots) {
        if is_touched(slots, word) {
            count += 1;
        }
        word += 1;
    }
    count
}

/// Returns the words of the row, ascending, that hold the columns `slots`; `N` is their [`window_len`].
pub const fn window<const N: usize>(slots: &[Slot]) -> [u32; N] {
    let mut words = [0; N];
    let mut count = 0;
    let mut word = 0;
    while word <= last_word(slots) {
        if is_touched(slots, word) {
            words[count] = word;
            count += 1;
        }
        word += 1;
    }
    assert!(count == N, "the window has as many words as the columns touch");
    words
}

const fn is_touched(slots: &[Slot], word: u32) -> bool {
    let mut index = 0;
    while index < slots.len() {
        if slots[index].touches(word) {
            return true;
        }
        index += 1;
    }
    false
}

const fn last_word(slots: &[Slot]) -> u32 {
    let mut last = 0;
    let mut index = 0;
    while index < slots.len() {
        let slot = slots[index];
        let value = (slot.offset + slot.width) / 8;
        last = if value > last { value } else { last };
        let null = if slot.null_bit == NONE { 0 } else { slot.null_bit / 64 };
        last = if null > last { null } else { last };
        index += 1;
    }
    last
}

/// Places the columns: fills in their slots and returns the length of the fixed part in bytes.
///
/// # Panics
/// If `slots` is shorter than `columns`.
pub const fn place(columns: &[ColumnSpec], slots: &mut [Slot]) -> u32 {
    let mut offset = 0;
    let mut width = 16;
    while width > 0 {
        offset = place_numbers(columns, slots, width, offset);
        if width == 4 {
            offset = place_variable_ends(columns, slots, offset);
        }
        width /= 2;
    }
    offset = place_null_bits(columns, slots, offset);
    offset = place_inline(columns, slots, offset);
    let mut index = 0;
    while index < columns.len() {
        slots[index].fixed_len = if columns[index].in_key { 0 } else { offset };
        index += 1;
    }
    offset
}

const fn place_numbers(columns: &[ColumnSpec], slots: &mut [Slot], width: u32, mut offset: u32) -> u32 {
    let mut index = 0;
    while index < columns.len() {
        if !columns[index].in_key && columns[index].column_type.number_width() == width {
            slots[index] = Slot { offset, width, ..Slot::ABSENT };
            offset += width;
        }
        index += 1;
    }
    offset
}

const fn place_variable_ends(columns: &[ColumnSpec], slots: &mut [Slot], mut offset: u32) -> u32 {
    let mut previous_end = NONE;
    let mut index = 0;
    while index < columns.len() {
        if !columns[index].in_key && columns[index].column_type.is_variable() {
            slots[index] = Slot { offset, width: 4, previous_end, ..Slot::ABSENT };
            previous_end = offset;
            offset += 4;
        }
        index += 1;
    }
    offset
}

const fn place_null_bits(columns: &[ColumnSpec], slots: &mut [Slot], offset: u32) -> u32 {
    let mut count = 0;
    let mut index = 0;
    while index < columns.len() {
        if !columns[index].in_key && columns[index].nullable {
            slots[index].null_bit = offset * 8 + count;
            count += 1;
        }
        index += 1;
    }
    offset + count.div_ceil(8)
}

const fn place_inline(columns: &[ColumnSpec], slots: &mut [Slot], mut offset: u32) -> u32 {
    let mut index = 0;
    while index < columns.len() {
        let column = columns[index];
        if !column.in_key && column.column_type.number_width() == 0 && !column.column_type.is_variable() {
            slots[index].offset = offset;
            slots[index].width = column.column_type.width();
            offset += column.column_type.width();
        }
        index += 1;
    }
    offset
}

/// The layout of a row known at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Layout<const N: usize> {
    /// The columns' slots in schema order.
    pub slots: [Slot; N],
    /// The length of the fixed part in bytes.
    pub fixed_len: usize,
}

impl<const N: usize> Layout<N> {
    /// Places the columns.
    ///
    /// # Panics
    /// If the fixed part alone is longer than [`FIXED_LEN_MAX`]; in a constant, that is a compile error.
    pub const fn new(columns: &[ColumnSpec; N]) -> Self {
        let mut slots = [Slot::ABSENT; N];
        let fixed_len = place(columns, &mut slots) as usize;
        assert!(
            fixed_len <= FIXED_LEN_MAX,
            "the fixed columns of this row take more than FIXED_LEN_MAX bytes"
        );
        Self { slots, fixed_len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WordSlice;

    #[test]
    fn variable_bytes_lie_in_order_inside_the_row() {
        let column = ColumnSpec { column_type: ColumnType::Bytes, nullable: false, in_key: false };
        let layout = Layout::new(&[column, column]);
        let range = |first_end: u64, second_end: u64| {
            let words = [first_end | second_end << 32, 0];
            layout.slots.map(|slot| slot.variable_range(&WordSlice::new(&words, 12)))
        };
        assert_eq!(range(9, 12), [Ok((8, 9)), Ok((9, 12))]);
        assert_eq!(range(8, 8), [Ok((8, 8)), Ok((8, 8))]);
        assert_eq!(range(9, 8), [Ok((8, 9)), Err(Malformed)]);
        assert_eq!(range(7, 9), [Err(Malformed), Err(Malformed)]);
        assert_eq!(range(13, 13), [Err(Malformed), Err(Malformed)]);
    }

    #[test]
    fn a_window_holds_the_words_of_its_columns_alone() {
        let column = |column_type, nullable| ColumnSpec { column_type, nullable, in_key: false };
        let layout = Layout::new(&[
            column(ColumnType::U64, false),
            column(ColumnType::U64, true),
            column(ColumnType::FixedBytes { len: 12 }, true),
        ]);
        // 8 + 8 bytes of numbers, one of null bits, then the twelve.
        assert_eq!(layout.fixed_len, 29);
        assert_eq!(window::<1>(&layout.slots[..1]), [0]);
        assert_eq!(window::<2>(&layout.slots[1..2]), [1, 2]);
        const WORDS: [u32; 2] = [2, 3];
        assert_eq!((window_len(&layout.slots[2..]), window(&layout.slots[2..])), (2, WORDS));
        let slot = layout.slots[2].within(&WORDS);
        assert_eq!((slot.offset(), slot.width(), slot.null_bit()), (1, 12, Some(1)));
        assert_eq!(window_len(&[]), 0);
    }
}
