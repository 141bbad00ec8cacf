//! What sequences give, and how they are made, shared and dropped.

use std::collections::HashSet;
use std::thread;

use ensilo::{Error, SequenceNumber, SequenceOptions};

use super::*;

fn next<N: SequenceNumber>(db: &Database, sequence: &Sequence<N>) -> N {
    db.transact(|tx| sequence.next(tx)).unwrap()
}

fn is_exhausted<N: SequenceNumber + std::fmt::Debug>(db: &Database, sequence: &Sequence<N>) {
    let at_the_end = db.transact(|tx| sequence.next(tx));
    assert!(matches!(at_the_end, Err(Error::SequenceExhausted(_))), "{at_the_end:?}");
}

#[test]
fn a_new_sequence_gives_one_number_after_the_other() {
    let db = in_memory();
    let numbers: Sequence<u32> = db.sequence("order").unwrap();
    assert_eq!((numbers.name(), numbers.last_given()), ("order", None));
    for expected in 1..=100 {
        assert_eq!(next(&db, &numbers), expected);
        assert_eq!(numbers.last_given(), Some(expected));
    }
    // Another handle, on another thread, goes on.
    let also: Sequence<u32> = db.sequence("order").unwrap();
    assert_eq!(thread::scope(|scope| scope.spawn(|| next(&db, &also)).join().unwrap()), 101);
    let mut session = db.begin().unwrap();
    assert_eq!((numbers.next(&mut session).unwrap(), also.next(&mut session).unwrap()), (102, 103));
    session.rollback().unwrap();
    assert_eq!(next(&db, &numbers), 104);
}

#[test]
fn threads_get_different_numbers_in_order() {
    let db = in_memory();
    let numbers: Sequence<u64> = db.sequence_with("order", SequenceOptions::new().block_len(7)).unwrap();
    let invoices = db.table::<Invoice>().unwrap();
    let bill = |customer| {
        let mut last = 0;
        for _ in 0..500 {
            let billed = db.transact(|tx| {
                let number = numbers.next(tx)?;
                invoices.insert(tx, &Invoice { number, customer })
            });
            let number = billed.unwrap();
            assert!(number > last, "{number} after {last}");
            last = number;
        }
    };
    thread::scope(|scope| {
        let bill = &bill;
        (0..4).for_each(|customer| drop(scope.spawn(move || bill(customer))));
    });
    let rows = db.transact(|tx| invoices.scan().rows(tx)).unwrap();
    assert_eq!(rows.len(), 2000);
    // What transactions that ran again have got is left out.
    let given = numbers.last_given().unwrap();
    assert!(given >= 2000 && rows.iter().all(|row| row.number <= given), "{given}");
}

#[test]
fn a_transaction_that_is_undone_gives_nothing_back() {
    let db = in_memory();
    let numbers: Sequence<u32> = db.sequence("order").unwrap();
    let undone = db.transact(|tx| {
        assert_eq!((numbers.next(tx)?, numbers.next(tx)?), (1, 2));
        Err::<(), _>(Error::rollback("no"))
    });
    assert!(matches!(undone, Err(Error::User(_))));
    assert_eq!(next(&db, &numbers), 3);
}

#[test]
fn bounds_are_kept() {
    let db = in_memory();
    let make = |name: &str, options| -> Sequence<i8> { db.sequence_with(name, options).unwrap() };
    let short = make("short", SequenceOptions::new().max(3).block_len(2));
    assert_eq!((next(&db, &short), next(&db, &short), next(&db, &short)), (1, 2, 3));
    is_exhausted(&db, &short);
    is_exhausted(&db, &short);
    assert_eq!(short.last_given(), Some(3));
    // A statement that gets none leaves its transaction as it was.
    assert!(db.transact(|tx| Ok(short.next(tx).is_err())).unwrap());

    let all: Sequence<i8> = db.sequence("all").unwrap();
    let given: Vec<i8> = (0..127).map(|_| next(&db, &all)).collect();
    assert_eq!(given, (1..=127).collect::<Vec<_>>());
    is_exhausted(&db, &all);

    let down = make("down", SequenceOptions::new().increment(-50).block_len(1));
    assert_eq!((next(&db, &down), next(&db, &down), next(&db, &down)), (-1, -51, -101));
    is_exhausted(&db, &down);

    let cycle = make("cycle", SequenceOptions::new().start(5).min(3).max(8).increment(2).cycle());
    let given: Vec<i8> = (0..7).map(|_| next(&db, &cycle)).collect();
    assert_eq!(given, [5, 7, 3, 5, 7, 3, 5]);

    let large = SequenceOptions::new().start(u64::MAX - 1).increment(i64::MAX);
    let large: Sequence<u64> = db.sequence_with("large", large).unwrap();
    assert_eq!(next(&db, &large), u64::MAX - 1);
    is_exhausted(&db, &large);
}

#[test]
fn numbers_that_are_reserved_together_follow_each_other() {
    let db = in_memory();
    let numbers: Sequence<u16> = db.sequence_with("order", SequenceOptions::new().increment(3)).unwrap();
    let reserve = |count| db.transact(|tx| numbers.reserve(tx, count)).map(Iterator::collect::<Vec<u16>>);
    assert_eq!(next(&db, &numbers), 1);
    assert_eq!(reserve(3).unwrap(), [4, 7, 10]);
    // More than a block, of which some are left.
    assert_eq!(reserve(100).unwrap(), (0..100).map(|at| 13 + 3 * at).collect::<Vec<_>>());
    assert!(reserve(0).unwrap().is_empty());
    assert_eq!(next(&db, &numbers), 313);
    let too_many = reserve(30_000);
    assert!(matches!(too_many, Err(Error::SequenceExhausted(_))), "{too_many:?}");
    assert_eq!(next(&db, &numbers), 316);
}

#[test]
fn a_sequence_goes_on_behind_numbers_from_elsewhere() {
    let db = in_memory();
    let numbers: Sequence<u32> = db.sequence("order").unwrap();
    let advance_past = |number| db.transact(|tx| numbers.advance_past(tx, number)).unwrap();
    advance_past(0);
    assert_eq!(next(&db, &numbers), 1);
    // In the block, back, behind it, and at the end of one.
    for (past, expected) in [(5, 6), (3, 7), (1000, 1001), (999, 1002), (1032, 1033), (1033, 1034)] {
        advance_past(past);
        assert_eq!(next(&db, &numbers), expected, "past {past}");
    }
    advance_past(u32::MAX);
    is_exhausted(&db, &numbers);
}

#[test]
fn a_sequence_is_opened_as_it_was_made() {
    let db = in_memory();
    let options = || SequenceOptions::new().start(10).increment(5);
    let numbers: Sequence<u32> = db.sequence_with("order", options()).unwrap();
    assert_eq!(next(&db, &numbers), 10);
    assert_eq!(next(&db, &db.sequence::<u32>("order").unwrap()), 15);
    assert_eq!(next(&db, &db.sequence_with::<u32>("order", options()).unwrap()), 20);
    // A wider type has all of its numbers.
    assert_eq!(next(&db, &db.sequence::<u64>("order").unwrap()), 25);
    let invalid = [
        db.sequence_with::<u32>("order", options().increment(6)).map(|_| ()),
        db.sequence_with::<u32>("order", options().cycle()).map(|_| ()),
        db.sequence::<u16>("order").map(|_| ()),
        db.sequence::<i32>("order").map(|_| ()),
        db.sequence::<u32>("").map(|_| ()),
        db.sequence_with::<u32>("x", options().increment(0)).map(|_| ()),
        db.sequence_with::<u32>("x", options().block_len(0)).map(|_| ()),
        db.sequence_with::<u32>("x", options().max(9)).map(|_| ()),
        db.sequence_with::<u32>("x", options().min(11)).map(|_| ()),
        db.sequence_with::<u8>("x", options().max(256)).map(|_| ()),
        db.sequence_with::<u8>("x", SequenceOptions::new().increment(-1)).map(|_| ()),
    ];
    let differing = invalid[0].as_ref().unwrap_err().to_string();
    assert!(differing.contains("order has increment 5;"), "{differing}");
    for (at, invalid) in invalid.into_iter().enumerate() {
        assert!(matches!(invalid, Err(Error::InvalidSequence(_))), "{at}: {invalid:?}");
    }
    assert_eq!(db.list_sequences().unwrap(), ["order"]);
}

#[test]
fn sequences_are_listed_and_dropped() {
    let db = in_memory();
    assert_eq!(db.list_sequences().unwrap(), [""; 0]);
    let unknown =
        |result: Result<()>| assert!(matches!(result, Err(Error::UnknownSequence(_))), "{result:?}");
    unknown(db.drop_sequence("b"));
    let numbers: Sequence<u32> = db.sequence("b").unwrap();
    let other: Sequence<u32> = db.sequence("a").unwrap();
    assert_eq!(next(&db, &numbers), 1);
    assert_eq!(db.list_sequences().unwrap(), ["a", "b"]);
    db.drop_sequence("b").unwrap();
    unknown(db.drop_sequence("b"));
    unknown(db.transact(|tx| numbers.next(tx)).map(drop));
    unknown(db.transact(|tx| numbers.advance_past(tx, 7)));
    assert_eq!(db.list_sequences().unwrap(), ["a"]);
    assert_eq!(next(&db, &other), 1);
    // A new one of the same name is another one.
    let again: Sequence<u64> = db.sequence("b").unwrap();
    assert_eq!(next(&db, &again), 1);
    unknown(db.transact(|tx| numbers.next(tx)).map(drop));
    db.close().unwrap();
    assert!(matches!(db.list_sequences(), Err(Error::Closed)));
    assert!(matches!(db.sequence::<u32>("b"), Err(Error::Closed)));
    assert!(matches!(db.drop_sequence("b"), Err(Error::Closed)));
}

#[test]
fn the_sequences_of_two_databases_are_two() {
    let (one, other) = (in_memory(), in_memory());
    let of_one: Sequence<u32> = one.sequence("order").unwrap();
    let of_other: Sequence<u32> = other.sequence("order").unwrap();
    assert_eq!((next(&one, &of_one), next(&one, &of_one), next(&other, &of_other)), (1, 2, 1));
    let foreign = one.transact(|tx| of_other.next(tx));
    assert!(matches!(foreign, Err(Error::UnknownSequence(_))), "{foreign:?}");
    assert_eq!(next(&other, &of_other), 2);
}

#[test]
fn a_sequence_is_made_outside_of_transactions_and_opened_anywhere() {
    let db = in_memory();
    for _ in 0..2 {
        let nested = db.transact(|_tx| db.sequence::<u32>("order").map(|_| ()));
        assert!(matches!(nested, Err(Error::NestedRequest(_))), "{nested:?}");
        let _: Sequence<u32> = db.sequence("another").unwrap();
    }
    let _: Sequence<u32> = db.sequence("order").unwrap();
    let number = db.transact(|tx| db.sequence::<u32>("order")?.next(tx)).unwrap();
    assert_eq!(number, 1);
}

#[test]
fn the_table_of_sequences_is_the_systems() {
    let disk = new_disk();
    for _ in 0..2 {
        let db = open_with(options().change_feed(1 << 20), &disk).unwrap();
        let invoices = db.table::<Invoice>().unwrap();
        let position = db.change_position().unwrap();
        let numbers: Sequence<u64> = db.sequence("order").unwrap();
        let billed = db.transact(|tx| {
            let number = numbers.next(tx)?;
            invoices.insert(tx, &Invoice { number, customer: 1 })
        });
        billed.unwrap();
        assert_eq!(db.list_tables().unwrap(), ["invoice"]);
        let name = "ensilo.sequences";
        assert!(matches!(db.open_dynamic_table(name), Err(Error::UnknownTable(_))));
        assert!(matches!(db.drop_table(name), Err(Error::UnknownTable(_))));
        assert!(matches!(db.schema(name), Err(Error::UnknownTable(_))));
        // Who follows the changes sees those of programs alone.
        let mut changes = db.changes().after(position).unwrap();
        let mut tables = HashSet::new();
        while tables.is_empty() {
            let batch = changes.wait_timeout(Duration::from_secs(30)).unwrap().expect("it was stored");
            tables.extend(batch.changes().iter().map(|change| change.table().to_owned()));
        }
        assert_eq!(tables, HashSet::from(["invoice".to_owned()]));
    }
}

#[test]
fn a_database_without_memory_gives_numbers_again_when_there_is_some() {
    let db: Database = options().memory_limit_bytes(8 << 20).in_memory_with().unwrap();
    let numbers: Sequence<u64> = db.sequence_with("order", SequenceOptions::new().block_len(1)).unwrap();
    let invoices = db.table::<Invoice>().unwrap();
    let mut last = 0;
    loop {
        let inserted = db.transact(|tx| {
            let given = numbers.reserve(tx, 100)?;
            let keys = given.map(|number| invoices.insert(tx, &Invoice { number, customer: 1 }));
            keys.collect::<Result<Vec<_>>>()
        });
        match inserted {
            Ok(keys) => {
                assert!(keys[0] > last, "{} after {last}", keys[0]);
                last = keys[99];
            }
            Err(error) => {
                assert!(matches!(error, Error::OutOfMemory(_)), "{error:?}");
                break;
            }
        }
    }
    assert!(last > 1000, "{last}");
    // At the limit a number is given, or there is the same error.
    for _ in 0..100 {
        match db.transact(|tx| numbers.next(tx)) {
            Ok(number) => {
                assert!(number > last, "{number} after {last}");
                last = number;
            }
            Err(error) => assert!(matches!(error, Error::OutOfMemory(_)), "{error:?}"),
        }
    }
    for from in (0..last).step_by(500) {
        let delete = |tx: &mut generic::Transaction<'_, Engine>| {
            (from..from + 500).try_for_each(|number| invoices.delete(tx, number).map(drop))
        };
        db.transact(delete).unwrap();
    }
    let number = next(&db, &numbers);
    assert!(number > last, "{number} after {last}");
}
