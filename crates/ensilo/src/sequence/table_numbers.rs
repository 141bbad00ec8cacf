//! The numbers that a table gives as keys: a sequence of its own.

use std::ops::{Bound, RangeInclusive};
use std::sync::{Arc, Weak};

use ensilo_engine::{Direction, Engine, Store as _, WriteOf};
use ensilo_epoch::Epoch;
use ensilo_row::{ColumnType, KeyBuf, Order, Schema, Value};

use super::options::SequenceOptions;
use super::sequence_core::{SequenceCore, SequenceKey};
use super::state::Given;
use crate::catalog::table_core::TableCore;
use crate::error::Name;
use crate::maintain;
use crate::row_words::whole;
use crate::shared::DatabaseShared;
use crate::transaction::Inner;
use crate::{Error, Result};

/// What gives numbers for a table's keys.
pub(crate) trait Numbers<S>: Send + Sync {
    fn next(&self) -> Result<Given>;

    /// Goes on behind the largest key that the table has. Returns the epoch that says so when it is stored.
    fn pass_over_rows(&self, table: &TableCore<S>) -> Result<Epoch>;
}

struct TableNumbers<E: Engine> {
    shared: Weak<DatabaseShared<E>>,
    sequence: Arc<SequenceCore>,
}

impl<E: Engine> TableNumbers<E> {
    fn shared(&self) -> Result<Arc<DatabaseShared<E>>> {
        self.shared.upgrade().ok_or(Error::Closed)
    }
}

impl<E: Engine> Numbers<E::Store> for TableNumbers<E> {
    fn next(&self) -> Result<Given> {
        self.shared()?.give_numbers(&self.sequence, 1)
    }

    fn pass_over_rows(&self, table: &TableCore<E::Store>) -> Result<Epoch> {
        let shared = self.shared()?;
        match shared.largest_number(table)? {
            Some(largest) => shared.pass_over_numbers(&self.sequence, largest),
            None => Ok(Epoch::new(0)),
        }
    }
}

impl<E: Engine> DatabaseShared<E> {
    /// Lets the table give keys, if it does already: another opening, or another program, has asked for it.
    pub(crate) fn find_numbers(self: &Arc<Self>, table: &Arc<TableCore<E::Store>>) -> Result<()> {
        if table.numbers().is_ok() || number_range(&table.schema).is_none() {
            return Ok(());
        }
        let key = SequenceKey::of_table(table.store.id().0);
        if let Some(sequence) = self.find_sequence(&key, &name_of(table))? {
            self.set_numbers(table, sequence);
        }
        Ok(())
    }

    /// Lets the table give keys from now on.
    pub(crate) fn make_numbers(self: &Arc<Self>, table: &Arc<TableCore<E::Store>>) -> Result<()> {
        self.find_numbers(table)?;
        // One that is only read gives none.
        if table.numbers().is_ok() || self.read_only().is_some() {
            return Ok(());
        }
        let Some(numbers) = number_range(&table.schema) else {
            let text =
                format!("the key of table {} is not one ascending integer of up to 64 bits", table.name);
            return Err(Error::InvalidSequence(Name::new(text)));
        };
        let definition = SequenceOptions::new().define(numbers)?;
        let key = SequenceKey::of_table(table.store.id().0);
        self.check_may_change()?;
        self.make_sequence_rows()?;
        let largest = self.largest_number(table)?.filter(|largest| *largest >= definition.min);
        // The table is not dropped meanwhile.
        let _changes = self.catalog.change();
        table.check_exists()?;
        let sequence = self.make_sequence(&key, &name_of(table), &definition, largest)?;
        self.set_numbers(table, sequence);
        Ok(())
    }

    fn set_numbers(self: &Arc<Self>, table: &TableCore<E::Store>, sequence: Arc<SequenceCore>) {
        table.set_numbers(Arc::new(TableNumbers { shared: Arc::downgrade(self), sequence }));
    }

    /// Returns the largest key that the table has, or had; others may insert larger ones meanwhile.
    fn largest_number(&self, table: &TableCore<E::Store>) -> Result<Option<i128>> {
        let Some(key) = self.last_key(table)? else { return Ok(None) };
        let mut values = Vec::new();
        whole(table.schema.decode_key(&key, &mut values));
        Ok(match values[..] {
            [Value::Int(number)] => Some(i128::from(number)),
            [Value::Unsigned(number)] => Some(i128::from(number)),
            _ => None,
        })
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

/// Inserts the row in the scratch `local.row` under the next number that no other row has, and returns what `decode` makes of that key.
pub(crate) fn insert_under_next<E: Engine, K>(
    inner: &mut Inner<'_, impl WriteOf<E>>,
    table: &TableCore<E::Store>,
    decode: impl Fn(&KeyBuf) -> Result<K>,
) -> Result<K> {
    let numbers = table.numbers()?;
    let mut key = KeyBuf::new();
    loop {
        let given = numbers.next()?;
        inner.local.note_numbers(given.epoch);
        let encoded = table.schema.encode_key(&[Value::Int128(given.first)], &mut key);
        encoded.map_err(|error| Error::from_row(error, &table.name))?;
        let decoded = decode(&key)?;
        let inserted = maintain::insert_row(inner, table, &key, |index, row, out| {
            maintain::stored_index_key(table, index, &key, row, out);
        });
        match inserted {
            // A program has chosen the number for another row, and perhaps those behind it.
            Err(error) if error.is_duplicate_primary_key() => {
                let epoch = numbers.pass_over_rows(table)?;
                inner.local.note_numbers(epoch);
            }
            inserted => return inserted.map(|()| decoded),
        }
    }
}

/// Returns what messages call the sequence of a table.
fn name_of<S>(table: &TableCore<S>) -> Arc<str> {
    format!("for the keys of {}", table.name).into()
}

/// Returns which numbers the primary key of a table may be; `None` if it is not one ascending integer of up to 64 bits.
fn number_range(schema: &Schema) -> Option<RangeInclusive<i128>> {
    let [part] = schema.key_parts() else { return None };
    let column = &schema.columns()[part.column];
    if part.order == Order::Descending || column.nullable {
        return None;
    }
    let (unsigned, signed) =
        (|bits: u32| 0..=(1 << bits) - 1, |bits: u32| -(1 << (bits - 1))..=(1 << (bits - 1)) - 1);
    match column.column_type {
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
