//! Log directories that are another database's, a copy's, or seem to be the database's own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, RealDisk};
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::bad_sectors::BadDisk;
use super::model::AnyOrder;
use super::taken_back::{flip, open, open_and_put, put, same, sample, whole};
use super::writer::FILE_BYTES;
use crate::format::Manifest;
use crate::recovery::named_files::NamedFiles;
use crate::recovery::{
    CorruptionKind, DataLoss, GenerationOptions, OpenError, Progress, backup, inspect, manifest_of, repair,
    verify,
};

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

fn corruptions(disk: &dyn Disk, dir: &Path) -> Vec<String> {
    let mut corruptions = Vec::new();
    verify(disk, dir, &mut |corruption| corruptions.push(corruption.to_string())).unwrap();
    corruptions
}

/// Fails unless `/db` is refused these log directories with such an error, and nothing changes.
fn is_refused(disk: &Arc<SimulatedDisk>, logs: &[&str], expected: &str) {
    let before = whole(disk);
    let error = open(disk, "/db", logs).unwrap_err().to_string();
    assert!(error.contains(expected), "{logs:?}: {error}");
    same(&before, &whole(disk), &error);
}

/// Copies the log files of a directory, and nothing else.
fn copy_log_files(disk: &SimulatedDisk, from: &str, to: &str) {
    for entry in
        disk.list(Path::new(from)).unwrap().into_iter().filter(|entry| entry.name.starts_with("log-"))
    {
        let bytes = disk.contents(&Path::new(from).join(&entry.name)).unwrap();
        put(disk, &format!("{to}/{}", entry.name), &bytes);
    }
}

#[test]
fn the_log_directory_of_a_backup_or_a_copy_is_refused() {
    for openings in 0..4 {
        let disk = sample();
        backup(&as_disk(&disk), Path::new("/db"), Path::new("/backup")).unwrap();
        // A copy has an `OWNER` that names the original, until it is opened.
        for (path, bytes) in whole(&disk) {
            if let (Ok(within), Some(bytes)) = (path.strip_prefix("/db"), bytes) {
                put(&disk, Path::new("/copy").join(within).to_str().unwrap(), &bytes);
            }
        }
        for _ in 0..openings {
            open(&disk, "/db", &["/db/log", "/out"]).unwrap();
        }
        is_refused(&disk, &["/db/log", "/backup/log"], "lies within another database, /backup");
        is_refused(&disk, &["/backup/new/log"], "lies within another database, /backup");
        is_refused(&disk, &["/backup"], "/backup holds another database");
        is_refused(&disk, &["/copy/log", "/out"], "lies within another database, /copy");
        disk.remove(Path::new("/backup/MANIFEST")).unwrap();
        is_refused(&disk, &["/backup/log"], "lies within another database, /backup");
        disk.remove(Path::new("/backup/MANIFEST.copy")).unwrap();
        is_refused(&disk, &["/backup/log"], "in this directory belongs");
    }
}

#[test]
fn log_that_the_database_has_not_left_is_refused_and_what_it_has_left_is_not() {
    let disk = sample();
    copy_log_files(&disk, "/out", "/kept");
    is_refused(&disk, &["/kept"], "in this directory belongs");
    for logs in [["/db/log"], ["/out"]] {
        open(&disk, "/db", &logs).unwrap();
        is_refused(&disk, &["/kept"], "in this directory belongs");
    }
    // As if the files that are not needed any more could not be removed.
    open(&disk, "/db", &["/new"]).unwrap();
    copy_log_files(&disk, "/kept", "/left");
    put(&disk, "/left/OWNER", &disk.contents(Path::new("/out/OWNER")).unwrap());
    open(&disk, "/db", &["/left", "/left"]).unwrap();
    for logs in [&["/new"][..], &["/left", "/new"], &["/out", "/db/log", "/out"]] {
        open(&disk, "/db", logs).unwrap();
        assert_eq!(corruptions(&*disk, Path::new("/db")), [""; 0]);
    }
}

#[test]
fn empty_log_files_go_where_they_may_be_those_of_an_interrupted_opening() {
    let sound = sample();
    let header = sound.contents(Path::new("/out/log-1-1-1.open")).unwrap()[..64].to_vec();
    let other = sound.contents(Path::new("/elsewhere/log-1-1-1.open")).unwrap()[..64].to_vec();
    let zeros = vec![0; 64];
    for (header, is_gone) in [(header, true), (zeros, true), (Vec::new(), true), (other, false)] {
        for generation in [1, 2, 9] {
            let disk = Arc::new(sound.fork());
            let file = format!("/new/log-{generation}-1-1.open");
            // A header says which generation it is of.
            let is_gone = is_gone && (generation == 1 || header.first().is_none_or(|&byte| byte == 0));
            put(&disk, &file, &[&header[..], &[0; 8192]].concat());
            let opened = open(&disk, "/db", &["/new"]);
            assert_eq!(opened.is_ok(), is_gone, "{file}: {opened:?}");
            assert_eq!(disk.exists(Path::new(&file)).unwrap(), !is_gone, "{file}");
        }
    }
}

#[test]
fn a_foreign_file_that_the_manifest_is_done_with_is_left_alone() {
    let disk = sample();
    open(&disk, "/db", &["/db/log", "/out"]).unwrap();
    let foreign = disk.contents(Path::new("/other/log/log-1-0-1.open")).unwrap();
    put(&disk, "/db/log/log-1-7-1.open", &foreign);
    assert_eq!(corruptions(&*disk, Path::new("/db")), [""; 0]);
    let refused = repair(&as_disk(&disk), Path::new("/db"), None).unwrap_err();
    assert!(refused.to_string().contains("nothing is damaged"), "{refused}");
    for logs in [&["/db/log", "/out"][..], &["/db/./log"], &["/db/log"]] {
        open(&disk, "/db", logs).unwrap();
        assert_eq!(disk.contents(Path::new("/db/log/log-1-7-1.open")).unwrap(), foreign);
    }
    // Where no manifest has been, it may be that of another database.
    put(&disk, "/new/log-1-7-1.open", &foreign);
    is_refused(&disk, &["/new"], "move it out of the directory, or name another directory for the log");
}

#[test]
fn the_owner_of_another_database_is_told_of_by_what_helps() {
    let disk = sample();
    is_refused(&disk, &["/elsewhere"], "name another directory for the log");
    let foreign = disk.contents(Path::new("/other/log/OWNER")).unwrap();
    disk.remove(Path::new("/out/OWNER")).unwrap();
    put(&disk, "/out/OWNER", &foreign);
    let error = open(&disk, "/db", &["/new"]).unwrap_err();
    assert!(matches!(error.corruption().unwrap().kind, CorruptionKind::OtherDatabase(_)), "{error}");
    let error = error.to_string();
    assert!(error.ends_with("; put the directory back that belongs to this database"), "{error}");
    assert_eq!(corruptions(&*disk, Path::new("/db")), [error]);
}

fn begin(dir: &Path, log: &Path) -> Result<(), OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let found = inspect(&disk, dir)?;
    let first_epoch = Epoch::new(found.largest_epoch().get() + 1);
    let directories = vec![log.to_path_buf()];
    found.next_generation(&GenerationOptions { directories, file_bytes: FILE_BYTES, first_epoch }).map(drop)
}

#[test]
fn a_directory_that_is_spelled_as_if_it_lay_within_a_new_database_is_none_of_its_own() {
    let root = std::env::temp_dir().join(format!("ensilo-as-if-within-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    let (other, elsewhere, fresh) = (root.join("other"), root.join("elsewhere"), root.join("fresh"));
    begin(&other, &elsewhere).unwrap();
    // As an earlier version left it.
    fs::remove_file(elsewhere.join("OWNER")).unwrap();
    fs::create_dir_all(&fresh).unwrap();
    symlink(&elsewhere, fresh.join("log")).unwrap();
    for log in [PathBuf::from("log"), PathBuf::from("../elsewhere")] {
        let error = begin(&fresh, &fresh.join(log)).unwrap_err().to_string();
        assert!(error.contains("belongs to another database"), "{error}");
        assert_eq!(corruptions(&RealDisk, &other), [""; 0]);
    }
    // The directory of the database may be spelled in several ways, too.
    fs::remove_file(fresh.join("log")).unwrap();
    symlink(&fresh, root.join("link")).unwrap();
    for (dir, log) in [("link", "fresh/log"), ("fresh", "link/log"), ("link", "link/../fresh/./log")] {
        begin(&root.join(dir), &root.join(log)).unwrap();
        assert_eq!(corruptions(&RealDisk, &root.join(dir)), [""; 0]);
    }
    fs::remove_dir_all(&root).unwrap();
}

/// Returns the keys of the rows of `/db`.
fn keys(disk: &Arc<SimulatedDisk>) -> Vec<u8> {
    let (found, rows) = (inspect(&as_disk(disk), Path::new("/db")).unwrap(), AnyOrder::default());
    found.replay(&rows, 1, &Progress::new()).unwrap();
    rows.rows().into_keys().map(|(_, key)| key[0]).collect()
}

/// Damages the row of the last opening, gives it up, and fails unless a copy of all is there, in the
/// directory of the database.
fn is_repaired(disk: &Arc<SimulatedDisk>, log: &str, expected: &[u8]) {
    let generation = manifest_of(&**disk, Path::new("/db")).unwrap().generation;
    flip(disk, &format!("{log}/log-{generation}-0-1.open"), 4096 + 70);
    let before = whole(disk);
    let refused = inspect(&as_disk(disk), Path::new("/db")).map(drop).unwrap_err();
    let DataLoss::After(kept) = refused.corruption().unwrap().loss else { panic!("{refused}") };
    let repaired = repair(&as_disk(disk), Path::new("/db"), Some(kept)).unwrap();
    let after = whole(disk);
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    let is_of_log = |path: &Path| path.starts_with("/db/log") || path.starts_with("/out");
    for path in new {
        assert!(path.starts_with(&repaired.copy) || is_of_log(path), "{log}: {}", path.display());
    }
    for (path, bytes) in before.iter().filter(|(path, bytes)| is_of_log(path) && bytes.is_some()) {
        let copied = |(copy, copied): (&PathBuf, _)| {
            copy.starts_with(&repaired.copy) && copy.file_name() == path.file_name() && copied == bytes
        };
        assert!(path.ends_with("LOCK") || after.iter().any(copied), "{log}: {}", path.display());
    }
    assert_eq!(corruptions(&**disk, Path::new("/db")), [""; 0]);
    assert_eq!(keys(disk), expected);
}

#[test]
fn a_directory_that_is_spelled_in_several_ways_over_the_openings_stays_one() {
    let disk = sample();
    let ways = [
        ["/db/../out", "/db/log"],
        ["/out", "/db/log/../../out"],
        ["/db/../db/log", "/db/../out"],
        ["/db/log/../../out", "/db/../db/log/."],
        ["/out", "/db/log"],
        ["/db/../out", "/out"],
    ];
    let mut rows = vec![7];
    for (logs, key) in ways.into_iter().zip(8..) {
        open_and_put(&disk, "/db", logs, key);
        is_repaired(&Arc::new(disk.fork()), logs[0], &rows);
        rows.push(key);
        let manifest = manifest_of(&*disk, Path::new("/db")).unwrap();
        assert_eq!(manifest.loggers.iter().filter(|logger| logger.directory.contains("..")).count(), 0);
        assert_eq!(corruptions(&*disk, Path::new("/db")), [""; 0]);
        assert_eq!(keys(&disk), rows);
        backup(&as_disk(&Arc::new(disk.fork())), Path::new("/db"), Path::new("/backup")).unwrap();
    }
}

#[test]
fn a_manifest_that_spells_a_directory_outside_relatively_is_repaired_within_its_own() {
    for first in ["/db/log", "/out"] {
        let disk = sample();
        open_and_put(&disk, "/db", [first, "/out"], 8);
        let mut manifest: Manifest = manifest_of(&*disk, Path::new("/db")).unwrap();
        // As an earlier version spelled it.
        let spelled = manifest.loggers.iter_mut().map(|logger| &mut logger.directory);
        let spelled = spelled.chain(manifest.earlier.iter_mut().map(|file| &mut file.directory));
        spelled.filter(|spelled| *spelled == "/out").for_each(|spelled| *spelled = "../out".to_owned());
        NamedFiles { disk: &*disk, dir: Path::new("/db"), manifest: &manifest }.install_manifest().unwrap();
        assert_eq!(keys(&disk), [7, 8]);
        is_repaired(&Arc::new(disk.fork()), first, &[7]);
        open_and_put(&disk, "/db", ["/out", "/db/../out"], 9);
        is_repaired(&disk, "/out", &[7, 8]);
    }
}

#[test]
fn what_a_repair_could_not_copy_stays_however_its_directory_is_spelled_later() {
    let disk = sample();
    open_and_put(&disk, "/db", ["/db/../out", "/db/log"], 8);
    let unread = Path::new("/out/log-2-0-1.open");
    let bad = Arc::new(BadDisk::with_bad_sector(&disk, unread, 1, 0)) as Arc<dyn Disk>;
    let refused = inspect(&bad, Path::new("/db")).map(drop).unwrap_err();
    let DataLoss::After(kept) = refused.corruption().unwrap().loss else { panic!("{refused}") };
    let repaired = repair(&bad, Path::new("/db"), Some(kept)).unwrap();
    assert_eq!(repaired.unread.len(), 1);
    for logs in [["/out", "/db/log"], ["/db/log", "/out"], ["/db/../out", "/out"], ["/out", "/out"]] {
        open_and_put(&disk, "/db", logs, 9);
        assert!(disk.exists(unread).unwrap(), "{logs:?}");
    }
}
