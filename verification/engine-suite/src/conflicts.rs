//! Sessions and requests that meet.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::generic::{Database, Session, Table, Transaction};
use ensilo::{Engine, Error, Options, Result, Value};

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

/// A stale read shows all that was committed earlier than its bound before the call, and than it says itself.
pub fn stale_reads_show_all_that_is_older_than_their_bound<E: Engine>() {
    const READS: u32 = 50;
    if !E::SNAPSHOTS {
        return;
    }
    // Snapshots come by themselves once in a second.
    let db = Options::default().in_memory_with::<E>().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let (returned, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    // What has to be shown of what had returned at this moment, so long ago.
    let older_than = |moment: Instant, age: Duration| {
        let until = moment.checked_sub(age).unwrap_or(moment);
        returned.lock().unwrap().partition_point(|at| *at < until) as u32
    };
    let read = |bound: Duration| {
        let called = Instant::now();
        let request = db.request().max_staleness(bound);
        let (shown, asked, age) = request
            .read_stale(|tx| {
                let row = accounts.get_columns::<Visits>(tx, 0)?;
                Ok((row.map_or(0, |row| row.visits), Instant::now(), tx.staleness()))
            })
            .unwrap();
        assert!(shown >= older_than(called, bound), "{shown} of {}", older_than(called, bound));
        assert!(shown >= older_than(asked, age), "{shown} of {}, {age:?} old", older_than(asked, age));
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            db.transact(|tx| accounts.insert(tx, &Account { visits: 1, ..account(0) })).unwrap();
            returned.lock().unwrap().push(Instant::now());
            while !is_over.load(Ordering::Relaxed) {
                db.transact(|tx| visit(tx, &accounts, 0)).unwrap();
                returned.lock().unwrap().push(Instant::now());
            }
        });
        for bound in [Duration::from_millis(20), Duration::from_secs(5)] {
            let (read, is_over) = (&read, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    read(bound);
                }
            });
        }
        let present = scope.spawn(|| (0..READS).for_each(|_| read(Duration::ZERO)));
        let outcome = present.join();
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

/// Consumers on several threads take each row once, in rising order, while another one inserts them.
pub fn consumers_of_several_threads_take_each_row_once<E: Engine>() {
    const ROWS: u32 = 200;
    const CONSUMERS: u32 = 3;
    let (db, accounts) = with_accounts_on::<E>(0);
    let consume = || {
        let mut arrivals = accounts.watch().unwrap();
        let mut taken = Vec::new();
        loop {
            match db.transact(|tx| accounts.scan().take_first(tx)).unwrap() {
                Some((id, _)) if id >= ROWS => return taken,
                Some((id, _)) => taken.push(id),
                None => assert!(arrivals.wait_timeout(Duration::from_secs(30)).unwrap(), "a lost wake-up"),
            }
        }
    };
    let mut taken = thread::scope(|scope| {
        let consumers: Vec<_> = (0..CONSUMERS).map(|_| scope.spawn(consume)).collect();
        for id in 0..ROWS + CONSUMERS {
            db.transact(|tx| accounts.insert(tx, &account(id))).unwrap();
        }
        let taken: Vec<Vec<u32>> = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
        taken.concat()
    });
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..ROWS));
}

/// A row that a session has taken is passed over by others, and there again when the session has given it up.
pub fn a_row_that_a_session_takes_is_passed_over_until_that_ends<E: Engine>() {
    let (db, accounts) = with_accounts_on::<E>(1);
    let mut session = db.begin().unwrap();
    assert!(accounts.scan().take_first(&mut session).unwrap().is_some());
    let mut arrivals = accounts.watch().unwrap();
    let taken = db.request().retries(3).transact(|tx| accounts.scan().take_first(tx));
    assert!(matches!(taken, Ok(None) | Err(Error::Aborted(_))), "{taken:?}");
    session.rollback().unwrap();
    assert!(arrivals.wait_timeout(Duration::from_secs(30)).unwrap());
    let taken = db.transact(|tx| accounts.scan().take_first(tx)).unwrap();
    assert_eq!(taken.map(|(id, _)| id), Some(0));
}
