//! What a program is told of a step that was applied.

use std::fmt;

use ensilo_row::Timestamp;

use super::fit::check_names;
use super::rows::{MigrationRow, Origin, StoredMigrations};
use crate::Result;

/// A step of [`Migrations`](crate::generic::Migrations) that was applied to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedMigration {
    /// Its place, from 1 on: the version of the database since then.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// How it was applied.
    pub outcome: MigrationOutcome,
    /// When it was, at the end of its work, by the clock of the machine on which it was.
    pub applied_at: Timestamp,
}

impl AppliedMigration {
    /// Returns a step that is applied now.
    pub(super) fn now(number: u32, name: &str, outcome: MigrationOutcome) -> Self {
        Self::carried(number, name, outcome, Timestamp::now())
    }

    /// Returns a step that was applied to another database.
    #[doc(hidden)]
    pub fn carried(number: u32, name: &str, outcome: MigrationOutcome, applied_at: Timestamp) -> Self {
        AppliedMigration { number, name: name.to_owned(), outcome, applied_at }
    }

    /// Checks that these are steps as migrations leave them.
    #[doc(hidden)]
    pub fn check_carried(steps: &[Self]) -> Result<()> {
        check_names(steps.iter().map(|step| &*step.name))?;
        let database = MigrationRow::of_database(Origin::default(), steps.len() as u32);
        let steps = steps.iter().map(MigrationRow::of_step);
        StoredMigrations::of([database].into_iter().chain(steps).collect()).map(drop)
    }
}

/// How a step was applied.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MigrationOutcome {
    /// It was carried out.
    Applied,
    /// There was nothing to do, because the table that it names was not there.
    TableMissing,
    /// There was nothing to do, because the database was new.
    NewDatabase,
}

impl MigrationOutcome {
    const ALL: [Self; 3] = [Self::Applied, Self::TableMissing, Self::NewDatabase];

    /// Returns the outcome that is shown so.
    #[doc(hidden)]
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.text() == text)
    }

    const fn text(self) -> &'static str {
        match self {
            MigrationOutcome::Applied => "applied",
            MigrationOutcome::TableMissing => "no such table",
            MigrationOutcome::NewDatabase => "new database",
        }
    }
}

impl fmt::Display for MigrationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
