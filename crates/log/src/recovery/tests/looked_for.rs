//! What the system cannot look for is named by a verification, and ends none.

use std::path::{Path, PathBuf};

use super::bad_sectors::{BadDisk, Operation};
use super::taken_back::{open, sample};
use crate::recovery::{Damage, Finding, OpenError, verify};

fn verified(operations: &[(PathBuf, Operation)]) -> Result<Vec<Damage>, OpenError> {
    let disk = sample();
    // So that there is an OWNER in each directory.
    open(&disk, "/db", &["/db/log", "/out"]).unwrap();
    let mut damages = Vec::new();
    verify(&BadDisk::without(&disk, operations), Path::new("/db"), &mut |damage| damages.push(damage))
        .map(|_| damages)
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
        let damages = verified(&[(path.into(), operation)]).unwrap();
        let named: Vec<_> = damages.iter().filter(|damage| damage.file == Path::new(path)).collect();
        let [damage] = named[..] else { panic!("{path}: {damages:?}") };
        assert!(matches!(damage.finding, Finding::Unopened { doing: said, .. } if said == doing), "{damage}");
        assert!(damage.to_string().contains("try again"), "{damage}");
        assert!(!damage.to_string().contains("ensilo verify"), "{damage}");
    }
}

#[test]
fn a_manifest_and_a_copy_that_cannot_be_read_are_both_named() {
    let both = [("/db/MANIFEST", Operation::LookFor), ("/db/MANIFEST.copy", Operation::Open)];
    let both = both.map(|(path, operation)| (path.into(), operation));
    let damages = verified(&both).unwrap();
    let named: Vec<_> = damages.iter().map(|damage| damage.file.clone()).collect();
    assert_eq!(named, both.map(|(path, _)| path), "{damages:?}");
    assert!(damages.iter().all(|damage| matches!(damage.finding, Finding::Unopened { .. })), "{damages:?}");
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
