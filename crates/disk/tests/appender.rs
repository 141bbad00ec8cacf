//! An [`Appender`] against a file that is written byte by byte.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use ensilo_disk::{Appender, Disk, PAGE_BYTES};
use ensilo_test_disk::SimulatedDisk;
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_file_has_what_was_appended(
        pieces in proptest::collection::vec((0usize..20_000, any::<bool>()), 0..40),
        large in 0usize..3_000_000,
    ) {
        let disk = SimulatedDisk::new();
        let path = Path::new("/appended");
        let mut appender = Appender::new(disk.create(path, PAGE_BYTES as u64).unwrap(), PAGE_BYTES as u64);
        let mut expected = vec![0; PAGE_BYTES];
        for (number, (len, flush)) in (1u8..).zip(pieces.into_iter().chain([(large, true)])) {
            appender.append(&vec![number; len]).unwrap();
            expected.extend(vec![number; len]);
            prop_assert_eq!(appender.offset(), expected.len() as u64);
            if flush {
                appender.flush().unwrap();
                let found = disk.contents(path).unwrap();
                prop_assert!(found.starts_with(&expected));
            }
        }
        appender.trim().unwrap();
        prop_assert!(disk.contents(path).unwrap() == expected);
    }
}
