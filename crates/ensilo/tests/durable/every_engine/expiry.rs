//! Rows that expire in a directory: they stay gone, and go after an opening if their time has passed before it.

use std::sync::atomic::{AtomicI64, Ordering};

use ensilo::{Error, ExpiryOptions, RowChange, TimeUnit, Timestamp};
use ensilo_test_disk::Faults;

use super::*;

/// The balances of accounts, as if they were seconds.
fn by_balance(now: &Arc<AtomicI64>) -> ExpiryOptions {
    let now = Arc::clone(now);
    let options = ExpiryOptions::new("balance").unit(TimeUnit::Seconds);
    let options = options.check_interval(Duration::from_millis(1));
    options.clock(move || Timestamp::from_micros(now.load(Ordering::SeqCst) * 1_000_000))
}

/// A database with the accounts from 0 to `count`, of which each has its number as its balance.
fn with_times(disk: &Arc<SimulatedDisk>, options: Options, count: u32) -> Database {
    let db = open_with(options, disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.create_index("account", "by_balance", [("balance", ensilo::Order::Ascending)]).unwrap();
    let rows: Vec<_> = (0..count).map(|id| Account { balance: id.into(), ..account(id) }).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    db
}

fn ids(db: &Database) -> Vec<u32> {
    all_rows(db).iter().map(|row| row.id).collect()
}

#[test]
fn rows_that_were_removed_stay_so_and_others_go_after_an_opening() {
    let disk = Arc::new(SimulatedDisk::new());
    let now = Arc::new(AtomicI64::new(-1));
    let db = with_times(&disk, options(), 50);
    let expiry = db.expire_rows("account", by_balance(&now)).unwrap();
    now.store(9, Ordering::SeqCst);
    // Some of them by the background.
    let removed = || db.statistics().unwrap().expired_rows;
    expiry.remove_now().unwrap();
    until(|| removed() == 10);
    // The answer comes when the deletions are stored.
    assert!(ids(&db).into_iter().eq(10..50));
    now.store(-1, Ordering::SeqCst);
    for round in 0..3u64 {
        let crashed = Arc::new(disk.fork().crash(round));
        let db = open(&crashed);
        let there = ids(&db);
        assert!(there.iter().copied().eq(10..50), "round {round}: {there:?}");
        // What has expired while it was closed goes once that is said again.
        assert_eq!(db.statistics().unwrap().expiries.len(), 0);
        let now = Arc::new(AtomicI64::new(20));
        let expiry = db.expire_rows("account", by_balance(&now)).unwrap();
        until(|| ids(&db) == (21..50).collect::<Vec<_>>());
        if round == 1 {
            db.checkpoint().unwrap();
        }
        now.store(29, Ordering::SeqCst);
        // The answer comes when all that it has removed is stored.
        until(|| expiry.remove_now().unwrap() == 0 && ids(&db).len() == 20);
        db.close().unwrap();
        let db = open(&crashed);
        assert_eq!(ids(&db), (30..50).collect::<Vec<_>>(), "round {round}");
        for index in ["by_owner", "by_balance"] {
            let table = db.open_dynamic_table("account").unwrap();
            let check = db.transact(|tx| table.check_index(tx, index)).unwrap();
            assert!(check.is_whole(), "{check:?}");
        }
    }
}

#[test]
fn the_change_feed_has_ordinary_deletions() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_times(&disk, options().change_feed(1 << 20), 30);
    let mut changes = db.changes().begin_now().unwrap();
    let now = Arc::new(AtomicI64::new(19));
    let expiry = db.expire_rows("account", by_balance(&now)).unwrap();
    until(|| expiry.remove_now().unwrap() == 0 && ids(&db).len() == 10);
    let accounts = accounts(&db);
    let mut deleted = Vec::new();
    while deleted.len() < 20 {
        let batch = changes.wait_timeout(Duration::from_secs(30)).unwrap().expect("changes come");
        for change in batch.changes() {
            match change.of(&accounts).unwrap() {
                Some(RowChange::Deleted(id)) => deleted.push(id),
                other => panic!("{other:?}"),
            }
        }
    }
    deleted.sort_unstable();
    assert!(deleted.into_iter().eq(0..20));
}

#[test]
fn rows_expire_in_a_database_that_answers_while_it_is_loaded_and_not_in_one_that_is_only_read() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_times(&disk, options(), 5000);
    db.checkpoint().unwrap();
    db.close().unwrap();
    let now = Arc::new(AtomicI64::new(2999));
    let db = open_with(options().read_only(true), &disk).unwrap();
    assert!(matches!(db.expire_rows("account", by_balance(&now)), Err(Error::ReadOnly)));
    db.close().unwrap();
    let db = open_with(options().answer_while_loading(true), &disk).unwrap();
    let expiry = db.expire_rows("account", by_balance(&now)).unwrap();
    until(|| expiry.statistics().removed_rows == 3000);
    assert!(ids(&db).into_iter().eq(3000..5000));
    assert!(expiry.failure().is_none(), "{expiry:?}");
}

#[test]
fn a_log_that_has_failed_is_a_failure() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_times(&disk, options(), 1000);
    let now = Arc::new(AtomicI64::new(-1));
    let expiry = db.expire_rows("account", by_balance(&now)).unwrap();
    disk.set_faults(Faults { sync_error_at: Some(1), goes_on_failing: true, ..Faults::default() });
    let failed = db.transact(|tx| accounts(&db).insert(tx, &account(1000)));
    assert!(matches!(failed, Err(Error::LogFailed(_))), "{failed:?}");
    until(|| {
        // A row at a time: the first may still find room in the log.
        now.fetch_max(expiry.statistics().removed_rows.try_into().unwrap(), Ordering::SeqCst);
        matches!(expiry.failure(), Some(Error::LogFailed(_)))
    });
    now.store(999, Ordering::SeqCst);
    assert!(matches!(expiry.remove_now(), Err(Error::LogFailed(_))));
    assert!(expiry.statistics().failures > 0);
}
