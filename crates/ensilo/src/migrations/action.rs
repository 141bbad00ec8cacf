//! What a step does.

use ensilo_engine::Engine;
use ensilo_row::{IndexSchema, Order, Schema, SchemaChange, SchemaError};

use super::{MigrationOutcome, RunBody};
use crate::attempt::{self, RetryPolicy};
use crate::catalog::{AlsoWrites, check_is_of_program};
use crate::database::Database;
use crate::durability::Durability;
use crate::outcome::Visible;
use crate::transaction::Transaction;
use crate::{Error, Result};

/// A closure that is run as a transaction, and as another one if it returns `true`.
type TransactBody<E> = Box<dyn Fn(&Database<E>, &mut Transaction<'_, E>) -> Result<bool> + Send + Sync>;

/// See the module's documentation.
pub(super) enum Action<E: Engine> {
    ChangeTable { table: String, change: SchemaChange },
    CreateTable(Box<Schema>),
    DropTable(String),
    CreateIndex(NewIndex),
    DropIndex { table: String, index: String },
    Transact(TransactBody<E>),
    Run(RunBody<E>),
}

/// An index that is to be created.
pub(super) struct NewIndex {
    table: String,
    name: String,
    columns: Vec<(String, Order)>,
    is_unique: bool,
}

/// What has come of an action.
pub(super) enum Made {
    /// The transaction that has made the change has noted it, too.
    Noted,
    /// This is to be noted.
    ToNote(MigrationOutcome),
}

impl Made {
    /// Returns what has come of the step.
    pub(super) fn outcome(self) -> MigrationOutcome {
        match self {
            Made::Noted => MigrationOutcome::Applied,
            Made::ToNote(outcome) => outcome,
        }
    }
}

impl NewIndex {
    pub(super) fn new<'c>(
        table: impl Into<String>,
        name: impl Into<String>,
        columns: impl IntoIterator<Item = (&'c str, Order)>,
        is_unique: bool,
    ) -> Self {
        let columns = columns.into_iter().map(|(column, order)| (column.to_owned(), order)).collect();
        NewIndex { table: table.into(), name: name.into(), columns, is_unique }
    }

    fn create<E: Engine>(&self, db: &Database<E>, note: AlsoWrites<'_, E>) -> Result<()> {
        loop {
            let table = db.table_core(&self.table)?;
            let columns = self.columns.iter().map(|(column, order)| (&**column, *order));
            let index = IndexSchema::new(&table.schema, &*self.name, columns, self.is_unique);
            match db.shared.create_index(&table, index.map_err(Error::from_schema)?, note) {
                // Another thread has changed or truncated it meanwhile.
                Err(Error::TableChanged(_)) => {}
                created => return created,
            }
        }
    }
}

impl<E: Engine> Action<E> {
    /// Makes the change, and notes it by `note` in the same transaction where that can be.
    pub(super) fn apply(&self, db: &Database<E>, note: AlsoWrites<'_, E>) -> Result<Made> {
        self.table().map_or(Ok(()), check_is_of_program)?;
        if self.table().is_some_and(|table| db.shared.catalog.table(table).is_err()) {
            return Ok(Made::ToNote(MigrationOutcome::TableMissing));
        }
        let shared = &db.shared;
        match self {
            Action::ChangeTable { table, change } => {
                let is_changed = shared.change_table(table, change, note)?;
                return Ok(if is_changed { Made::Noted } else { Made::ToNote(MigrationOutcome::Applied) });
            }
            Action::CreateTable(schema) => drop(shared.create_table((**schema).clone(), note)?),
            Action::DropTable(table) => shared.drop_table(table, note)?,
            Action::CreateIndex(index) => index.create(db, note)?,
            Action::DropIndex { table, index } => shared.drop_index(table, index, note)?,
            Action::Transact(body) => transact(db, body, note)?,
            Action::Run(body) => {
                body(db)?;
                return Ok(Made::ToNote(MigrationOutcome::Applied));
            }
        }
        Ok(Made::Noted)
    }

    /// Returns whether the action has ended with this error because the table is there already as it is behind this step, or behind later ones, as far as
    /// the error can tell. What a closure meets is its own affair.
    pub(super) fn meets_later_tables(&self, db: &Database<E>, error: &Error) -> bool {
        match (self, error) {
            (Action::CreateTable(_), Error::TableExists(_))
            | (Action::CreateIndex(_), Error::IndexExists(_) | Error::UnknownColumn(_))
            | (Action::DropIndex { .. }, Error::UnknownIndex(_))
            | (Action::ChangeTable { .. }, Error::UnknownColumn(_)) => true,
            (Action::ChangeTable { table, change }, Error::InvalidSchema(_)) => {
                let changed = db.schema(table).map(|schema| schema.with_change(change));
                matches!(
                    changed,
                    Ok(Err(SchemaError::DuplicateColumn { .. }
                        | SchemaError::ColumnInKey { .. }
                        | SchemaError::NotWider { .. }
                        | SchemaError::BadOrder { .. }))
                )
            }
            _ => false,
        }
    }

    /// Returns the table without which there is nothing to do.
    fn table(&self) -> Option<&str> {
        match self {
            Action::ChangeTable { table, .. }
            | Action::DropTable(table)
            | Action::DropIndex { table, .. } => Some(table),
            Action::CreateIndex(index) => Some(&index.table),
            Action::CreateTable(_) | Action::Transact(_) | Action::Run(_) => None,
        }
    }
}

/// Runs a closure by one transaction after the other, until it has said that there is nothing left; that one notes it.
fn transact<E: Engine>(db: &Database<E>, body: &TransactBody<E>, note: AlsoWrites<'_, E>) -> Result<()> {
    loop {
        let policy = RetryPolicy::new(db.shared.retries);
        let outcome = attempt::run(&db.shared, policy, &mut |_| (), |tx| {
            let may_have_more = body(db, tx)?;
            if !may_have_more {
                note(tx)?;
            }
            Ok(may_have_more)
        });
        match outcome {
            // Once the last one is stored, so are all before it.
            Ok(Visible { value: true, .. }) => {}
            outcome => return db.shared.answer(outcome, Durability::Stored).map(drop),
        }
    }
}
