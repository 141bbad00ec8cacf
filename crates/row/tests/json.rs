//! Rows and columns to and from JSON and other formats of serde.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Debug;

use common::{check_column, encoded, table};
use ensilo_row::{
    ColumnType, ColumnValue as _, Decimal, Json, JsonError, Key, Malformed, RowId, Schema, Text, Timestamp,
    Value,
};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Whether a value is a NaN that no text stands for.
fn is_other_nan(value: &Value) -> bool {
    match value {
        Value::Float32(value) => value.is_nan() && value.to_bits() != f32::NAN.to_bits(),
        Value::Float64(value) => value.is_nan() && value.to_bits() != f64::NAN.to_bits(),
        _ => false,
    }
}

/// Checks that a value comes back from JSON and from bytes, and returns its JSON.
fn through<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> String {
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *value);
    let bytes = postcard::to_allocvec(value).unwrap();
    assert_eq!(postcard::from_bytes::<T>(&bytes).unwrap(), *value);
    json
}

fn one(column_type: ColumnType) -> Schema {
    Schema::builder("t").column("c", column_type).build().unwrap()
}

/// The value of the one column of this type, or the message of the error.
fn read(column_type: ColumnType, json: &str) -> Result<Value, String> {
    let row = one(column_type).row_from_json(&format!("{{\"c\": {json}}}"));
    row.map(|mut row| row.remove(0)).map_err(|error| error.to_string())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Settings {
    names: BTreeMap<String, Option<i64>>,
    ratio: f64,
    kind: Kind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip)]
    cached: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Small,
    Large { size: u128 },
}

fn settings() -> impl Strategy<Value = Settings> {
    let names = proptest::collection::btree_map("[a-c]{0,2}", any::<Option<i64>>(), 0..3);
    let kind = prop_oneof![Just(Kind::Small), any::<u128>().prop_map(|size| Kind::Large { size })];
    (names, proptest::num::f64::NORMAL, kind, proptest::collection::vec(".{0,3}", 0..3))
        .prop_map(|(names, ratio, kind, tags)| Settings { names, ratio, kind, tags, cached: 0 })
}

proptest! {
    #[test]
    fn rows_come_back_from_json((schema, rows) in table(1)) {
        let json = schema.row_to_json(&rows[0]);
        if rows[0].iter().any(is_other_nan) {
            prop_assert!(json.unwrap_err().to_string().contains("NaN"));
            return Ok(());
        }
        let json = json.unwrap();
        prop_assert_eq!(&schema.row_from_json(&json).unwrap(), &rows[0], "{}", json);
        // Nulls may be left out.
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&json).unwrap();
        fields.retain(|_, value| !value.is_null());
        let is_wide = schema.columns().iter().any(|column| column.column_type.is_wide());
        if !is_wide {
            let short = serde_json::to_string(&fields).unwrap();
            prop_assert_eq!(&schema.row_from_json(&short).unwrap(), &rows[0], "{}", short);
        }
    }

    #[test]
    fn floats_come_back_from_json(narrow in any::<u32>(), wide in any::<u64>()) {
        let (narrow, wide) = (f32::from_bits(narrow), f64::from_bits(wide));
        prop_assume!(narrow.is_finite() && wide.is_finite());
        for (column_type, value) in [(ColumnType::F32, Value::from(narrow)), (ColumnType::F64, Value::from(wide))] {
            let schema = one(column_type);
            let json = schema.row_to_json(std::slice::from_ref(&value)).unwrap();
            prop_assert_eq!(schema.row_from_json(&json).unwrap(), [value]);
        }
    }

    #[test]
    fn any_text_is_a_row_or_an_error(schema in common::schema(), text in "\\{(\"c[0-3]\": ?(null|1|-1.5|\"0x\"|\"\"|true|[0-9]{1,40}),?){0,4}\\}?") {
        if let Ok(row) = schema.row_from_json(&text) {
            prop_assert_eq!(row.len(), schema.columns().len());
            let mut encoded = ensilo_row::RowBuf::new();
            prop_assert_eq!(schema.encode_row(&row, &mut encoded), Ok(()));
        }
    }

    #[test]
    fn columns_come_back(text in "[a-zß\"\\\\]{0,5}", number in any::<i64>(), id in any::<u64>()) {
        through(&Text::<10>::truncated(&text));
        prop_assert_eq!(through(&RowId(id)), id.to_string());
        let decimal = Decimal::<4>::from_scaled(number);
        prop_assert_eq!(through(&decimal), format!("\"{decimal}\""));
        let time = Timestamp::from_micros(number);
        prop_assert_eq!(through(&time), format!("\"{time}\""));
    }

    #[test]
    fn json_columns_keep_their_values(left in settings(), right in settings()) {
        let [left, right] = [left, right].map(|value| Json::new(value).unwrap());
        prop_assert_eq!(Json::<Settings>::decode(&encoded(&left)), Ok(left.clone()));
        prop_assert_eq!(encoded(&left), encoded(&left.text().to_owned()));
        prop_assert_eq!(left.is_same(&right), left == right);
        check_column(left.clone(), right.clone(), |left, right| left.text().cmp(right.text()));
        prop_assert_eq!(serde_json::to_string(&left).unwrap(), left.text());
        prop_assert_eq!(&serde_json::from_str::<Json<Settings>>(left.text()).unwrap(), &left);
        let mut changed = left.clone();
        changed.change(|settings| *settings = right.clone().into_inner()).unwrap();
        prop_assert_eq!((&changed, changed.text()), (&right, right.text()));
        let again = Json::<Settings>::from_text(left.text().to_owned()).unwrap();
        prop_assert_eq!((&again, again.text()), (&left, left.text()));
    }
}

#[test]
fn values_are_written_as_people_read_them() {
    let schema = Schema::builder("t")
        .column("flag", ColumnType::Bool)
        .column("short", ColumnType::I8)
        .column("wide", ColumnType::U128)
        .column("float", ColumnType::F32)
        .column("special", ColumnType::F64)
        .column("price", ColumnType::Decimal { scale: 2 })
        .column("at", ColumnType::Timestamp)
        .column("name", ColumnType::FixedText { len_max: 4 })
        .column("digest", ColumnType::FixedBytes { len: 2 })
        .nullable("note", ColumnType::Text)
        .build()
        .unwrap();
    let row = [
        true.into(),
        (-7i8).into(),
        u128::MAX.into(),
        0.1f32.into(),
        f64::NEG_INFINITY.into(),
        Value::Decimal { units: -5, scale: 2 },
        Timestamp::from_micros(0).into(),
        "a\"b".into(),
        [0u8, 255].into(),
        Value::Null,
    ];
    let json = schema.row_to_json(&row).unwrap();
    assert_eq!(
        json,
        r#"{"flag":true,"short":-7,"wide":340282366920938463463374607431768211455,"float":0.1,"special":"-inf","price":"-0.05","#
            .to_owned()
            + r#""at":"1970-01-01T00:00:00.000000Z","name":"a\"b","digest":"0x00ff","note":null}"#
    );
    assert_eq!(schema.row_from_json(&json).unwrap(), row);
}

#[test]
fn what_does_not_fit_a_column_is_an_error_that_names_it() {
    use ColumnType as T;
    assert_eq!(read(T::F64, "1"), Ok(Value::Float64(1.0)));
    assert_eq!(read(T::F32, "16777216"), Ok(Value::Float32(16_777_216.0)));
    assert_eq!(read(T::F64, "\"NaN\""), Ok(Value::Float64(f64::NAN)));
    assert_eq!(read(T::F32, "\"inf\""), Ok(Value::Float32(f32::INFINITY)));
    assert_eq!(read(T::Decimal { scale: 2 }, "\"1.500\""), Ok(Value::Decimal { units: 150, scale: 2 }));
    assert_eq!(read(T::Bytes, "\"0x0aFf\""), Ok(Value::from(vec![10u8, 255])));
    assert_eq!(read(T::I128, "-170141183460469231731687303715884105728"), Ok(Value::from(i128::MIN)));
    let refused = [
        (T::U8, "256", "type u8"),
        (T::U8, "1.0", "column `c` of type u8"),
        (T::U8, "\"1\"", "column `c` of type u8"),
        (T::U8, "null", "not nullable"),
        (T::F32, "16777217", "column `c`"),
        (T::F32, "1e300", "column `c` of type f32"),
        (T::F64, "9007199254740993", "column `c`"),
        (T::F64, "\"infinity\"", "column `c` of type f64"),
        (T::Decimal { scale: 2 }, "1.5", "text such as \"12.50\""),
        (T::Decimal { scale: 2 }, "\"1.555\"", "more digits"),
        (T::Timestamp, "0", "column `c`"),
        (T::Timestamp, "\"yesterday\"", "RFC 3339"),
        (T::FixedText { len_max: 2 }, "\"abc\"", "text(2)"),
        (T::FixedBytes { len: 2 }, "\"0x00\"", "bytes(2)"),
        (T::Bytes, "\"0x0\"", "text such as \"0x00ff\""),
        (T::Bytes, "\"00\"", "text such as \"0x00ff\""),
        (T::Bytes, "\"0x0g\"", "text such as \"0x00ff\""),
        (T::Text, "{}", "column `c` of type text"),
        (T::U128, "-1", ""),
    ];
    for (column_type, json, expected) in refused {
        let message = read(column_type, json).unwrap_err();
        assert!(message.contains(expected), "{column_type} {json}: {message}");
    }
    let schema = one(T::U8);
    let message = |json: &str| schema.row_from_json(json).unwrap_err().to_string();
    assert!(message("{}").contains("column `c` has no value"));
    assert!(message(r#"{"c": 1, "d": 2}"#).contains("table `t` has no column `d`"));
    assert!(message(r#"{"c": 1, "c": 1}"#).contains("column `c` has two values"));
    assert!(message(r#"{"c": 1} {}"#).contains("trailing"));
    assert!(message("[1]").contains("a row of table `t`"));
}

#[test]
fn columns_of_the_wrong_form_are_errors() {
    assert!(serde_json::from_str::<Text<2>>("\"abc\"").unwrap_err().to_string().contains("3 bytes"));
    assert!(serde_json::from_str::<Decimal<2>>("1.5").is_err());
    assert!(serde_json::from_str::<Decimal<2>>("\"1.555\"").is_err());
    assert!(serde_json::from_str::<Timestamp>("0").is_err());
    assert!(serde_json::from_str::<RowId>("-1").is_err());
}

#[test]
fn json_that_would_not_come_back_is_refused() {
    let settings =
        Settings { names: BTreeMap::new(), ratio: 0.5, kind: Kind::Small, tags: Vec::new(), cached: 0 };
    assert!(Json::new(settings.clone()).is_ok());
    assert!(matches!(Json::new(Settings { cached: 1, ..settings.clone() }), Err(JsonError::Changed)));
    assert!(matches!(Json::new(Settings { ratio: f64::NAN, ..settings.clone() }), Err(JsonError::Changed)));
    assert!(matches!(Json::new(BTreeMap::from([((1, 2), 3)])), Err(JsonError::Serde(_))));
    let mut json = Json::new(settings.clone()).unwrap();
    assert!(json.change(|settings| settings.cached = 1).is_err());
    assert_eq!(*json, settings);
    assert!(Json::<Settings>::from_text("{}".to_owned()).is_err());
    assert_eq!(Json::<Settings>::decode(&encoded(&"{}".to_owned())), Err(Malformed));
    assert_eq!(
        (Json::<u8>::TYPE, Json::<u8>::decode(&encoded(&" 7 ".to_owned()))),
        (ColumnType::Text, Ok(Json::new(7).unwrap()))
    );
}
