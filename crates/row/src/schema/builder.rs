//! Making a schema by names.

use super::{Column, IndexSchema, PartSchema, PrimaryKey, Schema, SchemaError};
use crate::{ColumnType, Order, RowDescription};

/// The columns of a key by name.
type NamedParts = Vec<(String, Order)>;

/// A schema in the making.
///
/// ```
/// use ensilo_row::{ColumnType, Order, Schema};
///
/// let schema = Schema::builder("account")
///     .column("id", ColumnType::U32)
///     .column("owner", ColumnType::FixedText { len_max: 16 })
///     .nullable("balance", ColumnType::Decimal { scale: 2 })
///     .key([("id", Order::Ascending)])
///     .index("by_owner", [("owner", Order::Ascending)])
///     .build()?;
/// assert_eq!(schema.column("balance"), Some(2));
/// # Ok::<(), ensilo_row::SchemaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SchemaBuilder {
    name: String,
    columns: Vec<Column>,
    key: NamedParts,
    indexes: Vec<(String, bool, NamedParts)>,
}

impl Schema {
    /// Begins a schema for the table of this name.
    pub fn builder(name: impl Into<String>) -> SchemaBuilder {
        let (columns, key, indexes) = (Vec::new(), Vec::new(), Vec::new());
        SchemaBuilder { name: name.into(), columns, key, indexes }
    }

    /// Returns the schema of a derived row.
    ///
    /// # Panics
    /// If the description is not valid. Those that the derive macros write are.
    pub fn of(description: &RowDescription) -> Self {
        match Self::builder(description.table).describe(description).build() {
            Ok(schema) => schema,
            Err(error) => panic!("the row of table `{}` has no valid schema: {error}", description.table),
        }
    }
}

impl IndexSchema {
    /// Returns an index over the columns of `schema` with these names. [`Schema::with_index`] does the other checks.
    ///
    /// # Errors
    /// [`SchemaError::UnknownColumn`].
    pub fn new<N: Into<String>>(
        schema: &Schema,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = (N, Order)>,
        unique: bool,
    ) -> Result<Self, SchemaError> {
        let parts = resolve(schema.name(), schema.columns(), &owned(parts))?;
        Ok(Self::of_parts(name.into(), parts, unique))
    }
}

impl SchemaBuilder {
    /// Adds a column that may not be null.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, column_type: ColumnType) -> Self {
        self.columns.push(Column { name: name.into(), column_type, nullable: false });
        self
    }

    /// Adds a column that may be null.
    #[must_use]
    pub fn nullable(mut self, name: impl Into<String>, column_type: ColumnType) -> Self {
        self.columns.push(Column { name: name.into(), column_type, nullable: true });
        self
    }

    /// Makes these columns the primary key; without this, the table invents row ids.
    #[must_use]
    pub fn key<N: Into<String>>(mut self, parts: impl IntoIterator<Item = (N, Order)>) -> Self {
        self.key = owned(parts);
        self
    }

    /// Adds a secondary index.
    #[must_use]
    pub fn index<N: Into<String>>(
        mut self,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = (N, Order)>,
    ) -> Self {
        self.indexes.push((name.into(), false, owned(parts)));
        self
    }

    /// Adds a secondary index in which no two rows may have the same values, unless one of them is null.
    #[must_use]
    pub fn unique_index<N: Into<String>>(
        mut self,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = (N, Order)>,
    ) -> Self {
        self.indexes.push((name.into(), true, owned(parts)));
        self
    }

    /// Checks the schema and computes its layout.
    ///
    /// # Errors
    /// Every variant of [`SchemaError`] but `Encoding`.
    pub fn build(self) -> Result<Schema, SchemaError> {
        let key = resolve(&self.name, &self.columns, &self.key)?;
        let mut indexes = Vec::new();
        for (name, unique, parts) in self.indexes {
            let parts = resolve(&self.name, &self.columns, &parts)?;
            indexes.push(IndexSchema::of_parts(name, parts, unique));
        }
        let primary_key = if key.is_empty() { PrimaryKey::RowId } else { PrimaryKey::Columns(key) };
        Schema::checked(self.name, self.columns, primary_key, indexes)
    }

    /// Adds all that a derived row describes.
    fn describe(mut self, description: &RowDescription) -> Self {
        for (name, spec) in description.names.iter().zip(description.columns) {
            self.columns.push(Column {
                name: (*name).to_owned(),
                column_type: spec.column_type,
                nullable: spec.nullable,
            });
        }
        let named = |parts: &[(usize, Order)]| {
            parts.iter().map(|(column, order)| (description.names[*column].to_owned(), *order)).collect()
        };
        self.key = named(description.key);
        for index in description.indexes {
            self.indexes.push((index.name.to_owned(), index.unique, named(index.parts)));
        }
        self
    }
}

fn owned<N: Into<String>>(parts: impl IntoIterator<Item = (N, Order)>) -> NamedParts {
    parts.into_iter().map(|(name, order)| (name.into(), order)).collect()
}

fn resolve(
    table: &str,
    columns: &[Column],
    parts: &[(String, Order)],
) -> Result<Vec<PartSchema>, SchemaError> {
    parts
        .iter()
        .map(|(name, order)| match columns.iter().position(|column| column.name == *name) {
            Some(column) => Ok(PartSchema { column, order: *order }),
            None => Err(SchemaError::UnknownColumn { table: table.to_owned(), column: name.clone() }),
        })
        .collect()
}
