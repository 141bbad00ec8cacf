//! Values as text, exactly: what `ensilo dump` writes is what `ensilo load` reads.
//!
//! | type | text |
//! |---|---|
//! | `bool` | `true`, `false` |
//! | integers | decimal digits; those of 128 bits, which few programs read as numbers, are strings in JSON |
//! | `f32`, `f64` | the shortest decimal number that is read as the same bits; `inf`, `-inf`, `NaN`, and `NaN(0x7ff8000000000001)` for a NaN with other bits |
//! | `decimal(n)` | `19.99`, with all digits after the point |
//! | `timestamp` | RFC 3339 in UTC with microseconds |
//! | bytes | `0x` and hexadecimal digits |
//! | text | itself |

use std::fmt::{self, Display, Write as _};

use ensilo::{ColumnType, Value};

use super::timestamp_text;

/// The bits of the NaN that is written as `NaN`.
const NAN_32: u32 = 0x7fc0_0000;
const NAN_64: u64 = 0x7ff8_0000_0000_0000;

/// A value as files have it.
#[derive(Debug, PartialEq)]
pub(super) enum Written {
    /// No value.
    Null,
    /// A number or a truth value, which JSON has too.
    Bare(String),
    /// Anything else.
    Quoted(String),
}

/// A type that this version of the program cannot write.
#[derive(Debug)]
pub(super) struct UnknownType;

/// Returns a value as files have it.
pub(super) fn written(value: &Value) -> Result<Written, UnknownType> {
    Ok(match value {
        Value::Null => Written::Null,
        Value::Bool(value) => Written::Bare(value.to_string()),
        Value::Int(value) => Written::Bare(value.to_string()),
        Value::Unsigned(value) => Written::Bare(value.to_string()),
        Value::Float32(value) if value.is_finite() => Written::Bare(format!("{value:?}")),
        Value::Float64(value) if value.is_finite() => Written::Bare(format!("{value:?}")),
        Value::Float32(value) if value.is_nan() => {
            Written::Quoted(nan_text(value.to_bits() == NAN_32, value.to_bits()))
        }
        Value::Float64(value) if value.is_nan() => {
            Written::Quoted(nan_text(value.to_bits() == NAN_64, value.to_bits()))
        }
        // Integers of 128 bits, infinite floats, decimals, timestamps and bytes are what they print as.
        Value::Int128(_)
        | Value::Unsigned128(_)
        | Value::Float32(_)
        | Value::Float64(_)
        | Value::Decimal { .. }
        | Value::Timestamp(_)
        | Value::Bytes(_) => Written::Quoted(value.to_string()),
        Value::Text(text) => Written::Quoted(text.clone()),
        _ => return Err(UnknownType),
    })
}

fn nan_text(is_usual: bool, bits: impl fmt::LowerHex) -> String {
    if is_usual { "NaN".to_owned() } else { format!("NaN({bits:#x})") }
}

/// Returns whether values of this type can be written and read.
pub(super) fn is_known(column_type: ColumnType) -> bool {
    column_type_of(&column_type.to_string()) == Some(column_type)
}

/// Returns the type that prints as this text.
pub(super) fn column_type_of(text: &str) -> Option<ColumnType> {
    use ColumnType as Type;
    let plain = [
        Type::Bool,
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::I128,
        Type::U128,
        Type::F32,
        Type::F64,
        Type::Timestamp,
        Type::Text,
        Type::Bytes,
    ];
    plain.into_iter().find(|plain| plain.to_string() == text).or_else(|| {
        let (name, number) = text.strip_suffix(')')?.split_once('(')?;
        match name {
            "decimal" => Some(Type::Decimal { scale: number.parse().ok()? }),
            "text" => Some(Type::FixedText { len_max: number.parse().ok()? }),
            "bytes" => Some(Type::FixedBytes { len: number.parse().ok()? }),
            _ => None,
        }
    })
}

/// Returns whether an empty text is a value of this type.
pub(super) const fn may_be_empty(column_type: ColumnType) -> bool {
    use ColumnType as Type;
    matches!(column_type, Type::Text | Type::FixedText { .. } | Type::Bytes | Type::FixedBytes { .. })
}

/// Returns whether JSON has values of this type only as strings.
pub(super) const fn is_quoted(column_type: ColumnType) -> bool {
    may_be_empty(column_type)
        || matches!(column_type, ColumnType::Timestamp | ColumnType::I128 | ColumnType::U128)
}

/// Parses a value of this type that is not null.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn parse(text: &str, column_type: ColumnType) -> Result<Value, String> {
    use ColumnType as Type;
    let no_value = || format!("{} is no {column_type}", shown(text));
    match column_type {
        Type::Bool => text.parse::<bool>().map(Value::from).map_err(|_| no_value()),
        Type::I8 => integer::<i8>(text, &no_value),
        Type::I16 => integer::<i16>(text, &no_value),
        Type::I32 => integer::<i32>(text, &no_value),
        Type::I64 => integer::<i64>(text, &no_value),
        Type::U8 => integer::<u8>(text, &no_value),
        Type::U16 => integer::<u16>(text, &no_value),
        Type::U32 => integer::<u32>(text, &no_value),
        Type::U64 => integer::<u64>(text, &no_value),
        Type::I128 => integer::<i128>(text, &no_value),
        Type::U128 => integer::<u128>(text, &no_value),
        Type::F32 => float_32(text).map(Value::Float32).ok_or_else(no_value),
        Type::F64 => float_64(text).map(Value::Float64).ok_or_else(no_value),
        Type::Decimal { scale } => decimal(text, scale).ok_or_else(no_value),
        Type::Timestamp => timestamp_text::parse(text).map(Value::Timestamp).ok_or_else(|| {
            format!("{} is no time as RFC 3339 has it, or more precise than microseconds", shown(text))
        }),
        Type::FixedText { len_max } if text.len() > usize::from(len_max) => {
            Err(format!("a text of {} bytes is longer than {column_type}", text.len()))
        }
        Type::Text | Type::FixedText { .. } => Ok(Value::Text(text.to_owned())),
        Type::Bytes | Type::FixedBytes { .. } => bytes(text, column_type),
        unknown => Err(format!("columns of type {unknown} cannot be read by this version")),
    }
}

fn integer<N: std::str::FromStr + Into<Value>>(
    text: &str,
    no_value: &dyn Fn() -> String,
) -> Result<Value, String> {
    text.parse::<N>().map(Into::into).map_err(|_| no_value())
}

/// The bits of a NaN that is written with them.
fn nan_bits(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("NaN(0x")?.strip_suffix(')')?, 16).ok()
}

/// Returns whether a text that Rust reads as an infinite number says so: `1e999` is one that does not fit.
fn says_infinite(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).starts_with(['i', 'I'])
}

fn float_32(text: &str) -> Option<f32> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(f32::from_bits(NAN_32));
    }
    if let Some(bits) = nan_bits(text) {
        return Some(f32::from_bits(bits.try_into().ok()?)).filter(|number| number.is_nan());
    }
    let number: f32 = text.parse().ok()?;
    (number.is_finite() || number.is_infinite() && says_infinite(text)).then_some(number)
}

fn float_64(text: &str) -> Option<f64> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::from_bits(NAN_64));
    }
    if let Some(bits) = nan_bits(text) {
        return Some(f64::from_bits(bits)).filter(|number| number.is_nan());
    }
    let number: f64 = text.parse().ok()?;
    (number.is_finite() || number.is_infinite() && says_infinite(text)).then_some(number)
}

/// Parses digits with at most one point, and no more of them behind it than `scale`, unless they are zeros.
fn decimal(text: &str, scale: u8) -> Option<Value> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > usize::from(scale) {
        return None;
    }
    let units = format!("{whole}{fraction:0<width$}", width = usize::from(scale));
    let units: i128 = if units.is_empty() { 0 } else { units.parse().ok()? };
    let units = i64::try_from(if is_negative { -units } else { units }).ok()?;
    Some(Value::Decimal { units, scale })
}

fn bytes(text: &str, column_type: ColumnType) -> Result<Value, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let bytes = bytes.ok_or_else(|| format!("{} are no pairs of hexadecimal digits", shown(text)))?;
    match column_type {
        ColumnType::FixedBytes { len } if bytes.len() != usize::from(len) => {
            Err(format!("{} bytes do not fit {column_type}", bytes.len()))
        }
        _ => Ok(Value::Bytes(bytes)),
    }
}

/// The most characters of a value that a message shows.
const SHOWN_MAX: usize = 60;

/// Returns a text for a message: quoted, and cut where it is long.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}

/// A value for people: text is quoted, and no character of it moves the terminal's cursor.
pub(super) struct Shown<'a>(pub(super) &'a Value);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, written(self.0)) {
            (Value::Text(text), _) => write!(f, "{text:?}"),
            (_, Ok(Written::Bare(text) | Written::Quoted(text))) => f.write_str(&text),
            (value, Ok(Written::Null) | Err(UnknownType)) => value.to_string().chars().try_for_each(|sign| {
                if sign.is_control() { write!(f, "{}", sign.escape_default()) } else { f.write_char(sign) }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(value: &Value, column_type: ColumnType) -> Value {
        match written(value).unwrap() {
            Written::Null => Value::Null,
            Written::Bare(text) | Written::Quoted(text) => parse(&text, column_type).unwrap(),
        }
    }

    #[test]
    fn types_are_read_as_they_print() {
        for text in [
            "bool",
            "u64",
            "i128",
            "f32",
            "decimal(18)",
            "timestamp",
            "text(300)",
            "bytes(16)",
            "text",
            "bytes",
        ] {
            assert_eq!(column_type_of(text).unwrap().to_string(), text);
        }
        for text in ["", "u256", "text(", "text(70000)", "decimal(x)", "blob(3)"] {
            assert_eq!(column_type_of(text), None, "{text}");
        }
    }

    #[test]
    fn floats_keep_their_bits() {
        for bits in
            [0, 1, 1 << 63, 0x3fb9_9999_9999_999a, 0x7fef_ffff_ffff_ffff, NAN_64, NAN_64 | 1 << 63 | 1]
        {
            let value = Value::Float64(f64::from_bits(bits));
            let Value::Float64(back) = round_trip(&value, ColumnType::F64) else { panic!("{bits:x}") };
            assert_eq!(back.to_bits(), bits);
        }
        for bits in
            [0, 1, 1 << 31, 0x3dcc_cccd, 0x7f7f_ffff, NAN_32, NAN_32 | 1 << 31, 0x7f80_0000, 0xff80_0000]
        {
            let value = Value::Float32(f32::from_bits(bits));
            let Value::Float32(back) = round_trip(&value, ColumnType::F32) else { panic!("{bits:x}") };
            assert_eq!(back.to_bits(), bits);
        }
        for text in ["1e999", "-1e999", "", "1.0f", "NaN(0x1)", "NaN(1)"] {
            assert!(parse(text, ColumnType::F64).is_err(), "{text}");
        }
        assert_eq!(parse("-Infinity", ColumnType::F64), Ok(Value::Float64(f64::NEG_INFINITY)));
    }

    #[test]
    fn decimals_are_exact_or_refused() {
        let two = |text: &str| parse(text, ColumnType::Decimal { scale: 2 });
        for (text, units) in [("0", 0), (".5", 50), ("-1.", -100), ("19.990", 1999), ("+7", 700)] {
            assert_eq!(two(text), Ok(Value::Decimal { units, scale: 2 }), "{text}");
        }
        for text in ["", ".", "-", "1.001", "1e2", "--1", "92233720368547758.08"] {
            assert!(two(text).is_err(), "{text}");
        }
        for units in [i64::MIN, -1, 0, i64::MAX] {
            for scale in [0, 1, 18] {
                let value = Value::Decimal { units, scale };
                assert_eq!(round_trip(&value, ColumnType::Decimal { scale }), value);
            }
        }
    }

    #[test]
    fn integers_of_128_bits_are_exact_and_strings_in_json() {
        for value in [i128::MIN, -1, i128::MAX] {
            assert_eq!(round_trip(&value.into(), ColumnType::I128), value.into());
        }
        assert_eq!(round_trip(&u128::MAX.into(), ColumnType::U128), u128::MAX.into());
        assert!(parse("-1", ColumnType::U128).is_err() && is_quoted(ColumnType::U128));
    }

    #[test]
    fn what_does_not_fit_its_column_is_refused() {
        for (text, column_type) in [
            ("256", ColumnType::U8),
            ("-1", ColumnType::U64),
            ("1.0", ColumnType::I32),
            ("yes", ColumnType::Bool),
            ("abcde", ColumnType::FixedText { len_max: 4 }),
            ("0x0", ColumnType::Bytes),
            ("0xzz", ColumnType::Bytes),
            ("0x00", ColumnType::FixedBytes { len: 2 }),
            ("now", ColumnType::Timestamp),
        ] {
            assert!(parse(text, column_type).is_err(), "{text}");
        }
        assert_eq!(parse("00fF", ColumnType::Bytes), Ok(Value::Bytes(vec![0, 255])));
        assert!(shown(&"é".repeat(100)).ends_with("\"..."));
    }
}
