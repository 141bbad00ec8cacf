//! `ensilo dump`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ensilo::{Database, DynamicTable, Schema};
use ensilo_bench::driver::{Progress, View};

use super::description::{DumpDescription, DumpedTable, SCHEMA_FILE, TableDescription};
use super::migrations::MigrationDescription;
use super::row_format::{RowFormat, file_columns};
use super::row_writer::{RowWriter, WriteError};
use super::sequences;
use super::value_text::{is_known, shown};
use crate::opening::open_to_read;
use crate::output::{Output, OutputBytes, failed};

/// So many rows are written between two looks at the progress.
const ROWS_PER_LOOK: u64 = 4096;

/// Arguments of `ensilo dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes the rows of tables as text that other programs read, and that `ensilo load` reads back exactly: into a directory, a file
for each table and `schema.json` with their columns, keys and indexes; or a single table to standard output. The database is
opened for reading only, so all of its rows have to fit into memory. It may be open elsewhere, on the same machine: then all that
was stored before is written, and perhaps a little more that has only been logged so far, all tables as of one epoch. A line on
standard error says which.

Values: integers in decimal; floats as the shortest number that is read as the same bits, also `inf`, `-inf`, `NaN`, and
`NaN(0x7ff8000000000001)` for a NaN with other bits; decimals with all their digits; times as RFC 3339 in UTC; bytes as `0x` and
hexadecimal digits. In CSV null is `\\N`, and a value that begins with a backslash has another one in front. In JSON lines null
is `null`, integers, finite floats and truth values are JSON's own, and all else is a string; integers beyond 2^53 are written
with all their digits, which some programs round. Row ids, where a table has them in the place of a primary key, stand in a
column `rowid`. A directory has the sequences as well, unless tables are named, so that numbers go on where they were, and the
steps of migrations that were applied. The format is described in docs/dump.md.

A program that is built with the feature `parquet` writes Parquet as well.

Examples:
  ensilo dump bank --out bank-as-text
  ensilo dump bank account --format jsonl | head

Exit codes: 0 all is written; 1 it failed: a directory without `schema.json` holds no whole dump; 2 bad parameters; 141 nobody
read the output to its end.")]
pub(crate) struct DumpArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The tables [default: all, which needs --out]
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,

    /// How rows are written
    #[arg(long, value_enum, default_value_t = RowFormat::Csv)]
    format: RowFormat,

    /// Where to, a directory that is missing or empty [default: standard output, which takes a single table]
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

/// Writes tables.
pub(crate) fn dump(arguments: &DumpArguments) -> ExitCode {
    if arguments.out.is_none() && arguments.tables.len() != 1 {
        crate::refuse_usage("without --out DIRECTORY exactly one table is to be named");
    }
    let mut view = View::stderr();
    let dumped = dump_shown(arguments, &mut view);
    view.close();
    match dumped {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

fn dump_shown(arguments: &DumpArguments, view: &mut View) -> Result<(), String> {
    // Before a large database is read in vain.
    arguments.out.as_deref().map_or(Ok(()), check_empty)?;
    let database = open_to_read(&arguments.directory).map_err(|error| error.to_string())?;
    let dump = Dump { database: &database, format: arguments.format };
    let names = match &arguments.tables[..] {
        [] => database.list_tables().map_err(|error| error.to_string())?,
        named => named.to_vec(),
    };
    let tables: Result<Vec<_>, String> = names.iter().map(|name| dump.table(name)).collect();
    match &arguments.out {
        None => tables?.iter().try_for_each(|table| dump.write(table, OutputBytes::new(), view).map(drop))?,
        Some(target) => dump.write_into(target, &tables?, arguments.tables.is_empty(), view)?,
    }
    database.close().map_err(|error| error.to_string())
}

/// A dump that is being made.
struct Dump<'d> {
    database: &'d Database,
    format: RowFormat,
}

/// A table on its way into a file.
struct Table {
    handle: DynamicTable,
    /// Its schema with the indexes that it has now.
    schema: Schema,
    rows: u64,
}

impl Dump<'_> {
    /// Finds a table, all of whose columns can be written.
    fn table(&self, name: &str) -> Result<Table, String> {
        let found = || {
            let statistics = self.database.statistics()?;
            let rows = statistics.table(name).map_or(0, |table| table.records);
            Ok(Table {
                handle: self.database.open_dynamic_table(name)?,
                schema: self.database.schema(name)?,
                rows,
            })
        };
        let table = found().map_err(|error: ensilo::Error| error.to_string())?;
        let unknown = table.schema.columns().iter().find(|column| !is_known(column.column_type));
        match unknown {
            None => Ok(table),
            Some(column) => Err(format!(
                "column {} of table {} has the type {}, which this version cannot write",
                shown(&column.name),
                shown(name),
                column.column_type
            )),
        }
    }

    /// Writes tables into a new directory, and the steps of migrations and the sequences of programs if these are all tables. What describes them
    /// comes last: without it the directory holds no dump.
    fn write_into(
        &self,
        target: &Path,
        tables: &[Table],
        is_whole: bool,
        view: &mut View,
    ) -> Result<(), String> {
        let sequences = self.database.carried_sequences().map_err(|error| error.to_string())?;
        let has_all = is_whole || self.has_all(tables)?;
        let migrations = if has_all { self.steps(is_whole)? } else { Vec::new() };
        make_empty(target)?;
        let mut dumped = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            let file = file_name(table.schema.name(), number, self.format);
            let path = target.join(&file);
            let cannot = |error| cannot_write(&path, &error);
            let (output, rows) = self
                .write(table, new_file(&path)?, view)
                .map_err(|why| format!("{}: {why}", path.display()))?;
            output.sync_all().map_err(cannot)?;
            let keys = sequences::of_table(&sequences, table.schema.name());
            dumped.push(DumpedTable { schema: TableDescription::of(&table.schema), file, rows, keys });
        }
        let rows: u64 = dumped.iter().map(|table| table.rows).sum();
        let has_row_ids = tables.iter().any(|table| table.schema.key_parts().is_empty());
        // Ids behind these cannot be loaded.
        let largest_row_id = has_row_ids.then(|| self.database.largest_row_id().0);
        let of_programs = if has_all { sequences::of_programs(&sequences) } else { Vec::new() };
        let description =
            DumpDescription::new(self.format, dumped, of_programs, migrations, largest_row_id).text();
        let path = target.join(SCHEMA_FILE);
        let mut file = new_file(&path)?;
        let written = file.write_all(description.as_bytes()).and_then(|()| file.sync_all());
        let written = written.and_then(|()| File::open(target)?.sync_all());
        written.map_err(|error| cannot_write(&path, &error))?;
        Output::new().line(format_args!("{} tables, {rows} rows in {}", tables.len(), target.display()));
        Ok(())
    }

    /// Returns whether these are all tables.
    fn has_all(&self, tables: &[Table]) -> Result<bool, String> {
        let all = self.database.list_tables().map_err(|error| error.to_string())?;
        Ok(all.iter().all(|name| tables.iter().any(|table| table.schema.name() == name)))
    }

    /// Returns the steps of migrations that were applied, which only a dump of all tables has: others may be of any version. Tables of a database whose steps
    /// are damaged can be dumped by their names, without steps.
    fn steps(&self, is_whole: bool) -> Result<Vec<MigrationDescription>, String> {
        let found = || Ok((self.database.is_being_set_up()?, self.database.applied_migrations()?));
        match found() {
            Err(ensilo::Error::DamagedCatalog(_)) if !is_whole => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
            Ok((true, _)) => Err("the database is new, and was not set up to the end: start its program, which does that, before; or name tables, not all of them"
                .to_owned()),
            Ok((false, applied)) => Ok(MigrationDescription::of(&applied)),
        }
    }

    /// Writes the rows of a table, and returns the file and how many they were.
    fn write<W: Write + Send>(&self, table: &Table, output: W, view: &mut View) -> Result<(W, u64), String> {
        view.stage(&format!("table {}", table.schema.name().escape_debug()));
        let columns = file_columns(&table.schema);
        let mut writer = RowWriter::new(self.format, &columns, output).map_err(|error| error.to_string())?;
        let has_row_ids = table.schema.key_parts().is_empty();
        let (mut rows, mut failure) = (0, None::<WriteError>);
        let read = self.database.read_stale(|tx| {
            table.handle.scan().for_each(tx, |key, columns| {
                let row_id = key.iter().filter(|_| has_row_ids);
                if let Err(error) = writer.row(row_id.chain(columns)) {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
                rows += 1;
                if rows % ROWS_PER_LOOK == 0 {
                    view.progress(Progress { done: rows, total: table.rows, unit: "rows" });
                }
                ControlFlow::Continue(())
            })
        });
        read.map_err(|error| error.to_string())?;
        match failure {
            Some(error) => Err(error.to_string()),
            None => Ok((writer.finish().map_err(|error| error.to_string())?, rows)),
        }
    }
}

/// Makes a directory, or sees to it that it is empty.
fn make_empty(target: &Path) -> Result<(), String> {
    fs::create_dir_all(target).map_err(|error| cannot_write(target, &error))?;
    check_empty(target)
}

/// Refuses a directory that is there and not empty.
fn check_empty(target: &Path) -> Result<(), String> {
    match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{} is not empty: name another directory", target.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot_write(target, &error)),
    }
}

fn new_file(path: &Path) -> Result<File, String> {
    File::create_new(path).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// The longest name of a file that is made of a table's.
const FILE_NAME_MAX: usize = 200;

/// Returns the name of the file for a table, by its number among those of the dump: with percent signs for what not every file
/// system takes, and the number alone in the place of a long name.
fn file_name(table: &str, number: usize, format: RowFormat) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let encode = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let name: String = table.bytes().map(encode).collect();
    let name = if name.len() > FILE_NAME_MAX { format!("%{number}") } else { name };
    format!("{name}.{}", format.extension())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_differ() {
        let name = |table: &str, number| file_name(table, number, RowFormat::Csv);
        assert_eq!(name("order_line-2", 0), "order_line-2.csv");
        assert_eq!(name("../ü", 0), "%2E%2E%2F%C3%BC.csv");
        let long = "x".repeat(201);
        assert_eq!((name(&long, 7), name(&long, 8)), ("%7.csv".to_owned(), "%8.csv".to_owned()));
    }
}
