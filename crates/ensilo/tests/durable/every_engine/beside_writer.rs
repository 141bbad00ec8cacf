//! Databases that are read beside the process that has them open to write.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use ensilo::{Error, OpenError};
use ensilo_log::FILE_HEADER_BYTES;
use ensilo_test_disk::Faults;

use super::*;

fn open_beside(disk: &Arc<SimulatedDisk>) -> Result<Database> {
    open_with(options().read_only(true).beside_writer(true), disk)
}

/// Returns the error of an opening that finds damage.
fn damage_of(opened: Result<Database>) -> String {
    match opened {
        Err(Error::Open(error)) if matches!(*error, OpenError::Corrupt(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Returns a file of the database whose path has this in it.
fn file_like(disk: &SimulatedDisk, part: &str) -> std::path::PathBuf {
    let files = disk.files().into_iter().map(|(path, _)| path);
    files.into_iter().find(|path| path.to_string_lossy().contains(part)).unwrap()
}

#[test]
fn a_reader_finds_what_is_stored_and_stays_at_that_point() {
    let disk = Arc::new(SimulatedDisk::new());
    let (writer, table) = with_accounts(&disk, 100);
    let set = |balance: i64| {
        writer.transact(|tx| table.update(tx, 3, |row: &mut Balance| row.balance = balance)).unwrap();
    };
    let balance = |db: &Database| all_rows(db)[3].balance;
    let first = open_beside(&disk).unwrap();
    set(1);
    writer.checkpoint().unwrap();
    let second = open_beside(&disk).unwrap();
    set(2);
    let third = open_beside(&disk).unwrap();
    writer.checkpoint().unwrap();
    writer.close().unwrap();
    // It is opened again as if nobody read.
    let again = open(&disk);
    assert_eq!([&first, &second, &third, &again].map(balance), [100, 1, 2, 2]);
    assert!(first.durable_epoch() < third.durable_epoch() && third.durable_epoch() < again.durable_epoch());
    let statistics = third.statistics().unwrap().durability.unwrap();
    assert!(statistics.is_read_only && statistics.is_beside_writer);
    let table = accounts(&third);
    let refused = third.transact(|tx| table.delete(tx, 1).map(|_| ()));
    assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
}

#[test]
fn what_a_killed_process_has_left_is_read_and_not_changed() {
    let disk = Arc::new(SimulatedDisk::new());
    let (writer, table) = with_accounts(&disk, 100);
    writer.checkpoint().unwrap();
    writer.transact(|tx| table.delete(tx, 7).map(|_| ())).unwrap();
    let expected = all_rows(&writer);
    let left = Arc::new(disk.kill());
    // No byte is free, and whatever writes fails.
    left.set_faults(Faults { no_space_after_bytes: Some(0), ..Faults::default() });
    let (db, other) = (open_beside(&left).unwrap(), open_beside(&left).unwrap());
    assert_eq!((all_rows(&db), all_rows(&other)), (expected.clone(), expected));
    let counts = left.counts();
    assert_eq!((counts.writes, counts.syncs, counts.name_changes), (0, 0, 0));
    left.set_faults(Faults::default());
    drop(open(&left));
}

#[test]
fn rows_that_are_loaded_later_come_from_files_that_are_gone() {
    let disk = Arc::new(SimulatedDisk::new());
    let (writer, table) = with_accounts(&disk, 2000);
    writer.checkpoint().unwrap();
    let expected = all_rows(&writer);
    let beside = options().read_only(true).beside_writer(true).answer_while_loading(true);
    let db = open_with(beside, &disk).unwrap();
    writer.transact(|tx| (0..2000).try_for_each(|id| table.delete(tx, id).map(drop))).unwrap();
    writer.checkpoint().unwrap();
    db.wait_until_loaded().unwrap();
    assert_eq!(all_rows(&db), expected);
}

#[test]
fn what_is_missing_or_damaged_is_never_read_beside_a_writer_either() {
    let disk = Arc::new(SimulatedDisk::new());
    let (writer, table) = with_accounts(&disk, 100);
    let stored = || writer.transact(|tx| table.update(tx, 3, |row: &mut Balance| row.balance += 1)).unwrap();
    writer.checkpoint().unwrap();
    (0..20).for_each(|_| stored());
    // What is harmed has to be known to be stored: by what was written behind it, in the same file, for later transactions. The logger may
    // go on in its next file at any moment.
    let (frozen, written) = loop {
        let before = disk.fork();
        let written = file_like(&before, ".open");
        let has_blocks =
            before.contents(&written).unwrap()[FILE_HEADER_BYTES..].iter().any(|&byte| byte != 0);
        (0..3).for_each(|_| stored());
        let frozen = disk.fork();
        if has_blocks && frozen.contents(&written).is_ok() {
            break (frozen, written);
        }
    };
    let part = file_like(&frozen, "/part-");
    let part_bytes = frozen.contents(&part).unwrap().len() as u64;
    let first_block = FILE_HEADER_BYTES as u64 + 100;
    type Harm<'h> = (&'h str, &'h dyn Fn(&SimulatedDisk));
    let harms: [Harm<'_>; 7] = [
        ("a part of the checkpoint is missing", &|disk| disk.delete(&part).unwrap()),
        ("a bit of the checkpoint is wrong", &|disk| disk.flip(&part, 8 * (part_bytes - 100)).unwrap()),
        ("a file of the log is missing", &|disk| disk.delete(&written).unwrap()),
        ("a bit of the log is wrong", &|disk| disk.flip(&written, 8 * first_block).unwrap()),
        ("the log was cut", &|disk| disk.truncate(&written, first_block).unwrap()),
        ("the log was cut within its header", &|disk| disk.truncate(&written, 100).unwrap()),
        ("nothing is left of the log", &|disk| disk.truncate(&written, 0).unwrap()),
    ];
    for (what, harm) in harms {
        // As if the writer had it open: the lock is held, and nothing else changes.
        let harmed = Arc::new(frozen.fork());
        let _lock = harmed.lock(&Path::new(DIRECTORY).join("LOCK")).unwrap();
        harm(&harmed);
        println!("{what}: {}", damage_of(open_beside(&harmed)));
    }
    assert_eq!(all_rows(&open_beside(&disk).unwrap())[3].balance, all_rows(&writer)[3].balance);
}

#[test]
fn it_is_for_reading_alone_and_there_must_be_something_to_read() {
    let disk = Arc::new(SimulatedDisk::new());
    let refused = open_with(options().beside_writer(true), &disk);
    assert!(matches!(refused, Err(Error::InvalidOption(_))), "{refused:?}");
    let nothing = open_beside(&disk);
    assert!(matches!(&nothing, Err(Error::Open(error)) if matches!(**error, OpenError::NotADatabase { .. })));
    assert!(disk.files().is_empty());
}

const WORKERS: u32 = 2;
const ACCOUNTS: u32 = 20;
const LIVES: u32 = 6;

/// What the writers have come to, for those that read.
#[derive(Default)]
struct Progress {
    /// By worker: how many of its transfers were acknowledged as stored.
    stored: [AtomicU64; WORKERS as usize],
    is_over: AtomicBool,
    /// How many readers have looked since the last life began.
    looks: AtomicU32,
}

/// Ends the writers when a reader has failed.
struct EndsAll<'p>(&'p Progress);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// Options by which log files are sealed all the time, by two loggers.
fn busy() -> Options {
    options().log_directories(["/log-one", "/log-two"]).log_buffers(2)
}

/// Moves money between accounts, and counts the transfers in the row of the worker, the note of which makes the log long.
fn transfer(db: &Database, table: &Table<Account>, worker: u32, number: u64) -> Result<()> {
    let (from, to) = (number as u32 % ACCOUNTS, (number as u32 * 7 + worker) % ACCOUNTS);
    db.transact(|tx| {
        table.update(tx, from, |row: &mut Balance| row.balance -= 1)?;
        table.update(tx, to, |row: &mut Balance| row.balance += 1)?;
        let note = "n".repeat(60_000);
        let counter = Account { id: 1000 + worker, owner: 0, balance: number as i64, note };
        table.replace(tx, &counter).map(|_| ())
    })
}

/// One opening of the writer, with checkpoints, until some readers have looked.
fn write_for_a_life(db: &Database, progress: &Progress) {
    let (table, ends) = (accounts(db), AtomicBool::new(false));
    progress.looks.store(0, Ordering::Relaxed);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (table, ends) = (&table, &ends);
            scope.spawn(move || {
                let stored = &progress.stored[worker as usize];
                while !ends.load(Ordering::Relaxed) {
                    let number = stored.load(Ordering::Relaxed) + 1;
                    transfer(db, table, worker, number).unwrap();
                    stored.store(number, Ordering::SeqCst);
                }
            });
        }
        let enough = |made: u32| {
            let is_over = progress.is_over.load(Ordering::Relaxed);
            is_over || made >= 3 && progress.looks.load(Ordering::Relaxed) >= 3
        };
        for _ in (0..).take_while(|&made| !enough(made)) {
            db.checkpoint().unwrap();
        }
        ends.store(true, Ordering::Relaxed);
    });
}

/// Opens the database beside its writer, and compares it with what was acknowledged before.
fn look(disk: &Arc<SimulatedDisk>, progress: &Progress) {
    let before = progress.stored.each_ref().map(|stored| stored.load(Ordering::SeqCst));
    let rows = all_rows(&open_beside(disk).unwrap());
    let (counters, moved): (Vec<Account>, Vec<Account>) = rows.into_iter().partition(|row| row.id >= 1000);
    assert_eq!(moved.len(), ACCOUNTS as usize);
    assert_eq!(moved.iter().map(|row| row.balance).sum::<i64>(), 100 * i64::from(ACCOUNTS));
    for (counter, stored) in counters.iter().zip(before) {
        assert!(counter.balance as u64 >= stored, "{} of {stored} that were stored", counter.balance);
    }
    progress.looks.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn readers_beside_a_busy_writer_find_whole_epochs_and_all_that_was_acknowledged() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open_with(busy(), &disk).unwrap();
    let table = db.create_table::<Account>().unwrap();
    let counters = (0..WORKERS).map(|worker| Account { id: 1000 + worker, balance: 0, ..account(0) });
    let rows: Vec<_> = (0..ACCOUNTS).map(account).chain(counters).collect();
    db.transact(|tx| table.insert_many(tx, &rows)).unwrap();
    let progress = Progress::default();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _ends_all = EndsAll(&progress);
                while !progress.is_over.load(Ordering::Relaxed) {
                    look(&disk, &progress);
                }
            });
        }
        let mut db = db;
        for _ in 1..LIVES {
            write_for_a_life(&db, &progress);
            db.close().unwrap();
            db = open_with(busy(), &disk).unwrap();
        }
        write_for_a_life(&db, &progress);
        progress.is_over.store(true, Ordering::Relaxed);
    });
    look(&disk, &progress);
}
