//! Schemas: the names, types, keys and indexes of a table, checked when they are made.

mod builder;
mod catalog;
mod check;
mod column_set;
mod decode;
mod encode;
mod error;
mod float;
mod index;
mod index_key;
mod key;
mod key_columns;
mod key_part;
mod same_key;

use crate::layout::place;
use crate::{ColumnSpec, ColumnType, Order, RowDescription, Slot};

pub use builder::SchemaBuilder;
pub use error::SchemaError;
pub use index::IndexSchema;

/// The longest name of a table, column or index in bytes.
pub const NAME_LEN_MAX: usize = 255;

/// The most columns of a table.
const COLUMNS_MAX: usize = 1024;

/// The most secondary indexes of a table.
pub const INDEXES_MAX: usize = 64;

/// A table's columns, primary key and secondary indexes.
///
/// A schema that exists is valid: names are there and distinct, keys name columns, the layout is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    name: String,
    columns: Vec<Column>,
    primary_key: PrimaryKey,
    /// Of each column, its place in the primary key.
    key_positions: Vec<Option<usize>>,
    indexes: Vec<IndexSchema>,
    slots: Vec<Slot>,
    fixed_len: usize,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
}

/// A column's part in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartSchema {
    /// The column's index in [`Schema::columns`].
    pub column: usize,
    /// Its order in the key.
    pub order: Order,
}

/// What identifies a row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrimaryKey {
    /// Columns, in key order.
    Columns(Vec<PartSchema>),
    /// A number that the table invents; a `u64`, big endian, in keys.
    RowId,
}

impl Schema {
    /// Begins a schema for the table of this name.
    pub fn builder(name: impl Into<String>) -> SchemaBuilder {
        SchemaBuilder::new(name.into())
    }

    /// The schema of a derived row.
    ///
    /// # Panics
    /// If the description is not valid. Those that the derive macros write are.
    pub fn of(description: &RowDescription) -> Self {
        match Self::builder(description.table).describe(description).build() {
            Ok(schema) => schema,
            Err(error) => panic!("the row of table `{}` has no valid schema: {error}", description.table),
        }
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The index of the column with this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// What identifies a row.
    pub fn primary_key(&self) -> &PrimaryKey {
        &self.primary_key
    }

    /// The columns of the primary key, in key order; none if the table invents row ids.
    pub fn key_parts(&self) -> &[PartSchema] {
        match &self.primary_key {
            PrimaryKey::Columns(parts) => parts,
            PrimaryKey::RowId => &[],
        }
    }

    /// The secondary indexes.
    pub fn indexes(&self) -> &[IndexSchema] {
        &self.indexes
    }

    /// The secondary index with this name.
    pub fn index(&self, name: &str) -> Option<&IndexSchema> {
        self.indexes.iter().find(|index| index.name() == name)
    }

    /// The same schema for a table of another name.
    ///
    /// # Errors
    /// As for [`SchemaBuilder::build`].
    pub fn renamed(&self, name: impl Into<String>) -> Result<Self, SchemaError> {
        let Self { columns, primary_key, indexes, .. } = self.clone();
        Self::checked(name.into(), columns, primary_key, indexes)
    }

    /// The same schema with one more index.
    ///
    /// # Errors
    /// As for [`SchemaBuilder::build`].
    pub fn with_index(&self, index: IndexSchema) -> Result<Self, SchemaError> {
        let mut schema = self.clone();
        schema.indexes.push(index);
        schema.check_indexes()?;
        Ok(schema)
    }

    /// The same schema without the index of this name; the same if there is none.
    pub fn without_index(&self, name: &str) -> Self {
        let mut schema = self.clone();
        schema.indexes.retain(|index| index.name() != name);
        schema
    }

    /// Where the columns lie in a row.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The length in bytes of the fixed part: every row is at least as long.
    pub fn fixed_len(&self) -> usize {
        self.fixed_len
    }

    /// Whether the column is part of the primary key.
    pub fn is_key_column(&self, column: usize) -> bool {
        self.key_position(column).is_some()
    }

    /// The column's place in the primary key.
    fn key_position(&self, column: usize) -> Option<usize> {
        self.key_positions.get(column).copied().flatten()
    }

    /// Notes which columns the primary key has.
    fn place_key_columns(&mut self) {
        let mut positions = vec![None; self.columns.len()];
        for (position, part) in self.key_parts().iter().enumerate() {
            positions[part.column] = Some(position);
        }
        self.key_positions = positions;
    }

    /// What the layout has to know of the columns.
    fn specs(&self) -> Vec<ColumnSpec> {
        let spec = |index: usize| ColumnSpec {
            column_type: self.columns[index].column_type,
            nullable: self.columns[index].nullable,
            in_key: self.is_key_column(index),
        };
        (0..self.columns.len()).map(spec).collect()
    }

    /// Computes the layout.
    fn place_columns(&mut self) {
        let specs = self.specs();
        self.slots = vec![Slot::ABSENT; specs.len()];
        self.fixed_len = place(&specs, &mut self.slots) as usize;
    }
}
