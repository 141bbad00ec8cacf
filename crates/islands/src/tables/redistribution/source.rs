//! What tables are copied from.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::row::{KeyPart, Schema};
use ensilo::{Database, Error};

use super::batches::Batches;
use super::replicas::check_replicas;
use super::{DatabaseOptions, RedistributionError};
use crate::instance::{StoredInstance, stored_instance};
use crate::islands::{
    CommitUnit, Islands, IslandsOptions, Unfinished, check, directory_of, holds_instances,
    look_into as look_into_instance,
};
use crate::placement::{Instances, Placement, Plan};
use crate::tables::database::RESERVED;
use crate::tables::partitioning::AnyPartitioning;
use crate::tables::program::{NOTES, TableProgram, stored_partitionings};
use crate::topology::Topology;

/// How long transactions may stay in doubt when all instances are open.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often is looked whether they are.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// See the module's documentation. Nobody else writes to it as long as it exists.
pub(super) struct Source {
    /// One for each instance. They are closed before the instances end.
    databases: Vec<Database>,
    pub(super) tables: Vec<SourceTable>,
    pub(super) workers: u16,
    pub(super) unit: CommitUnit,
    /// `None` for a single database.
    _islands: Option<Islands<TableProgram>>,
}

/// A table of the source.
pub(super) struct SourceTable {
    pub(super) schema: Schema,
    pub(super) parts: Vec<KeyPart>,
    /// `None` in a single database.
    pub(super) partitioning: Option<AnyPartitioning>,
}

impl Source {
    pub(super) fn open(directory: &Path, database: &DatabaseOptions) -> Result<Self, RedistributionError> {
        if Unfinished::is_in(directory) {
            let message = "holds a copy that was not finished: name what it was made from";
            return Err(foreign(directory, message));
        }
        match holds_instances(directory) {
            true => Source::open_instances(directory, database),
            false => Source::open_single(directory, database),
        }
    }

    fn open_instances(directory: &Path, database: &DatabaseOptions) -> Result<Self, RedistributionError> {
        let StoredInstance { number, workers, commits_by_epochs } = look_into(directory, database)?;
        let unit = if commits_by_epochs { CommitUnit::Epoch } else { CommitUnit::Transaction };
        let database = DatabaseOptions::clone(database);
        let islands = options_of(number.instances)?
            .workers(workers)
            .commit_unit(unit)
            .directory(directory)
            .database(move || database())
            .open::<TableProgram>()
            .map_err(RedistributionError::Source)?;
        wait_until_decided(&islands)?;
        let databases = databases_of(&islands);
        let tables = partitioned_tables(&islands, &databases)?;
        tables.iter().try_for_each(|table| check_replicas(&databases, table))?;
        Ok(Source { databases, tables, workers, unit, _islands: Some(islands) })
    }

    fn open_single(directory: &Path, database: &DatabaseOptions) -> Result<Self, RedistributionError> {
        let db = database().for_reading().open(directory).map_err(RedistributionError::of_source)?;
        db.wait_until_loaded().map_err(RedistributionError::of_source)?;
        match stored_instance(&db).map_err(RedistributionError::of_source)? {
            Some(StoredInstance { number, .. }) if number.instances > 1 => {
                return Err(foreign(directory, "is one instance of several: name the directory above it"));
            }
            // Up to where it counts stands beside it.
            Some(StoredInstance { commits_by_epochs: true, .. }) => {
                return Err(foreign(
                    directory,
                    "is an instance that commits by epochs: name the directory above it",
                ));
            }
            Some(_) | None => {}
        }
        let noted = stored_partitionings(&db).map_err(RedistributionError::of_source)?;
        let noted: BTreeMap<_, _> = noted.into_iter().collect();
        let names = db.list_tables().map_err(RedistributionError::of_source)?;
        let names = names.iter().filter(|name| !name.starts_with(RESERVED));
        let table = |name: &String| table_of(db.schema(name)?, noted.get(name).cloned());
        let tables = names.map(table).collect::<Result<_, Error>>();
        Ok(Source {
            tables: tables.map_err(RedistributionError::of_source)?,
            databases: vec![db],
            workers: 1,
            unit: CommitUnit::Transaction,
            _islands: None,
        })
    }

    pub(super) fn instances(&self) -> u16 {
        self.databases.len() as u16
    }

    /// Returns the rows of a table, for each instance that has some of its own.
    pub(super) fn rows_of(&self, table: &SourceTable) -> Result<Vec<Batches>, Error> {
        let is_replicated = table.partitioning == Some(AnyPartitioning::Replicated);
        let read = if is_replicated { &self.databases[..1] } else { &self.databases };
        let mut rows = Vec::new();
        for db in read {
            rows.extend(Batches::of(db, table.schema.name())?);
        }
        Ok(rows)
    }
}

/// Returns the options of so many instances, wherever the operating system has them run.
pub(super) fn options_of(instances: u16) -> Result<IslandsOptions, RedistributionError> {
    let topology = Topology::of_this_machine().map_err(|error| {
        RedistributionError::Instances(crate::instance::InstanceError::Io(std::io::Error::other(error)))
    })?;
    Ok(IslandsOptions::new(Plan::new(&topology, Instances::Count(instances.into()), Placement::System)))
}

/// Returns the database of each instance.
pub(super) fn databases_of(islands: &Islands<TableProgram>) -> Vec<Database> {
    let local = |instance| islands.local(instance).map(|(db, _)| db.clone());
    (0..islands.instances() as u16).filter_map(local).collect()
}

/// Returns what the files of the first instance say, which nobody has open.
fn look_into(directory: &Path, database: &DatabaseOptions) -> Result<StoredInstance, RedistributionError> {
    let look = |directory: &Path| look_into_instance(directory, database());
    check(directory, &look).map_err(RedistributionError::Source)?;
    let first = directory_of(directory, 0);
    let options = database().for_reading().answer_while_loading(true);
    let db = options.open(first).map_err(RedistributionError::of_source)?;
    let tables = db.list_tables().map_err(RedistributionError::of_source)?;
    let stored = stored_instance(&db).map_err(RedistributionError::of_source)?;
    match stored {
        None => Err(foreign(directory, "has a directory instance-0, which holds no instance")),
        Some(_) if !tables.iter().any(|table| table == NOTES) => {
            let message = "is of instances with a program of their own, which alone knows where rows belong: \
                           only what an IslandDatabase has stored can be redistributed";
            Err(foreign(directory, message))
        }
        Some(stored) => Ok(stored),
    }
}

fn foreign(directory: &Path, message: &str) -> RedistributionError {
    RedistributionError::Foreign(format!("{} {message}", directory.display()))
}

/// Waits until each part that was prepared before a crash has its decision.
fn wait_until_decided(islands: &Islands<TableProgram>) -> Result<(), RedistributionError> {
    let begin = Instant::now();
    loop {
        let instances = 0..islands.instances() as u16;
        let in_doubt: Vec<_> = instances.flat_map(|instance| islands.in_doubt(instance)).collect();
        if in_doubt.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            return Err(RedistributionError::InDoubt(in_doubt));
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

/// Returns the tables of instances. One that is not noted everywhere has no rows yet.
fn partitioned_tables(
    islands: &Islands<TableProgram>,
    databases: &[Database],
) -> Result<Vec<SourceTable>, RedistributionError> {
    let mut noted = BTreeMap::new();
    for (_, program) in (0..databases.len() as u16).filter_map(|instance| islands.local(instance)) {
        noted.extend(program.partitionings().map_err(RedistributionError::of_source)?);
    }
    databases.iter().try_for_each(|db| check_that_noted(db, &noted))?;
    let schema_of = |name: &str| databases.iter().find_map(|db| db.schema(name).ok());
    let with_schema = noted.into_iter().filter_map(|(name, noted)| Some((schema_of(&name)?, noted)));
    let tables = with_schema.map(|(schema, noted)| table_of(schema, Some(noted)));
    tables.collect::<Result<_, Error>>().map_err(RedistributionError::of_source)
}

/// Checks that a database has no rows in tables of which nobody knows how they are placed.
fn check_that_noted(
    db: &Database,
    noted: &BTreeMap<String, AnyPartitioning>,
) -> Result<(), RedistributionError> {
    let names = db.list_tables().map_err(RedistributionError::of_source)?;
    for name in names.iter().filter(|name| !name.starts_with(RESERVED) && !noted.contains_key(*name)) {
        let rows = Batches::of(db, name).map_err(RedistributionError::of_source)?;
        if has_rows(rows).map_err(RedistributionError::of_source)? {
            let message =
                "was written to at an instance itself, and has no partitioning: drop it, or copy its rows";
            return Err(RedistributionError::Unfit(format!("table {name} {message}")));
        }
    }
    Ok(())
}

fn has_rows(rows: Option<Batches>) -> Result<bool, Error> {
    Ok(rows.and_then(|mut rows| rows.next()).transpose()?.is_some())
}

fn table_of(schema: Schema, partitioning: Option<AnyPartitioning>) -> Result<SourceTable, Error> {
    Ok(SourceTable { parts: schema.key_types(), schema, partitioning })
}

#[cfg(test)]
mod tests {
    use ensilo::Row;

    use super::*;

    #[derive(Row)]
    #[row(table = "event")]
    struct Event {
        #[row(key)]
        id: u32,
    }

    #[test]
    fn rows_that_cannot_be_read_are_an_error_and_no_rows() {
        let db = Database::in_memory().unwrap();
        let events = db.create_table().unwrap();
        let there = || has_rows(Batches::of(&db, "event").unwrap());
        assert!(!there().unwrap() && !has_rows(None).unwrap());
        db.transact(|tx| events.insert(tx, &Event { id: 1 })).unwrap();
        assert!(there().unwrap());
        let rows = Batches::of(&db, "event").unwrap();
        db.close().unwrap();
        assert!(matches!(has_rows(rows), Err(Error::Closed)));
    }
}
