//! An opening that is refused, or fails, leaves the files and directories that it has found, and no others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::corruption::make_later_format;
use super::model::{AnyOrder, OneWrite, Op, Transaction};
use super::writer::{FILE_BYTES, TestLog};
use crate::format::EPOCH_END;
use crate::recovery::{
    DatabaseFiles, GenerationOptions, NewGeneration, OpenError, Progress, backup, inspect,
};

pub(super) type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

fn begin(
    disk: &Arc<SimulatedDisk>,
    dir: &str,
    logs: &[&str],
    first_epoch: Option<Epoch>,
) -> Result<(NewGeneration, DatabaseFiles), OpenError> {
    let found = inspect(&as_disk(disk), Path::new(dir))?;
    found.replay(&AnyOrder::default(), 1, &Progress::new())?;
    let next = Epoch::new(found.largest_epoch().get() + 1);
    found.next_generation(&GenerationOptions {
        directories: logs.iter().map(PathBuf::from).collect(),
        file_bytes: FILE_BYTES,
        first_epoch: first_epoch.unwrap_or(next),
    })
}

pub(super) fn open(disk: &Arc<SimulatedDisk>, dir: &str, logs: &[&str]) -> Result<(), OpenError> {
    begin(disk, dir, logs, None).map(drop)
}

/// Returns all directories, and all files with their bytes.
fn tree(disk: &SimulatedDisk, dir: &Path) -> Tree {
    let mut tree = Tree::new();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            tree.extend(self::tree(disk, &path));
        }
        let bytes = entry.is_file.then(|| disk.contents(&path).unwrap());
        tree.insert(path, bytes);
    }
    tree
}

pub(super) fn whole(disk: &SimulatedDisk) -> Tree {
    tree(disk, Path::new("/"))
}

pub(super) fn put(disk: &SimulatedDisk, path: &str, bytes: &[u8]) {
    disk.create_dir_all(Path::new(path).parent().unwrap()).unwrap();
    disk.create(Path::new(path), 0).unwrap().write_at(0, bytes).unwrap();
}

fn copy(disk: &SimulatedDisk, from: &str, to: &str) {
    for (path, bytes) in tree(disk, Path::new(from)) {
        let to = Path::new(to).join(path.strip_prefix(from).unwrap());
        if let Some(bytes) = bytes {
            put(disk, to.to_str().unwrap(), &bytes);
        }
    }
}

fn remove(disk: &SimulatedDisk, path: &str) {
    disk.remove(Path::new(path)).unwrap();
}

pub(super) fn flip(disk: &SimulatedDisk, path: &str, byte: u64) {
    disk.flip(Path::new(path), byte * 8).unwrap();
}

/// `/db`, with a row and log in two places, and another database with log in `/other/log` and `/elsewhere`.
pub(super) fn sample() -> Arc<SimulatedDisk> {
    let disk = Arc::new(SimulatedDisk::new());
    for (dir, logs) in [("/db", ["/db/log", "/out"]), ("/other", ["/other/log", "/elsewhere"])] {
        open_and_put(&disk, dir, logs, 7);
    }
    disk
}

/// Opens a database with these log directories, and puts a row there.
pub(super) fn open_and_put(disk: &Arc<SimulatedDisk>, dir: &str, logs: [&str; 2], key: u8) {
    let (generation, files) = begin(disk, dir, &logs, None).unwrap();
    let mut log = TestLog::new(Arc::clone(disk), generation, files);
    let epoch = log.durable_epoch.get() + 1;
    let write = OneWrite { table: 1, key: vec![key], op: Op::Put(vec![key; 8]) };
    let rows = vec![Transaction { tid: epoch << 20 | 8, writes: vec![write] }];
    log.round(&[rows, Vec::new()], Epoch::new(epoch + 1));
    log.close();
}

/// A way to be refused: what is done to the sample, which directory is opened, with which log directories,
/// and what the error says.
type Case = (&'static str, fn(&Arc<SimulatedDisk>), &'static str, &'static [&'static str], &'static str);

/// One that is there, and new ones within and outside of the database, before and after it.
const NEW: &[&str] = &["/db/in/log", "/db/log", "/new/a", "/new/b"];

const CASES: [Case; 22] = [
    (
        "a copy without its log",
        |disk| copy(disk, "/db", "/copy"),
        "/copy",
        NEW,
        "belongs to the database in /db",
    ),
    (
        "another database's log",
        |_| {},
        "/db",
        &["/new/a", "/elsewhere", "/new/b"],
        "belongs to another database",
    ),
    (
        "another database's log, for a new one",
        |_| {},
        "/fresh/one",
        &["/fresh/one/log", "/elsewhere"],
        "belongs to another database",
    ),
    (
        "the same without an owner",
        |disk| remove(disk, "/elsewhere/OWNER"),
        "/fresh/one",
        &["/fresh/log", "/elsewhere"],
        "belongs to another database",
    ),
    (
        "the same for one that is there",
        |disk| remove(disk, "/elsewhere/OWNER"),
        "/db",
        &["/new/a", "/elsewhere"],
        "belongs to another database",
    ),
    ("a damaged block", |disk| flip(disk, "/db/log/log-1-0-1.open", 4096 + 70), "/db", NEW, "byte 4096"),
    ("a damaged header", |disk| flip(disk, "/out/log-1-1-1.open", 20), "/db", NEW, "byte 0"),
    ("a missing file", |disk| remove(disk, "/out/log-1-1-1.open"), "/db", NEW, "is missing"),
    ("a damaged manifest", |disk| flip(disk, "/db/MANIFEST", 40), "/db", NEW, "/db/MANIFEST, byte 0"),
    (
        "a missing manifest",
        |disk| remove(disk, "/db/MANIFEST"),
        "/db",
        NEW,
        "/db/MANIFEST: the file is missing",
    ),
    ("a damaged owner", |disk| flip(disk, "/out/OWNER", 40), "/db", NEW, "/out/OWNER, byte 0"),
    ("a later format", later_format, "/db", NEW, "knows formats up to"),
    ("an older manifest", older_manifest, "/db", NEW, "a later opening than the manifest knows of"),
    (
        "a log file that is no log file",
        |disk| put(disk, "/new/log-2-0-1.open", &[1; 5000]),
        "/db",
        &["/made", "/new"],
        "in this directory belongs",
    ),
    (
        "a file",
        |disk| put(disk, "/text", b"text"),
        "/db",
        &["/new/a", "/text", "/new/b"],
        "cannot lock /text/LOCK",
    ),
    (
        "within a file",
        |disk| put(disk, "/text", b"text"),
        "/db",
        &["/new/a", "/text/log"],
        "cannot create /text/log",
    ),
    (
        "within a file, for a new one",
        |disk| put(disk, "/text", b"text"),
        "/text/db",
        &["/new/a"],
        "cannot create /text/db",
    ),
    ("something else", |disk| put(disk, "/things/text", b"text"), "/things", NEW, "holds text"),
    (
        "log of a lost manifest",
        |disk| copy(disk, "/db/log", "/lost/log"),
        "/lost",
        NEW,
        "MANIFEST: the file is missing",
    ),
    (
        "an unfinished backup",
        |disk| put(disk, "/half/BACKUP.unfinished", b""),
        "/half",
        NEW,
        "was not finished",
    ),
    ("a damaged backup that was never opened", damaged_backup, "/backup", NEW, "byte 4096"),
    (
        "a path that is no log directory for a new one",
        |disk| put(disk, "/text", b"text"),
        "/fresh/one",
        &["/fresh/one/in/log", "/text"],
        "cannot lock /text/LOCK",
    ),
];

fn later_format(disk: &Arc<SimulatedDisk>) {
    make_later_format(disk, Path::new("/db/MANIFEST"));
}

fn older_manifest(disk: &Arc<SimulatedDisk>) {
    copy(disk, "/db", "/before");
    for _ in 0..2 {
        open(disk, "/db", &["/db/log", "/out"]).unwrap();
    }
    remove(disk, "/db/MANIFEST");
    put(disk, "/db/MANIFEST", &disk.contents(Path::new("/before/MANIFEST")).unwrap());
}

fn damaged_backup(disk: &Arc<SimulatedDisk>) {
    backup(&as_disk(disk), Path::new("/db"), Path::new("/backup")).unwrap();
    flip(disk, "/backup/log/log-1-0-1.open", 4096 + 70);
}

#[test]
fn an_opening_that_is_refused_leaves_nothing_that_was_not_there() {
    for (what, prepare, dir, logs, expected) in CASES {
        for with_lock_files in [true, false] {
            let disk = sample();
            prepare(&disk);
            let locks = whole(&disk).into_keys().filter(|path| path.ends_with("LOCK") && !with_lock_files);
            locks.for_each(|path| disk.remove(&path).unwrap());
            let before = whole(&disk);
            let Err(error) = open(&disk, dir, logs) else { panic!("{what}: opened") };
            assert!(error.to_string().contains(expected), "{what}: {error}");
            same(&before, &whole(&disk), what);
        }
    }
}

/// Fails unless both are the same.
pub(super) fn same(before: &Tree, after: &Tree, what: &str) {
    let other = |one: &Tree, other: &Tree| -> Vec<PathBuf> {
        one.iter()
            .filter(|(path, bytes)| other.get(*path) != Some(bytes))
            .map(|(path, _)| path.clone())
            .collect()
    };
    let (gone, new) = (other(before, after), other(after, before));
    assert!(
        gone.is_empty() && new.is_empty(),
        "{what}: {gone:?} are gone or changed, {new:?} are new or changed"
    );
}

#[test]
fn an_opening_of_what_is_locked_leaves_nothing_that_was_not_there() {
    for (lock, dir, logs) in [
        ("/db/LOCK", "/db", &["/new/a"]),
        ("/out/LOCK", "/db", &["/new/a"]),
        ("/elsewhere/LOCK", "/db", &["/elsewhere"]),
        ("/elsewhere/LOCK", "/fresh/one", &["/elsewhere"]),
    ] {
        let disk = sample();
        let held = disk.lock(Path::new(lock)).unwrap();
        let before = whole(&disk);
        let logs = [&["/new/b", "/db/in"][..], logs].concat();
        let Err(error) = open(&disk, dir, &logs) else { panic!("{lock}: opened") };
        assert!(matches!(error, OpenError::Locked { .. }), "{lock}: {error}");
        same(&before, &whole(&disk), lock);
        drop(held);
    }
}

#[test]
fn what_was_looked_at_and_not_opened_is_as_it_was() {
    let disk = sample();
    let before = whole(&disk);
    drop(inspect(&as_disk(&disk), Path::new("/fresh/one")).unwrap());
    same(&before, &whole(&disk), "a new database");
    assert!(matches!(begin(&disk, "/fresh/one", &["/new"], Some(EPOCH_END)), Err(OpenError::Refused(_))));
    same(&before, &whole(&disk), "no epochs for a new database");
    assert!(matches!(begin(&disk, "/db", &["/new"], Some(EPOCH_END)), Err(OpenError::Refused(_))));
    same(&before, &whole(&disk), "no epochs");
    // Somebody has replaced the manifest meanwhile.
    let found = inspect(&as_disk(&disk), Path::new("/db")).unwrap();
    flip(&disk, "/db/MANIFEST.copy", 40);
    remove(&disk, "/db/MANIFEST");
    put(&disk, "/db/MANIFEST", &disk.contents(Path::new("/other/MANIFEST")).unwrap());
    let before = whole(&disk);
    let first_epoch = Epoch::new(found.largest_epoch().get() + 1);
    let options =
        GenerationOptions { directories: vec!["/new/a".into()], file_bytes: FILE_BYTES, first_epoch };
    assert!(matches!(found.next_generation(&options), Err(OpenError::TakenOver { .. })));
    same(&before, &whole(&disk), "taken over");
}

/// Returns the faults of an opening or a repair, each at the operation of this number.
pub(super) fn faults_at(at: u64, used: u64) -> [Faults; 4] {
    [
        Faults { seed: at, write_error_at: Some(at), ..Faults::default() },
        Faults { seed: at, sync_error_at: Some(at), ..Faults::default() },
        Faults { seed: at, name_error_at: Some(at), ..Faults::default() },
        Faults { no_space_after_bytes: Some(used + at * 500), ..Faults::default() },
    ]
}

#[test]
fn an_opening_that_fails_at_any_operation_leaves_nothing_that_was_not_there() {
    let mut failures = 0;
    for (dir, logs) in [
        ("/db", NEW),
        ("/db", &["/db/log", "/out"]),
        ("/fresh/one", &["/fresh/one/log"]),
        ("/fresh/one", &["/new/a", "/fresh/one/log"]),
    ] {
        let sound = sample();
        let before = whole(&sound);
        let manifest = Path::new(dir).join("MANIFEST");
        let used: u64 = sound.files().iter().map(|(_, bytes)| bytes).sum();
        for fault in (1..60).flat_map(|at| faults_at(at, used)) {
            let disk = Arc::new(sound.fork());
            disk.set_faults(fault.clone());
            let opened = open(&disk, dir, logs);
            disk.set_faults(Faults::default());
            let after = whole(&disk);
            // Where the manifest is in place already, all that it names is there.
            if opened.is_err() && after.get(&manifest) == before.get(&manifest) {
                failures += 1;
                same(&before, &after, &format!("{dir} {logs:?} {fault:?}"));
            }
            open(&disk, dir, logs).unwrap_or_else(|error| panic!("{dir} {logs:?} {fault:?}: {error}"));
        }
    }
    assert!(failures > 150, "{failures}");
}
