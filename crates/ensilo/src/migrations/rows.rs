//! The rows of the table `ensilo.migrations`.
//!
//! # Layout
//! | column | type | what it is |
//! |---|---|---|
//! | `number` | u32, key | the step's place, from 1 on; 0 of the row that says of a database that it was new |
//! | `name` | text | the step's name; empty in row 0 |
//! | `outcome` | u8 | 0 it was carried out, 1 its table was not there, 2 the database was new; 3 in row 0: it is being set up |
//! | `applied_at` | timestamp | when |

use ensilo_derive::Row;
use ensilo_engine::Engine;
use ensilo_row::Timestamp;

use super::{AppliedMigration, MigrationOutcome};
use crate::durability::Durability;
use crate::error::Name;
use crate::shared::DatabaseShared;
use crate::table::Table;
use crate::{Error, Result};

/// The table that they are in.
pub(crate) const MIGRATIONS: &str = "ensilo.migrations";

const APPLIED: u8 = 0;
const TABLE_MISSING: u8 = 1;
const NEW_DATABASE: u8 = 2;
const BEING_SET_UP: u8 = 3;

/// A step that was applied, or, with number 0, that the database was new.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "ensilo.migrations")]
pub(super) struct MigrationRow {
    #[row(key)]
    number: u32,
    name: String,
    outcome: u8,
    applied_at: Timestamp,
}

impl MigrationRow {
    /// Returns the row that says that the database was new.
    pub(super) fn of_new_database(is_being_set_up: bool) -> Self {
        let outcome = if is_being_set_up { BEING_SET_UP } else { NEW_DATABASE };
        MigrationRow { number: 0, name: String::new(), outcome, applied_at: Timestamp::now() }
    }

    /// Returns the row of a step.
    pub(super) fn of_step(applied: &AppliedMigration) -> Self {
        let AppliedMigration { number, ref name, outcome, applied_at } = *applied;
        let outcome = match outcome {
            MigrationOutcome::Applied => APPLIED,
            MigrationOutcome::TableMissing => TABLE_MISSING,
            MigrationOutcome::NewDatabase => NEW_DATABASE,
        };
        MigrationRow { number, name: name.clone(), outcome, applied_at }
    }

    /// Returns what the program is told; `None` where a step has no such outcome.
    fn applied(self) -> Option<AppliedMigration> {
        let MigrationRow { number, name, outcome, applied_at } = self;
        let outcome = match outcome {
            APPLIED => MigrationOutcome::Applied,
            TABLE_MISSING => MigrationOutcome::TableMissing,
            NEW_DATABASE => MigrationOutcome::NewDatabase,
            _ => return None,
        };
        Some(AppliedMigration { number, name, outcome, applied_at })
    }
}

/// All that is stored of migrations.
#[derive(Debug, Default)]
pub(crate) struct StoredMigrations {
    /// The steps that were applied, in order.
    pub(crate) steps: Vec<AppliedMigration>,
    /// Whether it was new, and is not set up to the end.
    pub(super) is_being_set_up: bool,
    /// Whether nothing is stored.
    pub(super) is_empty: bool,
}

impl StoredMigrations {
    /// Returns whether no step has run, nor counts as applied for another cause than that the database was new.
    pub(super) fn has_changed_nothing(&self) -> bool {
        self.steps.iter().all(|step| step.outcome == MigrationOutcome::NewDatabase)
    }

    /// # Errors
    /// [`Error::DamagedCatalog`] when the rows are none that a migration leaves (V1).
    pub(super) fn of(mut rows: Vec<MigrationRow>) -> Result<Self> {
        let is_empty = rows.is_empty();
        let is_of_new = rows.first().is_some_and(|row| row.number == 0);
        let new = if is_of_new { Some(rows.remove(0)) } else { None };
        let is_being_set_up = new.is_some_and(|row| row.outcome == BEING_SET_UP);
        let steps: Option<Vec<_>> = rows.into_iter().map(MigrationRow::applied).collect();
        let is_in_order =
            |steps: &Vec<AppliedMigration>| (1..).zip(steps).all(|(at, step)| at == step.number);
        let damaged = || Error::DamagedCatalog(Name::new(MIGRATIONS));
        let steps = steps.filter(is_in_order).ok_or_else(damaged)?;
        Ok(StoredMigrations { steps, is_being_set_up, is_empty })
    }
}

impl<E: Engine> DatabaseShared<E> {
    /// Returns what is noted of migrations, once that has reached `level`.
    pub(crate) fn stored_migrations(&self, level: Durability) -> Result<StoredMigrations> {
        let rows: Option<Table<MigrationRow, E>> = self.rows_of_system()?;
        let Some(rows) = rows else { return StoredMigrations::of(Vec::new()) };
        let read = self.commit_apart(|tx| rows.scan().rows(tx));
        StoredMigrations::of(self.answer(read, level)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u32) -> MigrationRow {
        MigrationRow::of_step(&AppliedMigration::now(number, "a step", MigrationOutcome::Applied))
    }

    #[test]
    fn rows_that_no_migration_leaves_are_damage() {
        let of = |rows: &[MigrationRow]| StoredMigrations::of(rows.to_vec());
        assert!(of(&[]).unwrap().is_empty);
        let set_up = MigrationRow::of_new_database(true);
        let stored = of(&[set_up, step(1), step(2)]).unwrap();
        assert!(stored.is_being_set_up && !stored.is_empty && stored.steps.len() == 2);
        assert!(!of(&[MigrationRow::of_new_database(false)]).unwrap().is_being_set_up);
        for damaged in [&[step(2)][..], &[step(1), step(3)], &[MigrationRow { outcome: 3, ..step(1) }]] {
            assert!(matches!(of(damaged), Err(Error::DamagedCatalog(_))), "{damaged:?}");
        }
    }
}
