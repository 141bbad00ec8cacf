//! What stands in the place of a file and is none, or is far too long for one, is named, and neither waited
//! for nor taken into memory.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use ensilo_disk::RealDisk;

use super::places::Directory;
use crate::recovery::{CorruptionKind, OpenError, verify};

fn verified(directory: &Directory) -> Result<Vec<(std::path::PathBuf, CorruptionKind)>, OpenError> {
    let mut corruptions = Vec::new();
    verify(&RealDisk, &directory.join("db"), &mut |corruption| {
        corruptions.push((corruption.file, corruption.kind))
    })
    .map(|_| corruptions)
}

/// Removes the file, has it replaced, and puts it back in the end.
fn replaced(path: &Path, replace: impl FnOnce(&Path), check: impl FnOnce()) {
    let aside = path.with_extension("aside");
    fs::rename(path, &aside).unwrap();
    replace(path);
    check();
    fs::rename(aside, path).unwrap();
}

#[test]
fn a_manifest_and_an_owner_that_are_far_too_long_are_damaged() {
    let directory = Directory::new("long");
    directory.open().unwrap();
    for name in ["db/MANIFEST", "db/log/OWNER"] {
        let path = directory.join(name);
        let lengthen = |long: &Path| {
            fs::copy(path.with_extension("aside"), long).unwrap();
            fs::OpenOptions::new().write(true).open(long).unwrap().set_len(100 << 30).unwrap();
        };
        replaced(&path, lengthen, || {
            let corruptions = verified(&directory).unwrap();
            assert!(
                matches!(&corruptions[..], [(file, CorruptionKind::Header(_))] if *file == path),
                "{corruptions:?}"
            );
            let error = directory.open().unwrap_err();
            assert_eq!(error.corruption().unwrap().file, path, "{error}");
        });
    }
    assert_eq!(verified(&directory).unwrap(), []);
}

#[test]
fn a_socket_in_the_place_of_a_file_is_named_and_refused() {
    let directory = Directory::new("socket");
    directory.open().unwrap();
    for name in ["db/MANIFEST", "db/log/OWNER", "db/LOCK", "db/log/LOCK"] {
        let path = directory.join(name);
        let check = || {
            let refused = directory.open().unwrap_err().to_string();
            assert!(
                refused.contains(&path.display().to_string()) && refused.contains("no file"),
                "{refused}"
            );
            match verified(&directory) {
                Ok(corruptions) => {
                    assert!(!name.ends_with("LOCK"), "{name}");
                    let [(file, kind)] = &corruptions[..] else { panic!("{corruptions:?}") };
                    assert!(*file == path && kind.is_unread(), "{corruptions:?}");
                }
                Err(error) => {
                    let is_named = matches!(&error, OpenError::Io { path: named, .. } if *named == path);
                    assert!(is_named && name.ends_with("LOCK"), "{error}");
                }
            }
        };
        replaced(&path, |path| drop(UnixListener::bind(path).unwrap()), check);
    }
    assert_eq!(verified(&directory).unwrap(), []);
}
