//! Links, and other ways to spell where something lies, on the disk of the machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, RealDisk};
use ensilo_epoch::Epoch;

use crate::recovery::copy::free_name;
use crate::recovery::{
    CheckpointWriterOptions, CorruptionKind, FinishedCheckpoint, GenerationOptions, OpenError, backup,
    inspect, salvage, verify,
};

/// A directory that goes with the test.
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ensilo-places-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Directory(path)
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn link(&self, to: &str, name: &str) {
        symlink(to, self.join(name)).unwrap();
    }

    /// Opens the database `db` with a logger in `db/log` and one in `out`, and lets go of it.
    pub(super) fn open(&self) -> Result<(), OpenError> {
        let found = inspect(&disk(), &self.join("db"))?;
        let options = GenerationOptions {
            directories: vec![self.join("db/log"), self.join("out")],
            file_bytes: 8 << 10,
            first_epoch: Epoch::new(found.largest_epoch().get() + 1),
        };
        found.next_generation(&options).map(drop)
    }

    fn corruptions(&self) -> Vec<(PathBuf, CorruptionKind)> {
        let mut corruptions = Vec::new();
        verify(&RealDisk, &self.join("db"), &mut |corruption| {
            corruptions.push((corruption.file, corruption.kind))
        })
        .unwrap();
        corruptions
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

#[test]
fn a_target_within_the_database_or_its_log_is_refused_however_it_is_spelled() {
    let directory = Directory::new("target");
    directory.open().unwrap();
    fs::create_dir(directory.join("db/log/deep")).unwrap();
    directory.link("db", "to-db");
    directory.link("db/log/deep", "to-deep");
    directory.link("out", "to-out");
    directory.link("to-out", "to-to-out");
    let targets = [
        "db",
        "db/new",
        "to-db/new",
        "to-db",
        "to-deep/new",
        "to-deep/../new",
        "to-deep/../../new/more",
        "out/new",
        "to-out/new",
        "to-to-out",
        "to-to-out/new/more",
        "missing/../out/new",
        "missing/../to-out/new",
        "db/../out/./new",
    ];
    for target in targets {
        let target = directory.join(target);
        for made in [
            backup(&disk(), &directory.join("db"), &target).map(|_| ()),
            salvage(&disk(), &directory.join("to-db"), &target).map(|_| ()),
        ] {
            let refused = made.unwrap_err();
            let why = refused.to_string();
            assert!(matches!(refused, OpenError::Refused(_)), "{why}");
            let is_reported =
                ["lies within", "holds a database already"].iter().any(|reported| why.contains(reported));
            assert!(is_reported && why.contains("name another directory"), "{why}");
        }
    }
    assert!(!directory.join("missing").exists() && !directory.join("db/new").exists());
    // Behind a link out of the database nothing is the database's.
    fs::create_dir_all(directory.join("other/inner")).unwrap();
    directory.link("../other/inner", "db/to-inner");
    for target in ["db/to-inner/new", "db/to-inner/../one", "db/../two"] {
        backup(&disk(), &directory.join("db"), &directory.join(target)).unwrap();
    }
    // Where log directories are missing nothing is put into their places either, nor around them.
    fs::rename(directory.join("out"), directory.join("moved")).unwrap();
    for target in ["out", "out/new", "other/../out/new"] {
        let refused = salvage(&disk(), &directory.join("db"), &directory.join(target)).unwrap_err();
        assert!(refused.to_string().contains("keeps its log"), "{refused}");
    }
}

#[test]
fn what_is_no_file_in_the_place_of_one_is_a_finding_of_a_verification() {
    let in_its_place: [fn(&Path); 2] =
        [|path| drop(UnixListener::bind(path).unwrap()), |path| fs::create_dir(path).unwrap()];
    for put in in_its_place {
        let directory = Directory::new("no-file");
        let found = inspect(&disk(), &directory.join("db")).unwrap();
        let first_epoch = Epoch::new(1);
        let directories = vec![directory.join("db/log")];
        let options = GenerationOptions { directories, file_bytes: 8 << 10, first_epoch };
        let (_, mut files) = found.next_generation(&options).unwrap();
        let place = files.begin_checkpoint(first_epoch).unwrap();
        let writer = place.writer(0, CheckpointWriterOptions::default()).unwrap();
        let finished =
            FinishedCheckpoint { place, end_epoch: first_epoch, written: vec![writer.finish().unwrap()] };
        files.install_checkpoint(finished, first_epoch).unwrap();
        drop(files);
        for name in ["db/checkpoint-1/part-0.ckpt", "db/MANIFEST.copy", "db/MANIFEST"] {
            fs::remove_file(directory.join(name)).unwrap();
            put(&directory.join(name));
            let named = directory.corruptions().into_iter().find(|(file, _)| *file == directory.join(name));
            // The copy is of interest only where there is no manifest.
            assert_eq!(named.is_some(), name != "db/MANIFEST.copy", "{name}: {named:?}");
            assert!(named.is_none_or(|(_, kind)| kind.is_unread()), "{name}");
        }
        assert_eq!(directory.corruptions().len(), 2);
    }
}

#[test]
fn a_target_that_a_missing_log_directory_is_to_lie_in_is_refused() {
    let directory = Directory::new("encloses");
    let found = inspect(&disk(), &directory.join("db")).unwrap();
    let log = directory.join("outer/log");
    let options =
        GenerationOptions { directories: vec![log], file_bytes: 8 << 10, first_epoch: Epoch::new(1) };
    drop(found.next_generation(&options).unwrap());
    fs::rename(directory.join("outer/log"), directory.join("moved")).unwrap();
    let refused = salvage(&disk(), &directory.join("db"), &directory.join("outer")).unwrap_err();
    assert!(refused.to_string().contains("encloses"), "{refused}");
}

#[test]
fn links_that_lead_nowhere_do_not_keep_a_database_from_being_read() {
    let directory = Directory::new("nowhere");
    directory.open().unwrap();
    fs::create_dir(directory.join("db/checkpoint-7")).unwrap();
    for within in ["db", "db/log", "out", "db/checkpoint-7"] {
        directory.link("missing", &format!("{within}/to-nothing"));
        directory.link("to-itself", &format!("{within}/to-itself"));
        directory.link(".", &format!("{within}/to-here"));
    }
    assert_eq!(directory.corruptions(), []);
    backup(&disk(), &directory.join("db"), &directory.join("copy")).unwrap();
    directory.open().unwrap();
    assert!(!directory.join("db/checkpoint-7").exists(), "no manifest names it");
    assert_eq!(directory.corruptions(), []);
    // In the place of a log file, each is as good as none.
    let log_file = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "open");
    let listed = fs::read_dir(directory.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let file = listed.filter(log_file).max().unwrap();
    for to in ["missing", file.file_name().unwrap().to_str().unwrap()] {
        fs::remove_file(&file).unwrap();
        symlink(to, &file).unwrap();
        let [(_, CorruptionKind::Missing)] = directory.corruptions()[..] else {
            panic!("{:?}", directory.corruptions())
        };
        let error = directory.open().unwrap_err();
        assert_eq!(error.corruption().unwrap().kind, CorruptionKind::Missing, "{error}");
    }
    // A directory with one of them is not empty, and a manifest that leads nowhere is lost.
    fs::create_dir(directory.join("target")).unwrap();
    directory.link("to-itself", "target/to-itself");
    let refused = backup(&disk(), &directory.join("copy"), &directory.join("target")).unwrap_err();
    assert!(refused.to_string().contains("it holds to-itself"), "{refused}");
    let refused = inspect(&disk(), &directory.join("target")).unwrap_err();
    assert!(matches!(&refused, OpenError::NotADatabase { holds: Some(name), .. } if name == "to-itself"));
    fs::remove_file(directory.join("target/to-itself")).unwrap();
    directory.link("MANIFEST", "target/MANIFEST");
    let refused = inspect(&disk(), &directory.join("target")).unwrap_err();
    assert_eq!(refused.corruption().unwrap().file, directory.join("target/MANIFEST"), "{refused}");
}

#[test]
fn a_link_in_the_place_of_an_old_checkpoint_goes_and_what_it_leads_to_stays() {
    let directory = Directory::new("checkpoint");
    directory.open().unwrap();
    fs::create_dir(directory.join("elsewhere")).unwrap();
    fs::write(directory.join("elsewhere/kept"), b"kept").unwrap();
    directory.link("../elsewhere", "db/checkpoint-99");
    fs::create_dir(directory.join("db/checkpoint-98")).unwrap();
    directory.link("../../elsewhere", "db/checkpoint-98/deep");
    for _ in 0..2 {
        directory.open().unwrap();
        assert_eq!(fs::read(directory.join("elsewhere/kept")).unwrap(), b"kept");
        let is_there = |name: &str| fs::symlink_metadata(directory.join(name)).is_ok();
        assert!(!is_there("db/checkpoint-99") && !is_there("db/checkpoint-98"));
    }
    assert_eq!(directory.corruptions(), []);
}

#[test]
fn links_that_lead_nowhere_are_not_followed_to_make_files() {
    let directory = Directory::new("not-followed");
    directory.open().unwrap();
    fs::remove_file(directory.join("db/MANIFEST.copy")).unwrap();
    let links = ["db/MANIFEST.new", "db/MANIFEST.copy", "db/log/OWNER.new", "out/OWNER.new"];
    for name in links {
        directory.link(directory.join("elsewhere").to_str().unwrap(), name);
    }
    directory.open().unwrap();
    assert!(!directory.join("elsewhere").exists());
    assert!(fs::symlink_metadata(directory.join("db/MANIFEST.copy")).unwrap().is_file());
    // Nor is such a link, which takes a name, removed with what could not be made there.
    directory.link("elsewhere", "db/before-repair-1");
    let free = free_name(&RealDisk, &directory.join("db"), "before-repair-").unwrap();
    assert_eq!(free, directory.join("db/before-repair-2"));
}

#[test]
fn files_and_directories_may_be_links() {
    let directory = Directory::new("links");
    directory.open().unwrap();
    fs::create_dir(directory.join("moved")).unwrap();
    for (number, name) in ["db/log", "out", "db/MANIFEST.copy"].into_iter().enumerate() {
        let moved = directory.join("moved").join(number.to_string());
        fs::rename(directory.join(name), &moved).unwrap();
        directory.link(moved.to_str().unwrap(), name);
    }
    let log = fs::read_dir(directory.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let file = log.filter(|path| path.to_str().unwrap().ends_with(".open")).max().unwrap();
    fs::rename(&file, directory.join("moved/file")).unwrap();
    symlink(directory.join("moved/file"), &file).unwrap();
    for _ in 0..2 {
        assert_eq!(directory.corruptions(), []);
        directory.open().unwrap();
    }
}

#[test]
fn a_lock_file_that_is_a_directory_is_named_and_keeps_nobody_from_reading() {
    let directory = Directory::new("lock");
    directory.open().unwrap();
    for place in ["db", "db/log", "out"] {
        let lock = directory.join(place).join("LOCK");
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        assert_eq!(directory.corruptions(), []);
        backup(&disk(), &directory.join("db"), &directory.join("copy")).unwrap();
        fs::remove_dir_all(directory.join("copy")).unwrap();
        let error = directory.open().unwrap_err();
        let is_named = |path: &Path| path == lock;
        assert!(matches!(&error, OpenError::Io { doing: "lock", path, .. } if is_named(path)), "{error}");
        fs::remove_dir(&lock).unwrap();
    }
    directory.open().unwrap();
}
