//! Rows by schema, on the same tables as static ones.

use std::ops::Bound;

use ensilo::{ColumnType, Error, Order, Schema, Text, Value};

use crate::{Account, Event, account, quick, with_accounts};

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
        assert_eq!(by_email.get(tx, &Some("new@example.org".into()))?.map(|row| row.balance), Some(11));
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
        assert!(matches!(dynamic.get_columns(tx, &key, &["colour"]), Err(Error::UnknownColumn(_))));
        assert!(matches!(dynamic.scan().by_index("nobody"), Err(Error::UnknownIndex(_))));
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
