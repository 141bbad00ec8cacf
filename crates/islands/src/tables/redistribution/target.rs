//! What tables are copied to.

use std::path::Path;

use ensilo::{Database, DynamicTable, Error};

use super::batches::count;
use super::plan::PlannedTable;
use super::source::{databases_of, options_of};
use super::{DatabaseOptions, RedistributedTable, RedistributionError};
use crate::islands::{CommitUnit, Islands};
use crate::tables::database::have_table;
use crate::tables::program::TableProgram;

/// What the instances of a target are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) instances: u16,
    pub(super) workers: u16,
    pub(super) unit: CommitUnit,
}

/// See the module's documentation.
pub(super) struct Target {
    /// One for each instance. They are closed before the instances end.
    databases: Vec<Database>,
    islands: Islands<TableProgram>,
}

impl Target {
    /// Opens the instances, which may be unfinished, or makes them.
    pub(super) fn open(
        directory: &Path,
        shape: Shape,
        database: &DatabaseOptions,
    ) -> Result<Self, RedistributionError> {
        let database = DatabaseOptions::clone(database);
        let islands = options_of(shape.instances)?
            .workers(shape.workers)
            .commit_unit(shape.unit)
            .directory(directory)
            .database(move || database())
            .unfinished()
            .open()
            .map_err(RedistributionError::Instances)?;
        Ok(Target { databases: databases_of(&islands), islands })
    }

    /// Makes a table, and returns it at each instance.
    pub(super) fn make_table(
        &self,
        table: &PlannedTable<'_>,
    ) -> Result<Vec<(Database, DynamicTable)>, RedistributionError> {
        have_table(&self.islands, table.schema(), Some(&table.partitioning))
            .map_err(|error| RedistributionError::Unfit(error.to_string()))?;
        let at = |db: &Database| Ok((db.clone(), db.open_dynamic_table(table.name())?));
        let opened = self.databases.iter().map(at).collect::<Result<_, Error>>();
        opened.map_err(RedistributionError::of_rows(table.name()))
    }

    /// Waits until everything is stored at all instances.
    pub(super) fn store(&self) -> Result<(), RedistributionError> {
        let store = |db: &Database| db.group_member()?.ticket().wait();
        self.databases.iter().try_for_each(store).map_err(RedistributionError::of_instances)
    }

    /// Checks that each instance has as many rows as were written to it.
    pub(super) fn check(&self, tables: &[RedistributedTable]) -> Result<(), RedistributionError> {
        for table in tables {
            for (db, written) in self.databases.iter().zip(&table.rows_by_instance) {
                let found = count(db, &table.name).map_err(RedistributionError::of_rows(&table.name))?;
                if found != *written {
                    let message = format!("table {} has {found} rows instead of {written}", table.name);
                    return Err(RedistributionError::Lost(message));
                }
            }
        }
        Ok(())
    }
}
