//! Applying the steps that a database does not have yet.

use std::time::Instant;

use ensilo_engine::Engine;

use super::action::Made;
use super::fit::missing_when_read_only;
use super::rows::{MigrationRow, StoredMigrations};
use super::{AppliedMigration, MigrationOutcome, Migrations, RunBody, Step};
use crate::attempt::{self, RetryPolicy};
use crate::database::Database;
use crate::durability::Durability;
use crate::error::{MigrationFailed, Name};
use crate::shared::DatabaseShared;
use crate::table::Table;
use crate::{Error, Result, trace};

/// What the set-up of a new database is called where it fails.
const SET_UP: &str = "the set-up of a new database";

impl<E: Engine> Database<E> {
    /// Applies the steps of `migrations` that were not applied to the database yet, in order, and returns them; none if it has all. A program
    /// calls it when it starts, before it opens tables, whether it has run before or not. [`Migrations`] has an example, and says which steps are
    /// applied to which database.
    ///
    /// Every step that was applied is stored when this returns. With the feature `tracing` each is an event.
    ///
    /// Others may use the database meanwhile. A step that changes a table waits, as [`Database::table_with_changes`] does, until all transactions have ended
    /// that are under way. Of several calls at once, on any threads and handles, one applies the steps. The others wait until it has ended, and find
    /// them applied; where it has failed the next one goes on.
    ///
    /// There is no way back to an earlier version but a [backup](Database::backup) that was made before.
    ///
    /// # Errors
    /// [`Error::InvalidMigrations`] when the first steps are not those that were applied: the database is ahead of the program, or names
    /// differ; when two steps have one name or one has none of up to 255 bytes; and when steps are missing in a database that is open for reading only. The text says what
    /// differs and what to do. [`Error::NestedRequest`] inside a request, while this thread was the last to use an
    /// open transaction of a session, and in a closure of a step. Nothing has changed then.
    ///
    /// [`Error::MigrationFailed`] when a step fails: it names the step, and has its error inside. The steps before it are applied, and of the step there is
    /// nothing, but for what closures of [`Migrations::run`] and [`Migrations::transact_while`] have committed. The next call begins with this step.
    ///
    /// [`Error::Closed`]; [`Error::DamagedCatalog`], [`Error::OutOfMemory`], [`Error::LogFailed`].
    pub fn migrate(&self, migrations: &Migrations<E>) -> Result<Vec<AppliedMigration>> {
        migrations.check_names()?;
        let shared = &self.shared;
        if shared.read_only().is_some() {
            let stored = shared.stored_migrations(Durability::Stored)?;
            return match migrations.missing(&stored)?.next() {
                Some((number, step)) => Err(missing_when_read_only(number, &step.name)),
                None => Ok(Vec::new()),
            };
        }
        shared.check_may_change()?;
        let _turn = shared.migration_turns.wait(|| shared.is_closed())?;
        let stored = shared.stored_migrations(Durability::Stored)?;
        let is_new = stored.is_empty && shared.catalog.tables_of_programs().is_empty();
        let sets_up = stored.is_being_set_up || (is_new && migrations.on_new_database.is_some());
        let missing: Vec<_> = migrations.missing(&stored)?.collect();
        if missing.is_empty() && !sets_up {
            return Ok(Vec::new());
        }
        let migration = Migration { database: self, rows: shared.make_rows_of_system()? };
        let applied = if is_new {
            migration.note_new(migrations, sets_up)?
        } else {
            let apply = |(number, step): (u32, &Step<E>)| migration.apply(number, step);
            missing.into_iter().map(apply).collect::<Result<_>>()?
        };
        if sets_up {
            migration.set_up(migrations.on_new_database.as_ref())?;
        }
        Ok(applied)
    }

    /// Returns how many steps of [`Database::migrate`] were applied to the database: 0 if none ever was.
    ///
    /// # Errors
    /// As [`Database::applied_migrations`].
    pub fn migration_version(&self) -> Result<u32> {
        Ok(self.applied_migrations()?.last().map_or(0, |last| last.number))
    }

    /// Returns the steps of [`Database::migrate`] that were applied to the database, in order.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::DamagedCatalog`], [`Error::LoadFailed`], [`Error::OutOfMemory`].
    pub fn applied_migrations(&self) -> Result<Vec<AppliedMigration>> {
        self.check_open()?;
        Ok(self.shared.stored_migrations(Durability::Visible)?.steps)
    }

    /// Returns the names of the steps that [`Database::migrate`] would store as applied, in order, and changes nothing: to show them before, or to refuse to
    /// start.
    ///
    /// # Errors
    /// As [`Database::applied_migrations`]; [`Error::InvalidMigrations`] as [`Database::migrate`].
    pub fn pending_migrations(&self, migrations: &Migrations<E>) -> Result<Vec<String>> {
        self.check_open()?;
        migrations.check_names()?;
        let missing = migrations.missing(&self.shared.stored_migrations(Durability::Visible)?)?;
        Ok(missing.map(|(_, step)| step.name.clone()).collect())
    }

    /// Stores that these steps were applied, as a load of a dump does, to a database of which none is stored.
    #[doc(hidden)]
    pub fn take_migrations(&self, applied: &[AppliedMigration]) -> Result<()> {
        self.shared.check_may_change()?;
        let _turn = self.shared.migration_turns.wait(|| self.shared.is_closed())?;
        // Refuses what no migration leaves, before anything is made.
        let rows: Vec<_> = applied.iter().map(MigrationRow::of_step).collect();
        StoredMigrations::of(rows.clone())?;
        if !self.shared.stored_migrations(Durability::Stored)?.is_empty {
            return Err(Error::InvalidMigrations(Name::new("the database has steps that were applied")));
        }
        Migration { database: self, rows: self.shared.make_rows_of_system()? }.write(&rows)
    }
}

/// A migration of a database, by the one whose turn it is.
struct Migration<'d, E: Engine> {
    database: &'d Database<E>,
    rows: Table<MigrationRow, E>,
}

impl<E: Engine> Migration<'_, E> {
    /// Notes that the database was new when these steps were all that there are (V3).
    fn note_new(&self, migrations: &Migrations<E>, is_set_up: bool) -> Result<Vec<AppliedMigration>> {
        let began = Instant::now();
        let applied = |(number, name)| AppliedMigration::now(number, name, MigrationOutcome::NewDatabase);
        let applied: Vec<_> = (1..).zip(migrations.names()).map(applied).collect();
        let rows = applied.iter().map(MigrationRow::of_step);
        let rows: Vec<_> = [MigrationRow::of_new_database(is_set_up)].into_iter().chain(rows).collect();
        self.write(&rows)?;
        applied.iter().for_each(|applied| trace::migration_applied(applied, began.elapsed()));
        Ok(applied)
    }

    /// Runs what sets a new database up, and notes that it has.
    fn set_up(&self, body: Option<&RunBody<E>>) -> Result<()> {
        let made = body.map_or(Ok(()), |body| body(self.database));
        let noted = made.and_then(|()| self.write(&[MigrationRow::of_new_database(false)]));
        noted.map_err(|error| failed(0, SET_UP, error))
    }

    /// Applies one step, behind which it is stored that it was.
    fn apply(&self, number: u32, step: &Step<E>) -> Result<AppliedMigration> {
        let began = Instant::now();
        let mut applied = AppliedMigration::now(number, &step.name, MigrationOutcome::Applied);
        let row = MigrationRow::of_step(&applied);
        let made = step.action.apply(self.database, &|tx| self.rows.insert(tx, &row).map(drop));
        let noted = made.and_then(|made| match made {
            Made::Noted => Ok(()),
            Made::ToNote(outcome) => {
                applied.outcome = outcome;
                self.write(&[MigrationRow::of_step(&applied)])
            }
        });
        noted.map_err(|error| failed(number, &step.name, error))?;
        trace::migration_applied(&applied, began.elapsed());
        Ok(applied)
    }

    /// Writes rows by a transaction of their own, and returns when they are stored.
    fn write(&self, rows: &[MigrationRow]) -> Result<()> {
        let shared: &DatabaseShared<E> = &self.database.shared;
        let written = attempt::run(shared, RetryPolicy::internal(shared.retries), &mut |_| (), |tx| {
            rows.iter().try_for_each(|row| self.rows.upsert(tx, row).map(drop))
        });
        shared.answer(written, Durability::Stored)
    }
}

/// Makes the error of a step that has failed.
fn failed(number: u32, name: &str, error: Error) -> Error {
    match error {
        Error::Closed => Error::Closed,
        error => Error::MigrationFailed(MigrationFailed::new(number, name, error)),
    }
}
