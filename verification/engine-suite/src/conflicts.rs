//! Sessions and requests that meet.

use std::thread;

use ensilo::generic::{Database, Session, Table, Transaction};
use ensilo::{Engine, Error, Result, Value};

use crate::rows::{Account, Visits, account, with_accounts_on};

fn visit<E: Engine>(tx: &mut Transaction<'_, E>, accounts: &Table<Account, E>, id: u32) -> Result<()> {
    accounts.update(tx, id, |row: &mut Visits| row.visits += 1)
}

fn visits<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>, id: u32) -> u32 {
    db.transact(|tx| accounts.get_columns::<Visits>(tx, id)).unwrap().unwrap().visits
}

/// Returns whether a transaction has committed. Nothing but a conflict may have kept it from that.
fn has_committed(outcome: Result<()>) -> bool {
    assert!(matches!(outcome, Ok(()) | Err(Error::Aborted(_))), "{outcome:?}");
    outcome.is_ok()
}

/// Requests on several threads that change the same two rows all commit, and none is lost.
pub fn requests_of_several_threads_lose_no_update<E: Engine>() {
    const TIMES: u32 = 200;
    let (db, accounts) = with_accounts_on::<E>(2);
    let visit_both = || db.transact(|tx| (0..2).try_for_each(|id| visit(tx, &accounts, id))).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..TIMES).for_each(|_| visit_both()));
        }
    });
    assert_eq!([0, 1].map(|id| visits(&db, &accounts, id)), [3 * TIMES; 2]);
}

/// Of a session that has written a row and a request of the same thread that writes it too exactly one commits.
/// Afterwards a session has the row to itself.
pub fn of_a_session_and_a_request_that_write_one_row_one_commits<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(1);
    let mut open = db.begin().unwrap();
    open.with(|tx| visit(tx, &accounts, 0)).unwrap();
    let request = db.request().retries(3).transact(|tx| visit(tx, &accounts, 0));
    let committed = [request, open.commit()].map(has_committed);
    assert_ne!(committed[0], committed[1], "whether the request and the session have committed");
    assert_eq!(visits(&db, &accounts, 0), 1);
    let mut open = db.begin().unwrap();
    open.with(|tx| visit(tx, &accounts, 0)).unwrap();
    open.commit().unwrap();
    assert_eq!(visits(&db, &accounts, 0), 2);
}

/// A request that is submitted runs on a thread of the database and sees what was committed before.
pub fn a_submitted_request_reads_what_was_committed<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(2);
    let job = db.submit(move |tx| accounts.scan().count(tx)).unwrap();
    assert_eq!(job.wait().unwrap(), 2);
}

/// Statements that a session makes one by one see each other, and commit together.
pub fn statements_of_several_calls_commit_together<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(1);
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(1)).unwrap();
    assert!(matches!(accounts.insert(&mut session, &account(1)), Err(Error::DuplicateKey(_))));
    accounts.update(&mut session, 1, |visits: &mut Visits| visits.visits = 3).unwrap();
    let dynamic = db.open_dynamic_table("account").unwrap();
    assert!(dynamic.contains(&mut session, &[Value::Unsigned(1)]).unwrap());
    assert_eq!(session.with(|tx| accounts.scan().count(tx)).unwrap(), 2);
    session.commit().unwrap();
    assert_eq!(visits(&db, &accounts, 1), 3);
}

/// A row that a session has inserted is seen by others when the session has committed, and no earlier.
pub fn nobody_sees_a_row_before_its_session_commits<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(1);
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(1)).unwrap();
    let seen = db.request().retries(3).transact(|tx| accounts.get(tx, 1));
    assert!(matches!(seen, Ok(None) | Err(Error::Aborted(_))), "{seen:?}");
    let inserted = has_committed(session.commit()).then(|| account(1));
    assert!(inserted.is_some() || seen.is_ok(), "both have given way");
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), inserted);
}

/// Of two sessions of one thread, each of which reads what the other one writes, at most one commits.
pub fn write_skew_is_rejected<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(2);
    let (mut one, mut two) = (db.begin().unwrap(), db.begin().unwrap());
    let read_and_write = |session: &mut Session<E>, read, written| {
        accounts.get(session, read)?;
        session.with(|tx| visit(tx, &accounts, written))
    };
    let statements = [read_and_write(&mut one, 0, 1), read_and_write(&mut two, 1, 0)];
    let [first, second] = statements;
    let committed =
        [first.and_then(|()| one.commit()), second.and_then(|()| two.commit())].map(has_committed);
    assert_ne!(committed, [true; 2], "both have committed");
    assert_eq!([1, 0].map(|id| visits(&db, &accounts, id)), committed.map(u32::from));
}

/// A session that is passed from thread to thread goes on with its transaction.
pub fn a_session_goes_on_in_another_thread<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(1);
    let mut session = db.begin().unwrap();
    for id in 1..20 {
        accounts.insert(&mut session, &account(id)).unwrap();
        let accounts = &accounts;
        session = thread::scope(|scope| {
            let other = scope.spawn(move || {
                assert!(accounts.contains(&mut session, id).unwrap());
                session
            });
            other.join().unwrap()
        });
    }
    session.commit().unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), 20);
}
