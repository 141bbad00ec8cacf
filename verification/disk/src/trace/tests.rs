#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::thread;

use ensilo_disk::{Disk, RealDisk};

use crate::{Faults, FileId, Operation, Recorder, SimulatedDisk, SyncPause};

fn path(path: &str) -> &Path {
    Path::new(path)
}

/// A bit of everything, below `dir`.
fn play(disk: &dyn Disk, dir: &Path) {
    disk.create_dir_all(&dir.join("log")).unwrap();
    disk.sync_dir(dir).unwrap();
    let _lock = disk.lock(&dir.join("LOCK")).unwrap();
    let first = disk.create(&dir.join("log/1.open"), 8192).unwrap();
    disk.sync_dir(&dir.join("log")).unwrap();
    for block in 0..8_u8 {
        first.write_at(u64::from(block) * 1000, &[block + 1; 1000]).unwrap();
        first.sync_data().unwrap();
    }
    first.set_len(5000).unwrap();
    disk.rename(&dir.join("log/1.open"), &dir.join("log/1.log")).unwrap();
    first.write_at(4000, b"after the rename").unwrap();
    first.sync_all().unwrap();
    let second = disk.create(&dir.join("log/2.open"), 0).unwrap();
    second.write_at(10, b"never synced").unwrap();
    disk.create_dir_all(&dir.join("old/older")).unwrap();
    disk.remove_dir(&dir.join("old/older")).unwrap();
    drop(disk.create(&dir.join("old/file"), 1).unwrap());
    disk.remove(&dir.join("old/file")).unwrap();
    drop(first);
    disk.open(&dir.join("log/1.log")).unwrap().write_at(0, b"opened again").unwrap();
}

/// All files with their bytes.
fn contents(disk: &SimulatedDisk) -> Vec<(String, Vec<u8>)> {
    let files = disk.files().into_iter();
    files.map(|(path, _)| (path.to_string_lossy().into_owned(), disk.contents(&path).unwrap())).collect()
}

#[test]
fn a_replay_ends_with_the_same_disk_and_the_same_crashes() {
    let disk = Arc::new(SimulatedDisk::new());
    let recorder = Recorder::over(disk.clone());
    play(&recorder, path("db"));
    let trace = recorder.trace();
    let replayed = trace.disk_after(trace.len());
    assert_eq!(contents(&replayed), contents(&disk));
    assert_eq!(replayed.list(path("db/old")).unwrap(), []);
    for seed in 0..300 {
        assert_eq!(contents(&replayed.crash(seed)), contents(&disk.crash(seed)));
    }
}

#[test]
fn a_cursor_passes_the_same_disks_as_replays_from_the_start() {
    let recorder = Recorder::over(Arc::new(SimulatedDisk::new()));
    play(&recorder, path("/db"));
    let trace = recorder.trace();
    assert_eq!(trace.len(), recorder.position());
    let mut cursor = trace.cursor();
    for position in 0..=trace.len() {
        assert_eq!(cursor.position(), position);
        let replayed = trace.disk_after(position);
        assert_eq!(contents(&cursor.disk()), contents(&replayed));
        assert_eq!(
            contents(&cursor.disk().crash(position as u64)),
            contents(&replayed.crash(position as u64))
        );
        assert_eq!(cursor.step(), trace.operations().get(position));
    }
}

#[test]
fn what_a_test_does_with_a_disk_of_a_cursor_does_not_reach_the_cursor() {
    let recorder = Recorder::over(Arc::new(SimulatedDisk::new()));
    play(&recorder, path("db"));
    let trace = recorder.trace();
    let mut cursor = trace.cursor();
    while cursor.step().is_some() {
        let disk = cursor.disk();
        for (path, _) in disk.files() {
            disk.delete(&path).unwrap();
        }
    }
    assert_eq!(contents(&cursor.disk()), contents(&trace.disk_after(trace.len())));
}

#[test]
fn a_trace_of_the_machines_disk_replays_to_the_same_files() {
    let dir = std::env::temp_dir().join(format!("ensilo-disk-trace-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let recorder = Recorder::new(Arc::new(RealDisk));
    play(&recorder, &dir.join("db"));
    let trace = recorder.trace();
    let replayed = trace.disk_after(trace.len());
    for name in ["log/1.log", "log/2.open"] {
        let path = dir.join("db").join(name);
        assert_eq!(replayed.contents(&path).unwrap(), std::fs::read(&path).unwrap(), "{name}");
    }
    assert_eq!(replayed.list(&dir.join("db")).unwrap().len(), RealDisk.list(&dir.join("db")).unwrap().len());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_recording_begins_with_what_is_on_the_disk() {
    let disk = SimulatedDisk::new();
    let file = disk.create(path("a"), 0).unwrap();
    file.write_at(0, b"unsynced").unwrap();
    let recorder = Recorder::over(Arc::new(disk.kill()));
    recorder.open(path("a")).unwrap().sync_data().unwrap();
    recorder.sync_dir(path("")).unwrap();
    let trace = recorder.trace();
    assert!((0..50).any(|seed| contents(&trace.disk_after(0).crash(seed)).is_empty()));
    for seed in 0..50 {
        let found = trace.disk_after(trace.len()).crash(seed);
        assert_eq!(found.contents(path("a")).unwrap(), b"unsynced");
    }
}

#[test]
fn notes_stand_where_they_were_made_and_failures_are_left_out() {
    let disk = Arc::new(SimulatedDisk::new());
    let recorder = Recorder::over(disk.clone());
    let file = recorder.create(path("a"), 0).unwrap();
    recorder.note(1);
    disk.set_faults(Faults { write_error_at: Some(1), sync_error_at: Some(1), ..Faults::default() });
    file.write_at(0, b"lost").unwrap_err();
    file.sync_data().unwrap_err();
    recorder.remove(path("b")).unwrap_err();
    recorder.create(path("a"), 0).unwrap_err();
    file.write_at(0, b"kept").unwrap();
    recorder.note(2);
    drop(file);
    let file = FileId(0);
    let expected = [
        Operation::Create { path: "a".into(), file, preallocate_bytes: 0 },
        Operation::Note(1),
        Operation::Write { file, offset: 0, bytes: b"kept".as_slice().into() },
        Operation::Note(2),
        Operation::Close { file },
    ];
    assert_eq!(recorder.trace().operations(), expected);
}

#[test]
fn a_sync_covers_what_was_recorded_before_it_began() {
    let disk = Arc::new(SimulatedDisk::new());
    let recorder = Recorder::over(disk.clone());
    let file = recorder.create(path("a"), 1024).unwrap();
    file.sync_data().unwrap();
    recorder.sync_dir(path("")).unwrap();
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(pause.clone()), ..Faults::default() });
    file.write_at(0, &[1; 512]).unwrap();
    thread::scope(|scope| {
        let sync = scope.spawn(|| file.sync_data());
        pause.wait_until_hanging(1);
        file.write_at(512, &[2; 512]).unwrap();
        pause.end();
        sync.join().unwrap().unwrap();
    });
    let trace = recorder.trace();
    let found = |seed| trace.disk_after(trace.len()).crash(seed).contents(path("a")).unwrap();
    assert!((0..50).all(|seed| found(seed)[0] == 1));
    assert!((0..50).any(|seed| found(seed)[512] == 0));
}

#[test]
fn crashes_of_a_disk_of_megabytes_are_cheap() {
    let recorder = Recorder::over(Arc::new(SimulatedDisk::new()));
    let file = recorder.create(path("a"), 64 << 20).unwrap();
    recorder.sync_dir(path("")).unwrap();
    for block in 0..256_u64 {
        file.write_at(block * 65_536, &vec![1; 65_536]).unwrap();
        if block % 16 == 15 {
            file.sync_data().unwrap();
        }
    }
    let trace = recorder.trace();
    let mut cursor = trace.cursor();
    let mut synced_bytes = 0;
    while let Some(operation) = cursor.step() {
        if matches!(operation, Operation::Sync { .. }) {
            synced_bytes += 16 * 65_536;
        }
        // Copies of all bytes for each of these crashes would come to 20 GB and more.
        for seed in 0..16 {
            let found = cursor.disk().crash(seed);
            if let Ok(file) = found.open(path("a"))
                && synced_bytes > 0
            {
                let mut byte = [0];
                file.read_at(synced_bytes - 1, &mut byte).unwrap();
                assert_eq!(byte, [1]);
            }
        }
    }
}

#[test]
fn what_only_looks_is_not_recorded() {
    let recorder = Recorder::over(Arc::new(SimulatedDisk::new()));
    drop(recorder.create(path("a"), 5).unwrap());
    drop(recorder.lock(path("LOCK")).unwrap());
    let position = recorder.position();
    let file = recorder.open_read(path("a")).unwrap();
    file.write_at(0, b"never").unwrap_err();
    assert_eq!(file.len_bytes().unwrap(), 5);
    drop(recorder.lock_shared(path("LOCK")).unwrap());
    drop(file);
    assert_eq!(recorder.position(), position);
}
