//! Statistics that another process sees while the database is open.
#![cfg(feature = "live-statistics")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use ensilo::generic::Database;
use ensilo::live_statistics::{LiveError, read};
use ensilo::{Engine, Error, Options, Row};
use serde_json::Value;

#[derive(Debug, Row)]
#[row(table = "city")]
struct City {
    #[row(key)]
    id: u32,
    people: u64,
}

/// A directory that is removed with the value.
struct Place(PathBuf);

impl Place {
    fn new<E: Engine>(name: &str) -> Place {
        let of_engine: String =
            std::any::type_name::<E>().chars().filter(|letter| letter.is_alphanumeric()).collect();
        let name = format!("ensilo-live-{name}-{of_engine}-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&place);
        fs::create_dir(&place).unwrap();
        Place(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open<E: Engine>(directory: &Path) -> ensilo::Result<Database<E>> {
    Options::default().live_statistics(true).open_as(directory)
}

fn asked(directory: &Path) -> Value {
    serde_json::from_str(&read(directory).unwrap()).unwrap()
}

fn nobody_answers(directory: &Path) {
    let read = read(directory);
    assert!(matches!(read, Err(LiveError::NobodyAnswers { .. })), "{read:?}");
}

fn what_is_counted_is_seen<E: Engine>() {
    let place = Place::new::<E>("seen");
    let directory = place.0.join("db");
    let db: Database<E> = open(&directory).unwrap();
    let table = db.create_table::<City>().unwrap();
    let commits = |answer: &Value| answer["statistics"]["commits"].as_u64().unwrap();
    let before = asked(&directory);
    for id in 0..10 {
        db.transact(|tx| table.insert(tx, &City { id, people: 1 }).map(drop)).unwrap();
    }
    let after = asked(&directory);
    assert_eq!(
        (after["format"].as_u64(), after["process"].as_u64()),
        (Some(1), Some(std::process::id().into()))
    );
    assert!(commits(&after) >= commits(&before) + 10, "{before} {after}");
    assert_eq!(after["statistics"]["tables"][0]["records"], 10);
    assert_eq!((after["opened"].is_number(), &after["opened"]), (true, &before["opened"]));
    assert!(after["open_seconds"].as_f64() > before["open_seconds"].as_f64());
    let socket = directory.join("STATISTICS");
    assert_eq!(fs::symlink_metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    db.close().unwrap();
    assert!(!socket.exists());
    nobody_answers(&directory);
    drop(Options::default().open_as::<E>(&directory).unwrap());
    nobody_answers(&directory);
}

fn readers_that_hang_hold_up_nobody<E: Engine>() {
    let place = Place::new::<E>("hang");
    let directory = place.0.join("db");
    let db: Database<E> = open(&directory).unwrap();
    let hanging: Vec<_> =
        (0..5).map(|_| UnixStream::connect(directory.join("STATISTICS")).unwrap()).collect();
    assert_eq!(asked(&directory)["process"], std::process::id());
    let table = db.create_table::<City>().unwrap();
    db.transact(|tx| table.insert(tx, &City { id: 1, people: 1 }).map(drop)).unwrap();
    db.close().unwrap();
    nobody_answers(&directory);
    drop(hanging);
}

fn sockets_that_are_left_are_replaced<E: Engine>() {
    let place = Place::new::<E>("left");
    // Longer than the path of a socket may be.
    let directory = place.0.join("d".repeat(150));
    drop(Options::default().open_as::<E>(&directory).unwrap());
    // As a killed process leaves it: the socket is there, and nobody listens.
    let left = place.0.join("left");
    drop(UnixListener::bind(&left).unwrap());
    fs::rename(&left, directory.join("STATISTICS")).unwrap();
    nobody_answers(&directory);
    let db: Database<E> = open(&directory).unwrap();
    assert_eq!(asked(&directory)["process"], std::process::id());
    drop(db);
    nobody_answers(&directory);
    // What is no socket is not removed for one.
    fs::write(directory.join("STATISTICS"), "mine").unwrap();
    let manifest = || fs::read(directory.join("MANIFEST")).unwrap();
    let before = manifest();
    let refused = open::<E>(&directory);
    assert!(matches!(&refused, Err(Error::NoStatisticsSocket(_))), "{refused:?}");
    assert_eq!(manifest(), before, "nothing was begun");
    assert_eq!(fs::read(directory.join("STATISTICS")).unwrap(), b"mine");
    drop(Options::default().open_as::<E>(&directory).unwrap());
}

fn there_is_no_socket_in_memory_or_for_reading<E: Engine>() {
    let place = Place::new::<E>("none");
    let options = || Options::default().live_statistics(true);
    drop(Options::default().open_as::<E>(&place.0).unwrap());
    let opened = [options().in_memory_with::<E>(), options().read_only(true).open_as(&place.0)];
    for refused in opened {
        assert!(matches!(refused, Err(Error::InvalidOption(_))), "{refused:?}");
    }
}

/// The tests over an engine.
macro_rules! tests_over {
    ($($module:ident: $engine:ty),+) => {
        $(mod $module {
            tests_over!(@$engine: what_is_counted_is_seen, readers_that_hang_hold_up_nobody,
                sockets_that_are_left_are_replaced, there_is_no_socket_in_memory_or_for_reading);
        })+
    };
    (@$engine:ty: $($test:ident),+) => {
        $(#[test]
        fn $test() {
            super::$test::<$engine>();
        })+
    };
}

tests_over!(silo: ensilo::Silo, ermia: ensilo::ermia::Ermia, two_phase_locking: ensilo::two_phase_locking::TwoPhaseLocking);
