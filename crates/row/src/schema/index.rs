//! Secondary indexes in a schema.

use super::builder::resolve;
use super::column_set::ColumnSet;
use super::{PartSchema, Schema, SchemaError};
use crate::Order;

/// A secondary index: an ordered map from some of a table's columns to primary keys.
///
/// The key of an entry is the index's columns, then those columns of the primary key that are not among them (or the row
/// id); in a unique index the index's columns alone, unless one of them is null. The payload of an entry is the primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    name: String,
    parts: Vec<PartSchema>,
    unique: bool,
}

impl IndexSchema {
    /// An index over the columns of `schema` with these names. [`Schema::with_index`] does the other checks.
    ///
    /// # Errors
    /// [`SchemaError::UnknownColumn`].
    pub fn new<N: Into<String>>(
        schema: &Schema,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = (N, Order)>,
        unique: bool,
    ) -> Result<Self, SchemaError> {
        let parts: Vec<_> = parts.into_iter().map(|(name, order)| (name.into(), order)).collect();
        Ok(Self::of_parts(name.into(), resolve(schema.name(), schema.columns(), &parts)?, unique))
    }

    pub(super) const fn of_parts(name: String, parts: Vec<PartSchema>, unique: bool) -> Self {
        Self { name, parts, unique }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, in key order; without the primary key that may follow them.
    pub fn parts(&self) -> &[PartSchema] {
        &self.parts
    }

    /// Whether no two rows may have the same values in its columns, unless one of them is null.
    pub const fn is_unique(&self) -> bool {
        self.unique
    }

    /// Whether one of these columns is part of it: if not, updating them changes no entry.
    pub fn touches(&self, columns: &[usize]) -> bool {
        self.parts.iter().any(|part| columns.contains(&part.column))
    }
}

impl Schema {
    /// The columns of the index, then the others of the primary key; a row id is not among them.
    pub fn index_key_parts(&self, index: &IndexSchema) -> Vec<PartSchema> {
        let columns = ColumnSet::of(&index.parts);
        let rest = self.key_parts().iter().filter(|part| !columns.has(part.column));
        index.parts.iter().chain(rest).copied().collect()
    }
}
