//! Log files of an opening that the manifest does not know, of which not all can be read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::bad_sectors::{BadDisk, Operation};
use super::taken_back::{flip, open, put, same, sample, whole};
use super::writer::FILE_BYTES;
use crate::format::OpeningId;
use crate::recovery::{
    Corruption, CorruptionKind, DataLoss, GenerationOptions, NewGeneration, inspect, manifest_of, repair,
    verify,
};

const DB: &str = "/db";
const LATER: &str = "/db/log/log-2-0-1.open";

/// Returns the log files that an opening leaves which is interrupted before its manifest is in place.
fn interrupted() -> Arc<SimulatedDisk> {
    let disk = sample();
    let manifest = manifest_of(&*disk, Path::new(DB)).unwrap();
    NewGeneration::create(
        &*disk,
        manifest.database,
        OpeningId::random(),
        manifest.generation + 1,
        Epoch::new(manifest.first_epoch.get() + 1000),
        &[PathBuf::from("/db/log"), PathBuf::from("/out")],
        FILE_BYTES,
    )
    .unwrap();
    disk
}

fn corruptions(disk: &Arc<dyn Disk>) -> Vec<Corruption> {
    let mut corruptions = Vec::new();
    verify(&**disk, Path::new(DB), &mut |corruption| corruptions.push(corruption)).unwrap();
    corruptions
}

/// Disks on which the log file of the later opening cannot be read: its header, what is behind, or all of it.
fn bad_disks(disk: &Arc<SimulatedDisk>) -> Vec<Arc<dyn Disk>> {
    let with_sector =
        |sector| Arc::new(BadDisk::with_bad_sector(disk, Path::new(LATER), sector, 0)) as Arc<dyn Disk>;
    let unopened = BadDisk::without(disk, &[(LATER.into(), Operation::Open)]);
    vec![with_sector(0), with_sector(1), Arc::new(unopened)]
}

#[test]
fn an_empty_one_is_moved_out_and_nothing_is_given_up() {
    for case in 0..3 {
        let disk = interrupted();
        let bad = &bad_disks(&disk)[case];
        let before = whole(&disk);
        let found = corruptions(bad);
        let reported = found[0].to_string();
        assert_eq!((found.len(), found[0].loss), (1, DataLoss::Leftover), "{case}: {reported}");
        assert!(
            reported.contains(LATER) && reported.ends_with("otherwise move the file out of the directory"),
            "{reported}"
        );
        for refused in [
            inspect(bad, Path::new(DB)).map(drop).unwrap_err(),
            repair(bad, Path::new(DB), None).unwrap_err(),
            repair(bad, Path::new(DB), Some(Epoch::new(1))).unwrap_err(),
        ] {
            assert_eq!(refused.corruption(), Some(&found[0]), "{case}: {refused}");
        }
        same(&before, &whole(&disk), &reported);
        disk.remove(Path::new(LATER)).unwrap();
        assert_eq!(corruptions(bad), []);
        open(&disk, DB, &["/db/log", "/out"]).unwrap();
    }
}

#[test]
fn beside_other_damage_it_is_told_first_and_the_other_remedy_works_then() {
    for case in 0..3 {
        let disk = interrupted();
        flip(&disk, "/db/log/log-1-0-1.open", 4096 + 70);
        let bad = &bad_disks(&disk)[case];
        let refused = inspect(bad, Path::new(DB)).map(drop).unwrap_err();
        assert_eq!(refused.corruption().unwrap().loss, DataLoss::Leftover, "{case}: {refused}");
        assert!(
            corruptions(bad).iter().any(|corruption| matches!(corruption.loss, DataLoss::After(_))),
            "{case}"
        );
        disk.remove(Path::new(LATER)).unwrap();
        let refused = inspect(bad, Path::new(DB)).map(drop).unwrap_err();
        let DataLoss::After(kept) = refused.corruption().unwrap().loss else { panic!("{refused}") };
        repair(bad, Path::new(DB), Some(kept)).unwrap();
        open(&disk, DB, &["/db/log", "/out"]).unwrap();
    }
}

#[test]
fn one_that_was_written_shows_that_an_older_manifest_was_put_back() {
    let disk = sample();
    let older = disk.contents(Path::new("/db/MANIFEST")).unwrap();
    open(&disk, DB, &["/db/log", "/out"]).unwrap();
    disk.remove(Path::new("/db/MANIFEST")).unwrap();
    put(&disk, "/db/MANIFEST", &older);
    for owner in ["/db/log/OWNER", "/out/OWNER"] {
        disk.remove(Path::new(owner)).unwrap();
    }
    // Without its header no block of it can be told from anything else.
    flip(&disk, LATER, 4096 + 100);
    let bad = &bad_disks(&disk)[0];
    let before = whole(&disk);
    let found = corruptions(bad);
    assert!(
        found.iter().any(|corruption| corruption.kind == CorruptionKind::LaterGeneration(2)),
        "{found:?}"
    );
    let mut of_later = found.iter().filter(|corruption| corruption.file == Path::new(LATER));
    assert!(of_later.all(|corruption| corruption.loss == DataLoss::Everything), "{found:?}");
    for epoch in [None, Some(Epoch::new(1))] {
        let refused = repair(bad, Path::new(DB), epoch).unwrap_err();
        assert_eq!(refused.corruption().unwrap().loss, DataLoss::Everything, "{refused}");
    }
    same(&before, &whole(&disk), "a manifest that was put back");
}

#[test]
fn one_in_a_directory_that_no_manifest_names_is_refused_by_its_name_and_what_helps() {
    let file = "/new/log-1-1-1.open";
    let disk = sample();
    put(&disk, file, &disk.contents(Path::new("/out/log-1-1-1.open")).unwrap());
    let sector = |sector| BadDisk::with_bad_sector(&disk, Path::new(file), sector, 0);
    let without = |path: &str, operation| BadDisk::without(&disk, &[(path.into(), operation)]);
    let move_it = "; otherwise move it out of the directory, or name another directory for the log";
    let name_other = "; otherwise name another directory for the log";
    let cases = [
        (sector(0), file, move_it),
        (sector(1), file, move_it),
        (without(file, Operation::Open), file, move_it),
        (without("/new", Operation::List), "/new", name_other),
        (without("/new/OWNER", Operation::LookFor), "/new/OWNER", name_other),
    ];
    let begin = |disk: Arc<dyn Disk>| {
        let found = inspect(&disk, Path::new(DB)).unwrap();
        let first_epoch = Epoch::new(found.largest_epoch().get() + 1);
        let directories = vec![PathBuf::from("/new")];
        found
            .next_generation(&GenerationOptions { directories, file_bytes: FILE_BYTES, first_epoch })
            .map(drop)
    };
    for (bad, place, remedy) in cases {
        let before = whole(&disk);
        let refused = begin(Arc::new(bad)).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{place}: the system cannot ")), "{refused}");
        assert!(refused.contains("; try again, what failed once may be read then;"), "{refused}");
        assert!(refused.ends_with(remedy), "{refused}");
        same(&before, &whole(&disk), &refused);
    }
    disk.remove(Path::new(file)).unwrap();
    begin(disk).unwrap();
}
