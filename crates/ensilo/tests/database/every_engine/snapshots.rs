//! Snapshot requests.

use std::time::Duration;

use ensilo::{AbortReason, Error, Options};

use super::{Account, Database, Visits, account, in_memory, quick, with_accounts};

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
    db.read_stale(|snapshot| {
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
    let keys = db.read_stale(|snapshot| accounts.scan().collect(snapshot)).unwrap();
    assert_eq!(keys.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), [0, 2, 7]);
    assert!(db.statistics().unwrap().snapshots >= 2);
}

#[test]
fn a_table_younger_than_the_snapshot_is_empty_and_so_are_its_indexes() {
    let db = quick();
    let create = || {
        let accounts = db.create_table::<Account>().unwrap();
        db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
        accounts
    };
    let counts = db.read_stale(|snapshot| {
        let accounts = std::thread::scope(|scope| scope.spawn(create).join().unwrap());
        let by_email = accounts.index::<Option<String>>("by_email")?;
        Ok((accounts.scan().count(snapshot)?, by_email.scan().count(snapshot)?))
    });
    assert_eq!(counts.unwrap(), (0, 0));
}

#[test]
fn a_snapshot_that_grows_too_old_is_told_so() {
    let millisecond = Duration::from_millis(1);
    let db = in_memory(
        Options::default()
            .epoch_interval(millisecond)
            .epochs_per_snapshot(2)
            .snapshot_age_limit(millisecond * 10),
    );
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(0))).unwrap();
    wait_for_snapshot(&db);
    let result = db.read_stale(|snapshot| {
        loop {
            accounts.get(snapshot, 0)?;
        }
        #[allow(unreachable_code, reason = "gives the closure its type")]
        Ok(())
    });
    let error = result.unwrap_err();
    let is_too_old = |error: &Error| matches!(error, Error::Aborted(abort) if abort.reason() == AbortReason::SnapshotTooOld);
    assert!(is_too_old(&error), "{error}");
    // The next one may grow too old as well, on a busy machine.
    while let Err(error) = db.read_stale(|snapshot| accounts.get(snapshot, 0)) {
        assert!(is_too_old(&error), "{error}");
    }
}
