//! Full disks: nothing that was acknowledged is lost, there is a way back in, and a checkpoint makes room by itself.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use ensilo::{DegradedReason, Error, Event, LogError};
use ensilo_log::FILE_HEADER_BYTES;
use ensilo_test_disk::Faults;

use super::*;

const ROW_BYTES: usize = 50_000;
const MIB: u64 = 1 << 20;

fn large(id: u32, fill: char) -> Account {
    Account { note: fill.to_string().repeat(ROW_BYTES), ..account(id) }
}

fn set_room(disk: &SimulatedDisk, bytes: u64) {
    disk.set_faults(Faults { no_space_after_bytes: Some(bytes), ..Faults::default() });
}

fn degraded(db: &Database) -> Option<DegradedReason> {
    Some(db.statistics().unwrap().durability.unwrap().degraded?.reason)
}

/// Opens the database with its events.
fn open_with_events(options: Options, disk: &Arc<SimulatedDisk>) -> (Database, Receiver<Event>) {
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let options = options.on_event(move |event| _ = sender.lock().unwrap().send(event.clone()));
    (open_with(options, disk).unwrap(), events)
}

/// Inserts rows that `row` makes until the disk is full; returns how many were acknowledged.
fn fill(db: &Database, row: impl Fn(u32) -> Account) -> u32 {
    let accounts = db.create_table::<Account>().unwrap();
    for id in 0.. {
        match db.transact(|tx| accounts.insert(tx, &row(id))) {
            Ok(_) => {}
            Err(Error::LogFailed(failure)) => {
                assert!(matches!(*failure, LogError::NoSpace { .. }), "{failure}");
                return id;
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("the disk is full some day")
}

/// Less room than rows are inserted into.
const ROOM: u64 = 3 * MIB;

/// Fills a disk, and returns what a crash leaves of it, and how many rows were acknowledged. Returns `None` where nobody saw that the disk was full:
/// a checkpoint that gave up had freed room when somebody looked.
fn crashed_when_full() -> Option<(Arc<SimulatedDisk>, u32)> {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, events) = open_with_events(options(), &disk);
    set_room(&disk, ROOM);
    let acknowledged = fill(&db, |id| large(id, 'x'));
    assert!(u64::from(acknowledged) * ROW_BYTES as u64 > MIB, "{acknowledged}: more than the first file");
    assert_eq!(degraded(&db), Some(DegradedReason::LogFailed));
    assert!(db.close().is_err());
    drop(db);
    let events: Vec<_> = events.iter().collect();
    assert!(events.iter().any(|event| matches!(event, Event::LogFailed { .. })), "{events:?}");
    let was_seen = events.iter().any(|event| matches!(event, Event::DiskFull { .. }));
    was_seen.then(|| (Arc::new(disk.crash(7)), acknowledged))
}

/// Returns whether there is a file of the log that was made ahead, and that nothing was written to.
fn has_next_file(disk: &SimulatedDisk) -> bool {
    let is_unused = |path: &Path| {
        let mut of_first_block = [0; 16];
        let read = disk.open_read(path);
        let read = read.and_then(|file| file.read_at(FILE_HEADER_BYTES as u64, &mut of_first_block));
        read.is_ok() && of_first_block == [0; 16]
    };
    let is_whole = |path: &Path, bytes: u64| bytes == MIB && path.extension().is_some_and(|is| is == "open");
    disk.files().iter().any(|(path, bytes)| is_whole(path, *bytes) && is_unused(path))
}

/// Opens what is left of a full disk, with so little more room that the files of the log are shorter than they should be. Returns `None` if the opening
/// itself makes room for a whole one: by removing one that a checkpoint has let the log make ahead, just too late, or what a checkpoint has left.
fn opened_on_full_disk() -> Option<(Arc<SimulatedDisk>, Database, Receiver<Event>)> {
    let (disk, acknowledged) = crashed_when_full()?;
    // A file that was cut to what it holds may be as long as before, if that was not synced.
    set_room(&disk, used(&disk) + 100_000);
    let (db, events) = open_with_events(options(), &disk);
    let rows = all_rows(&db);
    assert!(rows.len() >= acknowledged as usize, "{} of {acknowledged}", rows.len());
    assert_eq!(rows, (0..rows.len() as u32).map(|id| large(id, 'x')).collect::<Vec<_>>());
    until(|| degraded(&db).is_some() || has_next_file(&disk));
    degraded(&db).is_some().then_some((disk, db, events))
}

#[test]
fn what_was_acknowledged_before_the_disk_was_full_is_there_and_more_fits() {
    let (disk, db, events) = (0..50).find_map(|_| opened_on_full_disk()).expect("a disk without room");
    accounts_change(&db, 1, 'y');
    // Room for a checkpoint, which frees log.
    set_room(&disk, ROOM + 6 * MIB);
    until(|| degraded(&db).is_none());
    until(|| db.checkpoint().unwrap().files_removed > 0);
    assert!(events.iter().any(|event| matches!(event, Event::Recovered)));
    accounts_change(&db, 2, 'z');
    db.close().unwrap();
    let rows = all_rows(&open(&Arc::new(disk.crash(8))));
    assert_eq!((&rows[1], &rows[2]), (&large(1, 'y'), &large(2, 'z')));
}

#[test]
fn what_went_on_in_the_next_file_for_want_of_room_is_recovered() {
    // Three of them are less than the seven eighths at which a file is full, and a fourth has no room.
    let row = |id| Account { note: "x".repeat(300_000), ..account(id) };
    let disk = Arc::new(SimulatedDisk::new());
    let db = open_with(options().no_checkpoints(), &disk).unwrap();
    set_room(&disk, 4 * MIB);
    let acknowledged = fill(&db, row);
    assert!(acknowledged > 10, "{acknowledged}: more than where the room for the next file was lacking");
    drop(db);
    for seed in 0..5 {
        let rows = all_rows(&open(&Arc::new(disk.fork().crash(seed))));
        assert!(rows.len() >= acknowledged as usize, "{} of {acknowledged}", rows.len());
        assert_eq!(rows, (0..rows.len() as u32).map(row).collect::<Vec<_>>());
    }
}

fn accounts_change(db: &Database, id: u32, fill: char) {
    let accounts = accounts(db);
    let changed = large(id, fill);
    db.transact(|tx| accounts.update(tx, id, |row: &mut Account| row.note.clone_from(&changed.note)))
        .unwrap();
}

/// The bytes of all files.
fn used(disk: &SimulatedDisk) -> u64 {
    disk.files().iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn checkpoints_keep_the_log_within_a_small_disk() {
    const ROOM: u64 = 16 * MIB;
    const ROWS: u32 = 40;
    /// So little room that a checkpoint is made at once, which is where two log files and one and a quarter of
    /// itself may not fit any more; and so much that these two files and itself do.
    const FREE_MIN: u64 = 2 * MIB + ROWS as u64 * ROW_BYTES as u64 * 6 / 5;
    let disk = Arc::new(SimulatedDisk::new());
    let (db, events) = open_with_events(options(), &disk);
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..ROWS).try_for_each(|id| accounts.upsert(tx, &large(id, 'a')))).unwrap();
    // From here on it is known how much a checkpoint takes.
    db.checkpoint().unwrap();
    set_room(&disk, ROOM);
    for round in 0..400u32 {
        accounts_change(&db, round % ROWS, char::from(b'a' + (round % 26) as u8));
        // A writer that outruns neither the checkpoints nor the thread that makes the next log file.
        std::thread::sleep(Duration::from_millis(1));
        until(|| used(&disk) < ROOM - FREE_MIN && (has_next_file(&disk) || degraded(&db).is_some()));
    }
    let statistics = db.statistics().unwrap().durability.unwrap();
    assert!(statistics.log_bytes > ROOM, "{statistics:?}");
    assert!(statistics.checkpoints.made > 2 && statistics.degraded.is_none(), "{statistics:?}");
    let rows = all_rows(&db);
    db.close().unwrap();
    drop(db);
    assert_eq!(events.iter().count(), 0);
    assert_eq!(all_rows(&open(&Arc::new(disk.crash(3)))), rows);
}
