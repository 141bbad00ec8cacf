//! The rows of a table at one instance, a batch at a time.

use std::ops::{Bound, ControlFlow};

use ensilo::encoded::EncodedScan;
use ensilo::{Database, DynamicTable, Error};

use crate::tables::statement::EncodedRow;

/// A batch ends with the row by which it has so many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// The most rows of a batch.
const BATCH_ROWS_MAX: usize = 512;

/// Reads the rows of a table at one instance in the order of their primary keys, a batch at a time, and ends after the first error.
pub(super) struct Batches {
    db: Database,
    table: DynamicTable,
    /// Where the next batch begins; `None` behind the last one.
    next: Option<Bound<Vec<u8>>>,
}

impl Batches {
    /// Returns the rows of a table in a database, if it has such a table.
    pub(super) fn of(db: &Database, table: &str) -> Result<Option<Self>, Error> {
        let table = match db.open_dynamic_table(table) {
            Err(Error::UnknownTable(_)) => return Ok(None),
            opened => opened?,
        };
        Ok(Some(Batches { db: db.clone(), table, next: Some(Bound::Unbounded) }))
    }

    fn read(&self, low: Bound<&[u8]>) -> Result<Vec<EncodedRow>, Error> {
        let scan = EncodedScan {
            index: None,
            low,
            high: Bound::Unbounded,
            of_prefixes: false,
            is_reverse: false,
            limit: BATCH_ROWS_MAX,
        };
        self.db.read(|tx| {
            let (mut rows, mut bytes) = (Vec::new(), 0);
            self.table.encoded().scan(tx, scan, |key, row| {
                bytes += key.len() + row.len();
                rows.push((key.to_vec(), row));
                if bytes < BATCH_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            Ok(rows)
        })
    }
}

impl Iterator for Batches {
    type Item = Result<Vec<EncodedRow>, Error>;

    /// Returns the next rows, at least one.
    fn next(&mut self) -> Option<Self::Item> {
        let low = self.next.take()?;
        let rows = match self.read(low.as_ref().map(Vec::as_slice)) {
            Ok(rows) => rows,
            Err(error) => return Some(Err(error)),
        };
        let (last, _) = rows.last()?;
        self.next = Some(Bound::Excluded(last.clone()));
        Some(Ok(rows))
    }
}

/// Returns how many rows a table has in a database.
pub(super) fn count(db: &Database, table: &str) -> Result<u64, Error> {
    let batches = Batches::of(db, table)?.into_iter().flatten();
    batches.map(|batch| Ok(batch?.len() as u64)).sum()
}

#[cfg(test)]
mod tests {
    use ensilo::Row;

    use super::*;

    #[derive(Row)]
    #[row(table = "document")]
    struct Document {
        #[row(key)]
        id: u32,
        text: String,
    }

    /// The lengths of rows that come before say nothing of those that come after.
    #[test]
    fn a_batch_has_a_bound_where_long_rows_come_after_short_ones() {
        const LONG: usize = 300_000;
        let db = Database::in_memory().unwrap();
        let table = db.create_table().unwrap();
        for id in 0..1_000 {
            let len = if id < 980 { 1 } else { LONG };
            db.transact(|tx| table.insert(tx, &Document { id, text: "x".repeat(len) })).unwrap();
        }
        let mut ids = Vec::new();
        for batch in Batches::of(&db, "document").unwrap().unwrap() {
            let batch = batch.unwrap();
            let bytes: usize = batch.iter().map(|(key, row)| key.len() + row.len()).sum();
            assert!(bytes < BATCH_BYTES + LONG + 100 && batch.len() <= BATCH_ROWS_MAX, "{bytes}");
            ids.extend(batch.into_iter().map(|(key, _)| u32::from_be_bytes(key.try_into().unwrap())));
        }
        assert_eq!(ids, (0..1_000).collect::<Vec<u32>>());
    }
}
