//! Databases that are larger than their memory limit, over ERMIA's engine alone: over Silo's no row leaves memory.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::disk::Disk;
use ensilo::ermia::Ermia;
use ensilo::{AbortReason, Columns, DegradedReason, Durability, Error, Event, Options, Row, Silo, generic};
use ensilo_test_disk::{Faults, SimulatedDisk};

type Database = generic::Database<Ermia>;
type Accounts = generic::Table<Account, Ermia>;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner)))]
struct Account {
    #[row(key)]
    id: u32,
    owner: u32,
    balance: i64,
    note: String,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

const DIRECTORY: &str = "/db";
const ROWS: u32 = 12_000;

fn limited() -> Options {
    Options::default()
        .memory_limit_bytes(8 << 20)
        .epochs_per_snapshot(2)
        .log_file_bytes(1 << 20)
        .checkpoint_interval(Duration::from_secs(3600))
        .recovery_threads(2)
}

fn open(disk: &Arc<SimulatedDisk>, directory: &str) -> Database {
    limited().open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new(directory)).unwrap()
}

/// A row of about a kilobyte, so that all of them take half as much again as the limit.
fn long(id: u32, balance: i64) -> Account {
    Account { id, owner: id % 7, balance, note: format!("{id:08}{}", "x".repeat(1000)) }
}

/// A database with more rows than its memory holds.
fn with_rows(disk: &Arc<SimulatedDisk>) -> (Database, Accounts) {
    let db = open(disk, DIRECTORY);
    let accounts = db.create_table::<Account>().unwrap();
    for first in (0..ROWS).step_by(100) {
        let rows: Vec<_> = (first..first + 100).map(|id| long(id, 0)).collect();
        in_time(|| {
            let request = db.request().durability(Durability::Visible);
            request.transact(|tx| accounts.insert_many(tx, &rows))
        });
    }
    assert!(db.statistics().unwrap().memory.cold_rows > 1000, "{:?}", db.statistics().unwrap().memory);
    (db, accounts)
}

/// Returns the bytes of the files in which rows are that have left memory, and how many there are.
fn cold_files(disk: &SimulatedDisk) -> (u64, usize) {
    let files =
        disk.files().into_iter().filter(|(path, _)| path.parent().is_some_and(|at| at.ends_with("cold")));
    files.fold((0, 0), |(bytes, count), (_, len_bytes)| (bytes + len_bytes, count + 1))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::yield_now();
    }
}

/// Checks that the rows are these, some at a time: no transaction holds all of them.
fn assert_rows(db: &Database, balances: &BTreeMap<u32, i64>) {
    let accounts: Accounts = db.open_table().unwrap();
    for first in (0..ROWS).step_by(500) {
        let rows = in_time(|| db.transact(|tx| accounts.range(first..first + 500).rows(tx)));
        let found: Vec<_> = rows.iter().map(|row| (row.id, row.balance)).collect();
        let expected = balances.range(first..first + 500).map(|(&id, &balance)| (id, balance));
        assert_eq!(found, expected.collect::<Vec<_>>(), "from {first} on");
        assert!(rows.iter().all(|row| *row == long(row.id, row.balance)), "from {first} on");
    }
}

fn next(random: &mut u64) -> u32 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*random >> 40) as u32
}

/// Returns what a request returns once there is memory for it: on a busy machine rows may leave late.
fn in_time<R>(mut request: impl FnMut() -> ensilo::Result<R>) -> R {
    let began = Instant::now();
    loop {
        match request() {
            Err(Error::OutOfMemory(_)) if began.elapsed() < Duration::from_secs(60) => {}
            outcome => return outcome.unwrap(),
        }
    }
}

/// Changes rows by two threads, each every other one.
fn change_rows(db: &Database, accounts: &Accounts, seed: u64, balances: &mut BTreeMap<u32, i64>) {
    let change = |half: u32| {
        let (mut random, mut balances) = (seed + u64::from(half), BTreeMap::new());
        for step in 0..2000 {
            let id = next(&mut random) % ROWS / 2 * 2 + half;
            let request = || db.request().durability(Durability::Visible);
            let balance = i64::from(next(&mut random));
            if step % 8 == 7 {
                in_time(|| request().transact(|tx| accounts.delete(tx, id).map(|_| ())));
                in_time(|| request().transact(|tx| accounts.insert(tx, &long(id, balance)).map(|_| ())));
            } else {
                in_time(|| request().transact(|tx| accounts.upsert(tx, &long(id, balance)).map(|_| ())));
            }
            balances.insert(id, balance);
        }
        balances
    };
    thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || change(half)));
        halves.into_iter().for_each(|half| balances.extend(half.join().unwrap()));
    });
}

#[test]
fn rows_beyond_the_memory_limit_are_changed_kept_by_checkpoints_and_recovered() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_rows(&disk);
    let mut balances = (0..ROWS).map(|id| (id, 0)).collect();
    change_rows(&db, &accounts, 1, &mut balances);
    assert_rows(&db, &balances);
    db.checkpoint().unwrap();
    change_rows(&db, &accounts, 3, &mut balances);
    assert_rows(&db, &balances);
    db.backup("/copy").unwrap();
    let by_owner = accounts.index::<u32>("by_owner").unwrap();
    let owned = in_time(|| db.transact(|tx| by_owner.equal(3).limit(100).rows(tx)));
    assert_eq!(owned.len(), 100);
    assert!(owned.iter().all(|row| row.owner == 3 && *row == long(row.id, balances[&row.id])));
    db.close().unwrap();
    for directory in [DIRECTORY, "/copy"] {
        let db = open(&disk, directory);
        assert_rows(&db, &balances);
        // What an opening has taken beside the limit is freed again.
        until("rows leave", || db.statistics().unwrap().memory.cold_rows >= 5000);
        assert_rows(&db, &balances);
        let statistics = db.statistics().unwrap();
        assert!(statistics.memory.loaded_rows > 1000, "{:?}", statistics.memory);
        assert_eq!(statistics.table("account").unwrap().records, u64::from(ROWS));
    }
}

#[test]
fn a_power_failure_takes_nothing_that_has_left_memory() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_rows(&disk);
    in_time(|| db.transact(|tx| accounts.update(tx, 0, |row: &mut Balance| row.balance = 1)));
    let mut balances: BTreeMap<u32, i64> = (0..ROWS).map(|id| (id, 0)).collect();
    balances.insert(0, 1);
    for seed in 0..3 {
        let crashed = Arc::new(disk.fork().crash(seed));
        assert_rows(&open(&crashed, DIRECTORY), &balances);
    }
}

#[test]
fn what_cannot_be_read_back_is_an_error_and_stays_out_of_no_checkpoint() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_rows(&disk);
    db.checkpoint().unwrap();
    for (path, len_bytes) in disk.files() {
        if path.parent().is_some_and(|directory| directory.ends_with("cold")) {
            (0..len_bytes).step_by(256).for_each(|at| disk.flip(&path, at * 8).unwrap());
        }
    }
    let read = |id| db.transact(|tx| accounts.get(tx, id));
    let refused = (0..ROWS).find_map(|id| read(id).err()).unwrap();
    assert!(matches!(&refused, Error::RowUnreadable(abort) if abort.reason() == AbortReason::RowUnreadable));
    assert!(refused.to_string().contains("open the database again"), "{refused}");
    let refused = db.checkpoint().unwrap_err();
    assert!(refused.to_string().contains("leave rows out"), "{refused}");
    let written = || db.statistics().unwrap().durability.unwrap().checkpoints.bytes_written;
    let before = written();
    db.checkpoint().unwrap_err();
    assert_eq!(written(), before, "it is refused before it is written");
    drop(db);
    let balances = (0..ROWS).map(|id| (id, 0)).collect();
    assert_rows(&open(&disk, DIRECTORY), &balances);
}

#[test]
fn a_transaction_that_reads_more_than_fits_is_refused_and_others_go_on() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_rows(&disk);
    let all = db.request().retries(3).transact(|tx| accounts.scan().rows(tx));
    assert!(matches!(all, Err(Error::OutOfMemory(_))), "{:?}", all.map(|rows| rows.len()));
    assert_eq!(in_time(|| db.transact(|tx| accounts.get(tx, 77))), Some(long(77, 0)));
}

#[test]
fn waiting_until_rows_leave_takes_no_retries() {
    let db = open(&Arc::new(SimulatedDisk::new()), DIRECTORY);
    let accounts = db.create_table::<Account>().unwrap();
    for first in (0..ROWS).step_by(100) {
        let rows: Vec<_> = (first..first + 100).map(|id| long(id, 0)).collect();
        let began = Instant::now();
        let request = db.request().durability(Durability::Visible).retries(1);
        match request.transact(|tx| accounts.insert_many(tx, &rows)) {
            // On a busy machine rows may leave late.
            Err(Error::OutOfMemory(_)) => assert!(began.elapsed() > Duration::from_secs(1), "{first}"),
            inserted => _ = inserted.unwrap(),
        }
    }
    assert!(db.statistics().unwrap().memory.evicted_rows > 1000);
}

#[test]
fn readers_read_more_than_fits_and_leave_it_where_it_is() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_rows(&disk);
    let all: Vec<_> = (0..ROWS).map(|id| long(id, 0)).collect();
    let before = db.statistics().unwrap().memory.loaded_rows;
    let rows = |rows: Vec<Account>| assert!(rows == all, "{} rows of {ROWS}", rows.len());
    let in_time = |read: &dyn Fn() -> ensilo::Result<Vec<Account>>| {
        (0..200).find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            read().ok()
        })
    };
    rows(in_time(&|| db.read_stale(|tx| accounts.scan().rows(tx))).unwrap());
    let loaded = db.statistics().unwrap().memory.loaded_rows - before;
    assert!(loaded < 100, "{loaded} rows came back to memory");
    rows(db.read(|tx| accounts.scan().rows(tx)).unwrap());
    let by_key =
        db.read_stale(|tx| (0..ROWS).map(|id| accounts.get(tx, id)).collect::<ensilo::Result<Vec<_>>>());
    rows(by_key.unwrap().into_iter().flatten().collect());
}

/// It waits for rows to leave memory, as other requests do.
#[test]
fn a_read_while_rows_are_loaded_waits_for_memory() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_rows(&disk);
    db.checkpoint().unwrap();
    db.close().unwrap();
    for _ in 0..3 {
        let options = limited().answer_while_loading(true);
        let db: Database =
            options.open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap();
        let accounts: Accounts = db.open_table().unwrap();
        assert_eq!(db.read(|tx| accounts.scan().count(tx)).unwrap(), ROWS as usize);
        db.close().unwrap();
    }
}

#[test]
fn a_stale_read_keeps_nothing_of_the_rows_that_it_passes() {
    // 40 bytes of each row would take more than the limit, however it is read.
    const ROUNDS: u32 = 20;
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_rows(&disk);
    let ids: Vec<u32> = (0..ROWS).collect();
    let by_owner = accounts.index::<u32>("by_owner").unwrap();
    let read = |read: &dyn Fn(&mut generic::Snapshot<'_, Ermia>) -> ensilo::Result<u32>| {
        let count =
            in_time(|| db.read_stale(|tx| (0..ROUNDS).map(|_| read(tx)).sum::<ensilo::Result<u32>>()));
        assert_eq!(count, ROUNDS * ROWS);
    };
    until("the snapshot shows all rows", || {
        db.read_stale(|tx| accounts.scan().count(tx)).unwrap() == ROWS as usize
    });
    read(&|tx| {
        let mut count = 0;
        accounts.scan().columns::<Balance>().for_each(tx, |_, _| count += 1)?;
        Ok(count)
    });
    read(&|tx| {
        let mut count = 0;
        by_owner.scan().columns::<Balance>().for_each(tx, |_, _| count += 1)?;
        Ok(count)
    });
    read(&|tx| {
        let mut count = 0;
        accounts.get_columns_many::<Balance>(tx, &ids, |_, row| count += u32::from(row.is_some()))?;
        Ok(count)
    });
    read(&|tx| {
        let mut count = 0;
        for id in &ids {
            count += u32::from(accounts.get_columns::<Balance>(tx, *id)?.is_some());
        }
        Ok(count)
    });
    read(&|tx| {
        let mut count = 0;
        for id in &ids {
            count += u32::from(accounts.contains(tx, *id)?);
        }
        Ok(count)
    });
}

/// A row that takes a block beside the chunks of memory.
fn large(id: u32) -> Account {
    Account { note: "y".repeat(100 << 10), ..long(id, 1) }
}

/// A database without a limit, which was closed; every hundredth row was replaced by a large one, if `has_large`.
fn closed_without_limit(has_large: bool) -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    let options = Options::default().checkpoint_interval(Duration::from_secs(3600));
    let db: Database = options.open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let rows: Vec<_> = (0..2 * ROWS).map(|id| long(id, 0)).collect();
    rows.chunks(1000).for_each(|rows| _ = db.transact(|tx| accounts.insert_many(tx, rows)).unwrap());
    db.checkpoint().unwrap();
    if has_large {
        (0..2 * ROWS).step_by(100).for_each(|id| db.transact(|tx| accounts.upsert(tx, &large(id))).unwrap());
    }
    db.transact(|tx| accounts.insert(tx, &large(u32::MAX))).unwrap();
    db.close().unwrap();
    disk
}

#[test]
fn a_database_of_many_small_rows_and_one_large_one_is_opened_under_a_smaller_limit() {
    let disk = closed_without_limit(false);
    // Under one of these limits chunks, if they may take all of it, leave less than the large row needs.
    for step in 0..10 {
        let options = limited().memory_limit_bytes((8 << 20) + step * (48 << 10));
        let db: Database =
            options.open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap();
        let accounts: Accounts = db.open_table().unwrap();
        assert_eq!(in_time(|| db.transact(|tx| accounts.get(tx, u32::MAX))), Some(large(u32::MAX)));
        assert_eq!(in_time(|| db.transact(|tx| accounts.get(tx, 0))), Some(long(0, 0)));
        db.close().unwrap();
    }
}

#[test]
fn small_rows_that_large_ones_replace_are_recovered_under_a_smaller_limit_and_used() {
    let disk = closed_without_limit(true);
    let db = open(&disk, DIRECTORY);
    let accounts: Accounts = db.open_table().unwrap();
    let request = || db.request().durability(Durability::Visible);
    for round in 0..2 {
        for id in (0..2 * ROWS).step_by(150) {
            let expected = if id % 100 == 0 || round == 1 { large(id) } else { long(id, 0) };
            assert_eq!(in_time(|| db.transact(|tx| accounts.get(tx, id))), Some(expected), "row {id}");
            in_time(|| request().transact(|tx| accounts.upsert(tx, &large(id)).map(|_| ())));
        }
    }
    let statistics = db.statistics().unwrap();
    assert!(
        statistics.memory.mapped_bytes <= 18 << 20,
        "as much as the opening may take: {:?}",
        statistics.memory
    );
}

/// Returns options with the events of the database that is opened with them.
fn with_events(options: Options) -> (Options, Receiver<Event>) {
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    (options.on_event(move |event| _ = sender.lock().unwrap().send(event.clone())), events)
}

fn set_room(disk: &SimulatedDisk, bytes: u64) {
    disk.set_faults(Faults { no_space_after_bytes: Some(bytes), ..Faults::default() });
}

fn degraded(db: &Database) -> Option<DegradedReason> {
    Some(db.statistics().unwrap().durability.unwrap().degraded?.reason)
}

/// Inserts rows from this id on, with a checkpoint after each megabyte, until there is no memory for more. Returns how many rows there are, and
/// what the last one has ended with.
fn fill(db: &Database, accounts: &Accounts, first: u32) -> (u32, String) {
    for id in first.. {
        if id % 1000 == 999 {
            db.checkpoint().unwrap();
        }
        match db.transact(|tx| accounts.insert(tx, &long(id, 0))) {
            Err(error @ Error::OutOfMemory(_)) => return (id, error.to_string()),
            inserted => _ = inserted.unwrap(),
        }
    }
    unreachable!("the disk is full some day")
}

#[test]
fn rows_that_leave_memory_leave_log_and_checkpoints_their_room() {
    const ROOM: u64 = 40 << 20;
    let disk = Arc::new(SimulatedDisk::new());
    set_room(&disk, ROOM);
    let (options, events) = with_events(limited().no_checkpoints());
    let db: Database = options.open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let (rows, refused) = fill(&db, &accounts, 0);
    assert!(cold_files(&disk).0 > 1 << 20, "{rows} rows");
    let why = ", with a memory limit of 8388608 bytes; rows cannot leave memory: /db/cold: ";
    assert!(refused.contains("in account at id = ") && refused.contains(why), "{refused}");
    until("it is seen", || degraded(&db) == Some(DegradedReason::EvictionFailed));
    let failed = events.iter().find_map(|event| match event {
        Event::EvictionFailed { error } => Some(error),
        _ => None,
    });
    assert!(failed.as_ref().is_some_and(|error| error.contains("cold")), "{failed:?}");
    // Rows that are in memory are deleted, and give their place to others.
    for _ in 0..4 {
        for id in rows - 200..rows {
            in_time(|| db.transact(|tx| accounts.delete(tx, id)));
            in_time(|| db.transact(|tx| accounts.insert(tx, &long(id, 1))));
        }
        db.checkpoint().unwrap();
    }
    set_room(&disk, 2 * ROOM);
    until("rows leave again", || degraded(&db).is_none());
    let (more, _) = fill(&db, &accounts, rows);
    assert!(more > rows + 1000, "{more} after {rows}");
    assert!(events.try_iter().any(|event| matches!(event, Event::Recovered)));
    drop(db);
    let db = open(&disk, DIRECTORY);
    assert_eq!(db.statistics().unwrap().table("account").unwrap().records, u64::from(more));
}

#[test]
fn log_that_takes_the_room_of_rows_that_should_leave_is_replaced_by_a_checkpoint() {
    const MIB: u64 = 1 << 20;
    let disk = Arc::new(SimulatedDisk::new());
    let options = limited().memory_limit_bytes(32 << 20);
    let db: Database = options.open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let visible = || db.request().durability(Durability::Visible);
    let insert = |id| in_time(|| visible().transact(|tx| accounts.insert(tx, &long(id, 0)).map(|_| ())));
    (0..40_000).for_each(insert);
    let durability = || db.statistics().unwrap().durability.unwrap();
    let last_bytes = db.checkpoint().unwrap().bytes;
    // Rows that stay in memory, so that only the log takes room: as much as is worth a checkpoint.
    let log_bytes = durability().log_bytes;
    while durability().log_bytes < log_bytes + last_bytes {
        for id in 0..100 {
            in_time(|| visible().transact(|tx| accounts.upsert(tx, &long(id, 1)).map(|_| ())));
        }
    }
    assert_eq!(durability().checkpoints.made, 1);
    // The room for one, and for the log of the rows that fill memory: then none can leave.
    let used_bytes: u64 = disk.files().iter().map(|(_, len_bytes)| len_bytes).sum();
    set_room(&disk, used_bytes + last_bytes / 4 * 5 + 2 * MIB + 11 * MIB);
    // Until there is one: whether the room that it frees is enough for many more rows is another matter.
    let is_made = (40_000..52_000).any(|id| {
        insert(id);
        durability().checkpoints.made > 1
    });
    assert!(is_made);
}

#[test]
fn a_disk_that_has_room_again_is_not_full_although_no_row_has_to_leave() {
    const ROOM: u64 = 40 << 20;
    let disk = Arc::new(SimulatedDisk::new());
    set_room(&disk, ROOM);
    let options = limited().no_checkpoints();
    let db: Database = options.open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let (rows, _) = fill(&db, &accounts, 0);
    until("it is seen", || degraded(&db) == Some(DegradedReason::EvictionFailed));
    // The log has room, and rows have none; the disk is asked each second.
    let used_bytes: u64 = disk.files().iter().map(|(_, len_bytes)| len_bytes).sum();
    set_room(&disk, used_bytes + (2 << 20));
    // So many that memory is half empty: the last ones, which are there.
    for id in (rows - 4000..rows).rev() {
        in_time(|| db.request().durability(Durability::Visible).transact(|tx| accounts.delete(tx, id)));
    }
    thread::sleep(Duration::from_secs(3));
    assert_eq!(degraded(&db), Some(DegradedReason::EvictionFailed), "as long as there is no room");
    set_room(&disk, 2 * ROOM);
    until("there is room", || degraded(&db).is_none());
}

#[test]
fn a_handle_of_before_takes_no_file_from_the_next_opening() {
    let disk = Arc::new(SimulatedDisk::new());
    let (before, accounts_before) = with_rows(&disk);
    before.close().unwrap();
    assert_eq!(cold_files(&disk), (0, 0), "the files go under the lock of the directory");
    let db = open(&disk, DIRECTORY);
    let accounts: Accounts = db.open_table().unwrap();
    let mut balances = (0..ROWS).map(|id| (id, 0)).collect();
    change_rows(&db, &accounts, 1, &mut balances);
    let cold_rows = || db.statistics().unwrap().memory.cold_rows;
    until("rows leave", || cold_rows() >= 5000);
    let files_before = cold_files(&disk);
    assert!(files_before.1 > 0);
    drop((before, accounts_before));
    assert!(cold_files(&disk).1 >= files_before.1, "{:?} after {files_before:?}", cold_files(&disk));
    change_rows(&db, &accounts, 3, &mut balances);
    assert_rows(&db, &balances);
    let memory = db.statistics().unwrap().memory;
    assert!(memory.cold_row_bytes <= memory.cold_file_bytes, "{memory:?}");
    // Each row has an entry in the index, which leaves memory by itself; a few rows are the catalog's.
    assert!((1..2 * u64::from(ROWS) + 100).contains(&memory.cold_rows), "{memory:?}");
}

#[test]
fn every_opening_for_writing_removes_what_a_crash_has_left_of_rows_outside_memory() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_rows(&disk);
    let crashed = [0, 1].map(|_| Arc::new(disk.fork()));
    drop(db);
    for disk in &crashed {
        assert!(cold_files(disk).1 > 0);
    }
    let as_disk = |at: usize| Arc::clone(&crashed[at]) as Arc<dyn Disk>;
    let unlimited = || Options::default().log_file_bytes(1 << 20);
    let silo: generic::Database<Silo> = unlimited().open_with(as_disk(0), Path::new(DIRECTORY)).unwrap();
    let ermia: Database = unlimited().open_with(as_disk(1), Path::new(DIRECTORY)).unwrap();
    for disk in &crashed {
        assert_eq!(cold_files(disk), (0, 0));
        assert!(!disk.exists(&Path::new(DIRECTORY).join("cold")).unwrap());
    }
    drop((silo, ermia));
}

#[test]
fn closing_makes_no_long_checkpoint_unasked_although_most_rows_are_outside_memory() {
    const LONG_ROWS: u32 = 1300;
    let disk = Arc::new(SimulatedDisk::new());
    // The checkpoint that is due after an opening takes a minute, so that it is under way when the database is closed.
    let open = || -> Database {
        let options = limited().memory_limit_bytes(16 << 20).log_file_bytes(32 << 20);
        let options = options.checkpoint_bytes_per_second(1 << 20);
        options.open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap()
    };
    let db = open();
    let accounts = db.create_table::<Account>().unwrap();
    for id in 0..LONG_ROWS {
        let row = Account { note: "x".repeat(60_000), ..long(id, 0) };
        in_time(|| {
            db.request().durability(Durability::Visible).transact(|tx| accounts.insert(tx, &row).map(|_| ()))
        });
    }
    db.close().unwrap();
    for _ in 0..2 {
        let db = open();
        let statistics = db.statistics().unwrap();
        let durability = statistics.durability.unwrap();
        assert_eq!(durability.recovery.checkpoint_rows, 0, "no checkpoint was made");
        assert!(durability.recovery.log_bytes > 64 << 20 && statistics.memory.live_bytes < 32 << 20);
        assert!(statistics.memory.live_bytes + statistics.memory.cold_row_bytes > 64 << 20);
        db.close().unwrap();
    }
}

#[test]
fn large_rows_leave_memory_come_back_and_are_recovered() {
    const ROWS: u32 = 8;
    const BYTES: usize = 12 << 20;
    let disk = Arc::new(SimulatedDisk::new());
    let open = || {
        let options = limited().memory_limit_bytes(64 << 20);
        let opened = options.open_with::<Ermia>(Arc::clone(&disk) as Arc<dyn Disk>, Path::new(DIRECTORY));
        opened.unwrap()
    };
    let large = |id: u32| Account { note: format!("{id:08}{}", "x".repeat(BYTES)), ..long(id, 0) };
    let assert_large = |db: &Database| {
        let accounts: Accounts = db.open_table().unwrap();
        for id in (0..ROWS).rev() {
            let row = in_time(|| db.transact(|tx| accounts.get(tx, id)));
            assert!(row == Some(large(id)), "row {id}");
        }
    };
    let db = open();
    let accounts = db.create_table::<Account>().unwrap();
    for id in 0..ROWS {
        in_time(|| db.transact(|tx| accounts.insert(tx, &large(id))));
    }
    let memory = db.statistics().unwrap().memory;
    assert!(memory.cold_rows >= 3 && memory.cold_row_bytes > 3 * BYTES as u64, "{memory:?}");
    assert_large(&db);
    assert!(db.read_stale(|tx| accounts.scan().count(tx)).is_ok());
    db.checkpoint().unwrap();
    db.close().unwrap();
    assert_large(&open());
}
