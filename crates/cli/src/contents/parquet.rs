//! Rows as Apache Parquet: the types of columns there, and the writing of them.
//!
//! | type | Parquet |
//! |---|---|
//! | `bool` | `BOOLEAN` |
//! | integers | `INT32` or `INT64` with the logical type `INTEGER` of their width and sign |
//! | `f32`, `f64` | `FLOAT`, `DOUBLE` |
//! | `decimal(n)` | nine bytes with the logical type `DECIMAL` of 19 digits: 18, the most of an `INT64`, are not enough for all |
//! | `timestamp` | `INT64` with the logical type `TIMESTAMP`, microseconds in UTC |
//! | text | `BYTE_ARRAY` with the logical type `STRING` |
//! | bytes | `BYTE_ARRAY` |
//!
//! Columns that may be null are optional. Pages are not compressed.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type,
};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use ensilo::{ColumnType, Value};

use super::row_format::FileColumn;
use super::row_writer::WriteError;

/// The bytes and digits of a decimal.
const DECIMAL_BYTES: usize = 9;
const DECIMAL_DIGITS: i32 = 19;

/// A row group has so many rows at most, and ends with the row that makes its texts and bytes so long together.
const GROUP_ROWS_MAX: usize = 1 << 17;
const GROUP_BYTES_MAX: usize = 64 << 20;

/// Returns the column of a file for such a column of a table; `None` for a type that this version does not know.
pub(super) fn parquet_column(column: &FileColumn) -> Option<Result<Type>> {
    use ColumnType as Of;
    let integer = |physical, bits, is_signed| (physical, Some(LogicalType::integer(bits, is_signed)));
    let mut scale = 0;
    let (physical, logical) = match column.column_type {
        Of::Bool => (PhysicalType::BOOLEAN, None),
        Of::I8 => integer(PhysicalType::INT32, 8, true),
        Of::I16 => integer(PhysicalType::INT32, 16, true),
        Of::I32 => integer(PhysicalType::INT32, 32, true),
        Of::I64 => integer(PhysicalType::INT64, 64, true),
        Of::U8 => integer(PhysicalType::INT32, 8, false),
        Of::U16 => integer(PhysicalType::INT32, 16, false),
        Of::U32 => integer(PhysicalType::INT32, 32, false),
        Of::U64 => integer(PhysicalType::INT64, 64, false),
        Of::F32 => (PhysicalType::FLOAT, None),
        Of::F64 => (PhysicalType::DOUBLE, None),
        Of::Decimal { scale: digits } => {
            scale = i32::from(digits);
            (PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::decimal(scale, DECIMAL_DIGITS)))
        }
        Of::Timestamp => (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        Of::Text | Of::FixedText { .. } => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Of::Bytes | Of::FixedBytes { .. } => (PhysicalType::BYTE_ARRAY, None),
        _ => return None,
    };
    let is_decimal = physical == PhysicalType::FIXED_LEN_BYTE_ARRAY;
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical);
    let builder = match is_decimal {
        true => builder.with_length(DECIMAL_BYTES as i32).with_precision(DECIMAL_DIGITS).with_scale(scale),
        false => builder,
    };
    Some(builder.build())
}

/// Writes rows, a group of them at a time.
pub(super) struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<ColumnValues>,
    rows: usize,
    bytes: usize,
}

/// The values of a column in the present group.
struct ColumnValues {
    values: Values,
    /// For each row whether there is a value, of a column that may be null.
    levels: Option<Vec<i16>>,
}

enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal(Vec<FixedLenByteArray>),
    Bytes(Vec<ByteArray>),
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file with these columns.
    pub(super) fn new(columns: &[FileColumn], output: W) -> Result<Self, WriteError> {
        let mut fields = Vec::new();
        for column in columns {
            fields.push(Arc::new(parquet_column(column).ok_or(WriteError::UnknownType)??));
        }
        let columns = fields.iter().zip(columns).map(|(field, column)| ColumnValues {
            values: Values::of(field.get_physical_type()),
            levels: column.nullable.then(Vec::new),
        });
        let columns = columns.collect();
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let file = SerializedFileWriter::new(output, Arc::new(schema), properties)?;
        Ok(ParquetWriter { file, columns, rows: 0, bytes: 0 })
    }

    /// Writes a row: a value for each column.
    pub(super) fn row<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) -> Result<(), WriteError> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.bytes += column.push(value)?;
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS_MAX || self.bytes >= GROUP_BYTES_MAX {
            self.end_group()?;
        }
        Ok(())
    }

    /// Writes what is left and what describes it, and returns the file.
    pub(super) fn finish(mut self) -> Result<W, WriteError> {
        if self.rows > 0 {
            self.end_group()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn end_group(&mut self) -> Result<(), WriteError> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl Values {
    fn of(physical: PhysicalType) -> Self {
        match physical {
            PhysicalType::BOOLEAN => Values::Bool(Vec::new()),
            PhysicalType::INT32 => Values::Int32(Vec::new()),
            PhysicalType::INT64 => Values::Int64(Vec::new()),
            PhysicalType::FLOAT => Values::Float(Vec::new()),
            PhysicalType::DOUBLE => Values::Double(Vec::new()),
            PhysicalType::FIXED_LEN_BYTE_ARRAY => Values::Decimal(Vec::new()),
            PhysicalType::BYTE_ARRAY | PhysicalType::INT96 => Values::Bytes(Vec::new()),
        }
    }
}

impl ColumnValues {
    /// Notes a value, and returns about how many bytes it takes. A signed and an unsigned integer have the same bits.
    fn push(&mut self, value: &Value) -> Result<usize, WriteError> {
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(!matches!(value, Value::Null)));
        }
        match (&mut self.values, value) {
            (_, Value::Null) => return Ok(1),
            (Values::Bool(values), Value::Bool(value)) => values.push(*value),
            (Values::Int32(values), Value::Int(value)) => values.push(*value as i32),
            (Values::Int32(values), Value::Unsigned(value)) => values.push(*value as i32),
            (Values::Int64(values), Value::Int(value)) => values.push(*value),
            (Values::Int64(values), Value::Unsigned(value)) => values.push(value.cast_signed()),
            (Values::Int64(values), Value::Timestamp(time)) => values.push(time.micros()),
            (Values::Float(values), Value::Float32(value)) => values.push(*value),
            (Values::Double(values), Value::Float64(value)) => values.push(*value),
            (Values::Decimal(values), Value::Decimal { units, .. }) => {
                let bytes = i128::from(*units).to_be_bytes();
                values.push(bytes[bytes.len() - DECIMAL_BYTES..].to_vec().into());
            }
            (Values::Bytes(values), Value::Text(text)) => values.push(text.as_str().into()),
            (Values::Bytes(values), Value::Bytes(bytes)) => values.push(bytes.clone().into()),
            _ => return Err(WriteError::UnknownType),
        }
        Ok(match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => size_of::<u64>(),
        })
    }

    /// Writes the column of a group, and forgets its values.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), WriteError> {
        let column = group.next_column()?.ok_or(ParquetError::EOF("no column is left".to_owned()))?;
        let levels = self.levels.as_deref();
        match &mut self.values {
            Values::Bool(values) => write_values::<BoolType>(column, values, levels),
            Values::Int32(values) => write_values::<Int32Type>(column, values, levels),
            Values::Int64(values) => write_values::<Int64Type>(column, values, levels),
            Values::Float(values) => write_values::<FloatType>(column, values, levels),
            Values::Double(values) => write_values::<DoubleType>(column, values, levels),
            Values::Decimal(values) => write_values::<FixedLenByteArrayType>(column, values, levels),
            Values::Bytes(values) => write_values::<ByteArrayType>(column, values, levels),
        }?;
        self.levels.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

fn write_values<T: DataType>(
    mut column: SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<()> {
    column.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    column.close()
}

impl From<ParquetError> for WriteError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => match error.downcast::<std::io::Error>() {
                Ok(error) => WriteError::Io(*error),
                Err(error) => WriteError::Io(std::io::Error::other(error)),
            },
            error => WriteError::Io(std::io::Error::other(error)),
        }
    }
}
