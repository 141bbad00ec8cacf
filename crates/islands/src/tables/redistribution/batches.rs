//! The rows of a table at one instance, a batch at a time.

use std::ops::Bound;

use ensilo::encoded::EncodedScan;
use ensilo::{Database, DynamicTable, Error};

use crate::tables::statement::EncodedRow;

/// About so many bytes a batch has, if rows are as long as those of the batch before.
const BATCH_BYTES: usize = 1 << 20;

/// The most rows of a batch: where they come after short ones, as many of the longest fit into a transaction.
const BATCH_ROWS_MAX: usize = 512;

/// The rows of the first batch: nothing is known of their lengths.
const FIRST_ROWS: usize = 64;

/// Reads the rows of a table at one instance in the order of their primary keys, a batch at a time, and ends after the first error.
pub(super) struct Batches {
    db: Database,
    table: DynamicTable,
    /// Where the next batch begins; `None` behind the last one.
    next: Option<Bound<Vec<u8>>>,
    limit: usize,
}

impl Batches {
    /// Returns the rows of a table in a database, if it has such a table.
    pub(super) fn of(db: &Database, table: &str) -> Result<Option<Self>, Error> {
        let table = match db.open_dynamic_table(table) {
            Err(Error::UnknownTable(_)) => return Ok(None),
            opened => opened?,
        };
        Ok(Some(Batches { db: db.clone(), table, next: Some(Bound::Unbounded), limit: FIRST_ROWS }))
    }

    fn read(&self, low: Bound<&[u8]>) -> Result<Vec<EncodedRow>, Error> {
        let scan = EncodedScan {
            index: None,
            low,
            high: Bound::Unbounded,
            of_prefixes: false,
            is_reverse: false,
            limit: self.limit,
        };
        self.db.read(|tx| {
            let mut rows = Vec::new();
            self.table.encoded().scan(tx, scan, |key, row| rows.push((key.to_vec(), row)))?;
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
        self.next = (rows.len() == self.limit).then(|| Bound::Excluded(last.clone()));
        let bytes: usize = rows.iter().map(|(key, row)| key.len() + row.len()).sum();
        self.limit = (BATCH_BYTES * rows.len() / bytes.max(1)).clamp(1, BATCH_ROWS_MAX);
        Some(Ok(rows))
    }
}
