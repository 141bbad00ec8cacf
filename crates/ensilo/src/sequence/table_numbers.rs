//! The numbers that a table gives as keys: a sequence of its own.

use std::ops::{Bound, ControlFlow, RangeInclusive};
use std::sync::{Arc, Weak};

use ensilo_engine::{Direction, Engine, Store as _};
use ensilo_epoch::Epoch;
use ensilo_row::{ColumnType, Schema, Value};

use super::options::SequenceOptions;
use super::rows::{ALL_NUMBERS, SequenceRow};
use super::sequence_core::{SequenceCore, SequenceKey};
use super::state::Given;
use crate::catalog::table_core::TableCore;
use crate::error::Name;
use crate::long_values::Nothing;
use crate::row_words::{key_of_bytes, whole};
use crate::shared::DatabaseShared;
use crate::table::{Bounds, ScanRange};
use crate::{Error, Result};

/// So many keys are looked at in one transaction where the largest number of a table is not in its last key.
const KEYS_PER_LOOK: usize = 1024;

/// What gives numbers for a table's keys.
pub(crate) trait Numbers<S>: Send + Sync {
    /// Returns at which place of the key the numbers are.
    fn place(&self) -> usize;

    /// Gives the next `count` numbers, one at least.
    fn next(&self, count: u64) -> Result<Given>;

    /// Returns the number in the last key that the table has, or had, where it is the first column.
    fn largest(&self, table: &TableCore<S>) -> Result<Option<i128>>;

    /// Goes on behind this number. Returns the epoch that says so when it is stored.
    fn pass_over(&self, number: i128) -> Result<Epoch>;
}

struct TableNumbers<E: Engine> {
    shared: Weak<DatabaseShared<E>>,
    sequence: Arc<SequenceCore>,
    place: usize,
}

impl<E: Engine> TableNumbers<E> {
    fn shared(&self) -> Result<Arc<DatabaseShared<E>>> {
        self.shared.upgrade().ok_or(Error::Closed)
    }
}

impl<E: Engine> Numbers<E::Store> for TableNumbers<E> {
    fn place(&self) -> usize {
        self.place
    }

    fn next(&self, count: u64) -> Result<Given> {
        self.shared()?.give_numbers(&self.sequence, count, &ALL_NUMBERS)
    }

    fn largest(&self, table: &TableCore<E::Store>) -> Result<Option<i128>> {
        self.shared()?.number_of_last_key(table)
    }

    fn pass_over(&self, number: i128) -> Result<Epoch> {
        self.shared()?.pass_over_numbers(&self.sequence, number)
    }
}

impl<E: Engine> DatabaseShared<E> {
    /// Lets the table give keys, if it does already: another opening, or another program, has asked for it.
    pub(crate) fn find_numbers(self: &Arc<Self>, table: &Arc<TableCore<E::Store>>) -> Result<()> {
        let can_have_some =
            (0..table.schema.key_parts().len()).any(|place| table.schema.is_key_number(place));
        if table.numbers().is_ok() || !can_have_some {
            return Ok(());
        }
        match self.find_sequence_of_table(table.store.id().0, &name_of(table))? {
            Some(sequence) => self.set_numbers(table, sequence),
            None => Ok(()),
        }
    }

    /// Lets the table give the numbers at this place of its key from now on.
    pub(crate) fn make_numbers(
        self: &Arc<Self>,
        table: &Arc<TableCore<E::Store>>,
        place: usize,
    ) -> Result<()> {
        self.find_numbers(table)?;
        if let Ok(numbers) = table.numbers() {
            return self.check_place(table, numbers.place(), place);
        }
        // One that is only read gives none.
        if self.read_only().is_some() {
            return Ok(());
        }
        let Some(numbers) = number_range(&table.schema, place) else {
            let text =
                format!("the key of table {} has no ascending integer of up to 64 bits there", table.name);
            return Err(Error::InvalidSequence(Name::new(text)));
        };
        let definition = SequenceOptions::new().define(numbers)?;
        self.check_may_change()?;
        self.make_rows_of_system::<SequenceRow>(None)?;
        let largest = self.largest_number(table, place)?.filter(|largest| *largest >= definition.min);
        // The table is not dropped meanwhile, nor does another program have it give other numbers.
        let _changes = self.catalog.change();
        table.check_exists()?;
        if self.find_sequence_of_table(table.store.id().0, &name_of(table))?.is_none() {
            let key = SequenceKey::of_table(table.store.id().0, place);
            self.make_sequence(&key, &name_of(table), &definition, largest)?;
        }
        self.find_numbers(table)?;
        self.check_place(table, table.numbers()?.place(), place)
    }

    /// Checks whether a table that gives the numbers at one place of its key is one that gives those at another.
    fn check_place(&self, table: &TableCore<E::Store>, there: usize, place: usize) -> Result<()> {
        if there == place {
            return Ok(());
        }
        let column = &table.schema.columns()[table.schema.key_parts()[there].column].name;
        let text = format!("table {} gives the numbers of the column {column}, and of no other", table.name);
        Err(Error::InvalidSequence(Name::new(text)))
    }

    fn set_numbers(self: &Arc<Self>, table: &TableCore<E::Store>, sequence: Arc<SequenceCore>) -> Result<()> {
        let place = sequence.key.place().filter(|place| table.schema.is_key_number(*place));
        let place = place.ok_or_else(|| Error::DamagedCatalog(Name::new(&*sequence.name)))?;
        table.set_numbers(Arc::new(TableNumbers { shared: Arc::downgrade(self), sequence, place }));
        Ok(())
    }

    /// Returns the largest number that the table has at this place of its keys; others may insert larger ones meanwhile.
    fn largest_number(&self, table: &TableCore<E::Store>, place: usize) -> Result<Option<i128>> {
        if place == 0 {
            return self.number_of_last_key(table);
        }
        let (mut largest, mut range) = (None, ScanRange::new(Bounds::ALL).limited(KEYS_PER_LOOK));
        loop {
            let read = self.commit_apart(|tx| {
                let mut keys = Vec::with_capacity(KEYS_PER_LOOK);
                let look = |key| {
                    keys.push(key);
                    ControlFlow::Continue(())
                };
                let rows = (table, Nothing);
                range.run_rows(&mut tx.inner, rows, |key, _| key_of_bytes(key), look).map(|()| keys)
            });
            let mut keys = read.map_err(|undone| undone.error)?.value;
            let numbers = keys.iter().filter_map(|key| number_in_key(&table.schema, key.as_bytes(), place));
            largest = largest.max(numbers.max());
            match keys.pop() {
                Some(last) => range.continue_after(last),
                None => return Ok(largest),
            }
        }
    }

    /// Returns the number that the last key of the table begins with.
    fn number_of_last_key(&self, table: &TableCore<E::Store>) -> Result<Option<i128>> {
        let last = self.last_key(table)?;
        Ok(last.and_then(|key| number_in_key(&table.schema, &key, 0)))
    }

    /// Returns the last key of a table, also while it is being loaded.
    pub(crate) fn last_key(&self, table: &TableCore<E::Store>) -> Result<Option<Vec<u8>>> {
        if let Some(load) = table.load.get() {
            // The last one is all that counts.
            load.load_piece((Bound::Unbounded, Bound::Unbounded), Direction::Reverse, 1)?;
        }
        Ok(self.engine.last_key(&table.store))
    }
}

/// Returns what messages call the sequence of a table.
pub(super) fn name_of<S>(table: &TableCore<S>) -> Arc<str> {
    format!("for the keys of {}", table.name).into()
}

/// Returns the number at this place of a key.
pub(super) fn number_in_key(schema: &Schema, key: &[u8], place: usize) -> Option<i128> {
    let mut values = Vec::new();
    whole(schema.decode_key(key, &mut values));
    match values.get(place) {
        Some(Value::Int(number)) => Some(i128::from(*number)),
        Some(Value::Unsigned(number)) => Some(i128::from(*number)),
        _ => None,
    }
}

/// Returns which numbers may be at this place of a table's primary key; `None` if it is not an ascending integer of up to 64 bits.
pub(super) fn number_range(schema: &Schema, place: usize) -> Option<RangeInclusive<i128>> {
    if !schema.is_key_number(place) {
        return None;
    }
    let part = schema.key_parts().get(place)?;
    let unsigned = |bits: u32| 0..=(1 << bits) - 1;
    let signed = |bits: u32| -(1 << (bits - 1))..=(1 << (bits - 1)) - 1;
    match schema.columns()[part.column].column_type {
        ColumnType::U8 => Some(unsigned(8)),
        ColumnType::U16 => Some(unsigned(16)),
        ColumnType::U32 => Some(unsigned(32)),
        ColumnType::U64 => Some(unsigned(64)),
        ColumnType::I8 => Some(signed(8)),
        ColumnType::I16 => Some(signed(16)),
        ColumnType::I32 => Some(signed(32)),
        ColumnType::I64 => Some(signed(64)),
        _ => None,
    }
}
