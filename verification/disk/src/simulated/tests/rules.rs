//! Each rule of the module above by an example.

use std::io::ErrorKind;
use std::path::Path;

use ensilo_disk::{Disk, File, Lock, LockHeld};

use crate::SimulatedDisk;

const SEEDS: u64 = 400;

fn path(path: &str) -> &Path {
    Path::new(path)
}

/// A file with its name and `bytes` stored.
fn stored_file(disk: &SimulatedDisk, name: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = disk.create(path(name), 0).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(path(name).parent().unwrap()).unwrap();
    file
}

/// What the seeds make of a file: all that is found, each once.
fn outcomes(disk: &SimulatedDisk, name: &str) -> Vec<Option<Vec<u8>>> {
    let mut found: Vec<_> = (0..SEEDS).map(|seed| disk.crash(seed).contents(path(name)).ok()).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn synced_bytes_survive_every_seed() {
    let disk = SimulatedDisk::new();
    stored_file(&disk, "a", &[7; 5000]);
    assert!(disk.is_synced());
    assert_eq!(outcomes(&disk, "a"), [Some(vec![7; 5000])]);
}

#[test]
fn a_file_without_a_stored_name_may_be_gone_though_its_bytes_are_synced() {
    let disk = SimulatedDisk::new();
    let file = disk.create(path("a"), 0).unwrap();
    file.write_at(0, b"bytes").unwrap();
    file.sync_all().unwrap();
    assert_eq!(outcomes(&disk, "a"), [None, Some(b"bytes".to_vec())]);
}

#[test]
fn a_file_in_a_directory_without_a_stored_name_may_be_gone() {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(path("x/y")).unwrap();
    stored_file(&disk, "x/y/a", b"bytes");
    assert_eq!(outcomes(&disk, "x/y/a"), [None, Some(b"bytes".to_vec())]);
}

#[test]
fn writes_are_lost_torn_and_reordered_by_sectors() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", &[0; 4 * 512]);
    file.write_at(0, &[1; 1024]).unwrap();
    file.write_at(1024, &[2; 1024]).unwrap();
    let mut shapes = outcomes(&disk, "a");
    let sectors = |bytes: &[u8]| bytes.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>();
    let shapes: Vec<_> = shapes.drain(..).map(|bytes| sectors(&bytes.unwrap())).collect();
    for shape in [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 2], [1, 1, 0, 2], [1, 1, 2, 2]] {
        assert!(shapes.contains(&shape.to_vec()), "{shape:?} never comes");
    }
    assert!(shapes.iter().all(|shape| shape.len() == 4));
}

#[test]
fn a_sector_never_shows_a_later_write_without_an_earlier_one() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", &[0; 512]);
    file.write_at(0, &[1; 100]).unwrap();
    file.write_at(200, &[2; 100]).unwrap();
    let found = outcomes(&disk, "a");
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|bytes| bytes.as_ref().unwrap()[200] == 0 || bytes.as_ref().unwrap()[0] == 1));
}

#[test]
fn preallocated_space_that_was_never_synced_may_be_shorter() {
    let disk = SimulatedDisk::new();
    let _file = disk.create(path("a"), 1000).unwrap();
    disk.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&disk, "a"), [Some(vec![]), Some(vec![0; 1000])]);
}

#[test]
fn a_file_may_be_long_before_its_bytes_come() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", b"");
    file.write_at(0, &[1; 1024]).unwrap();
    let found: Vec<_> = outcomes(&disk, "a").into_iter().flatten().collect();
    let half = [[1; 512], [0; 512]].concat();
    for expected in [vec![], vec![0; 1024], vec![1; 512], vec![0; 512], half, vec![1; 1024]] {
        assert!(found.contains(&expected), "{} bytes never come", expected.len());
    }
}

#[test]
fn bytes_cut_off_come_back_only_with_the_old_length() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", &[1; 2048]);
    file.set_len(512).unwrap();
    file.set_len(2048).unwrap();
    let (old, cut) = (vec![1; 2048], vec![1; 512]);
    let longer = [vec![1; 512], vec![0; 1536]].concat();
    assert_eq!(outcomes(&disk, "a"), [Some(cut), Some(longer), Some(old)]);
}

#[test]
fn a_rename_over_a_file_leaves_the_old_or_the_new_one() {
    let disk = SimulatedDisk::new();
    stored_file(&disk, "MANIFEST", b"old");
    stored_file(&disk, "MANIFEST.new", b"new");
    disk.rename(path("MANIFEST.new"), path("MANIFEST")).unwrap();
    let found = outcomes(&disk, "MANIFEST");
    assert_eq!(found, [Some(b"new".to_vec()), Some(b"old".to_vec())]);
    for seed in 0..SEEDS {
        let crashed = disk.crash(seed);
        let is_renamed = crashed.contents(path("MANIFEST")).unwrap() == b"new";
        assert_eq!(crashed.exists(path("MANIFEST.new")).unwrap(), !is_renamed);
    }
}

#[test]
fn a_rename_without_a_sync_of_the_bytes_may_leave_an_empty_file() {
    let disk = SimulatedDisk::new();
    stored_file(&disk, "a", b"old");
    disk.create(path("a.new"), 0).unwrap().write_at(0, b"new").unwrap();
    disk.rename(path("a.new"), path("a")).unwrap();
    disk.sync_dir(path("")).unwrap();
    let found = outcomes(&disk, "a");
    assert!(found.contains(&Some(vec![])) && !found.contains(&Some(b"old".to_vec())));
}

#[test]
fn a_sync_of_one_directory_takes_a_rename_between_two_whole() {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(path("x")).unwrap();
    disk.create_dir_all(path("y")).unwrap();
    disk.sync_dir(path("/")).unwrap();
    let file = disk.create(path("x/a"), 0).unwrap();
    file.sync_all().unwrap();
    disk.rename(path("x/a"), path("y/b")).unwrap();
    disk.sync_dir(path("y")).unwrap();
    for seed in 0..SEEDS {
        let crashed = disk.crash(seed);
        assert_eq!(crashed.files(), [(path("y/b").into(), 0)]);
    }
}

#[test]
fn a_removed_directory_never_takes_along_what_was_moved_out_of_it() {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(path("x")).unwrap();
    stored_file(&disk, "x/a", b"kept");
    disk.sync_dir(path("")).unwrap();
    disk.rename(path("x/a"), path("a")).unwrap();
    disk.remove_dir(path("x")).unwrap();
    for seed in 0..SEEDS {
        let files = disk.crash(seed).files();
        assert!(files == [(path("a").into(), 4)] || files == [(path("x/a").into(), 4)], "{files:?}");
    }
}

#[test]
fn a_removed_file_may_come_back_until_the_directory_is_synced() {
    let disk = SimulatedDisk::new();
    stored_file(&disk, "a", b"bytes");
    disk.remove(path("a")).unwrap();
    assert_eq!(disk.open(path("a")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(outcomes(&disk.fork(), "a"), [None, Some(b"bytes".to_vec())]);
    disk.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&disk, "a"), [None]);
}

#[test]
fn the_end_of_a_process_loses_nothing_and_syncs_nothing() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", b"old");
    file.write_at(0, b"new").unwrap();
    let next = disk.kill();
    assert_eq!(next.contents(path("a")).unwrap(), b"new");
    assert!(!next.is_synced());
    assert!(outcomes(&next.fork(), "a").contains(&Some(b"old".to_vec())));
    next.open(path("a")).unwrap().sync_data().unwrap();
    assert_eq!(outcomes(&next, "a"), [Some(b"new".to_vec())]);
}

#[test]
fn a_dead_process_is_refused_everything() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", b"bytes");
    let next = disk.crash(0);
    let mut byte = [0];
    assert!(file.write_at(0, b"late").is_err() && file.read_at(0, &mut byte).is_err());
    assert!(file.sync_data().is_err() && file.set_len(1).is_err() && file.len_bytes().is_err());
    assert!(disk.open(path("a")).is_err() && disk.create(path("b"), 0).is_err());
    assert!(disk.list(path("")).is_err() && disk.exists(path("a")).is_err());
    assert!(disk.rename(path("a"), path("b")).is_err() && disk.remove(path("a")).is_err());
    assert!(disk.sync_dir(path("")).is_err() && disk.lock(path("LOCK")).is_err());
    assert_eq!(next.contents(path("a")).unwrap(), b"bytes");
}

#[test]
fn a_fork_goes_its_own_way() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", b"one");
    let fork = disk.fork();
    file.write_at(0, b"two").unwrap();
    fork.open(path("a")).unwrap().write_at(0, b"six").unwrap();
    assert_eq!(disk.contents(path("a")).unwrap(), b"two");
    assert_eq!(fork.contents(path("a")).unwrap(), b"six");
}

#[test]
fn a_lock_is_refused_while_held_and_ends_with_the_process() {
    let disk = SimulatedDisk::new();
    let lock = disk.lock(path("LOCK")).unwrap();
    assert_eq!(disk.lock(path("LOCK")).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(lock);
    let _lock = disk.lock(path("LOCK")).unwrap();
    disk.kill().lock(path("LOCK")).unwrap();
}

#[test]
fn names_are_refused_as_a_real_disk_refuses_them() {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(path("x/y")).unwrap();
    let _file = disk.create(path("/x/a"), 3).unwrap();
    let kind = |result: std::io::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(disk.create(path("x/a"), 0).map(drop)), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.create(path("z/a"), 0).map(drop)), ErrorKind::NotFound);
    assert_eq!(kind(disk.open(path("x")).map(drop)), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.open(path("x/a/b")).map(drop)), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.remove_dir(path("x"))), ErrorKind::DirectoryNotEmpty);
    assert_eq!(kind(disk.remove(path("x/b"))), ErrorKind::NotFound);
    assert_eq!(kind(disk.rename(path("x"), path("x/y/z"))), ErrorKind::InvalidInput);
    assert_eq!(kind(disk.sync_dir(path("q"))), ErrorKind::NotFound);
    assert_eq!(kind(disk.open(path("../a")).map(drop)), ErrorKind::NotFound);
    assert_eq!(disk.place(path("x/y/../a")).unwrap(), disk.place(path("/../x/a")).unwrap());
    let listed = disk.list(path("x")).unwrap();
    let listed: Vec<_> = listed.iter().map(|l| (l.name.as_str(), l.len_bytes, l.is_dir)).collect();
    assert_eq!(listed, [("a", 3, false), ("y", 0, true)]);
}

#[test]
fn an_open_file_outlives_its_name() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", b"bytes");
    disk.remove(path("a")).unwrap();
    disk.sync_dir(path("")).unwrap();
    let mut bytes = [0; 5];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"bytes");
    assert_eq!(file.read_at(1, &mut bytes).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn damage_is_seen_at_once_and_survives() {
    let disk = SimulatedDisk::new();
    let file = stored_file(&disk, "a", b"abcdef");
    file.set_len(6).unwrap();
    disk.flip(path("a"), 1).unwrap();
    disk.swap(path("a"), 1..3, 4..6).unwrap();
    assert_eq!(disk.contents(path("a")).unwrap(), b"cefdbc");
    disk.overwrite(path("a"), 4, b"yz").unwrap();
    disk.truncate(path("a"), 5).unwrap();
    assert_eq!(outcomes(&disk.fork(), "a"), [Some(b"cefdy".to_vec())]);
    for refused in [
        disk.flip(path("a"), 40),
        disk.swap(path("a"), 0..3, 2..5),
        disk.swap(path("a"), 0..1, 2..4),
        disk.truncate(path("a"), 6),
        disk.overwrite(path("a"), 5, b"x"),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    disk.delete(path("a")).unwrap();
    assert_eq!(outcomes(&disk, "a"), [None]);
}

#[test]
fn a_file_that_was_opened_for_reading_is_left_as_it_is() {
    let disk = SimulatedDisk::new();
    stored_file(&disk, "a", b"bytes");
    let file = disk.open_read(path("a")).unwrap();
    let mut bytes = [0; 5];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!((&bytes, file.len_bytes().unwrap()), (b"bytes", 5));
    for refused in [file.write_at(0, b"B"), file.set_len(0), file.sync_data(), file.sync_all()] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    assert_eq!(disk.contents(path("a")).unwrap(), b"bytes");
    assert_eq!(disk.open_read(path("b")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_lock_is_held_by_one_or_shared() {
    let disk = SimulatedDisk::new();
    let lock = path("LOCK");
    let is_held =
        |refused: std::io::Result<_>| LockHeld::of(&refused.map(drop::<Box<dyn Lock>>).unwrap_err());
    let without_file = disk.lock_shared(lock).unwrap();
    assert!(!disk.exists(lock).unwrap());
    assert!(is_held(disk.lock(lock)).is_some(), "the directory is shared");
    drop(without_file);
    let held = disk.lock(lock).unwrap();
    assert_eq!(is_held(disk.lock_shared(lock)), Some(LockHeld::by(Some(std::process::id()))));
    drop(held);
    let (one, other) = (disk.lock_shared(lock).unwrap(), disk.lock_shared(lock).unwrap());
    assert_eq!(is_held(disk.lock(lock)), Some(LockHeld::by(None)));
    drop(one);
    assert_eq!(is_held(disk.lock(lock)), Some(LockHeld::by(None)));
    drop(other);
    assert!(is_held(disk.lock(lock).and_then(|_held| disk.lock(lock))).is_some());
}
