//! The table whose columns change, as plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

use ensilo::generic::Database;
use ensilo::row::{IndexSchema, PrimaryKey};
use ensilo::{Column, ColumnType, Durability, Engine, Error, IndexState, Order, Result, Schema, Value};

use super::SHIFTING;

/// Rows by key.
pub type Rows = BTreeMap<u64, Arc<Vec<Value>>>;

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShiftingColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
}

impl ShiftingColumn {
    fn of(column: &Column) -> ShiftingColumn {
        let Column { name, column_type, nullable, .. } = column.clone();
        ShiftingColumn { name, column_type, nullable }
    }
}

/// The columns of the table, and its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The columns.
    pub columns: Vec<ShiftingColumn>,
    /// The column of the primary key.
    pub key: usize,
    /// Of each index its columns, and whether it is unique.
    pub indexes: BTreeMap<String, (Vec<usize>, bool)>,
}

impl Shape {
    /// Returns the table as it is at first.
    pub(super) fn first() -> Shape {
        let column = |name: &str, column_type| {
            let name = name.to_owned();
            ShiftingColumn { name, column_type, nullable: false }
        };
        let columns = vec![
            column("id", ColumnType::U32),
            column("count", ColumnType::U8),
            column("note", ColumnType::Text),
        ];
        Shape { columns, key: 0, indexes: BTreeMap::new() }
    }

    /// Returns the schema, without indexes.
    pub(super) fn schema(&self) -> Result<Schema> {
        let mut builder = Schema::builder(SHIFTING);
        for column in &self.columns {
            builder = match column.nullable {
                true => builder.nullable(&column.name, column.column_type),
                false => builder.column(&column.name, column.column_type),
            };
        }
        let key = self.columns[self.key].name.as_str();
        builder.key([(key, Order::Ascending)]).build().map_err(|error| Error::rollback(error.to_string()))
    }

    /// Returns the shape of a table with this schema.
    fn of(schema: &Schema) -> Shape {
        let key = match schema.primary_key() {
            PrimaryKey::Columns(parts) => parts[0].column,
            _ => usize::MAX,
        };
        let index = |index: &IndexSchema| {
            let columns = index.parts().iter().map(|part| part.column).collect();
            (index.name().to_owned(), (columns, index.is_unique()))
        };
        let indexes = schema.indexes().iter().map(index).collect();
        Shape { columns: Shape::columns_of(schema), key, indexes }
    }

    /// Returns the columns of a schema.
    pub(super) fn columns_of(schema: &Schema) -> Vec<ShiftingColumn> {
        schema.columns().iter().map(ShiftingColumn::of).collect()
    }

    /// Returns the columns that may be changed.
    pub(super) fn columns_outside_keys(&self) -> Vec<usize> {
        let is_indexed = |at: usize| self.indexes.values().any(|(columns, _)| columns.contains(&at));
        (0..self.columns.len()).filter(|&at| at != self.key && !is_indexed(at)).collect()
    }

    /// The columns have moved to other places.
    pub(super) fn move_keys(&mut self, place: impl Fn(usize) -> usize) {
        self.key = place(self.key);
        let columns = self.indexes.values_mut().flat_map(|(columns, _)| columns);
        columns.for_each(|column| *column = place(*column));
    }
}

/// Reads the table, each row as a whole and by one of its columns, and checks its indexes; `None` if there is none.
///
/// # Errors
/// Those of the database; an [`Error::User`] when what is read in two ways differs.
pub(super) fn read<E: Engine>(db: &Database<E>) -> Result<Option<(Shape, Rows)>> {
    if !db.list_tables()?.iter().any(|name| name == SHIFTING) {
        return Ok(None);
    }
    let table = db.open_dynamic_table(SHIFTING)?;
    let shape = Shape::of(&db.schema(SHIFTING)?);
    let request = || db.request().durability(Durability::Stored);
    let rows = request().transact(|tx| table.scan().collect(tx))?;
    let mut by_key = Rows::new();
    for row in rows {
        let Value::Unsigned(id) = row[shape.key] else {
            return Err(Error::rollback(format!("a key is {:?}", row[shape.key])));
        };
        let at = id as usize % shape.columns.len();
        let name = shape.columns[at].name.as_str();
        let key = [Value::Unsigned(id)];
        let column = request().transact(|tx| table.get_columns(tx, &key, &[name]))?;
        if column.as_deref() != Some(&row[at..=at]) {
            return Err(Error::rollback(format!("column {name} of {row:?} is read as {column:?}")));
        }
        by_key.insert(id, Arc::new(row));
    }
    for index in shape.indexes.keys() {
        let check = request().transact(|tx| table.check_index(tx, index))?;
        if !check.is_whole() || check.matches != by_key.len() as u64 {
            return Err(Error::rollback(format!("index {index} disagrees with its table: {check:?}")));
        }
    }
    let statistics = db.statistics()?;
    let indexes =
        statistics.tables.iter().filter(|table| table.name == SHIFTING).flat_map(|table| &table.indexes);
    match indexes.into_iter().find(|index| index.state != IndexState::Ready) {
        Some(index) => Err(Error::rollback(format!("index {} is {:?}", index.name, index.state))),
        None => Ok(Some((shape, by_key))),
    }
}
