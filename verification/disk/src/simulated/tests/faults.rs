//! Each fault comes when it was planned, and does what it says.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use ensilo_disk::{Disk, File};

use crate::{Counts, Faults, SimulatedDisk, SyncPause};

fn path(path: &str) -> &Path {
    Path::new(path)
}

/// A disk with a synced file of `len_bytes` zeros.
fn disk_with_file(len_bytes: u64) -> (SimulatedDisk, Box<dyn File>) {
    let disk = SimulatedDisk::new();
    let file = disk.create(path("a"), len_bytes).unwrap();
    file.sync_all().unwrap();
    disk.sync_dir(path("")).unwrap();
    (disk, file)
}

#[test]
fn the_nth_write_fails_after_some_of_it_and_the_next_succeeds() {
    let mut lengths_written = Vec::new();
    for seed in 0..50 {
        let (disk, file) = disk_with_file(100);
        disk.set_faults(Faults { seed, write_error_at: Some(2), ..Faults::default() });
        file.write_at(0, &[1; 10]).unwrap();
        let error = file.write_at(10, &[2; 10]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(5));
        let bytes = disk.contents(path("a")).unwrap();
        lengths_written.push(bytes.iter().filter(|&&byte| byte == 2).count());
        file.write_at(10, &[3; 10]).unwrap();
        assert_eq!(disk.counts(), Counts { writes: 3, ..Counts::default() });
    }
    assert!(lengths_written.contains(&0) && lengths_written.contains(&10) && lengths_written.contains(&5));
}

#[test]
fn the_nth_sync_of_a_directory_fails_and_those_of_files_are_not_counted_with_it() {
    let (disk, file) = disk_with_file(100);
    disk.set_faults(Faults { dir_sync_error_at: Some(2), ..Faults::default() });
    file.sync_all().unwrap();
    disk.sync_dir(path("")).unwrap();
    disk.create(path("b"), 0).unwrap();
    assert_eq!(disk.sync_dir(path("")).unwrap_err().raw_os_error(), Some(5));
    assert!(!disk.is_synced());
    disk.sync_dir(path("")).unwrap();
    assert!(disk.is_synced());
    assert_eq!(disk.counts(), Counts { syncs: 4, dir_syncs: 3, name_changes: 1, ..Counts::default() });
}

#[test]
fn what_goes_on_failing_is_never_healed() {
    let (disk, _file) = disk_with_file(100);
    disk.set_faults(Faults { dir_sync_error_at: Some(2), goes_on_failing: true, ..Faults::default() });
    disk.create(path("b"), 0).unwrap();
    disk.sync_dir(path("")).unwrap();
    assert!(disk.is_synced());
    disk.remove(path("b")).unwrap();
    for _ in 0..5 {
        disk.sync_dir(path("")).unwrap_err();
        assert!(!disk.is_synced());
    }
}

#[test]
fn a_failed_new_length_may_have_been_set() {
    let mut lengths = Vec::new();
    for seed in 0..20 {
        let (disk, file) = disk_with_file(100);
        disk.set_faults(Faults { seed, write_error_at: Some(1), ..Faults::default() });
        file.set_len(50).unwrap_err();
        lengths.push(file.len_bytes().unwrap());
    }
    assert!(lengths.contains(&50) && lengths.contains(&100));
}

#[test]
fn a_failed_sync_loses_bytes_that_no_later_sync_brings_back() {
    let mut lost = 0;
    for seed in 0..50 {
        let (disk, file) = disk_with_file(1024);
        disk.set_faults(Faults { seed, sync_error_at: Some(1), ..Faults::default() });
        file.write_at(0, &[1; 1024]).unwrap();
        file.sync_data().unwrap_err();
        assert_eq!(disk.contents(path("a")).unwrap(), [1; 1024], "reads do not show it");
        file.write_at(512, &[2; 10]).unwrap();
        file.sync_data().unwrap();
        let is_lost = !disk.is_synced();
        let found = disk.crash(seed).contents(path("a")).unwrap();
        assert_eq!(found[512..522], [2; 10]);
        lost += u32::from(is_lost && found[0] == 0);
    }
    assert!(lost > 10);
}

#[test]
fn the_sync_of_a_directory_fails_in_its_turn_and_stores_no_name() {
    let (disk, file) = disk_with_file(0);
    disk.set_faults(Faults { sync_error_at: Some(2), ..Faults::default() });
    disk.rename(path("a"), path("b")).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(path("")).unwrap_err();
    assert!((0..50).any(|seed| disk.crash(seed).exists(path("a")).unwrap()));
}

#[test]
fn the_nth_read_fails() {
    let (disk, file) = disk_with_file(10);
    disk.set_faults(Faults { read_error_at: Some(2), ..Faults::default() });
    let mut bytes = [0; 10];
    file.read_at(0, &mut bytes).unwrap();
    file.read_at(0, &mut bytes).unwrap_err();
    file.read_at(0, &mut bytes).unwrap();
}

#[test]
fn the_nth_change_of_names_fails_and_changes_nothing() {
    let operations: [fn(&SimulatedDisk) -> std::io::Result<()>; 6] = [
        |disk| disk.create(path("b"), 0).map(drop),
        |disk| disk.rename(path("a"), path("b")),
        |disk| disk.remove(path("a")),
        |disk| disk.create_dir_all(path("b")),
        |disk| disk.remove_dir(path("x")),
        |disk| disk.lock(path("b")).map(drop),
    ];
    for operation in operations {
        let (disk, _file) = disk_with_file(0);
        disk.create_dir_all(path("x")).unwrap();
        disk.set_faults(Faults { name_error_at: Some(2), ..Faults::default() });
        disk.create_dir_all(path("x")).unwrap();
        let before = disk.list(path("")).unwrap();
        operation(&disk).unwrap_err();
        assert_eq!(disk.list(path("")).unwrap(), before);
        operation(&disk).unwrap();
    }
}

#[test]
fn space_ends_where_planned_and_comes_back_with_a_removed_file() {
    let (disk, file) = disk_with_file(100);
    disk.set_faults(Faults { no_space_after_bytes: Some(150), ..Faults::default() });
    file.write_at(0, &[1; 100]).unwrap();
    assert_eq!(file.write_at(90, &[2; 100]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.contents(path("a")).unwrap(), [[1; 90].as_slice(), &[2; 60]].concat());
    assert_eq!(file.set_len(151).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.create(path("b"), 1).unwrap_err().kind(), ErrorKind::StorageFull);
    assert!(!disk.exists(path("b")).unwrap());
    drop(disk.create(path("b"), 0).unwrap());
    disk.remove(path("a")).unwrap();
    assert_eq!(disk.create(path("c"), 1).unwrap_err().kind(), ErrorKind::StorageFull, "it is still open");
    drop(file);
    drop(disk.create(path("c"), 150).unwrap());
}

#[test]
fn a_sync_hangs_until_the_gate_opens_and_covers_what_came_before_it() {
    let (disk, file) = disk_with_file(1024);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(pause.clone()), ..Faults::default() });
    file.write_at(0, &[1; 512]).unwrap();
    thread::scope(|scope| {
        let sync = scope.spawn(|| file.sync_data());
        pause.wait_until_hanging(1);
        file.write_at(512, &[2; 512]).unwrap();
        let before = disk.fork();
        assert!((0..50).any(|seed| before.crash(seed).contents(path("a")).unwrap()[0] == 0));
        pause.let_one_pass();
        sync.join().unwrap().unwrap();
    });
    assert_eq!(pause.hanging(), 0);
    let found: Vec<_> = (0..50).map(|seed| disk.crash(seed).contents(path("a")).unwrap()).collect();
    assert!(found.iter().all(|bytes| bytes[..512] == [1; 512]));
    assert!(found.iter().any(|bytes| bytes[512] == 0), "what came after it began is not covered");
}

#[test]
fn names_changed_while_the_sync_of_their_directory_hangs_are_not_covered() {
    let (disk, _file) = disk_with_file(0);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(pause.clone()), ..Faults::default() });
    disk.rename(path("a"), path("b")).unwrap();
    thread::scope(|scope| {
        let sync = scope.spawn(|| disk.sync_dir(path("")));
        pause.wait_until_hanging(1);
        disk.rename(path("b"), path("c")).unwrap();
        pause.end();
        sync.join().unwrap().unwrap();
    });
    let found: Vec<_> = (0..50).map(|seed| disk.crash(seed).files()).collect();
    assert!(found.iter().all(|files| files == &[(path("b").into(), 0)] || files == &[(path("c").into(), 0)]));
    assert!(found.iter().any(|files| files[0].0 == path("b")));
}

#[test]
fn an_open_gate_holds_nothing_up() {
    let (disk, file) = disk_with_file(1);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(pause.clone()), ..Faults::default() });
    pause.end();
    file.sync_data().unwrap();
    disk.sync_dir(path("")).unwrap();
    pause.begin();
    pause.let_one_pass();
    file.sync_all().unwrap();
}

#[test]
fn a_sync_that_hangs_when_the_process_ends_fails_and_stores_nothing() {
    let (disk, file) = disk_with_file(512);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(pause.clone()), ..Faults::default() });
    file.write_at(0, &[1; 512]).unwrap();
    thread::scope(|scope| {
        let sync = scope.spawn(|| file.sync_data());
        pause.wait_until_hanging(1);
        // A plan that came later does not set it free, nor does it keep it from its end.
        disk.set_faults(Faults { sync_hangs: Some(SyncPause::new()), ..Faults::default() });
        let crashed: Vec<_> = (0..50).map(|seed| disk.crash(seed)).collect();
        sync.join().unwrap().unwrap_err();
        assert!(crashed.iter().any(|disk| disk.contents(path("a")).unwrap()[0] == 0));
    });
}

#[test]
fn faults_stay_with_the_process_they_were_planned_for() {
    let (disk, _file) = disk_with_file(1);
    disk.set_faults(Faults { write_error_at: Some(1), ..Faults::default() });
    for next in [disk.fork(), disk.kill(), disk.crash(0)] {
        Arc::new(next).open(path("a")).unwrap().write_at(0, b"x").unwrap();
    }
}
