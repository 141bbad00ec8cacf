//! A database whose files are compressed is opened by a program with the feature `lz4`, and refused by one without.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

/// Copies the fixture `closed`, all of whose files are compressed, into a directory of this name. Its format is described where it is made, in
/// `verification/crash`: files without the zeros that they end with, and their lengths.
fn compressed_database(name: &str) -> PathBuf {
    let stored =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verification/crash/fixtures/format-2/closed");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    for line in fs::read_to_string(stored.join("LENGTHS")).unwrap().lines() {
        let (len, inside) = line.split_once(' ').unwrap();
        let path = directory.join(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(stored.join(inside), &path).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(len.parse().unwrap()).unwrap();
    }
    directory
}

#[cfg(feature = "lz4")]
#[test]
fn compressed_files_are_read() {
    let directory = compressed_database("compressed-read");
    let db = ensilo::Database::open(&directory).unwrap();
    assert_eq!(db.statistics().unwrap().table("item").unwrap().records, 75);
    db.close().unwrap();
    fs::remove_dir_all(&directory).unwrap();
}

#[cfg(not(feature = "lz4"))]
mod without {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use ensilo::disk::{Disk, RealDisk};
    use ensilo::{Database, Error, OpenError};
    use ensilo_epoch::Epoch;

    use super::*;

    /// All files but the lock, with what they hold.
    fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                all.extend(contents(&path));
            } else if !path.ends_with("LOCK") {
                all.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
        all
    }

    #[track_caller]
    fn assert_names_the_feature(error: &OpenError) {
        assert!(matches!(error, OpenError::CompressionUnsupported { .. }), "{error:?}");
        assert!(error.to_string().contains("feature lz4 of the crate ensilo"), "{error}");
    }

    #[test]
    fn a_compressed_database_is_refused_and_left_as_it_is() {
        let directory = compressed_database("compressed-refused");
        let before = contents(&directory);
        for options in [Database::options(), Database::options().read_only(true)] {
            match options.open(&directory) {
                Err(Error::Open(error)) => assert_names_the_feature(&error),
                other => panic!("{other:?}"),
            }
            assert!(contents(&directory) == before, "the files were changed");
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn no_tool_takes_compressed_files_for_damaged_ones() {
        let directory = compressed_database("compressed-tools");
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let refused = ensilo_log::verify(&*disk, &directory, &mut |damage| panic!("{damage}")).unwrap_err();
        assert_names_the_feature(&refused);
        assert_names_the_feature(&ensilo_log::repair(&disk, &directory, Some(Epoch::new(1))).unwrap_err());
        let rescued = directory.with_extension("rescued");
        let refused = ensilo_log::salvage(&disk, &directory, &rescued).unwrap_err();
        assert!(refused.to_string().contains("feature lz4 of ensilo"), "{refused}");
        assert!(!rescued.exists());
        fs::remove_dir_all(&directory).unwrap();
    }
}
