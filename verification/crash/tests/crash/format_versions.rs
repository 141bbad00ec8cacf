//! Databases of every format version, from the repository, are opened, and hold what they held.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo::ermia::Ermia;
use ensilo::{ColumnType, Database, Engine, SchemaChange, Silo, generic};
use ensilo_crash::fixture::rows::{Contents, Event, Item, LONG_NOTE_BYTES, Stock, event, item};
use ensilo_crash::fixture::stored::{Features, directory, features, load};
use ensilo_crash::fixture::{Kind, make};
use ensilo_disk::{Disk, RealDisk};
use ensilo_epoch::Epoch;
use ensilo_log::{
    Corruption, CorruptionKind, DataLoss, Dumped, EpochWidth, FORMAT_VERSION, FileHeader, FileRole,
    OpeningId, dump, manifest_of, verify,
};
use ensilo_test_disk::SimulatedDisk;

const DATABASE: &str = make::DIRECTORY;

/// All fixtures, each on a disk of its own.
fn fixtures() -> impl Iterator<Item = (Kind, SimulatedDisk)> {
    fixtures_of(1..=FORMAT_VERSION)
}

/// The last version whose epochs have 40 bits.
const OF_40_BITS: u32 = 3;

/// Those of earlier versions, whose epochs have 40 bits.
fn fixtures_of_40_bits() -> impl Iterator<Item = (Kind, SimulatedDisk)> {
    fixtures_of(1..=OF_40_BITS)
}

fn fixtures_of(formats: RangeInclusive<u32>) -> impl Iterator<Item = (Kind, SimulatedDisk)> {
    let all = formats.flat_map(|format| Kind::ALL.map(|kind| (format, kind)));
    all.filter(|&(format, kind)| kind.is_in(format)).map(|(format, kind)| {
        let disk = SimulatedDisk::new();
        load(&directory(format, kind), &disk, Path::new(DATABASE)).unwrap();
        (kind, disk)
    })
}

fn open(kind: Kind, disk: Arc<dyn Disk>, path: &Path) -> Database {
    open_with(kind, disk, path)
}

fn open_with<E: Engine>(kind: Kind, disk: Arc<dyn Disk>, path: &Path) -> generic::Database<E> {
    kind.options(path).open_with(disk, path).unwrap()
}

/// The database is verified, opened, compared, goes on, and is opened again.
fn check<E: Engine>(kind: Kind, disk: &Arc<dyn Disk>, path: &Path) {
    let verified = ensilo_log::verify(&**disk, path, &mut |damage| panic!("{kind:?}: {damage}")).unwrap();
    assert!(verified.durable_epoch.is_some() && verified.replayed.records > 0);
    let mut contents = Contents::of(kind);
    let db = open_with::<E>(kind, Arc::clone(disk), path);
    contents.check(&db).unwrap();
    let (items, events) = (db.open_table::<Item>().unwrap(), db.open_table::<Event>().unwrap());
    db.transact(|tx| items.insert(tx, &item(2_000))).unwrap();
    db.transact(|tx| events.insert(tx, &event(2_000))).unwrap();
    contents.items.push(item(2_000));
    contents.events.push(event(2_000));
    contents.check(&db).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    contents.check(&open_with::<E>(kind, Arc::clone(disk), path)).unwrap();
}

#[test]
fn databases_of_every_version_are_opened_and_go_on() {
    for (kind, disk) in fixtures() {
        check::<Silo>(kind, &(Arc::new(disk.fork()) as Arc<dyn Disk>), Path::new(DATABASE));
        check::<Ermia>(kind, &(Arc::new(disk) as Arc<dyn Disk>), Path::new(DATABASE));
    }
}

#[test]
fn so_they_are_on_the_real_disk() {
    for kind in Kind::ALL {
        let name = format!("ensilo-format-{}-{}", kind.name(), std::process::id());
        let path = std::env::temp_dir().join(name);
        load(&directory(FORMAT_VERSION, kind), &RealDisk, &path).unwrap();
        check::<Silo>(kind, &(Arc::new(RealDisk) as Arc<dyn Disk>), &path);
        std::fs::remove_dir_all(&path).unwrap();
    }
}

/// Opens the database, compares it, and changes it, so that `contents` is what it holds.
fn go_on(kind: Kind, disk: &Arc<SimulatedDisk>, number: u32, contents: &mut Contents) -> Database {
    let db = open(kind, Arc::clone(disk) as _, Path::new(DATABASE));
    contents.check(&db).unwrap();
    let (items, events) = (db.open_table::<Item>().unwrap(), db.open_table::<Event>().unwrap());
    db.transact(|tx| items.insert(tx, &item(number))).unwrap();
    db.transact(|tx| events.insert(tx, &event(number))).unwrap();
    // Changes of rows of before, as words and as whole rows, and a deletion.
    let changed = contents.items.iter_mut().find(|item| item.id % 2 == 0 && item.note.len() < 99).unwrap();
    for stock in [3, 4] {
        db.transact(|tx| items.update(tx, changed.id, |row: &mut Stock| row.stock += stock)).unwrap();
        changed.stock += stock;
    }
    let deleted = contents.items.remove(1).id;
    assert!(db.transact(|tx| items.delete(tx, deleted)).unwrap());
    contents.items.push(item(number));
    contents.events.push(event(number));
    contents.check(&db).unwrap();
    db
}

fn verify_and_back_up(kind: Kind, disk: &SimulatedDisk, contents: &Contents) {
    let disk = Arc::new(disk.fork());
    let (path, backup) = (Path::new(DATABASE), Path::new("/backup"));
    ensilo_log::verify(&*disk, path, &mut |damage| panic!("{kind:?}: {damage}")).unwrap();
    ensilo_log::backup(&(Arc::clone(&disk) as _), path, backup).unwrap();
    ensilo_log::verify(&*disk, backup, &mut |damage| panic!("{kind:?}: {damage}")).unwrap();
    let restored = Database::options().open_with::<Silo>(Arc::clone(&disk) as _, backup).unwrap();
    contents.check(&restored).unwrap();
    restored.checkpoint().unwrap();
    restored.close().unwrap();
    contents.check(&Database::options().open_with::<Silo>(disk as _, backup).unwrap()).unwrap();
}

/// The power fails in the first life with this version, in the next one, before and after a checkpoint, and in one after that.
#[test]
fn databases_of_epochs_of_40_bits_survive_what_this_version_does_with_them() {
    for (kind, disk) in fixtures_of_40_bits() {
        let mut contents = Contents::of(kind);
        verify_and_back_up(kind, &disk, &contents);
        let mut disk = Arc::new(disk);
        for life in 0..4 {
            let db = go_on(kind, &disk, 2_000 + life, &mut contents);
            if life == 2 {
                let before = disk.fork().crash(7);
                verify_and_back_up(kind, &before, &contents);
                contents.check(&open(kind, Arc::new(before) as _, Path::new(DATABASE))).unwrap();
                db.checkpoint().unwrap();
            }
            let online = PathBuf::from(format!("/online-{life}"));
            db.backup(&online).unwrap();
            let left = disk.fork().crash(u64::from(life));
            drop(db);
            let restored = Database::options().open_with::<Silo>(Arc::new(left.fork()) as _, online).unwrap();
            contents.check(&restored).unwrap();
            verify_and_back_up(kind, &left, &contents);
            disk = Arc::new(left);
        }
    }
}

/// What of a database was stored, by the numbers of its first version, is stored by those of this one: each of its epochs is
/// sixteen.
#[test]
fn epochs_of_40_bits_are_sixteen_each() {
    for (kind, disk) in fixtures_of_40_bits() {
        let disk = Arc::new(disk);
        let old = manifest_of(&*disk, Path::new(DATABASE)).unwrap();
        assert!(old.format <= OF_40_BITS && old.last_generation_of_40_bits == old.generation);
        let firsts =
            [Some(old.first_epoch), old.checkpoint.as_ref().map(|checkpoint| checkpoint.begin_epoch)];
        let lasts = old.earlier.iter().map(|file| file.durable_epoch).chain([old.durable_epoch]);
        let lasts = lasts.chain(old.checkpoint.as_ref().map(|checkpoint| checkpoint.end_epoch));
        assert!(firsts.into_iter().flatten().all(|epoch| epoch.get() % 16 == 0), "{old:?}");
        assert!(lasts.into_iter().all(|epoch| epoch.get() % 16 == 15 || epoch.get() == 0), "{old:?}");
        let mut entries = 0;
        for (path, _) in disk.files() {
            let path = Path::new("/").join(path);
            let mut block_epochs = None;
            let _ = dump(&*disk, &path, &mut |dumped| match dumped {
                Dumped::Block(block) => block_epochs = block.header.epochs,
                Dumped::Write(write) => {
                    let (first, last) = block_epochs.unwrap();
                    let epoch = ensilo_log::epoch_of(write.tid);
                    assert!(
                        first <= epoch && epoch <= last && first.get() % 16 == 0 && last.get() % 16 == 15
                    );
                    entries += 1;
                }
                _ => {}
            });
        }
        assert!(entries > 30, "{kind:?}: {entries}");
        open(kind, Arc::clone(&disk) as _, Path::new(DATABASE)).close().unwrap();
        let new = manifest_of(&*disk, Path::new(DATABASE)).unwrap();
        assert_eq!((new.format, new.last_generation_of_40_bits), (FORMAT_VERSION, old.generation));
        assert!(new.first_epoch > old.durable_epoch && new.durable_epoch >= old.durable_epoch);
        for file in &new.earlier {
            // Under the name that it has, and with the epoch that this stands for.
            assert!(
                disk.exists(&Path::new(DATABASE).join(&file.directory).join(file.name.to_string())).unwrap()
            );
            let largest = file.name.largest_epoch(EpochWidth::Bits40);
            assert!(largest.is_none_or(|largest| largest <= file.durable_epoch && largest.get() % 16 == 15));
        }
    }
}

#[test]
fn a_repair_keeps_or_gives_up_epochs_of_40_bits_as_a_whole() {
    let (kind, disk) = fixtures_of(3..=3).find(|(kind, _)| *kind == Kind::Rotated).unwrap();
    let disk = Arc::new(disk);
    let mut contents = Contents::of(kind);
    go_on(kind, &disk, 2_000, &mut contents).close().unwrap();
    let mut paths = disk.files().into_iter().map(|(path, _)| Path::new("/").join(path));
    // The last file that is sealed of the last life of the earlier version.
    let damaged = paths.find(|path| path.display().to_string().contains("log-2-0-2-e")).unwrap();
    let bytes = disk.contents(&damaged).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    disk.overwrite(&damaged, end as u64 / 2, &[0xaa; 64]).unwrap();
    let as_disk = Arc::clone(&disk) as Arc<dyn Disk>;
    let mut found = Vec::new();
    verify(&*disk, Path::new(DATABASE), &mut |damage| found.push(damage)).unwrap();
    let reachable = match found[..] {
        [Corruption { loss: DataLoss::After(reachable), .. }] => reachable,
        _ => panic!("{found:?}"),
    };
    assert_eq!(reachable.get() % 16, 15);
    let repair = |epoch: u64| ensilo_log::repair(&as_disk, Path::new(DATABASE), Some(Epoch::new(epoch)));
    for apart in [1, 7, 15] {
        let refused = repair(reachable.get() - apart).unwrap_err().to_string();
        let told = [reachable.get() - 16, reachable.get()].map(|epoch| format!("after epoch {epoch}"));
        assert!(told.iter().all(|told| refused.contains(told)), "{refused}");
    }
    assert_eq!(repair(reachable.get()).unwrap().kept_to, reachable);
    let db = open(kind, as_disk, Path::new(DATABASE));
    let events: Vec<_> = db.transact(|tx| db.open_table::<Event>()?.scan().rows(tx)).unwrap();
    assert!(events.len() < contents.events.len() && contents.events.starts_with(&events), "{events:?}");
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

/// One of them has a value of a megabyte, in its row.
#[test]
fn long_values_lie_in_their_rows_until_the_columns_of_the_table_are_changed() {
    let pieces = |db: &Database| {
        let statistics = db.statistics().unwrap();
        statistics.table("item").unwrap().long_values.as_ref().map(|long| long.pieces)
    };
    for (kind, disk) in fixtures() {
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let db = open(kind, Arc::clone(&disk), Path::new(DATABASE));
        let items = db.open_table::<Item>().unwrap();
        let rows = Contents::of(kind).items;
        let long: usize = rows.iter().map(|row| row.note.len()).filter(|len| *len > 16_256).sum();
        rows.iter().for_each(|row| db.transact(|tx| items.replace(tx, row)).unwrap());
        assert_eq!(pieces(&db), Some(0));
        db.change_table("item", &SchemaChange::new().add("added", ColumnType::U8, 7u8)).unwrap();
        assert_eq!(pieces(&db), Some(0));
        db.rewrite_older_rows("item").unwrap();
        assert_eq!(pieces(&db), Some(long.div_ceil(16_256) as u64), "{kind:?}");
        let check = |db: Database| {
            let items = db.open_dynamic_table("item").unwrap();
            let notes = db.transact(|tx| items.scan().columns(&["note"])?.collect(tx)).unwrap();
            assert!(notes.into_iter().eq(rows.iter().map(|row| vec![row.note.as_str().into()])));
        };
        check(db);
        check(open(kind, disk, Path::new(DATABASE)));
    }
}

#[test]
fn what_they_hold_is_what_they_are_there_for() {
    for (kind, disk) in fixtures() {
        let found = features(&disk, Path::new(DATABASE)).unwrap();
        let Features { loggers, records, puts, patches, deletes, .. } = found;
        assert!(records > 90 && puts > 20 && patches > 10 && deletes >= 4, "{kind:?}: {found:?}");
        let is_as_told = match kind {
            Kind::Closed => {
                loggers == 1
                    && found.compressed_blocks > 3
                    && found.reservations == 1
                    && (found.seals, found.ends_in_order) == (1, 1)
                    && found.torn == 0
            }
            Kind::Rotated => {
                loggers == 1
                    && found.compressed_blocks > 3
                    && found.seals >= 4
                    && found.earlier_files >= 3
                    && found.ends_in_order == 0
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
