//! What the system cannot look for is named by a verification, and ends none.

use std::path::{Path, PathBuf};

use super::bad_sectors::{BadDisk, Operation};
use super::taken_back::{open, sample};
use crate::recovery::{Corruption, CorruptionKind, OpenError, verify};

fn verified(operations: &[(PathBuf, Operation)]) -> Result<Vec<Corruption>, OpenError> {
    let disk = sample();
    // So that there is an OWNER in each directory.
    open(&disk, "/db", &["/db/log", "/out"]).unwrap();
    let mut corruptions = Vec::new();
    verify(&BadDisk::without(&disk, operations), Path::new("/db"), &mut |corruption| {
        corruptions.push(corruption)
    })
    .map(|_| corruptions)
}

#[test]
fn what_cannot_be_looked_for_or_opened_is_named() {
    use Operation::{LookFor, Open};
    for (path, operation, doing) in [
        ("/db/MANIFEST", LookFor, "look for"),
        ("/db/MANIFEST", Open, "open"),
        ("/db/BACKUP.unfinished", LookFor, "look for"),
        ("/db/log", LookFor, "look for"),
        ("/out", LookFor, "look for"),
        ("/db/log/OWNER", LookFor, "look for"),
        ("/out/OWNER", Open, "open"),
    ] {
        let corruptions = verified(&[(path.into(), operation)]).unwrap();
        let named: Vec<_> =
            corruptions.iter().filter(|corruption| corruption.file == Path::new(path)).collect();
        let [corruption] = named[..] else { panic!("{path}: {corruptions:?}") };
        assert!(
            matches!(corruption.kind, CorruptionKind::Unopened { doing: said, .. } if said == doing),
            "{corruption}"
        );
        assert!(corruption.to_string().contains("try again"), "{corruption}");
        assert!(!corruption.to_string().contains("ensilo verify"), "{corruption}");
    }
}

#[test]
fn a_manifest_and_a_copy_that_cannot_be_read_are_both_named() {
    let both = [("/db/MANIFEST", Operation::LookFor), ("/db/MANIFEST.copy", Operation::Open)];
    let both = both.map(|(path, operation)| (path.into(), operation));
    let corruptions = verified(&both).unwrap();
    let named: Vec<_> = corruptions.iter().map(|corruption| corruption.file.clone()).collect();
    assert_eq!(named, both.map(|(path, _)| path), "{corruptions:?}");
    assert!(
        corruptions.iter().all(|corruption| matches!(corruption.kind, CorruptionKind::Unopened { .. })),
        "{corruptions:?}"
    );
}

#[test]
fn a_lock_file_that_cannot_be_opened_keeps_nothing_from_being_verified() {
    assert_eq!(
        verified(&[("/db/LOCK".into(), Operation::Lock), ("/out/LOCK".into(), Operation::Lock)]).unwrap(),
        []
    );
}

#[test]
fn an_error_of_a_verification_does_not_advise_one() {
    let database = ["/db", "/db/MANIFEST"].map(|path| (path.into(), Operation::LookFor));
    let error = verified(&database).unwrap_err();
    assert!(error.to_string().contains("cannot look for /db"), "{error}");
    assert!(!error.to_string().contains("ensilo verify"), "{error}");
}
