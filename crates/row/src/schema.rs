//! Schemas: the names, types, keys and indexes of a table, checked when they are made.

mod builder;
mod catalog;
mod change;
mod check;
mod column_set;
mod decode;
mod encode;
mod error;
mod float;
mod history;
mod index;
mod index_key;
mod key;
mod key_columns;
mod key_number;
mod key_part;
#[cfg(feature = "serde")]
mod named_row;
mod older_rows;
mod parts;
mod same_key;
mod shown_key;

use crate::layout::place;
use crate::{ColumnSpec, KeyPart, Slot};

pub use builder::SchemaBuilder;
pub use change::SchemaChange;
pub use error::SchemaError;
pub use history::SchemaHistory;
pub use index::IndexSchema;
pub use parts::{Column, PartSchema, PrimaryKey};

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

impl Schema {
    /// Returns the name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the index of the column with this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Returns what identifies a row.
    pub fn primary_key(&self) -> &PrimaryKey {
        &self.primary_key
    }

    /// Returns the columns of the primary key, in key order; none if the table invents row ids.
    pub fn key_parts(&self) -> &[PartSchema] {
        match &self.primary_key {
            PrimaryKey::Columns(parts) => parts,
            PrimaryKey::RowId => &[],
        }
    }

    /// Returns what the columns of the primary key are, in key order, as [`Key::PARTS`](crate::Key::PARTS) says it of
    /// a Rust type; none if the table invents row ids.
    pub fn key_types(&self) -> Vec<KeyPart> {
        let key_type = |part: &PartSchema| {
            let Column { column_type, nullable, .. } = self.columns[part.column];
            KeyPart { column_type, nullable, order: part.order }
        };
        self.key_parts().iter().map(key_type).collect()
    }

    /// Returns the secondary indexes.
    pub fn indexes(&self) -> &[IndexSchema] {
        &self.indexes
    }

    /// Returns the secondary index with this name.
    pub fn index(&self, name: &str) -> Option<&IndexSchema> {
        self.indexes.iter().find(|index| index.name() == name)
    }

    /// Returns the same schema for a table of another name.
    ///
    /// # Errors
    /// As for [`SchemaBuilder::build`].
    pub fn renamed(&self, name: impl Into<String>) -> Result<Self, SchemaError> {
        let Self { columns, primary_key, indexes, .. } = self.clone();
        Self::checked(name.into(), columns, primary_key, indexes)
    }

    /// Returns the same schema with one more index.
    ///
    /// # Errors
    /// As for [`SchemaBuilder::build`].
    pub fn with_index(&self, index: IndexSchema) -> Result<Self, SchemaError> {
        let mut schema = self.clone();
        schema.indexes.push(index);
        schema.check_indexes()?;
        Ok(schema)
    }

    /// Returns the same schema without the index of this name; the same if there is none.
    pub fn without_index(&self, name: &str) -> Self {
        let mut schema = self.clone();
        schema.indexes.retain(|index| index.name() != name);
        schema
    }

    /// Returns where the columns lie in a row.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Returns the length in bytes of the fixed part: every row is at least as long.
    pub fn fixed_len(&self) -> usize {
        self.fixed_len
    }

    /// Returns whether the column is part of the primary key.
    pub fn is_key_column(&self, column: usize) -> bool {
        self.key_position(column).is_some()
    }

    /// Returns the column's place in the primary key.
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

    /// Returns what the layout has to know of the columns.
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
