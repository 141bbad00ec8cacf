//! Sessions: transactions that stay open between calls, on any thread.

use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Error, NestedCall, Order, Result, Text};

use super::{
    Account, Database, LOCKS, Session, Table, Visits, account, interfere, is_refused, with_accounts,
};

fn visit(db: &Database, accounts: &Table<Account>, id: u32) {
    db.transact(|tx| accounts.update(tx, id, |visits: &mut Visits| visits.visits += 1)).unwrap();
}

#[test]
fn without_an_open_transaction_everything_but_a_beginning_is_an_error() {
    let (db, accounts) = with_accounts(1);
    let mut session = db.session().unwrap();
    for end in [Session::commit, Session::rollback] {
        assert!(!session.is_open());
        assert!(matches!(accounts.get(&mut session, 0), Err(Error::NoTransaction)));
        assert!(matches!(session.with(|tx| accounts.get(tx, 0)), Err(Error::NoTransaction)));
        assert!(matches!(session.commit(), Err(Error::NoTransaction)));
        assert!(matches!(session.rollback(), Err(Error::NoTransaction)));
        session.begin().unwrap();
        assert!(matches!(session.begin(), Err(Error::NestedRequest(NestedCall::InOpenSession))));
        assert!(matches!(session.transact(|_| Ok(())), Err(Error::NestedRequest(NestedCall::InOpenSession))));
        assert!(matches!(
            session.read_stale(|_| Ok(())),
            Err(Error::NestedRequest(NestedCall::InOpenSession))
        ));
        accounts.get(&mut session, 0).unwrap();
        end(&mut session).unwrap();
    }
}

#[test]
fn rolling_back_and_dropping_undo() {
    let (db, accounts) = with_accounts(1);
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(5)).unwrap();
    session.rollback().unwrap();
    session.begin().unwrap();
    accounts.insert(&mut session, &account(6)).unwrap();
    drop(session);
    assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), 1);
}

/// A reader does not see it, or is refused where what was written is locked for reading too. A snapshot is never refused.
#[test]
fn a_row_of_an_open_session_is_shown_to_nobody() {
    let (db, accounts) = with_accounts(1);
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(1)).unwrap();
    let read = db.request().retries(0).transact(|tx| accounts.get(tx, 1));
    assert!(if LOCKS { is_refused(&read) } else { read.as_ref().is_ok_and(Option::is_none) }, "{read:?}");
    assert_eq!(db.read_stale(|tx| accounts.get(tx, 1)).unwrap(), None);
    session.commit().unwrap();
}

#[test]
fn a_found_row_is_good_for_the_transaction_that_has_found_it() {
    let (db, accounts) = with_accounts(2);
    let (mut one, mut two) = (db.begin().unwrap(), db.begin().unwrap());
    let found = accounts.find(&mut one, 1).unwrap().unwrap();
    found.update(&mut one, |visits: &mut Visits| visits.visits = 7).unwrap();
    assert!(matches!(found.row(&mut two), Err(Error::NoTransaction)));
    one.commit().unwrap();
    one.begin().unwrap();
    assert!(matches!(found.set(&mut one, Visits { visits: 8 }), Err(Error::NoTransaction)));
    assert!(matches!(found.delete(&mut one), Err(Error::NoTransaction)));
    assert_eq!(accounts.get_columns(&mut one, 1).unwrap(), Some(Visits { visits: 7 }));
}

#[test]
fn a_panic_in_a_statement_undoes_the_transaction() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(5)).unwrap();
    let panics = || accounts.update(&mut session, 1, |_: &mut Visits| panic!("on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert!(!session.is_open());
    session.begin().unwrap();
    assert_eq!(accounts.scan().count(&mut session).unwrap(), 2);
}

#[test]
fn cancelling_ends_what_is_under_way_and_nothing_that_begins_later() {
    let (db, accounts) = with_accounts(600);
    let mut session = db.session().unwrap();
    let token = session.cancel_token();
    assert!(!token.cancel());
    session.begin().unwrap();
    accounts.insert(&mut session, &account(1000)).unwrap();
    assert!(
        thread::spawn({
            let token = token.clone();
            move || token.cancel()
        })
        .join()
        .unwrap()
    );
    assert!(matches!(accounts.get(&mut session, 0), Err(Error::Cancelled)));
    assert!(!session.is_open());
    session.begin().unwrap();
    assert_eq!(accounts.get(&mut session, 1000).unwrap(), None);
    assert!(token.cancel());
    assert!(matches!(session.commit(), Err(Error::Cancelled)));
    // In the middle of a scan.
    session.begin().unwrap();
    let mut seen = 0;
    let scanned = accounts.scan().for_each(&mut session, |_, _| {
        seen += 1;
        token.cancel();
    });
    assert!(matches!(scanned, Err(Error::Cancelled)));
    assert!((1..600).contains(&seen), "{seen} rows");
    // A request, which its closure does not save by looking away.
    let mut attempts = 0;
    let outcome = session.transact(|tx| {
        attempts += 1;
        token.cancel();
        Ok(accounts.get(tx, 0).is_ok())
    });
    assert!(matches!(outcome, Err(Error::Cancelled)));
    assert_eq!((attempts, session.transact(|tx| accounts.contains(tx, 0)).unwrap()), (1, true));
}

/// Runs a scan in a session, and calls back at every row.
type ScanOf<'a> = dyn FnMut(&mut Session, &mut dyn FnMut()) -> Result<()> + 'a;

#[test]
fn every_kind_of_scan_is_stopped() {
    let (db, accounts) = with_accounts(1500);
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    let dynamic = db.open_dynamic_table("account").unwrap();
    let mut session = db.session().unwrap();
    let token = session.cancel_token();
    let mut stopped = |scan: &mut ScanOf<'_>| {
        session.begin().unwrap();
        let mut seen = 0;
        let outcome = scan(&mut session, &mut || {
            seen += 1;
            token.cancel();
        });
        assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?} after {seen} rows");
        assert!((1..1500).contains(&seen), "{seen} rows");
    };
    stopped(&mut |session, each| accounts.scan().for_each_found(session, |_, _| each()));
    stopped(&mut |session, each| by_owner.scan().for_each(session, |_, _| each()));
    stopped(&mut |session, each| by_owner.scan().for_each_primary_key(session, |_| each()));
    stopped(&mut |session, each| dynamic.scan().for_each(session, |_, _| each()));
    stopped(&mut |session, each| dynamic.scan().by_index("by_owner")?.for_each(session, |_, _| each()));
}

#[test]
fn a_deadline_ends_what_goes_on_after_it() {
    let (db, accounts) = with_accounts(1);
    let mut session = db.begin().unwrap();
    session.set_deadline(Some(Instant::now() + Duration::from_hours(1)));
    accounts.insert(&mut session, &account(5)).unwrap();
    session.set_deadline(Some(Instant::now()));
    assert!(matches!(accounts.get(&mut session, 0), Err(Error::DeadlineExceeded)));
    assert!(!session.is_open());
    assert!(matches!(session.begin(), Err(Error::DeadlineExceeded)));
    assert!(matches!(session.transact(|tx| accounts.get(tx, 0)), Err(Error::DeadlineExceeded)));
    session.set_deadline(None);
    session.begin().unwrap();
    assert_eq!(accounts.get(&mut session, 5).unwrap(), None);
    session.set_deadline(Some(Instant::now()));
    assert!(matches!(session.commit(), Err(Error::DeadlineExceeded)));
}

#[test]
fn an_open_transaction_stops_nobody_and_ends_after_the_database() {
    let (db, accounts) = with_accounts(2);
    let mut open = db.begin().unwrap();
    accounts.get(&mut open, 0).unwrap();
    let before = db.statistics().unwrap().epochs.global_epoch;
    // What it has read, where that is not locked.
    let changed = u32::from(LOCKS);
    while db.statistics().unwrap().epochs.global_epoch < before + 10 {
        visit(&db, &accounts, changed);
    }
    assert!(db.statistics().unwrap().epochs.oldest_pin.unwrap() <= before);
    let mut idle = db.session().unwrap();
    db.close().unwrap();
    assert!(matches!(accounts.get(&mut open, 0), Err(Error::Closed)));
    assert!(matches!(open.commit(), Err(Error::Closed)));
    assert!(matches!(idle.begin(), Err(Error::Closed)));
    assert!(matches!(idle.transact(|_| Ok(())), Err(Error::Closed)));
    assert!(matches!(db.session(), Err(Error::Closed)));
}

#[test]
fn a_thread_with_an_open_transaction_cannot_change_the_catalog() {
    let (db, accounts) = with_accounts(1);
    let create = |name| db.create_index("account", name, [("visits", Order::Ascending)]);
    let mut session = db.begin().unwrap();
    accounts.get(&mut session, 0).unwrap();
    assert!(matches!(create("a"), Err(Error::NestedRequest(_))));
    // Another thread goes on with it, and ends it there.
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            accounts.get(&mut session, 0).unwrap();
            assert!(matches!(create("b"), Err(Error::NestedRequest(_))));
            session.commit().unwrap();
            create("c").unwrap();
        });
        other.join().unwrap();
    });
    create("d").unwrap();
    session.begin().unwrap();
    assert!(matches!(create("e"), Err(Error::NestedRequest(_))));
    session.rollback().unwrap();
    let nested = session.transact(|_| create("f"));
    assert!(matches!(nested, Err(Error::NestedRequest(_))));
    create("g").unwrap();
}

#[test]
fn idle_sessions_have_no_workers() {
    let (db, accounts) = with_accounts(10);
    let mut sessions: Vec<_> = (0..1000).map(|_| db.session().unwrap()).collect();
    let workers = db.statistics().unwrap().epochs.workers;
    for session in &mut sessions {
        session.transact(|tx| accounts.get(tx, 1)).unwrap();
        session.begin().unwrap();
        accounts.update(session, 1, |visits: &mut Visits| visits.visits += 1).unwrap();
        session.commit().unwrap();
    }
    assert!(db.statistics().unwrap().epochs.workers <= workers + 1);
    assert_eq!(db.transact(|tx| accounts.get_columns(tx, 1)).unwrap(), Some(Visits { visits: 1000 }));
}

#[test]
fn an_async_task_carries_a_session_over_an_await() {
    fn assert_send<F: Future + Send>(future: F) -> F {
        future
    }
    let (db, accounts) = with_accounts(1);
    let (session_db, session_accounts) = (db.clone(), accounts.clone());
    let task = assert_send(async move {
        let mut session = session_db.begin()?;
        session_accounts.insert(&mut session, &account(1))?;
        std::future::ready(()).await;
        session_accounts.insert(&mut session, &account(2))?;
        session.commit()
    });
    let outcome = thread::spawn(move || super::submit::block_on(task)).join().unwrap();
    outcome.unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), 3);
}

#[test]
fn an_abort_that_a_closure_swallows_is_told_by_the_commit() {
    let (db, accounts) = with_accounts(2);
    let mut session = db.begin().unwrap();
    let overtaken = session.with(|tx| {
        let swallowed = interfere(&db, &accounts, tx)
            .and_then(|found| found.update(tx, |visits: &mut Visits| visits.visits = 9));
        let again = accounts.update(tx, 0, |visits: &mut Visits| visits.visits = 9);
        Ok(swallowed.is_err() || again.is_err())
    });
    assert!(overtaken.is_ok());
    assert!(matches!(session.commit(), Err(Error::Aborted(_))));
    assert!(matches!(session.commit(), Err(Error::NoTransaction)));
}

#[test]
fn a_statement_without_anything_to_do_still_needs_a_transaction() {
    let (db, accounts) = with_accounts(3);
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    let mut session = db.session().unwrap();
    #[allow(clippy::reversed_empty_ranges, reason = "a range with nothing in it")]
    let empty = accounts.range(5..3);
    let outcomes = [
        empty.collect(&mut session).map(drop),
        accounts.scan().limit(0).count(&mut session).map(drop),
        by_owner.scan().limit(0).count(&mut session).map(drop),
        by_owner.scan().limit(0).collect(&mut session).map(drop),
        accounts.insert_many(&mut session, []).map(drop),
        accounts.get_many(&mut session, &[]).map(drop),
    ];
    for (number, outcome) in outcomes.into_iter().enumerate() {
        assert!(matches!(outcome, Err(Error::NoTransaction)), "{number}: {outcome:?}");
    }
}

#[test]
fn rows_are_inserted_all_or_none_also_when_the_session_is_to_stop() {
    let (db, accounts) = with_accounts(1);
    let rows: Vec<_> = (1..500).map(account).collect();
    let mut session = db.begin().unwrap();
    let token = session.cancel_token();
    let cancelled = accounts.insert_many(&mut session, rows.iter().inspect(|_| _ = token.cancel()));
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    session.begin().unwrap();
    session.set_deadline(Some(Instant::now()));
    assert!(matches!(accounts.insert_many(&mut session, &rows), Err(Error::DeadlineExceeded)));
    session.set_deadline(None);
    session.begin().unwrap();
    let panics = rows.iter().inspect(|row| assert!(row.id < 3, "on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(|| accounts.insert_many(&mut session, panics))).is_err());
    if session.is_open() {
        session.commit().unwrap();
    }
    let duplicate = [account(7), account(0)];
    session.begin().unwrap();
    assert!(matches!(accounts.insert_many(&mut session, &duplicate), Err(Error::DuplicateKey(_))));
    session.commit().unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), 1);
}

#[test]
fn another_sessions_end_is_an_error_like_others() {
    let (db, accounts) = with_accounts(2);
    let (mut session, mut stopped) = (db.begin().unwrap(), db.begin().unwrap());
    stopped.set_deadline(Some(Instant::now()));
    let passed_on = session.with(|_| accounts.get(&mut stopped, 1));
    assert!(matches!(passed_on, Err(Error::DeadlineExceeded)));
    assert!(session.is_open());
}

#[test]
fn looking_through_an_index_is_stopped_like_a_scan() {
    let (db, accounts) = with_accounts(1500);
    let dynamic = db.open_dynamic_table("account").unwrap();
    let mut session = db.session().unwrap();
    let many: Vec<u32> = (0..1500).collect();
    let mut looked = 0;
    session.begin().unwrap();
    let token = session.cancel_token();
    let stopped = accounts.get_columns_many::<Visits>(&mut session, &many, |_, _| {
        looked += 1;
        token.cancel();
    });
    assert!(matches!(stopped, Err(Error::Cancelled)) && looked < 1500, "{stopped:?} after {looked}");
    looked = 0;
    session.begin().unwrap();
    let token = session.cancel_token();
    let stopped = accounts.find_many(&mut session, &many, |_, _| {
        looked += 1;
        token.cancel();
    });
    assert!(matches!(stopped, Err(Error::Cancelled)) && looked < 1500, "{stopped:?} after {looked}");
    // By a deadline that passes while it goes on: sooner or later it is within the comparison.
    let mut deadline = Duration::from_micros(1);
    loop {
        session.set_deadline(None);
        session.begin().unwrap();
        session.set_deadline(Some(Instant::now() + deadline));
        match dynamic.check_index(&mut session, "by_owner") {
            Ok(check) => break assert!(check.is_whole()),
            Err(error) => assert!(matches!(error, Error::DeadlineExceeded), "{error}"),
        }
        deadline *= 2;
    }
    session.set_deadline(None);
    session.rollback().unwrap();
    let snapshot = session.read_stale(|_| Ok(token.cancel()));
    assert!(matches!(snapshot, Err(Error::Cancelled)));
}
