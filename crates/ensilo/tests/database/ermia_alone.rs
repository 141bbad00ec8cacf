//! What is of ERMIA's engine alone: its level without the safety net, and what it cannot do.

use std::thread;

use ensilo::Error;
use ensilo::ermia::{Ermia, Isolation, SnapshotIsolation};
use ensilo::variants::Failpoint;

use super::every_engine::unique_builds::the_old_row_changes_between_read_and_entry;
use super::opened::with_accounts;
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
    const ROWS: u32 = 100;
    let (db, accounts) = with_accounts(ROWS);
    let delete_and_insert = |id: u32| {
        db.transact(|tx| accounts.delete(tx, id)).unwrap();
        db.transact(|tx| accounts.insert(tx, &account(id))).unwrap();
    };
    let most = db.read_stale(|tx| {
        let rounds = (0..40).map(|_| {
            // In a thread of its own: this one has the snapshot.
            thread::scope(|scope| {
                _ = scope.spawn(|| (0..10 * ROWS).for_each(|at| delete_and_insert(at % ROWS)))
            });
            db.statistics().unwrap().memory.deleted_records
        });
        let most = rounds.max();
        assert_eq!(accounts.scan().count(tx)?, ROWS as usize);
        Ok(most)
    });
    // A snapshot is a long reader once 4,096 have committed in one epoch, or a fifth epoch begins, however long epochs take.
    assert!(most.unwrap() < Some(200 * u64::from(ROWS)), "of 400 deletions of each row");
}
