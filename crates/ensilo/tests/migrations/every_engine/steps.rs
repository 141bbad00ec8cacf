//! What steps do, which are applied, and what is refused, in memory.

use std::sync::mpsc;
use std::thread;

use ensilo::{AppliedMigration, NestedCall, Value};

use super::*;

#[test]
fn a_database_of_any_version_becomes_one_of_the_newest() {
    for steps in 0..=STEPS {
        let db = of_version_1();
        let applied = db.migrate(&migrations(steps)).unwrap();
        assert_eq!(applied, db.applied_migrations().unwrap());
        assert_eq!(version(&db), steps as u32);
        let moves = steps < 5;
        if moves {
            let visits = db.table::<Visit>().unwrap();
            let visit = |at| Visit { at, page: at as u32 % 3 };
            db.transact(|tx| (0..25).try_for_each(|at| visits.insert(tx, &visit(at)).map(drop))).unwrap();
        }
        let pending = db.pending_migrations(&migrations(STEPS)).unwrap();
        let applied = db.migrate(&migrations(STEPS)).unwrap();
        assert_eq!(applied.iter().map(|step| step.name.clone()).collect::<Vec<_>>(), pending);
        assert!((steps as u32 + 1..).zip(&applied).all(|(number, step)| step.number == number));
        let was_applied = |step: &AppliedMigration| step.outcome == MigrationOutcome::Applied;
        assert!(applied.iter().take(STEPS - 1 - steps.min(5)).all(was_applied));
        if steps == 4 {
            // Moved by the newest version.
            assert_eq!(pending, ["visits move", "visits by time go"]);
        }
        let visits = if moves { 25 } else { 0 };
        check_newest(&db, visits, customers());
    }
}

#[test]
fn no_step_runs_in_a_new_database() {
    let db = in_memory();
    assert!(db.pending_migrations(&migrations(0)).unwrap().is_empty());
    assert_eq!(db.pending_migrations(&migrations(STEPS)).unwrap(), ["the set-up of a new database"]);
    let applied = db.migrate(&migrations(STEPS)).unwrap();
    assert!(db.pending_migrations(&migrations(STEPS)).unwrap().is_empty());
    assert_eq!(applied.len(), STEPS);
    assert!(applied.iter().all(|step| step.outcome == MigrationOutcome::NewDatabase));
    assert!(db.list_tables().unwrap().is_empty());
    check_newest(&db, 0, Vec::new());
    // The next version does change it.
    let more = migrations(STEPS).drop_index("no levels", "customer", "by_level");
    assert_eq!(db.migrate(&more).unwrap()[0].outcome, MigrationOutcome::Applied);
    assert!(matches!(db.table::<Customer>(), Err(Error::SchemaMismatch(_))));
}

#[test]
fn a_new_database_is_set_up_once() {
    let db = in_memory();
    let runs = Arc::new(AtomicU32::new(0));
    let set_up = |migrations: Migrations, is_well: bool| {
        let runs = Arc::clone(&runs);
        migrations.on_new_database(move |db| {
            runs.fetch_add(1, Ordering::Relaxed);
            let customers = db.table::<Customer>()?;
            let first = Customer { id: 1, full_name: "first".to_owned(), level: 1 };
            db.transact(|tx| customers.upsert(tx, &first).map(drop))?;
            if is_well { Ok(()) } else { Err(Error::rollback("not well")) }
        })
    };
    let failed = db.migrate(&set_up(migrations(2), false)).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "the set-up of a new database has failed: rolled back by the request: not well"
    );
    // It is new still, although it has tables and a version.
    assert_eq!(version(&db), 2);
    let due = db.pending_migrations(&set_up(migrations(2), true)).unwrap();
    assert_eq!(due, ["the set-up of a new database"]);
    assert!(db.migrate(&set_up(migrations(2), true)).unwrap().is_empty());
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    let applied = db.migrate(&set_up(migrations(3).run("later", |_| Ok(())), true)).unwrap_err();
    assert!(
        matches!(applied, Error::MigrationFailed(failed) if failed.number() == 3),
        "there is no customer 2"
    );
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    // Without steps it is noted, too.
    let db = in_memory();
    let set_up = set_up(Migrations::new(), true);
    (0..2).for_each(|_| assert!(db.migrate(&set_up).unwrap().is_empty()));
    assert_eq!((runs.load(Ordering::Relaxed), version(&db)), (3, 0));
}

/// A set-up that makes customers, and then fails if it is told to.
fn set_up(migrations: Migrations, is_well: bool) -> Migrations {
    migrations.on_new_database(move |db| {
        db.table::<Customer>()?;
        if is_well { Ok(()) } else { Err(Error::rollback("not well")) }
    })
}

#[test]
fn a_database_without_tables_stays_new_for_later_steps() {
    for is_set_up in [false, true] {
        let db = in_memory();
        let first = if is_set_up { migrations(1).on_new_database(|_| Ok(())) } else { migrations(1) };
        db.migrate(&first).unwrap();
        // The program has ended before it made tables.
        for later in [migrations(STEPS), set_up(migrations(STEPS), true)] {
            assert_eq!(db.pending_migrations(&later).unwrap(), ["the set-up of a new database"]);
        }
        let applied = db.migrate(&set_up(migrations(STEPS), true)).unwrap();
        assert_eq!(applied.len(), STEPS - 1);
        assert!(applied.iter().all(|step| step.outcome == MigrationOutcome::NewDatabase));
        assert_eq!(db.list_tables().unwrap(), ["customer"], "set up as the later version says");
        assert!(db.pending_migrations(&set_up(migrations(STEPS), false)).unwrap().is_empty());
        check_newest(&db, 0, Vec::new());
    }
}

#[test]
fn a_set_up_behind_steps_of_an_earlier_version_can_fail_and_sees_all_steps() {
    let db = in_memory();
    db.migrate(&migrations(1)).unwrap();
    db.migrate(&set_up(migrations(STEPS), false)).unwrap_err();
    assert_eq!((version(&db), db.is_being_set_up().unwrap()), (STEPS as u32, true));
    let seen = migrations(STEPS).on_new_database(|db| {
        assert_eq!(db.migration_version()?, STEPS as u32);
        db.table::<Customer>().map(drop)
    });
    db.migrate(&seen).unwrap();
    assert_eq!((version(&db), db.is_being_set_up().unwrap()), (STEPS as u32, false));
    check_newest(&db, 0, Vec::new());
}

#[test]
fn steps_come_before_a_set_up_that_has_made_tables() {
    let db = in_memory();
    db.migrate(&set_up(migrations(2), false)).unwrap_err();
    let level = |level: u8| {
        migrations(2).transact("the first one", move |db, tx| {
            let customers = db.open_table::<Customer>()?;
            if level == 0 {
                return Err(Error::rollback("no level"));
            }
            customers.insert(tx, &Customer { id: 1, full_name: "first".to_owned(), level }).map(drop)
        })
    };
    let due = db.pending_migrations(&set_up(level(1), true)).unwrap();
    assert_eq!(due, ["the first one", "the set-up of a new database"]);
    let failed = db.migrate(&set_up(level(0), true)).unwrap_err();
    assert!(failed.to_string().ends_with("comes behind this step"), "{failed}");
    let applied = db.migrate(&set_up(level(1), true)).unwrap();
    assert_eq!((applied.len(), applied[0].outcome), (1, MigrationOutcome::Applied));
    assert!(db.pending_migrations(&set_up(level(1), true)).unwrap().is_empty());
}

#[test]
fn steps_of_a_dump_go_into_a_database_without_steps() {
    let applied = of_version_1();
    applied.migrate(&migrations(2)).unwrap();
    let applied = applied.applied_migrations().unwrap();
    let db = in_memory();
    db.migrate(&Migrations::new().on_new_database(|_| Err(Error::rollback("not yet")))).unwrap_err();
    for steps in [vec![applied[0].clone(); 2], vec![applied[1].clone()]] {
        db.take_migrations(&steps).unwrap_err();
    }
    let mut nameless = applied.clone();
    nameless[1].name.clear();
    assert!(matches!(db.take_migrations(&nameless), Err(Error::InvalidMigrations(_))));
    db.take_migrations(&applied).unwrap();
    assert_eq!(db.applied_migrations().unwrap(), applied);
    assert!(db.is_being_set_up().unwrap(), "what was there of the set-up stays");
    assert!(matches!(db.take_migrations(&applied), Err(Error::InvalidMigrations(_))));
}

#[test]
fn an_error_that_says_closed_of_another_database_is_the_step_s() {
    let (db, other) = (of_version_1(), in_memory());
    other.close().unwrap();
    let failed =
        db.migrate(&migrations(1).run("the other", move |_| other.list_tables().map(drop))).unwrap_err();
    let Error::MigrationFailed(step) = &failed else { panic!("{failed}") };
    assert!(matches!((step.number(), step.error()), (2, Error::Closed)), "{failed}");
}

#[test]
fn a_program_without_steps_leaves_a_database_of_the_first_version() {
    let db = in_memory();
    assert!(db.migrate(&Migrations::new()).unwrap().is_empty());
    db.table::<Customer1>().unwrap();
    assert_eq!(db.migrate(&migrations(1)).unwrap()[0].outcome, MigrationOutcome::Applied);
    db.open_table::<Customer>().map(drop).unwrap_err();
    assert!(db.schema("customer").unwrap().column("level").is_some());
}

#[test]
fn steps_that_are_not_those_of_the_database_are_refused() {
    let db = of_version_1();
    db.migrate(&migrations(3)).unwrap();
    let (before, schema) = (db.applied_migrations().unwrap(), db.schema("customer").unwrap());
    let step = |name: &str| Migrations::new().drop_table(name, "customer");
    let other = step("levels").drop_table("by colour", "customer").drop_table("more", "customer");
    let long = "n".repeat(256);
    for (migrations, text) in [
        (migrations(1), "at version 3, and the program has 1 steps, without \"by level\""),
        (Migrations::new(), "at version 3, and the program has 0 steps, without \"levels\""),
        (other, "step 2 is \"by level\" in the database and \"by colour\" in the program"),
        (migrations(3).drop_table("levels", "customer"), "step 4 has the name of an earlier one, \"levels\""),
        (migrations(3).drop_table("", "customer"), "step 4 has no name"),
        (migrations(3).drop_table(long, "customer"), "step 4 has no name of 1 to 255 bytes"),
    ] {
        for refused in [db.migrate(&migrations).map(drop), db.pending_migrations(&migrations).map(drop)] {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, Error::InvalidMigrations(_)), "{refused}");
            assert!(refused.to_string().contains(text), "{refused}");
        }
    }
    assert_eq!(db.applied_migrations().unwrap(), before);
    assert_eq!(db.schema("customer").unwrap(), schema);
}

#[test]
fn a_step_without_its_table_has_nothing_to_do() {
    let db = in_memory();
    db.table::<Visit>().unwrap();
    let migrations = migrations(2).drop_index("no index", "nobody", "by_name").drop_table("gone", "nobody");
    let applied = db.migrate(&migrations).unwrap();
    assert!(applied.iter().all(|step| step.outcome == MigrationOutcome::TableMissing));
    assert_eq!((applied.len(), version(&db)), (4, 4));
    // It is made as of the newest version.
    db.table::<Customer>().unwrap();
    assert!(db.migrate(&migrations).unwrap().is_empty());
}

#[test]
fn a_step_that_fails_is_named_and_comes_first_the_next_time() {
    let db = of_version_1();
    let missing = SchemaChange::new().drop_column("colour");
    let failed = db.migrate(&migrations(2).change_table("no colours", "customer", missing)).unwrap_err();
    let Error::MigrationFailed(step) = &failed else { panic!("{failed}") };
    assert_eq!((step.number(), step.name()), (3, "no colours"));
    assert!(matches!(step.error(), Error::UnknownColumn(_)), "{failed}");
    assert_eq!(version(&db), 2);
    // What a closure has written is undone, and its own error is found.
    let refused = || {
        migrations(2).transact("no", |db, tx| {
            db.open_dynamic_table("customer")?.delete(tx, &[1u32.into()])?;
            Err(Error::user(std::io::Error::other("a reason")))
        })
    };
    let failed = db.migrate(&refused()).unwrap_err();
    assert_eq!(failed.user_error::<std::io::Error>().unwrap().to_string(), "a reason");
    assert!(!failed.is_retryable());
    let duplicate = migrations(2).create_unique_index(
        "one of each level",
        "customer",
        "one_by_level",
        [("level", Order::Descending)],
    );
    let failed = db.migrate(&duplicate).unwrap_err();
    let Error::MigrationFailed(step) = &failed else { panic!("{failed}") };
    assert!(matches!(step.error(), Error::DuplicateKey(_)), "{failed}");
    assert_eq!(db.schema("customer").unwrap().indexes().len(), 1);
    assert_eq!(db.migrate(&migrations(STEPS)).unwrap().len(), STEPS - 2);
    check_newest(&db, 0, customers());
}

#[test]
fn a_program_that_opens_tables_before_it_migrates_is_told_so() {
    let db = in_memory();
    db.table::<Customer>().unwrap();
    let failed = db.migrate(&migrations(STEPS)).unwrap_err();
    assert!(failed.to_string().ends_with("in a new database, migrate before they are opened"), "{failed}");
    assert_eq!(version(&db), 0);
    db.table::<Customer>().unwrap();
}

/// Whether the error of a program with these first steps, which has opened its table before, says that it had better not.
fn is_told_to_migrate_first(first: Migrations) -> bool {
    let db = in_memory();
    db.table::<Customer>().unwrap();
    let failed = db.migrate(&first).unwrap_err();
    assert!(matches!(&failed, Error::MigrationFailed(step) if step.number() == 1), "{failed}");
    failed.to_string().ends_with("migrate before they are opened")
}

#[test]
fn only_steps_that_meet_what_later_ones_make_are_told_to_come_first() {
    let change = |change| Migrations::new().change_table("change", "customer", change);
    let column = |name: &str| SchemaChange::new().add(name, ColumnType::U8, 1u8);
    let index =
        |on| Migrations::new().create_index("index", "customer", "by_level", [(on, Order::Ascending)]);
    let later: [Migrations; 7] = [
        change(column("level")),
        change(SchemaChange::new().rename("name", "full_name")),
        change(SchemaChange::new().allow_null("level")),
        change(SchemaChange::new().order(["id", "full_name"])),
        index("level"),
        Migrations::new().create_table("again", Customer1::schema().clone()),
        Migrations::new().drop_index("no names", "customer", "by_name"),
    ];
    later.into_iter().for_each(|first| assert!(is_told_to_migrate_first(first)));
    let wrong: [Migrations; 3] = [
        change(SchemaChange::new().add("wide", ColumnType::U8, 1000u32)),
        change(column(&"n".repeat(300))),
        Migrations::new().transact("of no step", |db, tx| {
            let customers = db.open_dynamic_table("customer")?;
            customers.scan().columns(&["colour"])?.collect(tx).map(drop)
        }),
    ];
    wrong.into_iter().for_each(|first| assert!(!is_told_to_migrate_first(first)));
}

#[test]
fn a_panic_in_a_step_leaves_the_step_and_the_others_turn() {
    let db = of_version_1();
    let panics = migrations(1).run("panics", |_| panic!("in a step"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| db.migrate(&panics)));
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "in a step");
    assert_eq!(version(&db), 1);
    assert_eq!(db.migrate(&migrations(3)).unwrap().len(), 2);
}

#[test]
fn migrations_within_requests_and_steps_are_refused() {
    let db = of_version_1();
    let inside = db.transact(|_| db.migrate(&migrations(1)));
    assert!(matches!(inside, Err(Error::NestedRequest(NestedCall::ChangeInRequest))));
    let nested = migrations(1).run("nested", |db| db.migrate(&migrations(1)).map(drop));
    let failed = db.migrate(&nested).unwrap_err();
    let Error::MigrationFailed(step) = &failed else { panic!("{failed}") };
    assert!(matches!(step.error(), Error::NestedRequest(NestedCall::MigrationInStep)), "{failed}");
    // To look is allowed anywhere.
    let versions = Migrations::new().transact("levels", |_, _| Ok(())).transact("looks", |db, _| {
        assert_eq!(db.migration_version()?, 1);
        Ok(())
    });
    let other = of_version_1();
    other.migrate(&versions).unwrap();
    assert_eq!(db.transact(|_| db.migration_version()).unwrap(), 1);
}

#[test]
fn of_two_that_migrate_at_once_one_does() {
    let db = of_version_1();
    let runs = Arc::new(AtomicU32::new(0));
    let (has_begun, begun) = mpsc::channel();
    let (comes, other_comes) = mpsc::channel::<()>();
    let other_comes = std::sync::Mutex::new(other_comes);
    let slow = {
        let runs = Arc::clone(&runs);
        migrations(STEPS).run("slow", move |_| {
            runs.fetch_add(1, Ordering::Relaxed);
            has_begun.send(()).unwrap();
            other_comes.lock().unwrap().recv().unwrap();
            Ok(())
        })
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| db.migrate(&slow).unwrap().len());
        begun.recv().unwrap();
        let second = scope.spawn(|| {
            comes.send(()).unwrap();
            let handle = db.clone();
            handle.migrate(&slow).unwrap().len()
        });
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (STEPS + 1, 0));
    });
    assert_eq!((runs.load(Ordering::Relaxed), version(&db)), (1, STEPS as u32 + 1));
}

#[test]
fn a_step_waits_for_transactions_and_closing_ends_the_wait() {
    let db = of_version_1();
    let mut session = db.begin().unwrap();
    let customers = db.open_table::<Customer1>().unwrap();
    customers.get(&mut session, 1).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let migrating = scope.spawn(|| {
            let migrated = db.migrate(&migrations(STEPS));
            done.store(true, Ordering::Relaxed);
            migrated
        });
        // It is not over as long as the transaction is open.
        let mut other = scope.spawn(|| db.migration_version()).join().unwrap().unwrap();
        for _ in 0..20 {
            other = other.max(scope.spawn(|| db.migration_version()).join().unwrap().unwrap());
        }
        assert!(other == 0 && !done.load(Ordering::Relaxed));
        scope.spawn(|| db.close().unwrap()).join().unwrap();
        assert!(matches!(migrating.join().unwrap(), Err(Error::Closed)));
    });
    drop(session);
}

#[test]
fn closing_ends_the_wait_for_another_that_migrates() {
    let db = of_version_1();
    let (has_begun, begun) = mpsc::channel();
    let (is_closed, closed) = mpsc::channel::<()>();
    let closed = std::sync::Mutex::new(closed);
    let slow = Migrations::new().run("slow", move |_| {
        has_begun.send(()).unwrap();
        closed.lock().unwrap().recv().unwrap();
        Ok(())
    });
    thread::scope(|scope| {
        let first = scope.spawn(|| db.migrate(&slow));
        begun.recv().unwrap();
        let second = scope.spawn(|| db.migrate(&slow));
        db.close().unwrap();
        let second = second.join().unwrap();
        is_closed.send(()).unwrap();
        assert!(matches!(second, Err(Error::Closed)), "{second:?}");
        assert!(matches!(first.join().unwrap(), Err(Error::Closed)));
    });
}

#[test]
fn a_transact_step_that_meets_a_conflict_is_applied_once() {
    let db = of_version_1();
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attempts);
    let more = |db: &Database, tx: &mut generic::Transaction<'_, Engine>, more: u8| {
        let customers = db.open_dynamic_table("customer")?;
        let key = [1u32.into()];
        let row = customers.get(tx, &key)?.expect("it is there");
        let Value::Unsigned(level) = row[2] else { panic!("{row:?}") };
        customers.update(tx, &key, &[("level", (level as u8 + more).into())])
    };
    let migrations = migrations(1).transact("one more", move |db, tx| {
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            db.open_dynamic_table("customer")?.get(tx, &[1u32.into()])?;
            let other = || db.request().retries(0).transact(|tx| more(db, tx, 10));
            let changed = thread::scope(|scope| scope.spawn(other).join().unwrap());
            assert_eq!(changed.is_ok(), !LOCKS, "{changed:?}");
        }
        more(db, tx, 1)
    });
    (0..2).for_each(|_| drop(db.migrate(&migrations).unwrap()));
    let (expected_attempts, level) = if LOCKS { (1, 2u8) } else { (2, 12) };
    assert_eq!(attempts.load(Ordering::Relaxed), expected_attempts);
    let customers = db.open_dynamic_table("customer").unwrap();
    let row = db.transact(|tx| customers.get(tx, &[1u32.into()])).unwrap().unwrap();
    assert_eq!((&row[2], version(&db)), (&level.into(), 2));
}

#[test]
fn a_name_of_the_system_stays_with_it() -> Result<()> {
    let db = of_version_1();
    db.migrate(&migrations(1))?;
    assert_eq!(db.list_tables()?, ["customer"]);
    assert!(matches!(db.open_dynamic_table("ensilo.migrations"), Err(Error::UnknownTable(_))));
    assert!(matches!(db.drop_table("ensilo.migrations"), Err(Error::UnknownTable(_))));
    for step in [
        migrations(1).drop_table("notes go", "ensilo.migrations"),
        migrations(1).change_table("notes change", "ensilo.other", SchemaChange::new()),
    ] {
        let failed = db.migrate(&step).unwrap_err();
        let Error::MigrationFailed(step) = &failed else { panic!("{failed}") };
        assert!(matches!(step.error(), Error::InvalidSchema(_)), "{failed}");
    }
    assert_eq!(version(&db), 1);
    Ok(())
}
