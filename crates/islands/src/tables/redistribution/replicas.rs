//! Checks that a replicated table has the same rows at every instance.

use ensilo::row::Schema;
use ensilo::{Database, Error};

use super::RedistributionError;
use super::batches::Batches;
use super::source::SourceTable;
use crate::tables::partitioning::AnyPartitioning;
use crate::tables::statement::EncodedRow;

/// The rows of a table at one instance, in the order of their primary keys; none where there is no such table.
type Rows = Box<dyn Iterator<Item = Result<EncodedRow, Error>>>;

/// Checks that all instances have the same rows of a replicated table: those of the first one are copied. Nobody writes to them meanwhile.
///
/// # Errors
/// [`RedistributionError::Unfit`] names the first row that differs; the rows cannot be read.
pub(super) fn check_replicas(databases: &[Database], table: &SourceTable) -> Result<(), RedistributionError> {
    if table.partitioning != Some(AnyPartitioning::Replicated) {
        return Ok(());
    }
    let name = table.schema.name();
    let found = first_difference(databases, name).map_err(RedistributionError::of_rows(name))?;
    let Some(Difference { key, instance }) = found else { return Ok(()) };
    Err(RedistributionError::Unfit(format!(
        "table {name} is replicated, and of the row with the key {} instance {instance} has not what instance 0 has: \
         one of them is not what it was; restore a copy of all",
        shown(&table.schema, &key)
    )))
}

/// A row that an instance has, and the first one has not or has otherwise, or the reverse.
struct Difference {
    key: Vec<u8>,
    instance: usize,
}

fn first_difference(databases: &[Database], table: &str) -> Result<Option<Difference>, Error> {
    let mut replicas = databases.iter().map(|db| rows_of(db, table)).collect::<Result<Vec<Rows>, Error>>()?;
    let [first, others @ ..] = &mut *replicas else { return Ok(None) };
    loop {
        let expected = first.next().transpose()?;
        for (instance, other) in (1..).zip(&mut *others) {
            let found = other.next().transpose()?;
            if found != expected {
                let key =
                    [found, expected].into_iter().flatten().map(|(key, _)| key).min().unwrap_or_default();
                return Ok(Some(Difference { key, instance }));
            }
        }
        if expected.is_none() {
            return Ok(None);
        }
    }
}

fn rows_of(db: &Database, table: &str) -> Result<Rows, Error> {
    let batches = Batches::of(db, table)?.into_iter().flatten();
    Ok(Box::new(batches.flat_map(|batch| match batch {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    })))
}

/// Returns the values of a key as a text.
fn shown(schema: &Schema, key: &[u8]) -> String {
    let mut values = Vec::new();
    match schema.decode_key(key, &mut values) {
        Ok(()) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Err(_) => format!("{key:?}"),
    }
}

#[cfg(test)]
mod tests {
    use ensilo::{Row, Table};

    use super::*;

    #[derive(Row)]
    #[row(table = "rate")]
    struct Rate {
        #[row(key)]
        id: u32,
        name: String,
    }

    fn database(rates: impl IntoIterator<Item = (u32, &'static str)>) -> Database {
        let db = Database::in_memory().unwrap();
        let there: Table<Rate> = db.create_table().unwrap();
        let mut rates = rates.into_iter().map(|(id, name)| Rate { id, name: name.to_owned() });
        db.transact(|tx| rates.try_for_each(|rate| there.insert(tx, &rate).map(drop))).unwrap();
        db
    }

    fn difference(databases: &[Database]) -> Option<(u32, usize)> {
        let found = first_difference(databases, "rate").unwrap();
        found.map(|Difference { key, instance }| (u32::from_be_bytes(key.try_into().unwrap()), instance))
    }

    /// Also with as many rows as each other.
    #[test]
    fn the_first_row_that_differs_is_found_whatever_it_has() {
        let many = || database((0..2000).map(|id| (id, "x")));
        let cases = [
            (many(), None),
            (database((0..2000).map(|id| (id, if id == 1700 { "y" } else { "x" }))), Some(1700)),
            (database((0..2000).filter(|id| *id != 600).map(|id| (id, "x"))), Some(600)),
            (database((0..2001).map(|id| (id, "x"))), Some(2000)),
            (database((0..2001).filter(|id| *id != 3).map(|id| (id, "x"))), Some(3)),
            (database([]), Some(0)),
            (Database::in_memory().unwrap(), Some(0)),
        ];
        let first = many();
        for (other, expected) in cases {
            let found = difference(&[first.clone(), many(), other.clone()]);
            assert_eq!(found, expected.map(|key| (key, 2)));
            assert_eq!(difference(&[other, first.clone()]), expected.map(|key| (key, 1)));
        }
    }
}
