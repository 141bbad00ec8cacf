//! Schemas: what is refused, the layout, and the encoding for the catalog.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::schema;
use ensilo_row::{
    Column, ColumnType, INDEXES_MAX, IndexSchema, KEY_LEN_MAX, Key, KeyBuf, NAME_LEN_MAX, Order, RowBuf,
    RowId, Schema, SchemaBuilder, SchemaError, Value,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn accounts() -> SchemaBuilder {
    Schema::builder("account").column("id", ColumnType::U32).nullable("owner", ColumnType::Text)
}

fn asc(name: &str) -> [(&str, Order); 1] {
    [(name, Order::Ascending)]
}

#[test]
fn names_are_there_and_distinct() {
    let bad = |of: &'static str, name: &str| Err(SchemaError::BadName { of, name: name.to_owned() });
    assert_eq!(Schema::builder("").build(), bad("table", ""));
    let long = "x".repeat(NAME_LEN_MAX + 1);
    assert_eq!(Schema::builder(&long[1..]).build().map(|schema| schema.name().len()), Ok(NAME_LEN_MAX));
    assert_eq!(accounts().column(long.clone(), ColumnType::Bool).build(), bad("column", &long));
    assert_eq!(accounts().index("", asc("id")).build(), bad("index", ""));
    let column = "id".to_owned();
    let duplicate = accounts().column("id", ColumnType::Bool).build();
    assert_eq!(duplicate, Err(SchemaError::DuplicateColumn { column: column.clone() }));
    let duplicate = accounts().index("i", asc("id")).unique_index("i", asc("owner")).build();
    assert_eq!(duplicate, Err(SchemaError::DuplicateIndex { index: "i".to_owned() }));
    let unknown = SchemaError::UnknownColumn { table: "account".to_owned(), column: "x".to_owned() };
    assert_eq!(accounts().key(asc("x")).build(), Err(unknown.clone()));
    assert_eq!(accounts().index("i", asc("x")).build(), Err(unknown.clone()));
    let schema = accounts().build().unwrap();
    assert_eq!(IndexSchema::new(&schema, "i", asc("x"), true), Err(unknown));
    let twice = accounts().key([("id", Order::Ascending), ("id", Order::Descending)]).build();
    assert_eq!(twice, Err(SchemaError::RepeatedColumn { key: "primary key".to_owned(), column }));
}

#[test]
fn sizes_are_bounded() {
    let long_key = Schema::builder("t").column("a", wide(4097)).key(asc("a")).build();
    assert_eq!(long_key, Err(SchemaError::KeyTooLong { key: "primary key".to_owned(), len: 4097 }));
    let long_index = Schema::builder("t").column("a", wide(4089)).index("i", asc("a")).build();
    assert_eq!(long_index, Err(SchemaError::KeyTooLong { key: "i".to_owned(), len: 4097 }));
    let mut builder = Schema::builder("t");
    for number in 0..17 {
        builder = builder.column(format!("c{number}"), wide(65535));
    }
    assert_eq!(builder.build(), Err(SchemaError::RowTooLarge { len: 17 * 65535 }));
    let mut builder = Schema::builder("t");
    for number in 0..1025 {
        builder = builder.column(format!("c{number}"), ColumnType::Bool);
    }
    assert_eq!(builder.build(), Err(SchemaError::TooManyColumns { count: 1025 }));
    let mut builder = accounts();
    for number in 0..=INDEXES_MAX {
        builder = builder.index(format!("i{number}"), asc("id"));
    }
    assert_eq!(builder.build(), Err(SchemaError::TooManyIndexes { count: INDEXES_MAX + 1 }));
    let scale = accounts().column("d", ColumnType::Decimal { scale: 19 }).build();
    assert_eq!(scale, Err(SchemaError::BadScale { column: "d".to_owned(), scale: 19 }));
}

/// A schema whose key lengths grow with `len`.
type OfLen = fn(u16) -> Result<Schema, SchemaError>;

/// The schema of this kind with the longest keys, after which no other is valid.
fn largest(of_len: OfLen) -> Schema {
    let is_too_long =
        |len| matches!(of_len(len), Err(SchemaError::KeyTooLong { len, .. }) if len > KEY_LEN_MAX);
    let first_refused = (1..=4097).find(|len| is_too_long(*len)).unwrap();
    assert!((first_refused..=4097).all(is_too_long));
    of_len(first_refused - 1).unwrap()
}

/// The length of the longest key of a row, its primary key included, where nullable columns are null or have a value.
fn longest_key(schema: &Schema, are_null: bool) -> usize {
    let value = |column: &Column| match column.column_type {
        _ if are_null && column.nullable => Value::Null,
        ColumnType::FixedBytes { len } => vec![7; usize::from(len)].into(),
        _ => 7u32.into(),
    };
    let values: Vec<Value> = schema.columns().iter().map(value).collect();
    let (mut key, mut row, mut index_key) = (KeyBuf::new(), RowBuf::new(), KeyBuf::new());
    schema.encode_insert_key(&values, || RowId(7), &mut key).unwrap();
    schema.encode_row(&values, &mut row).unwrap();
    let index_lens = schema.indexes().iter().map(|index| {
        schema.index_key(index, key.as_bytes(), &row, &mut index_key).unwrap();
        index_key.len()
    });
    index_lens.fold(key.len(), usize::max)
}

fn wide(len: u16) -> ColumnType {
    ColumnType::FixedBytes { len }
}

fn both() -> [(&'static str, Order); 2] {
    [("a", Order::Ascending), ("b", Order::Descending)]
}

#[test]
fn every_schema_is_valid_whose_rows_have_keys_that_fit() {
    let of_len: [OfLen; 9] = [
        |len| Schema::builder("t").column("a", wide(len)).key(asc("a")).build(),
        // The index has the column of the key, which follows once.
        |len| Schema::builder("t").column("a", wide(len)).key(asc("a")).index("i", asc("a")).build(),
        |len| {
            let columns = Schema::builder("t").column("a", wide(len)).column("b", ColumnType::U32);
            columns.key(both()).index("i", [("b", Order::Ascending), ("a", Order::Ascending)]).build()
        },
        |len| {
            let columns = Schema::builder("t").column("a", wide(len)).column("b", ColumnType::U32);
            columns.key(asc("b")).index("i", both()).build()
        },
        // A unique index does without the key,
        |len| {
            let columns = Schema::builder("t").column("a", wide(4096)).column("b", wide(len));
            columns.key(asc("a")).unique_index("i", asc("b")).build()
        },
        // also where a null would bring it in, which a value avoids.
        |len| {
            let columns = Schema::builder("t").column("a", wide(4096)).nullable("b", wide(len));
            columns.key(asc("a")).unique_index("i", asc("b")).build()
        },
        // Row ids are 8 bytes long.
        |len| Schema::builder("t").column("a", wide(len)).index("i", asc("a")).build(),
        |len| Schema::builder("t").column("a", wide(len)).unique_index("i", asc("a")).build(),
        // Either the null column and the key, or the columns alone.
        |len| {
            let columns = Schema::builder("t").column("a", wide(len)).nullable("b", wide(3000));
            columns.column("c", wide(300)).key(asc("c")).unique_index("i", both()).build()
        },
    ];
    for (number, of_len) in of_len.into_iter().enumerate() {
        let schema = largest(of_len);
        let longest = [true, false].map(|are_null| longest_key(&schema, are_null));
        assert_eq!(longest[0].min(longest[1]), KEY_LEN_MAX, "schema {number}: {schema:?}");
    }
}

#[test]
fn indexes_come_and_go() {
    let schema = accounts().key(asc("id")).build().unwrap();
    let index = IndexSchema::new(&schema, "by_owner", asc("owner"), false).unwrap();
    assert!(index.touches(&[0, 1]) && !index.touches(&[0]));
    let with = schema.with_index(index.clone()).unwrap();
    assert_eq!(with.index("by_owner"), Some(&index));
    let again = with.with_index(index);
    assert_eq!(again, Err(SchemaError::DuplicateIndex { index: "by_owner".to_owned() }));
    assert_eq!(with.without_index("by_owner"), schema);
    let none: [(&str, Order); 0] = [];
    let empty = IndexSchema::new(&schema, "i", none, false).unwrap();
    assert_eq!(schema.with_index(empty), Err(SchemaError::EmptyIndex { index: "i".to_owned() }));
    let foreign = Schema::builder("t").column("a", ColumnType::U8).column("b", ColumnType::U8);
    let foreign = foreign.column("c", ColumnType::U8).build().unwrap();
    let index = IndexSchema::new(&foreign, "i", asc("c"), false).unwrap();
    assert!(matches!(schema.with_index(index), Err(SchemaError::UnknownColumn { .. })));
}

/// The bits of the row that a column takes in the fixed part.
fn bits(schema: &Schema, column: usize) -> Vec<usize> {
    let slot = schema.slots()[column];
    let value = slot.offset() * 8..(slot.offset() + slot.width()) * 8;
    if slot.is_stored() { value.chain(slot.null_bit()).collect() } else { Vec::new() }
}

proptest! {
    #[test]
    fn the_fixed_part_is_dense_and_numbers_are_aligned(schema in schema()) {
        let mut seen = vec![0; schema.fixed_len() * 8];
        for (index, column) in schema.columns().iter().enumerate() {
            let slot = schema.slots()[index];
            prop_assert_eq!(slot.is_stored(), !schema.is_key_column(index) && (slot.width() > 0 || column.nullable));
            if let width @ 1.. = column.column_type.scalar_width() as usize {
                prop_assert!(slot.offset().is_multiple_of(width));
            }
            if column.column_type.is_wide() {
                prop_assert!(slot.offset().is_multiple_of(8));
            }
            for bit in bits(&schema, index) {
                seen[bit] += 1;
            }
        }
        prop_assert!(seen.iter().all(|count| *count <= 1), "columns overlap");
        prop_assert!(seen.iter().filter(|count| **count == 0).count() < 8, "more is unused than the end of the null bitmap");
    }

    #[test]
    fn schemas_come_back_from_the_catalog(schema in schema()) {
        let mut bytes = Vec::new();
        schema.encode(&mut bytes);
        prop_assert_eq!(Schema::decode(&bytes), Ok(schema.clone()));
        for len in 0..bytes.len() {
            prop_assert!(Schema::decode(&bytes[..len]).is_err());
        }
        bytes.push(0);
        prop_assert!(Schema::decode(&bytes).is_err());
    }

    #[test]
    fn damaged_schemas_are_refused_or_others(schema in schema(), at in any::<proptest::sample::Index>(), xor in 1..=255u8) {
        let mut bytes = Vec::new();
        schema.encode(&mut bytes);
        let at = at.index(bytes.len());
        bytes[at] ^= xor;
        if let Ok(other) = Schema::decode(&bytes) {
            prop_assert_ne!(&other, &schema);
            let mut again = Vec::new();
            other.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Schema::decode(&bytes);
        let _ = Schema::decode(&[&[1], &bytes[..]].concat());
    }
}

#[test]
fn the_types_of_a_dynamic_key_are_those_of_the_rust_type() {
    let schema = Schema::builder("event")
        .column("text", ColumnType::Text)
        .nullable("at", ColumnType::U16)
        .column("value", ColumnType::I64)
        .key([("at", Order::Descending), ("text", Order::Ascending)])
        .build()
        .unwrap();
    assert_eq!(schema.key_types(), <(std::cmp::Reverse<Option<u16>>, String) as Key>::PARTS);
    let without_key = Schema::builder("event").column("text", ColumnType::Text).build().unwrap();
    assert!(without_key.key_types().is_empty());
}
