//! What is said to be lost is what is lost, whatever else is damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::history::Run;
use super::salvage::{TARGET, saved_rows, sixty_rows};
use super::writer::{DIR, recover, rows_up_to};
use crate::recovery::{Corruption, CorruptionKind, DataLoss, inspect, repair, salvage, verify};

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

fn corruptions_in(disk: &SimulatedDisk) -> Vec<Corruption> {
    let mut corruptions = Vec::new();
    verify(disk, Path::new(DIR), &mut |corruption| corruptions.push(corruption)).unwrap();
    corruptions
}

fn log_files(disk: &SimulatedDisk) -> Vec<PathBuf> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    files.filter(|path| path.starts_with("db/log")).filter(|path| path.extension().is_some()).collect()
}

fn loss_of(corruptions: &[Corruption], file: &Path) -> DataLoss {
    corruptions
        .iter()
        .find(|corruption| corruption.file == file)
        .unwrap_or_else(|| panic!("{corruptions:?}"))
        .loss
}

#[test]
fn damage_behind_a_lost_log_file_has_the_largest_consequence_of_that_log() {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 8);
    run.round();
    run.checkpoint(1);
    for _ in 0..4 {
        run.round();
        run.round();
        run.rotate(0);
    }
    drop(run);
    let files = log_files(&disk);
    let sealed: Vec<&PathBuf> = files.iter().filter(|path| path.extension().unwrap() == "log").collect();
    let [.., lost, behind] = sealed[..] else { panic!("{files:?}") };
    disk.delete(lost).unwrap();
    disk.flip(behind, (4096 + 70) * 8).unwrap();
    let of_log = loss_of(&corruptions_in(&disk), behind);
    assert!(matches!(of_log, DataLoss::After(_)), "{of_log:?}");
    // What is lost with the checkpoint is another matter.
    let part = Path::new("db/checkpoint-1/part-0.ckpt");
    disk.truncate(part, disk.contents(part).unwrap().len() as u64 - 1).unwrap();
    let corruptions = corruptions_in(&disk);
    assert_eq!(corruptions[0].loss, DataLoss::Checkpoint, "{corruptions:?}");
    assert_eq!(loss_of(&corruptions, behind), of_log);
    // The manifest is older than one of the files: nobody knows which of the others count.
    let later = behind.with_file_name("log-9-0-1-e7.log");
    disk.create(&later, 8 << 10).unwrap().write_at(0, &[7; 4096]).unwrap();
    let corruptions = corruptions_in(&disk);
    assert_eq!(loss_of(&corruptions, &later), DataLoss::Everything);
    assert_eq!(loss_of(&corruptions, behind), DataLoss::Everything);
}

#[test]
fn a_lost_log_file_takes_nothing_of_the_openings_before_its_own_with_it() {
    let mut disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 1, 4);
    let mut stored = Vec::new();
    for opening in 0..4 {
        if opening > 0 {
            disk = Arc::new(disk.kill());
            run.reopen(&disk, 1, *stored.last().unwrap());
        }
        (0..3).for_each(|_| run.round());
        stored.push(run.log.durable_epoch);
    }
    let history = run.history.clone();
    drop(run);
    let files = log_files(&disk);
    assert_eq!(files.len(), 4);
    for (opening, file) in files.iter().enumerate() {
        let disk = Arc::new(disk.fork());
        disk.delete(file).unwrap();
        let kept = opening.checked_sub(1).map_or(Epoch::default(), |before| stored[before]);
        let error = recover(&disk, 1).unwrap_err();
        let corruption = error.corruption().unwrap();
        let DataLoss::After(named) = corruption.loss else { panic!("{error}") };
        assert!(corruption.kind == CorruptionKind::Missing && named >= kept, "{error}");
        let rows = rows_up_to(&history, kept);
        assert_eq!(rows_up_to(&history, named), rows, "{error}");
        let repaired = repair(&as_disk(&disk), Path::new(DIR), Some(named)).unwrap();
        assert_eq!(repaired.kept_to, named);
        assert_eq!(recover(&disk, 1).unwrap().0, rows, "without {}", file.display());
    }
}

#[test]
fn an_empty_log_file_that_is_lost_takes_nothing_of_a_salvaged_database_with_it() {
    let (disk, rows) = sixty_rows();
    salvage(&as_disk(&disk), Path::new(DIR), Path::new(TARGET)).unwrap();
    let log = Path::new(TARGET).join("log/log-1-0-1.open");
    for is_missing in [true, false] {
        let disk = Arc::new(disk.fork());
        match is_missing {
            true => disk.remove(&log).unwrap(),
            false => disk.flip(&log, 100).unwrap(),
        }
        let error = inspect(&as_disk(&disk), Path::new(TARGET)).unwrap_err();
        let DataLoss::After(kept) = error.corruption().unwrap().loss else { panic!("{error}") };
        repair(&as_disk(&disk), Path::new(TARGET), Some(kept)).unwrap();
        assert!(saved_rows(&disk) == rows);
    }
}
