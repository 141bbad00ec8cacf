//! The tests of every engine: compiled for each of them, which is that of the module above.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use ensilo::{Columns, Options, Result, Row, generic};

use super::{Engine, LOCKS, attempts_beside};
use crate::{messages, set_hook_of_program};

pub(crate) type Database = generic::Database<Engine>;
pub(crate) type Table<T> = generic::Table<T, Engine>;

pub(crate) fn in_memory(options: Options) -> Database {
    options.in_memory_with().unwrap()
}

/// Two halves of one sum.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "half")]
pub(crate) struct Half {
    #[row(key)]
    pub(crate) id: u32,
    pub(crate) value: i64,
}

#[derive(Columns)]
#[columns(of = Half)]
pub(crate) struct Value {
    pub(crate) value: i64,
}

/// A database, opened after the program has set its hook, with `count` rows of value 50.
pub(crate) fn halves(count: u32) -> (Database, Table<Half>) {
    set_hook_of_program();
    let db = in_memory(Options::default());
    let halves = db.create_table::<Half>().unwrap();
    let rows: Vec<_> = (0..count).map(|id| Half { id, value: 50 }).collect();
    db.transact(|tx| halves.insert_many(tx, &rows)).unwrap();
    (db, halves)
}

pub(crate) fn value<'t>(
    halves: &Table<Half>,
    tx: &mut impl generic::ReadTransaction<'t, Engine>,
    id: u32,
) -> Result<i64> {
    Ok(halves.get_columns::<Value>(tx, id)?.expect("exists").value)
}

/// Moves 10 from row 0 to row 1, on another thread, while a transaction of this one has read row 0. It is refused where that has locked the row.
pub(crate) fn transfer(db: &Database, halves: &Table<Half>) {
    let transfer = || {
        db.request().retries(0).transact(|tx| {
            halves.update(tx, 0, |half: &mut Value| half.value -= 10)?;
            halves.update(tx, 1, |half: &mut Value| half.value += 10)
        })
    };
    let outcome = thread::scope(|scope| scope.spawn(transfer).join().unwrap());
    assert_eq!(outcome.is_err(), LOCKS, "{outcome:?}");
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
    assert_eq!((sum, attempts.get()), (100, attempts_beside(3)));
    assert_eq!(messages(), [""; 0]);
    assert_eq!(db.statistics().unwrap().attempts_max.max(1), u64::from(attempts_beside(3)));
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
    assert_eq!((attempts.get(), messages().len()), (if LOCKS { 1 } else { 2 }, 0));
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
                assert!(sum == 100 && attempts.get() <= attempts_beside(1), "in the inner one");
                Ok(())
            })
        })
    };
    ask().unwrap();
    assert_eq!((attempts.get(), messages().len()), (attempts_beside(1), 0));
    assert!(catch_unwind(AssertUnwindSafe(ask)).is_err());
    assert_eq!(messages().len(), 1, "{:?}", messages());
    assert!(messages()[0].contains("in the inner one"));
}

#[test]
fn a_report_that_writes_its_sum_gets_through_beside_a_writer() {
    const ROWS: u32 = 2000;
    let (db, halves) = halves(ROWS);
    let (is_writing, is_over, attempts) = (AtomicBool::new(false), AtomicBool::new(false), Cell::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_u32.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (from, to) = (1 + round % 1997, 1 + (round * 7 + 1) % 1997);
                // It is refused for as long as a report is protected, or holds its locks.
                db.request()
                    .retries(u32::MAX)
                    .transact(|tx| {
                        halves.update(tx, from, |half: &mut Value| half.value -= 1)?;
                        halves.update(tx, to, |half: &mut Value| half.value += 1)
                    })
                    .unwrap();
                is_writing.store(true, Ordering::Relaxed);
            }
        });
        while !is_writing.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        for report in 0..3 {
            attempts.set(0);
            // Where it locks what it reads it is tried again for as long as an older transaction of the writer, which may have no core, has a lock.
            let request = db.request().retries(if LOCKS { u32::MAX } else { 1000 });
            let outcome = request.transact(|tx| {
                attempts.set(attempts.get() + 1);
                let mut sum = 0;
                halves.range(1..).for_each(tx, |_, half| sum += half.value)?;
                assert_eq!(sum, i64::from(ROWS - 1) * 50);
                halves.update(tx, 0, |half: &mut Value| half.value = report)
            });
            let is_in_time = LOCKS || attempts.get() <= 10;
            if outcome.is_err() || !is_in_time || report == 2 {
                is_over.store(true, Ordering::Relaxed);
            }
            outcome.unwrap();
            assert!(is_in_time, "{} attempts of report {report}", attempts.get());
        }
    });
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
    assert_eq!(read_sum(&db, &halves, || transfer(&db, &halves)), (500, attempts_beside(2)));
    for round in 1..=20 {
        db.transact(|tx| halves.update(tx, 5, |half: &mut Value| half.value = 50 + round)).unwrap();
        let (sum, attempts) = read_sum(&db, &halves, || transfer(&db, &halves));
        assert_eq!((sum, attempts), (500 + round, attempts_beside(2)), "what was committed before is there");
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
                // It is refused for as long as a reader holds its locks.
                db.request()
                    .retries(u32::MAX)
                    .transact(|tx| {
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
    assert_eq!((sum, attempts.get()), (100, attempts_beside(1)));
    assert!(catch_unwind(AssertUnwindSafe(|| db.read(|_| -> Result<()> { panic!("planted") }))).is_err());
    assert_eq!(messages().len(), 1);
    assert!(db.read(|tx| value(&halves, tx, 1)).is_ok());
    let stored = db.request().durability(ensilo::Durability::Stored).read(|tx| value(&halves, tx, 1));
    assert!(matches!(stored, Err(ensilo::Error::NotDurable)), "{stored:?}");
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_conflict_of_a_request_in_a_destructor_leaves_the_panic_around_it_its_message() {
    let ((outer, _), (inner, halves)) = (halves(2), halves(2));
    let attempts = Cell::new(0);
    let ask_inner = || {
        inner.transact(|tx| {
            let first = value(&halves, tx, 0)?;
            if attempts.replace(attempts.get() + 1) == 0 {
                transfer(&inner, &halves);
            }
            assert_eq!(first + value(&halves, tx, 1)?, 100);
            Ok(())
        })
    };
    let ask = || {
        outer.transact(|_| -> Result<()> {
            let _asks = OnDrop(|| ask_inner().unwrap());
            panic!("the outer one")
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(ask)).is_err());
    assert_eq!((attempts.get(), messages().len()), (attempts_beside(1), 1), "{:?}", messages());
    assert!(messages()[0].contains("the outer one"));
}

#[test]
fn a_panic_of_a_request_in_a_destructor_is_told_with_the_panic_around_it() {
    let ((outer, _), (inner, _)) = (halves(2), halves(2));
    let ask_inner = || inner.transact(|_| -> Result<()> { panic!("the inner one") });
    let ask = || {
        outer.transact(|_| -> Result<()> {
            let _asks = OnDrop(|| assert!(catch_unwind(AssertUnwindSafe(ask_inner)).is_err()));
            panic!("the outer one")
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(ask)).is_err());
    let told = messages().concat();
    let count = |of: &str| told.matches(of).count();
    assert_eq!((count("the outer one"), count("the inner one")), (1, 1), "{told}");
}

type AnyOnDrop = OnDrop<Box<dyn FnMut()>>;

thread_local! {
    /// What is to be done when the thread's variables are destroyed.
    static AT_THE_END: RefCell<Option<AnyOnDrop>> = const { RefCell::new(None) };
}

#[test]
fn requests_of_a_thread_whose_variables_are_destroyed_have_conflicts_and_panics_too() {
    let (db, halves) = halves(2);
    let (say, said) = mpsc::channel();
    let at_the_end = move || {
        let mut session = db.session().unwrap();
        let attempts = Cell::new(0);
        let silent = session.transact(|tx| {
            let first = value(&halves, tx, 0)?;
            if attempts.replace(attempts.get() + 1) == 0 {
                transfer(&db, &halves);
            }
            assert_eq!(first + value(&halves, tx, 1)?, 100);
            Ok(())
        });
        let own = || session.transact(|_| -> Result<()> { panic!("at the end") });
        let payload = catch_unwind(AssertUnwindSafe(own)).unwrap_err();
        say.send((silent.is_ok(), payload.downcast_ref::<&str>().copied())).unwrap();
    };
    let thread = thread::spawn(move || {
        // First, so that it is destroyed last.
        AT_THE_END.with_borrow(|_| ());
        let early = in_memory(Options::default());
        let ask = || early.transact(|_| -> Result<()> { panic!("early") });
        assert!(catch_unwind(AssertUnwindSafe(ask)).is_err());
        AT_THE_END.set(Some(OnDrop(Box::new(at_the_end))));
    });
    thread.join().unwrap();
    assert_eq!(said.recv().unwrap(), (true, Some("at the end")));
}

#[test]
fn a_panic_that_ends_the_process_says_why() {
    const IN_CHILD: &str = "ENSILO_TEST_ENDS_THE_PROCESS";
    if std::env::var_os(IN_CHILD).is_some() {
        let db = in_memory(Options::default());
        db.transact(|_| {
            ends_the_process();
            Ok(())
        })
        .unwrap();
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", thread::current().name().unwrap(), "--nocapture"]).env(IN_CHILD, "1");
    let output = child.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    // Without the checks of a debug build it does not come to a panic.
    assert!(output.status.success() || told.contains("unsafe precondition"), "{told}");
}

/// Ends the process by a panic that cannot unwind, where the standard library has its checks.
#[allow(unsafe_code, reason = "the check of its precondition is what panics")]
fn ends_the_process() {
    if cfg!(debug_assertions) {
        // SAFETY: none: it is violated on purpose, and only where that is checked.
        unsafe { std::hint::assert_unchecked(std::hint::black_box(false)) }
    }
}
