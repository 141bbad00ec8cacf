//! How requests end: retries, panics, swallowed aborts, threads that go.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

use ensilo::{AbortReason, Error};

use super::{
    Account, Balance, CONFLICT, Database, LOCKS, SetOnDrop, Table, Visits, account, change_what_was_read,
    interfere, with_accounts,
};

#[test]
fn a_conflict_is_retried_and_the_hook_hears_of_it() {
    let (db, accounts) = with_accounts(2);
    let (mut attempts, mut reasons) = (0, Vec::new());
    let seen = db
        .request()
        .on_abort(|abort| reasons.push(abort.reason()))
        .transact(|tx| {
            attempts += 1;
            if attempts <= 3 {
                interfere(&db, &accounts, tx)?;
            }
            let visits = accounts.get_columns::<Visits>(tx, 0)?.expect("exists").visits;
            accounts.update(tx, 0, |row: &mut Visits| row.visits += 10)?;
            accounts.update(tx, 1, |other: &mut Visits| other.visits = visits)?;
            Ok(visits)
        })
        .unwrap();
    assert_eq!((attempts, seen), (4, 3));
    assert_eq!(reasons, [CONFLICT; 3]);
    assert_eq!(db.transact(|tx| accounts.get_columns::<Visits>(tx, 1)).unwrap().unwrap().visits, 3);
    assert_eq!(db.statistics().unwrap().aborts_of(CONFLICT), 3);
}

#[test]
fn a_number_that_a_closure_keeps_from_an_attempt_that_was_undone_is_waited_for() {
    let (db, accounts) = with_accounts(2);
    let numbers = db.sequence::<u32>("ticket").unwrap();
    let write =
        || db.request().transact_with_epoch(|tx| accounts.update(tx, 1, |row: &mut Visits| row.visits += 1));
    let (before, mut kept) = (write().unwrap().1, None);
    while db.statistics().unwrap().epochs.global_epoch <= before {
        thread::yield_now();
    }
    let answered = db.request().transact_with_epoch(|tx| {
        if kept.is_none() {
            kept = Some(numbers.next(tx)?);
            interfere(&db, &accounts, tx)?;
            accounts.update(tx, 0, |row: &mut Visits| row.visits += 10)?;
        }
        Ok(kept)
    });
    let (number, epoch) = answered.unwrap();
    assert_eq!(number, Some(1));
    assert!(epoch > before, "{epoch}: it was reserved after {before}");
}

/// A writer changes the rows all the time that a request reads, which writes one that nobody else reads. Where transactions lock what they read, it is
/// run again until the writer that it has met, if that is the older one, has come to run and has ended: how often that is, the system's scheduler decides.
#[test]
fn a_request_that_reads_mostly_commits_beside_a_writer() {
    const ROWS: u32 = 500;
    let (db, accounts) = with_accounts(ROWS + 1);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let visit = |row: &mut Visits| row.visits += 1;
                // What is protected is refused to the writer, who is tried again.
                db.transact(|tx| accounts.update(tx, number % ROWS, visit)).unwrap();
            }
        });
        let _at_end = SetOnDrop(&is_over);
        for _ in 0..20 {
            let mut refused = 0;
            // A writer that has lost its core holds its lock for longer than anybody waits.
            let count = |abort: &ensilo::Abort| refused += u32::from(abort.reason() != AbortReason::LockHeld);
            let request = db.request().read_mostly().retries(u32::MAX).on_abort(count);
            let reported = request.transact(|tx| {
                let mut sum = 0;
                accounts.range(..ROWS).columns::<Visits>().for_each(tx, |_, row| {
                    sum += row.visits;
                    ControlFlow::Continue(())
                })?;
                accounts.update(tx, ROWS, |row: &mut Visits| row.visits = sum)?;
                Ok(sum)
            });
            assert!(reported.is_ok(), "{reported:?}");
            assert!(LOCKS || refused <= 2, "{refused} times");
        }
    });
}

#[test]
fn retries_are_bounded_and_the_abort_names_table_and_key() {
    let (db, accounts) = with_accounts(2);
    let mut attempts = 0;
    let error = db
        .request()
        .retries(2)
        .transact(|tx| {
            attempts += 1;
            accounts.update(tx, 1, |visits: &mut Visits| visits.visits = 7)?;
            interfere(&db, &accounts, tx)?.update(tx, |visits: &mut Visits| visits.visits = 7)
        })
        .unwrap_err();
    let Error::Aborted(abort) = &error else { panic!("{error}") };
    assert_eq!((attempts, abort.reason(), abort.table()), (3, CONFLICT, Some("account")));
    assert_eq!(abort.key(), [0, 0, 0, 0]);
    assert!(abort.is_retryable() && error.is_retryable());
    assert_eq!(abort.attempts(), 3);
    let told = format!("transaction aborted: {CONFLICT} in account at id = 0; given up after 3 attempts: ");
    assert!(error.to_string().starts_with(&told), "{error}");
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
}

#[test]
fn an_abort_that_is_swallowed_still_fails_the_commit() {
    let (db, accounts) = with_accounts(2);
    let mut attempts = 0;
    let result = db.request().retries(0).transact(|tx| {
        attempts += 1;
        let lost = interfere(&db, &accounts, tx)
            .and_then(|found| found.update(tx, |visits: &mut Visits| visits.visits += 10));
        assert!(matches!(lost, Err(Error::Aborted(_))));
        accounts.update(tx, 1, |visits: &mut Visits| visits.visits = 7).ok();
        Ok("went well")
    });
    assert!(matches!(result, Err(Error::Aborted(_))));
    assert_eq!(attempts, 1);
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
}

/// An abort of a request to `db`, which used up its retries.
fn conflict(db: &Database, accounts: &Table<Account>) -> Error {
    let met = db
        .request()
        .retries(0)
        .transact(|tx| interfere(db, accounts, tx)?.update(tx, |visits: &mut Visits| visits.visits = 7));
    met.unwrap_err()
}

#[test]
fn an_abort_of_another_transaction_is_passed_on_without_a_retry() {
    let (other, others_accounts) = with_accounts(2);
    let (db, accounts) = with_accounts(2);
    let (mut attempts, mut heard) = (0, 0);
    let mut earlier = Some(conflict(&db, &accounts));
    for foreign in [true, false] {
        let passed_on = db.request().on_abort(|_| heard += 1).transact(|tx| {
            attempts += 1;
            accounts.update(tx, 1, |visits: &mut Visits| visits.visits = 9)?;
            let abort = if foreign { Some(conflict(&other, &others_accounts)) } else { earlier.take() };
            Err::<(), _>(abort.expect("one attempt"))
        });
        assert!(matches!(&passed_on, Err(Error::Aborted(abort)) if abort.table() == Some("account")));
    }
    assert_eq!((attempts, heard), (2, 0));
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    let mut interactive = db.begin().unwrap();
    let passed_on = interactive.with(|_| Err::<(), _>(conflict(&other, &others_accounts)));
    assert!(matches!(passed_on, Err(Error::Aborted(_))) && interactive.is_open());
}

#[test]
fn an_abort_passed_on_by_an_inner_request_is_its_own() {
    let (other, _) = with_accounts(0);
    let (db, accounts) = with_accounts(2);
    let (mut attempts, mut inner_attempts) = (0, 0);
    let visits = db.transact(|tx| {
        attempts += 1;
        other.transact(|_| {
            inner_attempts += 1;
            let found = match attempts {
                1 => interfere(&db, &accounts, tx)?,
                _ => accounts.find(tx, 0)?.expect("exists"),
            };
            found.update(tx, |visits: &mut Visits| visits.visits += 10)?;
            Ok(found.columns::<Visits>(tx)?.visits)
        })
    });
    assert_eq!((visits.unwrap(), attempts, inner_attempts), (11, 2, 2));
}

/// Where transactions lock what they read, also a row that is missing, no read grows stale.
#[test]
fn an_error_concluded_from_stale_reads_is_a_conflict_and_retried() {
    let (db, accounts) = with_accounts(1);
    let mut attempts = 0;
    // "If it is missing, insert it" can find it taken only when another transaction came in between.
    db.transact(|tx| {
        attempts += 1;
        if accounts.get(tx, 5)?.is_none() {
            if attempts == 1 {
                change_what_was_read(|| {
                    db.request().retries(0).transact(|tx| accounts.insert(tx, &account(5)).map(|_| ()))
                });
            }
            accounts.insert(tx, &account(5))?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(attempts, if LOCKS { 1 } else { 2 });
}

#[test]
fn a_panic_undoes_its_transaction_only() {
    let (db, accounts) = with_accounts(2);
    for _ in 0..3 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            db.transact(|tx| -> ensilo::Result<()> {
                accounts.update(tx, 0, |balance: &mut Balance| balance.balance = -1)?;
                accounts.insert(tx, &account(77))?;
                panic!("planted");
            })
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"planted"));
        let snapshot_panicked = catch_unwind(AssertUnwindSafe(|| {
            db.read_stale(|_| -> ensilo::Result<()> { panic!("planted too") })
        }));
        assert!(snapshot_panicked.is_err());
        // A statement's own closure may panic as well, in the middle of its work.
        let in_callback = catch_unwind(AssertUnwindSafe(|| {
            db.transact(|tx| {
                accounts.get_columns_many(tx, &[0, 1], |_, _: Option<Visits>| panic!("planted three"))
            })
        }));
        assert!(in_callback.is_err());
        db.transact(|tx| accounts.update(tx, 1, |visits: &mut Visits| visits.visits += 1)).unwrap();
    }
    db.transact(|tx| {
        assert_eq!(accounts.get(tx, 0)?, Some(account(0)));
        assert_eq!(accounts.get(tx, 77)?, None);
        assert_eq!(accounts.get_columns(tx, 1)?, Some(Visits { visits: 3 }));
        Ok(())
    })
    .unwrap();
    assert_eq!(db.statistics().unwrap().table("account").unwrap().records, 2);
}

#[test]
fn threads_come_and_go_without_leaving_workers_behind() {
    let (db, accounts) = with_accounts(1);
    for _ in 0..50 {
        thread::scope(|scope| {
            let visit = || db.transact(|tx| accounts.update(tx, 0, |visits: &mut Visits| visits.visits += 1));
            scope.spawn(visit).join().unwrap().unwrap();
        });
    }
    assert_eq!(db.transact(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap().unwrap().visits, 50);
    let workers = db.statistics().unwrap().epochs.workers;
    assert!(workers <= 5, "{workers} workers for two threads at a time");
}

#[test]
fn closing_waits_for_nobody_and_running_requests_end_as_they_would() {
    let (db, accounts) = with_accounts(1);
    let (in_request, closed) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let runner = scope.spawn(|| {
            let mut runs = 0;
            let result = db.transact(|tx| {
                runs += 1;
                accounts.insert(tx, &account(5))?;
                in_request.wait();
                closed.wait();
                accounts.contains(tx, 5)
            });
            assert!(matches!(db.transact(|_| Ok(())), Err(Error::Closed)));
            result
        });
        in_request.wait();
        db.close().unwrap();
        closed.wait();
        assert!(runner.join().unwrap().unwrap());
    });
}

#[test]
fn one_thread_may_use_many_databases() {
    let databases: Vec<_> = (0..20).map(with_accounts).collect();
    for round in 0..3 {
        for (count, (db, accounts)) in databases.iter().enumerate() {
            assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), count, "round {round}");
        }
    }
    databases[3].0.close().unwrap();
    assert!(matches!(databases[3].0.transact(|_| Ok(())), Err(Error::Closed)));
    assert!(databases[4].0.transact(|_| Ok(())).is_ok());
}

#[test]
fn a_request_in_a_thread_destructor_is_an_error_or_works() {
    struct AtExit(Database, mpsc::Sender<Result<(), Error>>);
    impl Drop for AtExit {
        fn drop(&mut self) {
            self.1.send(self.0.transact(|_| Ok(()))).unwrap();
        }
    }
    thread_local!(static AT_EXIT: std::cell::RefCell<Option<AtExit>> = const { std::cell::RefCell::new(None) });
    let (db, _) = with_accounts(1);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        AT_EXIT.with(|slot| *slot.borrow_mut() = Some(AtExit(db.clone(), sender)));
        db.transact(|_| Ok(())).unwrap();
    })
    .join()
    .unwrap();
    assert!(matches!(receiver.recv().unwrap(), Ok(()) | Err(Error::ThreadEnding)));
}
