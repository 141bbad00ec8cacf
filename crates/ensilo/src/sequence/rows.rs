//! The rows of the table `ensilo.sequences`.
//!
//! # Layout
//! | column | type | what it is |
//! |---|---|---|
//! | `table` | u32, key | the store of the table whose keys the sequence gives; 0 if it is a program's |
//! | `name` | text, key | the name of a program's; of a table's, the place in its key of the column that the numbers are of, empty for the first |
//! | `start`, `increment`, `min`, `max`, `cycles`, `block_len` | i128, i64, i128, i128, bool, u32 | as it was made, or altered |
//! | `reserved` | i128 or null | the last number that may have been given; the sequence goes on behind it, with `start` if it is null |

use ensilo_derive::{Columns, Row};

use super::definition::Definition;
use super::sequence_core::SequenceKey;

/// The bounds of all types of numbers.
pub(super) const ALL_NUMBERS: std::ops::RangeInclusive<i128> = i64::MIN as i128..=u64::MAX as i128;

/// A sequence as it is stored.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "ensilo.sequences")]
pub(super) struct SequenceRow {
    #[row(key)]
    pub(super) table: u32,
    #[row(key)]
    pub(super) name: String,
    start: i128,
    increment: i64,
    min: i128,
    max: i128,
    cycles: bool,
    block_len: u32,
    pub(super) reserved: Option<i128>,
}

/// What changes of it.
#[derive(Columns)]
#[columns(of = SequenceRow)]
pub(super) struct Reserved {
    pub(super) reserved: Option<i128>,
}

impl SequenceRow {
    pub(super) fn new(key: &SequenceKey, definition: &Definition, reserved: Option<i128>) -> Self {
        let Definition { start, increment, min, max, cycles, block_len } = *definition;
        let (table, name) = (key.table, key.name.to_string());
        SequenceRow { table, name, start, increment, min, max, cycles, block_len, reserved }
    }

    /// Returns what the sequence was made with; `None` if no sequence can be so.
    pub(super) fn definition(&self) -> Option<Definition> {
        let Self { start, increment, min, max, cycles, block_len, reserved, .. } = *self;
        let bounds = min..=max;
        let is_sound = increment != 0
            && block_len != 0
            && [min, max].iter().all(|bound| ALL_NUMBERS.contains(bound))
            && bounds.contains(&start)
            && reserved.is_none_or(|reserved| self.can_go_on_behind(reserved));
        is_sound.then_some(Definition { start, increment, min, max, cycles, block_len })
    }

    /// Returns whether a sequence may be behind this number: any number, as bounds may have been others before, or the one before it.
    fn can_go_on_behind(&self, reserved: i128) -> bool {
        let next = reserved.checked_add(i128::from(self.increment));
        ALL_NUMBERS.contains(&reserved) || next.is_some_and(|next| ALL_NUMBERS.contains(&next))
    }
}
