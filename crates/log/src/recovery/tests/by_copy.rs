//! What a look at a database with a damaged manifest finds by the copy of the manifest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_test_disk::SimulatedDisk;

use super::history::Run;
use super::writer::DIR;
use crate::format::HeaderError;
use crate::recovery::{Corruption, CorruptionKind, DataLoss, OpenError, Verified, verify};

/// Returns a database at rest with a checkpoint and log behind it.
fn sample() -> SimulatedDisk {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 31);
    run.round();
    run.checkpoint(1);
    for _ in 0..3 {
        run.round();
        run.rotate(0);
    }
    run.log.close();
    drop(run);
    disk.kill()
}

fn in_db(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn verified(disk: &SimulatedDisk) -> (Verified, Vec<Corruption>) {
    let mut corruptions = Vec::new();
    let verified = verify(disk, Path::new(DIR), &mut |corruption| corruptions.push(corruption)).unwrap();
    assert_eq!(verified.corruptions, corruptions.len() as u64);
    (verified, corruptions)
}

/// The manifest is damaged, or missing.
const LOSSES: [fn(&SimulatedDisk, &str); 2] =
    [|disk, name| disk.flip(&in_db(name), 300).unwrap(), |disk, name| disk.remove(&in_db(name)).unwrap()];

#[test]
fn verify_goes_on_by_the_copy_of_a_damaged_manifest() {
    let sound = sample();
    let (whole, none) = verified(&sound);
    assert_eq!((none, whole.is_by_copy), (vec![], false));
    for loss in LOSSES {
        let disk = sound.fork();
        loss(&disk, "MANIFEST");
        let (found, corruptions) = verified(&disk);
        let [of_manifest] = &corruptions[..] else { panic!("{corruptions:?}") };
        assert_eq!((&of_manifest.file, of_manifest.loss), (&in_db("MANIFEST"), DataLoss::Manifest));
        let expected =
            Verified { corruptions: 1, durable_epoch: None, void: None, is_by_copy: true, ..whole };
        assert_eq!(found, expected);
        // What else is wrong follows.
        let sealed = |path: &PathBuf| path.to_str().unwrap().contains("/log-1-0-2-e");
        let log = disk.files().into_iter().map(|(path, _)| path).find(sealed).unwrap();
        disk.flip(&log, (4096 + 70) * 8).unwrap();
        disk.flip(&in_db("checkpoint-1/part-0.ckpt"), (4096 + 70) * 8).unwrap();
        let (found, corruptions) = verified(&disk);
        assert_eq!(corruptions[0], *of_manifest);
        let others: Vec<&PathBuf> = corruptions[1..].iter().map(|corruption| &corruption.file).collect();
        assert_eq!(others, [&log, &in_db("checkpoint-1/part-0.ckpt")]);
        assert!(found.is_by_copy && found.files < whole.files);
    }
}

#[test]
fn verify_reports_a_manifest_and_a_copy_that_are_both_damaged() {
    for (of_manifest, of_copy) in LOSSES.iter().flat_map(|one| LOSSES.iter().map(move |other| (one, other))) {
        let disk = sample();
        of_manifest(&disk, "MANIFEST");
        of_copy(&disk, "MANIFEST.copy");
        let (found, corruptions) = verified(&disk);
        let files: Vec<&PathBuf> = corruptions.iter().map(|corruption| &corruption.file).collect();
        assert_eq!(files, [&in_db("MANIFEST"), &in_db("MANIFEST.copy")]);
        assert!(
            corruptions.iter().all(|corruption| corruption.loss == DataLoss::Everything),
            "{corruptions:?}"
        );
        let is_expected = |corruption: &Corruption| match corruption.kind {
            CorruptionKind::Missing => !disk.exists(&corruption.file).unwrap(),
            CorruptionKind::Header(HeaderError::Checksum) => true,
            _ => false,
        };
        assert!(corruptions.iter().all(is_expected), "{corruptions:?}");
        assert_eq!((found.is_by_copy, found.files), (false, 0));
    }
}

#[test]
fn what_is_no_database_is_none_without_a_manifest() {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(Path::new(DIR)).unwrap();
    let refused = || verify(&disk, Path::new(DIR), &mut |corruption| panic!("{corruption}")).unwrap_err();
    assert!(matches!(refused(), OpenError::NotADatabase { holds: None, .. }));
    disk.create(&in_db("text"), 0).unwrap();
    assert!(matches!(refused(), OpenError::NotADatabase { holds: None, .. }));
}
