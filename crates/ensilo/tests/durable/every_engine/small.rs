//! What a database costs that has little in it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ensilo::disk::RealDisk;

use super::*;

/// Returns the bytes of all blocks that a directory takes with all that it holds.
fn allocated_bytes(path: &Path) -> u64 {
    let metadata = fs::symlink_metadata(path).unwrap();
    let inner = if metadata.is_dir() { fs::read_dir(path).unwrap().collect() } else { Vec::new() };
    metadata.blocks() * 512
        + inner.into_iter().map(|entry| allocated_bytes(&entry.unwrap().path())).sum::<u64>()
}

#[test]
fn an_empty_database_takes_at_most_four_megabytes_of_the_disk() {
    let place = real_place("small");
    let open = || Options::default().open_with(Arc::new(RealDisk), &place).unwrap();
    let db: Database = open();
    // The file that is written, and the next one.
    let log_files = || {
        let names = fs::read_dir(place.join("log")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("log-")).count()
    };
    until(|| log_files() == 2);
    let bytes = allocated_bytes(&place);
    assert!((1_000_000..4_000_000).contains(&bytes), "{bytes} bytes, of two log files at least");
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
    assert!(allocated_bytes(&place) < 4_000_000);
    db.close().unwrap();
    assert!(allocated_bytes(&place) < 4_000_000);
    for _ in 0..5 {
        open().close().unwrap();
    }
    assert!(allocated_bytes(&place) < 4_000_000, "what openings leave does not pile up");
    fs::remove_dir_all(&place).unwrap();
}
