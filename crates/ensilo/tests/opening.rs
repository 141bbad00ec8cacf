//! What opening a database costs by the number of its tables: counted in bytes that are allocated, which do not depend on the machine.
//!
//! `ENSILO_OPENING_TABLES=4000 cargo test --profile quick -p ensilo --test opening -- --nocapture` also says how long so many take.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ensilo::disk::Disk;
use ensilo::ermia::Ermia;
use ensilo::generic::Database;
use ensilo::two_phase_locking::TwoPhaseLocking;
use ensilo::{ColumnType, Durability, Engine, Options, Order, Schema, Silo};
use ensilo_test_disk::SimulatedDisk;

static ALLOCATED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Counts what all threads allocate.
struct Counting;

// SAFETY: every call is passed on to the system's allocator, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED_BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `ptr` comes from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn open<E: Engine>(disk: &Arc<SimulatedDisk>) -> Database<E> {
    Options::default()
        .log_file_bytes(1 << 20)
        .log_buffers(4)
        .checkpoint_interval(Duration::from_secs(3600))
        .durability(Durability::Visible)
        .recovery_threads(1)
        .open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new("/db"))
        .unwrap()
}

/// Opens a database of so many tables with two indexes each; says what that allocated, and how long it took.
fn cost_of_opening<E: Engine>(tables: usize) -> (u64, Duration) {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open::<E>(&disk);
    for number in 0..tables {
        let schema = Schema::builder(format!("table_{number:05}"))
            .column("id", ColumnType::U32)
            .column("value", ColumnType::U32)
            .key([("id", Order::Ascending)])
            .index("one", [("value", Order::Ascending)])
            .unique_index("two", [("value", Order::Descending)])
            .build();
        db.create_dynamic_table(schema.unwrap()).unwrap();
    }
    db.close().unwrap();
    drop(db);
    let (before, start) = (ALLOCATED_BYTES.load(Ordering::Relaxed), Instant::now());
    let db = open::<E>(&disk);
    let cost = (ALLOCATED_BYTES.load(Ordering::Relaxed) - before, start.elapsed());
    assert_eq!(db.list_tables().unwrap().len(), tables);
    cost
}

/// One engine after the other: what is counted is of all threads.
#[test]
fn each_table_costs_an_opening_as_much_as_the_one_before() {
    each_table_costs_as_much::<Silo>();
    each_table_costs_as_much::<Ermia>();
    each_table_costs_as_much::<TwoPhaseLocking>();
}

fn each_table_costs_as_much<E: Engine>() {
    let [few, many, most] = [200, 400, 1600].map(|tables| cost_of_opening::<E>(tables).0);
    let (first, further) = ((many - few) / 200, (most - many) / 1200);
    println!("bytes allocated for each table: {first} of 200 to 400, {further} of 400 to 1600");
    assert!(
        further < first * 3 / 2,
        "{first} bytes for each of the first tables, {further} for further ones"
    );
    if let Ok(tables) = std::env::var("ENSILO_OPENING_TABLES") {
        for tables in [500, tables.parse().unwrap()] {
            println!("{tables} tables: {:?}", cost_of_opening::<E>(tables).1);
        }
    }
}
