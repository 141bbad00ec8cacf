//! Tables that are copied to another number of instances, or to other partitionings, through the public API.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use ensilo::{Database, Error, Row, Table, Transaction};
use ensilo_islands::{
    CommitUnit, InstanceNumber, Instances, IslandDatabase, IslandError, IslandTable, Islands, IslandsOptions,
    Partitioning, Placement, Plan, Program, Redistributed, Redistribution, RedistributionError,
    RedistributionProgress, Repartitioning, Topology,
};

/// By the warehouse: a unique index tells the rows of one apart.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(
    table = "line",
    index(name = "by_item", columns(item)),
    index(name = "by_serial", unique, columns(warehouse, serial))
)]
struct Line {
    #[row(key)]
    warehouse: u16,
    #[row(key)]
    order: u32,
    item: Option<u32>,
    serial: u64,
    text: String,
}

/// By ranges of the whole key.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "reading")]
struct Reading {
    #[row(key)]
    sensor: String,
    #[row(key)]
    at: i64,
    value: f64,
}

/// At every instance.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "rate", index(name = "by_name", unique, columns(name)))]
struct Rate {
    #[row(key)]
    id: u8,
    name: String,
}

/// Without a row.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "empty")]
struct Empty {
    #[row(key)]
    id: u64,
}

fn options(instances: u16) -> IslandsOptions {
    let plan = Plan::new(
        &Topology::of_this_machine().unwrap(),
        Instances::Count(instances.into()),
        Placement::System,
    );
    IslandsOptions::new(plan).workers(1)
}

fn open(directory: &Path, instances: u16, unit: CommitUnit) -> IslandDatabase {
    options(instances).directory(directory).commit_unit(unit).open_database().unwrap()
}

fn lines() -> Vec<Line> {
    let line = |warehouse: u16, order: u32| Line {
        warehouse,
        order,
        item: (!order.is_multiple_of(7)).then_some(order % 7),
        serial: u64::from(10_000 - order),
        text: "x".repeat(order as usize % 300),
    };
    (0..10).flat_map(|warehouse| (0..300).map(move |order| line(warehouse, order))).collect()
}

fn readings() -> Vec<Reading> {
    let reading =
        |number: i64| Reading { sensor: format!("s{:02}", number / 10), at: -number, value: number as f64 };
    let mut all: Vec<Reading> = (0..300).map(reading).collect();
    all.sort_by_key(|reading| (reading.sensor.clone(), reading.at));
    all
}

fn rates() -> Vec<Rate> {
    (0..5).map(|id| Rate { id, name: format!("rate {id}") }).collect()
}

/// Makes all tables at one instance, with their rows.
fn fill(directory: &Path, unit: CommitUnit) {
    let db = open(directory, 1, unit);
    let tables = (
        db.table::<Line>(Partitioning::hash_of_first(1)).unwrap(),
        db.table::<Reading>(Partitioning::ranges::<()>([])).unwrap(),
        db.table::<Rate>(Partitioning::replicated()).unwrap(),
    );
    db.table::<Empty>(Partitioning::hash()).unwrap();
    for some in lines().chunks(500) {
        db.transact(|tx| tables.0.insert_many(tx, some)).unwrap();
    }
    db.transact(|tx| {
        tables.1.insert_many(tx, &readings())?;
        tables.2.insert_many(tx, &rates())
    })
    .unwrap();
}

/// Checks that all tables have their rows and indexes, and take in others.
fn check(db: &IslandDatabase) {
    let lines_there = db.table::<Line>(Partitioning::hash_of_first(1)).unwrap();
    let readings_there = db.stored_table::<Reading>().unwrap();
    let rates_there = db.table::<Rate>(Partitioning::replicated()).unwrap();
    let empty = db.table::<Empty>(Partitioning::hash()).unwrap();
    db.read(|tx| {
        assert_eq!(lines_there.scan().collect(tx)?, lines());
        assert_eq!(readings_there.scan().collect(tx)?, readings());
        assert_eq!(rates_there.scan().collect(tx)?, rates());
        assert_eq!(empty.scan().count(tx)?, 0);
        let of_item = lines_there.index::<Option<u32>>("by_item")?.equal(&Some(3)).count(tx)?;
        assert_eq!(of_item, lines().iter().filter(|line| line.item == Some(3)).count() as u64);
        let by_serial = lines_there.index::<(u16, u64)>("by_serial")?;
        assert_eq!(by_serial.get(tx, &(4, 9_990))?.unwrap().order, 10);
        assert_eq!(readings_there.prefix(("s07".to_owned(),)).count(tx)?, 10);
        assert_eq!(rates_there.index::<String>("by_name")?.get(tx, &"rate 2".to_owned())?.unwrap().id, 2);
        Ok(())
    })
    .unwrap();
    let taken = Line { order: 5_000, ..lines()[7].clone() };
    for line in [&taken, &lines()[7]] {
        let refused = db.transact(|tx| lines_there.insert(tx, line));
        assert!(matches!(refused, Err(IslandError::DuplicateKey { .. })), "{refused:?}");
    }
    db.transact(|tx| {
        lines_there.insert(tx, &Line { serial: 1, ..taken.clone() })?;
        lines_there.delete(tx, (taken.warehouse, taken.order))?;
        empty.insert(tx, &Empty { id: 7 })?;
        empty.delete(tx, 7)
    })
    .unwrap();
    all_lie_where_they_belong(db, &lines_there);
}

/// Rows are looked for at one instance alone.
fn all_lie_where_they_belong(db: &IslandDatabase, table: &IslandTable<Line>) {
    for instance in 0..db.islands().instances() as u16 {
        let (local, _) = db.islands().local(instance).unwrap();
        let there: Table<Line> = local.open_table().unwrap();
        for (key, _) in local.read(|tx| there.scan().collect(tx)).unwrap() {
            assert_eq!(table.instance_of(key), Some(instance));
        }
    }
}

fn rows_of<'r>(copied: &'r Redistributed, table: &str) -> &'r [u64] {
    &copied.tables.iter().find(|there| there.name == table).unwrap().rows_by_instance
}

#[test]
fn tables_are_the_same_at_any_number_of_instances() {
    for unit in CommitUnit::all() {
        let place = tempfile::tempdir().unwrap();
        let [one, three, two, back] = ["one", "three", "two", "back"].map(|name| place.path().join(name));
        fill(&one, unit);
        let copied = Redistribution::of(&one).instances(3).write_to(&three).unwrap();
        assert_eq!((copied.instances, copied.workers, copied.unit, copied.rows), (3, 1, unit, 3305));
        check(&open(&three, 3, unit));
        assert_eq!(rows_of(&copied, "line").iter().sum::<u64>(), 3000);
        assert!(rows_of(&copied, "line").iter().all(|rows| *rows >= 300), "{copied:?}");
        assert_eq!(rows_of(&copied, "rate"), [5; 3]);
        // Sensors stay together, and there are thirty of them.
        assert_eq!(rows_of(&copied, "reading"), [100; 3]);
        let copied = Redistribution::of(&three).instances(2).write_to(&two).unwrap();
        check(&open(&two, 2, unit));
        assert_eq!(rows_of(&copied, "reading"), [150; 2]);
        assert_eq!(rows_of(&copied, "rate"), [5; 2]);
        Redistribution::of(&two).instances(1).write_to(&back).unwrap();
        check(&open(&back, 1, unit));
        // What it was made from is as it was.
        check(&open(&one, 1, unit));
        check(&open(&three, 3, unit));
    }
}

#[test]
fn a_table_gets_the_partitioning_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let [one, three, again] = ["one", "three", "again"].map(|name| place.path().join(name));
    fill(&one, CommitUnit::Transaction);
    let ranges = || Partitioning::<(u16, u32)>::ranges([(2u16,), (9,)]);
    let copied = Redistribution::of(&one)
        .instances(3)
        .partitioning::<Line>(ranges())
        .repartitioning("reading", Repartitioning::Ranges { columns: Some(2) })
        .repartitioning("rate", Repartitioning::Replicated)
        .repartitioning("empty", Repartitioning::Replicated)
        .write_to(&three)
        .unwrap();
    assert_eq!(rows_of(&copied, "line"), [600, 2100, 300]);
    let shown: Vec<&str> = copied.tables.iter().map(|table| &*table.partitioning).collect();
    assert_eq!(shown, ["replicated", "ranges with 2 beginnings", "replicated", "ranges with 2 beginnings"]);
    {
        let db = open(&three, 3, CommitUnit::Transaction);
        let there = db.table::<Line>(ranges()).unwrap();
        assert_eq!(db.read(|tx| there.scan().collect(tx)).unwrap(), lines());
        assert!(db.table::<Line>(Partitioning::hash_of_first(1)).is_err());
        assert!(db.stored_table::<Empty>().unwrap().instance_of(1).is_none());
    }
    // Beginnings that fit the number of instances stay as they are.
    let copied = Redistribution::of(&three)
        .repartitioning("reading", Repartitioning::Hash { columns: Some(1) })
        .repartitioning("empty", Repartitioning::Hash { columns: None })
        .write_to(&again)
        .unwrap();
    assert_eq!((copied.instances, rows_of(&copied, "line")), (3, &[600, 2100, 300][..]));
    let db = open(&again, 3, CommitUnit::Transaction);
    let there = db.table::<Reading>(Partitioning::hash_of_first(1)).unwrap();
    assert_eq!(db.read(|tx| there.scan().collect(tx)).unwrap(), readings());
}

#[test]
fn workers_and_the_unit_of_commit_can_be_others() {
    let place = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| place.path().join(name));
    fill(&one, CommitUnit::Epoch);
    let copied = Redistribution::of(&one)
        .instances(2)
        .workers(2)
        .commit_unit(CommitUnit::Transaction)
        .write_to(&two)
        .unwrap();
    assert_eq!((copied.workers, copied.unit), (2, CommitUnit::Transaction));
    let error = options(2).directory(&two).open_database().unwrap_err().to_string();
    assert!(error.contains("2 workers") && error.contains("ensilo islands redistribute"), "{error}");
    check(&options(2).workers(2).directory(&two).open_database().unwrap());
}

#[test]
fn what_cannot_be_placed_so_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (one, target) = (place.path().join("one"), place.path().join("target"));
    fill(&one, CommitUnit::Transaction);
    let to_two = || Redistribution::of(&one).instances(2);
    let by_name =
        |table: &str, how: &str| to_two().repartitioning(table, how.parse().unwrap()).write_to(&target);
    let refused = [
        (by_name("line", "hash"), "table line cannot be hash_of_first(2): its unique index by_serial lacks"),
        (by_name("line", "hash:3"), "has a primary key of 2 columns, not 3"),
        (by_name("lime", "hash"), "table lime is not in the source"),
        (by_name("empty", "ranges"), "table empty has no rows by which"),
        (
            to_two().partitioning::<Line>(Partitioning::ranges([(1u16,), (2,)])).write_to(&target),
            "2 instances need 1 beginnings",
        ),
    ];
    for (refused, what) in refused {
        let error = refused.unwrap_err();
        assert!(matches!(error, RedistributionError::Unfit(_)), "{error:?}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(!target.exists(), "nothing is left");
    }
}

#[test]
fn a_target_that_is_not_empty_or_lies_in_the_source_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| place.path().join(name));
    fill(&one, CommitUnit::Transaction);
    let copy = |target: &Path| Redistribution::of(&one).instances(2).write_to(target);
    copy(&two).unwrap();
    let (link, around) = (place.path().join("link"), two.join("../one/within"));
    std::os::unix::fs::symlink(&one, &link).unwrap();
    // Where `missing` is made, the rest leads into the source.
    let behind_missing = place.path().join("missing/../one/within");
    for target in [&two, &one, &one.join("within"), &link.join("within"), &around, &behind_missing] {
        let refused = copy(target).unwrap_err();
        assert!(matches!(refused, RedistributionError::Target { .. }), "{refused:?}");
    }
    assert!(!one.join("within").exists() && !place.path().join("missing").exists());
    copy(&one.join("../three")).unwrap();
    for (place, instances) in [(&two, 2), (&one, 1), (&place.path().join("three"), 2)] {
        check(&open(place, instances, CommitUnit::Transaction));
    }
}

/// It would be made anew, without rows.
#[test]
fn a_source_that_lacks_an_instance_is_refused() {
    for unit in CommitUnit::all() {
        let place = tempfile::tempdir().unwrap();
        let [one, three, target] = ["one", "three", "target"].map(|name| place.path().join(name));
        fill(&one, unit);
        Redistribution::of(&one).instances(3).write_to(&three).unwrap();
        for lost in [2, 0] {
            let lost_files = three.join(format!("instance-{lost}"));
            std::fs::rename(&lost_files, place.path().join("kept")).unwrap();
            std::fs::create_dir_all(lost_files.join("lost+found")).unwrap();
            let refused = Redistribution::of(&three).instances(1).write_to(&target).unwrap_err();
            assert!(refused.to_string().contains(&format!("instance {lost} of 3 is lost")), "{refused}");
            assert!(!lost_files.join("MANIFEST").exists());
            std::fs::remove_dir_all(&lost_files).unwrap();
            let refused = Redistribution::of(&three).instances(1).write_to(&target).unwrap_err();
            assert!(refused.to_string().contains(&format!("instance {lost} of 3 is lost")), "{refused}");
            std::fs::rename(place.path().join("kept"), &lost_files).unwrap();
        }
        Redistribution::of(&three).instances(1).write_to(&target).unwrap();
    }
}

#[test]
fn replicas_that_differ_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let [one, two, target] = ["one", "two", "target"].map(|name| place.path().join(name));
    fill(&one, CommitUnit::Transaction);
    Redistribution::of(&one).instances(2).write_to(&two).unwrap();
    {
        let db = Database::open(two.join("instance-1")).unwrap();
        let rates: Table<Rate> = db.open_table().unwrap();
        assert!(db.transact(|tx| rates.delete(tx, 3)).unwrap());
    }
    let refused = Redistribution::of(&two).write_to(&target).unwrap_err().to_string();
    assert!(
        refused.contains("table rate is replicated, and of the row with the key 3 instance 1"),
        "{refused}"
    );
    // As many rows as at the other one.
    {
        let db = Database::open(two.join("instance-1")).unwrap();
        let rates: Table<Rate> = db.open_table().unwrap();
        db.transact(|tx| rates.insert(tx, &Rate { id: 3, name: "another".to_owned() })).unwrap();
    }
    let again = Redistribution::of(&two).write_to(&target).unwrap_err().to_string();
    assert_eq!(again, refused);
    assert!(!target.exists());
}

/// From before there is a database in it until everything was read back.
#[test]
fn no_instance_of_an_unfinished_target_can_be_opened_by_itself() {
    for unit in CommitUnit::all() {
        let place = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| place.path().join(name));
        fill(&one, unit);
        let opened = AtomicUsize::new(0);
        let try_all = || {
            for instance in ["instance-0", "instance-1"] {
                let instance = two.join(instance);
                for read_only in [true, false] {
                    let alone = Database::options().read_only(read_only).must_exist(true).open(&instance);
                    let refused = alone.unwrap_err().to_string();
                    assert!(refused.contains("not finished"), "{refused}");
                }
                opened.fetch_add(1, Ordering::Relaxed);
            }
        };
        let mut stages = 0;
        let progress = |progress: &RedistributionProgress<'_>| {
            if !matches!(progress, RedistributionProgress::Opening) {
                stages += usize::from(matches!(progress, RedistributionProgress::ReadingBack));
                try_all();
            }
        };
        Redistribution::of(&one).instances(2).progress(progress).write_to(&two).unwrap();
        assert_eq!(stages, 1);
        assert!(opened.load(Ordering::Relaxed) >= 4);
        check(&open(&two, 2, unit));
    }
}

#[test]
fn rows_with_the_same_first_columns_stay_together_where_there_are_few() {
    let place = tempfile::tempdir().unwrap();
    let [two, three] = ["two", "three"].map(|name| place.path().join(name));
    {
        let db = open(&two, 2, CommitUnit::Transaction);
        let table = db.table::<Reading>(Partitioning::ranges([("s".to_owned(), -5i64)])).unwrap();
        let reading = |at| Reading { sensor: "s".to_owned(), at, value: 0.0 };
        db.transact(|tx| table.insert_many(tx, &[reading(-9), reading(-1)])).unwrap();
    }
    let by_sensor = Repartitioning::Ranges { columns: Some(1) };
    let copied = Redistribution::of(&two).instances(3).repartitioning("reading", by_sensor).write_to(&three);
    let copied = copied.unwrap();
    assert_eq!(rows_of(&copied, "reading").iter().filter(|rows| **rows > 0).count(), 1, "{copied:?}");
}

#[test]
fn a_copy_that_was_interrupted_is_not_opened_and_its_source_is_as_before() {
    for unit in CommitUnit::all() {
        let place = tempfile::tempdir().unwrap();
        let [one, two, three] = ["one", "two", "three"].map(|name| place.path().join(name));
        fill(&one, unit);
        let mut rows = 0;
        let interrupted = catch_unwind(AssertUnwindSafe(|| {
            let progress = |progress: &RedistributionProgress<'_>| {
                if let RedistributionProgress::Copying { table: "line", rows: by_now, .. } = progress {
                    rows = *by_now;
                    // Without a message.
                    std::panic::resume_unwind(Box::new(7));
                }
            };
            Redistribution::of(&one).instances(2).progress(progress).write_to(&two)
        }));
        assert_eq!(interrupted.unwrap_err().downcast_ref(), Some(&7));
        assert!((1..3000).contains(&rows), "{rows}");
        let refused = options(2).directory(&two).commit_unit(unit).open_database().unwrap_err().to_string();
        assert!(refused.contains("not finished"), "{refused}");
        for instance in ["instance-0", "instance-1"] {
            let alone = Database::open(two.join(instance)).unwrap_err().to_string();
            assert!(alone.contains("not finished"), "{alone}");
        }
        let refused = Redistribution::of(&two).write_to(&three).unwrap_err();
        assert!(matches!(refused, RedistributionError::Foreign(_)), "{refused:?}");
        let refused = Redistribution::of(&one).write_to(&two).unwrap_err();
        assert!(matches!(refused, RedistributionError::Target { .. }), "{refused:?}");
        assert!(refused.to_string().contains("not finished: remove it"), "{refused}");
        check(&open(&one, 1, unit));
        Redistribution::of(&one).instances(2).write_to(&three).unwrap();
        check(&open(&three, 2, unit));
    }
}

/// Removes all files of an instance that is not finished but the one that says so.
fn lose_files(instance: &Path) {
    for entry in std::fs::read_dir(instance).unwrap().map(Result::unwrap) {
        if entry.file_name() != "BACKUP.unfinished" {
            let path = entry.path();
            // Those of the database may go themselves meanwhile.
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
    }
}

/// The files are gone while they are written to, which nobody sees before they are opened again.
#[test]
fn a_target_that_has_lost_rows_is_removed() {
    for unit in CommitUnit::all() {
        let place = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| place.path().join(name));
        fill(&one, unit);
        let lose = |progress: &RedistributionProgress<'_>| {
            if let RedistributionProgress::Copying { .. } = progress {
                lose_files(&two.join("instance-1"));
            }
        };
        let lost = Redistribution::of(&one).instances(2).progress(lose).write_to(&two).unwrap_err();
        assert!(
            matches!(
                lost,
                // The last one where the log was making its next file in there.
                RedistributionError::Lost(_)
                    | RedistributionError::Instances(_)
                    | RedistributionError::Rows { .. }
            ),
            "{unit}: {lost}"
        );
        assert!(!two.exists(), "nothing is left");
        check(&open(&one, 1, unit));
    }
}

#[test]
fn a_target_whose_memory_does_not_hold_the_rows_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let [single, two] = ["single", "two"].map(|name| place.path().join(name));
    {
        let db = Database::open(&single).unwrap();
        let there: Table<Line> = db.create_table().unwrap();
        for order in 0..200 {
            let line = Line { text: "x".repeat(200_000), ..lines()[order].clone() };
            db.transact(|tx| there.insert(tx, &line)).unwrap();
        }
    }
    let opened = AtomicUsize::new(0);
    let limited = move || match opened.fetch_add(1, Ordering::Relaxed) {
        0 => Database::options(),
        _ => Database::options().memory_limit_bytes(16 << 20),
    };
    let full = Redistribution::of(&single)
        .instances(2)
        .database(limited)
        .partitioning::<Line>(Partitioning::hash_of_first(1))
        .write_to(&two)
        .unwrap_err();
    assert!(matches!(&full, RedistributionError::Rows { error: Error::OutOfMemory(_), .. }), "{full:?}");
    assert!(!two.exists(), "nothing is left");
}

#[test]
fn a_source_that_is_open_is_refused() {
    for unit in CommitUnit::all() {
        let place = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| place.path().join(name));
        fill(&one, unit);
        let db = open(&one, 1, unit);
        let refused = Redistribution::of(&one).write_to(&two).unwrap_err();
        assert!(matches!(refused, RedistributionError::Source(_)), "{refused:?}");
        assert!(refused.to_string().contains("the database is open in process"), "{refused}");
        assert!(!refused.to_string().contains("beside_writer"), "{refused}");
        check(&db);
    }
}

#[test]
fn another_number_of_instances_is_refused_by_the_name_of_the_command() {
    for unit in CommitUnit::all() {
        let place = tempfile::tempdir().unwrap();
        drop(open(place.path(), 2, unit));
        for instances in [1, 3] {
            let opened = options(instances).directory(place.path()).commit_unit(unit).open_database();
            let error = opened.unwrap_err().to_string();
            assert!(error.contains("of 2") && error.contains("ensilo islands redistribute"), "{error}");
        }
        assert!(!place.path().join("instance-2").exists());
    }
}

/// The rows of its instance belong there: it says which.
struct Own;

impl Program for Own {
    fn open(_: &Database, _: InstanceNumber) -> ensilo::Result<Self> {
        Ok(Own)
    }

    fn execute(&self, _: &mut Transaction<'_>, _: &[u8]) -> ensilo::Result<Vec<u8>> {
        Err(Error::rollback("there is no part"))
    }
}

#[test]
fn instances_with_a_program_of_their_own_are_refused_and_stay_as_they_are() {
    let place = tempfile::tempdir().unwrap();
    let [own, two] = ["own", "two"].map(|name| place.path().join(name));
    drop(options(2).directory(&own).open::<Own>().unwrap());
    let refused = Redistribution::of(&own).write_to(&two).unwrap_err();
    assert!(matches!(refused, RedistributionError::Foreign(_)), "{refused:?}");
    assert!(refused.to_string().contains("a program of their own"), "{refused}");
    let islands: Islands<Own> = options(2).directory(&own).open().unwrap();
    assert!(!islands.local(0).unwrap().0.list_tables().unwrap().contains(&"islands_table".to_owned()));
}

#[test]
fn a_table_that_an_instance_alone_knows_is_refused_unless_it_is_empty() {
    let place = tempfile::tempdir().unwrap();
    let [one, two, three] = ["one", "two", "three"].map(|name| place.path().join(name));
    let empty = {
        let db = open(&one, 1, CommitUnit::Transaction);
        let (local, _) = db.islands().local(0).unwrap();
        local.create_table::<Empty>().unwrap()
    };
    drop(empty);
    assert!(Redistribution::of(&one).write_to(&two).unwrap().tables.is_empty());
    {
        let db = open(&one, 1, CommitUnit::Transaction);
        let (local, _) = db.islands().local(0).unwrap();
        let empty: Table<Empty> = local.open_table().unwrap();
        local.transact(|tx| empty.insert(tx, &Empty { id: 1 })).unwrap();
    }
    let refused = Redistribution::of(&one).write_to(&three).unwrap_err();
    assert!(refused.to_string().contains("table empty was written to at an instance itself"), "{refused}");
}

#[test]
fn a_single_database_becomes_instances_and_one_instance_is_a_single_database() {
    let place = tempfile::tempdir().unwrap();
    let [single, two, one] = ["single", "two", "one"].map(|name| place.path().join(name));
    {
        let db = Database::open(&single).unwrap();
        let there: Table<Line> = db.create_table().unwrap();
        db.transact(|tx| lines().iter().try_for_each(|line| there.insert(tx, line).map(drop))).unwrap();
    }
    let refused = Redistribution::of(&single).instances(2).write_to(&two).unwrap_err();
    assert!(refused.to_string().contains("its unique index by_serial lacks"), "{refused}");
    let by_warehouse = || Partitioning::<(u16, u32)>::hash_of_first(1);
    Redistribution::of(&single).instances(2).partitioning::<Line>(by_warehouse()).write_to(&two).unwrap();
    {
        let db = open(&two, 2, CommitUnit::Transaction);
        let there = db.table::<Line>(by_warehouse()).unwrap();
        assert_eq!(db.read(|tx| there.scan().collect(tx)).unwrap(), lines());
    }
    Redistribution::of(&two).instances(1).write_to(&one).unwrap();
    let db = Database::open(one.join("instance-0")).unwrap();
    let there: Table<Line> = db.open_table().unwrap();
    let all: Vec<Line> =
        db.read(|tx| there.scan().collect(tx)).unwrap().into_iter().map(|(_, line)| line).collect();
    assert_eq!(all, lines());
    drop(db);
    let refused = Redistribution::of(two.join("instance-0")).write_to(place.path().join("none")).unwrap_err();
    assert!(refused.to_string().contains("one instance of several"), "{refused}");
    // The only instance has all rows, and says how they are placed.
    let again = place.path().join("again");
    let copied = Redistribution::of(one.join("instance-0")).instances(2).write_to(&again).unwrap();
    assert_eq!((copied.tables.len(), copied.rows), (1, 3000));
    {
        let db = open(&again, 2, CommitUnit::Transaction);
        let there = db.table::<Line>(by_warehouse()).unwrap();
        assert_eq!(db.read(|tx| there.scan().collect(tx)).unwrap(), lines());
    }
    let refused =
        Redistribution::of(place.path().join("nothing")).write_to(place.path().join("none")).unwrap_err();
    assert!(matches!(refused, RedistributionError::Source(_)), "{refused:?}");
    assert!(!place.path().join("nothing").exists());
}

/// Row ids are made by a table: nothing says where a row belongs.
#[test]
fn a_table_without_a_primary_key_is_refused() {
    #[derive(Row)]
    #[row(table = "event")]
    struct Event {
        text: String,
    }
    let place = tempfile::tempdir().unwrap();
    let [single, two] = ["single", "two"].map(|name| place.path().join(name));
    {
        let db = Database::open(&single).unwrap();
        let events: Table<Event> = db.create_table().unwrap();
        db.transact(|tx| events.insert(tx, &Event { text: "it began".to_owned() })).unwrap();
    }
    let refused = Redistribution::of(&single).write_to(&two).unwrap_err();
    assert!(refused.to_string().contains("table event has no primary key"), "{refused}");
}

#[test]
fn progress_is_made_table_by_table() {
    let place = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| place.path().join(name));
    fill(&one, CommitUnit::Transaction);
    let (mut steps, mut rows_by_table, mut all) = (Vec::new(), BTreeMap::new(), 0);
    let progress = |progress: &RedistributionProgress<'_>| match progress {
        RedistributionProgress::Copying { table, rows, rows_of_all, .. } => {
            assert!(rows_by_table.insert((*table).to_owned(), *rows).is_none_or(|before| before < *rows));
            assert!(*rows_of_all > all);
            all = *rows_of_all;
        }
        step => steps.push(format!("{step:?}")),
    };
    let copied = Redistribution::of(&one).instances(2).progress(progress).write_to(&two).unwrap();
    assert_eq!(steps, ["Opening", "ReadingBack"]);
    let expected =
        [("line", 3000), ("rate", 5), ("reading", 300)].map(|(name, rows)| (name.to_owned(), rows));
    assert_eq!(rows_by_table, expected.into());
    assert_eq!((all, copied.rows), (3305, 3305));
}
