//! The change feed, over every engine.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "changes/batches.rs"]
mod batches;
#[path = "changes/streams.rs"]
mod streams;
#[path = "changes/subscriptions.rs"]
mod subscriptions;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ensilo::generic::{Changes, Database, Table};
use ensilo::{ChangeBatch, ChangePosition, Engine, Error, Options, Row, RowChange, SchemaChange, Value};
use ensilo_test_disk::SimulatedDisk;

use batches::*;
use streams::*;
use subscriptions::*;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_balance", columns(balance)))]
struct Account {
    #[row(key)]
    id: u32,
    balance: i64,
    note: String,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "other")]
struct Other {
    #[row(key)]
    id: u64,
}

type Copy = BTreeMap<u32, Account>;

const ACCOUNTS: u32 = 40;

fn options(kept_bytes: u64) -> Options {
    Options::default().no_checkpoints().change_feed(kept_bytes).log_file_bytes(1 << 20)
}

fn open_with<E: Engine>(disk: &Arc<SimulatedDisk>, options: Options) -> (Database<E>, Table<Account, E>) {
    // Two loggers: an epoch lies in the files of both.
    let options = options.log_directories(["/db/log-0", "/db/log-1"]);
    let db = options.open_with::<E>(Arc::clone(disk) as Arc<_>, "/db").unwrap();
    let accounts = db.table::<Account>().unwrap();
    (db, accounts)
}

fn account(id: u32, balance: i64) -> Account {
    Account { id, balance, note: format!("account {id}") }
}

fn apply<E: Engine>(copy: &mut Copy, batch: &ChangeBatch, accounts: &Table<Account, E>) {
    for change in batch {
        match change.of(accounts).unwrap() {
            Some(RowChange::Stored(id, row)) => _ = copy.insert(id, row),
            Some(RowChange::Deleted(id)) => _ = copy.remove(&id),
            Some(RowChange::Emptied) => copy.clear(),
            None => {}
        }
    }
}

/// Applies all that is stored.
fn catch_up<E: Engine>(changes: &mut Changes<E>, copy: &mut Copy, accounts: &Table<Account, E>) {
    while let Some(batch) = changes.try_next().unwrap() {
        apply(copy, &batch, accounts);
    }
}

fn rows<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>) -> Copy {
    db.transact(|tx| accounts.scan().collect(tx)).unwrap().into_iter().collect()
}

fn put<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>, id: u32, balance: i64) {
    db.transact(|tx| accounts.upsert(tx, &account(id, balance))).unwrap();
}

fn changes_come_as_rows_and_deletions<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let others = db.table::<Other>().unwrap();
    let mut changes = db.changes().tables(["account"]).begin_now().unwrap();
    assert!(changes.try_next().unwrap().is_none());
    put(&db, &accounts, 1, 5);
    db.transact(|tx| others.insert(tx, &Other { id: 3 })).unwrap();
    db.transact(|tx| accounts.upsert(tx, &account(1, 6))).unwrap();
    db.transact(|tx| accounts.delete(tx, 1)).unwrap();
    let mut found = Vec::new();
    while found.len() < 3 {
        let batch = changes.wait().unwrap();
        assert!(batch.ends_epoch());
        for change in &batch {
            assert_eq!((change.table(), change.key()), ("account", vec![Value::Unsigned(1)]));
            assert_eq!(change.of(&others).unwrap(), None);
            found.push((
                change.is_deletion(),
                change.row().map(|row| row[1].clone()),
                change.of(&accounts).unwrap(),
            ));
        }
    }
    let stored =
        |balance| (false, Some(Value::from(balance)), Some(RowChange::Stored(1, account(1, balance))));
    assert_eq!(found, [stored(5), stored(6), (true, None, Some(RowChange::Deleted(1)))]);
    assert!(changes.wait_timeout(Duration::ZERO).unwrap().is_none());
    db.close().unwrap();
    assert!(matches!(changes.wait(), Err(Error::Closed)));
}

fn a_wait_ends_with_the_next_commit_and_with_the_database<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let mut changes = db.changes().begin_now().unwrap();
    thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = scope.spawn(move || {
            sender.send(changes.wait().unwrap().changes().len()).unwrap();
            changes.wait()
        });
        put(&db, &accounts, 1, 5);
        assert_eq!(receiver.recv().unwrap(), 1);
        db.close().unwrap();
        let ended = waiting.join().unwrap();
        assert!(matches!(ended, Err(Error::Closed | Error::LogFailed(_))), "{ended:?}");
    });
}

fn a_copy_made_of_changes_alone_is_the_database_and_each_epoch_is_whole<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let mut changes = db.changes().begin_at_oldest().unwrap();
    db.transact(|tx| (0..ACCOUNTS).try_for_each(|id| accounts.insert(tx, &account(id, 100)).map(drop)))
        .unwrap();
    let is_over = AtomicBool::new(false);
    let mut copy = Copy::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3_u32)
            .map(|writer| {
                let (db, accounts) = (&db, &accounts);
                scope.spawn(move || {
                    for step in 0..300_u32 {
                        let (from, to) =
                            ((step * 7 + writer) % ACCOUNTS, (step * 13 + 5 * writer) % ACCOUNTS);
                        if from != to {
                            transfer(db, accounts, from, to);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for _ in 0..3 {
                db.checkpoint().unwrap();
            }
        });
        let is_over = &is_over;
        scope.spawn(move || {
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_over.store(true, Ordering::Release);
        });
        while !is_over.load(Ordering::Acquire) {
            if let Some(batch) = changes.wait_timeout(Duration::from_millis(20)).unwrap() {
                apply(&mut copy, &batch, &accounts);
                // A transfer writes both rows: no epoch has a half of one.
                assert!(batch.ends_epoch());
                let total: i64 = copy.values().map(|account| account.balance).sum();
                assert_eq!(total, if copy.is_empty() { 0 } else { i64::from(ACCOUNTS) * 100 });
            }
        }
    });
    let end = db.change_position().unwrap();
    catch_up(&mut changes, &mut copy, &accounts);
    assert!(changes.position() >= end);
    assert_eq!(copy, rows(&db, &accounts));
}

fn transfer<E: Engine>(db: &Database<E>, accounts: &Table<Account, E>, from: u32, to: u32) {
    db.request()
        .retries(100_000)
        .transact(|tx| {
            let (mut one, mut other) = (accounts.get(tx, from)?.unwrap(), accounts.get(tx, to)?.unwrap());
            one.balance -= 1;
            other.balance += 1;
            accounts.upsert(tx, &one)?;
            accounts.upsert(tx, &other)
        })
        .unwrap();
}

fn a_stored_position_goes_on_after_crashes_and_checkpoints_without_loss_or_doubles<E: Engine>() {
    let mut disk = Arc::new(SimulatedDisk::new());
    let (mut position, mut copy, mut seen) = (None, Copy::new(), Vec::new());
    for life in 0..6_u32 {
        let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
        let begun = match position {
            None => db.changes().begin_at_oldest().unwrap(),
            Some(position) => {
                let stored = ChangePosition::from_bytes(&ChangePosition::to_bytes(position)).unwrap();
                db.changes().after(stored).unwrap()
            }
        };
        let mut changes = begun;
        for step in 0..20 {
            put(&db, &accounts, step % 7, i64::from(life * 100 + step));
            if step == 9 && life % 2 == 0 {
                db.checkpoint().unwrap();
            }
            // Some of the changes are left to the next life.
            if step < 12
                && let Some(batch) = changes.try_next().unwrap()
            {
                seen.extend(batch.changes().iter().map(|change| change.row().unwrap()[1].clone()));
                apply(&mut copy, &batch, &accounts);
            }
        }
        position = Some(changes.position());
        let after = if life % 3 == 2 { None } else { Some(Arc::new(disk.crash(u64::from(life)))) };
        drop((changes, accounts, db));
        disk = after.unwrap_or(disk);
    }
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let mut changes = db.changes().after(position.unwrap()).unwrap();
    while let Some(batch) = changes.try_next().unwrap() {
        seen.extend(batch.changes().iter().map(|change| change.row().unwrap()[1].clone()));
        apply(&mut copy, &batch, &accounts);
    }
    let all = (0..6_i64).flat_map(|life| (0..20).map(move |step| Value::from(life * 100 + step)));
    assert_eq!(seen, all.collect::<Vec<_>>());
    assert_eq!(copy, rows(&db, &accounts));
}

fn what_is_not_kept_is_missed_and_the_error_says_from_where_on_it_is_there<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(0));
    let oldest = db.changes().begin_at_oldest().unwrap().position();
    // A logger goes on in another file, so that the one before can go, once that was made.
    let mut rounds = 0;
    let missed = loop {
        put(&db, &accounts, 1, rounds);
        db.checkpoint().unwrap();
        match db.changes().after(oldest) {
            Err(Error::ChangesMissed(missed)) => break missed,
            Ok(_) if rounds < 10_000 => rounds += 1,
            other => panic!("{other:?}"),
        }
    };
    assert!(missed.oldest() > oldest);
    // The remedy: a position, all rows, and what comes behind the position.
    let mut changes = db.changes().begin_now().unwrap();
    let mut copy = rows(&db, &accounts);
    put(&db, &accounts, 2, 9);
    catch_up(&mut changes, &mut copy, &accounts);
    assert_eq!(copy, rows(&db, &accounts));
    let position = changes.position();
    drop((changes, accounts, db));

    let (db, _) = open_with::<E>(&disk, Options::default());
    assert!(matches!(db.changes().after(position), Err(Error::ChangesNotKept)));
    drop(db);
    let (db, _) = open_with::<E>(&disk, options(0));
    assert!(matches!(db.changes().after(position), Err(Error::ChangesMissed(_))), "another history");
    drop(db);
    let db = Options::default().in_memory_with::<E>().unwrap();
    assert!(matches!(db.changes().begin_now(), Err(Error::NotDurable)));
}

/// Returns how many sealed files of the first logger there are.
fn sealed_files(disk: &SimulatedDisk) -> usize {
    let files = disk.files();
    files
        .iter()
        .filter(|(path, _)| path.starts_with("db/log-0") && path.extension().is_some_and(|it| it == "log"))
        .count()
}

fn log_files_are_kept_for_who_is_behind_through_checkpoints_and_openings<E: Engine>() {
    let mut disk = Arc::new(SimulatedDisk::new());
    let mut balance = 0;
    let (db, _) = open_with::<E>(&disk, options(64 << 20));
    let oldest = db.changes().begin_at_oldest().unwrap().position();
    drop(db);
    for life in 1..=4 {
        let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
        while sealed_files(&disk) < 3 * life {
            put(&db, &accounts, 1, balance);
            balance += 1;
            db.checkpoint().unwrap();
        }
        if life % 2 == 0 {
            let killed = Arc::new(disk.crash(life as u64));
            drop((accounts, db));
            disk = killed;
        }
    }
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let mut changes = db.changes().after(oldest).unwrap();
    let mut seen = Vec::new();
    while let Some(batch) = changes.try_next().unwrap() {
        seen.extend(batch.changes().iter().map(|change| change.row().unwrap()[1].clone()));
    }
    assert_eq!(seen, (0..balance).map(Value::from).collect::<Vec<_>>());

    // A backup has a history of its own.
    db.backup("/backup").unwrap();
    let restored = options(0).open_with::<E>(Arc::clone(&disk) as Arc<_>, "/backup").unwrap();
    assert!(matches!(restored.changes().after(changes.position()), Err(Error::ChangesMissed(_))));
    assert!(restored.changes().begin_at_oldest().unwrap().try_next().unwrap().is_none());
    // With less room they go, the oldest first.
    drop((restored, changes, accounts, db));
    let (db, _) = open_with::<E>(&disk, options(0));
    assert!(matches!(db.changes().after(oldest), Err(Error::ChangesMissed(_))));
}

fn an_epoch_larger_than_the_memory_comes_in_parts_that_can_be_taken_up<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let mut position = db.change_position().unwrap();
    db.transact(|tx| (0..500).try_for_each(|id| accounts.insert(tx, &account(id, 1)).map(drop))).unwrap();
    let (mut ids, mut parts) = (Vec::new(), 0);
    // Another reader for each part: by its position alone.
    while let Some(batch) = db.changes().memory_bytes(10_000).after(position).unwrap().try_next().unwrap() {
        assert!(batch.changes().len() < 100);
        ids.extend(batch.changes().iter().map(|change| change.key()[0].clone()));
        (position, parts) = (batch.position(), parts + 1);
        assert_eq!(batch.ends_epoch(), ids.len() == 500);
    }
    assert!(parts > 5, "{parts}");
    assert_eq!(ids.len(), 500);
    let mut at_once = db.changes().memory_bytes(10_000).begin_at_oldest().unwrap();
    let mut copy = Copy::new();
    catch_up(&mut at_once, &mut copy, &accounts);
    assert_eq!(copy, rows(&db, &accounts));
}

/// The account of a later version.
mod later {
    #[derive(Clone, Debug, PartialEq, ensilo::Row)]
    #[row(table = "account", index(name = "by_balance", columns(balance)))]
    pub(crate) struct Account {
        #[row(key)]
        pub(crate) id: u32,
        pub(crate) balance: i64,
        pub(crate) note: String,
        pub(crate) visits: u32,
    }
}

fn rows_of_before_a_change_of_columns_come_as_they_are_since<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let mut changes = db.changes().begin_now().unwrap();
    put(&db, &accounts, 1, 5);
    let add = SchemaChange::new().add("visits", ensilo::ColumnType::U32, 7_u32);
    let changed = db.table_with_changes::<later::Account>(&[add]).unwrap();
    let new = later::Account { id: 2, balance: 1, note: String::new(), visits: 9 };
    db.transact(|tx| changed.insert(tx, &new)).unwrap();
    let mut visits = Vec::new();
    while let Some(batch) = changes.try_next().unwrap() {
        for change in &batch {
            assert!(matches!(change.of(&accounts), Err(Error::TableChanged(_))));
            let Some(RowChange::Stored(id, row)) = change.of(&changed).unwrap() else { panic!("{change:?}") };
            visits.push((id, row.visits));
        }
    }
    assert_eq!(visits, [(1, 7), (2, 9)]);
}

fn changes_of_a_dropped_table_are_not_those_of_one_that_is_made_later<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    db.checkpoint().unwrap();
    let others = db.table::<Other>().unwrap();
    db.transact(|tx| others.insert(tx, &Other { id: 3 })).unwrap();
    db.drop_table("other").unwrap();
    // All that an opening finds of it is behind a checkpoint.
    db.checkpoint().unwrap();
    drop((accounts, others));
    db.close().unwrap();
    drop(db);
    let (db, _accounts) = open_with::<E>(&disk, options(1 << 20));
    let others = db.table::<Other>().unwrap();
    let mut changes = db.changes().begin_at_oldest().unwrap();
    db.transact(|tx| others.insert(tx, &Other { id: 4 })).unwrap();
    let mut found = Vec::new();
    while let Some(batch) = changes.try_next().unwrap() {
        found.extend(batch.changes().iter().filter_map(|change| change.of(&others).unwrap()));
    }
    assert_eq!(found, [RowChange::Stored(4, Other { id: 4 })]);
}

fn a_truncated_table_is_emptied_for_consumers_wherever_they_are<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let others = db.table::<Other>().unwrap();
    let oldest = db.changes().begin_at_oldest().unwrap().position();
    // One that follows this table, one that follows another one, one with room for a single change at a time, and one that follows all.
    let mut of_table = db.changes().tables(["account"]).begin_now().unwrap();
    let mut of_other = db.changes().tables(["other"]).begin_now().unwrap();
    let mut by_one = db.changes().tables(["account"]).memory_bytes(1).begin_now().unwrap();
    let mut of_all = db.changes().begin_now().unwrap();
    let mut copies = [Copy::new(), Copy::new(), Copy::new()];
    (0..10).for_each(|id| put(&db, &accounts, id, 1));
    catch_up(&mut of_table, &mut copies[0], &accounts);
    assert_eq!(copies[0].len(), 10);
    for round in 0..3 {
        let before = db.table::<Account>().unwrap();
        (20..30).for_each(|id| put(&db, &before, id, round));
        db.truncate_table("account").unwrap();
        let accounts = db.table::<Account>().unwrap();
        (5..8).for_each(|id| put(&db, &accounts, id, round));
        db.transact(|tx| others.insert(tx, &Other { id: round as u64 })).unwrap();
        if round != 1 {
            catch_up(&mut of_table, &mut copies[0], &accounts);
            let mut refused = 0;
            while let Some(batch) = of_all.try_next().unwrap() {
                // A handle of before passes nothing over.
                for change in batch.changes().iter().filter(|change| change.table() == "account") {
                    assert!(matches!(change.of(&before), Err(Error::TableChanged(_))), "{change:?}");
                    refused += 1;
                }
                apply(&mut copies[2], &batch, &accounts);
            }
            assert_eq!(refused, 1 + 3, "that it was emptied, and its new rows");
            assert_eq!(copies[0], rows(&db, &accounts));
            assert_eq!(copies[2], rows(&db, &accounts));
        }
    }
    catch_up(&mut by_one, &mut copies[1], &db.table().unwrap());
    assert_eq!(copies[1], rows(&db, &db.table().unwrap()));
    let mut numbers = 0;
    while let Some(batch) = of_other.try_next().unwrap() {
        assert!(batch.changes().iter().all(|change| !change.empties_table() && change.table() == "other"));
        numbers += batch.changes().len();
    }
    assert_eq!(numbers, 3);
    // From a position of before, also in an opening to come.
    let stored = of_table.position();
    check_truncated(&db, oldest, stored);
    drop((accounts, of_table, of_other, by_one, of_all, others));
    db.close().unwrap();
    drop(db);
    check_truncated(&open_with::<E>(&disk, options(64 << 20)).0, oldest, stored);
}

/// Checks that what is behind `oldest` makes a copy with rows of before the database, and that nothing is behind `newest`.
fn check_truncated<E: Engine>(db: &Database<E>, oldest: ChangePosition, newest: ChangePosition) {
    let accounts = db.table::<Account>().unwrap();
    for request in [db.changes(), db.changes().tables(["account"])] {
        let (mut copy, mut emptied) = (Copy::from([(99, account(99, 9))]), 0);
        let mut changes = request.after(oldest).unwrap();
        while let Some(batch) = changes.try_next().unwrap() {
            for change in batch.changes().iter().filter(|change| change.empties_table()) {
                assert!(!change.is_deletion() && change.key().is_empty() && change.row().is_none());
                emptied += 1;
            }
            apply(&mut copy, &batch, &accounts);
        }
        assert_eq!((copy, emptied), (rows(db, &accounts), 1));
    }
    let mut changes = db.changes().tables(["account"]).after(newest).unwrap();
    assert!(changes.try_next().unwrap().is_none());
}

/// Writes to the table until it is to stop, whatever becomes of it.
fn write_until<E: Engine>(db: &Database<E>, seed: u32, stop: &AtomicBool) {
    let mut accounts = db.table::<Account>().unwrap();
    let mut id = seed;
    while !stop.load(Ordering::Relaxed) {
        id = (id + 7) % ACCOUNTS;
        let request = db.request().retries(u32::MAX);
        match request.transact(|tx| accounts.upsert(tx, &account(id, i64::from(seed)))) {
            Ok(_) => {}
            Err(Error::TableChanged(_)) => accounts = db.table().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Applies what is stored, each change by a handle of that moment, and returns how often the table was emptied.
fn follow<E: Engine>(db: &Database<E>, changes: &mut Changes<E>, copy: &mut Copy) -> u32 {
    let mut emptied = 0;
    while let Some(batch) = changes.try_next().unwrap() {
        for change in &batch {
            let made = loop {
                match change.of(&db.table::<Account>().unwrap()) {
                    // It was truncated just now.
                    Err(Error::TableChanged(_)) => thread::yield_now(),
                    made => break made.unwrap(),
                }
            };
            match made {
                Some(RowChange::Stored(id, row)) => _ = copy.insert(id, row),
                Some(RowChange::Deleted(id)) => _ = copy.remove(&id),
                Some(RowChange::Emptied) => {
                    copy.clear();
                    emptied += 1;
                }
                // Of the table as it was before it was truncated once more: that change comes too.
                None => {}
            }
        }
    }
    emptied
}

fn rows_are_given_as_long_as_it_is_not_stored_that_their_table_is_truncated<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let mut changes = db.changes().begin_now().unwrap();
    (0..10).for_each(|id| put(&db, &accounts, id, 1));
    let member = db.group_member().unwrap();
    member.hold();
    thread::scope(|scope| {
        let truncation = scope.spawn(|| db.truncate_table("account"));
        while !member.has_waiting() {
            thread::yield_now();
        }
        let mut given = 0;
        while let Some(batch) = changes.try_next().unwrap() {
            given += batch.changes().iter().filter(|change| change.table() == "account").count();
        }
        assert_eq!(given, 10);
        member.release(member.end_epoch());
        truncation.join().unwrap().unwrap();
    });
    let emptied = changes.try_next().unwrap().unwrap();
    assert!(emptied.changes().iter().all(|change| change.empties_table()) && emptied.changes().len() == 1);
}

fn a_copy_follows_truncations_that_others_make<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = open_with::<E>(&disk, options(64 << 20));
    let (stop, mut emptied) = (AtomicBool::new(false), 0);
    let (mut copy, mut changes) = (Copy::new(), db.changes().tables(["account"]).begin_at_oldest().unwrap());
    thread::scope(|scope| {
        let (db, stop, copy, changes) = (&db, &stop, &mut copy, &mut changes);
        (0..2).for_each(|seed| _ = scope.spawn(move || write_until(db, seed, stop)));
        let follower = scope.spawn(move || {
            let mut emptied = 0;
            while !stop.load(Ordering::Relaxed) {
                emptied += follow(db, changes, copy);
            }
            emptied
        });
        (0..10).for_each(|_| db.truncate_table("account").unwrap());
        stop.store(true, Ordering::Relaxed);
        emptied = follower.join().unwrap();
    });
    // Stored behind all that the writers have committed.
    put(&db, &db.table().unwrap(), 0, 77);
    emptied += follow(&db, &mut changes, &mut copy);
    assert!(emptied > 0, "at least the last one is told");
    assert_eq!(copy, rows(&db, &db.table().unwrap()));
}

fn who_has_read_everything_goes_on_behind_files_that_have_gone<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(0));
    put(&db, &accounts, 1, 5);
    let mut changes = db.changes().begin_at_oldest().unwrap();
    let mut copy = Copy::new();
    db.checkpoint().unwrap();
    catch_up(&mut changes, &mut copy, &accounts);
    // None of them has changes, and each takes the place of the files before it.
    for _ in 0..4 {
        db.checkpoint().unwrap();
    }
    catch_up(&mut changes, &mut copy, &accounts);
    put(&db, &accounts, 2, 7);
    catch_up(&mut changes, &mut copy, &accounts);
    assert_eq!(copy, rows(&db, &accounts));
}

fn a_position_of_an_opening_that_stored_nothing_is_good_behind_its_crash<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    put(&db, &accounts, 1, 5);
    drop(accounts);
    db.close().unwrap();
    let (db, _) = open_with::<E>(&disk, options(1 << 20));
    let position = db.change_position().unwrap();
    let disk = Arc::new(disk.crash(1));
    drop(db);
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    put(&db, &accounts, 2, 5);
    let mut found = Copy::new();
    catch_up(&mut db.changes().after(position).unwrap(), &mut found, &accounts);
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [2]);
}

fn a_copy_of_the_files_has_no_positions_of_what_the_original_has_done_since<E: Engine>(place: &Path) {
    std::fs::create_dir(place).unwrap();
    let (original, copy) = (place.join("original"), place.join("copy"));
    let open = |place: &Path| {
        let db = options(1 << 20).open_with::<E>(Arc::new(ensilo::disk::RealDisk), place).unwrap();
        let accounts = db.table::<Account>().unwrap();
        (db, accounts)
    };
    let (db, accounts) = open(&original);
    put(&db, &accounts, 1, 5);
    let before = db.change_position().unwrap();
    db.close().unwrap();
    drop((accounts, db));
    copy_directory(&original, &copy);
    let (db, accounts) = open(&original);
    put(&db, &accounts, 2, 5);
    let since = db.change_position().unwrap();
    let (db, accounts) = open(&copy);
    while db.change_position().unwrap().epoch() <= since.epoch() {
        put(&db, &accounts, 3, 7);
    }
    let error = db.changes().after(since).unwrap_err();
    assert!(matches!(error, Error::ChangesMissed(_)), "{error:?}");
    let mut found = Copy::new();
    catch_up(&mut db.changes().after(before).unwrap(), &mut found, &accounts);
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [3]);
}

fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy_directory(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

fn files_of_the_machine_are_read_too<E: Engine>(place: &Path) {
    let disk = Arc::new(ensilo::disk::RealDisk);
    let db = options(1 << 20).open_with::<E>(disk, place).unwrap();
    let accounts = db.table::<Account>().unwrap();
    let mut changes = db.changes().begin_at_oldest().unwrap();
    for id in 0..50 {
        put(&db, &accounts, id, 1);
    }
    let mut copy = Copy::new();
    catch_up(&mut changes, &mut copy, &accounts);
    assert_eq!(copy, rows(&db, &accounts));
}

fn a_row_larger_than_the_memory_comes_whole<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 30));
    let mut changes = db.changes().memory_bytes(1 << 20).begin_now().unwrap();
    for id in 0..2 {
        let note = id.to_string().repeat(16 << 20);
        db.transact(|tx| accounts.upsert(tx, &Account { note: note.clone(), ..account(id, 3) })).unwrap();
    }
    put(&db, &accounts, 2, 5);
    let mut copy = Copy::new();
    catch_up(&mut changes, &mut copy, &accounts);
    assert!(copy.len() == 3 && copy == rows(&db, &accounts));
}

fn in_a_directory(name: &str, test: impl FnOnce(&Path)) {
    let place = std::env::temp_dir().join(format!("ensilo-changes-{name}-{}", std::process::id()));
    test(&place);
    std::fs::remove_dir_all(place).unwrap();
}

macro_rules! over_every_engine {
    ($($test:ident),*) => {
        over_every_engine! { @engine silo, ensilo::Silo, $($test),* }
        over_every_engine! { @engine ermia, ensilo::ermia::Ermia, $($test),* }
        over_every_engine! { @engine two_phase_locking, ensilo::two_phase_locking::TwoPhaseLocking, $($test),* }
    };
    (@engine $name:ident, $engine:ty, $($test:ident),*) => {
        mod $name {
            use super::in_a_directory;

            $(#[test]
            fn $test() {
                super::$test::<$engine>();
            })*

            #[test]
            fn files_of_the_machine_are_read_too() {
                in_a_directory(stringify!($name), super::files_of_the_machine_are_read_too::<$engine>);
            }

            #[test]
            fn a_copy_of_the_files_has_no_positions_of_what_the_original_has_done_since() {
                let test = super::a_copy_of_the_files_has_no_positions_of_what_the_original_has_done_since::<$engine>;
                in_a_directory(concat!(stringify!($name), "-copy"), test);
            }
        }
    };
}

over_every_engine! {
    changes_come_as_rows_and_deletions,
    a_wait_ends_with_the_next_commit_and_with_the_database,
    a_copy_made_of_changes_alone_is_the_database_and_each_epoch_is_whole,
    a_stored_position_goes_on_after_crashes_and_checkpoints_without_loss_or_doubles,
    log_files_are_kept_for_who_is_behind_through_checkpoints_and_openings,
    what_is_not_kept_is_missed_and_the_error_says_from_where_on_it_is_there,
    an_epoch_larger_than_the_memory_comes_in_parts_that_can_be_taken_up,
    a_row_larger_than_the_memory_comes_whole,
    epochs_of_dropped_tables_give_no_batch_and_parts_of_an_epoch_an_end,
    tables_of_the_system_give_no_batch_while_they_are_made,
    rows_of_before_a_change_of_columns_come_as_they_are_since,
    changes_of_a_dropped_table_are_not_those_of_one_that_is_made_later,
    a_truncated_table_is_emptied_for_consumers_wherever_they_are,
    a_copy_follows_truncations_that_others_make,
    rows_are_given_as_long_as_it_is_not_stored_that_their_table_is_truncated,
    who_has_read_everything_goes_on_behind_files_that_have_gone,
    a_position_of_an_opening_that_stored_nothing_is_good_behind_its_crash,
    a_stream_gives_what_others_commit_and_keeps_no_thread,
    a_stream_reads_one_batch_when_it_is_asked_and_says_where_it_is,
    errors_end_a_stream_of_changes,
    a_closure_is_called_with_the_changes_of_its_range,
    of_changes_that_wait_for_a_slow_closure_it_gets_the_last_of_each_row,
    a_closure_may_use_the_database_and_other_subscriptions,
    no_call_begins_once_a_subscription_is_dropped,
    a_panic_ends_one_call_and_is_reported,
    what_is_no_range_of_a_kept_table_is_refused,
    a_closure_is_called_with_what_becomes_of_its_table,
    a_closure_that_is_too_slow_gets_an_error_and_goes_on,
    a_closure_hears_of_a_table_that_is_truncated_beside_its_subscription,
    a_database_may_be_closed_by_a_closure_and_beside_one,
    a_closure_that_owns_the_last_handle_closes_at_its_last_error,
    closing_ends_the_waits_for_changes_of_closures_and_jobs,
    a_job_of_another_database_closes_that_of_the_closure_that_waits_for_it,
    a_job_that_a_closure_waits_for_closes_what_is_being_closed,
    the_end_of_a_subscription_waits_until_its_closure_is_dropped,
    a_closure_that_panics_in_its_last_call_is_called_no_more,
    changes_that_are_dropped_leave_no_waker
}
