//! The rows of the table `ensilo.migrations`.
//!
//! # Layout
//! | column | type | what it is |
//! |---|---|---|
//! | `number` | u32, key | the step's place, from 1 on; 0 of the row of the database as a whole |
//! | `name` | text | the step's name; empty in row 0 |
//! | `outcome` | u8 | 0 it was carried out, 1 its table was not there, 2 the database was new; in row 0: 0 it was there before, 2 it was new, 3 it is being set up |
//! | `applied_at` | timestamp | when; of row 0 when it was written |
//! | `steps` | u32 | in row 0 how many steps there are; otherwise 0 |
//!
//! Row 0 is written by the transaction that makes the table, and again by each that writes a step. So rows that a salvage has lost are found
//! missing, be it all of them.

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
const MIGRATIONS: &str = "ensilo.migrations";

const APPLIED: u8 = 0;
const TABLE_MISSING: u8 = 1;
const NEW_DATABASE: u8 = 2;
const BEING_SET_UP: u8 = 3;

/// A step that was applied, or, with number 0, the database as a whole.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "ensilo.migrations")]
pub(super) struct MigrationRow {
    #[row(key)]
    number: u32,
    name: String,
    outcome: u8,
    applied_at: Timestamp,
    steps: u32,
}

/// What a database was when it was migrated first.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// It had tables, or has no note.
    #[default]
    Existing,
    /// It was new.
    New,
    /// It was new, and is not set up to the end.
    BeingSetUp,
}

impl MigrationRow {
    /// Returns the row of a database that has so many steps.
    pub(super) fn of_database(origin: Origin, steps: u32) -> Self {
        let outcome = match origin {
            Origin::Existing => APPLIED,
            Origin::New => NEW_DATABASE,
            Origin::BeingSetUp => BEING_SET_UP,
        };
        MigrationRow { number: 0, name: String::new(), outcome, applied_at: Timestamp::now(), steps }
    }

    /// Returns what the row of the database says: its origin, and how many steps there are.
    fn database(&self) -> Option<(Origin, u32)> {
        let origin = match self.outcome {
            APPLIED => Origin::Existing,
            NEW_DATABASE => Origin::New,
            BEING_SET_UP => Origin::BeingSetUp,
            _ => return None,
        };
        (self.number == 0).then_some((origin, self.steps))
    }

    /// Returns the row of a step.
    pub(super) fn of_step(applied: &AppliedMigration) -> Self {
        let AppliedMigration { number, ref name, outcome, applied_at } = *applied;
        let outcome = match outcome {
            MigrationOutcome::Applied => APPLIED,
            MigrationOutcome::TableMissing => TABLE_MISSING,
            MigrationOutcome::NewDatabase => NEW_DATABASE,
        };
        MigrationRow { number, name: name.clone(), outcome, applied_at, steps: 0 }
    }

    /// Returns what the program is told; `None` where a step has no such outcome.
    fn applied(self) -> Option<AppliedMigration> {
        let MigrationRow { number, name, outcome, applied_at, .. } = self;
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
    pub(super) origin: Origin,
}

impl StoredMigrations {
    /// Returns whether the database was not migrated yet.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.origin == Origin::Existing
    }

    /// Returns whether no step has run, nor counts as applied for another cause than that the database was new.
    pub(super) fn has_changed_nothing(&self) -> bool {
        self.steps.iter().all(|step| step.outcome == MigrationOutcome::NewDatabase)
    }

    /// # Errors
    /// [`Error::DamagedCatalog`] when the rows are none that a migration leaves (V1).
    pub(super) fn of(rows: Vec<MigrationRow>) -> Result<Self> {
        Self::checked(rows).ok_or_else(|| Error::DamagedCatalog(Name::new(MIGRATIONS)))
    }

    fn checked(rows: Vec<MigrationRow>) -> Option<Self> {
        let mut rows = rows.into_iter();
        let (origin, number) = rows.next()?.database()?;
        let steps: Vec<_> = rows.map(MigrationRow::applied).collect::<Option<_>>()?;
        let is_whole = (1..=number).eq(steps.iter().map(|step| step.number));
        is_whole.then_some(StoredMigrations { steps, origin })
    }
}

impl<E: Engine> DatabaseShared<E> {
    /// Returns the table, which is made if it is not there.
    pub(super) fn make_rows_of_migrations(&self) -> Result<Table<MigrationRow, E>> {
        self.make_rows_of_system(Some(&MigrationRow::of_database(Origin::Existing, 0)))
    }

    /// Returns what is noted of migrations, once that has reached `level`.
    pub(crate) fn stored_migrations(&self, level: Durability) -> Result<StoredMigrations> {
        let rows: Option<Table<MigrationRow, E>> = self.rows_of_system()?;
        let Some(rows) = rows else { return Ok(StoredMigrations::default()) };
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
        let database = |steps| MigrationRow::of_database(Origin::BeingSetUp, steps);
        let stored = of(&[database(2), step(1), step(2)]).unwrap();
        assert_eq!((stored.origin, stored.steps.len()), (Origin::BeingSetUp, 2));
        assert!(!stored.is_empty() && !of(&[database(0)]).unwrap().is_empty());
        assert!(of(&[MigrationRow::of_database(Origin::Existing, 0)]).unwrap().is_empty());
        let damaged: [&[MigrationRow]; 8] = [
            &[],
            &[step(1), step(2)],
            &[database(1)],
            &[database(2), step(1)],
            &[database(2), step(2)],
            &[database(2), step(1), step(3)],
            &[database(1), step(1), step(2)],
            &[database(1), MigrationRow { outcome: BEING_SET_UP, ..step(1) }],
        ];
        for rows in damaged {
            assert!(matches!(of(rows), Err(Error::DamagedCatalog(_))), "{rows:?}");
        }
    }

    #[test]
    fn a_database_that_has_lost_all_its_notes_is_not_migrated_again() {
        let db = crate::Database::in_memory().unwrap();
        db.migrate(&crate::Migrations::new().run("a step", |_| Ok(()))).unwrap();
        let rows: Table<MigrationRow> = db.shared.rows_of_system().unwrap().unwrap();
        db.shared.commit_apart(|tx| rows.scan().delete(tx)).unwrap();
        let migrated = db.migrate(&crate::Migrations::new().run("a step", |_| panic!("it runs again")));
        assert!(matches!(migrated, Err(Error::DamagedCatalog(_))), "{migrated:?}");
        assert!(db.applied_migrations().is_err() && db.migration_version().is_err());
    }
}
