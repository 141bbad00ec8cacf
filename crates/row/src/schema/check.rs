//! The checks that every schema passes before it exists.

use super::{Column, IndexSchema, PartSchema, PrimaryKey, Schema, SchemaError};
use crate::key_len::{index_key_len_min, primary_key_len_min};
use crate::limits::{COLUMNS_MAX, FIXED_LEN_MAX, INDEXES_MAX, KEY_LEN_MAX, NAME_LEN_MAX};
use crate::{ColumnType, Order};

pub(super) const PRIMARY_KEY: &str = "primary key";

impl Schema {
    /// Returns the schema, if it is valid.
    pub(super) fn checked(
        name: String,
        columns: Vec<Column>,
        primary_key: PrimaryKey,
        indexes: Vec<IndexSchema>,
    ) -> Result<Self, SchemaError> {
        let (key_positions, slots) = (Vec::new(), Vec::new());
        let mut schema = Self { name, columns, primary_key, key_positions, indexes, slots, fixed_len: 0 };
        check_name("table", &schema.name)?;
        schema.check_columns()?;
        schema.check_parts(PRIMARY_KEY, schema.key_parts())?;
        schema.place_key_columns();
        let key_len = primary_key_len_min(&schema.specs(), &described(schema.key_parts()));
        schema.check_key_len(PRIMARY_KEY, key_len)?;
        schema.check_indexes()?;
        schema.place_columns();
        if schema.fixed_len > FIXED_LEN_MAX {
            return Err(SchemaError::RowTooLarge { len: schema.fixed_len });
        }
        Ok(schema)
    }

    fn check_columns(&self) -> Result<(), SchemaError> {
        if self.columns.len() > COLUMNS_MAX {
            return Err(SchemaError::TooManyColumns { count: self.columns.len() });
        }
        for (index, column) in self.columns.iter().enumerate() {
            check_name("column", &column.name)?;
            if self.columns[..index].iter().any(|other| other.name == column.name) {
                return Err(SchemaError::DuplicateColumn { column: column.name.clone() });
            }
            if let ColumnType::Decimal { scale: scale @ 19.. } = column.column_type {
                return Err(SchemaError::BadScale { column: column.name.clone(), scale });
            }
        }
        Ok(())
    }

    pub(super) fn check_indexes(&self) -> Result<(), SchemaError> {
        if self.indexes.len() > INDEXES_MAX {
            return Err(SchemaError::TooManyIndexes { count: self.indexes.len() });
        }
        let (specs, key) = (self.specs(), described(self.key_parts()));
        for (number, index) in self.indexes.iter().enumerate() {
            check_name("index", index.name())?;
            if self.indexes[..number].iter().any(|other| other.name() == index.name()) {
                return Err(SchemaError::DuplicateIndex { index: index.name().to_owned() });
            }
            if index.parts().is_empty() {
                return Err(SchemaError::EmptyIndex { index: index.name().to_owned() });
            }
            self.check_parts(index.name(), index.parts())?;
            let len = index_key_len_min(&specs, &key, &described(index.parts()), index.is_unique());
            self.check_key_len(index.name(), len)?;
        }
        Ok(())
    }

    fn check_parts(&self, key: &str, parts: &[PartSchema]) -> Result<(), SchemaError> {
        for (number, part) in parts.iter().enumerate() {
            let Some(column) = self.columns.get(part.column) else {
                return Err(SchemaError::UnknownColumn {
                    table: self.name.clone(),
                    column: part.column.to_string(),
                });
            };
            if parts[..number].iter().any(|other| other.column == part.column) {
                return Err(SchemaError::RepeatedColumn { key: key.to_owned(), column: column.name.clone() });
            }
            if part.order.moves_nulls() && !column.nullable {
                return Err(SchemaError::NoNulls { key: key.to_owned(), column: column.name.clone() });
            }
        }
        Ok(())
    }

    fn check_key_len(&self, key: &str, len: usize) -> Result<(), SchemaError> {
        if len > KEY_LEN_MAX { Err(SchemaError::KeyTooLong { key: key.to_owned(), len }) } else { Ok(()) }
    }
}

/// Returns the parts of a key as a description has them.
fn described(parts: &[PartSchema]) -> Vec<(usize, Order)> {
    parts.iter().map(|part| (part.column, part.order)).collect()
}

fn check_name(of: &'static str, name: &str) -> Result<(), SchemaError> {
    if (1..=NAME_LEN_MAX).contains(&name.len()) {
        Ok(())
    } else {
        Err(SchemaError::BadName { of, name: name.to_owned() })
    }
}
