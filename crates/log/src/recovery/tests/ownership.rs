//! A log belongs to one opening of one database directory at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::model::{AnyOrder, OneWrite, Op, Rows, Transaction};
use super::writer::{FILE_BYTES, TestLog};
use crate::format::{DatabaseId, OpeningId, Owner};
use crate::recovery::{
    CheckpointWriterOptions, CorruptionKind, FinishedCheckpoint, GenerationOptions, OpenError, Progress,
    SalvageLoss, backup, inspect, salvage, verify,
};

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

/// Opens the database in `dir` with a logger in each of `logs`; returns what it held, too.
fn open(disk: &Arc<SimulatedDisk>, dir: &str, logs: &[&str]) -> Result<(TestLog, Rows), OpenError> {
    let found = inspect(&as_disk(disk), Path::new(dir))?;
    let target = AnyOrder::default();
    found.replay(&target, 1, &Progress::new())?;
    let options = GenerationOptions {
        directories: logs.iter().map(PathBuf::from).collect(),
        file_bytes: FILE_BYTES,
        first_epoch: Epoch::new(found.largest_epoch().get() + 1),
    };
    let (generation, files) = found.next_generation(&options)?;
    Ok((TestLog::new(Arc::clone(disk), generation, files), target.rows()))
}

/// Stores a row under `key`, and ends the log in order.
fn store_and_close(mut log: TestLog, key: u8) {
    store(&mut log, key);
    log.close();
}

fn store(log: &mut TestLog, key: u8) {
    let epoch = log.durable_epoch.get() + 1;
    let write = OneWrite { table: 1, key: vec![key], op: Op::Put(vec![key; 8]) };
    let mut rounds = vec![Vec::new(); log.loggers.len()];
    rounds[0].push(Transaction { tid: epoch << 20 | 8, writes: vec![write] });
    log.round(&rounds, Epoch::new(epoch + 1));
}

fn keys(rows: &Rows) -> Vec<u8> {
    rows.keys().map(|(_, key)| key[0]).collect()
}

/// Returns what lies under a directory, with paths from there.
fn tree(disk: &SimulatedDisk, dir: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = disk.files().into_iter().map(|(path, _)| Path::new("/").join(path));
    let files = files.filter(|path| path.starts_with(dir) && !path.ends_with("LOCK"));
    files.map(|path| (path.strip_prefix(dir).unwrap().into(), disk.contents(&path).unwrap())).collect()
}

/// Makes `dir` hold these files and no others.
fn put(disk: &SimulatedDisk, dir: &str, files: &[(PathBuf, Vec<u8>)]) {
    for (path, _) in tree(disk, dir) {
        disk.remove(&Path::new(dir).join(path)).unwrap();
    }
    for (path, bytes) in files {
        let path = Path::new(dir).join(path);
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        disk.create(&path, 0).unwrap().write_at(0, bytes).unwrap();
    }
}

/// Returns a database that keeps its log outside of its directory.
fn sample() -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    store_and_close(open(&disk, "/db", &["/out"]).unwrap().0, 1);
    disk
}

fn is_refused_for(error: &OpenError, file: &str, other: &str) -> bool {
    matches!(error, OpenError::OtherOwner { file: found, directory }
        if found == Path::new(file) && directory == Path::new(other))
}

#[test]
fn a_copy_without_its_log_directories_is_refused_and_the_original_goes_on() {
    let disk = sample();
    put(&disk, "/copy", &tree(&disk, "/db"));
    for logs in [["/out"], ["/copy/log"]] {
        let error = open(&disk, "/copy", &logs).map(|_| ()).unwrap_err();
        assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    }
    assert!(matches!(verify(&*disk, Path::new("/copy"), &mut |_| {}), Err(OpenError::OtherOwner { .. })));
    let (log, rows) = open(&disk, "/db", &["/out"]).unwrap();
    assert_eq!(keys(&rows), [1]);
    store_and_close(log, 2);
    let error = open(&disk, "/copy", &["/copy/log"]).map(|_| ()).unwrap_err();
    assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    assert_eq!(keys(&open(&disk, "/db", &["/out"]).unwrap().1), [1, 2]);
}

#[test]
fn a_copy_of_everything_goes_its_own_way() {
    let disk = Arc::new(SimulatedDisk::new());
    store_and_close(open(&disk, "/db", &["/db/log"]).unwrap().0, 1);
    put(&disk, "/copy", &tree(&disk, "/db"));
    for round in 2..4 {
        store_and_close(open(&disk, "/db", &["/db/log"]).unwrap().0, round);
        store_and_close(open(&disk, "/copy", &["/copy/log"]).unwrap().0, 10 + round);
    }
    assert_eq!(keys(&open(&disk, "/db", &["/db/log"]).unwrap().1), [1, 2, 3]);
    assert_eq!(keys(&open(&disk, "/copy", &["/copy/log"]).unwrap().1), [1, 12, 13]);
}

#[test]
fn a_backup_is_no_copy_of_the_directory() {
    let disk = sample();
    backup(&as_disk(&disk), Path::new("/db"), Path::new("/backup")).unwrap();
    store_and_close(open(&disk, "/backup", &["/backup/log"]).unwrap().0, 7);
    let error = open(&disk, "/backup", &["/out"]).map(|_| ()).unwrap_err();
    assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    assert_eq!(keys(&open(&disk, "/backup", &["/backup/log"]).unwrap().1), [1, 7]);
    assert_eq!(keys(&open(&disk, "/db", &["/out"]).unwrap().1), [1]);
}

#[test]
fn a_database_that_was_moved_is_opened() {
    let disk = sample();
    let files = tree(&disk, "/db");
    put(&disk, "/db", &[]);
    put(&disk, "/moved", &files);
    store_and_close(open(&disk, "/moved", &["/out"]).unwrap().0, 2);
    assert_eq!(keys(&open(&disk, "/moved", &["/out"]).unwrap().1), [1, 2]);
    // The older state in the old place does not come up again.
    put(&disk, "/db", &files);
    let error = open(&disk, "/db", &["/out"]).map(|_| ()).unwrap_err();
    assert!(is_refused_for(&error, "/out/OWNER", "/moved"), "{error}");
}

#[test]
fn an_older_directory_that_names_other_log_directories_is_refused() {
    let disk = sample();
    let before = tree(&disk, "/db");
    store_and_close(open(&disk, "/db", &["/new"]).unwrap().0, 2);
    let error = {
        let disk = Arc::new(disk.fork());
        put(&disk, "/db", &before);
        open(&disk, "/db", &["/out"]).map(|_| ()).unwrap_err()
    };
    assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    assert_eq!(keys(&open(&disk, "/db", &["/new"]).unwrap().1), [1, 2]);
}

#[test]
fn an_older_log_directory_is_refused() {
    let disk = sample();
    let before = tree(&disk, "/out");
    store_and_close(open(&disk, "/db", &["/out"]).unwrap().0, 2);
    let later = disk.fork();
    put(&later, "/out", &before);
    let error = open(&Arc::new(later), "/db", &["/out"]).map(|_| ()).unwrap_err();
    assert_eq!(error.corruption().unwrap().kind, CorruptionKind::Missing, "{error}");
    store_and_close(open(&disk, "/db", &["/out"]).unwrap().0, 3);
    put(&disk, "/out", &before);
    let error = open(&disk, "/db", &["/out"]).map(|_| ()).unwrap_err();
    let corruption = error.corruption().unwrap();
    assert_eq!(
        (&corruption.file, &corruption.kind),
        (&"/out/OWNER".into(), &CorruptionKind::OlderDirectory),
        "{error}"
    );
}

/// Fails unless a salvage of the database in `dir` ends as an opening does, and leaves nothing.
fn is_not_salvaged(disk: &Arc<SimulatedDisk>, dir: &str) -> OpenError {
    let refused = inspect(&as_disk(disk), Path::new(dir)).unwrap_err();
    let error = salvage(&as_disk(disk), Path::new(dir), Path::new("/saved")).unwrap_err();
    assert_eq!(error.to_string(), refused.to_string());
    assert!(!disk.exists(Path::new("/saved")).unwrap());
    error
}

#[test]
fn a_log_that_is_not_that_of_the_database_is_not_salvaged_either() {
    let disk = sample();
    put(&disk, "/copy", &tree(&disk, "/db"));
    let error = is_not_salvaged(&disk, "/copy");
    assert!(is_refused_for(&error, "/out/OWNER", "/db") && error.to_string().contains("open that one"));
    let before = tree(&disk, "/out");
    for key in 2..4 {
        store_and_close(open(&disk, "/db", &["/out"]).unwrap().0, key);
    }
    put(&disk, "/out", &before);
    let error = is_not_salvaged(&disk, "/db");
    let corruption = error.corruption().unwrap();
    assert_eq!(corruption.kind, CorruptionKind::OlderDirectory);
    assert!(error.to_string().contains("put the directory back that belongs to the manifest"), "{error}");
}

#[test]
fn a_salvage_goes_on_where_nothing_says_whose_a_log_directory_is() {
    let disk = sample();
    let sound = disk.fork();
    disk.flip(Path::new("/out/OWNER"), 300).unwrap();
    let salvaged = salvage(&as_disk(&disk), Path::new("/db"), Path::new("/saved")).unwrap();
    let [corruption] = &salvaged.corruptions[..] else { panic!("{:?}", salvaged.corruptions) };
    assert_eq!(corruption.file, Path::new("/out/OWNER"));
    assert_eq!(salvaged.loss(), SalvageLoss::Uncertain);
    assert_eq!(keys(&open(&disk, "/saved", &["/saved/log"]).unwrap().1), [1]);
    // Of the copy of a manifest which is lost too nobody knows whether it fits the log then.
    let disk = Arc::new(sound);
    disk.flip(Path::new("/db/MANIFEST"), 300).unwrap();
    assert_eq!(
        salvage(&as_disk(&disk), Path::new("/db"), Path::new("/saved")).unwrap().loss(),
        SalvageLoss::Uncertain
    );
    disk.flip(Path::new("/out/OWNER"), 300).unwrap();
    let error = salvage(&as_disk(&disk), Path::new("/db"), Path::new("/more")).unwrap_err();
    assert_eq!(error.corruption().unwrap().file, Path::new("/out/OWNER"));
}

#[test]
fn a_salvage_says_so_where_the_owner_of_a_log_directory_is_missing() {
    let disk = sample();
    let backup_of = Arc::new(disk.fork());
    backup(&as_disk(&backup_of), Path::new("/db"), Path::new("/backup")).unwrap();
    disk.remove(Path::new("/out/OWNER")).unwrap();
    let salvaged = salvage(&as_disk(&disk), Path::new("/db"), Path::new("/saved")).unwrap();
    let [corruption] = &salvaged.corruptions[..] else { panic!("{:?}", salvaged.corruptions) };
    assert_eq!((&*corruption.file, &corruption.kind), (Path::new("/out/OWNER"), &CorruptionKind::Missing));
    assert_eq!(salvaged.loss(), SalvageLoss::Uncertain);
    assert_eq!(keys(&open(&disk, "/saved", &["/saved/log"]).unwrap().1), [1]);
    // A backup that was never opened has none.
    let salvaged = salvage(&as_disk(&backup_of), Path::new("/backup"), Path::new("/saved")).unwrap();
    assert_eq!((salvaged.loss(), salvaged.corruptions.len()), (SalvageLoss::Nothing, 0));
}

#[test]
fn a_damaged_owner_is_reported_and_may_be_removed() {
    let disk = sample();
    disk.flip(Path::new("/out/OWNER"), 300).unwrap();
    let error = open(&disk, "/db", &["/out"]).map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("/out/OWNER, byte 0") && error.to_string().contains("remove"));
    let mut reported = Vec::new();
    verify(&*disk, Path::new("/db"), &mut |corruption| reported.push(corruption)).unwrap();
    assert_eq!(reported.first(), error.corruption());
    disk.remove(Path::new("/out/OWNER")).unwrap();
    assert_eq!(keys(&open(&disk, "/db", &["/out"]).unwrap().1), [1]);
}

#[test]
fn damaged_owners_of_several_directories_are_all_reported_and_hide_no_other_holder() {
    let disk = Arc::new(SimulatedDisk::new());
    store_and_close(open(&disk, "/db", &["/in", "/out"]).unwrap().0, 1);
    put(&disk, "/copy", &tree(&disk, "/db"));
    disk.flip(Path::new("/in/OWNER"), 300).unwrap();
    // What the second directory says of the copy counts, although the first one says nothing.
    let error = salvage(&as_disk(&disk), Path::new("/copy"), Path::new("/saved")).unwrap_err();
    assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    let error = verify(&*disk, Path::new("/copy"), &mut |_| {}).unwrap_err();
    assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    disk.flip(Path::new("/out/OWNER"), 300).unwrap();
    let mut reported = Vec::new();
    verify(&*disk, Path::new("/db"), &mut |corruption| reported.push(corruption.file)).unwrap();
    assert_eq!(reported, [PathBuf::from("/in/OWNER"), PathBuf::from("/out/OWNER")]);
}

#[test]
fn all_directories_are_locked_however_they_are_spelled() {
    let disk = sample();
    let (log, _) = open(&disk, "/db", &["/out", "/out/.", "/db/log"]).unwrap();
    let refused = |dir: &str, logs: &[&str], file: &str| {
        let error = open(&disk, dir, logs).map(|_| ()).unwrap_err();
        assert!(
            matches!(&error, OpenError::Locked { file: found, .. } if found == Path::new(file)),
            "{error}"
        );
    };
    refused("/db", &["/out"], "/db/LOCK");
    refused("/other", &["/out"], "/out/LOCK");
    refused("/other", &["/db/log"], "/db/log/LOCK");
    // Nor does it help to remove the lock files.
    for file in ["/db/LOCK", "/out/LOCK"] {
        disk.remove(Path::new(file)).unwrap();
    }
    refused("/db", &["/out"], "/db/LOCK");
    refused("/other", &["/out"], "/out/LOCK");
    assert!(matches!(verify(&*disk, Path::new("/db"), &mut |_| {}), Err(OpenError::Locked { .. })));
    drop(log);
    drop(open(&disk, "/db", &["/out"]).unwrap());
    let error = open(&disk, "/other", &["/out"]).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, OpenError::Refused(why) if why.contains("belongs to another database")),
        "{error}"
    );
}

#[test]
fn a_log_that_was_taken_over_is_left_alone() {
    let disk = sample();
    let (mut log, _) = open(&disk, "/db", &["/out"]).unwrap();
    store(&mut log, 2);
    let mark = Epoch::new(log.durable_epoch.get() + 1);
    log.rotate(0, mark);
    store(&mut log, 3);
    let mark = Epoch::new(log.durable_epoch.get() + 1);
    log.rotate(0, mark);
    let place = log.files.begin_checkpoint(log.durable_epoch).unwrap();
    let written = vec![place.writer(0, CheckpointWriterOptions::default()).unwrap().finish().unwrap()];
    let owner = Owner {
        database: log.files.manifest().database,
        opening: OpeningId::random(),
        generation: 9,
        directory: "/copy".into(),
    };
    let (before, path) = (tree(&disk, "/"), Path::new("/out/OWNER"));
    disk.truncate(path, 0).unwrap();
    disk.open(path).unwrap().write_at(0, &owner.encode()).unwrap();
    let finished = FinishedCheckpoint { place, end_epoch: log.durable_epoch, written };
    let error = log.files.install_checkpoint(finished, log.durable_epoch).unwrap_err();
    assert!(matches!(&error, OpenError::TakenOver { file } if file == path), "{error}");
    let except_owner = |files: Vec<(PathBuf, Vec<u8>)>| {
        files.into_iter().filter(|(path, _)| !path.ends_with("OWNER")).collect::<Vec<_>>()
    };
    assert_eq!(except_owner(tree(&disk, "/")), except_owner(before));
}

#[test]
fn an_owner_that_another_database_left_in_an_empty_directory_is_replaced() {
    let disk = sample();
    let owner = |database| Owner { database, opening: OpeningId(7), generation: 1, directory: "/x".into() };
    disk.create_dir_all(Path::new("/new")).unwrap();
    let path = Path::new("/new/OWNER");
    disk.create(path, 0).unwrap().write_at(0, &owner(DatabaseId(5)).encode()).unwrap();
    store_and_close(open(&disk, "/db", &["/new"]).unwrap().0, 2);
    assert_eq!(keys(&open(&disk, "/db", &["/new"]).unwrap().1), [1, 2]);
}

/// Openings that fail at any step, one after the other, each after a power failure, with other log
/// directories each time.
#[test]
fn openings_that_are_interrupted_do_no_harm() {
    for at in 0..60 {
        for seed in 0..3 {
            let mut disk = Arc::new(SimulatedDisk::new());
            store_and_close(open(&disk, "/db", &["/out", "/db/log"]).unwrap().0, 1);
            for (attempt, logs) in
                [["/out", "/db/log"], ["/out", "/new"], ["/new", "/db/log"]].iter().enumerate()
            {
                let at = at / (attempt as u64 + 1);
                disk.set_faults(match seed {
                    0 => Faults { sync_error_at: Some(at), ..Faults::default() },
                    _ => Faults { name_error_at: Some(at), ..Faults::default() },
                });
                let _ = open(&disk, "/db", logs);
                disk = Arc::new(disk.crash(seed * 100 + at));
                assert_eq!(keys(&open_only(&disk)), [1], "{at}, {seed}");
            }
        }
    }
}

/// Returns what an opening would bring back.
fn open_only(disk: &Arc<SimulatedDisk>) -> Rows {
    let found = inspect(&as_disk(disk), Path::new("/db")).unwrap();
    let target = AnyOrder::default();
    found.replay(&target, 1, &Progress::new()).unwrap();
    target.rows()
}

#[test]
fn an_older_copy_of_a_log_directory_of_the_same_opening_is_refused() {
    let disk = Arc::new(SimulatedDisk::new());
    let (mut log, _) = open(&disk, "/db", &["/out"]).unwrap();
    store(&mut log, 1);
    let before = tree(&disk, "/out");
    store(&mut log, 2);
    let manifest = tree(&disk, "/db");
    let durable_epoch = log.durable_epoch;
    log.files.note_durable(durable_epoch).unwrap();
    assert_ne!(tree(&disk, "/db"), manifest);
    let noted = tree(&disk, "/db");
    // What it says already is not written again.
    disk.set_faults(Faults { name_error_at: Some(0), ..Faults::default() });
    log.files.note_durable(durable_epoch).unwrap();
    disk.set_faults(Faults::default());
    log.close();
    drop(log);
    assert_eq!(tree(&disk, "/db"), noted);
    assert_eq!(keys(&open_only(&disk)), [1, 2]);
    put(&disk, "/out", &before);
    let error = open(&disk, "/db", &["/out"]).map(|_| ()).unwrap_err();
    assert_eq!(
        error.corruption().unwrap().kind,
        CorruptionKind::ShortLog { stored: durable_epoch },
        "{error}"
    );
}

#[test]
fn the_creation_of_a_database_may_be_interrupted_wherever_its_log_lies() {
    for logs in [["/db/disks/a", "/db/disks/b"], ["/db", "/db/log"], ["/out/a", "/db/log"]] {
        for at in 0..80 {
            let disk = Arc::new(SimulatedDisk::new());
            disk.set_faults(match at % 2 {
                0 => Faults { sync_error_at: Some(at / 2), ..Faults::default() },
                _ => Faults { name_error_at: Some(at / 2), ..Faults::default() },
            });
            let _ = open(&disk, "/db", &logs);
            for disk in [disk.fork().kill(), disk.crash(at)] {
                let disk = Arc::new(disk);
                let opened =
                    open(&disk, "/db", &logs).unwrap_or_else(|error| panic!("{logs:?}, {at}: {error}"));
                store_and_close(opened.0, 1);
                assert_eq!(keys(&open_only(&disk)), [1], "{logs:?}, {at}");
            }
        }
    }
}

#[test]
fn a_directory_that_holds_log_files_of_a_lost_manifest_is_refused_at_any_depth() {
    let disk = Arc::new(SimulatedDisk::new());
    store_and_close(open(&disk, "/db", &["/db/disks/a"]).unwrap().0, 1);
    disk.remove(Path::new("/db/MANIFEST")).unwrap();
    let error = open(&disk, "/db", &["/db/disks/a"]).map(|_| ()).unwrap_err();
    let corruption = error.corruption().unwrap();
    assert_eq!(
        (&corruption.file, &corruption.kind),
        (&"/db/MANIFEST".into(), &CorruptionKind::Missing),
        "{error}"
    );
}

#[test]
fn the_log_of_a_database_that_was_moved_is_not_given_to_its_backup() {
    let disk = sample();
    backup(&as_disk(&disk), Path::new("/db"), Path::new("/backup")).unwrap();
    let files = tree(&disk, "/db");
    put(&disk, "/db", &[]);
    put(&disk, "/moved", &files);
    let error = open(&disk, "/backup", &["/out"]).map(|_| ()).unwrap_err();
    assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    assert_eq!(keys(&open(&disk, "/moved", &["/out"]).unwrap().1), [1]);
}

#[test]
fn a_backup_in_the_place_of_the_database_is_opened_with_another_log_directory() {
    let disk = sample();
    backup(&as_disk(&disk), Path::new("/db"), Path::new("/backup")).unwrap();
    for key in 2..5 {
        store_and_close(open(&disk, "/db", &["/out"]).unwrap().0, key);
    }
    put(&disk, "/db", &tree(&disk, "/backup"));
    let error = open(&disk, "/db", &["/out"]).map(|_| ()).unwrap_err();
    assert!(is_refused_for(&error, "/out/OWNER", "/db"), "{error}");
    assert!(error.to_string().contains("name another directory for its log"), "{error}");
    disk.remove(Path::new("/out/OWNER")).unwrap();
    let error = open(&disk, "/db", &["/out"]).map(|_| ()).unwrap_err();
    assert!(matches!(&error, OpenError::OtherOwner { file, .. } if file.starts_with("/out")), "{error}");
    assert_eq!(keys(&open(&disk, "/db", &["/new"]).unwrap().1), [1]);
}

#[test]
fn log_files_leave_room_for_what_else_an_opening_writes() {
    let disk = sample();
    let used: u64 = disk.files().iter().map(|(_, bytes)| bytes).sum();
    let opens = |room| {
        let disk = Arc::new(disk.fork());
        disk.set_faults(Faults { no_space_after_bytes: Some(used + room), ..Faults::default() });
        let found = inspect(&as_disk(&disk), Path::new("/db")).unwrap();
        found.replay(&AnyOrder::default(), 1, &Progress::new()).unwrap();
        let first_epoch = Epoch::new(found.largest_epoch().get() + 1);
        let options =
            GenerationOptions { directories: vec!["/out".into()], file_bytes: 8 * FILE_BYTES, first_epoch };
        found.next_generation(&options).is_ok()
    };
    let enough = (0..).step_by(64).find(|&room| opens(room)).unwrap();
    assert!(enough < 3 * 4096, "{enough}");
    for room in (enough..10 * FILE_BYTES).step_by(64) {
        assert!(opens(room), "{room}");
    }
}
