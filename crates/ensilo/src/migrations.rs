//! Migrations: named steps, in order, from one version of a program to the next, and a note in the database of each that was applied.
//!
//! - `action`: what a step does;
//! - `applied`: what a program is told of a step that was applied;
//! - `rows`: what is stored of it;
//! - `fit`: whether the steps of a program are those of the database;
//! - `migrate`: applies what is missing;
//! - `turn`: one caller at a time does.
//!
//! # Invariants
//! - V1: a step is applied behind all before it. What is stored has the numbers from 1 on, without a gap, and how many they are stands in a row of its own, which is there since the table is: rows that were lost are missed.
//! - V2: a step's row is written by the transaction that changes the catalog or the rows for it, so that both are there after a crash, or neither. For a
//!   closure that is given the database it is written behind it: such a closure may run again.
//! - V3: that a database was new is stored before anything is made in it. So a crash while it is set up leaves one that is set up again, and no
//!   step of which is applied to what the newest version of the program has made.

mod action;
mod applied;
mod fit;
mod migrate;
mod rows;
mod turn;

use std::fmt;

use ensilo_engine::Engine;
use ensilo_row::{Order, Schema, SchemaChange};

use self::action::{Action, NewIndex};
pub use self::applied::{AppliedMigration, MigrationOutcome};
pub(crate) use self::turn::MigrationTurns;
use crate::database::Database;
use crate::transaction::Transaction;
use crate::{Result, Silo};

/// The steps from the first version of a program to the newest one, in order, for [`Database::migrate`].
///
/// Each has a name of its own, which is stored when it was applied. A new version of the program adds steps at the end; those that are there
/// keep their place and their name, and do what they did, for databases that do not have them yet.
///
/// ```
/// use ensilo::{ColumnType, Database, Error, Migrations, Order, Row, SchemaChange};
///
/// # mod before {
/// #     #[derive(ensilo::Row)]
/// #     #[row(table = "customer")]
/// #     pub(crate) struct Customer { #[row(key)] pub(crate) id: u32, pub(crate) name: String }
/// # }
/// /// A customer, as of the newest version.
/// #[derive(Row)]
/// #[row(table = "customer", index(name = "by_level", columns(level)))]
/// struct Customer {
///     #[row(key)]
///     id: u32,
///     full_name: String,
///     level: u8,
/// }
///
/// fn migrations() -> Migrations {
///     let levels = SchemaChange::new().rename("name", "full_name").add("level", ColumnType::U8, 1u8);
///     Migrations::new()
///         .change_table("customers have a level", "customer", levels)
///         .create_index("customers are found by level", "customer", "by_level", [("level", Order::Ascending)])
///         .transact("the first customers have level 2", |db, tx| {
///             let customers = match db.open_dynamic_table("customer") {
///                 Err(Error::UnknownTable(_)) => return Ok(()), // it is made later, as of the newest version
///                 opened => opened?,
///             };
///             let mut first = Vec::new();
///             customers.scan().limit(10).for_each(tx, |key, _| first.push(key.to_vec()))?;
///             first.iter().try_for_each(|key| customers.update(tx, key, &[("level", 2u8.into())]))
///         })
/// }
///
/// # fn main() -> ensilo::Result<()> {
/// let db = Database::in_memory()?;
/// # let old = db.table::<before::Customer>()?;
/// # db.transact(|tx| old.insert(tx, &before::Customer { id: 7, name: "Ada".to_owned() }))?;
/// db.migrate(&migrations())?;
/// let customers = db.table::<Customer>()?;
/// # let ada = db.transact(|tx| customers.get(tx, 7))?.expect("she is there");
/// # assert_eq!((ada.full_name.as_str(), ada.level, ada.id), ("Ada", 2, 7));
/// assert_eq!(db.migration_version()?, 3);
/// assert!(db.migrate(&migrations())?.is_empty()); // as the next time that the program starts
/// # Ok(()) }
/// ```
///
/// # Which steps are applied when
/// - *In a new database*, which has no tables and in which no step ever ran, nothing is to be changed: all steps are stored as applied, and none runs. Its
///   tables are made as of the newest version, by [`Database::table`] or by [`Migrations::on_new_database`]. So a program migrates
///   before it opens tables. As long as there are no tables a database stays new: the steps of a later version are stored as applied, too, and it
///   is set up behind them as that version says. A version without steps of its own sets up nothing, unless it is the first.
/// - *A database with tables* of which no steps are stored is one of the first version: all steps are applied.
/// - A step that is given the name of a table which is not there has nothing to do and counts as applied: the program makes that table later, as of the newest
///   version. What [`Database::migrate`] returns says so ([`MigrationOutcome::TableMissing`]). Closures run, and find out for
///   themselves: they do nothing where [`Error::UnknownTable`](crate::Error::UnknownTable) says that a table is not there.
///
/// # What closures may use
/// Tables as they are between the step before and the step behind: a row type of the newest version fits them at the end only. So a closure has row types of
/// its own, which stay as they are, or uses [`DynamicTable`](crate::DynamicTable)s, and opens them itself: handles from before a step that
/// has changed the table answer [`TableChanged`](crate::Error::TableChanged).
///
/// Such a row type has no `#[row(key, auto)]`: numbers are not made within a transaction, so that opening a table by a type that has it is
/// [`NestedRequest`](crate::Error::NestedRequest) in a [`transact`](Migrations::transact) step, where the table gives no keys yet. Rows that a step moves have
/// their keys already, and when the program opens the table behind it, the numbers go on behind the largest.
///
/// # Crashes
/// After a crash the database is between two steps, and the next call goes on from there. A change of a table or an index, and a
/// [`transact`](Migrations::transact) step, are stored with their note, and so are applied once. [`Migrations::run`] says what holds for it.
pub struct Migrations<E: Engine = Silo> {
    steps: Vec<Step<E>>,
    on_new_database: Option<RunBody<E>>,
}

/// A step, and what it is called.
struct Step<E: Engine> {
    name: String,
    action: Action<E>,
}

/// A closure that is given the database.
type RunBody<E> = Box<dyn Fn(&Database<E>) -> Result<()> + Send + Sync>;

impl<E: Engine> Migrations<E> {
    /// Returns a list without steps.
    #[must_use]
    pub fn new() -> Self {
        Migrations { steps: Vec::new(), on_new_database: None }
    }

    /// Changes the columns of a table, as [`Database::change_table`] does. Rows stay as they are, however many there are.
    #[must_use]
    pub fn change_table(
        self,
        name: impl Into<String>,
        table: impl Into<String>,
        change: SchemaChange,
    ) -> Self {
        self.then(name, Action::ChangeTable { table: table.into(), change })
    }

    /// Creates a table with the indexes of its schema, as [`Database::create_dynamic_table`] does: one that rows are moved into by a later step.
    /// A table that is only new needs no step, since [`Database::table`] makes it.
    ///
    /// The schema is that of the version in which the step was added, such as `T::schema().clone()` for a row type that is kept for it.
    ///
    /// In a new database the step is only noted, as all are, and the table is there once the program opens it. So a step of a *later* release that moves rows into
    /// it may find them and not the table, if that program had not got so far. A program that opens all of its tables right after
    /// [`Database::migrate`] has none of this, and a step that fails with [`Error::UnknownTable`](crate::Error::UnknownTable) loses nothing: let only the
    /// table that rows come *from* be missing without an error.
    #[must_use]
    pub fn create_table(self, name: impl Into<String>, schema: Schema) -> Self {
        self.then(name, Action::CreateTable(Box::new(schema)))
    }

    /// Drops a table, as [`Database::drop_table`] does. At the memory limit it takes a little memory, for its note.
    #[must_use]
    pub fn drop_table(self, name: impl Into<String>, table: impl Into<String>) -> Self {
        self.then(name, Action::DropTable(table.into()))
    }

    /// Creates an index, as [`Database::create_index`] does: beside requests, and in a time that depends on the number of rows. After a crash meanwhile the
    /// step is applied from its beginning.
    #[must_use]
    pub fn create_index<'c>(
        self,
        name: impl Into<String>,
        table: impl Into<String>,
        index: impl Into<String>,
        columns: impl IntoIterator<Item = (&'c str, Order)>,
    ) -> Self {
        self.then(name, Action::CreateIndex(NewIndex::new(table, index, columns, false)))
    }

    /// Like [`Migrations::create_index`], for an index in which no two rows may have the same values, as
    /// [`Database::create_unique_index`] does. Where two rows have, the migration fails with [`Error::DuplicateKey`](crate::Error::DuplicateKey) inside.
    #[must_use]
    pub fn create_unique_index<'c>(
        self,
        name: impl Into<String>,
        table: impl Into<String>,
        index: impl Into<String>,
        columns: impl IntoIterator<Item = (&'c str, Order)>,
    ) -> Self {
        self.then(name, Action::CreateIndex(NewIndex::new(table, index, columns, true)))
    }

    /// Drops an index, as [`Database::drop_index`] does.
    #[must_use]
    pub fn drop_index(
        self,
        name: impl Into<String>,
        table: impl Into<String>,
        index: impl Into<String>,
    ) -> Self {
        self.then(name, Action::DropIndex { table: table.into(), index: index.into() })
    }

    /// Runs `body` as one transaction, in which the step is also noted: it commits once, whatever happens. As with [`Database::transact`] the closure
    /// may run several times until it commits.
    ///
    /// For more than some thousand rows, [`Migrations::transact_while`].
    #[must_use]
    pub fn transact(
        self,
        name: impl Into<String>,
        body: impl Fn(&Database<E>, &mut Transaction<'_, E>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.transact_while(name, move |db, tx| body(db, tx).map(|()| false))
    }

    /// Runs `body` as a transaction, and again as another one as long as it returns `true`: for many rows, a batch in each transaction. The last one also notes
    /// the step. A crash in between leaves the batches that have committed, and the next call goes on with what is left. So the closure
    /// finds what is to be done by what is there, such as rows that are still in the table that they move from.
    ///
    /// ```
    /// # use ensilo::{Database, Error, Migrations, Row};
    /// # #[derive(Row)]
    /// # #[row(table = "visit")]
    /// # struct Visit { #[row(key)] at: u64, page: u32 }
    /// # #[derive(Row)]
    /// # #[row(table = "visit_by_page")]
    /// # struct VisitByPage { #[row(key)] page: u32, #[row(key)] at: u64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let visits = db.table::<Visit>()?;
    /// # db.transact(|tx| (0..2500).try_for_each(|at| visits.insert(tx, &Visit { at, page: at as u32 % 7 }).map(drop)))?;
    /// let migrations = Migrations::new()
    ///     .create_table("visits by page", VisitByPage::schema().clone())
    ///     .transact_while("visits move", |db, tx| {
    ///         let from = match db.open_table::<Visit>() {
    ///             Err(Error::UnknownTable(_)) => return Ok(false), // nothing is to move
    ///             opened => opened?,
    ///         };
    ///         let to = db.open_table::<VisitByPage>()?; // if this one is missing, that is an error
    ///         let batch = from.scan().limit(1000);
    ///         for Visit { at, page } in batch.clone().rows(tx)? {
    ///             to.insert(tx, &VisitByPage { page, at })?;
    ///         }
    ///         Ok(batch.delete(tx)? > 0)
    ///     })
    ///     .drop_table("visits by time go", "visit");
    /// db.migrate(&migrations)?;
    /// # assert_eq!(db.list_tables()?, ["visit_by_page"]);
    /// # let to = db.table::<VisitByPage>()?;
    /// # assert_eq!(db.transact(|tx| to.scan().count(tx))?, 2500);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn transact_while(
        self,
        name: impl Into<String>,
        body: impl Fn(&Database<E>, &mut Transaction<'_, E>) -> Result<bool> + Send + Sync + 'static,
    ) -> Self {
        self.then(name, Action::Transact(Box::new(body)))
    }

    /// Runs `body`, which may do anything with the database, outside of transactions: several transactions, sequences,
    /// [`Database::table_with_changes`].
    ///
    /// The step is noted when `body` has returned. A crash before that has it run again, also if it had done all that it does: it
    /// has to be such that a second run does no harm. It must neither call [`Database::migrate`] nor wait for a thread that does.
    #[must_use]
    pub fn run(
        self,
        name: impl Into<String>,
        body: impl Fn(&Database<E>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.then(name, Action::Run(Box::new(body)))
    }

    /// Runs `body` in a new database, in which no step is: to make its tables as of the newest version, and the rows that they begin with. Tables
    /// that [`Database::table`] makes anyway need not be made here. It takes the place of a closure that was given before.
    ///
    /// As with [`Migrations::run`], a crash before it has returned has it run again, then beside what it has made: use
    /// [`Database::table`] and [`Table::upsert`](crate::Table::upsert). Steps that later versions add are applied before it is run again, where it has made
    /// tables. Until it has returned, a database that is open for reading only is refused by [`Database::migrate`], and so is a dump of all tables.
    ///
    /// ```
    /// # use ensilo::{Database, Migrations, Row};
    /// # #[derive(Row)] #[row(table = "role")] struct Role { #[row(key)] id: u8, name: String }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let migrations = Migrations::new().on_new_database(|db| {
    ///     let roles = db.table::<Role>()?;
    ///     db.transact(|tx| roles.upsert(tx, &Role { id: 1, name: "owner".to_owned() }))
    /// });
    /// db.migrate(&migrations)?;
    /// # let roles = db.table::<Role>()?;
    /// # assert_eq!(db.transact(|tx| roles.get(tx, 1))?.expect("it is there").name, "owner");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn on_new_database(
        mut self,
        body: impl Fn(&Database<E>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.on_new_database = Some(Box::new(body));
        self
    }

    /// Returns the names of the steps, in order. Their number is the version that a database has when all are applied.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.steps.iter().map(|step| &*step.name)
    }

    fn then(mut self, name: impl Into<String>, action: Action<E>) -> Self {
        self.steps.push(Step { name: name.into(), action });
        self
    }
}

impl<E: Engine> Default for Migrations<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Engine> fmt::Debug for Migrations<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names().collect();
        f.debug_struct("Migrations").field("names", &names).finish_non_exhaustive()
    }
}
