//! `ensilo tables`.

use std::ops::Bound;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ensilo::numbers::CarriedSequence;
use ensilo::{ColumnType, Database, DynamicTable, Error, IndexState, Schema, TableStatistics, Value};
use serde::Serialize;

use super::ShownAs;
use super::description::{NullsDescription, OrderDescription, PartDescription, TableDescription};
use super::migrations::MigrationDescription;
use super::row_format::{FileColumn, RowFormat, file_columns};
use super::row_writer::RowWriter;
use super::sequences::{self, KeyNumbersDescription, SequenceDescription};
use super::value_text::{Shown, parse};
use crate::opening::open_to_read;
use crate::output::{Output, failed};

/// Arguments of `ensilo tables`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without TABLE it lists the tables with their columns, keys, indexes and numbers of rows, the sequences, and the steps of
migrations that were applied; with TABLE that table and its first rows, in the order of the primary key. The database is opened for reading only, so all of its rows have to fit into memory. It
may be open elsewhere, on the same machine: then all that was stored before is shown, and perhaps a little more that has only
been logged so far. A line on standard error says as of which epoch.

Values are shown as `ensilo dump` writes them, text in quotes. Row ids, where a table has them in the place of a primary key,
stand in a column `rowid`. With --format json tables, sequences and steps are described as in the file schema.json of a dump.

Examples:
  ensilo tables bank
  ensilo tables bank account --limit 3
  ensilo tables bank orders --from 7 --from 2024-05-01T00:00:00Z
      The orders from this key on: a value for each of the first columns of the primary key.

Exit codes: 0 all is well; 1 it failed; 2 bad parameters.")]
pub(crate) struct TablesArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The table whose rows are to be shown
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// How many rows to show at most
    #[arg(long, value_name = "N", default_value_t = 10, requires = "table")]
    limit: usize,

    /// The key to begin at: once for each of the first columns of the primary key, or once with a row id
    #[arg(long, value_name = "VALUE", requires = "table", allow_hyphen_values = true)]
    from: Vec<String>,

    /// How to show it
    #[arg(long, value_enum, default_value_t = ShownAs::Text)]
    format: ShownAs,
}

/// A table with what is in it.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    description: TableDescription,
    /// The numbers that it gives as keys, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<KeyNumbersDescription>,
    rows: u64,
    /// Its indexes that do not fit the rows.
    broken_indexes: Vec<String>,
}

/// The rows of a table that are to be shown.
struct Rows {
    columns: Vec<FileColumn>,
    rows: Vec<Vec<Value>>,
}

/// Lists tables, or shows one.
pub(crate) fn tables(arguments: &TablesArguments) -> ExitCode {
    match shown(arguments) {
        Ok(text) => {
            Output::new().text(&text);
            ExitCode::SUCCESS
        }
        Err(error) => failed(error),
    }
}

fn shown(arguments: &TablesArguments) -> Result<String, String> {
    let database = open_to_read(&arguments.directory).map_err(|error| error.to_string())?;
    let text = match &arguments.table {
        None => {
            let (tables, sequences) = all(&database).map_err(|error| error.to_string())?;
            // Where steps are lost the rest is shown, and what is wrong in their place.
            let (migrations, damage) = match database.applied_migrations() {
                Err(damage @ Error::DamagedCatalog(_)) => (None, format!("migrations: {damage}\n")),
                applied => {
                    let applied = applied.map_err(|error| error.to_string())?;
                    (Some(MigrationDescription::of(&applied)), String::new())
                }
            };
            match arguments.format {
                ShownAs::Text => {
                    let tables = tables.iter().map(text_of);
                    let sequences = sequences.iter().map(ToString::to_string).collect::<String>();
                    let listed = migrations.as_deref().map_or(damage, MigrationDescription::list);
                    let others = [sequences, listed].into_iter();
                    let parts = tables.chain(others.filter(|text| !text.is_empty()));
                    parts.collect::<Vec<_>>().join("\n")
                }
                ShownAs::Json => json(
                    &serde_json::json!({ "tables": tables, "sequences": sequences, "migrations": migrations }),
                ),
            }
        }
        Some(name) => {
            let table = database.open_dynamic_table(name).map_err(|error| error.to_string())?;
            let sequences = database.carried_sequences().map_err(|error| error.to_string())?;
            let listed = listed(&database, name, &sequences).map_err(|error| error.to_string())?;
            let rows = first_rows(&database, &table, arguments)?;
            match arguments.format {
                ShownAs::Text => text_of(&listed) + &rows.text(),
                ShownAs::Json => format!("{{\"table\": {},\n{}}}\n", json(&listed).trim_end(), rows.json()?),
            }
        }
    };
    database.close().map_err(|error| error.to_string())?;
    Ok(text)
}

fn all(database: &Database) -> Result<(Vec<Listed>, Vec<SequenceDescription>), Error> {
    let sequences = database.carried_sequences()?;
    let tables = database.list_tables()?;
    let tables = tables.iter().map(|name| listed(database, name, &sequences)).collect::<Result<_, _>>()?;
    Ok((tables, sequences::of_programs(&sequences)))
}

fn listed(database: &Database, name: &str, sequences: &[CarriedSequence]) -> Result<Listed, Error> {
    let statistics = database.statistics()?;
    let table = statistics.table(name);
    let broken = |table: &TableStatistics| {
        let broken = table.indexes.iter().filter(|index| index.state == IndexState::Broken);
        broken.map(|index| index.name.clone()).collect()
    };
    Ok(Listed {
        description: TableDescription::of(&database.schema(name)?),
        keys: sequences::of_table(sequences, name),
        rows: table.map_or(0, |table| table.records),
        broken_indexes: table.map(broken).unwrap_or_default(),
    })
}

fn json(value: &impl Serialize) -> String {
    // There is nothing in it that JSON has not.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn text_of(listed: &Listed) -> String {
    let Listed { description, keys, rows, broken_indexes } = listed;
    let TableDescription { name, columns, key, indexes } = description;
    let mut text = format!("{}: {rows} rows\n", name.escape_debug());
    let width = columns.iter().map(|column| column.name.escape_debug().count()).max().unwrap_or(0);
    if key.is_empty() {
        text += "  the table invents row ids\n";
    }
    for column in columns {
        let mut line =
            format!("  {:width$}  {:<13}", column.name.escape_debug().to_string(), column.column_type);
        if let Some(place) = key.iter().position(|part| part.column == column.name) {
            line += &format!(
                " key {}{}{}",
                place + 1,
                order_text(key[place].order),
                nulls_text(key[place].nulls)
            );
        }
        if column.nullable {
            line += " nullable";
        }
        text += line.trim_end();
        text.push('\n');
    }
    text += &keys.as_ref().map(ToString::to_string).unwrap_or_default();
    for index in indexes {
        let unique = if index.unique { "unique " } else { "" };
        let broken = if broken_indexes.contains(&index.name) { "; broken: rebuild it" } else { "" };
        text += &format!(
            "  {unique}index {} on {}{broken}\n",
            index.name.escape_debug(),
            parts_text(&index.columns)
        );
    }
    text
}

fn parts_text(parts: &[PartDescription]) -> String {
    let part = |part: &PartDescription| {
        format!("{}{}{}", part.column.escape_debug(), order_text(part.order), nulls_text(part.nulls))
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

const fn order_text(order: OrderDescription) -> &'static str {
    match order {
        OrderDescription::Ascending => "",
        OrderDescription::Descending => " descending",
    }
}

const fn nulls_text(nulls: Option<NullsDescription>) -> &'static str {
    match nulls {
        None => "",
        Some(NullsDescription::First) => " nulls first",
        Some(NullsDescription::Last) => " nulls last",
    }
}

fn first_rows(
    database: &Database,
    table: &DynamicTable,
    arguments: &TablesArguments,
) -> Result<Rows, String> {
    let from = key_of(table.schema(), &arguments.from)?;
    let low = if from.is_empty() { Bound::Unbounded } else { Bound::Included(&from[..]) };
    let has_row_ids = table.schema().key_parts().is_empty();
    let mut rows = Vec::new();
    let read = database.read_stale(|tx| {
        let scan = table.scan().between(low, Bound::Unbounded)?.limit(arguments.limit);
        scan.for_each(tx, |key, columns| {
            let row_id = key.iter().filter(|_| has_row_ids);
            rows.push(row_id.chain(columns).cloned().collect());
        })
    });
    read.map_err(|error| error.to_string())?;
    Ok(Rows { columns: file_columns(table.schema()), rows })
}

/// Parses values of the first columns of the primary key.
fn key_of(schema: &Schema, texts: &[String]) -> Result<Vec<Value>, String> {
    let types: Vec<ColumnType> = match schema.key_types() {
        types if types.is_empty() => vec![ColumnType::U64],
        types => types.iter().map(|part| part.column_type).collect(),
    };
    if texts.len() > types.len() {
        return Err(format!(
            "--from is there {} times, and the key has {} columns",
            texts.len(),
            types.len()
        ));
    }
    let parsed = texts.iter().zip(types).map(|(text, column_type)| parse(text, column_type));
    parsed.collect::<Result<_, _>>().map_err(|why| format!("--from: {why}"))
}

impl Rows {
    fn text(&self) -> String {
        let names: Vec<String> =
            self.columns.iter().map(|column| column.name.escape_debug().to_string()).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            text += &format!("\nrow {}\n", number + 1);
            for (name, value) in names.iter().zip(row) {
                text += &format!("  {name:width$}  {}\n", Shown(value));
            }
        }
        text
    }

    /// Returns the rows as a field of an object.
    fn json(&self) -> Result<String, String> {
        let written = || {
            let mut writer = RowWriter::new(RowFormat::Jsonl, &self.columns, Vec::new())?;
            self.rows.iter().try_for_each(|row| writer.row(row))?;
            writer.finish()
        };
        let lines = written().map_err(|error| error.to_string())?;
        let rows = String::from_utf8_lossy(&lines).trim_end().replace('\n', ",\n");
        Ok(format!("\"rows\": [\n{rows}\n]"))
    }
}
