//! Changes of a table's columns.

use super::check::PRIMARY_KEY;
use super::older_rows::Source;
use super::{Column, IndexSchema, PartSchema, PrimaryKey, Schema, SchemaError};
use crate::{ColumnType, Value};

/// Changes of the columns of a table, made one after the other and as a whole.
///
/// Columns of the primary key and of indexes can be renamed, and not be changed otherwise: drop the index first, and make it anew.
///
/// ```
/// use ensilo_row::{ColumnType, Order, Schema, SchemaChange};
///
/// let schema = Schema::builder("account")
///     .column("id", ColumnType::U32)
///     .column("name", ColumnType::FixedText { len_max: 16 })
///     .column("balance", ColumnType::I32)
///     .key([("id", Order::Ascending)])
///     .build()?;
/// let change = SchemaChange::new()
///     .add("level", ColumnType::U8, 1u8)
///     .widen("balance", ColumnType::I64)
///     .rename("name", "owner");
/// let changed = schema.with_change(&change)?;
/// assert_eq!(changed.column("owner"), Some(1));
/// assert_eq!(changed.columns()[2].column_type, ColumnType::I64);
/// # Ok::<(), ensilo_row::SchemaError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaChange {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Add { column: Column, value: Value },
    Drop { name: String },
    Rename { from: String, to: String },
    Widen { name: String, column_type: ColumnType },
    AllowNull { name: String },
    Order { names: Vec<String> },
}

/// A schema after a change, and where its columns come from.
pub(super) struct Changed {
    pub(super) schema: Schema,
    /// Of each column, what it was before.
    pub(super) sources: Vec<Source>,
}

impl SchemaChange {
    /// Returns a change that changes nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column that may not be null, as the last one. `value` is what rows that are there have in it.
    #[must_use]
    pub fn add(self, name: impl Into<String>, column_type: ColumnType, value: impl Into<Value>) -> Self {
        let column = Column { name: name.into(), column_type, nullable: false };
        self.and(Step::Add { column, value: value.into() })
    }

    /// Adds a column that may be null, as the last one. `value` is what rows that are there have in it: [`Value::Null`], or another.
    #[must_use]
    pub fn add_nullable(
        self,
        name: impl Into<String>,
        column_type: ColumnType,
        value: impl Into<Value>,
    ) -> Self {
        let column = Column { name: name.into(), column_type, nullable: true };
        self.and(Step::Add { column, value: value.into() })
    }

    /// Drops a column with what rows have in it.
    #[must_use]
    pub fn drop_column(self, name: impl Into<String>) -> Self {
        self.and(Step::Drop { name: name.into() })
    }

    /// Gives a column another name. Its place, in the row and in indexes, stays.
    #[must_use]
    pub fn rename(self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.and(Step::Rename { from: from.into(), to: to.into() })
    }

    /// Gives a column a type that has all values of the one before: a wider integer (signed after unsigned only if it is wider),
    /// `f64` after `f32`, a longer bounded text, text of any length after bounded text, bytes of any length after a fixed number.
    #[must_use]
    pub fn widen(self, name: impl Into<String>, column_type: ColumnType) -> Self {
        self.and(Step::Widen { name: name.into(), column_type })
    }

    /// Lets a column be null.
    #[must_use]
    pub fn allow_null(self, name: impl Into<String>) -> Self {
        self.and(Step::AllowNull { name: name.into() })
    }

    /// Puts the columns into this order, which names each once.
    #[must_use]
    pub fn order<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.and(Step::Order { names: names.into_iter().map(Into::into).collect() })
    }

    /// Returns this change with another one after it.
    #[must_use]
    pub fn then(mut self, next: &Self) -> Self {
        self.steps.extend(next.steps.iter().cloned());
        self
    }

    fn and(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl Schema {
    /// Returns the schema as it is after a change.
    ///
    /// # Errors
    /// `UnknownColumn`, `ColumnInKey`, `NotWider`, `BadValue`, `BadOrder`, and those of [`SchemaBuilder::build`](crate::SchemaBuilder::build).
    pub fn with_change(&self, change: &SchemaChange) -> Result<Schema, SchemaError> {
        self.changed(change).map(|changed| changed.schema)
    }

    /// Returns whether a change makes other rows of those that are there, or another schema. One that drops a column and adds it again does: what
    /// rows have in it is gone.
    ///
    /// # Errors
    /// As [`Schema::with_change`].
    pub fn is_changed_by(&self, change: &SchemaChange) -> Result<bool, SchemaError> {
        let Changed { schema, sources } = self.changed(change)?;
        let stays = |(at, source): (usize, &Source)| matches!(source, Source::Column(from) if *from == at);
        Ok(schema != *self || !sources.iter().enumerate().all(stays))
    }

    pub(super) fn changed(&self, change: &SchemaChange) -> Result<Changed, SchemaError> {
        let columns = self.columns.iter().cloned().enumerate();
        let columns = columns.map(|(at, column)| (column, Source::Column(at))).collect();
        let mut changing = Changing { before: self, columns };
        change.steps.iter().try_for_each(|step| changing.apply(step))?;
        changing.end()
    }
}

/// A schema while it is changed: its columns, each with where it comes from.
struct Changing<'s> {
    before: &'s Schema,
    columns: Vec<(Column, Source)>,
}

impl Changing<'_> {
    fn apply(&mut self, step: &Step) -> Result<(), SchemaError> {
        match step {
            Step::Add { column, value } => {
                self.refuse_taken(&column.name)?;
                self.columns.push((column.clone(), Source::Value(value.clone())));
            }
            Step::Drop { name } => {
                let at = self.position_outside_keys(name)?;
                self.columns.remove(at);
            }
            Step::Rename { from, to } => {
                let at = self.position(from)?;
                if from != to {
                    self.refuse_taken(to)?;
                }
                self.columns[at].0.name.clone_from(to);
            }
            Step::Widen { name, column_type } => self.widen(name, *column_type)?,
            Step::AllowNull { name } => {
                let at = self.position_outside_keys(name)?;
                self.columns[at].0.nullable = true;
            }
            Step::Order { names } => self.order(names)?,
        }
        Ok(())
    }

    fn position(&self, name: &str) -> Result<usize, SchemaError> {
        self.columns.iter().position(|(column, _)| column.name == name).ok_or_else(|| {
            SchemaError::UnknownColumn { table: self.before.name.clone(), column: name.to_owned() }
        })
    }

    fn refuse_taken(&self, name: &str) -> Result<(), SchemaError> {
        match self.position(name) {
            Ok(_) => Err(SchemaError::DuplicateColumn { column: name.to_owned() }),
            Err(_) => Ok(()),
        }
    }

    /// Returns the position of a column of which no key is made.
    fn position_outside_keys(&self, name: &str) -> Result<usize, SchemaError> {
        let at = self.position(name)?;
        let Source::Column(before) = self.columns[at].1 else { return Ok(at) };
        let in_key = |key: &str| SchemaError::ColumnInKey { key: key.to_owned(), column: name.to_owned() };
        if self.before.is_key_column(before) {
            return Err(in_key(PRIMARY_KEY));
        }
        match self.before.indexes.iter().find(|index| index.touches(&[before])) {
            Some(index) => Err(in_key(index.name())),
            None => Ok(at),
        }
    }

    fn widen(&mut self, name: &str, to: ColumnType) -> Result<(), SchemaError> {
        let at = self.position_outside_keys(name)?;
        let column = &mut self.columns[at].0;
        let from = column.column_type;
        if !from.widens_to(to) {
            return Err(SchemaError::NotWider { column: name.to_owned(), from, to });
        }
        column.column_type = to;
        Ok(())
    }

    fn order(&mut self, names: &[String]) -> Result<(), SchemaError> {
        let mut ordered = Vec::with_capacity(self.columns.len());
        for name in names {
            let at = self.position(name)?;
            ordered.push(self.columns.remove(at));
        }
        if let Some((column, _)) = self.columns.first() {
            return Err(SchemaError::BadOrder { column: column.name.clone() });
        }
        self.columns = ordered;
        Ok(())
    }

    fn end(self) -> Result<Changed, SchemaError> {
        for (column, source) in &self.columns {
            if let Source::Value(value) = source {
                column.check(value).map_err(|error| SchemaError::BadValue {
                    column: column.name.clone(),
                    problem: error.to_string(),
                })?;
            }
        }
        let moved = |parts: &[PartSchema]| parts.iter().map(|part| self.moved(*part)).collect::<Vec<_>>();
        let primary_key = match &self.before.primary_key {
            PrimaryKey::Columns(parts) => PrimaryKey::Columns(moved(parts)),
            PrimaryKey::RowId => PrimaryKey::RowId,
        };
        let index = |index: &IndexSchema| {
            IndexSchema::of_parts(index.name().to_owned(), moved(index.parts()), index.is_unique())
        };
        let indexes = self.before.indexes.iter().map(index).collect();
        let (columns, sources) = self.columns.into_iter().unzip();
        let schema = Schema::checked(self.before.name.clone(), columns, primary_key, indexes)?;
        Ok(Changed { schema, sources })
    }

    /// Returns the part of a key with the new number of its column, which is still there.
    fn moved(&self, part: PartSchema) -> PartSchema {
        let is_it =
            |(_, source): &(Column, Source)| matches!(source, Source::Column(at) if *at == part.column);
        // A column of a key is never dropped; a number that no column has is refused by the checks of a schema.
        let column = self.columns.iter().position(is_it).unwrap_or(usize::MAX);
        PartSchema { column, ..part }
    }
}
