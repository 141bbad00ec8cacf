//! Checkpoints while transactions go on.

use std::sync::atomic::{AtomicBool, Ordering};

use ensilo::Error;
use ensilo_test_disk::Faults;

use super::*;
use crate::two_disks::TwoDisks;

#[test]
fn a_checkpoint_shortens_the_log_and_loses_nothing() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 200);
    for round in 0..30i64 {
        db.transact(|tx| {
            (0..200).try_for_each(|id| {
                let note = format!("{round} {}", "x".repeat(400));
                accounts.update(tx, id, |row: &mut Account| row.note = note)
            })
        })
        .unwrap();
    }
    until(|| {
        let checkpoint = db.checkpoint().unwrap();
        assert!(checkpoint.rows >= 200 && checkpoint.bytes > 0);
        // Nothing, while the thread that makes the next file has not had its turn yet: all is in one.
        checkpoint.files_removed > 0
    });
    db.transact(|tx| accounts.update(tx, 3, |row: &mut Balance| row.balance = -3)).unwrap();
    db.transact(|tx| accounts.delete(tx, 4)).unwrap();
    let rows = all_rows(&db);
    let db = open(&Arc::new(disk.kill()));
    assert_eq!(all_rows(&db), rows);
    assert!(db.statistics().unwrap().durability.unwrap().recovery.checkpoint_rows >= 200);
}

#[test]
fn several_threads_write_each_row_once() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 0);
    let rows: Vec<_> = (0..3000).map(|id| Account { note: "x".repeat(1000), ..account(id) }).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    drop(db);
    // A dozen blocks, so slowly that none of the threads is done before the others begin.
    let options = options().checkpoint_threads(3).checkpoint_bytes_per_second(8 << 20);
    let db = open_with(options, &disk).unwrap();
    let is_by_all = |made: &ensilo::Checkpoint| {
        let parts = disk.list(&Path::new(DIRECTORY).join(format!("checkpoint-{}", made.id))).unwrap();
        parts.iter().filter(|part| part.len_bytes > 100_000).count() >= 3
    };
    // On a busy machine a thread may come to run when the others have written everything.
    let checkpoint = (0..20).map(|_| db.checkpoint().unwrap()).find(is_by_all).expect("one by all threads");
    let db = open(&Arc::new(disk.crash(1)));
    assert_eq!(all_rows(&db), rows);
    let recovery = db.statistics().unwrap().durability.unwrap().recovery;
    assert_eq!(recovery.checkpoint_rows, checkpoint.rows);
}

#[test]
fn a_write_error_ends_the_checkpoint_of_all_threads() {
    let mut failed = 0;
    for write in 1..20 {
        let disk = Arc::new(SimulatedDisk::new());
        drop(with_accounts(&disk, 3000));
        let db = open_with(options().checkpoint_threads(3), &disk).unwrap();
        let rows = all_rows(&db);
        disk.set_faults(Faults { write_error_at: Some(write), ..Faults::default() });
        match db.checkpoint() {
            Err(Error::CheckpointFailed(_)) => {
                failed += 1;
                // It is as if it had never begun.
                assert!(db.checkpoint().unwrap().rows >= 3000);
            }
            // Another write was the one that failed: one of the log, or none yet.
            Ok(_) | Err(Error::LogFailed(_)) => {}
            Err(other) => panic!("{other}"),
        }
        drop(db);
        assert_eq!(all_rows(&open(&Arc::new(disk.crash(write)))), rows);
    }
    assert!(failed >= 3, "{failed} checkpoints failed");
}

#[test]
fn sums_hold_in_checkpoints_made_under_transfers() {
    const ACCOUNTS: u32 = 40;
    for seed in 0..4 {
        let disk = Arc::new(SimulatedDisk::new());
        drop(with_accounts(&disk, ACCOUNTS));
        let db = open_with(options().checkpoint_threads(seed % 3 + 1), &disk).unwrap();
        let accounts = accounts(&db);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for worker in 0..2u32 {
                let (db, accounts, is_over) = (&db, &accounts, &is_over);
                scope.spawn(move || {
                    let mut state = seed * 2 + worker + 1;
                    let mut draw = || {
                        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                        state >> 8
                    };
                    while !is_over.load(Ordering::Relaxed) {
                        let (from, to) = (draw() % ACCOUNTS, draw() % ACCOUNTS);
                        let request = db.request().durability(ensilo::Durability::Visible);
                        request.transact(|tx| transfer(accounts, tx, from, to)).unwrap();
                    }
                });
            }
            for _ in 0..6 {
                db.checkpoint().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let disk = Arc::new(disk.crash(u64::from(seed)));
        let rows = all_rows(&open(&disk));
        assert_eq!(rows.len(), ACCOUNTS as usize);
        assert_eq!(rows.iter().map(|row| row.balance).sum::<i64>(), 100 * i64::from(ACCOUNTS));
    }
}

/// Moves money, and sometimes the whole account away and back.
fn transfer(accounts: &Table<Account>, tx: &mut Transaction<'_>, from: u32, to: u32) -> Result<()> {
    if from == to {
        let row = accounts.get(tx, from)?.unwrap();
        accounts.delete(tx, from)?;
        return accounts.insert(tx, &row).map(|_| ());
    }
    accounts.update(tx, from, |row: &mut Balance| row.balance -= 1)?;
    accounts.update(tx, to, |row: &mut Balance| row.balance += 1)
}

#[test]
fn checkpoints_come_by_themselves() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open_with(options().checkpoint_interval(Duration::from_millis(100)), &disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let made = || db.statistics().unwrap().durability.unwrap().checkpoints.made;
    let mut id = 0;
    while made() < 2 {
        db.transact(|tx| accounts.insert(tx, &account(id))).unwrap();
        id += 1;
    }
    drop(db);
    assert_eq!(all_rows(&open(&disk)).len(), id as usize);
}

#[test]
fn the_next_recovery_finds_the_checkpoint_and_the_log_after_it() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 2000);
    let next = |db: &Database| db.statistics().unwrap().durability.unwrap().next_recovery;
    let before = next(&db);
    assert_eq!((before.checkpoint_bytes, before.is_measured), (0, false));
    assert!(before.log_bytes > 0 && !before.duration.is_zero(), "{before:?}");
    let made = db.checkpoint().unwrap();
    let after = next(&db);
    assert!(after.checkpoint_bytes == made.bytes && after.log_bytes < before.log_bytes, "{after:?}");
    db.close().unwrap();
    let db = open(&disk);
    let found = db.statistics().unwrap().durability.unwrap().recovery;
    let next = next(&db);
    assert_eq!((next.checkpoint_bytes, found.checkpoint_bytes), (made.bytes, made.bytes));
    assert!(next.log_bytes >= found.log_bytes, "{next:?} {found:?}");
    assert!(found.checkpoint_duration + found.log_duration <= found.duration, "{found:?}");
}

#[test]
fn a_checkpoint_comes_before_a_recovery_would_take_too_long() {
    const ROWS: u64 = 80;
    let made_after = |target: Duration| {
        let disk = Arc::new(SimulatedDisk::new());
        let options = options().recovery_time_target(target).checkpoint_bytes_per_second(1 << 40);
        let db = open_with(options.log_file_bytes(16 << 20), &disk).unwrap();
        let events = db.create_table::<Event>().unwrap();
        let text = "x".repeat((1 << 20) - 100);
        for _ in 0..ROWS {
            db.transact(|tx| events.insert(tx, &Event { what: text.clone() })).unwrap();
        }
        let durability = || db.statistics().unwrap().durability.unwrap();
        assert!(durability().log_bytes >= ROWS << 19);
        let is_due = durability().next_recovery.duration > target;
        while is_due && durability().checkpoints.made == 0 {
            std::thread::yield_now();
        }
        durability().checkpoints.made
    };
    assert_eq!(made_after(Duration::from_secs(3600)), 0);
    assert_eq!(made_after(Duration::from_millis(100)), 1);
}

#[test]
fn a_nearly_full_log_disk_alone_is_a_reason() {
    let disks = TwoDisks { free_there: Some(1 << 20), ..TwoDisks::new("/elsewhere") };
    let options = options().log_directories(["/elsewhere/log"]);
    let db: Database = options.open_with(Arc::new(disks) as Arc<dyn Disk>, DIRECTORY).unwrap();
    let events = db.create_table::<Event>().unwrap();
    let durability = || db.statistics().unwrap().durability.unwrap();
    while durability().checkpoints.made == 0 && durability().log_bytes < 8 << 20 {
        db.transact(|tx| events.insert(tx, &Event { what: "x".repeat(1 << 10) })).unwrap();
    }
    until(|| durability().checkpoints.made > 0);
}
