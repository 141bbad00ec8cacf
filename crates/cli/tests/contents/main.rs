//! The commands on what is in a database, as their users run them.
//!
//! What lies in `every_engine` holds for directories that any engine has written, and is compiled for each of them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ensilo::generic::{Database, DynamicTable, Migrations};
use ensilo::row::RowId;
use ensilo::{ColumnType, Engine, Order, Schema, SchemaChange, SequenceOptions, Timestamp, Value};
use serde_json::Value as Json;

#[path = "../common/mod.rs"]
mod common;

use common::{TestDirectory, ensilo, expect_exit, text};

/// Silo's engine.
#[path = "."]
mod silo {
    type Engine = ensilo::Silo;

    /// Its name.
    const ENGINE: &str = "silo";

    mod every_engine;
}

/// ERMIA's engine.
#[path = "."]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    const ENGINE: &str = "ermia";

    mod every_engine;
}

/// Two-phase locking.
#[path = "."]
mod two_phase_locking {
    type Engine = ensilo::two_phase_locking::TwoPhaseLocking<ensilo::two_phase_locking::WaitDie>;

    const ENGINE: &str = "2pl";

    mod every_engine;
}

/// The formats that the program writes and reads.
const FORMATS: &[&str] = &[
    "csv",
    "jsonl",
    #[cfg(feature = "parquet")]
    "parquet",
];

/// Accounts with a descending key, and two indexes.
fn accounts() -> Schema {
    Schema::builder("account")
        .column("branch", ColumnType::U16)
        .column("id", ColumnType::U32)
        .column("owner", ColumnType::FixedText { len_max: 16 })
        .nullable("balance", ColumnType::Decimal { scale: 2 })
        .key([("branch", Order::Ascending), ("id", Order::Descending)])
        .unique_index("by_owner", [("owner", Order::Ascending)])
        .index("by_balance", [("balance", Order::Descending), ("owner", Order::Ascending)])
        .build()
        .unwrap()
}

fn account(branch: u16, id: u32, owner: &str, balance: Option<i64>) -> Vec<Value> {
    let balance = balance.map_or(Value::Null, |units| Value::Decimal { units, scale: 2 });
    vec![branch.into(), id.into(), owner.into(), balance]
}

/// A table whose name is no name of a file, with a column of each type that may be null, and row ids.
fn everything() -> Schema {
    use ColumnType as Type;
    let types = [
        ("bool", Type::Bool),
        ("i8", Type::I8),
        ("i16", Type::I16),
        ("i32", Type::I32),
        ("i64", Type::I64),
        ("u8", Type::U8),
        ("u16", Type::U16),
        ("u32", Type::U32),
        ("u64", Type::U64),
        ("f32", Type::F32),
        ("f64", Type::F64),
        ("decimal", Type::Decimal { scale: 18 }),
        ("timestamp", Type::Timestamp),
        ("fixed text", Type::FixedText { len_max: 300 }),
        ("fixed, bytes", Type::FixedBytes { len: 3 }),
        ("text", Type::Text),
        ("rowid", Type::Bytes),
    ];
    let named = Schema::builder("every/\"thing\"");
    let builder = types.into_iter().fold(named, |builder, (name, of_type)| builder.nullable(name, of_type));
    builder.index("by_f64", [("f64", Order::Ascending)]).build().unwrap()
}

/// Rows of [`everything`]: nulls, ends of ranges, and what is a mark in one of the formats.
fn rows_of_everything() -> Vec<Vec<Value>> {
    let integers = |least: bool| -> Vec<Value> {
        match least {
            true => vec![
                i8::MIN.into(),
                i16::MIN.into(),
                i32::MIN.into(),
                i64::MIN.into(),
                0u8.into(),
                0u16.into(),
                0u32.into(),
                0u64.into(),
            ],
            false => vec![
                i8::MAX.into(),
                i16::MAX.into(),
                i32::MAX.into(),
                i64::MAX.into(),
                u8::MAX.into(),
                u16::MAX.into(),
                u32::MAX.into(),
                u64::MAX.into(),
            ],
        }
    };
    let rest = |f32_bits: u32, f64_bits: u64, micros: i64, text: &str, bytes: &[u8]| -> Vec<Value> {
        vec![
            f32::from_bits(f32_bits).into(),
            f64::from_bits(f64_bits).into(),
            Value::Decimal { units: micros, scale: 18 },
            Timestamp::from_micros(micros).into(),
            text.into(),
            vec![0u8, 255, 10].into(),
            text.into(),
            bytes.to_vec().into(),
        ]
    };
    let mut rows = vec![vec![Value::Null; 17]];
    let texts = ["", "\\N", "\\", "null", "a,\"b\"\r\nc\n", " \u{0} é😀\u{feff}", "0x", "NaN"];
    let floats = [
        (0, 0),
        (1 << 31, 1 << 63),
        (1, 1),
        (0x7f7f_ffff, 0x7fef_ffff_ffff_ffff),
        (0x7f80_0000, 0xfff0_0000_0000_0000),
        (0x7fc0_0000, 0x7ff8_0000_0000_0000),
        (0xffc0_0001, 0xfff8_0000_0000_0001),
        (0x3dcc_cccd, 0x3fb9_9999_9999_999a),
    ];
    let times =
        [0, -1, i64::MIN, i64::MAX, 951_825_600_000_001, -62_167_219_200_000_001, 1, 253_402_300_800_000_000];
    for (number, ((text, (narrow, wide)), micros)) in texts.into_iter().zip(floats).zip(times).enumerate() {
        let first = [Value::Bool(number % 2 == 0)].into_iter().chain(integers(number % 2 == 0));
        rows.push(first.chain(rest(narrow, wide, micros, text, text.as_bytes())).collect());
    }
    rows
}

/// All rows of a table, each with its key.
fn rows_of<E: Engine>(database: &Database<E>, table: &str) -> Vec<(Vec<Value>, Vec<Value>)> {
    let table: DynamicTable<E> = database.open_dynamic_table(table).unwrap();
    let mut rows = Vec::new();
    let read = database.read(|tx| {
        rows.clear();
        table.scan().for_each(tx, |key, columns| rows.push((key.to_vec(), columns.to_vec())))
    });
    read.unwrap();
    rows
}

/// Runs the program, which must succeed, and returns its standard output alone.
fn output_of(arguments: &[&str], paths: &[&Path]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ensilo"));
    let output = command.args(arguments).args(paths).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The names in a directory, in their order.
fn files_in(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_command_explains_itself() {
    for command in ["tables", "dump", "load", "stat"] {
        let help = expect_exit(0, &[command, "--help"], &[]);
        assert!(help.contains("Exit codes:") && help.contains("The database"), "{command}: {help}");
    }
}

#[test]
fn bad_parameters_are_usage_errors() {
    for arguments in [
        &["tables"][..],
        &["tables", "somewhere", "--limit", "3"],
        &["tables", "somewhere", "--from", "3"],
        &["dump", "somewhere"],
        &["dump", "somewhere", "a", "b"],
        &["dump", "somewhere", "a", "--format", "xml"],
        &["load", "somewhere"],
        &["load", "somewhere", "a"],
        &["load", "somewhere", "a", "rows.txt"],
        &["load", "somewhere", "a", "rows.csv", "--schema", "s.json"],
        &["load", "somewhere", "a", "rows.csv", "--from", "dump"],
        &["load", "somewhere", "--from", "dump", "--atomic"],
        &["stat"],
    ] {
        expect_exit(2, arguments, &[]);
    }
}

#[test]
fn what_is_no_database_is_an_error_and_stays_as_it_is() {
    let directory = TestDirectory::new("no-database");
    let (missing, rows) = (directory.join("missing"), directory.join("rows.csv"));
    fs::write(&rows, "id\n1\n").unwrap();
    let target = directory.join("target");
    let dump = ["dump", "--out", target.to_str().unwrap()];
    for arguments in [&["tables"][..], &["stat"], &["stat", "--files"], &dump] {
        let said = expect_exit(1, arguments, &[&missing]);
        assert!(said.contains("error: "), "{arguments:?}: {said}");
        assert!(!missing.exists() && !target.exists(), "{arguments:?}");
    }
    let said = expect_exit(1, &["load"], &[&missing, Path::new("account"), &rows]);
    assert!(said.contains("error: ") && !missing.exists(), "{said}");
    let said = expect_exit(1, &["load"], &[&*directory, Path::new("account"), &rows, Path::new("--create")]);
    assert!(said.contains("schema.json"), "{said}");
    assert_eq!(files_in(&directory), ["rows.csv"]);
}
