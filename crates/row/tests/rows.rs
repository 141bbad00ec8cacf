//! Dynamic rows: round trips, updates, index keys, and what is refused.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::cmp::Ordering;

use common::{schema, table};
use ensilo_row::{
    ColumnType, IndexSchema, KeyBuf, Order, PrimaryKey, RowBuf, RowError, RowId, Schema, Value, WordSlice,
    Words,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const ROW_ID: RowId = RowId(77);

fn encode(schema: &Schema, values: &[Value]) -> (KeyBuf, RowBuf) {
    let (mut key, mut row) = (KeyBuf::new(), RowBuf::new());
    schema.encode_insert_key(values, || ROW_ID, &mut key).unwrap();
    schema.encode_row(values, &mut row).unwrap();
    (key, row)
}

/// The order that a key of these parts is to have.
fn compare(parts: &[ensilo_row::PartSchema], left: &[Value], right: &[Value]) -> Ordering {
    let mut order = Ordering::Equal;
    for part in parts {
        let (left, right) = (&left[part.column], &right[part.column]);
        let by_column = left.total_cmp(right);
        // Less where only the left one is null.
        let nulls = (*left != Value::Null).cmp(&(*right != Value::Null));
        order = order.then(match part.order {
            Order::Ascending => by_column,
            Order::Descending => by_column.reverse(),
            Order::AscendingNullsLast => nulls.reverse().then(by_column),
            Order::DescendingNullsFirst => nulls.then(by_column.reverse()),
        });
    }
    order
}

/// The index key of a row, from its values.
fn index_key(schema: &Schema, index: &IndexSchema, values: &[Value]) -> KeyBuf {
    let any_null = index.parts().iter().any(|part| values[part.column] == Value::Null);
    let mut parts = schema.index_key_parts(index);
    if index.is_unique() && !any_null {
        parts.truncate(index.parts().len());
    }
    let part_values: Vec<Value> = parts.iter().map(|part| values[part.column].clone()).collect();
    let mut key = KeyBuf::new();
    schema.encode_index_prefix(index, &part_values, &mut key).unwrap();
    if *schema.primary_key() == PrimaryKey::RowId && (any_null || !index.is_unique()) {
        key.append(&ROW_ID.0.to_be_bytes());
    }
    key
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were((schema, rows) in table(1), column in any::<Index>()) {
        let (key, row) = encode(&schema, &rows[0]);
        let mut values = Vec::new();
        schema.decode_row(key.as_bytes(), &row, &mut values).unwrap();
        prop_assert_eq!(&values, &rows[0]);
        let column = column.index(values.len());
        schema.decode_columns(&[column, 0, column], key.as_bytes(), &row, &mut values).unwrap();
        prop_assert_eq!(&values, &[rows[0][column].clone(), rows[0][0].clone(), rows[0][column].clone()]);
        schema.decode_key(key.as_bytes(), &mut values).unwrap();
        let mut again = KeyBuf::new();
        schema.encode_key(&values, &mut again).unwrap();
        prop_assert_eq!(again, key);
    }

    #[test]
    fn keys_have_the_order_of_their_values((schema, rows) in table(2)) {
        let [(left, _), (right, _)] = [encode(&schema, &rows[0]), encode(&schema, &rows[1])];
        prop_assert_eq!(left.cmp(&right), compare(schema.key_parts(), &rows[0], &rows[1]));
    }

    #[test]
    fn an_update_makes_the_row_of_the_new_values((schema, rows) in table(2), chosen in vec(any::<bool>(), 10)) {
        let (_, base) = encode(&schema, &rows[0]);
        let mut updated = rows[0].clone();
        let mut changes = Vec::new();
        for column in 0..updated.len() {
            if chosen[column] && !schema.is_key_column(column) {
                updated[column] = rows[1][column].clone();
                changes.push((column, rows[1][column].clone()));
            }
        }
        let mut row = RowBuf::new();
        schema.update_row(&base, &changes, &mut row).unwrap();
        prop_assert_eq!(&row, &encode(&schema, &updated).1);
    }

    #[test]
    fn index_keys_are_those_of_the_values((schema, rows) in table(2), shared in vec(any::<bool>(), 10)) {
        for index in schema.indexes() {
            let mut keys = Vec::new();
            for values in &rows {
                let (key, row) = encode(&schema, values);
                let mut found = KeyBuf::new();
                schema.index_key(index, key.as_bytes(), &row, &mut found).unwrap();
                prop_assert_eq!(&found, &index_key(&schema, index, values));
                let mut complete = found.clone();
                schema.complete_index_key(index, key.as_bytes(), &mut complete).unwrap();
                let of_rows = schema.without_index(index.name());
                let parts = index.parts().iter().map(|part| (schema.columns()[part.column].name.clone(), part.order));
                let plain = IndexSchema::new(&of_rows, "plain", parts, false).unwrap();
                prop_assert_eq!(complete, index_key(&schema, &plain, values));
                keys.push(found);
            }
            // Of two rows with one primary key.
            let (key, left) = encode(&schema, &rows[0]);
            let mixed: Vec<Value> = (0..rows[0].len()).map(|column| rows[usize::from(!shared[column])][column].clone()).collect();
            let (_, right) = encode(&schema, &mixed);
            let is_same = schema.have_same_index_key(index, &left, &right).unwrap();
            let keys_of = [&left, &right].map(|row| {
                let mut found = KeyBuf::new();
                schema.index_key(index, key.as_bytes(), row, &mut found).unwrap();
                found
            });
            prop_assert_eq!(is_same, keys_of[0] == keys_of[1], "{}", index.name());
            let by_columns = compare(index.parts(), &rows[0], &rows[1]);
            if by_columns != Ordering::Equal {
                prop_assert_eq!(keys[0].cmp(&keys[1]), by_columns);
            }
        }
    }

    #[test]
    fn decoding_accepts_any_words(schema in schema(), words in vec(any::<u64>(), 0..60), short in 0..9usize, key in vec(any::<u8>(), 0..40)) {
        let words: Vec<u64> = words.into_iter().map(|word| if word % 3 == 0 { word % 256 } else { word }).collect();
        let row = WordSlice::new(&words, (words.len() * 8).saturating_sub(short));
        let (mut values, mut index_key) = (Vec::new(), KeyBuf::new());
        let _ = schema.decode_row(&key, &row, &mut values);
        let _ = schema.decode_key(&key, &mut values);
        let _ = schema.update_row(&row, &[], &mut RowBuf::new());
        for index in schema.indexes() {
            let _ = schema.index_key(index, &key, &row, &mut index_key);
            let _ = schema.have_same_index_key(index, &row, &row);
        }
    }

    #[test]
    fn a_torn_row_decodes_or_is_malformed((schema, rows) in table(2), torn in vec(any::<bool>(), 80)) {
        let [(key, old), (_, new)] = [encode(&schema, &rows[0]), encode(&schema, &rows[1])];
        let count = old.words().len().max(new.words().len());
        let words: Vec<u64> = (0..count).map(|index| if torn[index % 80] { new.word(index) } else { old.word(index) }).collect();
        for len in [old.len_bytes(), new.len_bytes()] {
            let mut values = Vec::new();
            if schema.decode_row(key.as_bytes(), &WordSlice::new(&words, len), &mut values).is_ok() {
                prop_assert_eq!(values.len(), rows[0].len());
            }
        }
    }
}

fn accounts() -> Schema {
    Schema::builder("account")
        .column("id", ColumnType::U16)
        .column("rate", ColumnType::F32)
        .column("owner", ColumnType::FixedText { len_max: 4 })
        .nullable("price", ColumnType::Decimal { scale: 2 })
        .column("digest", ColumnType::FixedBytes { len: 2 })
        .column("note", ColumnType::Text)
        .key([("id", Order::Ascending)])
        .build()
        .unwrap()
}

fn values() -> Vec<Value> {
    vec![7u16.into(), 0.5f32.into(), "Ada".into(), Value::Null, [1u8, 2].into(), "hello".into()]
}

/// The error for this value in this column.
fn refused(column: usize, value: Value) -> RowError {
    let mut row = values();
    row[column] = value;
    accounts().encode_row(&row, &mut RowBuf::new()).unwrap_err()
}

#[test]
fn values_that_do_not_fit_are_refused_by_column() {
    let column = |name: &str| name.to_owned();
    assert_eq!(
        refused(0, Value::from("7")),
        RowError::WrongType { column: column("id"), expected: ColumnType::U16, found: "text" }
    );
    assert_eq!(
        refused(0, Value::Int(-1)),
        RowError::OutOfRange { column: column("id"), expected: ColumnType::U16 }
    );
    assert!(matches!(refused(0, Value::Unsigned(65536)), RowError::OutOfRange { .. }));
    assert_eq!(refused(0, Value::Null), RowError::Null { column: column("id") });
    assert!(matches!(refused(1, Value::Float64(0.1)), RowError::OutOfRange { .. }));
    assert!(matches!(refused(1, Value::Int(1)), RowError::WrongType { .. }));
    assert_eq!(
        refused(2, Value::from("Grace")),
        RowError::WrongLength {
            column: column("owner"),
            expected: ColumnType::FixedText { len_max: 4 },
            len: 5
        }
    );
    assert!(matches!(refused(3, Value::Decimal { units: 1, scale: 3 }), RowError::OutOfRange { .. }));
    assert!(matches!(refused(3, Value::Decimal { units: i64::MAX, scale: 0 }), RowError::OutOfRange { .. }));
    assert!(matches!(refused(4, Value::from(vec![1u8])), RowError::WrongLength { len: 1, .. }));
    assert!(matches!(refused(4, Value::from("12")), RowError::WrongType { .. }));
    assert!(matches!(refused(5, Value::Null), RowError::Null { .. }));
    assert!(matches!(
        refused(5, Value::from("x".repeat(ensilo_row::ROW_LEN_MAX))),
        RowError::RowTooLarge { .. }
    ));
    let too_few = accounts().encode_row(&values()[1..], &mut RowBuf::new());
    assert_eq!(too_few, Err(RowError::ValueCount { expected: 6, found: 5 }));
}

#[test]
fn numbers_convert_where_nothing_is_lost() {
    let mut row = values();
    row[0] = Value::Int(65535);
    row[1] = Value::Float64(0.25);
    row[3] = Value::Decimal { units: 15, scale: 1 };
    let (key, encoded) = encode(&accounts(), &row);
    let mut back = Vec::new();
    accounts().decode_row(key.as_bytes(), &encoded, &mut back).unwrap();
    assert_eq!(back[0], Value::Unsigned(65535));
    assert_eq!(back[1], Value::Float32(0.25));
    assert_eq!(back[3], Value::Decimal { units: 150, scale: 2 });
    row[3] = Value::Decimal { units: 1500, scale: 3 };
    assert_eq!(encode(&accounts(), &row).1, encoded);
}

#[test]
fn updates_and_projections_name_what_they_refuse() {
    let schema = accounts();
    let (key, base) = encode(&schema, &values());
    let mut out = RowBuf::new();
    let id = schema.update_row(&base, &[(0, Value::from(8u16))], &mut out);
    assert_eq!(id, Err(RowError::KeyColumn { column: "id".to_owned() }));
    let unknown = RowError::UnknownColumn { column: 6, table: "account".to_owned() };
    assert_eq!(schema.update_row(&base, &[(6, Value::Null)], &mut out), Err(unknown.clone()));
    assert_eq!(schema.decode_columns(&[6], key.as_bytes(), &base, &mut Vec::new()), Err(unknown));
    let short = WordSlice::new(&base.words()[..1], 8);
    assert_eq!(schema.update_row(&short, &[], &mut out), Err(RowError::Malformed));
}

#[test]
fn keys_are_checked_like_rows() {
    let mut key = KeyBuf::new();
    assert!(matches!(accounts().encode_key(&[], &mut key), Err(RowError::ValueCount { .. })));
    assert!(matches!(accounts().encode_key(&[Value::Null], &mut key), Err(RowError::Null { .. })));
    assert!(matches!(accounts().encode_key(&[Value::Int(-1)], &mut key), Err(RowError::OutOfRange { .. })));
    let by_note =
        Schema::builder("t").column("note", ColumnType::Text).key([("note", Order::Ascending)]).build();
    let long = Value::from("x".repeat(ensilo_row::KEY_LEN_MAX));
    assert!(matches!(
        by_note.unwrap().encode_key(&[long], &mut key),
        Err(RowError::KeyTooLong { len: 4097 })
    ));
    let heap = Schema::builder("t").column("note", ColumnType::Text).build().unwrap();
    assert!(matches!(heap.encode_key(&[Value::from("x")], &mut key), Err(RowError::WrongType { .. })));
    heap.encode_key(&[Value::Unsigned(258)], &mut key).unwrap();
    assert_eq!(key.as_bytes(), [0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn a_row_id_is_any_integer_that_is_one() {
    let heap = Schema::builder("t").column("note", ColumnType::Text).build().unwrap();
    let encoded = |value: Value| {
        let (mut key, mut prefix) = (KeyBuf::new(), KeyBuf::new());
        let outcome = heap.encode_key(std::slice::from_ref(&value), &mut key);
        assert_eq!(heap.encode_key_prefix(&[value], &mut prefix), outcome);
        outcome.map(|()| key.as_bytes().to_vec())
    };
    for id in [0, 258, i64::MAX] {
        assert_eq!(encoded(Value::Int(id)), Ok(id.to_be_bytes().to_vec()));
        assert_eq!(encoded(Value::Int(id)), encoded(Value::Unsigned(id.cast_unsigned())));
    }
    assert_eq!(encoded(Value::Unsigned(u64::MAX)), Ok(vec![0xff; 8]));
    let negative = RowError::OutOfRange { column: "row id".to_owned(), expected: ColumnType::U64 };
    assert_eq!(encoded(Value::Int(-1)), Err(negative));
    for value in [Value::Null, Value::Float64(1.0), Value::Decimal { units: 1, scale: 0 }, Value::Bool(true)]
    {
        assert!(matches!(encoded(value), Err(RowError::WrongType { found, .. }) if !found.is_empty()));
    }
}

/// A row of one float, as bits, after it was written to a column of this type and read again.
fn float_of_column(column_type: ColumnType, value: &Value) -> Option<u64> {
    let row_schema = Schema::builder("t").column("f", column_type).build().unwrap();
    let key_schema = Schema::builder("t").column("f", column_type).key([("f", Order::Ascending)]).build();
    let (mut row, mut values) = (RowBuf::new(), Vec::new());
    let (mut key, mut key_values) = (KeyBuf::new(), Vec::new());
    let value = std::slice::from_ref(value);
    let stored = row_schema.encode_row(value, &mut row);
    assert_eq!(key_schema.as_ref().unwrap().encode_key(value, &mut key), stored);
    if let Err(error) = stored {
        assert!(matches!(error, RowError::OutOfRange { .. }));
        return None;
    }
    row_schema.decode_row(&[], &row, &mut values).unwrap();
    key_schema.unwrap().decode_key(key.as_bytes(), &mut key_values).unwrap();
    let bits = |value: &Value| match value {
        Value::Float32(value) => u64::from(value.to_bits()),
        Value::Float64(value) => value.to_bits(),
        value => panic!("{value:?}"),
    };
    assert_eq!(bits(&values[0]), bits(&key_values[0]));
    Some(bits(&values[0]))
}

/// The sign, exponent and fraction of a float of either width, the fraction with as many bits as the wide one has.
fn parts_of(bits: u64, is_wide: bool) -> (bool, f64, u64) {
    let (is_negative, fraction, float) = if is_wide {
        (bits >> 63 == 1, bits << 12 >> 12, f64::from_bits(bits))
    } else {
        (bits >> 31 == 1, (bits << 41 >> 41) << 29, f64::from(f32::from_bits(bits as u32)))
    };
    if float.is_nan() { (is_negative, 0.0, fraction) } else { (is_negative, float, 0) }
}

proptest! {
    #[test]
    fn floats_keep_their_bits_or_are_refused(
        sign in any::<bool>(),
        exponent in prop_oneof![Just(0xffu64), Just(0), Just(0x7f), 0..=0xffu64],
        fraction in prop_oneof![Just(0u64), Just(1), Just(1 << 22), Just(1 << 22 | 1), Just((1 << 23) - 1), 0..1u64 << 23],
        lost in prop_oneof![3 => Just(0u64), 1 => Just(1), 1 => 0..1u64 << 29],
    ) {
        let narrow = u64::from(sign) << 31 | exponent << 23 | fraction;
        let value = Value::Float32(f32::from_bits(narrow as u32));
        prop_assert_eq!(float_of_column(ColumnType::F32, &value), Some(narrow));
        let wide = float_of_column(ColumnType::F64, &value).unwrap();
        prop_assert_eq!(parts_of(wide, true), parts_of(narrow, false));
        prop_assert_eq!(float_of_column(ColumnType::F32, &Value::Float64(f64::from_bits(wide))), Some(narrow));
        let more = wide | lost;
        let value = Value::Float64(f64::from_bits(more));
        prop_assert_eq!(float_of_column(ColumnType::F64, &value), Some(more));
        prop_assert_eq!(float_of_column(ColumnType::F32, &value), (lost == 0).then_some(narrow));
    }

    #[test]
    fn a_float_in_the_narrow_type_is_the_same_in_the_wide_one(bits in any::<u64>(), special in any::<bool>()) {
        let bits = if special { bits | f64::INFINITY.to_bits() } else { bits };
        let value = Value::Float64(f64::from_bits(bits));
        prop_assert_eq!(float_of_column(ColumnType::F64, &value), Some(bits));
        if let Some(narrow) = float_of_column(ColumnType::F32, &value) {
            prop_assert_eq!(parts_of(narrow, false), parts_of(bits, true));
            let back = Value::Float32(f32::from_bits(narrow as u32));
            prop_assert_eq!(float_of_column(ColumnType::F64, &back), Some(bits));
        }
    }
}
