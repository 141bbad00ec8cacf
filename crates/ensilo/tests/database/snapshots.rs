//! Snapshot requests.

use std::time::Duration;

use ensilo::{AbortReason, Database, Error, Order};

use crate::{Account, Visits, account, with_accounts};

/// Waits until a new snapshot shows everything that is committed now.
pub(crate) fn wait_for_snapshot(db: &Database) {
    let now = db.statistics().unwrap().epochs.global_epoch;
    while db.statistics().unwrap().epochs.snapshot_epoch <= now {
        std::thread::yield_now();
    }
}

#[test]
fn a_snapshot_shows_the_past_while_others_write() {
    let (db, accounts) = with_accounts(3);
    wait_for_snapshot(&db);
    db.snapshot(|snapshot| {
        std::thread::scope(|scope| {
            let change = || {
                db.transact(|tx| {
                    accounts.delete(tx, 1)?;
                    accounts.insert(tx, &account(7))?;
                    accounts.update(tx, 0, |visits: &mut Visits| visits.visits = 99)
                })
            };
            scope.spawn(change).join().unwrap().unwrap();
        });
        assert_eq!(accounts.scan().rows(snapshot)?, [account(0), account(1), account(2)]);
        assert_eq!(accounts.get(snapshot, 7)?, None);
        assert_eq!(accounts.get_many(snapshot, &[1, 7])?, [Some(account(1)), None]);
        let by_email = accounts.index::<Option<String>>("by_email")?;
        assert_eq!(by_email.get(snapshot, &account(1).email)?, Some(account(1)));
        assert_eq!(by_email.scan().count(snapshot)?, 3);
        let found = accounts.find(snapshot, 0)?.expect("exists");
        assert_eq!(found.columns::<Visits>(snapshot)?.visits, 0);
        Ok(())
    })
    .unwrap();
    wait_for_snapshot(&db);
    let keys = db.snapshot(|snapshot| accounts.scan().collect(snapshot)).unwrap();
    assert_eq!(keys.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), [0, 2, 7]);
    assert!(db.statistics().unwrap().snapshots >= 2);
}

#[test]
fn an_index_younger_than_the_snapshot_is_not_ready() {
    let millisecond = Duration::from_millis(1);
    // Snapshots far enough apart for the first request to come before the next one.
    let db =
        Database::options().epoch_interval(millisecond * 10).epochs_per_snapshot(50).in_memory().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..3).try_for_each(|id| accounts.insert(tx, &account(id)).map(|_| ()))).unwrap();
    wait_for_snapshot(&db);
    db.create_index("account", "by_visits", [("visits", Order::Ascending)]).unwrap();
    let by_visits = accounts.index::<u32>("by_visits").unwrap();
    let too_early = db.snapshot(|snapshot| by_visits.scan().count(snapshot));
    assert!(matches!(too_early, Err(Error::IndexNotReady(_))));
    assert_eq!(db.transact(|tx| by_visits.scan().count(tx)).unwrap(), 3);
    wait_for_snapshot(&db);
    assert_eq!(db.snapshot(|snapshot| by_visits.scan().count(snapshot)).unwrap(), 3);
}

#[test]
fn a_snapshot_that_grows_too_old_is_told_so() {
    let millisecond = Duration::from_millis(1);
    let db = Database::options()
        .epoch_interval(millisecond)
        .epochs_per_snapshot(2)
        .snapshot_age_limit(millisecond * 10)
        .in_memory()
        .unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(0))).unwrap();
    wait_for_snapshot(&db);
    let result = db.snapshot(|snapshot| {
        loop {
            accounts.get(snapshot, 0)?;
        }
        #[allow(unreachable_code, reason = "gives the closure its type")]
        Ok(())
    });
    let error = result.unwrap_err();
    assert!(
        matches!(&error, Error::Aborted(abort) if abort.reason() == AbortReason::SnapshotTooOld),
        "{error}"
    );
    db.snapshot(|snapshot| accounts.get(snapshot, 0)).unwrap();
}
