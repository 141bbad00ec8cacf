//! What goes wrong behind the requests' backs is told to the program, and stands in the statistics until it is over.

use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use ensilo::disk::File;
use ensilo::{Degraded, DegradedReason, Error, Event};
use ensilo_test_disk::{Faults, forward_disk};

use super::*;

/// A checkpoint by itself after each MiB that is logged.
fn eager() -> Options {
    options().checkpoint_log_bytes(1 << 20)
}

/// Logs enough for a checkpoint.
fn log_much(db: &Database, accounts: &Table<Account>) {
    // What does not change need not be logged.
    for fill in ["x", "y"] {
        let row = Account { note: fill.repeat(600_000), ..account(1) };
        db.transact(|tx| accounts.upsert(tx, &row)).unwrap();
    }
}

fn with_events(options: Options, disk: &Arc<SimulatedDisk>) -> (Database, Receiver<Event>) {
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let options = options.on_event(move |event| _ = sender.lock().unwrap().send(event.clone()));
    (open_with(options, disk).unwrap(), events)
}

fn degraded(db: &Database) -> Option<Degraded> {
    db.statistics().unwrap().durability.unwrap().degraded
}

/// Lets checkpoints fail: a directory stands where their manifest is written. Returns it.
fn block_checkpoints(disk: &SimulatedDisk, db: &Database) -> std::path::PathBuf {
    db.checkpoint().unwrap();
    let directory = Path::new(DIRECTORY).join("MANIFEST.new");
    disk.create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn a_checkpoint_that_fails_by_itself_is_an_event() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, events) = with_events(eager(), &disk);
    let accounts = db.create_table::<Account>().unwrap();
    let blocked = block_checkpoints(&disk, &db);
    log_much(&db, &accounts);
    let first = events.recv().unwrap();
    let Event::CheckpointFailed { error } = &first else { panic!("{first:?}") };
    assert!(error.starts_with("the checkpoint could not be made"), "{error}");
    assert_eq!(first.to_string(), *error);
    if let Some(degraded) = degraded(&db) {
        assert_eq!((degraded.reason, &degraded.error), (DegradedReason::CheckpointFailed, error));
        assert!(degraded.since.elapsed().is_ok());
    }
    disk.remove_dir(&blocked).unwrap();
    log_much(&db, &accounts);
    // Another one may have failed before.
    let next = events.iter().find(|event| !matches!(event, Event::CheckpointFailed { .. })).unwrap();
    assert!(matches!(next, Event::Recovered), "{next:?}");
    assert!(degraded(&db).is_none());
}

#[test]
fn a_failed_checkpoint_is_in_the_statistics_until_one_is_made() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, events) = with_events(options(), &disk);
    let blocked = block_checkpoints(&disk, &db);
    let error = db.checkpoint().unwrap_err();
    assert!(matches!(error, Error::CheckpointFailed(_)), "{error}");
    let found = degraded(&db).unwrap();
    assert_eq!((found.reason, found.error), (DegradedReason::CheckpointFailed, error.to_string()));
    assert!(matches!(events.recv().unwrap(), Event::CheckpointFailed { .. }));
    disk.remove_dir(&blocked).unwrap();
    db.checkpoint().unwrap();
    assert!(degraded(&db).is_none());
    assert!(matches!(events.recv().unwrap(), Event::Recovered));
}

/// A disk on which no file of a checkpoint can be written.
#[derive(Debug, Default)]
struct NoCheckpoints(SimulatedDisk);

impl Disk for NoCheckpoints {
    forward_disk!(|self, path| self.0; open, open_read, rename, remove, remove_dir, list, create_dir_all, sync_dir);
    forward_disk!(|self, path| self.0; exists, free_bytes, place, lock, lock_shared);

    fn create(&self, path: &Path, preallocate_bytes: u64) -> io::Result<Box<dyn File>> {
        match path.extension() {
            Some(extension) if extension == "ckpt" => Err(io::Error::other("worn out")),
            _ => self.0.create(path, preallocate_bytes),
        }
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_names_its_directory() {
    let disk: Arc<dyn Disk> = Arc::new(NoCheckpoints::default());
    let db: Database = options().open_with(disk, Path::new(DIRECTORY)).unwrap();
    let error = db.checkpoint().unwrap_err().to_string();
    assert!(error.contains(&format!("cannot write {DIRECTORY}/checkpoint-1: worn out")), "{error}");
}

#[test]
fn a_log_that_fails_is_told_once_also_if_the_hook_panics() {
    let disk = Arc::new(SimulatedDisk::new());
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let options = eager().on_event(move |event| {
        sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner).send(event.clone()).unwrap();
        panic!("a hook that does not behave");
    });
    let db = open_with(options, &disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let _blocked = block_checkpoints(&disk, &db);
    log_much(&db, &accounts);
    assert!(matches!(events.recv().unwrap(), Event::CheckpointFailed { .. }));
    // The first one may be that of a checkpoint that is tried again.
    disk.set_faults(Faults { sync_error_at: Some(1), goes_on_failing: true, ..Faults::default() });
    while db.transact(|tx| accounts.upsert(tx, &account(2))).is_ok() {}
    until_failed(&db);
    let failed = events.iter().find(|event| matches!(event, Event::LogFailed { .. })).unwrap();
    assert!(failed.to_string().starts_with("the log has failed"), "{failed}");
    assert_eq!(degraded(&db).unwrap().reason, DegradedReason::LogFailed);
    assert!(db.close().is_err());
    drop(db);
    assert!(!events.iter().any(|event| matches!(event, Event::LogFailed { .. })));
}

fn until_failed(db: &Database) {
    while degraded(db).is_none_or(|degraded| degraded.reason != DegradedReason::LogFailed) {
        std::thread::yield_now();
    }
}
