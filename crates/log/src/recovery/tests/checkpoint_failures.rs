//! A checkpoint that fails at any step: what any manifest needs that a crash may leave stays there.

use std::path::Path;
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::history::Run;
use super::writer::{DIR, recover, rows_up_to};
use crate::format::Manifest;
use crate::recovery::OpenError;
use crate::recovery::named_files::NamedFiles;

/// Returns a database with a checkpoint, and log that the next one makes superfluous.
pub(super) fn before_second_checkpoint() -> (Arc<SimulatedDisk>, Run) {
    let disk = Arc::new(SimulatedDisk::new());
    let mut run = Run::new(&disk, 2, 11);
    run.round();
    run.checkpoint(1);
    for _ in 0..2 {
        run.rotate(0);
        run.rotate(1);
        run.round();
    }
    (disk, run)
}

/// Fails unless all that was stored is found after the end of the process, and after power failures.
fn check_survivors(disk: &SimulatedDisk, run: &Run, what: &str) {
    let stored = run.log.durable_epoch;
    let expected = (rows_up_to(&run.history, stored), Some(stored));
    let crashed = (0..12).map(|tear| disk.fork().crash(tear));
    for (tear, disk) in crashed.chain([disk.fork().kill()]).enumerate() {
        let found =
            recover(&Arc::new(disk), 1).unwrap_or_else(|error| panic!("{what}, tear {tear}: {error}"));
        assert_eq!(found, expected, "{what}, tear {tear}");
    }
}

#[test]
fn a_checkpoint_that_fails_anywhere_loses_nothing() {
    let counts = {
        let (disk, mut run) = before_second_checkpoint();
        disk.set_faults(Faults::default());
        run.checkpoint(2);
        disk.counts()
    };
    let at = |seed, counts: u64, fault: fn(Faults, u64) -> Faults| {
        (1..=counts).map(move |at| fault(Faults { seed, ..Faults::default() }, at))
    };
    let faults = at(1, counts.writes, |faults, at| Faults { write_error_at: Some(at), ..faults })
        .chain(at(2, counts.syncs, |faults, at| Faults { sync_error_at: Some(at), ..faults }))
        .chain(at(3, counts.reads, |faults, at| Faults { read_error_at: Some(at), ..faults }))
        .chain(at(4, counts.name_changes, |faults, at| Faults { name_error_at: Some(at), ..faults }));
    let mut in_doubt = 0;
    for faults in faults {
        let what = format!("{faults:?}");
        let (disk, mut run) = before_second_checkpoint();
        let (begin, rows) = run.begin_checkpoint();
        let durable_epoch = run.log.durable_epoch;
        disk.set_faults(faults);
        let failed = run.log.try_checkpoint(begin, &rows, 2).is_err();
        disk.set_faults(Faults::default());
        // Nothing comes to heal it before the crash.
        check_survivors(&disk, &run, &what);
        in_doubt += u64::from(failed && run.log.files.manifest().checkpoint.as_ref().unwrap().id == 2);
        assert_eq!(run.log.durable_epoch, durable_epoch);
        run.round();
        check_survivors(&disk, &run, &what);
        // The next one clears up.
        run.checkpoint(1);
        let names = disk.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name);
        let checkpoints: Vec<String> = names.filter(|name| name.starts_with("checkpoint-")).collect();
        assert_eq!(checkpoints, ["checkpoint-3"], "{what}");
        check_survivors(&disk, &run, &what);
    }
    assert!(in_doubt > 0, "no manifest was put in place by a checkpoint that failed");
}

#[test]
fn a_manifest_that_somebody_else_put_there_is_neither_replaced_nor_believed() {
    let (disk, mut run) = before_second_checkpoint();
    let manifest = Path::new(DIR).join("MANIFEST");
    let other = Manifest { next_checkpoint: 77, ..run.log.files.manifest().clone() };
    NamedFiles { disk: &*disk, dir: Path::new(DIR), manifest: &other }.install_manifest().unwrap();
    let before: Vec<_> = disk.files().into_iter().filter(|(path, _)| !path.ends_with("LOCK")).collect();
    let (begin, rows) = run.begin_checkpoint();
    let after_rounds = disk.files();
    let refused = run.log.try_checkpoint(begin, &rows, 1).unwrap_err();
    assert!(matches!(&refused, OpenError::TakenOver { file } if *file == manifest), "{refused}");
    assert_eq!(disk.contents(&manifest).unwrap(), other.encode());
    assert_eq!(disk.files(), after_rounds);
    assert!(before.iter().all(|(path, _)| disk.exists(path).unwrap()));
}
