//! Whether a row type, or another schema that a program has, fits the table as it is, and in what they differ.

use std::fmt::Write as _;

use ensilo_engine::Store;
use ensilo_row::{
    Column, ColumnType, IndexSchema, Order, PartSchema, PrimaryKey, Schema, SchemaChange, SchemaError,
};

use crate::catalog::table_core::TableCore;
use crate::error::SchemaMismatch;
use crate::{Error, Result};

/// Compares the schema that a program wants with that of the table as it is. A table may have indexes that the
/// program does not know.
///
/// # Errors
/// [`Error::SchemaMismatch`], with all differences.
pub(super) fn check_schema<S: Store>(table: &TableCore<S>, wanted: &Schema) -> Result<()> {
    let stored = table.current_schema();
    if differences(&stored, wanted).is_empty() { Ok(()) } else { Err(schema_mismatch(&stored, wanted)) }
}

/// Returns the error for a row type that does not fit the table.
#[cold]
pub(super) fn schema_mismatch(stored: &Schema, wanted: &Schema) -> Error {
    Error::SchemaMismatch(SchemaMismatch::new(stored.name(), differences(stored, wanted)))
}

/// Returns the changes that make the table's columns those of `wanted`, which it has to have in the end: as few of the last
/// ones of `changes` as do, and none if it has them.
///
/// # Errors
/// [`Error::InvalidSchema`] when a change cannot be, [`Error::SchemaMismatch`] when they lead elsewhere, or an index of the table is
/// another one than that of `wanted`.
pub(super) fn change_to(
    stored: &Schema,
    wanted: &Schema,
    changes: &[SchemaChange],
) -> Result<Option<SchemaChange>> {
    let has_columns = |schema: &Schema| {
        schema.columns() == wanted.columns() && schema.primary_key() == wanted.primary_key()
    };
    let has_indexes = |schema: &Schema| {
        wanted.indexes().iter().all(|index| schema.index(index.name()).is_none_or(|other| other == index))
    };
    if has_columns(stored) {
        return if has_indexes(stored) { Ok(None) } else { Err(schema_mismatch(stored, wanted)) };
    }
    let mut refused = None;
    for first in (0..=changes.len()).rev() {
        let change = changes[first..].iter().fold(SchemaChange::new(), |all, change| all.then(change));
        if let Err(error) = stored.with_change(&change) {
            refused = refused.or_else(|| is_telling(&error).then_some(error));
            continue;
        }
        let names = wanted.columns().iter().map(|column| column.name.clone());
        let change = change.order(names);
        match stored.with_change(&change) {
            Ok(changed) if has_columns(&changed) && has_indexes(&changed) => return Ok(Some(change)),
            Ok(changed) if has_columns(&changed) => return Err(schema_mismatch(&changed, wanted)),
            _ => {}
        }
    }
    Err(refused.map_or_else(|| schema_mismatch(stored, wanted), Error::from_schema))
}

/// Returns whether the error says more than that a change is one of another version.
fn is_telling(error: &SchemaError) -> bool {
    !matches!(error, SchemaError::UnknownColumn { .. } | SchemaError::DuplicateColumn { .. })
}

/// Returns in what the row type differs from the table that is stored, each with what helps.
fn differences(stored: &Schema, wanted: &Schema) -> Vec<String> {
    let mut differences = Vec::new();
    for column in stored.columns() {
        let is_known = wanted.column(&column.name).map(|at| &wanted.columns()[at]);
        differences.extend(column_difference(column, is_known));
    }
    for column in wanted.columns().iter().filter(|column| stored.column(&column.name).is_none()) {
        differences.push(format!(
            "it has no column {}, which the row type has as {}: take it out of the row type, or add it to the table by \
             Database::table_with_changes",
            column.name,
            rust_type(column)
        ));
    }
    if differences.is_empty() {
        differences.extend(order_difference(stored, wanted));
        differences.extend(key_difference(stored, wanted));
    }
    // What an index is over cannot be compared before the columns are the same.
    if differences.is_empty() {
        differences.extend(wanted.indexes().iter().filter_map(|index| index_difference(stored, index)));
    }
    differences
}

fn column_difference(stored: &Column, wanted: Option<&Column>) -> Option<String> {
    let name = &stored.name;
    match wanted {
        Some(wanted) if wanted == stored => None,
        Some(wanted) => Some(format!(
            "its column {name} is {}, that of the row type {}: write `{name}: {}`",
            described(stored),
            described(wanted),
            rust_type(stored)
        )),
        None => Some(format!(
            "it has a column {name}, which the row type has not: add `{name}: {}` to the row type",
            rust_type(stored)
        )),
    }
}

fn order_difference(stored: &Schema, wanted: &Schema) -> Option<String> {
    let names = |schema: &Schema| {
        let names: Vec<_> = schema.columns().iter().map(|column| column.name.clone()).collect();
        names.join(", ")
    };
    (stored.columns() != wanted.columns())
        .then(|| {
            let order = names(stored);
            format!(
                "its columns stand in another order: write them as {order}, or open it by table_with_changes, which moves them"
            )
        })
}

fn key_difference(stored: &Schema, wanted: &Schema) -> Option<String> {
    let described = |schema: &Schema| match schema.primary_key() {
        PrimaryKey::Columns(parts) => format!("({})", described_parts(schema, parts)),
        _ => "row ids of its own".to_owned(),
    };
    (stored.primary_key() != wanted.primary_key()).then(|| {
        let (stored, wanted) = (described(stored), described(wanted));
        format!("its primary key is {stored}, that of the row type {wanted}: let `#[row(key)]` say the same")
    })
}

fn index_difference(stored: &Schema, wanted: &IndexSchema) -> Option<String> {
    let name = wanted.name();
    let described = |index: &IndexSchema| {
        let unique = if index.is_unique() { "unique on " } else { "on " };
        format!("{unique}({})", described_parts(stored, index.parts()))
    };
    match stored.index(name) {
        Some(existing) if existing == wanted => None,
        Some(existing) => Some(format!(
            "its index {name} is {}, that of the row type {}: change the row type, or make the index anew by \
             Database::drop_index and {}",
            described(existing),
            described(wanted),
            creation_of(wanted)
        )),
        None => Some(format!(
            "it has no index {name}, {} in the row type: make it by {}",
            described(wanted),
            creation_of(wanted)
        )),
    }
}

/// The method that makes an index.
fn creation_of(index: &IndexSchema) -> &'static str {
    if index.is_unique() { "Database::create_unique_index" } else { "Database::create_index" }
}

fn described(column: &Column) -> String {
    let null = if column.nullable { ", nullable" } else { "" };
    format!("{}{null}", column.column_type)
}

fn described_parts(schema: &Schema, parts: &[PartSchema]) -> String {
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        let order = match part.order {
            Order::Ascending => "",
            Order::Descending => " descending",
            Order::AscendingNullsLast => " nulls last",
            Order::DescendingNullsFirst => " descending nulls first",
        };
        // Writing to a string cannot fail.
        _ = write!(text, "{separator}{}{order}", schema.columns()[part.column].name);
    }
    text
}

/// Returns the Rust type of the keys of an index with these parts.
pub(crate) fn index_key_type(schema: &Schema, parts: &[PartSchema]) -> String {
    let of_part = |part: &PartSchema| {
        let column = rust_type(&schema.columns()[part.column]);
        match part.order {
            Order::Ascending => column,
            Order::Descending => format!("Reverse<{column}>"),
            Order::AscendingNullsLast => format!("NullsLast<{column}>"),
            Order::DescendingNullsFirst => format!("Reverse<NullsLast<{column}>>"),
        }
    };
    let types: Vec<_> = parts.iter().map(of_part).collect();
    if let [one] = &types[..] { one.clone() } else { format!("({})", types.join(", ")) }
}

/// The Rust type of a field for the column.
fn rust_type(column: &Column) -> String {
    let not_null = match column.column_type {
        ColumnType::Decimal { scale } => format!("Decimal<{scale}>"),
        ColumnType::Timestamp => "Timestamp".to_owned(),
        ColumnType::FixedText { len_max } => format!("Text<{len_max}>"),
        ColumnType::FixedBytes { len } => format!("[u8; {len}]"),
        ColumnType::Text => "String".to_owned(),
        ColumnType::Bytes => "Vec<u8>".to_owned(),
        // Numbers and booleans have the name of their Rust type.
        other => other.to_string(),
    };
    if column.nullable { format!("Option<{not_null}>") } else { not_null }
}
