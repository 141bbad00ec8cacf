//! `ensilo salvage`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use ensilo::{Database, Error, IndexState, TableStatistics};
use ensilo_log::{DEFINITION_TABLES, RecordKey, SalvageLoss, Salvaged, SalvagedTable, UnreadableRecords};

use super::instance::{RESTORE, refusal_of_instance};
use super::log::hexadecimal;
use super::output::unread_lines;
use super::shown_disk::ShownDisk;
use crate::output::{Output, failed};

/// What the tables of [`DEFINITION_TABLES`] hold.
const DEFINITIONS: [&str; 2] = ["definitions of tables", "definitions of indexes"];

/// The exit code when a new database was made, but rows are lost.
const ROWS_LOST: u8 = 3;

/// The exit code when a new database was made, but definitions of tables or indexes are lost.
const DEFINITIONS_LOST: u8 = 4;

/// The exit code when a new database was made, and whether it has everything is not known.
const UNCERTAIN: u8 = 5;

/// Arguments of `ensilo salvage`.
#[derive(Debug, Args)]
#[command(after_help = "\
Where a checkpoint is damaged no repair brings back what is lost. A salvage reads every row that can be read, from the
valid blocks of the checkpoint and from the log as far as it counts, and makes a new database of them. The damaged one is
only read; it must not be open, except for reading only. Each place that cannot be read is listed, with the number of its
records and the keys (table and hexadecimal digits, as `ensilo log dump` shows them) between which they lie; then each
table, with how many of its rows are saved and lost. Rows that changed since the checkpoint are in the log, and are saved.
The definitions of tables and indexes stand in a checkpoint twice, and are lost only if both places are damaged; earlier
versions wrote them once. Rows of a part of the checkpoint that comes from another copy of the database are saved for
want of others, and count as lost. Where the manifest is damaged, a salvage goes by MANIFEST.copy beside it, which does not say what
was stored since it was written: if log directories were replaced by older ones meanwhile, nothing shows that. A log
directory that belongs to another copy of the database, or is older than the manifest, is refused; a single log file of
another copy is listed, and saves nothing. What the system cannot read counts for nothing, by sectors of 4096 bytes, and
files that cannot be opened are taken for empty ones. As much memory is needed as the rows take.

Rows of a table whose definition is lost cannot be read. They are in the new database's checkpoint, where `ensilo log dump`
shows them, until that database makes its own next checkpoint.

An instance of several that are one is refused: restore a copy of all. If there is none, --instance-alone saves its rows by
themselves. What is lost of it the others keep: transactions over several instances are left in half.

Exit codes: 0 everything is saved; 1 failed: an unfinished new database is removed, a finished one that could not be read
or described stays; 2 bad parameters; 3 saved, but rows are lost, as listed; 4 saved, but definitions of tables or indexes
are lost, as listed, and perhaps rows too; 5 saved, and nothing is known to be lost, but the copy of the manifest was gone
by, or nothing says whose log a directory holds, or how old it is.")]
pub(crate) struct SalvageArguments {
    /// The damaged database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Where to, a directory that is missing or empty and lies in no database
    #[arg(value_name = "TARGET")]
    target: PathBuf,

    /// Do it although the database is an instance of several that are one. Of transactions over several instances, what the others have of them
    /// stays: half of one may be left, and nothing shows which
    #[arg(long)]
    instance_alone: bool,
}

/// Saves what is left of a database.
pub(crate) fn salvage(arguments: &SalvageArguments) -> ExitCode {
    if !arguments.instance_alone
        && let Some(refusal) = refusal_of_instance(&arguments.directory, RESTORE)
    {
        return failed(refusal);
    }
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
            output.line(format_args!("{}", verdict(salvaged.loss())));
            output.line(format_args!("new database, which was read whole: {}", arguments.target.display()));
            exit_code(salvaged.loss())
        }
        Err(error) => failed(error),
    }
}

fn verdict(loss: SalvageLoss) -> &'static str {
    match loss {
        SalvageLoss::Nothing => "nothing is lost",
        SalvageLoss::Uncertain => {
            "nothing is known to be lost, but what was stored last may be missing without a trace"
        }
        SalvageLoss::Rows => "rows are lost",
        SalvageLoss::Definitions => "definitions of tables or indexes are lost",
    }
}

fn exit_code(loss: SalvageLoss) -> ExitCode {
    match loss {
        SalvageLoss::Nothing => ExitCode::SUCCESS,
        SalvageLoss::Uncertain => ExitCode::from(UNCERTAIN),
        SalvageLoss::Rows => ExitCode::from(ROWS_LOST),
        SalvageLoss::Definitions => ExitCode::from(DEFINITIONS_LOST),
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
    // An opening that writes would make an end to rows without a definition.
    let database = Database::options().read_only(true).open(target)?;
    let tables = database.statistics()?.tables;
    database.close()?;
    let broken = tables.iter().flat_map(|table| {
        let broken = table.indexes.iter().filter(|index| index.state == IndexState::Broken);
        broken.map(|index| {
            format!("index {} of table {} does not fit the rows: rebuild it", index.name, table.name)
        })
    });
    Ok(Opened { broken_indexes: broken.collect(), names: tables.iter().flat_map(names_of).collect() })
}

/// Returns the names of the stores of a table that are logged, by number.
fn names_of(table: &TableStatistics) -> impl Iterator<Item = (u32, String)> {
    let long = table.long_values.as_ref().map(|long| (long.number, format!("{}, long values", table.name)));
    std::iter::once((table.number, table.name.clone())).chain(long)
}

/// Returns the lines of the report.
fn lines(salvaged: &Salvaged, names: &BTreeMap<u32, String>) -> Vec<String> {
    let corruptions = salvaged.manifest.iter().chain(&salvaged.corruptions);
    let mut lines: Vec<String> =
        corruptions.map(|damage| format!("damaged: {}", damage.place_and_kind())).collect();
    if salvaged.manifest.is_some() {
        lines.push(
            "instead of the manifest its copy was taken, written when the database was last opened or its checkpoint made, or before that: \
             what was stored since is known from the log alone, and if that was replaced by an older one nothing shows it"
                .to_owned(),
        );
    }
    lines.extend(salvaged.other_parts.iter().map(|file| {
        format!(
            "{} is of another copy of the database, which has gone on by itself: its rows were saved, and may be older or newer than they were",
            file.display()
        )
    }));
    lines.extend(unread_lines(&salvaged.unread, &salvaged.unopened));
    lines.extend(salvaged.unreadable.iter().map(|place| unreadable_line(place, names)));
    let is_sure = salvaged.loss() != SalvageLoss::Definitions;
    lines.extend(salvaged.tables.iter().map(|table| table_line(table, names, is_sure)));
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

fn unreadable_line(place: &UnreadableRecords, names: &BTreeMap<u32, String>) -> String {
    let UnreadableRecords { file, offset, end, records, after, before } = place;
    let records = records.map_or("records".to_owned(), |records| format!("{records} records"));
    let key = |key: &Option<RecordKey>, none: &str| match key {
        Some(key) => format!("{} key {}", named(key.table, names), hexadecimal(&key.key)),
        None => none.to_owned(),
    };
    format!(
        "unreadable: {records} in {}, bytes {offset} to {end}, after {} and before {}",
        file.display(),
        key(after, "its beginning"),
        key(before, "its end")
    )
}

/// Returns what became of a table. `is_sure` says that no definition is lost.
fn table_line(table: &SalvagedTable, names: &BTreeMap<u32, String>, is_sure: bool) -> String {
    let SalvagedTable { table: number, rows, lost_records, incomplete_rows, .. } = *table;
    let mut line = format!("{}: {rows} rows saved", named(number, names));
    if lost_records > 0 {
        line += &format!(", {lost_records} records of the checkpoint lost but for those that changed since");
    }
    if incomplete_rows > 0 {
        line += &format!(", {incomplete_rows} rows lost of which only changes are left");
    }
    if !names.contains_key(&number) && !DEFINITION_TABLES.contains(&number) {
        line += match is_sure {
            true => "; but it was dropped",
            false => {
                "; but its definition is lost, unless it was dropped, and without it none of its rows can be read"
            }
        };
    }
    line
}

fn named(table: u32, names: &BTreeMap<u32, String>) -> String {
    let system = DEFINITION_TABLES.iter().position(|&system| system == table).map(|at| DEFINITIONS[at]);
    match names.get(&table).map(String::as_str).or(system) {
        Some(name) => format!("table {table} ({name})"),
        None => format!("table {table}"),
    }
}

#[cfg(test)]
mod tests {
    use ensilo_epoch::Epoch;
    use ensilo_log::{GivenUp, Unopened};

    use super::*;

    /// No file system fails to read one directory of several on demand.
    #[test]
    fn what_the_system_could_not_open_is_reported() {
        let unopened = |path: &str, doing| Unopened {
            path: path.into(),
            doing,
            error: "Input/output error (os error 5)".to_owned(),
        };
        let salvaged = Salvaged {
            manifest: None,
            tables: Vec::new(),
            kept_to: Epoch::new(7),
            stored_to: Epoch::new(7),
            mixed_to: None,
            given_up: GivenUp::default(),
            corruptions: Vec::new(),
            unreadable: Vec::new(),
            other_parts: Vec::new(),
            unread: Vec::new(),
            unopened: vec![unopened("/log", "list"), unopened("/db/checkpoint-1/part-0.ckpt", "open")],
        };
        assert_eq!(
            lines(&salvaged, &BTreeMap::new()),
            [
                "the system cannot list /log: Input/output error (os error 5)",
                "the system cannot open /db/checkpoint-1/part-0.ckpt: Input/output error (os error 5)",
                "saved: changes up to epoch 7",
            ]
        );
    }
}
