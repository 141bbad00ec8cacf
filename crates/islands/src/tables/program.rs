//! What the instances of an [`IslandDatabase`](super::IslandDatabase) run.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{PoisonError, RwLock};

use ensilo::encoded::EncodedScan;
use ensilo::row::{Column, Schema};
use ensilo::{Database, DynamicTable, Error, ReadTransaction, Result, Row, Snapshot, Table, Transaction};

use super::partitioning::AnyPartitioning;
use super::statement::{Answer, EncodedRow, HaveTable, Range, Statement, Writing, from_bytes, to_bytes};
use crate::instance::{InstanceNumber, Program};

/// The table of an instance that says how its tables are placed.
pub(super) const NOTES: &str = "islands_table";

/// How the rows of a table are placed.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_table")]
struct TableNote {
    #[row(key)]
    name: String,
    /// A [`AnyPartitioning`] as a message has it.
    partitioning: Vec<u8>,
}

/// The tables of an instance: what the instances of an [`IslandDatabase`](super::IslandDatabase) run. A program whose instances are processes gives
/// it to [`run_if_instance`](crate::run_if_instance).
pub struct TableProgram {
    notes: Table<TableNote>,
    db: Database,
    opened: RwLock<HashMap<String, DynamicTable>>,
}

impl Program for TableProgram {
    fn open(db: &Database, _: InstanceNumber) -> Result<Self> {
        let notes = match db.open_table() {
            Err(Error::UnknownTable(_)) => db.create_table()?,
            opened => opened?,
        };
        Ok(TableProgram { notes, db: db.clone(), opened: RwLock::default() })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        let answer = match from_bytes(part)? {
            Statement::Write { table, how, rows } => write(tx, &self.table(&table)?, how, &rows)?,
            Statement::Delete { table, keys } => {
                let table = self.table(&table)?;
                let deleted = keys.iter().map(|key| table.encoded().delete(tx, key));
                Answer::Deleted(deleted.collect::<Result<_>>()?)
            }
            reading @ (Statement::Get { .. } | Statement::Scan { .. } | Statement::Count { .. }) => {
                self.answer(tx, &reading)?
            }
        };
        Ok(to_bytes(&answer))
    }

    fn read(&self, snapshot: &mut Snapshot<'_>, part: &[u8]) -> Result<Vec<u8>> {
        Ok(to_bytes(&self.answer(snapshot, &from_bytes(part)?)?))
    }

    fn administer(&self, request: &[u8]) -> Result<Vec<u8>> {
        let HaveTable { schema, partitioning } = from_bytes(request)?;
        let schema = Schema::decode(&schema).map_err(|error| Error::rollback(error.to_string()))?;
        let Some(partitioning) = partitioning else {
            check_same(&self.db.schema(schema.name())?, &schema)?;
            return self.stored_partitioning(schema.name()).map(|stored| to_bytes(&stored));
        };
        match self.db.create_dynamic_table(schema.clone()) {
            Err(Error::TableExists(_)) => check_same(&self.db.schema(schema.name())?, &schema)?,
            created => drop(created?),
        }
        // Behind that: what cannot be made leaves nothing. A table has no rows before its partitioning is noted at every instance.
        self.note_partitioning(schema.name(), &partitioning)?;
        Ok(to_bytes(&partitioning))
    }
}

/// Returns the partitionings of the tables of an instance, by their names; none for a database that is none of an instance.
pub(super) fn stored_partitionings(db: &Database) -> Result<Vec<(String, AnyPartitioning)>> {
    match db.open_table() {
        Err(Error::UnknownTable(_)) => Ok(Vec::new()),
        notes => noted_partitionings(db, &notes?),
    }
}

fn noted_partitionings(db: &Database, notes: &Table<TableNote>) -> Result<Vec<(String, AnyPartitioning)>> {
    let notes: Vec<(_, TableNote)> = db.read(|tx| notes.scan().collect(tx))?;
    notes.into_iter().map(|(name, note)| Ok((name, from_bytes(&note.partitioning)?))).collect()
}

impl TableProgram {
    /// Returns the partitionings of all tables, by their names.
    pub(super) fn partitionings(&self) -> Result<Vec<(String, AnyPartitioning)>> {
        noted_partitionings(&self.db, &self.notes)
    }

    fn stored_partitioning(&self, table: &str) -> Result<AnyPartitioning> {
        let note = self.db.transact(|tx| self.notes.get(tx, table.to_owned()))?;
        let unknown = || Error::rollback(format!("table {table} has no partitioning"));
        from_bytes(&note.ok_or_else(unknown)?.partitioning)
    }

    fn note_partitioning(&self, table: &str, partitioning: &AnyPartitioning) -> Result<()> {
        let note = TableNote { name: table.to_owned(), partitioning: to_bytes(partitioning) };
        self.db.transact(|tx| match self.notes.get(tx, note.name.clone())? {
            None => self.notes.upsert(tx, &note),
            Some(stored) if stored.partitioning == note.partitioning => Ok(()),
            Some(stored) => {
                let stored: AnyPartitioning = from_bytes(&stored.partitioning)?;
                let problem = format!(
                    "table {table} is stored with another partitioning: {stored}, not {partitioning}"
                );
                Err(Error::rollback(problem))
            }
        })
    }

    fn table(&self, name: &str) -> Result<DynamicTable> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(table) = opened {
            return Ok(table);
        }
        let table = self.db.open_dynamic_table(name)?;
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        opened.insert(name.to_owned(), table.clone());
        Ok(table)
    }

    /// Answers a statement that reads.
    fn answer<'t>(&self, tx: &mut impl ReadTransaction<'t>, statement: &Statement) -> Result<Answer> {
        match statement {
            Statement::Get { table, keys } => {
                let table = self.table(table)?;
                let rows = keys.iter().map(|key| table.encoded().get(tx, key));
                Ok(Answer::Got(rows.collect::<Result<_>>()?))
            }
            Statement::Scan { table, scan } => {
                let (table, mut rows) = (self.table(table)?, Vec::new());
                table.encoded().scan(tx, scan.as_encoded(), |key, row| {
                    rows.push((key.to_vec(), row));
                    ControlFlow::Continue(())
                })?;
                Ok(Answer::Rows(rows))
            }
            Statement::Count { table, scan } => {
                let (table, mut count) = (self.table(table)?, 0);
                table.encoded().scan(tx, scan.as_encoded(), |_, _| {
                    count += 1;
                    ControlFlow::Continue(())
                })?;
                Ok(Answer::Count(count))
            }
            Statement::Write { .. } | Statement::Delete { .. } => {
                Err(Error::rollback("nothing is written while a point of all instances is read"))
            }
        }
    }
}

fn write(
    tx: &mut Transaction<'_>,
    table: &DynamicTable,
    how: Writing,
    rows: &[EncodedRow],
) -> Result<Answer> {
    let table = table.encoded();
    let written = rows.iter().try_for_each(|(key, row)| match how {
        Writing::Insert => table.insert(tx, key, row),
        Writing::Upsert => table.upsert(tx, key, row),
        Writing::Replace => table.replace(tx, key, row),
    });
    match written {
        Ok(()) => Ok(Answer::Written),
        Err(Error::DuplicateKey(taken)) => Ok(Answer::Duplicate { index: taken.index().map(str::to_owned) }),
        Err(Error::MissingRow(_)) => Ok(Answer::Missing),
        Err(error) => Err(error),
    }
}

impl Range {
    fn as_encoded(&self) -> EncodedScan<'_> {
        EncodedScan {
            index: self.index.as_deref(),
            low: self.low.as_ref().map(Vec::as_slice),
            high: self.high.as_ref().map(Vec::as_slice),
            of_prefixes: self.of_prefixes,
            is_reverse: self.is_reverse,
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
        }
    }
}

/// Compares the schema of a row type with that of the table as it is.
fn check_same(stored: &Schema, wanted: &Schema) -> Result<()> {
    let differs =
        |what: String| Err(Error::rollback(format!("table {} is stored with {what}", stored.name())));
    if stored.columns() != wanted.columns() {
        return differs(format!(
            "other columns: {}, not {}",
            named(stored.columns()),
            named(wanted.columns())
        ));
    }
    if stored.primary_key() != wanted.primary_key() {
        return differs("another primary key".to_owned());
    }
    let other = wanted.indexes().iter().find(|index| stored.index(index.name()) != Some(index));
    other.map_or(Ok(()), |index| differs(format!("another index {}, or without it", index.name())))
}

fn named(columns: &[Column]) -> String {
    let null = |column: &Column| if column.nullable { ", nullable" } else { "" };
    let described = |column: &Column| format!("{} ({}{})", column.name, column.column_type, null(column));
    columns.iter().map(described).collect::<Vec<_>>().join(", ")
}

impl fmt::Debug for TableProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableProgram").field("db", &self.db).finish_non_exhaustive()
    }
}
