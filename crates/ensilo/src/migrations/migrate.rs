//! Applying the steps that a database does not have yet.

use std::cell::RefCell;
use std::slice;
use std::time::Instant;

use ensilo_engine::Engine;

use super::action::Made;
use super::fit::{check_names, due_when_read_only};
use super::rows::{MigrationRow, Origin};
use super::{AppliedMigration, MigrationOutcome, Migrations, RunBody, Step};
use crate::attempt::{self, RetryPolicy};
use crate::database::Database;
use crate::durability::Durability;
use crate::error::{MigrationFailed, Name};
use crate::shared::DatabaseShared;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::{Error, Result, trace};

/// What the set-up of a new database is called where it fails.
const SET_UP: &str = "the set-up of a new database";

/// What else may be wrong where the first step does not fit the tables.
const TABLES_BEFORE: &str =
    "; if this version of the program has made the tables: in a new database, migrate before they are opened";

/// What is still to come where the database is being set up.
const SET_UP_AFTER: &str = "; the set-up of the new database, which did not end, comes behind this step";

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
    /// differ; when two steps have one name or one has none of up to 255 bytes; and when steps are missing, or the set-up is, in a database that is open for reading only. The text says what
    /// differs and what to do. [`Error::NestedRequest`] inside a request, while this thread was the last to use an
    /// open transaction of a session, and in a closure of a step. Nothing has changed then.
    ///
    /// [`Error::MigrationFailed`] when a step fails: it names the step, and has its error inside. The steps before it are applied, and of the step there is
    /// nothing, but for what closures of [`Migrations::run`] and [`Migrations::transact_while`] have committed. The next call begins with this step.
    ///
    /// [`Error::Closed`]; [`Error::DamagedCatalog`], [`Error::OutOfMemory`], [`Error::LogFailed`].
    pub fn migrate(&self, migrations: &Migrations<E>) -> Result<Vec<AppliedMigration>> {
        check_names(migrations.names())?;
        let shared = &self.shared;
        if shared.read_only().is_some() {
            self.check_open()?;
            let due = self.due(migrations, Durability::Stored)?;
            return due.names().next().map_or(Ok(Vec::new()), |first| Err(due_when_read_only(first)));
        }
        shared.check_may_change()?;
        let _turn = shared.migration_turns.wait(|| shared.is_closed())?;
        let due = self.due(migrations, Durability::Stored)?;
        if due.names().next().is_none() {
            return Ok(Vec::new());
        }
        let rows = shared.make_rows_of_migrations()?;
        let sets_up = due.sets_up();
        let migration = Migration { database: self, rows, origin: due.origin };
        let steps = due.version + due.steps.len() as u32;
        let applied = if due.is_new {
            migration.note_new(due.steps, steps)?
        } else {
            let apply = |(number, step): (u32, &Step<E>)| migration.apply(number, step);
            due.steps.into_iter().map(apply).collect::<Result<_>>()?
        };
        if sets_up {
            migration.set_up(migrations.on_new_database.as_ref(), steps)?;
        }
        Ok(applied)
    }

    /// Returns how many steps of [`Database::migrate`] were applied to the database: 0 if none ever was. As with
    /// [`Database::applied_migrations`] the last one may not be stored yet.
    ///
    /// # Errors
    /// As [`Database::applied_migrations`].
    pub fn migration_version(&self) -> Result<u32> {
        Ok(self.applied_migrations()?.last().map_or(0, |last| last.number))
    }

    /// Returns the steps of [`Database::migrate`] that were applied to the database, in order, as far as they have committed. While another thread
    /// migrates, the last of them may not be stored yet, and be gone after a crash.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::DamagedCatalog`], [`Error::LoadFailed`], [`Error::OutOfMemory`].
    pub fn applied_migrations(&self) -> Result<Vec<AppliedMigration>> {
        self.check_open()?;
        Ok(self.shared.stored_migrations(Durability::Visible)?.steps)
    }

    /// Returns what [`Database::migrate`] would do, in order: the names of the steps that it would run, and behind them `the set-up of a new database` where it
    /// would run what [`Migrations::on_new_database`] is given. Of a new database, in which no step runs, it is the latter alone, also where all that there is to
    /// do is to note the steps. It changes nothing: to show what is due before, or to refuse to start. Where it is empty, `migrate` has nothing to do.
    ///
    /// # Errors
    /// As [`Database::applied_migrations`]; [`Error::InvalidMigrations`] as [`Database::migrate`].
    pub fn pending_migrations(&self, migrations: &Migrations<E>) -> Result<Vec<String>> {
        self.check_open()?;
        check_names(migrations.names())?;
        Ok(self.due(migrations, Durability::Visible)?.names().map(|(_, name)| name.to_owned()).collect())
    }

    /// Returns whether the database was new when it was migrated first, and [`Migrations::on_new_database`] has not set it up to the end.
    #[doc(hidden)]
    pub fn is_being_set_up(&self) -> Result<bool> {
        self.check_open()?;
        Ok(self.shared.stored_migrations(Durability::Visible)?.origin == Origin::BeingSetUp)
    }

    /// Returns what is to be done.
    fn due<'m>(&self, migrations: &'m Migrations<E>, level: Durability) -> Result<Due<'m, E>> {
        let stored = self.shared.stored_migrations(level)?;
        let is_new = stored.has_changed_nothing() && self.shared.catalog.tables_of_programs().is_empty();
        let steps: Vec<_> = migrations.missing(&stored)?.collect();
        // Steps that are only noted leave it to the set-up to do what they would have done, even if that of an earlier version has ended.
        let begins = is_new && (stored.is_empty() || !steps.is_empty());
        let sets_up = stored.origin == Origin::BeingSetUp || (begins && migrations.on_new_database.is_some());
        let origin = match stored.origin {
            Origin::Existing if !is_new => Origin::Existing,
            _ if sets_up => Origin::BeingSetUp,
            _ => Origin::New,
        };
        Ok(Due { steps, version: stored.steps.len() as u32, is_new, origin })
    }

    /// Stores that these steps were applied, as a load of a dump does, to a database of which no step is stored.
    #[doc(hidden)]
    pub fn take_migrations(&self, applied: &[AppliedMigration]) -> Result<()> {
        self.shared.check_may_change()?;
        let _turn = self.shared.migration_turns.wait(|| self.shared.is_closed())?;
        // Before anything is made.
        AppliedMigration::check_carried(applied)?;
        let stored = self.shared.stored_migrations(Durability::Stored)?;
        if !stored.steps.is_empty() {
            return Err(Error::InvalidMigrations(Name::new("the database has steps that were applied")));
        }
        let rows = self.shared.make_rows_of_migrations()?;
        Migration { database: self, rows, origin: stored.origin }.write(applied, applied.len() as u32)
    }
}

/// What is to be done until a database is that of its program.
struct Due<'m, E: Engine> {
    /// The steps that are missing, with their numbers.
    steps: Vec<(u32, &'m Step<E>)>,
    /// How many steps are stored.
    version: u32,
    /// Whether there is nothing that they could change, so that they are only noted.
    is_new: bool,
    /// What the database is with them, until it is set up.
    origin: Origin,
}

impl<E: Engine> Due<'_, E> {
    /// Returns whether the database is to be set up behind the steps.
    fn sets_up(&self) -> bool {
        self.origin == Origin::BeingSetUp
    }

    /// Returns the names of all that is to be done, in order, and the numbers of steps. Those that are only noted are a part of the set-up.
    fn names(&self) -> impl Iterator<Item = (Option<u32>, &str)> {
        let run = if self.is_new { &[] } else { &*self.steps };
        let steps = run.iter().map(|(number, step)| (Some(*number), &*step.name));
        let is_to_be_set_up = self.sets_up() || (self.is_new && !self.steps.is_empty());
        steps.chain(is_to_be_set_up.then_some((None, SET_UP)))
    }
}

/// A migration of a database, by the one whose turn it is.
struct Migration<'d, E: Engine> {
    database: &'d Database<E>,
    rows: Table<MigrationRow, E>,
    /// What the database is, until it is set up behind the steps.
    origin: Origin,
}

impl<E: Engine> Migration<'_, E> {
    /// Notes that the database was new when these steps were the last ones, behind which it has so many (V3).
    fn note_new(&self, missing: Vec<(u32, &Step<E>)>, steps: u32) -> Result<Vec<AppliedMigration>> {
        let began = Instant::now();
        let noted = |(number, step): (u32, &Step<E>)| {
            AppliedMigration::now(number, &step.name, MigrationOutcome::NewDatabase)
        };
        let applied: Vec<_> = missing.into_iter().map(noted).collect();
        self.write(&applied, steps)?;
        applied.iter().for_each(|applied| trace::migration_applied(applied, began.elapsed()));
        Ok(applied)
    }

    /// Runs what sets a new database up, and notes that it has.
    fn set_up(&self, body: Option<&RunBody<E>>, steps: u32) -> Result<()> {
        let made = body.map_or(Ok(()), |body| body(self.database));
        let is_set_up = Migration { origin: Origin::New, rows: self.rows.clone(), ..*self };
        let noted = made.and_then(|()| is_set_up.write(&[], steps));
        noted.map_err(|error| self.failed(0, SET_UP, error, ""))
    }

    /// Applies one step, behind which it is stored that it was.
    fn apply(&self, number: u32, step: &Step<E>) -> Result<AppliedMigration> {
        let began = Instant::now();
        let applied = |outcome| AppliedMigration::now(number, &step.name, outcome);
        // What the last attempt has noted, which is the one that has committed.
        let noted = RefCell::new(None);
        let made = step.action.apply(self.database, &|tx| {
            let applied = applied(MigrationOutcome::Applied);
            self.note(tx, slice::from_ref(&applied), number)?;
            noted.replace(Some(applied));
            Ok(())
        });
        let noted = made.and_then(|made| match (made, noted.take()) {
            (Made::Noted, Some(applied)) => Ok(applied),
            (made, _) => {
                let applied = applied(made.outcome());
                self.write(slice::from_ref(&applied), number).map(|()| applied)
            }
        });
        let applied = noted.map_err(|error| {
            let note = self.note_on_failure(number, step, &error);
            self.failed(number, &step.name, error, note)
        })?;
        trace::migration_applied(&applied, began.elapsed());
        Ok(applied)
    }

    /// Notes that these steps were applied, so that there are so many, by a transaction of its own, and returns when it is stored.
    fn write(&self, applied: &[AppliedMigration], steps: u32) -> Result<()> {
        let shared: &DatabaseShared<E> = &self.database.shared;
        let written = attempt::run(shared, RetryPolicy::internal(shared.retries), &mut |_| (), |tx| {
            self.note(tx, applied, steps)
        });
        shared.answer(written, Durability::Stored)
    }

    fn note(&self, tx: &mut Transaction<'_, E>, applied: &[AppliedMigration], steps: u32) -> Result<()> {
        self.rows.upsert(tx, &MigrationRow::of_database(self.origin, steps))?;
        applied.iter().try_for_each(|step| self.rows.insert(tx, &MigrationRow::of_step(step)).map(drop))
    }

    /// Returns what else there is to know of a step that has failed. Of the first one: no step is noted, so that a program may have made the
    /// tables before it has migrated.
    fn note_on_failure(&self, number: u32, step: &Step<E>, error: &Error) -> &'static str {
        if self.origin == Origin::BeingSetUp {
            SET_UP_AFTER
        } else if number == 1 && step.action.meets_later_tables(self.database, error) {
            TABLES_BEFORE
        } else {
            ""
        }
    }

    /// Makes the error of a step that has failed.
    fn failed(&self, number: u32, name: &str, error: Error, note: &'static str) -> Error {
        match error {
            // Of another database it is an error of the step.
            Error::Closed if self.database.shared.is_closed() => Error::Closed,
            error => Error::MigrationFailed(MigrationFailed::new(number, name, error, note)),
        }
    }
}
