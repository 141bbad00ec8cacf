//! What is of ERMIA's engine alone: its level without the safety net, and what it cannot do.

use std::thread;

use ensilo::Error;
use ensilo::ermia::{Ermia, Isolation, SnapshotIsolation};
use ensilo::variants::Failpoint;

use super::every_engine::{unique_builds::the_old_row_changes_between_read_and_entry, with_accounts};
use crate::account;
use crate::failpoints;

/// Snapshot isolation, with a closure at its named places.
#[derive(Copy, Clone, Debug)]
struct Hooked;

impl Isolation for Hooked {
    type Dependencies = <SnapshotIsolation as Isolation>::Dependencies;
    const SERIALIZABLE: bool = false;

    fn reached(place: Failpoint) {
        failpoints::call(place);
    }
}

#[test]
fn a_row_that_changes_while_an_index_is_built_has_one_entry_under_snapshot_isolation() {
    the_old_row_changes_between_read_and_entry::<Ermia<Hooked>>();
}

#[test]
fn a_transaction_cannot_be_prepared_and_stays_open() {
    let (db, accounts) = with_accounts(1);
    let mut session = db.begin().unwrap();
    assert!(accounts.get(&mut session, 0).unwrap().is_some());
    assert!(matches!(session.prepare(), Err(Error::NoTwoPhaseCommit)));
    session.commit().unwrap();
}

/// Over Silo's engine there is room for as many as memory holds.
#[test]
fn a_transaction_for_which_there_is_no_place_is_refused_and_others_go_on() {
    let (db, accounts) = with_accounts(1);
    let mut sessions = Vec::new();
    let refused = loop {
        match db.begin() {
            Ok(session) => sessions.push(session),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, Error::TooManyTransactions), "{refused:?}");
    assert!(sessions.len() > 60_000, "{}", sessions.len());
    assert!(db.transact(|tx| accounts.get(tx, 0)).unwrap().is_some());
    drop(sessions);
    db.begin().unwrap().commit().unwrap();
}

/// Over Silo's engine a deleted row takes memory until no snapshot needs it, and the limit bounds that.
#[test]
fn rows_that_are_deleted_and_inserted_again_beside_a_long_reader_leave_nothing() {
    let (db, accounts) = with_accounts(100);
    let deleted = || db.statistics().unwrap().memory.deleted_records;
    let churn = |times: u32| {
        for at in 0..times {
            let again = |tx: &mut ensilo::generic::Transaction<'_, Ermia>| {
                accounts.delete(tx, at % 100)?;
                accounts.insert(tx, &account(at % 100)).map(drop)
            };
            db.transact(again).unwrap();
        }
    };
    let most = db.read_stale(|tx| {
        assert_eq!(accounts.scan().count(tx)?, 100);
        let most =
            (0..20).map(|_| thread::scope(|scope| scope.spawn(|| churn(2_000)).join().map(|()| deleted())));
        let most = most.map(Result::unwrap).max();
        assert_eq!(accounts.scan().count(tx)?, 100);
        Ok(most)
    });
    // What a transaction has deleted and inserted again, it has updated.
    assert_eq!(most.unwrap(), Some(0));
    let moved = |at: u32| {
        db.transact(|tx| accounts.delete(tx, at))
            .and_then(|_| db.transact(|tx| accounts.insert(tx, &account(at))))
            .map(drop)
    };
    let most = db.read_stale(|_| {
        let rounds = (0..40).map(|_| {
            thread::scope(|scope| scope.spawn(|| (0..1_000).for_each(|at| moved(at % 100).unwrap())).join())
                .unwrap();
            deleted()
        });
        Ok(rounds.max().unwrap())
    });
    assert!(most.unwrap() < 5_000, "of 40,000 deletions of a hundred rows");
}
