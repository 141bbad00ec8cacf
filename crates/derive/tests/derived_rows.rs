//! Derived rows: round trips, patches, rewrites, keys.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cmp::Reverse;

use ensilo_derive::{Columns, Row};
use ensilo_row::{Columns as _, Decimal, KeyBuf, KeyedRow as _, Row as _, RowBuf, RowId, Text};

#[derive(Clone, Debug, PartialEq, Row)]
#[row(crate = "ensilo_row", table = "account")]
#[row(index(name = "by_owner", columns(owner, balance desc)))]
#[row(index(name = "by_note", columns(note), unique))]
#[row(index(name = "by_balance", columns(flags, balance desc)))]
struct Account {
    #[row(key)]
    branch: u16,
    owner: Text<16>,
    #[row(key, desc)]
    number: u32,
    balance: Decimal<2>,
    flags: u8,
    rate: Option<f32>,
    note: Option<String>,
    photo: Vec<u8>,
    limit: i32,
}

#[derive(Debug, PartialEq, Columns)]
#[columns(of = Account, crate = "ensilo_row")]
struct Balance {
    number: u32,
    balance: Decimal<2>,
    flags: u8,
    rate: Option<f32>,
}

/// The name of a type that comes from a macro does not change what the names of derived code mean.
macro_rules! part_of_account {
    ($name:ident { $($field:ident: $type:ident),* }) => {
        #[derive(Debug, PartialEq, Columns)]
        #[columns(of = Account, crate = "ensilo_row")]
        struct $name {
            $($field: $type),*
        }
    };
}

part_of_account!(NumberAndLimit { number: u32, limit: i32 });

#[derive(Debug, PartialEq, Columns)]
#[columns(of = Account, crate = "ensilo_row")]
struct Notes {
    #[columns(field = note)]
    remark: Option<String>,
    limit: i32,
}

#[derive(Debug, PartialEq, Row)]
#[row(crate = "ensilo_row", index(name = "by_what", columns(what)))]
struct HistoryEntry {
    what: u64,
    r#type: bool,
}

fn account() -> Account {
    Account {
        branch: 1,
        owner: "Ada".try_into().unwrap(),
        number: 7,
        balance: Decimal::from_scaled(-1250),
        flags: 3,
        rate: Some(1.5),
        note: Some("first".to_owned()),
        photo: vec![1, 2, 3, 0, 255, 9, 8, 7, 6],
        limit: -5,
    }
}

#[test]
fn rows_come_back_as_they_were() {
    let account = account();
    let mut row = RowBuf::new();
    account.encode(&mut row);
    let key = account.key();
    assert_eq!(key, (1, Reverse(7)));
    assert_eq!(Account::decode(&key, &row), Ok(account));
}

#[test]
fn patches_change_only_their_columns() {
    let mut account = account();
    let mut row = RowBuf::new();
    account.encode(&mut row);
    let key = account.key();
    let mut part = Balance::decode(&key, &row).unwrap();
    assert_eq!(part, Balance { number: 7, balance: Decimal::from_scaled(-1250), flags: 3, rate: Some(1.5) });
    let decoded = NumberAndLimit::decode(&key, &row).unwrap();
    assert_eq!(decoded, NumberAndLimit { number: account.number, limit: account.limit });
    part.balance = Decimal::from_scaled(100);
    part.rate = None;
    assert!(part.keeps_key(&key));
    const { assert!(Balance::PATCHABLE) }
    let mut patch = Balance::patch_base(&row);
    part.patch(&mut patch);
    let mut words = row.words().to_vec();
    for (index, word) in patch {
        words[index as usize] = word;
    }
    account.balance = part.balance;
    account.rate = None;
    account.encode(&mut row);
    assert_eq!(row.words(), words);
    assert_eq!(Balance::TOUCHED_INDEXES, 0b101);
    part.number = 8;
    assert!(!part.keeps_key(&key));
}

#[test]
fn rewrites_move_variable_columns() {
    let mut account = account();
    let mut row = RowBuf::new();
    account.encode(&mut row);
    let mut part = Notes::decode(&account.key(), &row).unwrap();
    const { assert!(!Notes::PATCHABLE) }
    for note in [None, Some("a much longer note than before".to_owned()), Some(String::new())] {
        part.remark = note.clone();
        part.limit += 1;
        let mut rewritten = RowBuf::new();
        part.rewrite(&row, &mut rewritten).unwrap();
        account.note = note;
        account.limit += 1;
        account.encode(&mut row);
        assert_eq!(rewritten, row);
        assert_eq!(Account::decode(&account.key(), &row), Ok(account.clone()));
    }
    assert_eq!(Notes::TOUCHED_INDEXES, 0b010);
}

#[test]
fn index_keys_agree_with_those_of_the_schema() {
    let mut account = account();
    for note in [Some("x\0y\u{1}".to_owned()), None] {
        account.note = note;
        let (mut row, mut primary, mut fixed, mut dynamic) =
            (RowBuf::new(), KeyBuf::new(), KeyBuf::new(), KeyBuf::new());
        account.encode(&mut row);
        ensilo_row::Key::encode(&account.key(), &mut primary);
        for (number, index) in Account::schema().indexes().iter().enumerate() {
            account.index_key(&account.key(), number, &mut fixed);
            Account::schema().index_key(index, primary.as_bytes(), &row, &mut dynamic).unwrap();
            assert_eq!(fixed, dynamic, "{}", index.name());
        }
    }
}

#[test]
fn rows_without_key_get_invented_ones() {
    let entry = HistoryEntry { what: 5, r#type: true };
    const { assert!(HistoryEntry::INVENTS_ROW_ID) }
    assert_eq!(entry.insert_key(|| RowId(9)), RowId(9));
    let mut row = RowBuf::new();
    entry.encode(&mut row);
    assert_eq!(row.len_bytes(), 9);
    assert_eq!(HistoryEntry::schema().columns()[1].name, "type");
    assert_eq!(HistoryEntry::schema().name(), "history_entry");
    assert_eq!(HistoryEntry::decode(&RowId(9), &row), Ok(entry));
}
