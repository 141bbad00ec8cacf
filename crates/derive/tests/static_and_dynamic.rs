//! Derived rows and dynamic rows of the same schema have the same bytes.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cmp::Reverse;

use ensilo_derive::{Columns, Row};
use ensilo_row::{
    ColumnType, Columns as _, Decimal, Key, KeyBuf, KeyedRow as _, Malformed, NullsLast, Order, Row as _,
    RowBuf, RowId, Schema, Text, Timestamp, Value, WordSlice, Words,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(crate = "ensilo_row")]
#[row(index(name = "by_numbers", columns(short desc, tiny)))]
#[row(index(name = "by_words", columns(word, maybe_text desc nulls_first, code), unique))]
#[row(index(name = "by_long", columns(text, maybe_wide, number), unique))]
#[row(index(name = "by_key", columns(number desc, code), unique))]
#[row(index(name = "by_huge", columns(huge desc, maybe_huge nulls_last, maybe)))]
struct Everything {
    flag: bool,
    text: String,
    #[row(key)]
    code: Text<5>,
    tiny: i8,
    maybe_flag: Option<bool>,
    short: i16,
    #[row(name = "int")]
    medium: i32,
    wide: i64,
    bytes: Vec<u8>,
    byte: u8,
    word: u16,
    #[row(key, desc)]
    number: u32,
    long: u64,
    maybe_text: Option<String>,
    float: f32,
    maybe_wide: Option<i64>,
    double: f64,
    amount: Decimal<3>,
    at: Timestamp,
    #[row(key, nulls_last)]
    maybe: Option<u16>,
    name: Text<300>,
    maybe_name: Option<Text<13>>,
    digest: [u8; 11],
    maybe_digest: Option<[u8; 3]>,
    maybe_bytes: Option<Vec<u8>>,
    other: RowId,
    huge: u128,
    maybe_huge: Option<i128>,
}

impl Everything {
    fn values(&self) -> Vec<Value> {
        vec![
            self.flag.into(),
            self.text.clone().into(),
            self.code.into(),
            self.tiny.into(),
            self.maybe_flag.into(),
            self.short.into(),
            self.medium.into(),
            self.wide.into(),
            self.bytes.clone().into(),
            self.byte.into(),
            self.word.into(),
            self.number.into(),
            self.long.into(),
            self.maybe_text.clone().into(),
            self.float.into(),
            self.maybe_wide.into(),
            self.double.into(),
            self.amount.into(),
            self.at.into(),
            self.maybe.into(),
            self.name.into(),
            self.maybe_name.into(),
            self.digest.into(),
            self.maybe_digest.into(),
            self.maybe_bytes.clone().into(),
            self.other.into(),
            self.huge.into(),
            self.maybe_huge.into(),
        ]
    }
}

/// Fixed columns of every kind, and one of the key.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Everything, crate = "ensilo_row")]
struct Fixed {
    maybe_digest: Option<[u8; 3]>,
    short: i16,
    maybe_flag: Option<bool>,
    #[columns(field = name)]
    title: Text<300>,
    number: u32,
    amount: Decimal<3>,
    maybe_name: Option<Text<13>>,
    float: f32,
    maybe_huge: Option<i128>,
}

/// Variable columns, and one of fixed width.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Everything, crate = "ensilo_row")]
struct Variable {
    maybe_text: Option<String>,
    bytes: Vec<u8>,
    maybe_wide: Option<i64>,
    code: Text<5>,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Everything, crate = "ensilo_row")]
struct Nothing {}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Everything, crate = "ensilo_row")]
struct KeyOnly {
    maybe: Option<u16>,
}

fn text(len_max: usize) -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('b'), Just('ß'), any::<char>()], 0..20).prop_map(
        move |chars| {
            let mut text: String = chars.into_iter().collect();
            text.truncate(text.floor_char_boundary(len_max));
            text
        },
    )
}

fn fixed_text<const N: usize>() -> impl Strategy<Value = Text<N>> {
    text(N).prop_map(|text| Text::new(&text).unwrap())
}

fn everything() -> impl Strategy<Value = Everything> {
    let variable = (text(90), of(text(30)), vec(any::<u8>(), 0..30), of(vec(any::<u8>(), 0..9)));
    let keys = (fixed_text(), any::<u32>(), of(any::<u16>()));
    let small = (any::<bool>(), any::<i8>(), of(any::<bool>()), any::<i16>(), any::<u8>(), any::<u16>());
    let large = (any::<i32>(), any::<i64>(), any::<u64>(), any::<f32>(), of(any::<i64>()), any::<f64>());
    let special = (any::<i64>(), any::<i64>(), any::<u64>(), any::<u128>(), of(any::<i128>()));
    let inline = (fixed_text(), of(fixed_text()), any::<[u8; 11]>(), of(any::<[u8; 3]>()));
    (variable, keys, small, large, special, inline).prop_map(
        |(variable, keys, small, large, special, inline)| {
            let (text, maybe_text, bytes, maybe_bytes) = variable;
            let (code, number, maybe) = keys;
            let (flag, tiny, maybe_flag, short, byte, word) = small;
            let (medium, wide, long, float, maybe_wide, double) = large;
            let (amount, at, other) =
                (Decimal::from_scaled(special.0), Timestamp::from_micros(special.1), RowId(special.2));
            let (name, maybe_name, digest, maybe_digest) = inline;
            Everything {
                flag,
                text,
                code,
                tiny,
                maybe_flag,
                short,
                medium,
                wide,
                bytes,
                byte,
                word,
                number,
                long,
                maybe_text,
                float,
                maybe_wide,
                double,
                amount,
                at,
                maybe,
                name,
                maybe_name,
                digest,
                maybe_digest,
                maybe_bytes,
                other,
                huge: special.3,
                maybe_huge: special.4,
            }
        },
    )
}

fn encode(row: &Everything) -> (KeyBuf, RowBuf) {
    let (mut key, mut words) = (KeyBuf::new(), RowBuf::new());
    row.key().encode(&mut key);
    row.encode(&mut words);
    (key, words)
}

/// The row that `base` becomes with the columns `P` of `new`, written by the schema and by `P`.
fn check_update<P: ensilo_row::Columns<Everything>>(base: &Everything, new: &Everything) {
    let schema = Everything::schema();
    let (_, base_words) = encode(base);
    let (_, new_words) = encode(new);
    let values = new.values();
    let stored = P::COLUMNS.iter().filter(|column| !schema.is_key_column(**column));
    let changes: Vec<(usize, Value)> = stored.map(|column| (*column, values[*column].clone())).collect();
    let mut expected = RowBuf::new();
    schema.update_row(&base_words, &changes, &mut expected).unwrap();
    let part = P::decode(&new.key(), &new_words).unwrap();
    let mut rewritten = RowBuf::new();
    part.rewrite(&base_words, &mut rewritten).unwrap();
    assert_eq!(rewritten, expected);
    if P::PATCHABLE {
        let mut patch = P::patch_base(&base_words);
        part.patch(&mut patch);
        let mut words = base_words.words().to_vec();
        for (index, word) in patch.as_ref() {
            words[*index as usize] = *word;
        }
        assert_eq!(words, expected.words());
    }
}

/// Updates through index keys see every change.
fn check_touched_indexes<P: ensilo_row::Columns<Everything>>() {
    for (number, index) in Everything::schema().indexes().iter().enumerate() {
        assert_eq!(P::TOUCHED_INDEXES >> number & 1 == 1, index.touches(P::COLUMNS), "{}", index.name());
    }
}

proptest! {
    #[test]
    fn both_encode_the_same_bytes(row in everything()) {
        let (key, words) = encode(&row);
        let (mut dynamic_key, mut dynamic_words) = (KeyBuf::new(), RowBuf::new());
        Everything::schema().encode_insert_key(&row.values(), || RowId(0), &mut dynamic_key).unwrap();
        Everything::schema().encode_row(&row.values(), &mut dynamic_words).unwrap();
        prop_assert_eq!(&key, &dynamic_key);
        prop_assert_eq!(&words, &dynamic_words);
        let mut values = Vec::new();
        Everything::schema().decode_row(key.as_bytes(), &words, &mut values).unwrap();
        prop_assert_eq!(values, row.values());
        let decoded_key = Key::decode(key.as_bytes());
        prop_assert_eq!(decoded_key, Ok(row.key()));
        prop_assert_eq!(Everything::decode(&row.key(), &words), Ok(row));
    }

    #[test]
    fn parts_are_the_columns_of_the_row(row in everything()) {
        let (_, words) = encode(&row);
        let fixed = Fixed::decode(&row.key(), &words).unwrap();
        prop_assert_eq!(fixed, Fixed {
            maybe_digest: row.maybe_digest,
            short: row.short,
            maybe_flag: row.maybe_flag,
            title: row.name,
            number: row.number,
            amount: row.amount,
            maybe_name: row.maybe_name,
            float: row.float,
            maybe_huge: row.maybe_huge,
        });
        let variable = Variable::decode(&row.key(), &words).unwrap();
        prop_assert_eq!(&variable.maybe_text, &row.maybe_text);
        prop_assert_eq!(&variable.bytes, &row.bytes);
        prop_assert_eq!((variable.maybe_wide, variable.code), (row.maybe_wide, row.code));
        prop_assert_eq!(KeyOnly::decode(&row.key(), &words), Ok(KeyOnly { maybe: row.maybe }));
    }

    #[test]
    fn both_update_alike(base in everything(), new in everything()) {
        check_update::<Fixed>(&base, &new);
        check_update::<Variable>(&base, &new);
        check_update::<Nothing>(&base, &new);
        check_update::<KeyOnly>(&base, &new);
        check_update::<Everything>(&base, &new);
    }

    #[test]
    fn keys_that_change_are_noticed(base in everything(), new in everything()) {
        let (_, words) = encode(&new);
        let fixed = Fixed::decode(&new.key(), &words).unwrap();
        prop_assert_eq!(base.key() == new.key(), new.keeps_key(&base.key()));
        prop_assert_eq!(base.number == new.number, fixed.keeps_key(&base.key()));
        let key_only = KeyOnly { maybe: new.maybe };
        prop_assert_eq!(base.maybe == new.maybe, key_only.keeps_key(&base.key()));
        prop_assert!(base.keeps_key(&base.key()));
        let nothing = Nothing {};
        prop_assert!(nothing.keeps_key(&base.key()));
    }

    #[test]
    fn both_make_the_same_index_keys(row in everything()) {
        let (primary_key, words) = encode(&row);
        for (number, index) in Everything::schema().indexes().iter().enumerate() {
            let (mut derived, mut dynamic) = (KeyBuf::new(), KeyBuf::new());
            row.index_key(&row.key(), number, &mut derived);
            Everything::schema().index_key(index, primary_key.as_bytes(), &words, &mut dynamic).unwrap();
            prop_assert_eq!(derived, dynamic, "{}", index.name());
        }
    }

    #[test]
    fn both_see_whether_an_update_moves_an_entry(base in everything(), new in everything(), kept in vec(any::<bool>(), 8)) {
        // Of the columns of the indexes some stay as they were, those of the primary key always.
        let Everything { code, number, maybe, .. } = base;
        let mut new = Everything { code, number, maybe, ..new };
        let of = |at: usize| if kept[at] { base.clone() } else { new.clone() };
        let wide = (of(6).huge, of(7).maybe_huge);
        let values = (of(0).short, of(1).tiny, of(2).word, of(3).maybe_text, of(4).text, of(5).maybe_wide);
        (new.short, new.tiny, new.word, new.maybe_text, new.text, new.maybe_wide) = values;
        (new.huge, new.maybe_huge) = wide;
        let [(_, base_words), (_, new_words)] = [encode(&base), encode(&new)];
        for (at, index) in Everything::schema().indexes().iter().enumerate() {
            let keys = [&base, &new].map(|row| {
                let mut key = KeyBuf::new();
                row.index_key(&row.key(), at, &mut key);
                key
            });
            let is_same = Everything::schema().have_same_index_key(index, &base_words, &new_words);
            prop_assert_eq!(is_same, Ok(keys[0] == keys[1]), "{}", index.name());
        }
    }

    #[test]
    fn both_keep_the_bits_of_floats(row in everything(), narrow in any::<u32>(), wide in any::<u64>(), is_special in any::<bool>()) {
        let (narrow, wide) = if is_special {
            (narrow | f32::INFINITY.to_bits(), wide | f64::INFINITY.to_bits())
        } else {
            (narrow, wide)
        };
        let row = Everything { float: f32::from_bits(narrow), double: f64::from_bits(wide), ..row };
        let (key, words) = encode(&row);
        let mut dynamic_words = RowBuf::new();
        Everything::schema().encode_row(&row.values(), &mut dynamic_words).unwrap();
        prop_assert_eq!(&words, &dynamic_words);
        let derived = Everything::decode(&row.key(), &words).unwrap();
        prop_assert_eq!((derived.float.to_bits(), derived.double.to_bits()), (narrow, wide));
        let mut values = Vec::new();
        Everything::schema().decode_row(key.as_bytes(), &words, &mut values).unwrap();
        prop_assert_eq!(values, row.values());
    }

    #[test]
    fn decoding_accepts_any_words(row in everything(), words in vec(any::<u64>(), 0..120), len in 0..1000usize) {
        let any_row = WordSlice::new(&words, len.min(words.len() * 8));
        let _ = Everything::decode(&row.key(), &any_row);
        let _ = Fixed::decode(&row.key(), &any_row);
        let _ = Variable::decode(&row.key(), &any_row);
        if let Ok(variable) = Variable::decode(&row.key(), &encode(&row).1) {
            let _ = variable.rewrite(&any_row, &mut RowBuf::new());
        }
    }

    #[test]
    fn both_refuse_the_same_damaged_rows(row in everything(), xor in 1..=255u8) {
        let (key, words) = encode(&row);
        let mut values = Vec::new();
        for at in 0..words.len_bytes() {
            let mut damaged = words.words().to_vec();
            damaged[at / 8] ^= u64::from(xor) << (at % 8 * 8);
            let damaged = WordSlice::new(&damaged, words.len_bytes());
            let derived = Everything::decode(&row.key(), &damaged);
            let dynamic = Everything::schema().decode_row(key.as_bytes(), &damaged, &mut values);
            prop_assert_eq!(derived.as_ref().err(), dynamic.as_ref().err(), "byte {}", at);
            if let Ok(derived) = derived {
                prop_assert_eq!(&derived.values(), &values, "byte {}", at);
            }
        }
    }

    #[test]
    fn torn_rows_decode_or_are_malformed(old in everything(), new in everything(), torn in vec(any::<bool>(), 200)) {
        let [(_, old_words), (_, new_words)] = [encode(&old), encode(&new)];
        let count = old_words.words().len().max(new_words.words().len());
        let words: Vec<u64> = (0..count).map(|index| if torn[index % 200] { new_words.word(index) } else { old_words.word(index) }).collect();
        for len in [old_words.len_bytes(), new_words.len_bytes()] {
            let _ = Everything::decode(&old.key(), &WordSlice::new(&words, len));
            let _ = Variable::decode(&old.key(), &WordSlice::new(&words, len));
        }
    }
}

#[test]
fn the_schema_is_the_one_built_by_hand() {
    let text = |len_max| ColumnType::FixedText { len_max };
    let asc = |name: &'static str| (name, Order::Ascending);
    let desc = |name: &'static str| (name, Order::Descending);
    let schema = Schema::builder("everything")
        .column("flag", ColumnType::Bool)
        .column("text", ColumnType::Text)
        .column("code", text(5))
        .column("tiny", ColumnType::I8)
        .nullable("maybe_flag", ColumnType::Bool)
        .column("short", ColumnType::I16)
        .column("int", ColumnType::I32)
        .column("wide", ColumnType::I64)
        .column("bytes", ColumnType::Bytes)
        .column("byte", ColumnType::U8)
        .column("word", ColumnType::U16)
        .column("number", ColumnType::U32)
        .column("long", ColumnType::U64)
        .nullable("maybe_text", ColumnType::Text)
        .column("float", ColumnType::F32)
        .nullable("maybe_wide", ColumnType::I64)
        .column("double", ColumnType::F64)
        .column("amount", ColumnType::Decimal { scale: 3 })
        .column("at", ColumnType::Timestamp)
        .nullable("maybe", ColumnType::U16)
        .column("name", text(300))
        .nullable("maybe_name", text(13))
        .column("digest", ColumnType::FixedBytes { len: 11 })
        .nullable("maybe_digest", ColumnType::FixedBytes { len: 3 })
        .nullable("maybe_bytes", ColumnType::Bytes)
        .column("other", ColumnType::U64)
        .column("huge", ColumnType::U128)
        .nullable("maybe_huge", ColumnType::I128)
        .key([asc("code"), desc("number"), ("maybe", Order::AscendingNullsLast)])
        .index("by_numbers", [desc("short"), asc("tiny")])
        .unique_index("by_words", [asc("word"), ("maybe_text", Order::DescendingNullsFirst), asc("code")])
        .unique_index("by_long", [asc("text"), asc("maybe_wide"), asc("number")])
        .unique_index("by_key", [desc("number"), asc("code")])
        .index("by_huge", [desc("huge"), ("maybe_huge", Order::AscendingNullsLast), asc("maybe")])
        .build()
        .unwrap();
    assert_eq!(*Everything::schema(), schema);
    assert_eq!(Everything::SLOTS, schema.slots());
    assert_eq!(Everything::FIXED_LEN, schema.fixed_len());
}

#[test]
fn parts_know_what_they_touch() {
    check_touched_indexes::<Fixed>();
    check_touched_indexes::<Variable>();
    check_touched_indexes::<Nothing>();
    check_touched_indexes::<KeyOnly>();
    check_touched_indexes::<Everything>();
    assert_eq!(Everything::TOUCHED_INDEXES, 0b11111);
    assert_eq!(Nothing::TOUCHED_INDEXES, 0);
    let patchable = [Fixed::PATCHABLE, Nothing::PATCHABLE, KeyOnly::PATCHABLE];
    assert_eq!((patchable, Variable::PATCHABLE, Everything::PATCHABLE), ([true; 3], false, false));
    assert_eq!(<(Text<5>, Reverse<u32>, NullsLast<Option<u16>>)>::PARTS.len(), 3);
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(crate = "ensilo_row")]
struct Names {
    short: Text<3>,
    long: Text<300>,
}

#[test]
fn text_longer_than_its_column_is_malformed() {
    let names = Names { short: Text::new("abc").unwrap(), long: Text::truncated(&"x".repeat(300)) };
    let mut row = RowBuf::new();
    names.encode(&mut row);
    // A length byte and three of text, then two length bytes and 300 of text.
    assert_eq!(row.words()[0] & 0xffff_0000_00ff, 300 << 32 | 3);
    for (added, expected) in [(0, Ok(names)), (1, Err(Malformed)), (1 << 32, Err(Malformed))] {
        let mut words = row.words().to_vec();
        words[0] += added;
        let row = WordSlice::new(&words, row.len_bytes());
        let dynamic = Names::schema().decode_row(&[0; 8], &row, &mut Vec::new());
        assert_eq!(dynamic.err(), expected.as_ref().err().copied());
        assert_eq!(Names::decode(&RowId(0), &row), expected);
    }
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(crate = "ensilo_row", index(name = "by_value", columns(value asc nulls_last, at)))]
struct Single {
    #[row(key, desc, nulls_first)]
    at: Option<i16>,
    value: Option<bool>,
}

#[test]
fn a_key_of_one_column_has_its_nulls_where_the_row_says() {
    assert_eq!(<Single as ensilo_row::Row>::Key::PARTS, Single::schema().key_types());
    let mut keys = Vec::new();
    for at in [None, Some(7), Some(-1)] {
        let row = Single { at, value: at.map(|at| at > 0) };
        let (mut key, mut index_key, mut by_values) = (KeyBuf::new(), KeyBuf::new(), KeyBuf::new());
        let mut words = RowBuf::new();
        row.key().encode(&mut key);
        row.encode(&mut words);
        assert_eq!(row.key(), Reverse(NullsLast(at)));
        assert_eq!(Single::decode(&row.key(), &words), Ok(row.clone()));
        row.index_key(&row.key(), 0, &mut index_key);
        let schema = Single::schema();
        schema.index_key(&schema.indexes()[0], key.as_bytes(), &words, &mut by_values).unwrap();
        assert_eq!(index_key, by_values);
        keys.push(key.as_bytes().to_vec());
    }
    assert!(keys.is_sorted(), "{keys:?}");
}
