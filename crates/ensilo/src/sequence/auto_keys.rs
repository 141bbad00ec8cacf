//! Inserting rows under keys that their table gives.

use std::ops::ControlFlow;

use ensilo_engine::{Direction, Read, RowRef, Store, Write};
use ensilo_epoch::Epoch;
use ensilo_row::KeyBuf;

use super::table_numbers::number_in_key;
use crate::catalog::table_core::TableCore;
use crate::long_values::Nothing;
use crate::maintain;
use crate::row_words::key_of_bytes;
use crate::table::{Bounds, ScanRange};
use crate::transaction::Inner;
use crate::{Error, Result};

/// Numbers that a statement has got for its rows, and not used yet.
#[derive(Debug)]
pub(crate) struct ReservedKeys {
    next: i128,
    increment: i64,
    left: u64,
    /// For how many rows there are none yet.
    missing: u64,
}

impl ReservedKeys {
    /// Returns no numbers yet, for so many rows.
    pub(crate) fn for_rows(rows: usize) -> Self {
        ReservedKeys { next: 0, increment: 1, left: 0, missing: rows as u64 }
    }

    /// Returns the next number, after those that are missing were got from the table together.
    fn take<S: Store>(&mut self, table: &TableCore<S>, note: impl FnOnce(Epoch)) -> Result<i128> {
        if self.left == 0 {
            let count = self.missing.max(1);
            let given = table.numbers()?.next(count)?;
            note(given.epoch);
            *self = ReservedKeys { next: given.first, increment: given.increment, left: count, missing: 0 };
        }
        let number = self.next;
        self.next += i128::from(self.increment);
        self.left -= 1;
        Ok(number)
    }

    /// The number that was taken last is another row's: leaves out those that are left up to the largest one of such rows, too.
    fn skip_to(&mut self, largest: Option<i128>) {
        self.missing += 1;
        while self.left > 0 && largest.is_some_and(|largest| self.next <= largest) {
            self.next += i128::from(self.increment);
            self.left -= 1;
            self.missing += 1;
        }
    }
}

/// Inserts the row in the scratch `local.row` under the key `given`, but with the next number that no other row has, and returns that key.
/// A key that `check` refuses is not inserted.
pub(crate) fn insert_under_next<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    reserved: &mut ReservedKeys,
    given: &KeyBuf,
    check: impl Fn(&KeyBuf) -> Result<()>,
) -> Result<KeyBuf> {
    let place = table.numbers()?.place();
    let refused = |error| Error::from_row(error, &table.name);
    let mut key = KeyBuf::new();
    loop {
        let number = reserved.take(table, |epoch| inner.local.note_numbers(epoch))?;
        let replaced = table.schema.replace_key_number(given.as_bytes(), place, number, &mut key);
        replaced.map_err(refused)?;
        check(&key)?;
        let inserted = maintain::insert_row(inner, table, &key, |index, row, out| {
            maintain::stored_index_key(table, index, &key, row, out);
        });
        match inserted {
            // A program has chosen the number for another row, and perhaps those behind it.
            Err(error) if error.is_duplicate_primary_key() => {
                let before = table.schema.key_before(given.as_bytes(), place).map_err(refused)?;
                let largest = pass_over_rows(inner, table, key_of_bytes(before), place)?;
                reserved.skip_to(largest);
            }
            inserted => return inserted.map(|()| key),
        }
    }
}

/// Lets the table's numbers go on behind the largest one of the rows that have the same columns of the key before it, and returns that.
#[cold]
fn pass_over_rows<Raw: Read>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    before: KeyBuf,
    place: usize,
) -> Result<Option<i128>> {
    let numbers = table.numbers()?;
    let largest = if place == 0 {
        numbers.largest(table)?
    } else {
        let range = ScanRange { bounds: Bounds::prefix(before), direction: Direction::Reverse, limit: 1 };
        let mut largest = None;
        let decode = |key: &[u8], _: RowRef<'_>| number_in_key(&table.schema, key, place);
        range.run_rows(inner, (table, Nothing), decode, |number| {
            largest = number;
            ControlFlow::Break(())
        })?;
        largest
    };
    if let Some(largest) = largest {
        let epoch = numbers.pass_over(largest)?;
        inner.local.note_numbers(epoch);
    }
    Ok(largest)
}
