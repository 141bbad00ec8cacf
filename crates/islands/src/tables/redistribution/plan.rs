//! Which partitioning each table gets.

use std::collections::BTreeMap;

use ensilo::row::{KeyPart, Schema};

use super::RedistributionError;
use super::beginnings::Sample;
use super::repartitioning::Repartitioning;
use super::source::{Source, SourceTable};
use crate::tables::database::problem_of;
use crate::tables::partitioning::{AnyPartitioning, first_columns};

/// What a table is to have instead of the partitioning that it has.
#[derive(Debug)]
pub(super) enum Change {
    /// A partitioning of keys with these columns.
    Given {
        partitioning: AnyPartitioning,
        parts: &'static [KeyPart],
    },
    ByName(Repartitioning),
}

/// A table, and how it is placed in the target.
pub(super) struct PlannedTable<'s> {
    pub(super) source: &'s SourceTable,
    pub(super) partitioning: AnyPartitioning,
}

impl PlannedTable<'_> {
    pub(super) fn name(&self) -> &str {
        self.source.schema.name()
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.source.schema
    }
}

/// Returns the tables of the source with their partitionings among so many instances.
pub(super) fn plan<'s>(
    source: &'s Source,
    changes: &BTreeMap<String, Change>,
    instances: u16,
) -> Result<Vec<PlannedTable<'s>>, RedistributionError> {
    let is_there = |name: &String| source.tables.iter().any(|table| table.schema.name() == name);
    if let Some(missing) = changes.keys().find(|name| !is_there(name)) {
        return Err(unfit(missing, "is not in the source"));
    }
    let planned = source.tables.iter().map(|table| {
        let partitioning = partitioning_of(source, table, changes.get(table.schema.name()), instances)?;
        let problem = problem_of(&table.schema, &table.parts, &partitioning);
        match problem.or_else(|| partitioning.problem(instances)) {
            Some(problem) => Err(unfit(table.schema.name(), &format!("cannot be {partitioning}: {problem}"))),
            None => Ok(PlannedTable { source: table, partitioning }),
        }
    });
    planned.collect()
}

fn partitioning_of(
    source: &Source,
    table: &SourceTable,
    change: Option<&Change>,
    instances: u16,
) -> Result<AnyPartitioning, RedistributionError> {
    let all = table.parts.len();
    match (change, &table.partitioning) {
        (Some(Change::Given { partitioning, parts }), _) => match *parts == table.parts {
            true => Ok(partitioning.clone()),
            false => Err(unfit(table.schema.name(), "has a primary key of other columns than the row type")),
        },
        (Some(Change::ByName(Repartitioning::Replicated)), _) => Ok(AnyPartitioning::Replicated),
        (Some(Change::ByName(Repartitioning::Hash { columns })), _) => {
            let columns = columns_of(table, columns.map_or(all, usize::from))?;
            Ok(AnyPartitioning::Hash { columns: columns as u8 })
        }
        (Some(Change::ByName(Repartitioning::Ranges { columns })), stored) => {
            let deciding = stored.as_ref().map_or(1, |stored| stored.columns(&table.parts).max(1));
            choose_ranges(source, table, columns.map_or(deciding, usize::from), instances)
        }
        (None, Some(stored)) if stored.problem(instances).is_some() => {
            choose_ranges(source, table, stored.columns(&table.parts).max(1), instances)
        }
        (None, Some(stored)) => Ok(stored.clone()),
        (None, None) => Ok(AnyPartitioning::Hash { columns: columns_of(table, all)? as u8 }),
    }
}

/// Returns this number of first columns of the table's key, if it has so many.
fn columns_of(table: &SourceTable, columns: usize) -> Result<usize, RedistributionError> {
    match table.parts.len() {
        0 => {
            Err(unfit(table.schema.name(), "has no primary key, so that nothing says where its rows belong"))
        }
        all if columns > all => {
            Err(unfit(table.schema.name(), &format!("has a primary key of {all} columns, not {columns}")))
        }
        _ => Ok(columns),
    }
}

/// Chooses ranges with about as many rows, by so many first columns of the key.
fn choose_ranges(
    source: &Source,
    table: &SourceTable,
    columns: usize,
    instances: u16,
) -> Result<AnyPartitioning, RedistributionError> {
    let (name, parts) = (table.schema.name(), &table.parts[..columns_of(table, columns)?]);
    let of_rows = RedistributionError::of_rows(name);
    let mut sample = Sample::new();
    for batch in source.rows_of(table).map_err(&of_rows)?.into_iter().flatten() {
        for (key, _) in batch.map_err(&of_rows)? {
            sample.add(first_columns(parts, &key).unwrap_or(&key));
        }
    }
    // Rows that have these columns in common stay together.
    let former = match &table.partitioning {
        Some(AnyPartitioning::Ranges { from }) => from
            .iter()
            .map(|beginning| first_columns(parts, beginning).unwrap_or(beginning).to_vec())
            .collect(),
        _ => Vec::new(),
    };
    let chosen = sample.choose(instances.into(), &former);
    let from = chosen.ok_or_else(|| {
        unfit(
            name,
            "has no rows by which beginnings of ranges can be chosen: give some, or another partitioning",
        )
    })?;
    Ok(AnyPartitioning::Ranges { from })
}

fn unfit(table: &str, what: &str) -> RedistributionError {
    RedistributionError::Unfit(format!("table {table} {what}"))
}
