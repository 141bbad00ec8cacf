//! The rows of a file on their way into a table.

use std::cell::Cell;
use std::fmt;

use ensilo::{Database, Durability, DynamicTable, Error, Value};
use ensilo_bench::driver::{Progress, View};

use crate::contents::input_file::InputFile;
use crate::contents::row_format::RowFormat;
use crate::contents::row_reader::{InputError, ReadRow, RowReader};

/// A transaction has so many rows at most, unless all rows are to be in one.
const BATCH_ROWS_MAX: usize = 1000;

/// It ends with the row that makes its texts and bytes so long together.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// How a file is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileLoad {
    /// Whether all rows go in by one transaction.
    pub(super) is_atomic: bool,
    /// So many rows at the beginning are left out.
    pub(super) skip_rows: u64,
}

/// Loads a file.
pub(super) struct Loader<'l> {
    pub(super) database: &'l Database,
    pub(super) table: &'l DynamicTable,
    pub(super) how: FileLoad,
}

/// Why not all rows are in.
#[derive(Debug)]
pub(super) struct Stopped {
    why: String,
    /// How many rows are in.
    rows: u64,
    how: FileLoad,
}

/// Rows that go in by one transaction.
#[derive(Default)]
struct Batch {
    rows: Vec<ReadRow>,
    bytes: usize,
}

/// Why rows could not be inserted, and which of them was refused, if it was one.
struct Refused {
    at: Option<usize>,
    error: Error,
}

impl Loader<'_> {
    /// Inserts the rows of a file, and returns how many they are. They are visible then, and stored once the database is closed.
    ///
    /// # Errors
    /// Where and why it has stopped, and how many rows are in.
    pub(super) fn load(&self, file: InputFile, format: RowFormat, view: &mut View) -> Result<u64, Stopped> {
        let read = file.progress();
        let mut rows = 0;
        let mut reader =
            RowReader::new(format, self.table.schema(), file).map_err(|error| self.stopped(error, rows))?;
        for _ in 0..self.how.skip_rows {
            reader.next().map_err(|error| self.stopped(error, rows))?;
        }
        loop {
            let mut batch = Batch::default();
            let end = self.fill(&mut batch, &mut reader);
            if end.is_ok() || !self.how.is_atomic {
                rows += self.insert(&batch.rows, rows)?;
            }
            let (bytes, bytes_total) = read.bytes();
            view.progress(Progress { done: bytes >> 10, total: bytes_total >> 10, unit: "KiB" });
            if end.map_err(|error| self.stopped(error, rows))? {
                return Ok(rows);
            }
        }
    }

    /// Reads rows for one transaction, and returns whether they are the last ones.
    fn fill(&self, batch: &mut Batch, reader: &mut RowReader) -> Result<bool, InputError> {
        while self.how.is_atomic || !batch.is_full() {
            match reader.next() {
                Ok(Some(row)) => batch.push(row),
                Ok(None) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Inserts rows, all of them, or those before the one that is refused where not all have to go in at once.
    fn insert(&self, rows: &[ReadRow], rows_before: u64) -> Result<u64, Stopped> {
        let Err(Refused { at, error }) = self.insert_all(rows) else { return Ok(rows.len() as u64) };
        let Some(at) = at else { return Err(self.stopped(error, rows_before)) };
        let accepted = &rows[..if self.how.is_atomic { 0 } else { at }];
        let is_in = self.insert_all(accepted).is_ok();
        let rows_in = rows_before + if is_in { accepted.len() as u64 } else { 0 };
        Err(self.stopped(format_args!("{}: {error}", rows[at].place), rows_in))
    }

    /// Inserts rows by one transaction.
    fn insert_all(&self, rows: &[ReadRow]) -> Result<(), Refused> {
        let at = Cell::new(None);
        // Closing the database waits for the disk, once for all rows.
        let request = self.database.request().durability(Durability::Visible);
        let inserted = request.transact(|tx| {
            for (number, row) in rows.iter().enumerate() {
                at.set(Some(number));
                match row.row_id {
                    Some(id) => self.table.insert_with_row_id(tx, id, &row.values)?,
                    None => drop(self.table.insert(tx, &row.values)?),
                }
            }
            at.set(None);
            Ok(())
        });
        inserted.map_err(|error| Refused { at: at.get(), error })
    }

    fn stopped(&self, why: impl fmt::Display, rows: u64) -> Stopped {
        Stopped { why: why.to_string(), rows, how: self.how }
    }
}

impl Batch {
    fn push(&mut self, row: ReadRow) {
        self.bytes += row.values.iter().map(bytes_of).sum::<usize>();
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS_MAX || self.bytes >= BATCH_BYTES_MAX
    }
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => size_of::<Value>(),
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stopped { why, rows, how: FileLoad { is_atomic, skip_rows } } = self;
        write!(f, "{why}; ")?;
        match (is_atomic, rows, skip_rows) {
            (true, ..) => f.write_str("no row of the file is in"),
            (false, 0, 0) => f.write_str("no row of the file is in"),
            (false, rows, _) => {
                write!(
                    f,
                    "{rows} rows before it are in: --skip-rows {} goes on behind them",
                    rows + skip_rows
                )
            }
        }
    }
}
