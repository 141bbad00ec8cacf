//! Rows that hold what a type of the program does not have: errors of the statements that read it, and of no others.

use std::cmp::Reverse;

use ensilo::{ColumnValue, Columns, Error, Row, Value};

use super::{Database, LOCKS, Table, quick};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ColumnValue)]
enum State {
    New,
    Paid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ColumnValue)]
struct CustomerId(u32);

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "invoice", index(name = "by_state", columns(state desc, customer)), index(name = "by_sum", columns(sum)))]
struct Invoice {
    #[row(key)]
    customer: CustomerId,
    #[row(key)]
    kind: State,
    state: State,
    sum: i64,
    sent_by: Option<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Columns)]
#[columns(of = Invoice)]
struct Sum {
    sum: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Columns)]
#[columns(of = Invoice)]
struct Both {
    sum: i64,
    state: State,
}

const FIRST: (CustomerId, State) = (CustomerId(1), State::New);
const UNKNOWN: (CustomerId, State) = (CustomerId(2), State::New);
const LAST: (CustomerId, State) = (CustomerId(3), State::Paid);

fn invoice((customer, kind): (CustomerId, State), state: State) -> Invoice {
    Invoice { customer, kind, state, sum: i64::from(customer.0), sent_by: None }
}

/// Three invoices, the second of which is in a state that this program does not know.
fn with_invoices() -> (Database, Table<Invoice>) {
    let db = quick();
    let invoices = db.create_table::<Invoice>().unwrap();
    let dynamic = db.open_dynamic_table("invoice").unwrap();
    db.transact(|tx| {
        invoices.insert(tx, &invoice(FIRST, State::Paid))?;
        invoices.insert(tx, &invoice(LAST, State::New))?;
        dynamic.insert(tx, &[2u32.into(), 0u8.into(), 9u8.into(), 2i64.into(), Value::Null])
    })
    .unwrap();
    (db, invoices)
}

/// Checks that the statement failed for the row `UNKNOWN`.
fn assert_unknown<R: std::fmt::Debug>(outcome: Result<R, Error>) {
    match outcome {
        Err(Error::UnknownValue(unknown)) => {
            assert_eq!((unknown.table(), unknown.key()), ("invoice", &[0, 0, 0, 2, 0][..]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn statements_that_read_an_unknown_value_say_so_and_change_nothing() {
    let (db, invoices) = with_invoices();
    let by_state = invoices.index::<(Reverse<State>, CustomerId)>("by_state").unwrap();
    let by_sum = invoices.index::<i64>("by_sum").unwrap();
    db.transact(|tx| {
        assert_unknown(invoices.get(tx, UNKNOWN));
        assert_unknown(invoices.get_columns::<Both>(tx, UNKNOWN));
        assert_unknown(invoices.get_many(tx, &[FIRST, UNKNOWN, LAST]));
        assert_unknown(invoices.scan().rows(tx));
        assert_unknown(invoices.scan().reverse().columns::<Both>().collect(tx));
        let mut seen = Vec::new();
        assert_unknown(invoices.scan().for_each_found(tx, |found, _| seen.push(*found.key())));
        assert_eq!(seen, [FIRST]);
        assert_unknown(by_sum.scan().collect(tx));
        assert_unknown(by_sum.equal(2).first(tx));
        assert_unknown(by_sum.scan().for_each_found(tx, |_, _: Invoice| ()));
        let found = invoices.find(tx, UNKNOWN)?.expect("exists");
        assert_unknown(found.row(tx));
        assert_unknown(found.columns::<Both>(tx));
        assert_unknown(found.update(tx, |both: &mut Both| both.sum = 100));
        assert_unknown(invoices.update(tx, UNKNOWN, |row: &mut Invoice| row.sum = 100));
        assert_unknown(invoices.update(tx, UNKNOWN, |both: &mut Both| both.sum = 100));
        assert_eq!(invoices.get_columns::<Sum>(tx, UNKNOWN)?, Some(Sum { sum: 2 }));
        assert_eq!(by_state.get(tx, (Reverse(State::New), CustomerId(3)))?, invoices.get(tx, LAST)?);
        Ok(())
    })
    .unwrap();
    // The transaction went on, and was committed.
    let text = db.transact(|tx| invoices.get(tx, UNKNOWN)).unwrap_err().to_string();
    assert!(text.contains("customer = 2") && text.contains("invoice"), "{text}");
}

#[test]
fn other_statements_do_not_mind_an_unknown_value() {
    let (db, invoices) = with_invoices();
    let by_state = invoices.index::<(Reverse<State>, CustomerId)>("by_state").unwrap();
    let by_sum = invoices.index::<i64>("by_sum").unwrap();
    db.transact(|tx| {
        assert!(invoices.contains(tx, UNKNOWN)?);
        assert_eq!(invoices.scan().count(tx)?, 3);
        assert_eq!(by_sum.scan().count(tx)?, 3);
        assert_eq!(by_sum.scan().primary_keys(tx)?, [FIRST, UNKNOWN, LAST]);
        // The number 9 comes first where the state is in descending order.
        assert_eq!(by_state.scan().primary_keys(tx)?, [UNKNOWN, FIRST, LAST]);
        assert_eq!(by_sum.equal(2).columns::<Sum>().rows(tx)?, [Sum { sum: 2 }]);
        invoices.update(tx, UNKNOWN, |sum: &mut Sum| sum.sum += 10)?;
        assert_eq!(by_sum.equal(12).columns::<Sum>().first(tx)?, Some((UNKNOWN, Sum { sum: 12 })));
        let dynamic = db.open_dynamic_table("invoice")?;
        let row = dynamic.get(tx, &[2u32.into(), 0u8.into()])?;
        assert_eq!(row, Some(vec![2u32.into(), 0u8.into(), 9u8.into(), 12i64.into(), Value::Null]));
        Ok(())
    })
    .unwrap();
    db.transact(|tx| invoices.replace(tx, &invoice(UNKNOWN, State::Paid))).unwrap();
    let states = db.transact(|tx| by_state.scan().rows(tx)).unwrap();
    let expected = [(FIRST, State::Paid), (UNKNOWN, State::Paid), (LAST, State::New)];
    assert_eq!(states, expected.map(|(key, state)| invoice(key, state)));
    db.transact(|tx| invoices.delete(tx, UNKNOWN)).unwrap();
}

#[test]
fn a_queue_keeps_a_row_that_its_consumer_does_not_know() {
    let (db, invoices) = with_invoices();
    let by_sum = invoices.index::<i64>("by_sum").unwrap();
    let first = db.transact(|tx| invoices.scan().take_first(tx)).unwrap();
    assert_eq!(first, Some((FIRST, invoice(FIRST, State::Paid))));
    assert_unknown(db.transact(|tx| invoices.scan().take_first(tx)));
    assert_unknown(db.transact(|tx| by_sum.scan().take_first(tx)));
    let mut session = db.begin().unwrap();
    assert_unknown(invoices.scan().take_first(&mut session));
    assert_unknown(by_sum.scan().take_first(&mut session));
    if LOCKS {
        // What the session has read is locked until it ends.
        session.rollback().unwrap();
    }
    // Nobody else holds the row, though that transaction goes on.
    let sum = db.transact(|tx| by_sum.scan().columns::<Sum>().take_first(tx)).unwrap();
    assert_eq!(sum, Some((UNKNOWN, Sum { sum: 2 })));
    if !LOCKS {
        session.rollback().unwrap();
    }
    let last = db.transact(|tx| invoices.scan().take_first(tx)).unwrap();
    assert_eq!(last, Some((LAST, invoice(LAST, State::New))));
}

#[test]
fn an_unknown_value_in_a_key_is_an_error_of_what_decodes_it() {
    let (db, invoices) = with_invoices();
    let dynamic = db.open_dynamic_table("invoice").unwrap();
    let by_sum = invoices.index::<i64>("by_sum").unwrap();
    db.transact(|tx| {
        dynamic.delete(tx, &[2u32.into(), 0u8.into()])?;
        dynamic.insert(tx, &[2u32.into(), 77u8.into(), 0u8.into(), 2i64.into(), Value::Null])
    })
    .unwrap();
    let is_unknown = |outcome: Result<_, _>| matches!(outcome, Err(Error::UnknownValue(at)) if at.key() == [0, 0, 0, 2, 77]);
    db.transact(|tx| {
        assert!(is_unknown(invoices.scan().columns::<Sum>().collect(tx).map(drop)));
        assert!(is_unknown(by_sum.scan().primary_keys(tx).map(drop)));
        assert!(is_unknown(by_sum.scan().columns::<Sum>().collect(tx).map(drop)));
        assert_eq!((invoices.scan().count(tx)?, by_sum.scan().count(tx)?), (3, 3));
        assert_eq!(invoices.prefix((CustomerId(1),)).columns::<Sum>().rows(tx)?, [Sum { sum: 1 }]);
        Ok(())
    })
    .unwrap();
}
