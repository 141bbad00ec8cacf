//! All that the database of the workload holds, as plain values.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ensilo::generic::Database;
use ensilo::{Durability, Engine, Error, Result};

use super::shifting::{self, Rows, Shape};
use super::{Numbered, WORKER};
use crate::schema::{Progress, table};

/// The rows and the columns of a database; `None` without the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangingState {
    /// The last step that was written.
    pub step: Option<u64>,
    /// The table whose columns change.
    pub shifting: Option<(Shape, Rows)>,
    /// Of each number that the table has given, that of the sequence, and the step.
    pub numbered: Option<BTreeMap<u64, (u64, u64)>>,
}

impl ChangingState {
    /// Reads everything that is stored, and checks that each index leads to the rows that it should.
    ///
    /// # Errors
    /// Those of the database; an [`Error::User`] when an index and its table disagree.
    pub fn read<E: Engine>(db: &Database<E>) -> Result<ChangingState> {
        let request = || db.request().durability(Durability::Stored);
        let mut state = ChangingState { shifting: shifting::read(db)?, ..ChangingState::default() };
        if let Some(table) = table::<Progress, E>(db)? {
            state.step = Some(request().transact(|tx| table.get(tx, WORKER))?.map_or(0, |row| row.step));
        }
        if let Some(table) = table::<Numbered, E>(db)? {
            let rows: Vec<Numbered> = request().transact(|tx| table.scan().rows(tx))?;
            let by_step = table.index::<u64>("numbered_by_step")?;
            let mut found = request().transact(|tx| by_step.scan().primary_keys(tx))?;
            found.sort_unstable();
            if found != rows.iter().map(|row| row.id).collect::<Vec<_>>() {
                return Err(Error::rollback(format!("index numbered_by_step leads to {found:?}")));
            }
            state.numbered = Some(rows.into_iter().map(|row| (row.id, (row.ticket, row.step))).collect());
        }
        Ok(state)
    }

    /// In what this state differs from `expected`, in few words.
    #[must_use]
    pub fn difference(&self, expected: &ChangingState) -> String {
        let mut text = Vec::new();
        match (&self.shifting, &expected.shifting) {
            (Some((shape, rows)), Some((expected_shape, expected_rows))) => {
                if shape != expected_shape {
                    text.push(format!("{shape:?} instead of {expected_shape:?}"));
                }
                text.extend(difference_of_rows("row", rows, expected_rows));
            }
            (found, expected) => text.push(format!("{} instead of {}", found.is_some(), expected.is_some())),
        }
        if let (Some(found), Some(expected)) = (&self.numbered, &expected.numbered) {
            text.extend(difference_of_rows("number", found, expected));
        } else if self.numbered != expected.numbered {
            text.push("one has no table of numbers".to_owned());
        }
        text.join("; ")
    }
}

/// Returns what the first key has under which there is something else than expected.
pub(super) fn difference_of_rows<K: Ord + Debug, V: PartialEq + Debug>(
    what: &str,
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, V>,
) -> Option<String> {
    let mut keys = found.keys().chain(expected.keys());
    let key = keys.find(|key| found.get(key) != expected.get(key))?;
    Some(format!("{what} {key:?}: {:?} instead of {:?}", found.get(key), expected.get(key)))
}
