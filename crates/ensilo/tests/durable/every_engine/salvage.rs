//! Whatever one place of a checkpoint or of the manifest is damaged: every tool names it, and a salvage brings everything else back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ensilo_log::{
    Dumped, FILE_HEADER_BYTES, OpenError, SalvageLoss, Salvaged, dump, repair, salvage, verify,
};

use super::*;

const TARGET: &str = "/saved";
const CHECKPOINT: &str = "/db/checkpoint-1";
const MANIFEST: &str = "/db/MANIFEST";
const COPY: &str = "/db/MANIFEST.copy";

/// A row with a unique index.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "customer", index(name = "by_name", columns(name), unique))]
struct Customer {
    #[row(key)]
    id: u32,
    name: String,
    note: String,
}

/// What a database holds: of `account` and `customer`, by key, and of `event`.
#[derive(Clone, Debug, PartialEq)]
struct Contents {
    accounts: BTreeMap<u32, Account>,
    customers: BTreeMap<u32, Customer>,
    events: Vec<Event>,
}

fn customer(id: u32) -> Customer {
    Customer { id, name: format!("customer {id}"), note: "y".repeat(15_000) }
}

/// A database with several tables and indexes, of which each table but one has several blocks in the checkpoint, and with changes after it.
fn sample() -> (Arc<SimulatedDisk>, Contents) {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open_with(options(), &disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let customers = db.create_table::<Customer>().unwrap();
    let events = db.create_table::<Event>().unwrap();
    let long = |id| Account { note: "x".repeat(15_000), ..account(id) };
    db.transact(|tx| {
        (0..20).try_for_each(|id| accounts.insert(tx, &long(id)).map(|_| ()))?;
        (0..20).try_for_each(|id| customers.insert(tx, &customer(id)).map(|_| ()))?;
        (0..5).try_for_each(|id| events.insert(tx, &Event { what: format!("event {id}") }).map(|_| ()))
    })
    .unwrap();
    assert_eq!(db.checkpoint().unwrap().id, 1);
    db.transact(|tx| {
        accounts.update(tx, 3, |row: &mut Balance| row.balance = -3)?;
        accounts.insert(tx, &long(100))?;
        customers.delete(tx, 4)
    })
    .unwrap();
    let contents = contents(&db);
    db.close().unwrap();
    (disk, contents)
}

/// All that can be had through the tables, and through each of their indexes.
fn contents(db: &Database) -> Contents {
    let (accounts, customers, events) = (
        db.open_table::<Account>().unwrap(),
        db.open_table::<Customer>().unwrap(),
        db.open_table::<Event>().unwrap(),
    );
    for index in db.statistics().unwrap().tables.iter().flat_map(|table| &table.indexes) {
        assert_eq!(index.state, ensilo::IndexState::Ready, "{}", index.name);
    }
    let by_owner = accounts.index::<u32>("by_owner").unwrap();
    let by_name = customers.index::<String>("by_name").unwrap();
    db.transact(|tx| {
        let contents = Contents {
            accounts: accounts.scan().rows(tx)?.into_iter().map(|row| (row.id, row)).collect(),
            customers: customers.scan().rows(tx)?.into_iter().map(|row| (row.id, row)).collect(),
            events: events.scan().rows(tx)?,
        };
        assert_eq!(by_owner.scan().count(tx)?, contents.accounts.len());
        assert_eq!(by_name.scan().count(tx)?, contents.customers.len());
        Ok(contents)
    })
    .unwrap()
}

fn as_disk(disk: &Arc<SimulatedDisk>) -> Arc<dyn Disk> {
    Arc::clone(disk) as Arc<dyn Disk>
}

fn save(disk: &Arc<SimulatedDisk>) -> Result<Salvaged, OpenError> {
    salvage(&as_disk(disk), Path::new(DIRECTORY), Path::new(TARGET))
}

/// The salvaged database, which is sound.
fn open_saved(disk: &Arc<SimulatedDisk>) -> Database {
    let verified = verify(&**disk, Path::new(TARGET), &mut |damage| panic!("{damage}")).unwrap();
    assert_eq!(verified.corruptions, 0);
    options().open_with(as_disk(disk), Path::new(TARGET)).unwrap()
}

/// A stretch of a part: its header, or a block, with the records in it by table.
#[derive(Debug)]
struct Stretch {
    file: PathBuf,
    offset: u64,
    end: u64,
    records: Vec<(u32, Vec<u8>)>,
}

fn stretches(disk: &SimulatedDisk) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    for part in disk.list(Path::new(CHECKPOINT)).unwrap() {
        let file = Path::new(CHECKPOINT).join(part.name);
        let header = FILE_HEADER_BYTES as u64;
        stretches.push(Stretch { file: file.clone(), offset: 0, end: header, records: Vec::new() });
        dump(disk, &file, &mut |dumped| match dumped {
            Dumped::Block(block) => stretches.push(Stretch {
                file: file.clone(),
                offset: block.header.offset,
                end: block.end_offset(),
                records: Vec::new(),
            }),
            Dumped::Record(record) => {
                stretches.last_mut().unwrap().records.push((record.table, record.key.to_vec()));
            }
            _ => {}
        })
        .unwrap();
    }
    stretches
}

/// The numbers of the tables, in the order of [`Contents`].
fn numbers(disk: &SimulatedDisk) -> [u32; 3] {
    let db = open(&Arc::new(disk.fork()));
    let tables = db.statistics().unwrap().tables;
    ["account", "customer", "event"]
        .map(|name| tables.iter().find(|table| table.name == name).unwrap().number)
}

/// What an opening, `verify` and `repair` say of a damaged file: each names it, or the opening is right. A repair mends the copies of
/// definitions.
fn assert_named(disk: &Arc<SimulatedDisk>, file: &Path, whole: &Contents) {
    let name = file.file_name().unwrap().to_str().unwrap();
    match open_with(options(), &Arc::new(disk.fork())) {
        Ok(db) => assert_eq!(contents(&db), *whole),
        Err(error) => assert!(error.to_string().contains(name), "{error}"),
    }
    let mut named = 0;
    let report = &mut |damage: ensilo_log::Corruption| named += u64::from(damage.file == file);
    assert!(verify(&**disk, Path::new(DIRECTORY), report).unwrap().corruptions > 0);
    assert!(named > 0, "{name}");
    let repaired = Arc::new(disk.fork());
    match repair(&as_disk(&repaired), Path::new(DIRECTORY), None) {
        Ok(done) => {
            assert!(name == "copies.ckpt" && done.corruptions.iter().all(|damage| damage.file == file));
            assert_eq!(contents(&open(&repaired)), *whole);
        }
        Err(refused) => {
            assert!(name != "copies.ckpt" && refused.to_string().contains(name), "{refused}");
        }
    }
}

#[test]
fn each_damaged_block_of_a_checkpoint_costs_its_own_rows_and_no_definition() {
    let (sound, whole) = sample();
    let [accounts, customers, events] = numbers(&sound);
    let mut losses = BTreeMap::new();
    for Stretch { file, offset, end, records } in stretches(&sound) {
        for byte in BTreeSet::from([offset, offset + 9, (offset + end) / 2, end - 1]) {
            let disk = Arc::new(sound.fork());
            disk.flip(&file, byte * 8 + byte % 8).unwrap();
            assert_named(&disk, &file, &whole);
            let salvaged = save(&disk).unwrap();
            let is_lost = |table: u32, id: u32| records.contains(&(table, id.to_be_bytes().to_vec()));
            let mut expected = whole.clone();
            // What changed since is in the log.
            expected.accounts.retain(|&id, _| !is_lost(accounts, id) || id == 3);
            expected.customers.retain(|&id, _| !is_lost(customers, id));
            if records.iter().any(|(table, _)| *table == events) {
                expected.events.clear();
            }
            assert_eq!(contents(&open_saved(&disk)), expected, "byte {byte} of {}", file.display());
            let has_rows = records.iter().any(|(table, _)| [accounts, customers, events].contains(table));
            assert_eq!(salvaged.loss(), if has_rows { SalvageLoss::Rows } else { SalvageLoss::Nothing });
            assert!(
                !salvaged.unreadable.is_empty() || offset == 0,
                "the block counts, whatever the header is"
            );
            *losses.entry((salvaged.loss(), records.is_empty())).or_insert(0) += 1;
        }
    }
    // Blocks of rows, of definitions, headers and ends.
    assert_eq!(losses.len(), 3, "{losses:?}");
}

#[test]
fn a_missing_or_cut_part_costs_its_own_rows_only() {
    let (sound, whole) = sample();
    for part in sound.list(Path::new(CHECKPOINT)).unwrap() {
        let file = Path::new(CHECKPOINT).join(part.name);
        for bytes in [None, Some(0), Some(part.len_bytes / 2), Some(part.len_bytes - 1)] {
            let disk = Arc::new(sound.fork());
            match bytes {
                None => disk.delete(&file).unwrap(),
                Some(bytes) => disk.open(&file).unwrap().set_len(bytes).unwrap(),
            }
            assert_named(&disk, &file, &whole);
            let salvaged = save(&disk).unwrap();
            assert!(salvaged.loss() < SalvageLoss::Definitions);
            let saved = contents(&open_saved(&disk));
            let lost = whole.accounts.len() + whole.customers.len() + whole.events.len()
                - (saved.accounts.len() + saved.customers.len() + saved.events.len());
            let known: u64 = salvaged.tables.iter().map(|table| table.lost_records).sum();
            assert!(lost as u64 <= known, "{lost} of {known}");
            assert_eq!(salvaged.loss() == SalvageLoss::Rows, known > 0);
            assert!(saved.accounts.iter().all(|(id, row)| whole.accounts[id] == *row));
            assert!(saved.customers.iter().all(|(id, row)| whole.customers[id] == *row));
        }
    }
}

#[test]
fn definitions_are_lost_only_if_both_of_their_places_are_damaged() {
    let (sound, whole) = sample();
    let stretches = stretches(&sound);
    let definitions = stretches.iter().filter(|stretch| stretch.records.iter().any(|(table, _)| *table == 1));
    let definitions: Vec<&Stretch> = definitions.collect();
    let [one, other] = &definitions[..] else { panic!("{definitions:?}") };
    assert_ne!(one.file, other.file);
    let disk = Arc::new(sound.fork());
    for place in [one, other] {
        disk.flip(&place.file, (place.offset + 100) * 8).unwrap();
    }
    let salvaged = save(&disk).unwrap();
    assert_eq!(salvaged.loss(), SalvageLoss::Definitions);
    let saved: BTreeMap<u32, u64> = salvaged.tables.iter().map(|table| (table.table, table.rows)).collect();
    let [accounts, customers, events] = numbers(&sound);
    let rows = [whole.accounts.len(), whole.customers.len(), whole.events.len()].map(|rows| rows as u64);
    assert_eq!(
        [accounts, customers, events].map(|table| saved[&table]),
        rows,
        "readable, though not by name"
    );
    // The new database can be opened, and used.
    let db = open_saved(&disk);
    assert!(db.statistics().unwrap().tables.is_empty());
    db.create_table::<Account>().unwrap();
}

#[test]
fn a_checkpoint_of_a_salvaged_database_has_its_definitions_twice_too() {
    let (sound, whole) = sample();
    save(&sound).unwrap();
    for part in sound.list(&Path::new(TARGET).join("checkpoint-1")).unwrap() {
        let disk = Arc::new(sound.fork());
        let file = Path::new(TARGET).join("checkpoint-1").join(part.name);
        disk.flip(&file, (FILE_HEADER_BYTES as u64 + 100) * 8).unwrap();
        let salvaged = salvage(&as_disk(&disk), Path::new(TARGET), Path::new("/again")).unwrap();
        assert_eq!(salvaged.loss(), SalvageLoss::Nothing);
        let db = options().open_with(as_disk(&disk), Path::new("/again")).unwrap();
        assert_eq!(contents(&db), whole);
    }
}

#[test]
fn what_stands_twice_is_counted_once() {
    let (disk, whole) = sample();
    // Of each table a row of its long values, too.
    let rows = (20 + 20 + 5) + 3 + 3 + 2;
    let mut verified = Vec::new();
    let report = &mut |damage: ensilo_log::Corruption| verified.push(damage);
    assert_eq!(verify(&*disk, Path::new(DIRECTORY), report).unwrap().replayed.records, rows);
    assert!(verified.is_empty(), "{verified:?}");
    let db = open(&disk);
    assert_eq!(contents(&db), whole);
    let statistics = db.statistics().unwrap();
    assert_eq!(statistics.durability.unwrap().recovery.checkpoint_rows, rows);
    assert_eq!(db.checkpoint().unwrap().rows, rows);
}

#[test]
fn a_dropped_table_is_no_lost_definition() {
    let (disk, _) = sample();
    let db = open(&disk);
    db.drop_table("event").unwrap();
    db.close().unwrap();
    assert_eq!(save(&disk).unwrap().loss(), SalvageLoss::Nothing);
    assert_eq!(open_saved(&disk).statistics().unwrap().tables.len(), 2);
}

/// Puts the copy of the manifest in its place.
fn put_copy_in_place(disk: &SimulatedDisk) {
    let bytes = disk.contents(Path::new(COPY)).unwrap();
    let _ = disk.remove(Path::new(MANIFEST));
    disk.create(Path::new(MANIFEST), 0).unwrap().write_at(0, &bytes).unwrap();
}

#[test]
fn a_database_whose_manifest_is_damaged_is_saved_whole_by_its_copy() {
    let (sound, whole) = sample();
    let bytes = sound.contents(Path::new(MANIFEST)).unwrap().len() as u64;
    for byte in (0..bytes).step_by(11).map(Some).chain([None]) {
        let disk = Arc::new(sound.fork());
        match byte {
            Some(byte) => disk.flip(Path::new(MANIFEST), byte * 8 + byte % 8).unwrap(),
            None => disk.delete(Path::new(MANIFEST)).unwrap(),
        }
        let opened = open_with(options(), &Arc::new(disk.fork()));
        let refused = opened.err().unwrap().to_string();
        assert!(refused.contains(MANIFEST) && refused.contains("MANIFEST.copy"), "{refused}");
        match verify(&*disk, Path::new(DIRECTORY), &mut |damage| assert_eq!(damage.file, Path::new(MANIFEST)))
        {
            Ok(verified) => assert_eq!(verified.corruptions, 1),
            Err(error) => assert!(byte.is_none() && error.to_string().contains(MANIFEST), "{error}"),
        }
        let unrepaired =
            repair(&as_disk(&disk), Path::new(DIRECTORY), Some(ensilo_epoch::Epoch::MAX)).unwrap_err();
        assert!(unrepaired.to_string().contains(MANIFEST), "{unrepaired}");
        let salvaged = save(&disk).unwrap();
        assert_eq!(
            (salvaged.loss(), salvaged.manifest.unwrap().file),
            (SalvageLoss::Uncertain, MANIFEST.into())
        );
        assert_eq!(contents(&open_saved(&disk)), whole);
        // What the error advises does it too.
        put_copy_in_place(&disk);
        assert_eq!(contents(&open(&disk)), whole);
    }
}

#[test]
fn without_a_copy_a_damaged_manifest_is_the_end_and_said_to_be() {
    let (sound, whole) = sample();
    sound.flip(Path::new(COPY), 300).unwrap();
    // The copy alone is of no matter, and the next opening writes another one.
    let again = open(&Arc::new(sound.fork()));
    assert_eq!(contents(&again), whole);
    sound.flip(Path::new(MANIFEST), 300).unwrap();
    let refused = save(&sound).unwrap_err().to_string();
    assert!(refused.contains(MANIFEST) && refused.contains("restore a backup"), "{refused}");
    assert!(!refused.contains("salvage") && !refused.contains("MANIFEST.copy"), "{refused}");
    assert!(sound.list(Path::new(TARGET)).is_err(), "nothing was made");
}

#[test]
fn a_copy_of_the_manifest_that_is_older_than_the_log_is_refused() {
    let (disk, _) = sample();
    let old = disk.contents(Path::new(COPY)).unwrap();
    let db = open(&disk);
    db.transact(|tx| accounts(&db).insert(tx, &account(200))).unwrap();
    db.close().unwrap();
    disk.remove(Path::new(COPY)).unwrap();
    disk.create(Path::new(COPY), 0).unwrap().write_at(0, &old).unwrap();
    disk.flip(Path::new(MANIFEST), 300).unwrap();
    assert!(matches!(save(&disk), Err(OpenError::OtherOwner { .. })));
    put_copy_in_place(&disk);
    assert!(open_with(options(), &disk).is_err());
}

/// The sectors of a file.
fn sectors(disk: &SimulatedDisk, file: &Path) -> u64 {
    (disk.contents(file).unwrap().len() as u64).div_ceil(4096)
}

#[test]
fn an_opening_names_an_unreadable_sector_and_its_remedy() {
    let (sound, whole) = sample();
    let parts = sound.list(Path::new(CHECKPOINT)).unwrap().into_iter();
    let mut files: Vec<PathBuf> = parts.map(|part| Path::new(CHECKPOINT).join(part.name)).collect();
    files.extend([MANIFEST, "/db/log/OWNER"].map(PathBuf::from));
    let log = sound.list(Path::new("/db/log")).unwrap().into_iter();
    let log = log.filter(|entry| entry.name.starts_with("log-"));
    files.extend(log.map(|entry| Path::new("/db/log").join(entry.name)));
    let mut helped = BTreeSet::new();
    for file in &files {
        for sector in [0, 1, sectors(&sound, file) - 1] {
            let disk = Arc::new(sound.fork());
            disk.spoil(file, sector).unwrap();
            let what = format!("sector {sector} of {}", file.display());
            let error = match open_with(options(), &disk) {
                Ok(_) => {
                    assert!(sector * 4096 >= sound.contents(file).unwrap().len() as u64, "{what}");
                    continue;
                }
                Err(error) => error.to_string(),
            };
            let place = format!("{}, byte {}: ", file.display(), sector * 4096);
            assert!(error.contains(&place) && error.contains("bytes cannot be read: "), "{what}: {error}");
            assert!(error.contains("try again"), "{what}: {error}");
            let remedies = [
                "MANIFEST.copy",
                "--accept-loss-after-epoch ",
                "ensilo repair",
                "ensilo salvage",
                "remove the file",
            ];
            let remedy = remedies.into_iter().find(|remedy| error.contains(remedy)).unwrap();
            helped.insert(remedy);
            match remedy {
                "--accept-loss-after-epoch " => {
                    let epoch: String = error
                        .split(remedy)
                        .nth(1)
                        .unwrap()
                        .chars()
                        .take_while(char::is_ascii_digit)
                        .collect();
                    let epoch = ensilo_epoch::Epoch::new(epoch.parse().unwrap());
                    repair(&as_disk(&disk), Path::new(DIRECTORY), Some(epoch)).unwrap();
                    assert_eq!(contents(&open(&disk)).events, whole.events, "{what}");
                }
                "ensilo repair" => {
                    repair(&as_disk(&disk), Path::new(DIRECTORY), None).unwrap();
                    assert_eq!(contents(&open(&disk)), whole, "{what}");
                }
                "ensilo salvage" => {
                    salvage(&as_disk(&disk), Path::new(DIRECTORY), Path::new(TARGET)).unwrap();
                    drop(open_saved(&disk));
                }
                "MANIFEST.copy" => {
                    let copy = disk.contents(Path::new(COPY)).unwrap();
                    disk.remove(Path::new(MANIFEST)).unwrap();
                    let file = disk.create(Path::new(MANIFEST), 0).unwrap();
                    file.write_at(0, &copy).unwrap();
                    assert_eq!(contents(&open(&disk)), whole, "{what}");
                }
                _ => {
                    disk.remove(file).unwrap();
                    assert_eq!(contents(&open(&disk)), whole, "{what}");
                }
            }
        }
    }
    assert_eq!(helped.len(), 5, "{helped:?}");
}
