//! What is of ERMIA's engine alone: its level without the safety net, and what it cannot do.

use ensilo::Error;
use ensilo::ermia::{Ermia, Isolation, SnapshotIsolation};
use ensilo::variants::Failpoint;

use super::every_engine::{unique_builds::the_old_row_changes_between_read_and_entry, with_accounts};
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
