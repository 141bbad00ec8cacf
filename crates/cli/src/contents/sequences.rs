//! Sequences in the description of a dump.

use std::fmt;

use ensilo::numbers::{CarriedSequence, SequenceOf, SequencePosition};
use serde::{Deserialize, Serialize};

/// A sequence of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SequenceDescription {
    name: String,
    numbers: NumbersDescription,
}

/// The numbers that a table gives as keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyNumbersDescription {
    column: String,
    numbers: NumbersDescription,
}

/// Which numbers a sequence gives, and where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NumbersDescription {
    start: i128,
    increment: i64,
    min: i128,
    max: i128,
    cycle: bool,
    block_len: u32,
    /// The last one that may have been given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<i128>,
    /// In its place, the one that comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<i128>,
}

/// Returns the descriptions of the sequences of programs.
pub(super) fn of_programs(sequences: &[CarriedSequence]) -> Vec<SequenceDescription> {
    let of_program = |sequence: &CarriedSequence| match &sequence.of {
        SequenceOf::Program(name) => {
            Some(SequenceDescription { name: name.clone(), numbers: NumbersDescription::of(sequence) })
        }
        SequenceOf::Table { .. } => None,
    };
    sequences.iter().filter_map(of_program).collect()
}

/// Returns the description of the numbers that this table gives, if it gives any.
pub(super) fn of_table(sequences: &[CarriedSequence], name: &str) -> Option<KeyNumbersDescription> {
    sequences.iter().find_map(|sequence| match &sequence.of {
        SequenceOf::Table { table, column } if table == name => {
            Some(KeyNumbersDescription { column: column.clone(), numbers: NumbersDescription::of(sequence) })
        }
        SequenceOf::Table { .. } | SequenceOf::Program(_) => None,
    })
}

impl SequenceDescription {
    /// Returns the sequence that is described.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn carried(&self) -> Result<CarriedSequence, String> {
        self.numbers.carried(SequenceOf::Program(self.name.clone()))
    }
}

impl KeyNumbersDescription {
    /// Returns the sequence that is described, for the keys of this table.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn carried(&self, table: &str) -> Result<CarriedSequence, String> {
        self.numbers.carried(SequenceOf::Table { table: table.to_owned(), column: self.column.clone() })
    }
}

impl fmt::Display for SequenceDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sequence {}: {}", self.name.escape_debug(), self.numbers)
    }
}

impl fmt::Display for KeyNumbersDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  the table gives {}: {}", self.column.escape_debug(), self.numbers)
    }
}

impl fmt::Display for NumbersDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, increment, min, max, cycle, last, next, .. } = self;
        write!(f, "{min} to {max}")?;
        if *increment != 1 {
            write!(f, " by {increment}")?;
        }
        f.write_str(if *cycle { ", again and again" } else { "" })?;
        match (last, next) {
            (Some(last), _) => write!(f, "; numbers as far as {last} may have been given"),
            (None, next) => write!(f, "; {} comes next", next.unwrap_or(*start)),
        }
    }
}

impl NumbersDescription {
    fn of(sequence: &CarriedSequence) -> Self {
        let (last, next) = match sequence.position {
            SequencePosition::Start => (None, None),
            SequencePosition::Behind(last) => (Some(last), None),
            SequencePosition::At(next) => (None, Some(next)),
        };
        let CarriedSequence { start, increment, min, max, cycles: cycle, block_len, .. } = *sequence;
        NumbersDescription { start, increment, min, max, cycle, block_len, last, next }
    }

    fn carried(&self, of: SequenceOf) -> Result<CarriedSequence, String> {
        let Self { start, increment, min, max, cycle: cycles, block_len, last, next } = *self;
        let position = match (last, next) {
            (None, None) => SequencePosition::Start,
            (Some(last), None) => SequencePosition::Behind(last),
            (None, Some(next)) => SequencePosition::At(next),
            (Some(_), Some(_)) => return Err("a sequence has both `last` and `next`".to_owned()),
        };
        Ok(CarriedSequence { of, start, increment, min, max, cycles, block_len, position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_what_its_description_makes() {
        let ends = [i128::from(i64::MIN), i128::from(u64::MAX)];
        for position in ends
            .map(SequencePosition::Behind)
            .into_iter()
            .chain([SequencePosition::Start, SequencePosition::At(ends[0])])
        {
            let carried = CarriedSequence {
                of: SequenceOf::Program("a \"b\"".to_owned()),
                start: 7,
                increment: -3,
                min: ends[0],
                max: ends[1],
                cycles: true,
                block_len: 9,
                position,
            };
            let text = serde_json::to_string(&of_programs(std::slice::from_ref(&carried))).unwrap();
            let read: Vec<SequenceDescription> = serde_json::from_str(&text).unwrap();
            assert_eq!(read[0].carried().unwrap(), carried, "{text}");
        }
        let both = r#"{"name": "a", "numbers": {"start": 1, "increment": 1, "min": 1, "max": 9, "cycle": false,
            "block_len": 1, "last": 1, "next": 2}}"#;
        let both: SequenceDescription = serde_json::from_str(both).unwrap();
        assert!(both.carried().is_err());
    }
}
