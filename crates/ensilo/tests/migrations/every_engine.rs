//! The tests of every engine: compiled for each of them, which is that of the module above.

mod crashes;
mod rewriting;
mod steps;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ensilo::disk::Disk;
use ensilo::{ColumnType, Error, MigrationOutcome, Options, Order, Result, Row, SchemaChange, generic};
use ensilo_test_disk::SimulatedDisk;

use super::{Engine, LOCKS};

type Database = generic::Database<Engine>;
type Migrations = generic::Migrations<Engine>;

fn in_memory() -> Database {
    let options = Options::default().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(4);
    options.in_memory_with().unwrap()
}

/// Versions of a program. Version 1 has a table of customers; then they get another name and an index, and visits come, which get another key.
mod versions {
    use ensilo::Row;

    #[derive(Row)]
    #[row(table = "customer")]
    pub(super) struct Customer1 {
        #[row(key)]
        pub(super) id: u32,
        pub(super) name: String,
    }

    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "customer", index(name = "by_level", columns(level)))]
    pub(super) struct Customer {
        #[row(key)]
        pub(super) id: u32,
        pub(super) full_name: String,
        pub(super) level: u8,
    }

    #[derive(Row)]
    #[row(table = "visit")]
    pub(super) struct Visit {
        #[row(key)]
        pub(super) at: u64,
        pub(super) page: u32,
    }

    #[derive(Row)]
    #[row(table = "page_visit")]
    pub(super) struct PageVisit {
        #[row(key)]
        pub(super) page: u32,
        #[row(key)]
        pub(super) at: u64,
    }
}

use versions::{Customer, Customer1, PageVisit, Visit};

/// The first steps of the program of the newest version.
fn migrations(steps: usize) -> Migrations {
    let levels = SchemaChange::new().rename("name", "full_name").add("level", ColumnType::U8, 1u8);
    let mut migrations = Migrations::new();
    for step in 0..steps {
        migrations = match step {
            0 => migrations.change_table("levels", "customer", levels.clone()),
            1 => migrations.create_index("by level", "customer", "by_level", [("level", Order::Ascending)]),
            2 => migrations.transact("customer 2 has level 2", |db, tx| {
                let customers = db.open_dynamic_table("customer")?;
                customers.update(tx, &[2u32.into()], &[("level", 2u8.into())])
            }),
            3 => migrations.create_table("visits by page", PageVisit::schema().clone()),
            4 => migrations.transact_while("visits move", |db, tx| {
                let (from, to) = match db.open_table::<Visit>() {
                    Err(Error::UnknownTable(_)) => return Ok(false),
                    from => (from?, db.open_table::<PageVisit>()?),
                };
                let batch = from.scan().limit(10);
                for Visit { at, page } in batch.clone().rows(tx)? {
                    to.insert(tx, &PageVisit { page, at })?;
                }
                Ok(batch.delete(tx)? > 0)
            }),
            _ => migrations.drop_table("visits by time go", "visit"),
        };
    }
    migrations
}

const STEPS: usize = 6;

/// Leaves a database as the first version does.
fn make_version_1(db: &Database) {
    let customers = db.table::<Customer1>().unwrap();
    let named = |id: u32| Customer1 { id, name: format!("customer {id}") };
    db.transact(|tx| (0..5).try_for_each(|id| customers.insert(tx, &named(id)).map(drop))).unwrap();
}

/// A database in memory, as the first version has left it.
fn of_version_1() -> Database {
    let db = in_memory();
    make_version_1(&db);
    db
}

fn customers() -> Vec<Customer> {
    let level = |id| if id == 2 { 2 } else { 1 };
    (0..5).map(|id| Customer { id, full_name: format!("customer {id}"), level: level(id) }).collect()
}

fn version(db: &Database) -> u32 {
    db.migration_version().unwrap()
}

/// The database has what the newest version of the program expects, and its rows.
fn check_newest(db: &Database, visits: usize, rows: Vec<Customer>) {
    let customers = db.table::<Customer>().unwrap();
    let page_visits = db.table::<PageVisit>().unwrap();
    db.transact(|tx| {
        assert_eq!(customers.scan().rows(tx)?, rows);
        assert_eq!(page_visits.scan().count(tx)?, visits);
        Ok(())
    })
    .unwrap();
    assert_eq!(db.list_tables().unwrap(), ["customer", "page_visit"]);
    assert_eq!(version(db), STEPS as u32);
    assert!(db.migrate(&migrations(STEPS)).unwrap().is_empty());
}
