//! How a sequence is made.

use std::ops::RangeInclusive;

use super::definition::Definition;
use crate::error::Name;
use crate::{Error, Result};

/// So many numbers are reserved at once by default.
const BLOCK_LEN: u32 = 32;

/// What a new sequence is to give. [`Database::sequence_with`](crate::generic::Database::sequence_with) takes it.
///
/// ```
/// use ensilo::{Database, Sequence, SequenceOptions};
///
/// # fn main() -> ensilo::Result<()> {
/// let db = Database::in_memory()?;
/// let tickets: Sequence<u32> = db.sequence_with("ticket", SequenceOptions::new().start(1000).increment(10))?;
/// assert_eq!(db.transact(|tx| Ok((tickets.next(tx)?, tickets.next(tx)?)))?, (1000, 1010));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "options make nothing by themselves"]
pub struct SequenceOptions {
    start: Option<i128>,
    increment: i64,
    min: Option<i128>,
    max: Option<i128>,
    cycles: bool,
    block_len: u32,
}

impl Default for SequenceOptions {
    fn default() -> Self {
        SequenceOptions {
            start: None,
            increment: 1,
            min: None,
            max: None,
            cycles: false,
            block_len: BLOCK_LEN,
        }
    }
}

impl SequenceOptions {
    /// Returns the options of a sequence that gives 1, 2, 3 and so on, up to the largest number of its type.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the options of a sequence that is so.
    pub(super) fn of(definition: &Definition) -> Self {
        let Definition { start, increment, min, max, cycles, block_len } = *definition;
        SequenceOptions { start: Some(start), increment, min: Some(min), max: Some(max), cycles, block_len }
    }

    /// Sets the first number. By default it is the smallest that is allowed, or the largest where the sequence descends.
    pub fn start(mut self, start: impl Into<i128>) -> Self {
        self.start = Some(start.into());
        self
    }

    /// Sets the distance from one number to the next, 1 by default. With a negative one the sequence descends.
    pub fn increment(mut self, increment: i64) -> Self {
        self.increment = increment;
        self
    }

    /// Sets the smallest number that is allowed. By default it is 1, or the smallest of the type where the sequence descends.
    pub fn min(mut self, min: impl Into<i128>) -> Self {
        self.min = Some(min.into());
        self
    }

    /// Sets the largest number that is allowed. By default it is the largest of the type, or -1 where the sequence descends.
    pub fn max(mut self, max: impl Into<i128>) -> Self {
        self.max = Some(max.into());
        self
    }

    /// Lets the sequence begin anew when it has given the last number that is allowed: with the smallest one, or with the largest
    /// where it descends. By default it ends with [`Error::SequenceExhausted`](crate::Error::SequenceExhausted).
    pub fn cycle(mut self) -> Self {
        self.cycles = true;
        self
    }

    /// Sets how many numbers are reserved at once, 32 by default and 1 at least. A reservation is a short transaction on a row of the system's. At most so
    /// many numbers are left out after a crash, beside those that were given and not used. Besides,
    /// [`Sequence::advance_past`](crate::generic::Sequence::advance_past) takes numbers that are reserved where it can.
    pub fn block_len(mut self, block_len: u32) -> Self {
        self.block_len = block_len;
        self
    }

    /// Returns what this defines for a type that has these numbers.
    ///
    /// # Errors
    /// [`Error::InvalidSequence`].
    pub(crate) fn define(&self, numbers: RangeInclusive<i128>) -> Result<Definition> {
        let (least, largest) = numbers.into_inner();
        let ascends = self.increment > 0;
        let (min, max) = if ascends { (1, largest) } else { (least, -1) };
        let (min, max) = (self.min.unwrap_or(min), self.max.unwrap_or(max));
        let start = self.start.unwrap_or(if ascends { min } else { max });
        let problem = if self.increment == 0 {
            "its increment is 0"
        } else if self.block_len == 0 {
            "it reserves no numbers"
        } else if min < least || max > largest {
            "its bounds are not numbers of its type"
        } else if min > max {
            "its smallest number is larger than its largest"
        } else if !(min..=max).contains(&start) {
            "its first number is not between its smallest and its largest"
        } else {
            let (increment, cycles, block_len) = (self.increment, self.cycles, self.block_len);
            return Ok(Definition { start, increment, min, max, cycles, block_len });
        };
        Err(Error::InvalidSequence(Name::new(problem)))
    }
}
