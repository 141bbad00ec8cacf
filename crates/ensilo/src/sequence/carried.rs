//! Sequences that are carried from one database to another, as a dump and a load do.

use ensilo_engine::{Engine, Store};

use super::definition::Definition;
use super::rows::{ALL_NUMBERS, SequenceRow};
use super::sequence_core::SequenceKey;
use super::table_numbers::{name_of, number_range};
use crate::catalog::table_core::TableCore;
use crate::durability::Durability;
use crate::error::Name;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// A sequence with all that makes it go on elsewhere where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedSequence {
    /// Whose numbers it gives.
    pub of: SequenceOf,
    /// The first number.
    pub start: i128,
    /// From one number to the next.
    pub increment: i64,
    /// The smallest number.
    pub min: i128,
    /// The largest number.
    pub max: i128,
    /// Whether it begins anew at its end.
    pub cycles: bool,
    /// How many numbers are reserved at once.
    pub block_len: u32,
    /// Where it goes on.
    pub position: SequencePosition,
}

/// Whose numbers a sequence gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceOf {
    /// Those that a program asks for by this name.
    Program(String),
    /// Those in this column of a table's primary key.
    Table {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
}

/// Where a sequence goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SequencePosition {
    /// With its first number.
    Start,
    /// Behind this one, which may have been given.
    Behind(i128),
    /// With this one.
    At(i128),
}

impl CarriedSequence {
    /// Returns what is stored of the sequence.
    ///
    /// # Errors
    /// [`Error::InvalidSequence`] when no sequence can be so.
    fn row(&self, key: &SequenceKey) -> Result<(Definition, Option<i128>)> {
        let Self { start, increment, min, max, cycles, block_len, .. } = *self;
        let invalid =
            || Error::InvalidSequence(Name::new("its options contradict each other or its position"));
        // Then the number before each of them has room in 128 bits.
        if !ALL_NUMBERS.contains(&min) || !ALL_NUMBERS.contains(&max) {
            return Err(invalid());
        }
        let definition = Definition { start, increment, min, max, cycles, block_len };
        let reserved = match self.position {
            SequencePosition::Start => None,
            SequencePosition::Behind(last) if ALL_NUMBERS.contains(&last) => Some(last),
            SequencePosition::At(next) if definition.has(next) => Some(definition.reserved_before(next)),
            SequencePosition::Behind(_) | SequencePosition::At(_) => return Err(invalid()),
        };
        let row = SequenceRow::new(key, &definition, reserved);
        row.definition().map(|definition| (definition, reserved)).ok_or_else(invalid)
    }
}

/// Returns the column of the table whose numbers this sequence gives.
fn column_of<S: Store>(table: &TableCore<S>, row: &SequenceRow) -> Option<SequenceOf> {
    let place = SequenceKey { table: row.table, name: row.name.as_str().into() }.place()?;
    let column = &table.schema.columns()[table.schema.key_parts().get(place)?.column];
    Some(SequenceOf::Table { table: table.name.to_string(), column: column.name.clone() })
}

impl<E: Engine> DatabaseShared<E> {
    /// Returns all sequences, those of programs first.
    pub(crate) fn carried_sequences(&self) -> Result<Vec<CarriedSequence>> {
        let Some(rows) = self.sequence_rows()? else { return Ok(Vec::new()) };
        let read = self.commit_apart(|tx| rows.scan().rows(tx));
        let rows = self.answer(read, Durability::Visible)?;
        rows.iter().filter_map(|row| self.carried(row).transpose()).collect()
    }

    /// Returns `None` for one of a table that is not there: programs from before sequences have dropped it.
    fn carried(&self, row: &SequenceRow) -> Result<Option<CarriedSequence>> {
        let name = || format!("sequence \"{}\" of store {}", row.name, row.table);
        let damaged = || Error::DamagedCatalog(Name::new(name()));
        let definition = row.definition().ok_or_else(damaged)?;
        let position = match row.reserved {
            None => SequencePosition::Start,
            Some(last) => match last + i128::from(definition.increment) {
                next if definition.is_before_bounds(last) && definition.behind(Some(last)) == Some(next) => {
                    SequencePosition::At(next)
                }
                _ => SequencePosition::Behind(last),
            },
        };
        let of = if row.table == 0 {
            SequenceOf::Program(row.name.clone())
        } else {
            let tables = self.catalog.tables_of_programs();
            let Some(table) = tables.iter().find(|table| table.store.id().0 == row.table) else {
                return Ok(None);
            };
            column_of(table, row).ok_or_else(damaged)?
        };
        let Definition { start, increment, min, max, cycles, block_len } = definition;
        Ok(Some(CarriedSequence { of, start, increment, min, max, cycles, block_len, position }))
    }

    /// Makes a sequence that there is not yet, and lets it go on where it was.
    pub(crate) fn take_sequence(&self, carried: &CarriedSequence) -> Result<()> {
        self.check_may_change()?;
        match &carried.of {
            SequenceOf::Program(name) => {
                let key = SequenceKey::named(name);
                let (definition, reserved) = carried.row(&key)?;
                self.make_sequence(&key, &name.as_str().into(), &definition, reserved).map(drop)
            }
            SequenceOf::Table { table, column } => self.take_numbers(carried, table, column),
        }
    }

    /// Lets a table give numbers that go on where they were.
    fn take_numbers(&self, carried: &CarriedSequence, table: &str, column: &str) -> Result<()> {
        let table = self.catalog.table(table)?;
        let columns = table.schema.columns();
        let place = table.schema.key_parts().iter().position(|part| columns[part.column].name == column);
        let invalid = |why: &str| {
            Error::InvalidSequence(Name::new(format!("table {} cannot give such numbers: {why}", table.name)))
        };
        let range = place.and_then(|place| number_range(&table.schema, place).map(|range| (place, range)));
        let (place, range) = range.ok_or_else(|| invalid("no integer of that name is in its key"))?;
        let key = SequenceKey::of_table(table.store.id().0, place);
        let (definition, reserved) = carried.row(&key)?;
        if !range.contains(&definition.min) || !range.contains(&definition.max) {
            return Err(invalid("they are not numbers of the column"));
        }
        if definition.cycles || definition.increment < 1 {
            return Err(invalid("they have to ascend, and to end"));
        }
        self.make_rows_of_system::<SequenceRow>(None)?;
        let _changes = self.catalog.change();
        table.check_exists()?;
        if self.find_sequence_of_table(key.table, &name_of(&table))?.is_some() {
            return Err(invalid("it gives others already"));
        }
        self.make_sequence(&key, &name_of(&table), &definition, reserved).map(drop)
    }
}
