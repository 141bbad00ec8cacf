//! Rows by schema, on the same tables as static ones.

use std::ops::Bound;

use ensilo::{ColumnType, Error, Order, Schema, Text, Value};
use proptest::prelude::*;

use super::{Account, Event, account, quick, with_accounts};

#[test]
fn dynamic_and_static_rows_are_the_same_rows() {
    let (db, accounts) = with_accounts(3);
    let dynamic = db.open_dynamic_table("account").unwrap();
    db.transact(|tx| {
        let row = dynamic.get(tx, &[1u32.into()])?.expect("exists");
        assert_eq!(row, [1u32.into(), "bert".into(), 10i64.into(), "1@example.org".into(), 0u32.into()]);
        dynamic.insert(tx, &[9u32.into(), "cleo".into(), 5i64.into(), Value::Null, 2u32.into()])?;
        dynamic.update(
            tx,
            &[1u32.into()],
            &[("balance", 11i64.into()), ("email", "new@example.org".into())],
        )?;
        dynamic.upsert(tx, &[2u32.into(), "anna".into(), 0i64.into(), Value::Null, 0u32.into()])?;
        assert!(dynamic.delete(tx, &[0u32.into()])?);
        assert!(!dynamic.contains(tx, &[0u32.into()])?);
        Ok(())
    })
    .unwrap();
    db.transact(|tx| {
        let nine = Account { id: 9, owner: Text::new("cleo").unwrap(), balance: 5, email: None, visits: 2 };
        assert_eq!(accounts.get(tx, 9)?, Some(nine));
        let by_email = accounts.index::<Option<String>>("by_email")?;
        assert_eq!(by_email.get(tx, Some("new@example.org".into()))?.map(|row| row.balance), Some(11));
        assert_eq!(by_email.get(tx, &account(1).email)?, None);
        let by_owner = accounts.index::<(Text<16>, std::cmp::Reverse<i64>)>("by_owner")?;
        assert_eq!(by_owner.scan().primary_keys(tx)?, [2, 1, 9]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn dynamic_scans_take_bounds_indexes_and_columns() {
    let (db, _) = with_accounts(300);
    let dynamic = db.open_dynamic_table("account").unwrap();
    let ids = |rows: Vec<Vec<Value>>| {
        rows.into_iter()
            .map(|row| match row[0] {
                Value::Unsigned(id) => id,
                _ => panic!("{row:?}"),
            })
            .collect::<Vec<_>>()
    };
    db.transact(|tx| {
        let (low, high) = ([Value::from(5u32)], [Value::from(8u32)]);
        let between = dynamic.scan().between(Bound::Excluded(&low), Bound::Included(&high))?;
        assert_eq!(ids(between.columns(&["id"])?.collect(tx)?), [6, 7, 8]);
        let last = dynamic.scan().reverse().limit(2).columns(&["id", "balance"])?.collect(tx)?;
        assert_eq!(last, [[299u32.into(), 2990i64.into()], [298u32.into(), 2980i64.into()]].map(Vec::from));
        let anna = dynamic.scan().by_index("by_owner")?.prefix(&["anna".into()])?.columns(&["id"])?;
        let expected: Vec<u64> = (0..300).rev().filter(|id| id % 3 == 0).collect();
        assert_eq!(ids(anna.collect(tx)?), expected);
        let by_email = dynamic.scan().by_index("by_email")?.reverse().limit(1).collect(tx)?;
        assert_eq!(ids(by_email), [9]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn values_that_do_not_fit_are_refused_and_change_nothing() {
    let (db, accounts) = with_accounts(1);
    let dynamic = db.open_dynamic_table("account").unwrap();
    db.transact(|tx| {
        let row = |owner: Value, balance: Value| [5u32.into(), owner, balance, Value::Null, 0u32.into()];
        for (refused, column) in [
            (row(Value::Null, 0i64.into()), "owner"),
            (row("a name that is too long".into(), 0i64.into()), "owner"),
            (row("anna".into(), "ten".into()), "balance"),
            (row("anna".into(), u64::MAX.into()), "balance"),
        ] {
            let error = dynamic.insert(tx, &refused).unwrap_err();
            assert!(matches!(&error, Error::WrongType(wrong) if wrong.column() == column), "{error}");
        }
        assert!(matches!(dynamic.insert(tx, &[5u32.into()]), Err(Error::WrongType(_))));
        assert!(matches!(dynamic.get(tx, &[]), Err(Error::WrongType(_))));
        let key = [0u32.into()];
        assert!(matches!(dynamic.update(tx, &key, &[("id", 3u32.into())]), Err(Error::WrongType(_))));
        assert!(matches!(dynamic.update(tx, &key, &[("colour", Value::Null)]), Err(Error::UnknownColumn(_))));
        assert!(matches!(dynamic.update(tx, &[7u32.into()], &[]), Err(Error::MissingRow(_))));
        let error = dynamic.get_columns(tx, &key, &["colour"]).unwrap_err();
        assert_eq!(error.to_string(), "table account has no column colour");
        let error = dynamic.scan().by_index("nobody").map(drop).unwrap_err();
        assert_eq!(error.to_string(), "table account has no index nobody; its indexes: by_owner, by_email");
        let taken = [0u32.into(), "anna".into(), 0i64.into(), Value::Null, 0u32.into()];
        assert!(matches!(dynamic.insert(tx, &taken), Err(Error::DuplicateKey(_))));
        Ok(())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().rows(tx)).unwrap(), [account(0)]);
}

#[test]
fn a_dynamic_table_without_a_key_invents_row_ids() {
    let db = quick();
    let events = db.create_table::<Event>().unwrap();
    let dynamic = db.open_dynamic_table("event").unwrap();
    let key = db.transact(|tx| dynamic.insert(tx, &[3u8.into(), "hello".into()])).unwrap();
    let [Value::Unsigned(id)] = key[..] else { panic!("{key:?}") };
    let row = db.transact(|tx| events.get(tx, ensilo::RowId(id))).unwrap();
    assert_eq!(row, Some(Event { kind: 3, text: "hello".into() }));
    let schema = Schema::builder("made")
        .column("a", ColumnType::I32)
        .index("by_a", [("a", Order::Descending)])
        .build();
    let made = db.create_dynamic_table(schema.unwrap()).unwrap();
    db.transact(|tx| {
        [3, 1, 2].iter().try_for_each(|a| made.insert(tx, &[Value::Int(*a)]).map(|_| ()))?;
        let rows = made.scan().by_index("by_a")?.collect(tx)?;
        assert_eq!(rows, [[Value::Int(3)], [Value::Int(2)], [Value::Int(1)]].map(Vec::from));
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_row_id_may_be_a_signed_integer() {
    let db = quick();
    db.create_table::<Event>().unwrap();
    let events = db.open_dynamic_table("event").unwrap();
    db.transact(|tx| {
        let key = events.insert(tx, &[3u8.into(), "hello".into()])?;
        let [Value::Unsigned(id)] = key[..] else { panic!("{key:?}") };
        let signed = [Value::Int(id.cast_signed())];
        assert_eq!(events.get(tx, &signed)?, events.get(tx, &key)?);
        assert_eq!(events.scan().prefix(&signed)?.collect(tx)?.len(), 1);
        assert!(matches!(events.get(tx, &[Value::Int(-1)]), Err(Error::WrongType(_))));
        assert!(events.delete(tx, &signed)?);
        Ok(())
    })
    .unwrap();
}

#[derive(Clone, Debug, PartialEq, ensilo::Row)]
#[row(table = "long", index(name = "by_value", columns(value), unique), index(name = "by_key", columns(key)))]
struct Long {
    #[row(key)]
    key: [u8; 4096],
    value: [u8; 4096],
}

#[test]
fn rows_with_the_longest_keys_are_stored_and_found() {
    let db = quick();
    let long = db.create_table::<Long>().unwrap();
    let dynamic = db.open_dynamic_table("long").unwrap();
    let rows = [0xff, 0, 1].map(|byte| Long { key: [byte; 4096], value: [!byte; 4096] });
    db.transact(|tx| {
        long.insert(tx, &rows[0])?;
        dynamic.insert(tx, &[rows[1].key.into(), rows[1].value.into()])?;
        long.insert(tx, &rows[2])?;
        assert_eq!(long.index("by_value")?.get(tx, rows[0].value)?.as_ref(), Some(&rows[0]));
        assert_eq!(long.index("by_key")?.equal(rows[1].key).rows(tx)?, rows[1..2]);
        let by_value = dynamic.scan().by_index("by_value")?.prefix(&[rows[1].value.into()])?;
        assert_eq!(
            by_value.collect(tx)?,
            [[rows[1].key.into(), rows[1].value.into()]].map(Vec::<Value>::from)
        );
        Ok(())
    })
    .unwrap();
}

/// A table with pairs of indexes over the same columns, one of each unique.
fn paired_indexes() -> Schema {
    let (asc, desc) = (Order::Ascending, Order::Descending);
    Schema::builder("paired")
        .column("a", ColumnType::I8)
        .column("b", ColumnType::Text)
        .nullable("u", ColumnType::U8)
        .column("w", ColumnType::U16)
        .key([("a", asc), ("b", desc)])
        .index("plain_u", [("u", asc)])
        .unique_index("unique_u", [("u", asc)])
        .index("plain_wb", [("w", desc), ("b", asc)])
        .unique_index("unique_wb", [("w", desc), ("b", asc)])
        .build()
        .unwrap()
}

/// The names of two indexes over the same columns, the second of them unique, and the columns that order their rows.
type Pair = (&'static str, &'static str, &'static [(usize, Order)]);

/// The indexes of [`paired_indexes`].
const ORDERS: [Pair; 2] = [
    ("plain_u", "unique_u", &[(2, Order::Ascending), (0, Order::Ascending), (1, Order::Descending)]),
    ("plain_wb", "unique_wb", &[(3, Order::Descending), (1, Order::Ascending), (0, Order::Ascending)]),
];

fn value_of(column: usize, number: u8) -> Value {
    match column {
        0 => Value::from(number as i8 % 3 - 1),
        1 => Value::from(["", "b", "c\0"][usize::from(number % 3)]),
        2 if number.is_multiple_of(3) => Value::Null,
        2 => Value::from(number % 8),
        _ => Value::from(u16::from(number % 4) * 300),
    }
}

/// How a row compares with the first columns of a bound.
fn compare(row: &[Value], bound: &[Value], order: &[(usize, Order)]) -> std::cmp::Ordering {
    let mut compared = std::cmp::Ordering::Equal;
    for (value, (column, order)) in bound.iter().zip(order) {
        let by_column = row[*column].total_cmp(value);
        compared = compared.then(if *order == Order::Descending { by_column.reverse() } else { by_column });
    }
    compared
}

fn is_between(row: &[Value], low: Bound<&[Value]>, high: Bound<&[Value]>, order: &[(usize, Order)]) -> bool {
    let after_low = match low {
        Bound::Included(bound) => compare(row, bound, order).is_ge(),
        Bound::Excluded(bound) => compare(row, bound, order).is_gt(),
        Bound::Unbounded => true,
    };
    let before_high = match high {
        Bound::Included(bound) => compare(row, bound, order).is_le(),
        Bound::Excluded(bound) => compare(row, bound, order).is_lt(),
        Bound::Unbounded => true,
    };
    after_low && before_high
}

fn numbers(len: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0..24u8, len)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let values = || (0..=3usize).prop_flat_map(numbers);
    prop_oneof![
        3 => values().prop_map(Bound::Included),
        3 => values().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn bounds_that_go_on_into_the_primary_key_hold_in_every_index(
        rows in proptest::collection::vec(numbers(4), 0..40),
        bounds in proptest::collection::vec((bound(), bound(), any::<bool>(), 0..200usize), 12),
    ) {
        let db = quick();
        let table = db.create_dynamic_table(paired_indexes()).unwrap();
        for row in &rows {
            let row: Vec<Value> = (0..4).map(|column| value_of(column, row[column])).collect();
            match db.transact(|tx| table.insert(tx, &row)) {
                Ok(_) | Err(Error::DuplicateKey(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let rows = db.transact(|tx| table.scan().collect(tx)).unwrap();
        for (plain, unique, order) in ORDERS {
            for (low, high, is_reverse, limit) in &bounds {
                let of = |numbers: Vec<u8>| -> Vec<Value> {
                    numbers.iter().zip(order).map(|(number, (column, _))| value_of(*column, *number)).collect()
                };
                let (low, high) = (low.clone().map(of), high.clone().map(of));
                let (low, high) = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                let mut expected: Vec<_> = rows.iter().filter(|row| is_between(row, low, high, order)).cloned().collect();
                let full = |row: &[Value]| order.iter().map(|(column, _)| row[*column].clone()).collect::<Vec<_>>();
                expected.sort_by(|left, right| compare(left, &full(right), order));
                if *is_reverse {
                    expected.reverse();
                }
                expected.truncate(*limit);
                for index in [plain, unique] {
                    let found = db.transact(|tx| {
                        let scan = table.scan().by_index(index)?.between(low, high)?.limit(*limit);
                        if *is_reverse { scan.reverse().collect(tx) } else { scan.collect(tx) }
                    });
                    prop_assert_eq!(&found.unwrap(), &expected, "{} from {:?} to {:?}", index, low, high);
                }
                if let (Bound::Included(values), true) = (low, low == high) {
                    let prefixed = db.transact(|tx| table.scan().by_index(unique)?.prefix(values)?.collect(tx));
                    prop_assert_eq!(prefixed.unwrap().len(), rows.iter().filter(|row| compare(row, values, order).is_eq()).count());
                }
            }
        }
    }
}
