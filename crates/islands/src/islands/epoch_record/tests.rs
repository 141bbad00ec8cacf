use super::*;

/// A directory of its own, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("ensilo-epoch-record-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        Place(place)
    }

    fn open(&self) -> io::Result<EpochRecord> {
        EpochRecord::open(&self.0, 3)
    }

    fn ends(&self) -> Vec<u64> {
        self.open().unwrap().last.ends
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let path = path_in(&self.0);
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_last_record_counts() {
    let place = Place::new("last");
    assert!(!EpochRecord::exists(&place.0));
    assert!(place.ends().is_empty());
    assert!(EpochRecord::exists(&place.0));
    for round in 1..8 {
        let ends = [round, 2 * round, 3 * round];
        place.open().unwrap().write(&ends).unwrap();
        assert_eq!(place.ends(), ends);
    }
    assert_eq!(place.open().unwrap().end_of(1), Some(14));
}

#[test]
fn a_record_that_is_torn_leaves_the_one_before() {
    let place = Place::new("torn");
    let write = |ends| place.open().unwrap().write(ends).unwrap();
    write(&[1, 2, 3]);
    // The first slot that is written to is the second one.
    let [even, odd] = [PAGE_BYTES, 2 * PAGE_BYTES];
    place.change(|bytes| bytes[odd + 9] ^= 1);
    assert!(place.ends().is_empty());
    write(&[4, 5, 6]);
    write(&[7, 8, 9]);
    for at in [even, even + 31, even + 35] {
        place.change(|bytes| bytes[at] ^= 4);
        assert_eq!(place.ends(), [4, 5, 6], "byte {at}");
        place.change(|bytes| bytes[at] ^= 4);
    }
    place.change(|bytes| bytes.truncate(even + 20));
    let refused = place.open().unwrap_err();
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
}

#[test]
fn a_header_that_was_never_stored_is_written_again() {
    for bytes in [0, 5, PAGE_BYTES] {
        let place = Place::new(&format!("new-{bytes}"));
        std::fs::create_dir_all(&place.0).unwrap();
        std::fs::write(path_in(&place.0), vec![0; bytes]).unwrap();
        place.open().unwrap().write(&[1, 2, 3]).unwrap();
        assert_eq!(place.ends(), [1, 2, 3]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let place = Place::new("refused");
    let open = place.open().unwrap();
    assert!(place.open().unwrap_err().to_string().contains("open already"));
    drop(open);
    let refused = EpochRecord::open(&place.0, 4).unwrap_err();
    assert!(refused.to_string().contains("of 3 instances"), "{refused}");
    place.change(|bytes| bytes[3] ^= 1);
    assert!(place.open().unwrap_err().to_string().contains("damaged"));
}
