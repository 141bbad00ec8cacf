//! Truncating tables in a directory: what is there after an opening, and after power failures at any write.

use ensilo::Error;

use super::schema_changes::{one_of_the_next_fails, wait_until_files_are_made};
use super::*;

fn check_indexes(db: &Database) {
    let table = db.open_dynamic_table("account").unwrap();
    for index in db.schema("account").unwrap().indexes() {
        let check = db.transact(|tx| table.check_index(tx, index.name())).unwrap();
        assert!(check.is_whole(), "{}: {check:?}", index.name());
    }
}

#[test]
fn a_truncated_table_has_the_rows_of_since_alone() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts_before) = with_accounts(&disk, 20);
    db.create_table::<Event>().unwrap();
    // Of the rows that go, some are in a checkpoint, some in the log.
    db.checkpoint().unwrap();
    db.transact(|tx| accounts_before.insert(tx, &account(20))).unwrap();
    db.truncate_table("account").unwrap();
    assert!(matches!(db.transact(|tx| accounts_before.get(tx, 1)), Err(Error::TableChanged(_))));
    let table = accounts(&db);
    db.transact(|tx| table.insert_many(tx, &[account(3), account(50)])).unwrap();
    let expected = vec![account(3), account(50)];
    for round in 0..4u64 {
        let crashed = Arc::new(disk.fork().crash(round));
        let db = open(&crashed);
        assert_eq!(all_rows(&db), expected, "round {round}");
        check_indexes(&db);
        // The files that the old rows are in go, and nothing but them.
        db.checkpoint().unwrap();
        db.close().unwrap();
        let db = open(&crashed);
        assert_eq!(all_rows(&db), expected, "round {round}");
        db.truncate_table("account").unwrap();
        db.truncate_table("account").unwrap();
        db.close().unwrap();
        let db = open(&crashed);
        assert!(all_rows(&db).is_empty());
        assert_eq!(db.list_tables().unwrap(), ["account", "event"]);
        let table = accounts(&db);
        db.transact(|tx| table.insert(tx, &account(1))).unwrap();
        check_indexes(&db);
    }
}

#[test]
fn a_power_failure_leaves_all_rows_or_none() {
    let (mut full, mut truncated, mut failed) = (0, 0, 0);
    for life in 0..60u64 {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, _) = with_accounts(&disk, 5);
        if life % 2 == 0 {
            db.checkpoint().unwrap();
        }
        wait_until_files_are_made(&disk);
        disk.set_faults(one_of_the_next_fails(life));
        let outcome = db.truncate_table("account");
        let wrote = db.transact(|tx| db.open_table::<Account>()?.insert(tx, &account(7))).is_ok();
        if let Err(error) = &outcome {
            assert!(matches!(error, Error::LogFailed(_) | Error::Closed), "{error}");
            assert!(!wrote, "behind a failure nothing is acknowledged");
            failed += 1;
        }
        let crashed = Arc::new(disk.crash(life));
        let db = open(&crashed);
        let rows = all_rows(&db);
        match rows.len() {
            5 => {
                assert!(outcome.is_err(), "a truncation that was acknowledged is there");
                assert_eq!(rows, (0..5).map(account).collect::<Vec<_>>(), "life {life}");
                full += 1;
            }
            _ => {
                assert!(rows == [account(7)] || rows.is_empty() && !wrote, "life {life}: {rows:?}");
                truncated += 1;
            }
        }
        check_indexes(&db);
        db.truncate_table("account").unwrap();
        db.close().unwrap();
        assert!(all_rows(&open(&crashed)).is_empty());
    }
    assert!(full > 0 && truncated > 0 && failed > 0, "{full} {truncated} {failed}");
}

#[test]
fn a_checkpoint_beside_truncations_loses_no_row_and_brings_none_back() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 300);
    std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| (0..10).for_each(|_| _ = db.checkpoint().unwrap()));
        let mut round = 0;
        while !checkpoints.is_finished() || round < 10 {
            db.truncate_table("account").unwrap();
            let table = accounts(&db);
            db.transact(|tx| {
                table.insert_many(tx, &(0..50).map(|id| account(id + round)).collect::<Vec<_>>())
            })
            .unwrap();
            // At any moment a crash leaves the rows of one round, or none.
            let crashed = Arc::new(disk.fork().crash(u64::from(round)));
            let rows = all_rows(&open(&crashed));
            let expected: Vec<_> = (0..50).map(|id| account(id + round)).collect();
            assert_eq!(rows, expected);
            round += 1;
        }
    });
}
