//! What there is to hold over Silo's engine alone: each test says why.

use std::cell::Cell;
use std::thread;

use ensilo::{Error, Options};

use super::every_engine::{Half, Value, halves, in_memory, transfer, value};

/// Over ERMIA's engine no closure reads what does not belong together.
#[test]
fn a_closure_that_goes_round_in_circles_because_of_stale_reads_ends() {
    let (db, halves) = halves(2);
    let (attempts, rounds) = (Cell::new(0), Cell::new(0_u64));
    db.transact(|tx| {
        let first = value(&halves, tx, 0)?;
        if attempts.replace(attempts.get() + 1) == 0 {
            transfer(&db, &halves);
        }
        while first + value(&halves, tx, 1)? != 100 {
            rounds.set(rounds.get() + 1);
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(attempts.get(), 2);
    assert!((100..10_000).contains(&rounds.get()), "{}", rounds.get());
}

/// Over ERMIA's engine nobody is protected.
#[test]
fn a_report_that_has_no_memory_to_be_protected_goes_on_without() {
    const ROWS: u32 = 100_000;
    let db = in_memory(Options::default().memory_limit_bytes(15 << 20));
    let halves = db.create_table::<Half>().unwrap();
    for first in (0..ROWS).step_by(1000) {
        let rows: Vec<_> = (first..first + 1000).map(|id| Half { id, value: 50 }).collect();
        db.transact(|tx| halves.insert_many(tx, &rows)).unwrap();
    }
    let attempts = Cell::new(0);
    db.transact(|tx| {
        attempts.set(attempts.get() + 1);
        let mut sum = 0;
        halves.range(1..).for_each(tx, |_, half| sum += half.value)?;
        if attempts.get() <= 12 {
            let change = || {
                db.request()
                    .retries(0)
                    .transact(|tx| halves.update(tx, 5, |half: &mut Value| half.value += 1))
            };
            let _ = thread::scope(|scope| scope.spawn(change).join().unwrap());
        }
        halves.update(tx, 0, |half: &mut Value| half.value = sum)
    })
    .unwrap();
}

/// What it has to remember to be validated has no room; a snapshot remembers nothing. Over ERMIA's engine a snapshot keeps a handle of each row that
/// it has shown, for which there is no room either.
#[test]
fn a_reader_at_the_memory_limit_reads_everything() {
    let db = in_memory(Options::default().memory_limit_bytes(24 << 20));
    let halves = db.create_table::<Half>().unwrap();
    let insert = |first| {
        db.transact(|tx| {
            (first..first + 1000).try_for_each(|id| halves.insert(tx, &Half { id, value: 1 }).map(|_| ()))
        })
    };
    let rows = (0..).step_by(1000).find(|&first| insert(first).is_err()).unwrap() as usize;
    let unvalidated = db.transact(|tx| halves.scan().count(tx));
    assert!(matches!(unvalidated, Err(Error::OutOfMemory(_))), "{rows} rows: {unvalidated:?}");
    assert_eq!(db.read(|tx| halves.scan().count(tx)).unwrap(), rows);
}
