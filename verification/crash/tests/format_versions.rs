//! Databases of every format version, from the repository, are opened, and hold what they held.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo::{Database, Silo};
use ensilo_crash::fixture::rows::{Contents, Event, Item, LONG_NOTE_BYTES, event, item};
use ensilo_crash::fixture::stored::{Features, directory, features, load};
use ensilo_crash::fixture::{Kind, make};
use ensilo_disk::{Disk, RealDisk};
use ensilo_log::{
    CorruptionKind, Dumped, FORMAT_VERSION, FileHeader, FileRole, OpeningId, dump, manifest_of, verify,
};
use ensilo_test_disk::SimulatedDisk;

const DATABASE: &str = make::DIRECTORY;

/// All fixtures, each on a disk of its own.
fn fixtures() -> impl Iterator<Item = (Kind, SimulatedDisk)> {
    fixtures_of(1..=FORMAT_VERSION)
}

fn fixtures_of(formats: RangeInclusive<u32>) -> impl Iterator<Item = (Kind, SimulatedDisk)> {
    let all = formats.flat_map(|format| Kind::ALL.map(|kind| (format, kind)));
    all.map(|(format, kind)| {
        let disk = SimulatedDisk::new();
        load(&directory(format, kind), &disk, Path::new(DATABASE)).unwrap();
        (kind, disk)
    })
}

fn open(kind: Kind, disk: Arc<dyn Disk>, path: &Path) -> Database {
    kind.options(path).open_with::<Silo>(disk, path).unwrap()
}

/// The database is verified, opened, compared, goes on, and is opened again.
fn check(kind: Kind, disk: &Arc<dyn Disk>, path: &Path) {
    let verified = ensilo_log::verify(&**disk, path, &mut |damage| panic!("{kind:?}: {damage}")).unwrap();
    assert!(verified.durable_epoch.is_some() && verified.replayed.records > 0);
    let mut contents = Contents::of(kind);
    let db = open(kind, Arc::clone(disk), path);
    contents.check(&db).unwrap();
    let (items, events) = (db.open_table::<Item>().unwrap(), db.open_table::<Event>().unwrap());
    db.transact(|tx| items.insert(tx, &item(2_000))).unwrap();
    db.transact(|tx| events.insert(tx, &event(2_000))).unwrap();
    contents.items.push(item(2_000));
    contents.events.push(event(2_000));
    contents.check(&db).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    contents.check(&open(kind, Arc::clone(disk), path)).unwrap();
}

#[test]
fn databases_of_every_version_are_opened_and_go_on() {
    for (kind, disk) in fixtures() {
        check(kind, &(Arc::new(disk) as Arc<dyn Disk>), Path::new(DATABASE));
    }
}

#[test]
fn so_they_are_on_the_real_disk() {
    for kind in Kind::ALL {
        let name = format!("ensilo-format-{}-{}", kind.name(), std::process::id());
        let path = std::env::temp_dir().join(name);
        load(&directory(FORMAT_VERSION, kind), &RealDisk, &path).unwrap();
        check(kind, &(Arc::new(RealDisk) as Arc<dyn Disk>), &path);
        std::fs::remove_dir_all(&path).unwrap();
    }
}

/// The headers of all log files that have one.
fn log_headers(disk: &SimulatedDisk) -> Vec<(PathBuf, FileHeader)> {
    let mut headers = Vec::new();
    for (path, _) in disk.files() {
        let path = Path::new("/").join(path);
        // Whatever else there is has no such header.
        let _ = dump(disk, &path, &mut |dumped| match dumped {
            Dumped::Header(header) if matches!(header.identity.file, FileRole::Log { .. }) => {
                headers.push((path.clone(), *header));
            }
            _ => {}
        });
    }
    headers
}

/// The last version whose log files do not name their opening.
const WITHOUT_OPENINGS: u32 = 2;

#[test]
fn new_log_files_of_a_database_of_an_earlier_version_name_their_opening() {
    for (kind, disk) in fixtures_of(1..=WITHOUT_OPENINGS) {
        let old = manifest_of(&disk, Path::new(DATABASE)).unwrap();
        let disk = Arc::new(disk);
        open(kind, Arc::clone(&disk) as _, Path::new(DATABASE)).close().unwrap();
        let new = manifest_of(&*disk, Path::new(DATABASE)).unwrap();
        assert!(new.earlier.iter().all(|file| file.opening == OpeningId::default()));
        let (mut with, mut without) = (0, 0);
        for (path, header) in log_headers(&disk) {
            let FileRole::Log { generation, .. } = header.identity.file else { continue };
            let is_old = generation <= old.generation;
            let expected = if is_old { OpeningId::default() } else { new.opening };
            assert_eq!(header.identity.opening, expected, "{kind:?}, {}", path.display());
            *(if is_old { &mut without } else { &mut with }) += 1;
        }
        assert!(with > 0 && without > 0, "{kind:?}: {with} and {without}");
    }
}

#[test]
fn a_log_file_that_names_an_opening_is_none_of_a_generation_of_an_earlier_version() {
    for (kind, disk) in fixtures_of(1..=WITHOUT_OPENINGS) {
        let last = manifest_of(&disk, Path::new(DATABASE)).unwrap().generation;
        for (path, mut header) in log_headers(&disk) {
            let FileRole::Log { generation, .. } = header.identity.file else { continue };
            let disk = disk.fork();
            header.identity.opening = OpeningId::random();
            disk.overwrite(&path, 0, &header.encode()).unwrap();
            let mut found = Vec::new();
            verify(&disk, Path::new(DATABASE), &mut |damage| found.push((damage.file, damage.kind))).unwrap();
            assert_eq!(found, [(path, CorruptionKind::OtherCopy)], "{kind:?}, {generation} of {last}");
        }
    }
}

#[test]
fn what_they_hold_is_what_they_are_there_for() {
    for (kind, disk) in fixtures() {
        let found = features(&disk, Path::new(DATABASE)).unwrap();
        let Features { loggers, records, puts, patches, deletes, .. } = found;
        assert!(records > 90 && puts > 20 && patches > 10 && deletes >= 5, "{kind:?}: {found:?}");
        let is_as_told = match kind {
            Kind::Closed => {
                loggers == 1
                    && found.compressed_blocks > 3
                    && found.reservations == 1
                    && (found.seals, found.ends_in_order) == (1, 1)
                    && found.torn == 0
            }
            Kind::Crashed => {
                loggers == 2 && found.earlier_files >= 2 && found.ends_in_order == 0 && found.torn > 0
            }
        };
        assert!(is_as_told, "{kind:?}: {found:?}");
    }
}

/// The values behind the rules, written down: who changes a rule changes what the fixtures are compared with.
#[test]
fn the_rules_have_not_changed() {
    let closed = Contents::of(Kind::Closed);
    assert_eq!((closed.everything.len(), closed.items.len(), closed.events.len()), (27, 75, 9));
    let crashed = Contents::of(Kind::Crashed);
    assert_eq!((crashed.everything.len(), crashed.items.len(), crashed.events.len()), (35, 81, 7));
    let found = closed.items.iter().find(|item| item.id == 3).unwrap();
    let note = "item 3, xxx".to_owned();
    let expected = Item { id: 3, group: 3, amount: -5_997, stock: (3 << 40) + 4, note };
    assert_eq!(*found, expected);
    assert_eq!(closed.items.last().unwrap().note.len(), LONG_NOTE_BYTES);
    let (found, expected) = (crashed.items.iter().find(|item| item.id == 30).unwrap(), item(30));
    assert_eq!((found.amount, found.stock), (expected.amount + 67, expected.stock + 48));
    let row = closed.everything.iter().find(|row| row.number == 17).unwrap();
    assert_eq!((row.code.as_str(), row.maybe, row.wide, &row.maybe_text), ("Züri", Some(11_900), -1, &None));
    assert_eq!((row.medium, row.float, row.amount.scaled()), (-1_190_000_017, 1.6875, 12_012));
}
