//! Batches of requests, and keys that are loaded in advance.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

use ensilo::{Error, Text, Value};

use super::{
    Account, CONFLICT, Database, Table, Visits, account, change_what_was_read, interfere, with_accounts,
};

fn visits(db: &Database, accounts: &Table<Account>, id: u32) -> u32 {
    db.transact(|tx| accounts.get_columns::<Visits>(tx, id)).unwrap().unwrap().visits
}

#[test]
fn results_come_in_the_order_of_the_requests() {
    let (db, accounts) = with_accounts(500);
    let ids: Vec<u32> = (0..1000).map(|number| number * 7 % 600).collect();
    let results = db.transact_many(
        &ids,
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| Ok((id, accounts.get(tx, id)?)),
    );
    for (&id, result) in ids.iter().zip(results.unwrap()) {
        assert_eq!(result.unwrap(), (id, (id < 500).then(|| account(id))));
    }
    let none = db.transact_many(&[(); 0], |(), _| unreachable!(), |_, ()| Ok(()));
    assert!(none.unwrap().is_empty());
}

#[test]
fn each_request_sees_those_before_it() {
    let (db, accounts) = with_accounts(1);
    let results = db.transact_many(
        &[(); 100],
        |(), prefetch| prefetch.row(&accounts, 0),
        |tx, ()| {
            accounts.update(tx, 0, |row: &mut Visits| {
                row.visits += 1;
                row.visits
            })
        },
    );
    let seen: Vec<u32> = results.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
}

#[test]
fn the_error_of_one_request_leaves_the_others_as_they_are() {
    let (db, accounts) = with_accounts(60);
    let ids: Vec<u32> = (0..60).collect();
    let results = db.transact_many(
        &ids,
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| {
            accounts.update(tx, id, |row: &mut Visits| row.visits += 1)?;
            if id % 3 == 0 { Err(Error::rollback("not this one")) } else { Ok(()) }
        },
    );
    for (&id, result) in ids.iter().zip(results.unwrap()) {
        assert_eq!(result.is_ok(), id % 3 != 0);
        assert_eq!(visits(&db, &accounts, id), u32::from(id % 3 != 0));
    }
}

#[test]
fn each_request_is_run_again_by_itself() {
    let (db, accounts) = with_accounts(3);
    let (mut runs, mut reasons) = ([0; 3], Vec::new());
    let request = db.request().on_abort(|abort| reasons.push(abort.reason()));
    let results = request.transact_many(
        &[0, 1, 2],
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| {
            runs[id as usize] += 1;
            if id == 1 && runs[1] <= 2 {
                interfere(&db, &accounts, tx)?;
                accounts.update(tx, 0, |row: &mut Visits| row.visits += 10)?;
            }
            accounts.update(tx, id, |row: &mut Visits| row.visits += 10)
        },
    );
    assert!(results.unwrap().iter().all(Result::is_ok));
    assert_eq!((runs, reasons), ([1, 3, 1], vec![CONFLICT; 2]));
    assert_eq!([0, 1, 2].map(|id| visits(&db, &accounts, id)), [12, 10, 10]);
}

#[test]
fn a_request_that_uses_up_its_retries_ends_alone() {
    let (db, accounts) = with_accounts(2);
    let results = db.request().retries(1).transact_many(
        &[0, 1],
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| {
            if id == 0 {
                interfere(&db, &accounts, tx)?;
                accounts.update(tx, 0, |row: &mut Visits| row.visits += 10)?;
            }
            accounts.update(tx, 1, |row: &mut Visits| row.visits += 1)
        },
    );
    let results = results.unwrap();
    assert!(matches!(&results[0], Err(Error::Aborted(abort)) if abort.reason() == CONFLICT), "{results:?}");
    assert!(results[1].is_ok());
    assert_eq!(visits(&db, &accounts, 1), 1);
}

/// What is loaded counts as read by nobody: who changes it is in no conflict.
#[test]
fn a_row_that_was_only_named_may_be_changed_by_others() {
    let (db, accounts) = with_accounts(2);
    let mut aborts = 0;
    let results = db.request().on_abort(|_| aborts += 1).transact_many(
        &[()],
        |(), prefetch| {
            prefetch.row(&accounts, 0);
            prefetch.row(&accounts, 9);
        },
        |tx, ()| {
            // From a session, whose thread does not matter.
            let mut other = db.begin()?;
            accounts.update(&mut other, 0, |row: &mut Visits| row.visits = 5)?;
            accounts.insert(&mut other, &account(9))?;
            other.commit()?;
            accounts.update(tx, 1, |row: &mut Visits| row.visits = 7)
        },
    );
    assert!(results.unwrap()[0].is_ok());
    assert_eq!((aborts, visits(&db, &accounts, 0), visits(&db, &accounts, 1)), (0, 5, 7));
}

/// The hint may be wrong in any way.
#[test]
fn keys_that_lead_nowhere_do_no_harm() {
    let (db, accounts) = with_accounts(10);
    let (other_db, other_accounts) = with_accounts(10);
    let dropped: Table<Account> = db.create_table_named("dropped").unwrap();
    db.drop_table("dropped").unwrap();
    let by_owner = accounts.index::<(Text<16>, std::cmp::Reverse<i64>)>("by_owner").unwrap();
    let by_email = accounts.index::<Option<String>>("by_email").unwrap();
    let dynamic = db.open_dynamic_table("account").unwrap();
    let results = db.transact_many(
        &[0, 1, 2, 3],
        |&id, prefetch| {
            (0..2000).for_each(|id| prefetch.row(&accounts, id));
            prefetch.row(&other_accounts, id);
            prefetch.row(&dropped, id);
            prefetch.entry(&by_owner, (Text::new("anna").unwrap(), std::cmp::Reverse(20)));
            prefetch.entry(&by_email, Some("x".repeat(100_000)));
            prefetch.entry(&by_email, None);
            prefetch.dynamic_row(&dynamic, &[Value::from(3u32)]);
            prefetch.dynamic_row(&dynamic, &[Value::Null, Value::from("no key")]);
        },
        |tx, &id| accounts.contains(tx, id),
    );
    assert!(results.unwrap().into_iter().all(|result| result.unwrap()));
    drop(other_db);
    db.prefetch(|prefetch| prefetch.row(&other_accounts, 1)).unwrap();
}

#[test]
fn what_is_prefetched_is_there_for_any_request() {
    let (db, accounts) = with_accounts(100);
    let by_email = accounts.index::<Option<String>>("by_email").unwrap();
    db.prefetch(|prefetch| {
        (0..50).for_each(|id| prefetch.row(&accounts, id));
        prefetch.entry(&by_email, &account(60).email);
    })
    .unwrap();
    thread::scope(|scope| {
        let change = || db.transact(|tx| accounts.update(tx, 3, |row: &mut Visits| row.visits += 1));
        scope.spawn(change).join().unwrap().unwrap();
    });
    let read = db.transact(|tx| Ok((accounts.get_columns::<Visits>(tx, 3)?, accounts.get(tx, 4)?)));
    assert_eq!(read.unwrap(), (Some(Visits { visits: 1 }), Some(account(4))));
}

#[test]
fn what_a_request_has_read_in_a_batch_is_validated() {
    let (db, accounts) = with_accounts(2);
    let mut runs = 0;
    let results = db.transact_many(
        &[()],
        |(), prefetch| prefetch.row(&accounts, 0),
        |tx, ()| {
            runs += 1;
            let seen = accounts.get_columns::<Visits>(tx, 0)?.expect("exists").visits;
            if runs == 1 {
                change_what_was_read(|| {
                    let request = db.request().retries(0);
                    request.transact(|tx| accounts.update(tx, 0, |row: &mut Visits| row.visits += 1))
                });
            }
            accounts.update(tx, 1, |row: &mut Visits| row.visits = seen)
        },
    );
    assert!(results.unwrap()[0].is_ok());
    // Who has run once comes before the other in the serial order.
    assert_eq!(visits(&db, &accounts, 1), runs - 1);
}

#[test]
fn a_panic_leaves_what_was_committed_before_it() {
    let (db, accounts) = with_accounts(3);
    let count_up = |id: u32| {
        db.transact_many(
            &[0, id, 2],
            |&id, prefetch| prefetch.row(&accounts, id),
            |tx, &id| {
                accounts.update(tx, id, |row: &mut Visits| row.visits += 1)?;
                assert_ne!(id, 1, "not this one");
                Ok(())
            },
        )
    };
    assert!(catch_unwind(AssertUnwindSafe(|| count_up(1))).is_err());
    assert_eq!([0, 1, 2].map(|id| visits(&db, &accounts, id)), [1, 0, 0]);
    let named = |_: &u32, _: &mut ensilo::generic::Prefetch<super::Engine>| panic!("no key");
    let nothing = || db.transact_many(&[1], named, |_, _| Ok(()));
    let _ = catch_unwind(AssertUnwindSafe(nothing));
    assert!(count_up(0).unwrap().iter().all(Result::is_ok));
}

#[test]
fn a_batch_within_a_request_is_refused() {
    let (db, accounts) = with_accounts(1);
    let nothing = |db: &Database| db.transact_many(&[()], |(), _| (), |_, ()| Ok(())).map(|_| ());
    db.transact(|_| {
        assert!(matches!(nothing(&db), Err(Error::NestedRequest(_))));
        assert!(matches!(db.prefetch(|_| ()), Err(Error::NestedRequest(_))));
        Ok(())
    })
    .unwrap();
    let results = db.transact_many(&[()], |(), _| (), |_, ()| nothing(&db));
    assert!(matches!(results.unwrap()[0], Err(Error::NestedRequest(_))));
    drop(accounts);
}

#[test]
fn requests_behind_the_end_of_the_database_are_refused() {
    let (db, accounts) = with_accounts(3);
    let results = db.transact_many(
        &[0, 1, 2],
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| {
            let found = accounts.contains(tx, id)?;
            if id == 1 {
                thread::scope(|scope| scope.spawn(|| db.close()).join().unwrap())?;
            }
            Ok(found)
        },
    );
    let results = results.unwrap();
    assert!(matches!(results[0], Ok(true)) && matches!(results[2], Err(Error::Closed)), "{results:?}");
    let nothing = db.transact_many(&[()], |(), _| (), |_, ()| Ok(()));
    assert!(matches!(nothing, Err(Error::Closed)));
    assert!(matches!(db.prefetch(|_| ()), Err(Error::Closed)));
}

#[test]
fn a_session_runs_a_batch_until_it_is_cancelled() {
    let (db, accounts) = with_accounts(4);
    let mut session = db.session().unwrap();
    let token = session.cancel_token();
    let results = session.request().transact_many(
        &[0, 1, 2, 3],
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| {
            if id == 2 {
                token.cancel();
            }
            accounts.update(tx, id, |row: &mut Visits| row.visits += 1)
        },
    );
    let results = results.unwrap();
    assert!(results[..2].iter().all(Result::is_ok), "{results:?}");
    assert!(results[2..].iter().all(|result| matches!(result, Err(Error::Cancelled))), "{results:?}");
    assert_eq!([0, 1, 2, 3].map(|id| visits(&db, &accounts, id)), [1, 1, 0, 0]);
    session.set_deadline(Some(Instant::now()));
    let late = session.request().transact_many(&[()], |(), _| (), |_, ()| Ok(()));
    assert!(matches!(late, Err(Error::DeadlineExceeded)), "{late:?}");
    session.set_deadline(None);
    session.begin().unwrap();
    let nested = session.request().transact_many(&[()], |(), _| (), |_, ()| Ok(()));
    assert!(matches!(nested, Err(Error::NestedRequest(_))));
}

/// The epochs are those that make the transactions stored.
#[test]
fn a_batch_that_is_visible_has_the_epochs_to_wait_for() {
    let (db, accounts) = with_accounts(3);
    let results = db.request().transact_many_with_epoch(
        &[0, 1, 2],
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| {
            if id == 1 {
                return Err(Error::rollback("not this one"));
            }
            accounts.update(tx, id, |row: &mut Visits| row.visits += 10)?;
            Ok(id)
        },
    );
    let results = results.unwrap();
    assert!(matches!(&results[1], Err(Error::User(_))), "{results:?}");
    let epochs: Vec<(u32, u64)> = [0, 2].iter().map(|&at| *results[at].as_ref().unwrap()).collect();
    assert!(epochs[0].0 == 0 && epochs[1].0 == 2 && epochs[0].1 > 0, "{epochs:?}");
    assert!(epochs[0].1 <= epochs[1].1, "{epochs:?}");
    assert_eq!([0, 1, 2].map(|id| visits(&db, &accounts, id)), [10, 0, 10]);
}
