//! Rows that were written before a change of the schema.

use super::{Column, Schema, SchemaError};
use crate::layout::place;
use crate::{ColumnSpec, LongValue, Malformed, RowBuf, Slot, Value, Words};

/// Where a column of the schema as it is comes from, for rows of an older one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// The column with this number in the older schema.
    Column(usize),
    /// The value that the column was added with.
    Value(Value),
}

/// What a row has in a column of variable length.
enum Variable {
    Whole(Value),
    Long(LongValue),
}

/// How rows of an older schema become rows of the schema as it is.
#[derive(Clone, Debug)]
pub(super) struct OlderRows {
    /// The columns of the older schema, and whether each is part of the primary key.
    columns: Vec<(Column, bool)>,
    slots: Vec<Slot>,
    fixed_len: usize,
    /// Of each column of the schema as it is.
    sources: Vec<Source>,
}

impl OlderRows {
    /// Returns how rows with these columns become rows with the columns that `sources` says.
    pub(super) fn new(columns: Vec<(Column, bool)>, sources: Vec<Source>) -> Self {
        let spec = |(column, in_key): &(Column, bool)| ColumnSpec {
            column_type: column.column_type,
            nullable: column.nullable,
            in_key: *in_key,
        };
        let specs: Vec<_> = columns.iter().map(spec).collect();
        let mut slots = vec![Slot::ABSENT; specs.len()];
        let fixed_len = place(&specs, &mut slots) as usize;
        Self { columns, slots, fixed_len, sources }
    }

    /// Returns how rows of `schema` become rows with the columns that `sources` says.
    pub(super) fn of(schema: &Schema, sources: Vec<Source>) -> Self {
        let columns = schema.columns.iter().cloned().enumerate();
        Self::new(columns.map(|(at, column)| (column, schema.is_key_column(at))).collect(), sources)
    }

    /// Returns how these rows become those of one more change, whose columns come from `sources` of the schema before it.
    pub(super) fn followed_by(&self, sources: &[Source]) -> Self {
        let followed = |source: &Source| match source {
            Source::Column(at) => self.sources[*at].clone(),
            Source::Value(value) => Source::Value(value.clone()),
        };
        Self { sources: sources.iter().map(followed).collect(), ..self.clone() }
    }

    pub(super) fn columns(&self) -> &[(Column, bool)] {
        &self.columns
    }

    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Checks what was read from bytes against the schema as it is.
    pub(super) fn check(&self, schema: &Schema) -> Result<(), SchemaError> {
        let fits = |(at, source): (usize, &Source)| match source {
            Source::Column(from) => self.columns.get(*from).is_some_and(|(column, in_key)| {
                *in_key == schema.is_key_column(at)
                    && column.column_type.widens_to(schema.columns[at].column_type)
                    && (schema.columns[at].nullable || !column.nullable)
            }),
            Source::Value(value) => !schema.is_key_column(at) && schema.columns[at].check(value).is_ok(),
        };
        let is_sound =
            self.sources.len() == schema.columns.len() && self.sources.iter().enumerate().all(fits);
        let reason = "an older schema that does not fit";
        if is_sound { Ok(()) } else { Err(SchemaError::Encoding { reason }) }
    }

    /// Makes `out` the row of `schema` that this older one is.
    ///
    /// It may be longer than a row may be that is stored.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no row of the older schema; never a panic, whatever the words.
    pub(super) fn convert(
        &self,
        schema: &Schema,
        row: &impl Words,
        out: &mut RowBuf,
    ) -> Result<(), Malformed> {
        if row.len_bytes() < self.fixed_len {
            return Err(Malformed);
        }
        out.set_zeros(schema.fixed_len);
        let mut variable = Vec::new();
        for (at, source) in self.sources.iter().enumerate() {
            if schema.is_key_column(at) {
                continue;
            }
            let (column, slot) = (&schema.columns[at], schema.slots[at]);
            if let Source::Column(from) = source
                && let Some(value) = self.long_value(*from, row)?
            {
                variable.push((slot, Variable::Long(value)));
                continue;
            }
            let value = match source {
                Source::Column(from) => self.columns[*from].0.read(row, self.slots[*from])?,
                Source::Value(value) => value.clone(),
            };
            column.write(&value, slot, out.words_mut()).map_err(|_| Malformed)?;
            if column.column_type.is_variable() {
                variable.push((slot, Variable::Whole(value)));
            }
        }
        for (slot, value) in &variable {
            match value {
                Variable::Whole(value) => out.append_variable(*slot, value.variable_bytes()),
                Variable::Long(value) => out.append_long_value(*slot, *value),
            }
        }
        Ok(())
    }

    /// Returns the long values of a row.
    pub(super) fn long_values(&self, row: &impl Words) -> Result<Vec<LongValue>, Malformed> {
        let long_values = (0..self.columns.len()).map(|at| self.long_value(at, row));
        long_values.filter_map(Result::transpose).collect()
    }

    /// Returns the long value that a row has in this column of the older schema.
    fn long_value(&self, at: usize, row: &impl Words) -> Result<Option<LongValue>, Malformed> {
        let (column, in_key) = &self.columns[at];
        if *in_key || !column.column_type.is_variable() { Ok(None) } else { self.slots[at].long_value(row) }
    }
}
