//! Prepared transactions, over the engines that have them: they have voted to commit, and wait for the decision.

use std::thread;

use ensilo::{AbortReason, Error, Order, generic};

use super::conflicts::{Engine, Session, interfere};
use super::every_engine::queues::{job, with_jobs};
use super::opened::{Database, Table, with_accounts};
use crate::{Account, Visits, account};

type PreparedTransaction = generic::PreparedTransaction<Engine>;

fn visits(db: &Database, accounts: &Table<Account>, id: u32) -> u32 {
    db.transact(|tx| accounts.get_columns(tx, id)).unwrap().map_or(0, |row: Visits| row.visits)
}

/// A transaction that has read one row, written another one, and voted.
fn prepared(
    session: &mut Session,
    accounts: &Table<Account>,
    read: u32,
    written: u32,
) -> PreparedTransaction {
    session.begin().unwrap();
    accounts.get(session, read).unwrap();
    accounts.update(session, written, |row: &mut Visits| row.visits = 9).unwrap();
    session.prepare().unwrap()
}

#[test]
fn the_decision_makes_all_visible_or_nothing() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.session().unwrap();
    prepared(&mut session, &accounts, 0, 1).abort().unwrap();
    drop(prepared(&mut session, &accounts, 0, 1));
    assert_ne!(visits(&db, &accounts, 1), 9);
    prepared(&mut session, &accounts, 0, 1).commit().unwrap();
    assert_eq!(visits(&db, &accounts, 1), 9);
}

#[test]
fn there_is_one_decision() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.session().unwrap();
    for ends in [PreparedTransaction::abort, PreparedTransaction::commit] {
        let mut waiting = prepared(&mut session, &accounts, 0, 1);
        ends(&mut waiting).unwrap();
        assert!(matches!(waiting.commit(), Err(Error::NoTransaction)));
        assert!(matches!(waiting.abort(), Err(Error::NoTransaction)));
    }
}

#[test]
fn a_session_knows_whether_it_has_something_to_commit() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.session().unwrap();
    assert!(!session.has_writes());
    session.begin().unwrap();
    accounts.get(&mut session, 0).unwrap();
    assert!(accounts.get(&mut session, 77).unwrap().is_none() && !session.has_writes());
    accounts.update(&mut session, 1, |row: &mut Visits| row.visits += 1).unwrap();
    assert!(session.has_writes());
    drop(session.prepare().unwrap());
    assert!(!session.has_writes());
}

#[test]
fn in_memory_there_are_no_tickets_and_the_decision_waits() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.session().unwrap();
    let mut waiting = prepared(&mut session, &accounts, 0, 1);
    assert!(matches!(waiting.ticket_of_reads(), Err(Error::NotDurable)));
    assert!(matches!(waiting.commit_with_ticket(), Err(Error::NotDurable)));
    waiting.commit().unwrap();
    assert!(matches!(waiting.ticket_of_reads(), Err(Error::NoTransaction)));
    assert_eq!(visits(&db, &accounts, 1), 9);
}

#[test]
fn its_session_goes_on_and_the_decision_comes_from_another_thread() {
    let (db, accounts) = with_accounts(4);
    let mut session = db.session().unwrap();
    let mut first = prepared(&mut session, &accounts, 0, 1);
    assert!(!session.is_open());
    let mut second = prepared(&mut session, &accounts, 2, 3);
    drop(session);
    thread::spawn(move || first.commit().unwrap()).join().unwrap();
    assert_eq!((visits(&db, &accounts, 1), second.abort().is_ok()), (9, true));
    assert_ne!(visits(&db, &accounts, 3), 9);
}

#[test]
fn what_it_has_read_and_written_stays_until_the_decision() {
    let (db, accounts) = with_accounts(3);
    let mut session = db.session().unwrap();
    let mut waiting = prepared(&mut session, &accounts, 0, 1);
    let reasons = [0, 1, 2].map(|id| {
        let visited =
            db.request().retries(0).transact(|tx| accounts.update(tx, id, |row: &mut Visits| row.visits = 5));
        match visited {
            Err(Error::Aborted(abort)) => Some(abort.reason()),
            other => other.map(|_| None).unwrap(),
        }
    });
    assert_eq!(reasons, [Some(AbortReason::PreparedRead), Some(AbortReason::PreparedLock), None]);
    waiting.commit().unwrap();
    assert_eq!([1, 2].map(|id| visits(&db, &accounts, id)), [9, 5]);
}

#[test]
fn a_vote_to_abort_ends_the_transaction() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.begin().unwrap();
    accounts.update(&mut session, 1, |row: &mut Visits| row.visits = 9).unwrap();
    // A conflict that the closure looks away from.
    let looks_away = session.with(|tx| {
        _ = interfere(&db, &accounts, tx);
        Ok(())
    });
    looks_away.unwrap();
    assert!(matches!(session.prepare(), Err(Error::Aborted(_))));
    assert!(!session.is_open());
    assert!(matches!(session.prepare(), Err(Error::NoTransaction)));
    assert_ne!(visits(&db, &accounts, 1), 9);
}

#[test]
fn rows_are_counted_and_taken_by_the_decision_alone() {
    let (db, jobs) = with_jobs(2);
    let count = || db.statistics().unwrap().tables.iter().find(|table| table.name == "job").unwrap().records;
    let mut session = db.begin().unwrap();
    assert!(matches!(jobs.scan().take_first(&mut session), Ok(Some((0, _)))));
    jobs.insert(&mut session, &job(7)).unwrap();
    jobs.insert(&mut session, &job(8)).unwrap();
    let mut waiting = session.prepare().unwrap();
    assert_eq!(count(), 2);
    // Another consumer passes over what it is about to take.
    assert!(matches!(db.transact(|tx| jobs.scan().take_first(tx)), Ok(Some((1, _)))));
    waiting.commit().unwrap();
    assert_eq!(count(), 2);
}

#[test]
fn a_closed_database_takes_no_decision() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.session().unwrap();
    let mut waiting = prepared(&mut session, &accounts, 0, 1);
    db.close().unwrap();
    assert!(matches!(waiting.commit(), Err(Error::Closed)));
    assert!(matches!(waiting.abort(), Err(Error::NoTransaction)));
}

/// An index that is made meanwhile waits for the decision, and has the row.
#[test]
fn an_index_waits_for_the_decision() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(5)).unwrap();
    let mut waiting = session.prepare().unwrap();
    thread::scope(|scope| {
        let building =
            scope.spawn(|| db.create_index("account", "by_visits", [("visits", Order::Ascending)]));
        waiting.commit().unwrap();
        building.join().unwrap().unwrap();
    });
    let by_visits = accounts.index::<u32>("by_visits").unwrap();
    assert_eq!(db.transact(|tx| by_visits.scan().count(tx)).unwrap(), 3);
}
