//! What a consumer of the change feed has made of the tables, and where it stands: it stores the two together.

use std::collections::BTreeMap;

use ensilo::{Change, ChangeBatch, ChangePosition, Value};

use super::columns::ColumnChange;
use super::shifting::{Rows, Shape};
use super::state::{ChangingState, difference_of_rows};
use super::{SHIFTING, WORKER};

/// The copy, and the position behind the last change that it has.
#[derive(Clone, Debug)]
pub struct TableCopy {
    pub(super) position: ChangePosition,
    /// Each row with how often the columns had been changed when it came.
    rows: BTreeMap<u64, (usize, Vec<Value>)>,
    numbered: BTreeMap<u64, (u64, u64)>,
    step: u64,
}

impl TableCopy {
    /// Returns the copy of empty tables.
    pub(super) fn at(position: ChangePosition) -> TableCopy {
        TableCopy { position, rows: BTreeMap::new(), numbered: BTreeMap::new(), step: 0 }
    }

    /// Forgets all rows, and goes on behind them.
    pub(super) fn forget_rows(&mut self) {
        self.rows.clear();
        self.numbered.clear();
    }

    /// Takes changes. The columns were changed so often when they were read, and are these.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn take(
        &mut self,
        batch: &ChangeBatch,
        version: usize,
        shape: Option<&Shape>,
    ) -> Result<(), String> {
        self.position = batch.position();
        batch.changes().iter().try_for_each(|change| self.take_one(change, version, shape))
    }

    fn take_one(&mut self, change: &Change, version: usize, shape: Option<&Shape>) -> Result<(), String> {
        match change.table() {
            SHIFTING if change.empties_table() => self.rows.clear(),
            "numbered" if change.empties_table() => self.numbered.clear(),
            SHIFTING => {
                if shape.is_none_or(|shape| shape.columns != Shape::columns_of(change.schema())) {
                    return Err(format!("a change has the columns {:?}", change.schema().columns()));
                }
                let key = number(&change.key()[0])?;
                match change.row() {
                    Some(row) => _ = self.rows.insert(key, (version, row)),
                    None => _ = self.rows.remove(&key),
                }
            }
            "numbered" => {
                let key = number(&change.key()[0])?;
                match change.row() {
                    Some(row) => _ = self.numbered.insert(key, (number(&row[1])?, number(&row[2])?)),
                    None => _ = self.numbered.remove(&key),
                }
            }
            "progress" if change.key()[0] == Value::Unsigned(WORKER.into()) => {
                self.step = change.row().map_or(Ok(0), |row| number(&row[1]))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares the copy with the tables, once it has all changes.
    ///
    /// # Errors
    /// In what they differ.
    pub(super) fn compare(&self, state: &ChangingState, changes: &[Vec<ColumnChange>]) -> Result<(), String> {
        let convert = |(&key, (version, row)): (&u64, &(usize, Vec<Value>))| {
            let mut row = row.clone();
            changes[*version..].iter().flatten().for_each(|change| change.change_row(&mut row));
            (key, row.into())
        };
        let rows: Rows = self.rows.iter().map(convert).collect();
        let (empty_rows, empty_numbers) = (Rows::new(), BTreeMap::new());
        let expected = state.shifting.as_ref().map_or(&empty_rows, |(_, rows)| rows);
        let numbered = state.numbered.as_ref().unwrap_or(&empty_numbers);
        let step = state.step.unwrap_or(0);
        let difference = difference_of_rows("row", &rows, expected)
            .or_else(|| difference_of_rows("number", &self.numbered, numbered))
            .or_else(|| (self.step != step).then(|| format!("step {} instead of {step}", self.step)));
        difference.map_or(Ok(()), |difference| Err(format!("the copy of the consumer has {difference}")))
    }
}

fn number(value: &Value) -> Result<u64, String> {
    match value {
        Value::Unsigned(number) => Ok(*number),
        other => Err(format!("{other:?} is no number")),
    }
}
