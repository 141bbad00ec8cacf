//! What is there of a migration after openings, crashes and failures of the disk.

use ensilo_test_disk::Faults;

use super::*;

const DIRECTORY: &str = "/db";

/// Options for a small database that makes checkpoints only when told.
pub(super) fn options() -> Options {
    Options::default()
        .log_file_bytes(1 << 20)
        .log_buffers(4)
        .checkpoint_interval(Duration::from_secs(3600))
        .recovery_threads(2)
        .pool_threads(1)
}

pub(super) fn open_with(options: Options, disk: &Arc<SimulatedDisk>) -> Result<Database> {
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new(DIRECTORY))
}

pub(super) fn open(disk: &Arc<SimulatedDisk>) -> Database {
    open_with(options(), disk).unwrap()
}

/// A database that the first version has left, with visits, on a disk.
fn of_version_1_on(disk: &Arc<SimulatedDisk>) -> Database {
    let db = open(disk);
    make_version_1(&db);
    let visits = db.table::<Visit>().unwrap();
    let visit = |at| Visit { at, page: at as u32 % 3 };
    db.transact(|tx| (0..VISITS).try_for_each(|at| visits.insert(tx, &visit(at)).map(drop))).unwrap();
    db
}

const VISITS: u64 = 25;

/// Checks that the database is between two steps: what it has is what its version says, and no step was applied twice.
fn check_between_steps(db: &Database) {
    let version = version(db);
    let schema = db.schema("customer").unwrap();
    assert_eq!(schema.column("level").is_some(), version >= 1, "version {version}");
    assert_eq!(schema.indexes().len(), usize::from(version >= 2), "version {version}");
    let customers = db.open_dynamic_table("customer").unwrap();
    let row = db.transact(|tx| customers.get(tx, &[2u32.into()])).unwrap().unwrap();
    if version >= 1 {
        assert_eq!(row[2], (if version >= 3 { 2u8 } else { 1 }).into(), "version {version}");
    }
    let tables = db.list_tables().unwrap();
    assert_eq!(tables.iter().any(|table| table == "page_visit"), version >= 4, "version {version}");
    assert_eq!(tables.iter().any(|table| table == "visit"), version < 6, "version {version}");
    let count = |table: &str| {
        let table = db.open_dynamic_table(table).unwrap();
        let mut rows = 0;
        db.read(|tx| {
            rows = 0;
            table.scan().for_each(tx, |_, _| rows += 1)
        })
        .unwrap();
        rows
    };
    let counted = tables.iter().filter(|table| *table != "customer").map(|table| count(table));
    assert_eq!(counted.sum::<usize>(), VISITS as usize, "each visit is in one of the tables");
    if version == 5 {
        assert_eq!(count("visit"), 0);
    }
}

#[test]
fn a_power_failure_leaves_a_database_between_two_steps() {
    let mut versions = [0; STEPS + 1];
    for life in 0..120u64 {
        let disk = Arc::new(SimulatedDisk::new());
        let db = of_version_1_on(&disk);
        if life % 2 == 0 {
            db.checkpoint().unwrap();
        }
        let number = life / 3 % 40;
        disk.set_faults(Faults {
            seed: life,
            write_error_at: life.is_multiple_of(3).then_some(number),
            sync_error_at: (life % 3 == 1).then_some(number),
            ..Default::default()
        });
        let migrated = db.migrate(&migrations(STEPS));
        if migrated.is_err() {
            let again = db.migrate(&migrations(STEPS));
            assert!(again.is_err(), "what is applied and not stored is not said to be: {again:?}");
        }
        let noted = migrated.as_ref().map_or(0, |applied| applied.len() as u32);
        let crashed = Arc::new(disk.crash(life));
        drop(db);
        let db = open(&crashed);
        versions[version(&db) as usize] += 1;
        assert!(version(&db) >= noted, "what was acknowledged is there");
        check_between_steps(&db);
        let applied = db.migrate(&migrations(STEPS)).unwrap();
        assert_eq!(version(&db), STEPS as u32);
        assert!(applied.len() <= STEPS);
        check_newest(&db, VISITS as usize, customers());
        db.close().unwrap();
        check_newest(&open(&crashed), VISITS as usize, customers());
    }
    assert!(versions[STEPS] > 0 && versions.iter().filter(|lives| **lives > 0).count() > 2, "{versions:?}");
}

#[test]
fn the_version_is_that_of_before_after_a_checkpoint_a_backup_and_a_crash() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = of_version_1_on(&disk);
    db.migrate(&migrations(3)).unwrap();
    db.checkpoint().unwrap();
    db.migrate(&migrations(4)).unwrap();
    let applied = db.applied_migrations().unwrap();
    let crashed = Arc::new(disk.fork().crash(7));
    assert_eq!(open(&crashed).applied_migrations().unwrap(), applied);
    db.close().unwrap();
    let db = open(&disk);
    assert_eq!(db.applied_migrations().unwrap(), applied);
    check_between_steps(&db);
    assert_eq!(db.migrate(&migrations(STEPS)).unwrap().len(), STEPS - 4);
    check_newest(&db, VISITS as usize, customers());
}

#[test]
fn a_database_that_is_only_read_has_to_have_all_steps() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = of_version_1_on(&disk);
    db.migrate(&migrations(2)).unwrap();
    db.close().unwrap();
    let db = open_with(options().read_only(true), &disk).unwrap();
    assert_eq!(version(&db), 2);
    assert!(db.migrate(&migrations(2)).unwrap().is_empty());
    let refused = db.migrate(&migrations(3)).unwrap_err();
    assert!(matches!(refused, Error::InvalidMigrations(_)), "{refused}");
    let text =
        "step 3, \"customer 2 has level 2\", is not applied, and the database is open for reading only";
    assert!(refused.to_string().contains(text), "{refused}");
    assert!(matches!(db.migrate(&migrations(1)), Err(Error::InvalidMigrations(_))));
    assert_eq!(db.pending_migrations(&migrations(3)).unwrap().len(), 1);
    db.close().unwrap();
    assert!(matches!(db.migrate(&migrations(2)), Err(Error::Closed)));
}

#[test]
fn a_database_that_is_only_read_has_to_be_set_up() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let failing = migrations(2).on_new_database(|_| Err(Error::rollback("not well")));
    db.migrate(&failing).unwrap_err();
    db.close().unwrap();
    let db = open_with(options().read_only(true), &disk).unwrap();
    let refused = db.migrate(&failing).unwrap_err();
    assert!(matches!(refused, Error::InvalidMigrations(_)), "{refused}");
    let text = "the set-up of a new database is not done, and the database is open for reading only";
    assert!(refused.to_string().contains(text), "{refused}");
}

#[test]
fn a_database_that_was_new_is_set_up_after_a_crash() {
    for life in 0..20 {
        let disk = Arc::new(SimulatedDisk::new());
        let db = open(&disk);
        let failing = migrations(STEPS).on_new_database(|db| {
            db.table::<Customer>()?;
            Err(Error::rollback("the power fails here"))
        });
        db.migrate(&failing).unwrap_err();
        let crashed = Arc::new(disk.crash(life));
        drop(db);
        let db = open(&crashed);
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let set_up = migrations(STEPS).on_new_database(move |db| {
            counted.fetch_add(1, Ordering::Relaxed);
            db.table::<Customer>().map(drop)
        });
        // The first change was stored, or it was not: the steps run in neither case.
        for _ in 0..2 {
            let applied = db.migrate(&set_up).unwrap();
            assert!(applied.iter().all(|step| step.outcome == MigrationOutcome::NewDatabase));
        }
        assert_eq!(runs.load(Ordering::Relaxed), 1, "life {life}");
        check_newest(&db, 0, Vec::new());
    }
}

#[test]
fn closing_leaves_nothing_of_a_step_that_waits() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = of_version_1_on(&disk);
    let mut session = db.begin().unwrap();
    let table = db.open_table::<Visit>().unwrap();
    table.get(&mut session, 1).unwrap();
    std::thread::scope(|scope| {
        let migrating = scope.spawn(|| db.migrate(&migrations(STEPS)));
        scope.spawn(|| db.close().unwrap());
        assert!(matches!(migrating.join().unwrap(), Err(Error::Closed)));
    });
    drop((session, db));
    let db = open(&disk);
    assert_eq!(version(&db), 0);
    check_between_steps(&db);
    db.migrate(&migrations(STEPS)).unwrap();
    check_newest(&db, VISITS as usize, customers());
}

#[test]
fn consumers_of_changes_see_what_steps_change_and_no_notes() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open_with(options().change_feed(1 << 20), &disk).unwrap();
    make_version_1(&db);
    let mut changes = db.changes().begin_now().unwrap();
    db.migrate(&migrations(3)).unwrap();
    let mut found = Vec::new();
    while let Some(batch) = changes.try_next().unwrap() {
        found.extend(batch.into_iter().map(|change| (change.table().to_owned(), change.key(), change.row())));
    }
    let row = vec![2u32.into(), "customer 2".into(), 2u8.into()];
    assert_eq!(found, [("customer".to_owned(), vec![2u32.into()], Some(row))]);
    db.migrate(&migrations(3).run("nothing", |_| Ok(()))).unwrap();
    assert!(changes.try_next().unwrap().is_none());
}
