//! `ensilo salvage`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use ensilo::{Database, Error, IndexState};
use ensilo_log::{LostRecords, RecordKey, Salvaged, SalvagedTable};

use super::log::hexadecimal;
use super::shown_disk::ShownDisk;
use crate::output::{Output, failed};

/// The tables that hold the definitions of the others, and of their indexes.
const SYSTEM_TABLES: [(u32, &str); 2] = [(1, "definitions of tables"), (3, "definitions of indexes")];

/// Arguments of `ensilo salvage`.
#[derive(Debug, Args)]
#[command(after_help = "\
Where a checkpoint is damaged no repair brings back what is lost. A salvage reads every row that can be read, from the
valid blocks of the checkpoint and from the log as far as it counts, and makes a new database of them. The damaged one is
only read; it must not be open, except for reading only. What is lost is listed: for each place that cannot be read how
many records, and the keys (table and hexadecimal digits, as `ensilo log dump` shows them) between which they lie; then
each table. Rows that changed since the checkpoint are in the log, and are saved. Rows of a table whose definition is lost
cannot be read. As much memory is needed as the rows take.

Exit codes: 0 saved, whatever is lost is listed; 1 failed: an unfinished new database is removed, a finished one that
could not be opened or described stays; 2 bad parameters.")]
pub(crate) struct SalvageArguments {
    /// The damaged database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Where to, a directory that is missing or empty and lies in no database
    #[arg(value_name = "TARGET")]
    target: PathBuf,
}

/// Saves what is left of a database.
pub(crate) fn salvage(arguments: &SalvageArguments) -> ExitCode {
    let shown = Arc::new(ShownDisk::new("reading"));
    let salvaged = ensilo_log::salvage(&(shown.clone() as _), &arguments.directory, &arguments.target);
    shown.close();
    let salvaged = match salvaged {
        Ok(salvaged) => salvaged,
        Err(error) => return failed(error),
    };
    let opened = look_into(&arguments.target);
    let names = opened.as_ref().map(|opened| opened.names.clone()).unwrap_or_default();
    let mut output = Output::new();
    lines(&salvaged, &names).iter().for_each(|line| output.line(format_args!("{line}")));
    match opened {
        Ok(opened) => {
            opened.broken_indexes.iter().for_each(|index| output.line(format_args!("{index}")));
            output.line(format_args!("new database, which was opened: {}", arguments.target.display()));
            ExitCode::SUCCESS
        }
        Err(error) => failed(error),
    }
}

/// What a new database has.
struct Opened {
    /// Its tables, by number.
    names: BTreeMap<u32, String>,
    /// A line for each index that does not fit the rows.
    broken_indexes: Vec<String>,
}

fn look_into(target: &Path) -> Result<Opened, Error> {
    let database = Database::open(target)?;
    let tables = database.statistics()?.tables;
    database.close()?;
    let broken = tables.iter().flat_map(|table| {
        let broken = table.indexes.iter().filter(|index| index.state == IndexState::Broken);
        broken.map(|index| {
            format!("index {} of table {} does not fit the rows: rebuild it", index.name, table.name)
        })
    });
    Ok(Opened {
        broken_indexes: broken.collect(),
        names: tables.iter().map(|table| (table.number, table.name.clone())).collect(),
    })
}

/// All that is to be said.
fn lines(salvaged: &Salvaged, names: &BTreeMap<u32, String>) -> Vec<String> {
    let mut lines: Vec<String> = salvaged.damages.iter().map(|damage| format!("damaged: {damage}")).collect();
    lines.extend(salvaged.lost.iter().map(|lost| lost_line(lost, names)));
    lines.extend(salvaged.tables.iter().map(|table| table_line(table, names)));
    lines.push(format!("saved: changes up to epoch {}", salvaged.kept_to));
    if salvaged.stored_to > salvaged.kept_to {
        let given_up = salvaged.given_up;
        lines.push(format!(
            "given up: changes after it, of which everything up to epoch {} was stored; {} transactions with {} writes could be read, {} bytes could not",
            salvaged.stored_to, given_up.transactions, given_up.writes, given_up.unreadable_bytes
        ));
    }
    if let Some(end) = salvaged.mixed_to {
        lines.push(format!(
            "the rows are not those of one moment: the checkpoint was made up to epoch {end}, and the log of that time is lost"
        ));
    }
    lines
}

fn lost_line(lost: &LostRecords, names: &BTreeMap<u32, String>) -> String {
    let LostRecords { file, offset, end, records, after, before } = lost;
    let records = records.map_or("records".to_owned(), |records| format!("{records} records"));
    let key = |key: &Option<RecordKey>, none: &str| match key {
        Some(key) => format!("{} key {}", named(key.table, names), hexadecimal(&key.key)),
        None => none.to_owned(),
    };
    format!(
        "lost: {records} in {}, bytes {offset} to {end}, after {} and before {}",
        file.display(),
        key(after, "its beginning"),
        key(before, "its end")
    )
}

fn table_line(table: &SalvagedTable, names: &BTreeMap<u32, String>) -> String {
    let SalvagedTable { table: number, rows, lost_records, incomplete_rows, .. } = *table;
    let mut line = format!("{}: {rows} rows saved", named(number, names));
    if lost_records > 0 {
        line += &format!(", {lost_records} records of the checkpoint lost but for those that changed since");
    }
    if incomplete_rows > 0 {
        line += &format!(", {incomplete_rows} rows lost of which only changes are left");
    }
    if !names.contains_key(&number) && SYSTEM_TABLES.iter().all(|(system, _)| *system != number) {
        line += "; but its definition is lost, and without it none of its rows can be read";
    }
    line
}

fn named(table: u32, names: &BTreeMap<u32, String>) -> String {
    let system = SYSTEM_TABLES.iter().find(|(system, _)| *system == table).map(|(_, name)| *name);
    match names.get(&table).map(String::as_str).or(system) {
        Some(name) => format!("table {table} ({name})"),
        None => format!("table {table}"),
    }
}
