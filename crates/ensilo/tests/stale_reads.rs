//! What closures conclude from reads that do not belong together never leaves them, and in the end they get through.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, Once};
use std::thread;

use ensilo::{Columns, Database, ReadTransaction, Result, Row, Table};

/// Two halves of one sum.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "half")]
struct Half {
    #[row(key)]
    id: u32,
    value: i64,
}

#[derive(Columns)]
#[columns(of = Half)]
struct Value {
    value: i64,
}

/// What the hook of this program was told, with the name of the thread: that of the test.
static MESSAGES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// A database, opened after the program has set its hook, with `count` rows of value 50.
fn halves(count: u32) -> (Database, Table<Half>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        set_hook(Box::new(|info| {
            eprintln!("{info}");
            let name = thread::current().name().unwrap_or_default().to_string();
            MESSAGES.lock().unwrap().push((name, info.to_string()));
        }));
    });
    let db = Database::in_memory().unwrap();
    let halves = db.create_table::<Half>().unwrap();
    let rows: Vec<_> = (0..count).map(|id| Half { id, value: 50 }).collect();
    db.transact(|tx| halves.insert_many(tx, &rows)).unwrap();
    (db, halves)
}

/// The messages of this test so far.
fn messages() -> Vec<String> {
    let name = thread::current().name().unwrap().to_string();
    let messages = MESSAGES.lock().unwrap();
    messages.iter().filter(|(of, _)| *of == name).map(|(_, message)| message.clone()).collect()
}

fn value<'t>(halves: &Table<Half>, tx: &mut impl ReadTransaction<'t>, id: u32) -> Result<i64> {
    Ok(halves.get_columns::<Value>(tx, id)?.expect("exists").value)
}

/// Moves 10 from row 0 to row 1, on another thread.
fn transfer(db: &Database, halves: &Table<Half>) {
    let transfer = || {
        db.transact(|tx| {
            halves.update(tx, 0, |half: &mut Value| half.value -= 10)?;
            halves.update(tx, 1, |half: &mut Value| half.value += 10)
        })
    };
    thread::scope(|scope| scope.spawn(transfer).join().unwrap()).unwrap();
}

#[test]
fn a_panic_that_comes_of_stale_reads_is_a_conflict_that_nobody_hears_of() {
    let (db, halves) = halves(2);
    let attempts = Cell::new(0);
    let sum = db
        .transact(|tx| {
            let first = value(&halves, tx, 0)?;
            if attempts.replace(attempts.get() + 1) < 3 {
                transfer(&db, &halves);
            }
            let sum = first + value(&halves, tx, 1)?;
            assert_eq!(sum, 100, "the sum of both");
            Ok(sum)
        })
        .unwrap();
    assert_eq!((sum, attempts.get()), (100, 4));
    assert_eq!(messages(), [""; 0]);
    assert_eq!(db.statistics().unwrap().attempts_max, 4);
}

#[test]
fn a_panic_in_a_statement_of_a_transaction_with_stale_reads_is_one_too() {
    let (db, halves) = halves(2);
    let attempts = Cell::new(0);
    db.transact(|tx| {
        let first = value(&halves, tx, 0)?;
        if attempts.replace(attempts.get() + 1) == 0 {
            transfer(&db, &halves);
        }
        halves.update(tx, 1, |half: &mut Value| {
            half.value = [100 - half.value][(half.value - (100 - first)) as usize]
        })
    })
    .unwrap();
    assert_eq!((attempts.get(), messages().len()), (2, 0));
}

#[test]
fn a_panic_of_the_closures_own_is_told_once_with_its_place() {
    let (db, halves) = halves(2);
    let attempts = Cell::new(0);
    let line = Cell::new(0);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        db.transact(|tx| -> Result<()> {
            attempts.set(attempts.get() + 1);
            halves.update(tx, 0, |half: &mut Value| half.value = 0)?;
            line.set(line!() + 1);
            panic!("planted {}", attempts.get());
        })
    }));
    assert_eq!(panic.unwrap_err().downcast_ref::<String>().map(String::as_str), Some("planted 1"));
    assert_eq!(attempts.get(), 1);
    let told = messages();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains(&format!("{}:{}:", file!(), line.get())) && told[0].contains("planted 1"),
        "{told:?}"
    );
    assert_eq!(db.transact(|tx| value(&halves, tx, 0)).unwrap(), 50);
}

#[test]
fn panics_that_a_closure_catches_itself_are_told() {
    let (db, halves) = halves(2);
    db.transact(|tx| {
        assert!(catch_unwind(|| panic!("first")).is_err());
        assert!(catch_unwind(|| panic!("second")).is_err());
        value(&halves, tx, 0)
    })
    .unwrap();
    // The message of the first one that is followed by another one goes to the standard error output.
    assert!(messages().iter().any(|message| message.contains("second")), "{:?}", messages());
    db.transact(|tx| {
        assert!(catch_unwind(|| panic!("third")).is_err());
        value(&halves, tx, 0)
    })
    .unwrap();
    assert!(messages().iter().any(|message| message.contains("third")), "{:?}", messages());
    assert!(catch_unwind(|| panic!("outside")).is_err());
    assert!(messages().last().unwrap().ends_with("outside"), "{:?}", messages());
}

#[test]
fn a_request_within_a_request_leaves_the_panic_to_the_outer_one() {
    let ((outer, halves), (inner, _)) = (halves(2), halves(2));
    let attempts = Cell::new(0);
    let ask = || {
        outer.transact(|tx| {
            let first = value(&halves, tx, 0)?;
            if attempts.replace(attempts.get() + 1) == 0 {
                transfer(&outer, &halves);
            }
            let sum = first + value(&halves, tx, 1)?;
            inner.transact(|_| {
                assert!(sum == 100 && attempts.get() < 3, "in the inner one");
                Ok(())
            })
        })
    };
    ask().unwrap();
    assert_eq!((attempts.get(), messages().len()), (2, 0));
    assert!(catch_unwind(AssertUnwindSafe(ask)).is_err());
    assert_eq!(messages().len(), 1, "{:?}", messages());
    assert!(messages()[0].contains("in the inner one"));
}

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

#[test]
fn a_report_that_writes_its_sum_gets_through_beside_a_writer() {
    const ROWS: u32 = 20_000;
    let (db, halves) = halves(ROWS);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_u32.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (from, to) = (1 + round % 7919, 1 + (round * 7 + 1) % 7919);
                db.transact(|tx| {
                    halves.update(tx, from, |half: &mut Value| half.value -= 1)?;
                    halves.update(tx, to, |half: &mut Value| half.value += 1)
                })
                .unwrap();
            }
        });
        for report in 0..3 {
            let outcome = db.transact(|tx| {
                let mut sum = 0;
                halves.range(1..).for_each(tx, |_, half| sum += half.value)?;
                assert_eq!(sum, i64::from(ROWS - 1) * 50);
                halves.update(tx, 0, |half: &mut Value| half.value = report)
            });
            if outcome.is_err() || report == 2 {
                is_over.store(true, Ordering::Relaxed);
            }
            outcome.unwrap();
        }
    });
    let attempts = db.statistics().unwrap().attempts_max;
    assert!(attempts <= 10, "{attempts} attempts");
    assert_eq!(messages(), [""; 0]);
}

/// The sum over all rows, in a read-only transaction on the present, and how often its closure ran.
fn read_sum(db: &Database, halves: &Table<Half>, meanwhile: impl Fn()) -> (i64, u32) {
    let attempts = Cell::new(0);
    let sum = db
        .read(|tx| {
            attempts.set(attempts.get() + 1);
            let first = value(halves, tx, 0)?;
            meanwhile();
            let mut sum = first;
            halves.range(1..).for_each(tx, |_, half| sum += half.value)?;
            Ok(sum)
        })
        .unwrap();
    (sum, attempts.get())
}

#[test]
fn a_reader_sees_one_moment_of_the_present_and_is_tried_three_times_at_most() {
    let (db, halves) = halves(10);
    assert_eq!(read_sum(&db, &halves, || ()), (500, 1));
    assert_eq!(read_sum(&db, &halves, || transfer(&db, &halves)), (500, 3));
    for round in 1..=20 {
        db.transact(|tx| halves.update(tx, 5, |half: &mut Value| half.value = 50 + round)).unwrap();
        let (sum, attempts) = read_sum(&db, &halves, || transfer(&db, &halves));
        assert_eq!((sum, attempts), (500 + round, 3), "what was committed before is there");
    }
    assert_eq!(messages(), [""; 0]);
}

#[test]
fn readers_of_everything_get_through_beside_writers() {
    const ROWS: u32 = 20_000;
    let (db, halves) = halves(ROWS);
    let (is_over, rounds) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let round = rounds.load(Ordering::Relaxed) + 1;
                db.transact(|tx| {
                    halves.update(tx, 1 + round % 7919, |half: &mut Value| half.value -= 1)?;
                    halves.update(tx, ROWS - 1, |half: &mut Value| half.value += 1)
                })
                .unwrap();
                rounds.store(round, Ordering::Relaxed);
            }
        });
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                for _ in 0..5 {
                    let before = rounds.load(Ordering::Relaxed);
                    let (sum, last) = db
                        .read(|tx| {
                            let mut sum = 0;
                            halves.scan().for_each(tx, |_, half| sum += half.value)?;
                            assert_eq!(sum, i64::from(ROWS) * 50);
                            Ok((sum, value(&halves, tx, ROWS - 1)?))
                        })
                        .unwrap();
                    assert_eq!(sum, i64::from(ROWS) * 50);
                    assert!(last >= 50 + i64::from(before), "no earlier than the call");
                }
            })
        });
        let outcomes = readers.map(thread::ScopedJoinHandle::join);
        is_over.store(true, Ordering::Relaxed);
        outcomes.into_iter().for_each(Result::unwrap);
    });
    assert!(messages().is_empty());
}

#[test]
fn a_reader_ends_as_its_closure_says() {
    let (db, halves) = halves(2);
    let answer: Result<()> = db.read(|tx| {
        value(&halves, tx, 0)?;
        Err(ensilo::Error::rollback("no"))
    });
    assert!(matches!(answer, Err(ensilo::Error::User(_))), "{answer:?}");
    // A conclusion from stale reads is none, in a session as well.
    let mut session = db.session().unwrap();
    let attempts = Cell::new(0);
    let sum = session
        .read(|tx| {
            let first = value(&halves, tx, 0)?;
            if attempts.replace(attempts.get() + 1) == 0 {
                transfer(&db, &halves);
            }
            match first + value(&halves, tx, 1)? {
                100 => Ok(100),
                wrong => Err(ensilo::Error::rollback(format!("the sum is {wrong}"))),
            }
        })
        .unwrap();
    assert_eq!((sum, attempts.get()), (100, 2));
    assert!(catch_unwind(AssertUnwindSafe(|| db.read(|_| -> Result<()> { panic!("planted") }))).is_err());
    assert_eq!(messages().len(), 1);
    assert!(db.read(|tx| value(&halves, tx, 1)).is_ok());
}
