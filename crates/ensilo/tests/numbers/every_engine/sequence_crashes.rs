//! Sequences of databases that are closed, or crash, and are opened again.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;

use ensilo::{Durability, Error, SequenceOptions};

use super::*;

fn orders(db: &Database) -> Sequence<u64> {
    db.sequence("order").unwrap()
}

fn next(db: &Database) -> u64 {
    let orders = orders(db);
    db.transact(|tx| orders.next(tx)).unwrap()
}

/// The numbers of all rows that are there.
fn numbers_of(db: &Database, invoices: &Table<Invoice>) -> HashSet<u64> {
    db.transact(|tx| invoices.scan().rows(tx)).unwrap().iter().map(|row| row.number).collect()
}

#[test]
fn a_database_that_was_closed_goes_on_without_a_gap() {
    let disk = new_disk();
    let mut expected = 1;
    for life in 0..6 {
        let db = open(&disk);
        for _ in 0..life * 20 {
            assert_eq!(next(&db), expected);
            expected += 1;
        }
        if life == 3 {
            db.checkpoint().unwrap();
        }
        match life % 2 {
            0 => db.close().unwrap(),
            _ => drop(db),
        }
    }
}

#[test]
fn a_number_that_was_returned_as_stored_is_not_given_again_after_a_crash() {
    let mut disk = new_disk();
    let mut db = open(&disk);
    let mut last = 0;
    for life in 0..40 {
        let orders: Sequence<u64> = db.sequence_with("order", SequenceOptions::new().block_len(2)).unwrap();
        // Nothing but the number leaves the transaction, or an error with it.
        let returned = match life % 3 {
            0 => db.transact(|tx| orders.next(tx)).unwrap(),
            1 => {
                let mut session = db.begin().unwrap();
                let number = orders.next(&mut session).unwrap();
                session.commit().unwrap();
                number
            }
            _ => {
                let mut number = 0;
                let refused = db.transact(|tx| {
                    number = orders.next(tx)?;
                    Err::<(), _>(Error::rollback(format!("{number}")))
                });
                assert!(refused.is_err());
                number
            }
        };
        assert!(returned > last, "{returned} after {last} in life {life}");
        last = returned;
        disk = Arc::new(disk.crash(life));
        db = open(&disk);
    }
}

#[test]
fn numbers_are_left_out_after_a_crash_by_a_block_at_most() {
    let disk = new_disk();
    let db = open(&disk);
    let orders: Sequence<u64> = db.sequence_with("order", SequenceOptions::new().block_len(10)).unwrap();
    for expected in 1..=25 {
        assert_eq!(db.transact(|tx| orders.next(tx)).unwrap(), expected);
    }
    let db = open(&Arc::new(disk.kill()));
    let orders: Sequence<u64> = db.sequence("order").unwrap();
    assert_eq!(orders.last_given(), Some(30));
    assert_eq!(db.transact(|tx| orders.next(tx)).unwrap(), 31);
}

/// Threads use numbers at both levels of durability, the power fails in the midst of it, and what has survived is looked at.
#[test]
fn no_number_of_a_row_that_has_survived_is_given_again() {
    let mut disk = new_disk();
    let mut acknowledged = HashSet::new();
    for life in 0..12 {
        let db = open(&disk);
        let invoices = db.table::<Invoice>().unwrap();
        let orders: Sequence<u64> = db.sequence_with("order", SequenceOptions::new().block_len(3)).unwrap();
        let there = numbers_of(&db, &invoices);
        assert!(acknowledged.is_subset(&there), "life {life}");
        let stored = Mutex::new(Vec::new());
        let bill = |customer| {
            for round in 0..30 {
                let level = if round % 10 == 9 { Durability::Stored } else { Durability::Visible };
                let billed = db.request().durability(level).transact(|tx| {
                    let number = orders.next(tx)?;
                    invoices.insert(tx, &Invoice { number, customer })
                });
                // A number of a row that is there would have been an error.
                let number = billed.unwrap();
                if level == Durability::Stored {
                    stored.lock().unwrap().push(number);
                }
            }
        };
        thread::scope(|scope| {
            let bill = &bill;
            (0..3).for_each(|customer| drop(scope.spawn(move || bill(customer))));
        });
        let crashed = Arc::new(disk.fork().crash(life));
        acknowledged.extend(stored.into_inner().unwrap());
        disk = crashed;
    }
}

#[test]
fn a_position_that_was_passed_over_survives() {
    let disk = new_disk();
    let db = open(&disk);
    assert_eq!(next(&db), 1);
    let orders = orders(&db);
    db.transact(|tx| orders.advance_past(tx, 1000)).unwrap();
    let db = open(&Arc::new(disk.crash(1)));
    assert_eq!(next(&db), 1001);
}

#[test]
fn a_dropped_sequence_is_gone_after_a_crash() {
    let disk = new_disk();
    let db = open(&disk);
    assert_eq!(next(&db), 1);
    let _: Sequence<u8> = db.sequence("other").unwrap();
    db.drop_sequence("order").unwrap();
    let db = open(&Arc::new(disk.crash(1)));
    assert_eq!(db.list_sequences().unwrap(), ["other"]);
    assert_eq!(next(&db), 1);
}

#[test]
fn a_database_that_is_only_read_gives_no_numbers() {
    let disk = new_disk();
    let db = open(&disk);
    assert_eq!(next(&db), 1);
    db.close().unwrap();
    let db = open_with(options().read_only(true), &disk).unwrap();
    assert_eq!(db.list_sequences().unwrap(), ["order"]);
    let orders = orders(&db);
    assert_eq!(orders.last_given(), Some(1));
    assert!(matches!(db.transact(|tx| orders.next(tx)), Err(Error::ReadOnly)));
    assert!(matches!(db.sequence::<u64>("another"), Err(Error::ReadOnly)));
    assert!(matches!(db.drop_sequence("order"), Err(Error::ReadOnly)));
}

#[test]
fn a_database_that_is_still_loading_gives_numbers() {
    let disk = new_disk();
    let db = open(&disk);
    let invoices = db.table::<Invoice>().unwrap();
    let rows: Vec<_> = (1..=5000).map(|number| Invoice { number, customer: 1 }).collect();
    db.transact(|tx| invoices.insert_many(tx, &rows)).unwrap();
    assert_eq!(next(&db), 1);
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open_with(options().answer_while_loading(true), &disk).unwrap();
    assert_eq!(next(&db), 2);
}
