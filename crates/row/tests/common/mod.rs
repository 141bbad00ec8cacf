//! Schemas and rows at random, and what is checked of keys.
#![allow(dead_code, reason = "each test uses a part")]

use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

use ensilo_row::{ColumnType, ColumnValue, Key, KeyBuf, NullsLast, Order, Schema, Timestamp, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

pub(crate) fn column_type() -> impl Strategy<Value = ColumnType> {
    use ColumnType as T;
    let scalar = select(vec![
        T::Bool,
        T::I8,
        T::I16,
        T::I32,
        T::I64,
        T::U8,
        T::U16,
        T::U32,
        T::U64,
        T::I128,
        T::U128,
        T::F32,
        T::F64,
        T::Timestamp,
        T::Text,
        T::Bytes,
    ]);
    prop_oneof![
        6 => scalar,
        1 => (0..=18u8).prop_map(|scale| T::Decimal { scale }),
        1 => select(vec![0u16, 1, 7, 8, 16, 255, 256, 300]).prop_map(|len_max| T::FixedText { len_max }),
        1 => (0..20u16).prop_map(|len| T::FixedBytes { len }),
    ]
}

/// Text that is now and then longer than a byte a character, and has bytes that keys escape.
fn text(len_max: usize) -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('é'), any::<char>()], 0..12).prop_map(
        move |chars| {
            let mut text: String = chars.into_iter().collect();
            text.truncate(text.floor_char_boundary(len_max));
            text
        },
    )
}

/// Numbers near zero, near the ends of 64 and of 128 bits, and any.
pub(crate) fn wide() -> impl Strategy<Value = u128> {
    let near = select(vec![0, 1 << 63, 1 << 64, 1 << 127]);
    prop_oneof![
        any::<u128>(),
        (near, 0..5u128).prop_map(|(near, distance): (u128, _)| near.wrapping_add(distance).wrapping_sub(2))
    ]
}

pub(crate) fn value(column_type: ColumnType, nullable: bool) -> BoxedStrategy<Value> {
    use ColumnType as T;
    let value = match column_type {
        T::Bool => any::<bool>().prop_map(Value::from).boxed(),
        T::I8 => any::<i8>().prop_map(Value::from).boxed(),
        T::I16 => any::<i16>().prop_map(Value::from).boxed(),
        T::I32 => any::<i32>().prop_map(Value::from).boxed(),
        T::I64 => any::<i64>().prop_map(Value::from).boxed(),
        T::U8 => any::<u8>().prop_map(Value::from).boxed(),
        T::U16 => any::<u16>().prop_map(Value::from).boxed(),
        T::U32 => any::<u32>().prop_map(Value::from).boxed(),
        T::U64 => any::<u64>().prop_map(Value::from).boxed(),
        T::I128 => wide().prop_map(|bits| bits.cast_signed().into()).boxed(),
        T::U128 => wide().prop_map(Value::from).boxed(),
        T::F32 => any::<u32>().prop_map(|bits| f32::from_bits(bits).into()).boxed(),
        T::F64 => any::<u64>().prop_map(|bits| f64::from_bits(bits).into()).boxed(),
        T::Decimal { scale } => any::<i64>().prop_map(move |units| Value::Decimal { units, scale }).boxed(),
        T::Timestamp => any::<i64>().prop_map(|micros| Timestamp::from_micros(micros).into()).boxed(),
        T::FixedText { len_max } => text(usize::from(len_max)).prop_map(Value::from).boxed(),
        T::FixedBytes { len } => vec(any::<u8>(), usize::from(len)).prop_map(Value::from).boxed(),
        T::Text => text(100).prop_map(Value::from).boxed(),
        _ => vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..40).prop_map(Value::from).boxed(),
    };
    if nullable { prop_oneof![1 => Just(Value::Null), 3 => value].boxed() } else { value }
}

/// Up to ten columns, a key of up to four of them in any order, up to three indexes.
pub(crate) fn schema() -> impl Strategy<Value = Schema> {
    let columns = vec((column_type(), any::<bool>()), 1..10);
    let parts = || vec((any::<Index>(), (any::<bool>(), any::<bool>())), 0..5);
    let indexes = vec((parts(), any::<bool>()), 0..3);
    (columns, parts(), indexes).prop_map(|(columns, key, indexes)| {
        let mut builder = Schema::builder("t");
        for (number, (column_type, nullable)) in columns.iter().enumerate() {
            let name = format!("c{number}");
            builder = if *nullable {
                builder.nullable(name, *column_type)
            } else {
                builder.column(name, *column_type)
            };
        }
        let named = |parts: &[(Index, (bool, bool))]| {
            let mut named: Vec<(String, Order)> = Vec::new();
            for (column, (descending, moves_nulls)) in parts {
                let number = column.index(columns.len());
                let name = format!("c{number}");
                let order = match (descending, moves_nulls & columns[number].1) {
                    (false, false) => Order::Ascending,
                    (true, false) => Order::Descending,
                    (false, true) => Order::AscendingNullsLast,
                    (true, true) => Order::DescendingNullsFirst,
                };
                if named.iter().all(|(other, _)| *other != name) {
                    named.push((name, order));
                }
            }
            named
        };
        builder = builder.key(named(&key));
        for (number, (parts, unique)) in indexes.iter().enumerate() {
            let (name, parts) = (format!("i{number}"), named(parts));
            if !parts.is_empty() {
                builder =
                    if *unique { builder.unique_index(name, parts) } else { builder.index(name, parts) };
            }
        }
        builder.build().expect("names are distinct and known")
    })
}

pub(crate) fn row(schema: &Schema) -> BoxedStrategy<Vec<Value>> {
    schema
        .columns()
        .iter()
        .map(|column| value(column.column_type, column.nullable))
        .collect::<Vec<_>>()
        .boxed()
}

/// A schema and that many rows of it.
pub(crate) fn table(rows: usize) -> impl Strategy<Value = (Schema, Vec<Vec<Value>>)> {
    schema().prop_flat_map(move |schema| {
        let rows = vec(row(&schema), rows);
        (Just(schema), rows)
    })
}

pub(crate) fn encoded<K: Key>(key: &K) -> Vec<u8> {
    let mut buf = KeyBuf::new();
    key.encode(&mut buf);
    buf.as_bytes().to_vec()
}

/// The property that makes a codec of keys: order, round trip, no proper prefixes (K1), the stated length.
pub(crate) fn check<K: Key + Debug>(left: &K, right: &K, order: Ordering) {
    let (left_bytes, right_bytes) = (encoded(left), encoded(right));
    assert_eq!(left_bytes.cmp(&right_bytes), order, "{left:?} and {right:?}");
    assert_eq!(order == Ordering::Equal, left_bytes.starts_with(&right_bytes), "{left:?} and {right:?}");
    let again = K::decode(&left_bytes).expect("its own encoding");
    assert_eq!(encoded(&again), left_bytes, "{left:?} and {again:?}");
    if let Some(len) = K::FIXED_LEN {
        assert_eq!(left_bytes.len(), len);
    }
}

/// A column alone, descending, nullable, and inside tuples of every way to encode them.
pub(crate) fn check_column<C>(left: C, right: C, compare: impl Fn(&C, &C) -> Ordering)
where
    C: ColumnValue + Debug,
{
    let order = compare(&left, &right);
    let wrapped = |value: &C| (Some(value.clone()), Reverse(value.clone()), Reverse(Some(value.clone())));
    let ((left_some, left_reverse, left_both), (right_some, right_reverse, right_both)) =
        (wrapped(&left), wrapped(&right));
    check(&left, &right, order);
    check(&left_reverse, &right_reverse, order.reverse());
    check(&left_some, &right_some, order);
    check(&left_both, &right_both, order.reverse());
    let last = |value: &C| NullsLast(Some(value.clone()));
    check(&last(&left), &last(&right), order);
    check(&Reverse(last(&left)), &Reverse(last(&right)), order.reverse());
    check(&NullsLast(None), &last(&right), Ordering::Greater);
    check(&Reverse(NullsLast(None)), &Reverse(last(&right)), Ordering::Less);
    check(&NullsLast(None::<C>), &NullsLast(None), Ordering::Equal);
    check(&(last(&left), 3u8), &(last(&right), 4u8), order.then(Ordering::Less));
    check(&(NullsLast(None), 3u8), &(last(&right), 2u8), Ordering::Greater);
    check(&None, &right_some, Ordering::Less);
    check(&Reverse(None), &right_both, Ordering::Greater);
    for (low, high) in [(3u8, 3u8), (3, 4)] {
        check(&(left.clone(), low), &(right.clone(), high), order.then(low.cmp(&high)));
        check(&(low, left.clone()), &(high, right.clone()), low.cmp(&high).then(order));
        let (long_left, long_right) =
            ((left_reverse.clone(), u64::MAX, low), (right_reverse.clone(), u64::MAX, high));
        check(&long_left, &long_right, order.reverse().then(low.cmp(&high)));
    }
}
