//! Every example in `docs/row-format.md` is what the code does.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cmp::Reverse;

use ensilo_derive::Row;
use ensilo_row::{
    Columns as _, Decimal, Key, KeyBuf, KeyedRow as _, NullsLast, Row as _, RowBuf, RowId, Schema, Text,
    Timestamp,
};

const DOCUMENT: &str = include_str!("../../../docs/row-format.md");

#[derive(Clone, Debug, PartialEq, Row)]
#[row(crate = "ensilo_row", table = "account", index(name = "by_owner", columns(owner, balance desc)))]
struct Account {
    #[row(key)]
    branch: u16,
    #[row(key)]
    number: u32,
    owner: Text<6>,
    active: bool,
    balance: Decimal<2>,
    note: String,
    limit: Option<i32>,
    photo: Option<Vec<u8>>,
    grade: i16,
}

fn account() -> Account {
    Account {
        branch: 2,
        number: 258,
        owner: Text::new("Ada").unwrap(),
        active: true,
        balance: "-12.50".parse().unwrap(),
        note: "first".to_owned(),
        limit: None,
        photo: Some(vec![9, 8]),
        grade: -2,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn key_hex(key: &impl Key) -> String {
    let mut buf = KeyBuf::new();
    key.encode(&mut buf);
    hex(buf.as_bytes())
}

/// The lines of the fenced block that begins with `first`.
fn block(first: &str) -> Vec<&'static str> {
    let lines = DOCUMENT.lines().skip_while(|line| !line.starts_with(first));
    lines.take_while(|line| !line.starts_with("```")).filter(|line| !line.is_empty()).collect()
}

/// One line for each part of `bytes`: offset, bytes, meaning.
fn dump(bytes: &[u8], parts: &[(usize, &str)]) -> Vec<String> {
    let mut at = 0;
    let mut lines = Vec::new();
    for (len, meaning) in parts {
        lines.push(format!("{at:<4} {:<36} {meaning}", hex(&bytes[at..at + len])));
        at += len;
    }
    assert_eq!(at, bytes.len(), "the parts are all bytes");
    lines
}

macro_rules! examples {
    ($($key:expr;)+) => {
        vec![$((stringify!($key), key_hex(&$key))),+]
    };
}

#[test]
fn keys_are_as_documented() {
    let examples = examples! {
        (1u16, 2u8, 3u32, 4u8);
        -1i16;
        1i16;
        -1i128;
        258u128;
        true;
        1.0f32;
        -1.0f32;
        -0.0f64;
        Decimal::<2>::from_scaled(-1);
        Timestamp::from_micros(1);
        RowId(258);
        [7u8, 0, 1];
        String::from("AB");
        vec![0u8, 1, 2];
        String::new();
        None::<u16>;
        Some(5u16);
        Reverse(5u16);
        Reverse(String::from("AB"));
        Reverse(None::<u16>);
        NullsLast(None::<u16>);
        NullsLast(Some(5u16));
        Reverse(NullsLast(None::<u16>));
        (1u8, String::from("A"), Reverse(-1i8));
    };
    let expected: Vec<String> =
        examples.iter().map(|(key, bytes)| format!("| `{key}` | `{bytes}` |")).collect();
    let documented: Vec<&str> = DOCUMENT.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(documented, expected);
}

#[test]
fn the_row_is_as_documented() {
    let mut row = RowBuf::new();
    account().encode(&mut row);
    let bytes: Vec<u8> = row.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(bytes[row.len_bytes()..].iter().all(|byte| *byte == 0));
    let mut expected = vec![format!("key  {}", key_hex(&account().key()))];
    expected.extend(dump(
        &bytes[..row.len_bytes()],
        &[
            (8, "balance"),
            (4, "limit, null"),
            (4, "note ends at 36"),
            (4, "photo ends at 38"),
            (2, "grade"),
            (1, "active"),
            (1, "null bits: limit 1, photo 0"),
            (7, "owner: length, text, zeros"),
            (5, "note"),
            (2, "photo"),
        ],
    ));
    assert_eq!(block("key "), expected, "\n{}\n", expected.join("\n"));
    let source: String = block("#[derive(Row)]").join("\n");
    assert!(
        include_str!("row_format_document.rs")
            .contains(&source.lines().skip(2).collect::<Vec<_>>().join("\n"))
    );
    assert_eq!(Account::decode(&account().key(), &row), Ok(account()));
}

#[test]
fn the_index_key_is_as_documented() {
    let mut key = KeyBuf::new();
    account().index_key(&account().key(), 0, &mut key);
    let parts = [(4, "owner"), (8, "balance, descending"), (2, "branch"), (4, "number")];
    let expected = dump(key.as_bytes(), &parts);
    assert_eq!(block(&expected[0]), expected, "\n{}\n", expected.join("\n"));
}

#[test]
fn the_schema_is_as_documented() {
    let mut bytes = Vec::new();
    Account::schema().encode(&mut bytes);
    let parts = [
        (1, "version"),
        (9, "\"account\""),
        (2, "9 columns"),
        (12, "\"branch\", u16"),
        (12, "\"number\", u32"),
        (11, "\"owner\", text(6)"),
        (12, "\"active\", bool"),
        (13, "\"balance\", decimal(2)"),
        (10, "\"note\", text"),
        (11, "\"limit\", i32, nullable"),
        (11, "\"photo\", bytes, nullable"),
        (11, "\"grade\", i16"),
        (1, "the key is columns"),
        (8, "2 parts: 0, 1"),
        (1, "1 index"),
        (10, "\"by_owner\""),
        (1, "not unique"),
        (8, "2 parts: 2, 4 descending"),
    ];
    let expected = dump(&bytes, &parts);
    assert_eq!(block("0    01 "), expected, "\n{}\n", expected.join("\n"));
    assert_eq!(Schema::decode(&bytes).as_ref(), Ok(Account::schema()));
}
