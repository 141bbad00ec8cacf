//! Changes of columns, and what they make of each row: the rules once more, beside those of the database.

use ensilo::{ColumnType, SchemaChange, Value};

use super::shifting::{Shape, ShiftingColumn};
use crate::random::Random;

/// A table has fewer columns than this.
const COLUMNS_END: usize = 9;

/// One change of the columns of a table.
#[derive(Clone, Debug)]
pub enum ColumnChange {
    /// A column comes, as the last one.
    Add {
        /// The column.
        column: ShiftingColumn,
        /// What rows have in it that are there.
        value: Value,
    },
    /// The column at this place goes.
    Drop(usize),
    /// The column at this place gets another name.
    Rename(usize, String),
    /// The column at this place gets a type with more values.
    Widen(usize, ColumnType),
    /// The column at this place may be null.
    AllowNull(usize),
    /// The columns come into an order: for each place the one where its column is.
    Order(Vec<usize>),
    /// The last column goes, and comes again as it was, but with this value in all rows.
    Renew(Value),
}

impl ColumnChange {
    /// Draws one that can be done to a table of this shape. `name` is none that it has.
    pub(super) fn draw(random: &mut Random, shape: &Shape, name: String) -> ColumnChange {
        let free = shape.columns_outside_keys();
        let at = |random: &mut Random| free.get(random.below(free.len().max(1) as u64) as usize).copied();
        let last = shape.columns.len() - 1;
        match (random.below(7), at(random)) {
            (0, Some(at)) => ColumnChange::Drop(at),
            (1, _) => ColumnChange::Rename(random.below(shape.columns.len() as u64) as usize, name),
            (2, Some(at)) => match wider(random, shape.columns[at].column_type) {
                Some(to) => ColumnChange::Widen(at, to),
                None => ColumnChange::AllowNull(at),
            },
            (3, Some(at)) => ColumnChange::AllowNull(at),
            (4, _) if free.contains(&last) => ColumnChange::Renew(draw_value(random, &shape.columns[last])),
            (5, _) if shape.columns.len() < COLUMNS_END => {
                let (column_type, nullable) = (draw_type(random), random.percent(40));
                let column = ShiftingColumn { name, column_type, nullable };
                ColumnChange::Add { value: draw_value(random, &column), column }
            }
            _ => ColumnChange::Order(draw_order(random, shape.columns.len())),
        }
    }

    /// Returns the change as one of a table of this shape.
    pub(super) fn of_schema(&self, shape: &Shape) -> SchemaChange {
        let (change, name) = (SchemaChange::new(), |at: usize| shape.columns[at].name.as_str());
        match self {
            ColumnChange::Add { column, value } => add(change, column, value),
            ColumnChange::Drop(at) => change.drop_column(name(*at)),
            ColumnChange::Rename(at, to) => change.rename(name(*at), to),
            ColumnChange::Widen(at, to) => change.widen(name(*at), *to),
            ColumnChange::AllowNull(at) => change.allow_null(name(*at)),
            ColumnChange::Order(from) => change.order(from.iter().map(|&at| name(at))),
            ColumnChange::Renew(value) => {
                let last = &shape.columns[shape.columns.len() - 1];
                add(change.drop_column(&last.name), last, value)
            }
        }
    }

    /// Changes the columns.
    pub(super) fn change_shape(&self, shape: &mut Shape) {
        let columns = &mut shape.columns;
        match self {
            ColumnChange::Add { column, .. } => columns.push(column.clone()),
            ColumnChange::Drop(at) => {
                columns.remove(*at);
                shape.move_keys(|column| if column > *at { column - 1 } else { column });
            }
            ColumnChange::Rename(at, name) => columns[*at].name.clone_from(name),
            ColumnChange::Widen(at, to) => columns[*at].column_type = *to,
            ColumnChange::AllowNull(at) => columns[*at].nullable = true,
            ColumnChange::Order(from) => {
                *columns = from.iter().map(|&at| columns[at].clone()).collect();
                shape.move_keys(|column| from.iter().position(|&at| at == column).unwrap_or(usize::MAX));
            }
            ColumnChange::Renew(_) => {}
        }
    }

    /// Makes a row one of the columns after the change.
    pub(super) fn change_row(&self, row: &mut Vec<Value>) {
        match self {
            ColumnChange::Add { value, .. } => row.push(value.clone()),
            ColumnChange::Drop(at) => _ = row.remove(*at),
            ColumnChange::Widen(at, _) => {
                if let Value::Float32(number) = row[*at] {
                    row[*at] = Value::Float64(number.into());
                }
            }
            ColumnChange::Order(from) => *row = from.iter().map(|&at| row[at].clone()).collect(),
            ColumnChange::Renew(value) => {
                row.pop();
                row.push(value.clone());
            }
            ColumnChange::Rename(..) | ColumnChange::AllowNull(_) => {}
        }
    }
}

fn add(change: SchemaChange, column: &ShiftingColumn, value: &Value) -> SchemaChange {
    match column.nullable {
        true => change.add_nullable(&column.name, column.column_type, value.clone()),
        false => change.add(&column.name, column.column_type, value.clone()),
    }
}

/// Draws a value that the column may have.
pub(super) fn draw_value(random: &mut Random, column: &ShiftingColumn) -> Value {
    if column.nullable && random.percent(30) {
        return Value::Null;
    }
    let small = random.below(1 << 7);
    let text = |len: u64| String::from_iter((0..len).map(|at| char::from(b'a' + ((small + at) % 26) as u8)));
    match column.column_type {
        ColumnType::Bool => Value::Bool(small.is_multiple_of(2)),
        ColumnType::I8 | ColumnType::I16 | ColumnType::I32 | ColumnType::I64 | ColumnType::I128 => {
            Value::Int(-(small.cast_signed()))
        }
        ColumnType::F32 => Value::Float32(small as f32 / 4.0),
        ColumnType::F64 => Value::Float64(small as f64 / 4.0),
        ColumnType::FixedText { len_max } => Value::Text(text(small % (u64::from(len_max) + 1))),
        ColumnType::FixedBytes { len } => Value::Bytes(text(len.into()).into_bytes()),
        ColumnType::Text => Value::Text(text(small % 40)),
        ColumnType::Bytes => Value::Bytes(text(small % 40).into_bytes()),
        _ => Value::Unsigned(small),
    }
}

fn draw_type(random: &mut Random) -> ColumnType {
    const TYPES: [ColumnType; 12] = [
        ColumnType::Bool,
        ColumnType::U8,
        ColumnType::U16,
        ColumnType::U32,
        ColumnType::I8,
        ColumnType::I32,
        ColumnType::I64,
        ColumnType::F32,
        ColumnType::FixedText { len_max: 7 },
        ColumnType::FixedBytes { len: 5 },
        ColumnType::Text,
        ColumnType::Bytes,
    ];
    TYPES[random.below(TYPES.len() as u64) as usize]
}

/// Returns a type that has all values of this one, and more.
fn wider(random: &mut Random, from: ColumnType) -> Option<ColumnType> {
    let [one, other] = match from {
        ColumnType::U8 => [ColumnType::U16, ColumnType::I64],
        ColumnType::U16 => [ColumnType::U64, ColumnType::I32],
        ColumnType::U32 => [ColumnType::U64, ColumnType::I64],
        ColumnType::U64 => [ColumnType::U128, ColumnType::I128],
        ColumnType::I8 => [ColumnType::I16, ColumnType::I32],
        ColumnType::I16 => [ColumnType::I32, ColumnType::I64],
        ColumnType::I32 => [ColumnType::I64, ColumnType::I128],
        ColumnType::I64 => [ColumnType::I128, ColumnType::I128],
        ColumnType::F32 => [ColumnType::F64, ColumnType::F64],
        ColumnType::FixedText { len_max } => {
            [ColumnType::FixedText { len_max: len_max + 9 }, ColumnType::Text]
        }
        ColumnType::FixedBytes { .. } => [ColumnType::Bytes, ColumnType::Bytes],
        _ => return None,
    };
    Some(if random.percent(50) { one } else { other })
}

fn draw_order(random: &mut Random, len: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..len).collect();
    for place in (1..len).rev() {
        order.swap(place, random.below(place as u64 + 1) as usize);
    }
    order
}
