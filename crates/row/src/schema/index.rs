//! Secondary indexes in a schema.

use super::parts::PartSchema;

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

    /// Returns whether no two rows may have the same values in its columns, unless one of them is null.
    pub const fn is_unique(&self) -> bool {
        self.unique
    }

    /// Returns whether one of these columns is part of it: if not, updating them changes no entry.
    pub fn touches(&self, columns: &[usize]) -> bool {
        self.parts.iter().any(|part| columns.contains(&part.column))
    }
}
