//! Snapshot requests.

use std::time::{Duration, Instant};

use ensilo::{AbortReason, Database, Error, Order, Table};

use crate::{Account, Visits, account, quick, with_accounts};

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
    let too_early = db.read_stale(|snapshot| by_visits.scan().count(snapshot));
    assert!(matches!(too_early, Err(Error::IndexNotReady(_))));
    assert_eq!(db.transact(|tx| by_visits.scan().count(tx)).unwrap(), 3);
    wait_for_snapshot(&db);
    assert_eq!(db.read_stale(|snapshot| by_visits.scan().count(snapshot)).unwrap(), 3);
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
    let db = Database::options()
        .epoch_interval(millisecond)
        .epochs_per_snapshot(2)
        .snapshot_age_limit(millisecond * 10)
        .in_memory()
        .unwrap();
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
    assert!(
        matches!(&error, Error::Aborted(abort) if abort.reason() == AbortReason::SnapshotTooOld),
        "{error}"
    );
    db.read_stale(|snapshot| accounts.get(snapshot, 0)).unwrap();
}

/// A database with one account, whose snapshots come by themselves only after a day.
fn without_snapshots_of_its_own() -> (Database, Table<Account>) {
    let db = Database::options()
        .epoch_interval(Duration::from_secs(10))
        .epochs_per_snapshot(10_000)
        .snapshot_age_limit(Duration::from_secs(86_400 * 7))
        .in_memory()
        .unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(0))).unwrap();
    (db, accounts)
}

fn visit(db: &Database, accounts: &Table<Account>) {
    db.transact(|tx| accounts.update(tx, 0, |row: &mut Visits| row.visits += 1)).unwrap();
}

#[test]
fn a_stale_read_shows_the_newest_snapshot_that_others_took() {
    let (db, accounts) = without_snapshots_of_its_own();
    let visits = || db.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap().map(|row| row.visits);
    let bounded = |bound: Duration| {
        let request = db.request().max_staleness(bound);
        request.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap().map(|row| row.visits)
    };
    assert_eq!(visits(), None);
    assert_eq!((bounded(Duration::ZERO), visits()), (Some(0), Some(0)));
    visit(&db, &accounts);
    assert_eq!(visits(), Some(0));
    // It is young enough for these, and none is taken.
    for bound in [Duration::from_secs(3600), Duration::MAX] {
        assert_eq!(bounded(bound), Some(0));
    }
    // A read that has met two conflicts takes one.
    let mut attempts = 0;
    let read = db.read(|tx| {
        attempts += 1;
        let row = accounts.get_columns::<Visits>(tx, 0)?;
        if attempts < 3 {
            std::thread::scope(|scope| scope.spawn(|| visit(&db, &accounts)).join().unwrap());
        }
        assert_eq!(accounts.get(tx, 1)?, None);
        Ok(row)
    });
    assert_eq!((read.unwrap().map(|row| row.visits), attempts), (Some(3), 3));
    assert_eq!(visits(), Some(3));
    visit(&db, &accounts);
    let mut session = db.session().unwrap();
    let count = |row: Option<Visits>| row.map(|row| row.visits);
    let stale = session.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap();
    let request = session.request().max_staleness(Duration::from_nanos(1));
    let fresh = request.read_stale(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap();
    assert_eq!((count(stale), count(fresh)), (Some(3), Some(4)));
}

#[test]
fn a_stale_read_says_how_old_it_is_at_most() {
    let (db, _accounts) = without_snapshots_of_its_own();
    let opened = Instant::now();
    assert!(db.read_stale(|tx| Ok(opened.elapsed() < tx.staleness())).unwrap());
    let called = Instant::now();
    let age = db.request().max_staleness(Duration::ZERO).read_stale(|tx| Ok(tx.staleness())).unwrap();
    assert!(age <= called.elapsed());
    assert!(db.read_stale(|tx| Ok(opened.elapsed() > tx.staleness())).unwrap());
}
