//! `ensilo load`.

mod loader;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ensilo::numbers::{CarriedSequence, SequenceOf};
use ensilo::row::RowId;
use ensilo::{AppliedMigration, Database, Options, Schema};
use ensilo_bench::driver::View;
use ensilo_islands::stored_instance;

use self::loader::{FileLoad, Loader};
use super::description::{DumpDescription, DumpedTable, SCHEMA_FILE};
use super::input_file::InputFile;
use super::migrations::MigrationDescription;
use super::row_format::RowFormat;
use super::sequences::SequenceDescription;
use super::value_text::shown;
use crate::opening::{open_shown, writing_to};
use crate::output::{Output, failed};

/// Arguments of `ensilo load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Inserts rows from CSV or JSON lines, as `ensilo dump --help` describes them, into a table that is there, or with --create into a
new one. Columns go by their names, in any order; those that are missing become null. With --from it loads all tables of a
dump, which must not be there yet; a database that is missing is made. The database must not be open elsewhere, and its rows
have to fit into memory.

Rows go in by many transactions, one after the other. Where a row is wrong, the message names its file, line and column, and all
rows before it are in; --skip-rows goes on behind them. With --atomic all rows of the file go in by one transaction or none
does, with all of them in memory until then; a transaction takes up to 1 GiB of log. When the command ends, what it says is in
is on disk.

Row ids stay as the column `rowid` has them, and are new where it is missing. With --from and --create, keys that tables give and row ids go
on behind all that had been given when the dump was made. A file that is loaded into an existing table goes on behind that table's rows.
Sequences of programs, and the steps of migrations that were applied, are loaded with --from alone, before the tables.

Examples:
  ensilo load bank account accounts.csv
  ensilo load bank account bank-as-text/account.csv --create
      The table as schema.json beside the file describes it.
  ensilo load copy-of-bank --from bank-as-text
  ensilo load bank account - --format jsonl < accounts.jsonl

Exit codes: 0 all is loaded; 1 it failed, as said; 2 bad parameters.")]
pub(crate) struct LoadArguments {
    /// The database
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The table
    #[arg(value_name = "TABLE", required_unless_present = "from")]
    table: Option<String>,

    /// The rows; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "from")]
    file: Option<PathBuf>,

    /// A directory that `ensilo dump --out` has made, all tables of which are loaded
    #[arg(
        long,
        value_name = "DIRECTORY",
        conflicts_with_all = ["table", "file", "format", "create", "schema", "atomic", "skip_rows"]
    )]
    from: Option<PathBuf>,

    /// How rows are written [default: by the end of the file's name, .csv or .jsonl]
    #[arg(long, value_enum)]
    format: Option<RowFormat>,

    /// Make the table first; a database that is missing is made
    #[arg(long)]
    create: bool,

    /// The file that describes the new table [default: schema.json beside FILE]
    #[arg(long, value_name = "SCHEMA", requires = "create")]
    schema: Option<PathBuf>,

    /// Insert all rows by one transaction
    #[arg(long)]
    atomic: bool,

    /// Leave out so many rows at the beginning of the file
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_rows: u64,
}

/// Names of tables that begin so are not those of programs.
const SYSTEM_PREFIX: &str = "ensilo.";

/// A file that is to be loaded, and the table for it.
struct Task {
    table: String,
    /// That of a table that is to be made.
    schema: Option<Schema>,
    file: PathBuf,
    format: RowFormat,
    /// How many rows there must be.
    rows: Option<u64>,
    /// The numbers that the table gives as keys.
    keys: Option<CarriedSequence>,
}

/// What is to be loaded.
struct Plan {
    tasks: Vec<Task>,
    /// The sequences of programs.
    sequences: Vec<CarriedSequence>,
    /// The steps of migrations that were applied.
    migrations: Vec<AppliedMigration>,
    /// Row ids go on behind it.
    largest_row_id: Option<RowId>,
}

/// Loads files.
pub(crate) fn load(arguments: &LoadArguments) -> ExitCode {
    let mut view = View::stderr();
    let loaded = load_shown(arguments, &mut view);
    view.close();
    match loaded {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

fn load_shown(arguments: &LoadArguments, view: &mut View) -> Result<(), String> {
    let plan = match &arguments.from {
        Some(from) => plan_of_dump(from)?,
        None => plan_of_file(arguments)?,
    };
    let tasks = &plan.tasks;
    // Before anything is made.
    tasks.iter().try_for_each(|task| InputFile::check(&task.file, task.rows.is_some()))?;
    let makes_tables = arguments.from.is_some() || tasks.iter().any(|task| task.schema.is_some());
    let open = |largest_row_id: Option<RowId>| {
        let mut options = options_for(&arguments.directory, makes_tables)?;
        if let Some(id) = largest_row_id {
            options = options.row_ids_behind(id);
        }
        open_shown(options, &arguments.directory).map_err(|error| error.to_string())
    };
    if plan.largest_row_id.is_some() && !is_new(&arguments.directory) {
        // An opening that lets row ids go on elsewhere has changed the database.
        let database: Database = open(None)?;
        let refused = refuse(&database, &plan);
        database.close().map_err(|error| error.to_string())?;
        refused?;
    }
    let database: Database = open(plan.largest_row_id)?;
    let how = FileLoad { is_atomic: arguments.atomic, skip_rows: arguments.skip_rows };
    let loaded = load_all(&database, &plan, how, view);
    // What is in is stored when this returns.
    database.close().map_err(|error| error.to_string())?;
    loaded.map(|lines| Output::new().text(&lines))
}

/// Finds out what a dump has.
fn plan_of_dump(from: &Path) -> Result<Plan, String> {
    let path = from.join(SCHEMA_FILE);
    let description = DumpDescription::read(&path)?;
    let of_file = |error: String| format!("{}: {error}", path.display());
    let mut names = BTreeSet::new();
    let format = description.format;
    let task = |table: DumpedTable| {
        if Path::new(&table.file).file_name() != Some(table.file.as_ref()) {
            return Err(of_file(format!("{} is no name of a file beside it", shown(&table.file))));
        }
        if !names.insert(table.schema.name.clone()) {
            return Err(of_file(format!("table {} comes twice", shown(&table.schema.name))));
        }
        let (schema, keys) = new_table(&table).map_err(of_file)?;
        let (file, rows) = (from.join(table.file), Some(table.rows));
        Ok(Task { table: table.schema.name, schema: Some(schema), file, format, rows, keys })
    };
    let tasks = description.tables.into_iter().map(task).collect::<Result<_, _>>()?;
    let sequences = description.sequences.iter().map(SequenceDescription::carried);
    let sequences: Vec<_> = sequences.collect::<Result<_, _>>().map_err(of_file)?;
    let mut names = BTreeSet::new();
    if let Some(name) = sequences.iter().filter_map(program_name).find(|name| !names.insert(*name)) {
        return Err(of_file(format!("sequence {} comes twice", shown(name))));
    }
    let migrations = MigrationDescription::applied(&description.migrations).map_err(of_file)?;
    AppliedMigration::check_carried(&migrations).map_err(|error| of_file(error.to_string()))?;
    Ok(Plan { tasks, sequences, migrations, largest_row_id: description.largest_row_id.map(RowId) })
}

/// Returns the schema of a table that is to be made, and the numbers that it gives as keys.
fn new_table(described: &DumpedTable) -> Result<(Schema, Option<CarriedSequence>), String> {
    let name = &described.schema.name;
    if name.starts_with(SYSTEM_PREFIX) {
        return Err(format!("table {}: names with {SYSTEM_PREFIX} belong to the system", shown(name)));
    }
    let keys = described.keys.as_ref().map(|keys| keys.carried(name)).transpose()?;
    Ok((described.schema.schema()?, keys))
}

/// Finds out what a single file is loaded as.
fn plan_of_file(arguments: &LoadArguments) -> Result<Plan, String> {
    let LoadArguments { table, file, format, .. } = arguments;
    // The parser of the arguments has seen to it.
    let (table, file) = (table.clone().unwrap_or_default(), file.clone().unwrap_or_default());
    let format = format.or_else(|| RowFormat::of_file(&file)).unwrap_or_else(|| {
        crate::refuse_usage("the name of the file ends neither in .csv nor in .jsonl: say --format")
    });
    let mut task = Task { table, schema: None, file, format, rows: None, keys: None };
    let mut largest_row_id = None;
    if arguments.create {
        let path = arguments.schema.clone().unwrap_or_else(|| task.file.with_file_name(SCHEMA_FILE));
        let description = DumpDescription::read(&path)?;
        let described = description.tables.iter().find(|described| described.schema.name == task.table);
        let described =
            described.ok_or_else(|| format!("{} has no table {}", path.display(), shown(&task.table)))?;
        let (schema, keys) = new_table(described).map_err(|error| format!("{}: {error}", path.display()))?;
        if schema.key_parts().is_empty() {
            largest_row_id = description.largest_row_id.map(RowId);
        }
        (task.schema, task.keys) = (Some(schema), keys);
    }
    Ok(Plan { tasks: vec![task], sequences: Vec::new(), migrations: Vec::new(), largest_row_id })
}

/// Returns how the database is to be opened. One that is missing is made only where tables are.
fn options_for(directory: &Path, makes_tables: bool) -> Result<Options, String> {
    if is_new(directory) && makes_tables {
        return Ok(Database::options());
    }
    let manifest = ensilo_log::manifest_of(&ensilo::disk::RealDisk, directory);
    Ok(writing_to(directory, &manifest.map_err(|error| error.to_string())?))
}

/// Returns whether there is nothing in the directory.
fn is_new(directory: &Path) -> bool {
    match directory.read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Loads files one after the other, and returns what is to be said of it.
fn load_all(database: &Database, plan: &Plan, how: FileLoad, view: &mut View) -> Result<String, String> {
    refuse(database, plan)?;
    let tasks = &plan.tasks;
    let take = |sequence| database.take_sequence(sequence).map_err(|error| error.to_string());
    plan.sequences.iter().try_for_each(take)?;
    let existing = database.applied_migrations().map_err(|error| error.to_string())?;
    if existing.is_empty() && !plan.migrations.is_empty() {
        database.take_migrations(&plan.migrations).map_err(|error| error.to_string())?;
    }
    let (mut lines, mut all_rows) = (String::new(), 0);
    for (number, task) in tasks.iter().enumerate() {
        let rows = load_file(database, task, how, view).map_err(|error| match number {
            0 => error,
            _ => format!("{error}; the {number} tables before it are loaded"),
        })?;
        all_rows += rows;
        lines += &format!("table {}: {rows} rows loaded\n", task.table.escape_debug());
    }
    if tasks.len() != 1 {
        lines += &format!("{} tables, {all_rows} rows\n", tasks.len());
    }
    Ok(lines)
}

/// Refuses a database that the plan is not for, before anything is made.
fn refuse(database: &Database, plan: &Plan) -> Result<(), String> {
    if database.is_being_set_up().map_err(|error| error.to_string())? {
        return Err(BEING_SET_UP.to_owned());
    }
    let existing = database.list_tables().map_err(|error| error.to_string())?;
    if let Some(task) = plan.tasks.iter().find(|task| task.schema.is_some() && existing.contains(&task.table))
    {
        let remedy = if task.rows.is_some() {
            "load the files of the others one by one, with --create"
        } else {
            "load into it without --create"
        };
        return Err(format!("a table named {} exists: drop it, or {remedy}", shown(&task.table)));
    }
    refuse_instance(database)?;
    refuse_migrations(database, plan, !existing.is_empty())?;
    refuse_sequences(database, &plan.sequences)
}

/// Refuses a database to which other steps of migrations were applied than to that of the dump: the tables would be of another version. A single file is
/// of none.
fn refuse_migrations(database: &Database, plan: &Plan, has_tables: bool) -> Result<(), String> {
    let existing = database.applied_migrations().map_err(|error| error.to_string())?;
    let names = |steps: &[AppliedMigration]| steps.iter().map(|step| step.name.clone()).collect::<Vec<_>>();
    let (is_dump, dumped) = (plan.tasks.iter().all(|task| task.rows.is_some()), &plan.migrations);
    if !is_dump || names(&existing) == names(dumped) {
        return Ok(());
    }
    if dumped.is_empty() {
        return if plan.tasks.is_empty() { Ok(()) } else { Err(WITHOUT_STEPS.to_owned()) };
    }
    if existing.is_empty() {
        return if has_tables { Err(TABLES_WITHOUT_STEPS.to_owned()) } else { Ok(()) };
    }
    Err(format!(
        "the database is at version {} of its program's migrations, and the dump at version {}, or of other steps: load into a new database",
        existing.len(),
        dumped.len()
    ))
}

/// Why a database is refused whose set-up would run over the rows that are loaded.
const BEING_SET_UP: &str = "the database is new, and its program has not set it up to the end, which it would do over the rows that are loaded: start the program, \
     which does that, before; or load into a new database";

/// Why a dump without steps is refused.
const WITHOUT_STEPS: &str = "steps of migrations were applied to the database, and the dump has none: load into a new database; or, if its tables are those of \
     this version, their files one by one with --create";

/// Why a database without steps is refused.
const TABLES_WITHOUT_STEPS: &str = "the dump has steps of migrations that were applied, and the database has tables and no steps, so that its program would not \
     apply them to these any more: load into a new database, or migrate this one before";

/// Refuses a database that has one of the sequences.
fn refuse_sequences(database: &Database, sequences: &[CarriedSequence]) -> Result<(), String> {
    let existing = database.list_sequences().map_err(|error| error.to_string())?;
    let mut names = sequences.iter().filter_map(program_name);
    match names.find(|name| existing.iter().any(|other| other == name)) {
        Some(name) => Err(format!("a sequence named {} exists: a program has to drop it", shown(name))),
        None => Ok(()),
    }
}

fn program_name(sequence: &CarriedSequence) -> Option<&str> {
    match &sequence.of {
        SequenceOf::Program(name) => Some(name),
        SequenceOf::Table { .. } => None,
    }
}

/// Refuses an instance of which rows do not count by themselves.
fn refuse_instance(database: &Database) -> Result<(), String> {
    match stored_instance(database).map_err(|error| error.to_string())? {
        Some(stored) if stored.number.instances > 1 => {
            Err("the database is an instance of several that are one: rows are loaded by a program that opens all of them".to_owned())
        }
        // What is loaded would come behind the last epoch that counts.
        Some(stored) if stored.commits_by_epochs => {
            Err("the database is an instance that commits by epochs: rows are loaded by a program that opens it so".to_owned())
        }
        Some(_) | None => Ok(()),
    }
}

fn load_file(database: &Database, task: &Task, how: FileLoad, view: &mut View) -> Result<u64, String> {
    let file = InputFile::open(&task.file)?;
    let table = match &task.schema {
        Some(schema) => database.create_dynamic_table(schema.clone()),
        None => database.open_dynamic_table(&task.table),
    };
    let table = table.map_err(|error| error.to_string())?;
    if let Some(keys) = &task.keys {
        database.take_sequence(keys).map_err(|error| error.to_string())?;
    }
    view.stage(&format!("table {}", task.table.escape_debug()));
    let name = task.file.display().to_string();
    let loader = Loader { database, table: &table, how };
    let rows = loader.load(file, task.format, view).map_err(|stopped| format!("{name}: {stopped}"))?;
    match task.rows {
        Some(expected) if expected != rows => Err(format!(
            "{name} has {rows} rows, which are in, and {SCHEMA_FILE} says {expected}: the file was cut off or changed"
        )),
        _ => Ok(rows),
    }
}
