//! What holds over Silo's engine alone: each test says why it does not hold over every other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{AbortReason, Database, Error, Options, Order, Table};

use super::every_engine::queues::{Job, job, with_jobs};
use super::every_engine::unique_builds::the_old_row_goes;
use super::opened::with_accounts;
use crate::failpoints::FaultySilo;
use crate::{Account, Visits, account};

fn visit(db: &Database, accounts: &Table<Account>, id: u32) {
    db.transact(|tx| accounts.update(tx, id, |row: &mut Visits| row.visits += 1)).unwrap();
}

/// Over ERMIA's engine the first to write wins, and of two in a circle either.
#[test]
fn of_two_that_meet_the_first_to_commit_wins() {
    let (db, accounts) = with_accounts(2);
    let mut late = db.begin().unwrap();
    accounts.update(&mut late, 0, |visits: &mut Visits| visits.visits = 9).unwrap();
    visit(&db, &accounts, 0);
    assert!(matches!(late.commit(), Err(Error::Aborted(_))));
    let [mut one, mut two] = [(0, 1), (1, 0)].map(|(read, written)| {
        let mut session = db.begin().unwrap();
        accounts.get(&mut session, read).unwrap();
        accounts.update(&mut session, written, |visits: &mut Visits| visits.visits += 1).unwrap();
        session
    });
    one.commit().unwrap();
    assert!(matches!(two.commit(), Err(Error::Aborted(_))));
}

/// Over ERMIA's engine the session comes before those that have changed what it has read, and commits.
#[test]
fn a_conflict_ends_the_transaction_and_the_session_begins_another() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.begin().unwrap();
    accounts.get(&mut session, 0).unwrap();
    visit(&db, &accounts, 0);
    accounts.update(&mut session, 1, |visits: &mut Visits| visits.visits = 9).unwrap();
    let error = session.commit().unwrap_err();
    assert!(matches!(&error, Error::Aborted(abort) if abort.reason() == AbortReason::ReadValidation));
    assert!(matches!(&error, Error::Aborted(abort) if abort.table() == Some("account")));
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    session.begin().unwrap();
    accounts.update(&mut session, 1, |visits: &mut Visits| visits.visits = 9).unwrap();
    session.commit().unwrap();
}

/// Over ERMIA's engine a snapshot is not so old.
#[test]
fn an_index_younger_than_the_snapshot_is_not_ready() {
    let (db, accounts) = without_snapshots_of_its_own();
    let take_snapshot = || db.request().max_staleness(Duration::ZERO).read_stale(|_| Ok(())).unwrap();
    take_snapshot();
    db.create_index("account", "by_visits", [("visits", Order::Ascending)]).unwrap();
    let by_visits = accounts.index::<u32>("by_visits").unwrap();
    let too_early = db.read_stale(|snapshot| by_visits.scan().count(snapshot));
    assert!(matches!(too_early, Err(Error::IndexNotReady(_))));
    assert_eq!(db.transact(|tx| by_visits.scan().count(tx)).unwrap(), 1);
    take_snapshot();
    assert_eq!(db.read_stale(|snapshot| by_visits.scan().count(snapshot)).unwrap(), 1);
}

/// A database with one account, whose snapshots come by themselves only after a day: over ERMIA's engine a snapshot is as old as the epoch.
fn without_snapshots_of_its_own() -> (Database, Table<Account>) {
    let db: Database = Options::default()
        .epoch_interval(Duration::from_secs(10))
        .epochs_per_snapshot(10_000)
        .snapshot_age_limit(Duration::from_secs(86_400 * 7))
        .in_memory_with()
        .unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(0))).unwrap();
    (db, accounts)
}

#[test]
fn a_stale_read_shows_the_newest_snapshot_that_others_took() {
    let (db, accounts) = without_snapshots_of_its_own();
    let visits = || db.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap().map(|row| row.visits);
    let bounded = |bound: Duration| {
        let request = db.request().max_staleness(bound);
        request.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap().map(|row| row.visits)
    };
    assert_eq!(visits(), None);
    assert_eq!((bounded(Duration::ZERO), visits()), (Some(0), Some(0)));
    visit(&db, &accounts, 0);
    assert_eq!(visits(), Some(0));
    // It is young enough for these, and none is taken.
    for bound in [Duration::from_secs(3600), Duration::MAX] {
        assert_eq!(bounded(bound), Some(0));
    }
    // A read that has met two conflicts takes one.
    let mut attempts = 0;
    let read = db.read(|tx| {
        attempts += 1;
        let row = accounts.get_columns::<Visits>(tx, 0)?;
        if attempts < 3 {
            thread::scope(|scope| scope.spawn(|| visit(&db, &accounts, 0)).join().unwrap());
        }
        assert_eq!(accounts.get(tx, 1)?, None);
        Ok(row)
    });
    assert_eq!((read.unwrap().map(|row| row.visits), attempts), (Some(3), 3));
    assert_eq!(visits(), Some(3));
    visit(&db, &accounts, 0);
    let mut session = db.session().unwrap();
    let count = |row: Option<Visits>| row.map(|row| row.visits);
    let stale = session.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap();
    let request = session.request().max_staleness(Duration::from_nanos(1));
    let fresh = request.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap();
    assert_eq!((count(stale), count(fresh)), (Some(3), Some(4)));
}

#[test]
fn a_stale_read_says_how_old_it_is_at_most() {
    let (db, _accounts) = without_snapshots_of_its_own();
    let opened = Instant::now();
    assert!(db.read_stale(|tx| Ok(opened.elapsed() < tx.staleness())).unwrap());
    let called = Instant::now();
    let age = db.request().max_staleness(Duration::ZERO).read_stale(|tx| Ok(tx.staleness())).unwrap();
    assert!(age <= called.elapsed());
    assert!(db.read_stale(|tx| Ok(tx.staleness() < opened.elapsed())).unwrap());
}

/// The fault is planted in this engine.
#[test]
fn a_row_that_takes_entries_of_others_with_it_is_seen() {
    assert!(catch_unwind(AssertUnwindSafe(the_old_row_goes::<FaultySilo>)).is_err());
}

/// Over ERMIA's engine the reads belong together: the transaction comes before the one that interferes.
#[test]
fn an_error_of_a_closure_concluded_from_stale_reads_is_a_conflict_and_retried() {
    let (db, accounts) = with_accounts(1);
    let mut attempts = 0;
    let result = db.transact(|tx| {
        attempts += 1;
        let before = accounts.get_columns::<Visits>(tx, 0)?;
        if attempts == 1 {
            thread::scope(|scope| scope.spawn(|| visit(&db, &accounts, 0)).join().unwrap());
        }
        accounts.insert(tx, &account(9))?;
        if before.is_some_and(|before| before.visits == 0) {
            Err(Error::rollback("never visited"))
        } else {
            Ok(())
        }
    });
    result.unwrap();
    assert_eq!(attempts, 2);
}

/// Over ERMIA's engine the row belongs to the first one, until that ends.
#[test]
fn an_error_after_an_overtaken_insert_is_a_conflict() {
    let (db, accounts) = with_accounts(0);
    let mut attempts = 0;
    let error = db
        .transact(|tx| {
            attempts += 1;
            accounts.insert(tx, &account(1))?;
            if attempts == 1 {
                thread::scope(|scope| {
                    scope.spawn(|| db.transact(|tx| accounts.insert(tx, &account(1)).map(|_| ())).unwrap());
                });
            }
            // The address is taken by a row that this transaction has found missing.
            accounts.insert(tx, &Account { email: account(1).email, ..account(2) }).map(|_| ())
        })
        .unwrap_err();
    let Error::DuplicateKey(duplicate) = &error else { panic!("{error}") };
    assert_eq!((attempts, duplicate.index()), (2, None), "{error}");
}

/// Over ERMIA's engine the reads belong together.
#[test]
fn an_error_of_another_session_concluded_from_stale_reads_is_a_conflict() {
    let (db, accounts) = with_accounts(2);
    let mut attempts = 0;
    let outcome = db.transact(|tx| {
        attempts += 1;
        let before = accounts.get_columns::<Visits>(tx, 0)?;
        if attempts == 1 {
            let visit_both = || [0, 1].map(|id| visit(&db, &accounts, id));
            thread::scope(|scope| scope.spawn(visit_both).join().unwrap());
        }
        let after = accounts.get_columns::<Visits>(tx, 1)?;
        if before == after { Ok(()) } else { Err(Error::Cancelled) }
    });
    assert_eq!((outcome.is_ok(), attempts), (true, 2));
}

/// Over ERMIA's engine nobody else changes the row that is taken.
#[test]
fn a_row_of_a_conflict_is_there_again_for_the_next_attempt() {
    let (db, jobs) = with_jobs(1);
    let mut attempts = 0;
    let taken = db.transact(|tx| {
        attempts += 1;
        let taken = jobs.scan().take_first(tx)?;
        if attempts == 1 {
            // Another statement does not heed the claim.
            let change = || db.transact(|tx| jobs.replace(tx, &Job { urgency: 100, ..job(0) }));
            thread::scope(|scope| scope.spawn(change).join().unwrap())?;
        }
        Ok(taken)
    });
    assert_eq!((taken.unwrap().unwrap().1.urgency, attempts), (100, 2));
}
