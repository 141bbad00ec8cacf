//! Transactions that stay open between calls.

use ensilo::{AbortReason, Error};

use crate::{Visits, account, with_accounts};

#[test]
fn statements_of_several_calls_commit_together() {
    let (db, accounts) = with_accounts(1);
    let mut tx = db.begin().unwrap();
    tx.with(|tx| accounts.insert(tx, &account(1))).unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), None);
    assert!(matches!(tx.with(|tx| accounts.insert(tx, &account(1))), Err(Error::DuplicateKey(_))));
    tx.with(|tx| accounts.update(tx, 1, |visits: &mut Visits| visits.visits = 3)).unwrap();
    tx.commit().unwrap();
    assert_eq!(db.transact(|tx| accounts.get_columns(tx, 1)).unwrap(), Some(Visits { visits: 3 }));
}

#[test]
fn use_after_the_end_is_an_error() {
    let (db, accounts) = with_accounts(1);
    for end in [ensilo::Interactive::commit, ensilo::Interactive::rollback] {
        let mut tx = db.begin().unwrap();
        end(&mut tx).unwrap();
        assert!(!tx.is_open());
        assert!(matches!(tx.with(|tx| accounts.get(tx, 0)), Err(Error::UseAfterCommit)));
        assert!(matches!(tx.commit(), Err(Error::UseAfterCommit)));
        assert!(matches!(tx.rollback(), Err(Error::UseAfterCommit)));
    }
}

#[test]
fn rolling_back_and_dropping_undo() {
    let (db, accounts) = with_accounts(1);
    let mut tx = db.begin().unwrap();
    tx.with(|tx| accounts.insert(tx, &account(5))).unwrap();
    tx.rollback().unwrap();
    let mut dropped = db.begin().unwrap();
    dropped.with(|tx| accounts.insert(tx, &account(6))).unwrap();
    drop(dropped);
    assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), 1);
}

#[test]
fn a_conflict_ends_the_transaction() {
    let (db, accounts) = with_accounts(2);
    let visit = |id: u32| db.transact(|tx| accounts.update(tx, id, |visits: &mut Visits| visits.visits += 1));
    let mut tx = db.begin().unwrap();
    tx.with(|tx| accounts.get(tx, 0)).unwrap();
    visit(0).unwrap();
    tx.with(|tx| accounts.update(tx, 1, |visits: &mut Visits| visits.visits = 9)).unwrap();
    let error = tx.commit().unwrap_err();
    assert!(matches!(&error, Error::Aborted(abort) if abort.reason() == AbortReason::ReadValidation));
    assert!(matches!(&error, Error::Aborted(abort) if abort.table() == Some("account")));
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
}

#[test]
fn two_of_one_thread_are_serializable() {
    let (db, accounts) = with_accounts(2);
    let (mut one, mut two) = (db.begin().unwrap(), db.begin().unwrap());
    // Write skew: each reads what the other writes.
    for (tx, read, write) in [(&mut one, 0, 1), (&mut two, 1, 0)] {
        tx.with(|tx| {
            accounts.get(tx, read)?;
            accounts.update(tx, write, |visits: &mut Visits| visits.visits += 1)
        })
        .unwrap();
    }
    one.commit().unwrap();
    assert!(matches!(two.commit(), Err(Error::Aborted(_))));
}

#[test]
fn an_open_transaction_stops_nobody_and_ends_after_the_database() {
    let (db, accounts) = with_accounts(1);
    let mut open = db.begin().unwrap();
    open.with(|tx| accounts.get(tx, 0)).unwrap();
    let before = db.statistics().unwrap().epochs.global_epoch;
    while db.statistics().unwrap().epochs.global_epoch < before + 10 {
        db.transact(|tx| accounts.update(tx, 0, |visits: &mut Visits| visits.visits += 1)).unwrap();
    }
    assert!(db.statistics().unwrap().epochs.oldest_pin.unwrap() <= before);
    db.close().unwrap();
    assert!(matches!(open.with(|tx| accounts.get(tx, 0)), Err(Error::Closed)));
    assert!(matches!(open.commit(), Err(Error::Closed)));
}
