//! Sequences that are altered, or sent elsewhere.

use std::thread;

use ensilo::{Durability, Error, SequenceOptions};

use super::*;

fn next<N: ensilo::SequenceNumber>(db: &Database, sequence: &Sequence<N>) -> N {
    db.transact(|tx| sequence.next(tx)).unwrap()
}

#[test]
fn an_altered_sequence_goes_on_by_its_new_options() {
    let db = in_memory();
    let numbers: Sequence<u32> = db.sequence("order").unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers)), (1, 2));
    let options = || SequenceOptions::new().increment(10).max(60).block_len(3);
    let differing = db.sequence_with::<u32>("order", options()).map(drop).unwrap_err();
    assert!(differing.to_string().contains("increment 1"), "{differing}");
    assert!(differing.to_string().contains("Database::alter_sequence"), "{differing}");
    db.alter_sequence::<u32>("order", options()).unwrap();
    // What was reserved before is thrown away, also for handles that there are.
    assert_eq!((next(&db, &numbers), numbers.last_given()), (12, Some(12)));
    let again: Sequence<u32> = db.sequence_with("order", options()).unwrap();
    let reserved: Vec<u32> = db.transact(|tx| Ok(again.reserve(tx, 3)?.collect())).unwrap();
    assert_eq!(reserved, [22, 32, 42]);
    assert_eq!(next(&db, &numbers), 52);
    assert!(matches!(db.transact(|tx| numbers.next(tx)), Err(Error::SequenceExhausted(_))));
    db.alter_sequence::<u32>("order", SequenceOptions::new().max(54).cycle()).unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers), next(&db, &numbers)), (53, 54, 1));
    // Down again.
    let down = SequenceOptions::new().increment(-1).min(0).max(54).start(54);
    db.alter_sequence::<u32>("order", down).unwrap();
    assert_eq!(next(&db, &numbers), 0);
    assert!(matches!(db.transact(|tx| numbers.next(tx)), Err(Error::SequenceExhausted(_))));
}

#[test]
fn a_sequence_that_is_outside_of_its_new_bounds_is_at_their_begin_or_end() {
    let db = in_memory();
    let numbers: Sequence<u64> = db.sequence("order").unwrap();
    assert_eq!(next(&db, &numbers), 1);
    db.alter_sequence::<u64>("order", SequenceOptions::new().start(1500).min(1000)).unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers)), (1500, 1501));
    db.alter_sequence::<u64>("order", SequenceOptions::new().max(100)).unwrap();
    assert!(matches!(db.transact(|tx| numbers.next(tx)), Err(Error::SequenceExhausted(_))));
    db.alter_sequence::<u64>("order", SequenceOptions::new().max(100).cycle()).unwrap();
    assert_eq!(next(&db, &numbers), 1);
    // One that has given none.
    let fresh: Sequence<u64> = db.sequence("fresh").unwrap();
    db.alter_sequence::<u64>("fresh", SequenceOptions::new().start(7)).unwrap();
    assert_eq!((fresh.last_given(), next(&db, &fresh)), (None, 7));
}

#[test]
fn numbers_that_were_given_do_not_come_again_when_bounds_are_altered_there_and_back() {
    let db = in_memory();
    let numbers: Sequence<u64> = db.sequence("order").unwrap();
    (1..=5).for_each(|number| assert_eq!(next(&db, &numbers), number));
    for narrow in [SequenceOptions::new().max(3), SequenceOptions::new().min(10)] {
        db.alter_sequence::<u64>("order", narrow).unwrap();
        db.alter_sequence::<u64>("order", SequenceOptions::new()).unwrap();
        assert_eq!(numbers.last_given(), Some(5));
    }
    assert_eq!(next(&db, &numbers), 6);
    db.restart_sequence("order", 1000u64).unwrap();
    assert_eq!(next(&db, &numbers), 1000);
    db.alter_sequence::<u8>("order", SequenceOptions::new()).unwrap();
    assert!(matches!(db.transact(|tx| numbers.next(tx)), Err(Error::SequenceExhausted(_))));
    db.alter_sequence::<u64>("order", SequenceOptions::new()).unwrap();
    assert_eq!(next(&db, &numbers), 1001);
}

#[test]
fn what_is_to_come_is_not_left_out_by_passing_over_what_is_before_it() {
    let db = in_memory();
    let options = || SequenceOptions::new().increment(10).start(21);
    let numbers: Sequence<u64> = db.sequence_with("order", options()).unwrap();
    db.restart_sequence("order", 5u64).unwrap();
    db.transact(|tx| numbers.advance_past(tx, 0)).unwrap();
    db.alter_sequence::<u64>("order", options().block_len(7)).unwrap();
    assert_eq!(next(&db, &numbers), 5);
    db.restart_sequence("order", 10u64).unwrap();
    db.transact(|tx| numbers.advance_past(tx, 9)).unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers)), (10, 20));
}

#[test]
fn what_a_restart_has_set_stays_where_the_number_before_it_is_out_of_bounds() {
    let db = in_memory();
    let fives = || SequenceOptions::new().min(i64::MIN).increment(5);
    let numbers: Sequence<i64> = db.sequence_with("order", fives()).unwrap();
    db.restart_sequence("order", i64::MIN).unwrap();
    db.alter_sequence::<i64>("order", fives().increment(1)).unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers)), (i64::MIN, i64::MIN + 1));
    db.alter_sequence::<i64>("order", fives()).unwrap();
    db.restart_sequence("order", i64::MIN).unwrap();
    db.alter_sequence::<i64>("order", SequenceOptions::new().min(7)).unwrap();
    assert_eq!(next(&db, &numbers), 7);
    // Of a number that was given the next one is none that a restart has set, whatever bounds are in between.
    let numbers: Sequence<u64> = db.sequence("given").unwrap();
    (1..=4).for_each(|number| assert_eq!(next(&db, &numbers), number));
    let five = || SequenceOptions::new().min(5);
    for between in
        [five(), SequenceOptions::new().min(6), five().increment(10), SequenceOptions::new().max(10)]
    {
        db.alter_sequence::<u64>("given", between).unwrap();
    }
    let down = SequenceOptions::new().increment(-1).min(1).max(3).start(1);
    db.alter_sequence::<u64>("given", down).unwrap();
    db.alter_sequence::<u64>("given", SequenceOptions::new()).unwrap();
    assert_eq!(next(&db, &numbers), 5);
    // A number of which there is no larger one is past all others.
    let down = SequenceOptions::new().min(0).max(u64::MAX).increment(-5);
    let numbers: Sequence<u64> = db.sequence_with("down", down).unwrap();
    db.restart_sequence("down", u64::MAX).unwrap();
    db.alter_sequence::<u64>("down", SequenceOptions::new().max(9)).unwrap();
    assert!(matches!(db.transact(|tx| numbers.next(tx)), Err(Error::SequenceExhausted(_))));
}

#[test]
fn one_option_is_changed_by_those_that_there_are() {
    let db = in_memory();
    let made = SequenceOptions::new().start(3).increment(2).min(1).max(99).cycle().block_len(4);
    let numbers: Sequence<u8> = db.sequence_with("order", made.clone()).unwrap();
    assert_eq!((numbers.options(), next(&db, &numbers)), (made, 3));
    db.alter_sequence::<u8>("order", numbers.options().increment(3)).unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers)), (6, 9));
}

#[test]
fn a_narrower_handle_gives_what_its_type_has() {
    let db = in_memory();
    let narrow: Sequence<u8> = db.sequence("order").unwrap();
    db.alter_sequence::<u32>("order", SequenceOptions::new()).unwrap();
    db.restart_sequence("order", 254u32).unwrap();
    assert_eq!(next(&db, &narrow), 254);
    let over = db.transact(|tx| narrow.reserve(tx, 2).map(drop));
    assert!(matches!(over, Err(Error::SequenceExhausted(_))), "{over:?}");
    assert_eq!(next(&db, &narrow), 255);
    assert!(matches!(db.transact(|tx| narrow.next(tx)), Err(Error::SequenceExhausted(_))));
    assert!(matches!(db.sequence::<u8>("order"), Err(Error::InvalidSequence(_))));
    // What it was refused is given to others.
    assert_eq!(next(&db, &db.sequence::<u32>("order").unwrap()), 256);
}

#[test]
fn a_sequence_goes_on_where_it_is_told() {
    let db = in_memory();
    let options = SequenceOptions::new().min(-3).max(20).increment(5);
    let numbers: Sequence<i8> = db.sequence_with("order", options).unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers)), (-3, 2));
    for (restart, after) in [(20, None), (-3, Some(2)), (0, Some(5)), (16, None), (15, Some(20))] {
        db.restart_sequence("order", restart).unwrap();
        assert_eq!(next(&db, &numbers), restart);
        match after {
            Some(after) => assert_eq!(next(&db, &numbers), after),
            None => {
                let end = db.transact(|tx| numbers.next(tx));
                assert!(matches!(end, Err(Error::SequenceExhausted(_))), "{restart}: {end:?}");
            }
        }
    }
    for outside in [-4i8, 21] {
        let refused = db.restart_sequence("order", outside);
        assert!(matches!(refused, Err(Error::InvalidSequence(_))), "{refused:?}");
    }
    db.restart_sequence("order", 1u64).unwrap();
    assert_eq!(next(&db, &numbers), 1);
}

#[test]
fn what_cannot_be_altered_is_refused_and_stays() {
    let db = in_memory();
    let numbers: Sequence<u32> = db.sequence("order").unwrap();
    assert_eq!(next(&db, &numbers), 1);
    for options in [SequenceOptions::new().increment(0), SequenceOptions::new().max(1u64 << 40)] {
        let refused = db.alter_sequence::<u32>("order", options);
        assert!(matches!(refused, Err(Error::InvalidSequence(_))), "{refused:?}");
    }
    let nested = db.transact(|_tx| db.alter_sequence::<u32>("order", SequenceOptions::new()));
    assert!(matches!(nested, Err(Error::NestedRequest(_))), "{nested:?}");
    let nested = db.transact(|_tx| db.restart_sequence("order", 1u32));
    assert!(matches!(nested, Err(Error::NestedRequest(_))), "{nested:?}");
    for unknown in
        [db.alter_sequence::<u32>("other", SequenceOptions::new()), db.restart_sequence("other", 1u32)]
    {
        assert!(matches!(unknown, Err(Error::UnknownSequence(_))), "{unknown:?}");
    }
    assert_eq!(next(&db, &numbers), 2);
    db.close().unwrap();
    assert!(matches!(db.restart_sequence("order", 1u32), Err(Error::Closed)));
}

#[test]
fn an_altered_sequence_is_so_after_a_crash() {
    let disk = new_disk();
    let db = open(&disk);
    let numbers: Sequence<u32> = db.sequence("order").unwrap();
    assert_eq!(next(&db, &numbers), 1);
    let options = || SequenceOptions::new().increment(100).block_len(2);
    db.alter_sequence::<u32>("order", options()).unwrap();
    let disk = Arc::new(disk.crash(1));
    let db = open(&disk);
    let numbers: Sequence<u32> = db.sequence_with("order", options()).unwrap();
    assert_eq!(next(&db, &numbers), 101);
    // Also where it is before its first number.
    db.restart_sequence("order", 1u32).unwrap();
    let db = open(&Arc::new(disk.crash(2)));
    let numbers: Sequence<u32> = db.sequence_with("order", options()).unwrap();
    assert_eq!((next(&db, &numbers), next(&db, &numbers)), (1, 101));
    db.close().unwrap();
}

/// A number that is in a row which survives is given by no sequence that was altered meanwhile.
#[test]
fn no_number_is_given_twice_while_a_sequence_is_altered_again_and_again() {
    let mut disk = new_disk();
    for life in 0..6 {
        let db = open(&disk);
        let invoices = db.table::<Invoice>().unwrap();
        let numbers: Sequence<u64> = db.sequence("order").unwrap();
        let bill = || {
            for round in 0..60 {
                let level = if round % 20 == 19 { Durability::Stored } else { Durability::Visible };
                let billed = db.request().durability(level).transact(|tx| {
                    let number = numbers.next(tx)?;
                    invoices.insert(tx, &Invoice { number, customer: 1 })
                });
                // A number of a row that is there would be an error.
                billed.unwrap();
            }
        };
        let alter = || {
            for round in 0..10i64 {
                let options = SequenceOptions::new().increment(round % 3 + 1).block_len(5);
                db.alter_sequence::<u64>("order", options).unwrap();
            }
        };
        thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(bill)));
            scope.spawn(alter);
        });
        let crashed = Arc::new(disk.fork().crash(life));
        disk = crashed;
    }
}

#[test]
fn a_sequence_that_is_only_read_is_not_altered() {
    let disk = new_disk();
    let db = open(&disk);
    let _: Sequence<u32> = db.sequence("order").unwrap();
    db.close().unwrap();
    let db = open_with(options().read_only(true), &disk).unwrap();
    assert!(matches!(db.restart_sequence("order", 3u32), Err(Error::ReadOnly)));
    let altered = db.alter_sequence::<u32>("order", SequenceOptions::new().cycle());
    assert!(matches!(altered, Err(Error::ReadOnly)), "{altered:?}");
}
