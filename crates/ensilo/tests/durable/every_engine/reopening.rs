//! A database that is closed and opened again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ensilo::disk::RealDisk;
use ensilo::{Durability, Error, Order};

use super::*;

#[test]
fn rows_tables_and_indexes_are_there_again() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 100);
    db.create_index("account", "by_balance", [("balance", Order::Descending)]).unwrap();
    let events = db.create_table::<Event>().unwrap();
    let first = db.transact(|tx| events.insert(tx, &Event { what: "first".into() })).unwrap();
    db.transact(|tx| {
        accounts.update(tx, 5, |row: &mut Balance| row.balance = 1_000)?;
        accounts.update(tx, 6, |row: &mut Account| row.note = "a much longer note than before".repeat(20))?;
        accounts.delete(tx, 7).map(|_| ())
    })
    .unwrap();
    let before = all_rows(&db);
    db.close().unwrap();
    let db = open(&disk);
    assert_eq!(db.list_tables().unwrap(), ["account", "event"]);
    assert_eq!(all_rows(&db), before);
    let accounts = super::accounts(&db);
    let by_owner = accounts.index::<u32>("by_owner").unwrap();
    let by_balance = accounts.index::<std::cmp::Reverse<i64>>("by_balance").unwrap();
    let events = db.open_table::<Event>().unwrap();
    db.transact(|tx| {
        assert_eq!(by_owner.scan().count(tx)?, 99);
        assert_eq!(by_balance.scan().primary_keys(tx)?[0], 5);
        let second = events.insert(tx, &Event { what: "second".into() })?;
        assert!(second > first, "row ids are not invented twice");
        accounts.delete(tx, 5)?;
        assert_eq!(by_balance.scan().count(tx)?, 98);
        Ok(())
    })
    .unwrap();
    let statistics = db.statistics().unwrap();
    assert_eq!(statistics.table("account").unwrap().records, 98);
    assert!(statistics.table("account").unwrap().indexes.iter().all(|index| index.records == 98));
    assert!(statistics.durability.unwrap().recovery.log_writes > 100);
}

#[test]
fn many_lives_one_after_the_other() {
    let disk = Arc::new(SimulatedDisk::new());
    with_accounts(&disk, 50).0.close().unwrap();
    for life in 1..=20u32 {
        let db = open(&disk);
        let accounts = accounts(&db);
        db.transact(|tx| {
            for id in 0..50 {
                accounts.update(tx, id, |row: &mut Balance| row.balance += 1)?;
            }
            accounts.insert(tx, &account(1000 + life))?;
            accounts.delete(tx, 999 + life).map(|_| ())
        })
        .unwrap();
        if life % 5 == 0 {
            db.checkpoint().unwrap();
        }
        drop(db);
    }
    let rows = all_rows(&open(&disk));
    assert_eq!(rows.len(), 51);
    assert!(rows[..50].iter().all(|row| row.balance == 120), "{rows:?}");
    assert_eq!(rows[50].id, 1020);
}

#[test]
fn dropped_tables_and_indexes_stay_dropped() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 10);
    db.create_table::<Event>().unwrap();
    db.drop_table("event").unwrap();
    db.drop_index("account", "by_owner").unwrap();
    db.close().unwrap();
    let db = open(&disk);
    assert_eq!(db.list_tables().unwrap(), ["account"]);
    assert!(matches!(db.open_table::<Account>(), Err(Error::SchemaMismatch(_))));
    db.create_table::<Event>().unwrap();
    db.create_index("account", "by_owner", [("owner", Order::Ascending)]).unwrap();
    db.close().unwrap();
    let db = open(&disk);
    let by_owner = accounts(&db).index::<u32>("by_owner").unwrap();
    assert_eq!(db.transact(|tx| by_owner.scan().count(tx)).unwrap(), 10);
}

#[test]
fn two_cannot_open_one_directory() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    assert!(matches!(open_with(options(), &disk), Err(Error::Open(_))));
    db.close().unwrap();
    open(&disk);
}

#[test]
fn levels_are_answered_at_their_time() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 3);
    let add = |id| move |row: &mut Balance| row.balance += id;
    let pause = ensilo_test_disk::SyncPause::new();
    let faults = ensilo_test_disk::Faults { sync_hangs: Some(Arc::clone(&pause)), ..Default::default() };
    disk.set_faults(faults);
    let visible = db.request().durability(Durability::Visible);
    visible.transact(|tx| accounts.update(tx, 1, add(1))).unwrap();
    let ((), ticket) = db.request().transact_with_ticket(|tx| accounts.update(tx, 1, add(1))).unwrap();
    let handle = db.submit({
        let accounts = accounts.clone();
        move |tx| accounts.update(tx, 2, |row: &mut Balance| row.balance = 7)
    });
    let handle = handle.unwrap();
    while !handle.is_visible() {
        std::thread::yield_now();
    }
    pause.wait_until_hanging(1);
    let ((), epoch) = db.request().transact_with_epoch(|tx| accounts.update(tx, 1, add(0))).unwrap();
    assert!(db.durable_epoch().unwrap() < epoch && !db.ticket(epoch).unwrap().is_stored());
    assert!(!ticket.is_stored() && !handle.is_done(), "nothing is stored while the sync hangs");
    let answered = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            // It has read what is not stored yet.
            let row = db.transact(|tx| accounts.get(tx, 1)).unwrap();
            answered.store(1, Ordering::Relaxed);
            row
        });
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(answered.load(Ordering::Relaxed), 0, "the answer waits for what it tells");
        pause.end();
        assert_eq!(reader.join().unwrap().unwrap().balance, 102);
    });
    ticket.wait().unwrap();
    handle.wait().unwrap();
    db.ticket(epoch).unwrap().wait().unwrap();
    assert!(db.durable_epoch().unwrap() >= epoch);
}

#[test]
fn a_database_in_memory_stores_nothing_and_says_so() {
    let db = in_memory();
    let stored = db.request().durability(Durability::Stored).transact(|_tx| Ok(()));
    assert!(matches!(stored, Err(Error::NotDurable)));
    assert!(matches!(db.request().transact_with_ticket(|_tx| Ok(())), Err(Error::NotDurable)));
    assert!(db.request().transact_with_epoch(|_tx| Ok(())).is_ok() && db.durable_epoch().is_none());
    assert!(matches!(db.ticket(1), Err(Error::NotDurable)));
    assert!(matches!(db.checkpoint(), Err(Error::NotDurable)));
    assert!(matches!(
        Options::default().durability(Durability::Stored).in_memory_with::<Engine>(),
        Err(Error::NotDurable)
    ));
}

#[test]
fn the_real_disk_does_the_same() {
    let directory = real_place("reopening");
    let opened = |options: Options| options.open_with::<Engine>(Arc::new(RealDisk), &directory).unwrap();
    let db = opened(options().checkpoint_at_close(true));
    let accounts = db.create_table::<Account>().unwrap();
    let rows: Vec<_> = (0..1000).map(account).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    db.close().unwrap();
    let db = opened(options());
    assert_eq!(all_rows(&db), rows);
    let recovery = db.statistics().unwrap().durability.unwrap().recovery;
    assert_eq!((recovery.checkpoint_rows > 1000, recovery.log_writes), (true, 0), "{recovery:?}");
    db.close().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn whoever_opens_is_told_how_far_the_recovery_is() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 2_000);
    db.checkpoint().unwrap();
    let accounts = accounts(&db);
    db.transact(|tx| {
        (0..100).try_for_each(|id| accounts.update(tx, id, |row: &mut Balance| row.balance += 1))
    })
    .unwrap();
    db.close().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = Arc::clone(&told);
    let db = open_with(options().on_recovery(move |progress| hook.lock().unwrap().push(*progress)), &disk);
    let recovery = db.unwrap().statistics().unwrap().durability.unwrap().recovery;
    let told = told.lock().unwrap();
    assert!(told.iter().all(|progress| progress.bytes_done <= progress.bytes_total));
    assert!(told.is_sorted_by_key(|progress| (progress.bytes_done, progress.elapsed)));
    let last = told.last().unwrap();
    assert_eq!(last.bytes_done, last.bytes_total);
    assert_eq!(last.bytes_total, recovery.checkpoint_bytes + recovery.log_bytes);
    assert!(recovery.checkpoint_bytes > 0 && recovery.log_bytes > 0);
    assert_eq!(last.left, Some(Duration::ZERO));
}

#[test]
fn row_ids_of_rows_that_are_gone_are_not_invented_again() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut last = None;
    for life in 0..6 {
        let db = open(&disk);
        let events: Table<Event> = match life {
            0 => db.create_table().unwrap(),
            _ => db.open_table().unwrap(),
        };
        let insert = || db.transact(|tx| events.insert(tx, &Event { what: format!("in life {life}") }));
        for _ in 0..3 {
            // Each thread has ids of its own.
            let ids = std::thread::scope(|scope| scope.spawn(insert).join().unwrap());
            let id = ids.unwrap();
            assert!(Some(id) > last, "{id} after {last:?} in life {life}");
            last = Some(id);
        }
        db.transact(|tx| last.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))).unwrap();
        if life % 2 == 1 {
            // Nothing in checkpoint or log has the ids any more.
            db.transact(|tx| {
                let mut all = Vec::new();
                events.scan().for_each(tx, |id, _| all.push(id))?;
                all.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))
            })
            .unwrap();
            db.checkpoint().unwrap();
        }
        if life % 3 == 0 {
            db.close().unwrap();
        }
    }
}

#[test]
fn readers_show_one_moment_of_the_present_also_after_an_opening() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 10);
    let move_one = |db: &Database, accounts: &Table<Account>| {
        let change = || {
            db.request().retries(0).transact(|tx| {
                accounts.update(tx, 0, |row: &mut Balance| row.balance -= 1)?;
                accounts.update(tx, 9, |row: &mut Balance| row.balance += 1)
            })
        };
        std::thread::scope(|scope| scope.spawn(change).join().unwrap())
    };
    let read = |db: &Database, accounts: &Table<Account>| {
        let mut attempts = 0_i64;
        let seen = db.read(|tx| {
            attempts += 1;
            let first = accounts.get_columns::<Balance>(tx, 0)?.expect("exists").balance;
            assert_eq!(move_one(db, accounts).is_err(), LOCKS, "what is locked stays");
            let mut sum = first;
            accounts.range(1..).for_each(tx, |_, row| sum += row.balance)?;
            Ok((sum, attempts, first))
        });
        if LOCKS {
            move_one(db, accounts).unwrap();
        }
        seen.unwrap()
    };
    // Each attempt moves one, and the last one shows what those before have moved.
    let of_round = |round: i64| (1000, READ_ATTEMPTS, 100 - READ_ATTEMPTS * (round + 1) + 1);
    for round in 0..5 {
        assert_eq!(read(&db, &accounts), of_round(round));
    }
    db.close().unwrap();
    let db = open(&Arc::new(disk.kill()));
    let accounts = db.open_table().unwrap();
    assert_eq!(read(&db, &accounts), of_round(5));
    assert_eq!(db.statistics().unwrap().aborts_total() as i64, READ_ATTEMPTS - 1 + i64::from(LOCKS));
}
