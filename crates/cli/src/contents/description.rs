//! Tables as text that programs read: what `ensilo tables` shows, and the file `schema.json` of a dump.

use std::fs;
use std::path::Path;

use ensilo::{Order, Schema};
use serde::{Deserialize, Serialize};

use super::migrations::MigrationDescription;
use super::row_format::RowFormat;
use super::sequences::{KeyNumbersDescription, SequenceDescription};
use super::value_text::{column_type_of, shown};

/// The name of the file that describes a dump.
pub(super) const SCHEMA_FILE: &str = "schema.json";

/// The version of that file where it has steps of migrations. Later ones are refused.
const VERSION: u32 = 3;

/// The version of a description without these that has what [`PLAIN_VERSION`] has not: sequences, numbers of tables, row ids, places of nulls.
const WITHOUT_MIGRATIONS: u32 = 2;

/// The version of a description without these, which earlier programs read as well.
const PLAIN_VERSION: u32 = 1;

/// What a dump has.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DumpDescription {
    version: u32,
    /// How the rows are written.
    pub(super) format: RowFormat,
    pub(super) tables: Vec<DumpedTable>,
    /// Those of programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sequences: Vec<SequenceDescription>,
    /// The steps that were applied, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) migrations: Vec<MigrationDescription>,
    /// Where a table has row ids: one that no row had a larger one than, not even one that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) largest_row_id: Option<u64>,
}

/// A table of a dump.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DumpedTable {
    pub(super) schema: TableDescription,
    /// The name of the file with its rows, beside this one.
    pub(super) file: String,
    pub(super) rows: u64,
    /// The numbers that it gives as keys, if it gives any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keys: Option<KeyNumbersDescription>,
}

/// A table.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableDescription {
    pub(super) name: String,
    pub(super) columns: Vec<ColumnDescription>,
    /// The primary key; without columns the table invents row ids.
    pub(super) key: Vec<PartDescription>,
    pub(super) indexes: Vec<IndexDescription>,
}

/// A column.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnDescription {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) column_type: String,
    pub(super) nullable: bool,
}

/// An index.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexDescription {
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) columns: Vec<PartDescription>,
}

/// A column's part in a key.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartDescription {
    pub(super) column: String,
    pub(super) order: OrderDescription,
    /// Where nulls come, if not first in ascending and last in descending order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nulls: Option<NullsDescription>,
}

/// The place of nulls in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NullsDescription {
    First,
    Last,
}

/// The order of a column in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OrderDescription {
    Ascending,
    Descending,
}

impl DumpDescription {
    pub(super) fn new(
        format: RowFormat,
        tables: Vec<DumpedTable>,
        sequences: Vec<SequenceDescription>,
        migrations: Vec<MigrationDescription>,
        largest_row_id: Option<u64>,
    ) -> Self {
        let is_plain = sequences.is_empty()
            && largest_row_id.is_none()
            && tables.iter().all(|table| table.keys.is_none() && table.schema.is_plain());
        let version = match is_plain {
            _ if !migrations.is_empty() => VERSION,
            true => PLAIN_VERSION,
            false => WITHOUT_MIGRATIONS,
        };
        DumpDescription { version, format, tables, sequences, migrations, largest_row_id }
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> String {
        // No map with keys that are no strings, and nothing else that JSON has not.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Where and why it is no description of a dump.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let no_dump = |error| format!("{} describes no dump: {error}", path.display());
        // First, since another version may have other fields.
        let DumpVersion { version } = serde_json::from_str(&text).map_err(no_dump)?;
        if !(PLAIN_VERSION..=VERSION).contains(&version) {
            return Err(format!(
                "{} has version {version}, and this program reads versions {PLAIN_VERSION} to {VERSION}",
                path.display()
            ));
        }
        serde_json::from_str(&text).map_err(no_dump)
    }
}

/// What every version of the description has.
#[derive(Deserialize)]
struct DumpVersion {
    version: u32,
}

impl TableDescription {
    pub(super) fn of(schema: &Schema) -> Self {
        let parts = |parts: &[ensilo::row::PartSchema]| {
            let part = |part: &ensilo::row::PartSchema| PartDescription {
                column: schema.columns()[part.column].name.clone(),
                order: match part.order.is_descending() {
                    false => OrderDescription::Ascending,
                    true => OrderDescription::Descending,
                },
                nulls: match part.order {
                    Order::Ascending | Order::Descending => None,
                    Order::AscendingNullsLast => Some(NullsDescription::Last),
                    Order::DescendingNullsFirst => Some(NullsDescription::First),
                },
            };
            parts.iter().map(part).collect::<Vec<_>>()
        };
        let columns = schema.columns().iter().map(|column| ColumnDescription {
            name: column.name.clone(),
            column_type: column.column_type.to_string(),
            nullable: column.nullable,
        });
        let indexes = schema.indexes().iter().map(|index| IndexDescription {
            name: index.name().to_owned(),
            unique: index.is_unique(),
            columns: parts(index.parts()),
        });
        TableDescription {
            name: schema.name().to_owned(),
            columns: columns.collect(),
            key: parts(schema.key_parts()),
            indexes: indexes.collect(),
        }
    }

    /// Returns whether the first version of the file can describe it.
    fn is_plain(&self) -> bool {
        let of_indexes = self.indexes.iter().flat_map(|index| &index.columns);
        self.key.iter().chain(of_indexes).all(|part| part.nulls.is_none())
    }

    /// Returns the schema that is described.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn schema(&self) -> Result<Schema, String> {
        let of_table = |error: &dyn std::fmt::Display| format!("table {}: {error}", shown(&self.name));
        let mut builder = Schema::builder(&self.name);
        for ColumnDescription { name, column_type, nullable } in &self.columns {
            let column_type = column_type_of(column_type).ok_or_else(|| {
                of_table(&format!("column {} has the unknown type {}", shown(name), shown(column_type)))
            })?;
            builder = if *nullable {
                builder.nullable(name, column_type)
            } else {
                builder.column(name, column_type)
            };
        }
        builder = builder.key(named(&self.key));
        for IndexDescription { name, unique, columns } in &self.indexes {
            builder = if *unique {
                builder.unique_index(name, named(columns))
            } else {
                builder.index(name, named(columns))
            };
        }
        builder.build().map_err(|error| of_table(&error))
    }
}

fn named(parts: &[PartDescription]) -> impl Iterator<Item = (&str, Order)> {
    parts.iter().map(|PartDescription { column, order, nulls }| {
        let order = match (order, nulls) {
            (OrderDescription::Ascending, None | Some(NullsDescription::First)) => Order::Ascending,
            (OrderDescription::Descending, None | Some(NullsDescription::Last)) => Order::Descending,
            (OrderDescription::Ascending, Some(NullsDescription::Last)) => Order::AscendingNullsLast,
            (OrderDescription::Descending, Some(NullsDescription::First)) => Order::DescendingNullsFirst,
        };
        (column.as_str(), order)
    })
}

/// The name of the column that shows row ids: `rowid`, with as many underscores behind it as it takes to be no
/// column's.
pub(super) fn row_id_column(schema: &Schema) -> String {
    let mut name = "rowid".to_owned();
    while schema.column(&name).is_some() {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use ensilo::ColumnType;

    use super::*;

    #[test]
    fn a_schema_is_what_its_description_makes() {
        let schema = Schema::builder("stock\n")
            .column("w", ColumnType::U16)
            .nullable("rowid", ColumnType::Decimal { scale: 4 })
            .nullable("other", ColumnType::I8)
            .column("name", ColumnType::FixedText { len_max: 300 })
            .key([("w", Order::Descending), ("name", Order::Ascending)])
            .unique_index("by_rowid", [("rowid", Order::Ascending)])
            .index("by_nulls", [("rowid", Order::AscendingNullsLast), ("other", Order::DescendingNullsFirst)])
            .index("by_name", [("name", Order::Descending), ("w", Order::Ascending)])
            .build()
            .unwrap();
        let described = TableDescription::of(&schema);
        assert_eq!(described.schema().unwrap(), schema);
        let text = serde_json::to_string(&described).unwrap();
        assert_eq!(serde_json::from_str::<TableDescription>(&text).unwrap(), described);
        assert_eq!(row_id_column(&schema), "rowid_");
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        let column = ColumnDescription { name: "a".into(), column_type: "u256".into(), nullable: false };
        let described =
            TableDescription { name: "t".into(), columns: vec![column], key: vec![], indexes: vec![] };
        assert!(described.schema().unwrap_err().contains(r#"column "a" has the unknown type "u256""#));
        let field = r#"{"name": "t", "columns": [], "key": [], "indexes": [], "owner": "x"}"#;
        assert!(serde_json::from_str::<TableDescription>(field).is_err());
    }
}
