//! Garbage that its maker does not free: a thread in the background does, by time.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Options, RowId, Statistics};

use super::{Database, Event, Table, in_memory};

const ROWS: usize = 30_000;

/// However slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> Options {
    Options::default().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(2)
}

fn fill(db: &Database, events: &Table<Event>) -> Vec<RowId> {
    let event = Event { kind: 0, text: "x".repeat(100) };
    db.transact(|tx| events.insert_many(tx, vec![&event; ROWS])).unwrap()
}

fn delete(db: &Database, events: &Table<Event>, ids: &[RowId]) {
    db.transact(|tx| ids.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))).unwrap();
}

/// Waits until the statistics are as wanted, while nobody but the caller's look at them uses the database.
fn wait_for(db: &Database, what: &str, holds: impl Fn(&Statistics) -> bool) {
    let began = Instant::now();
    loop {
        let statistics = db.statistics().unwrap();
        if holds(&statistics) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {statistics:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What deleted rows leave in an otherwise empty table is gone.
fn is_clean(statistics: &Statistics) -> bool {
    let memory = &statistics.memory;
    let table = statistics.table("event").unwrap().memory_bytes;
    memory.deleted_records == 0 && memory.versions == 0 && memory.retired_bytes == 0 && table < 10_000
}

#[test]
fn what_an_idle_thread_has_deleted_leaves_the_tree_while_nobody_works() {
    let db = in_memory(options());
    let events = db.create_table::<Event>().unwrap();
    let ids = fill(&db, &events);
    delete(&db, &events, &ids);
    wait_for(&db, "the deleter is idle", is_clean);
}

#[test]
fn rows_that_an_ended_thread_deleted_leave_the_idle_tree() {
    let db = in_memory(options());
    let events = db.create_table::<Event>().unwrap();
    let ids = fill(&db, &events);
    thread::scope(|scope| {
        for ids in ids.chunks(ROWS / 4) {
            scope.spawn(|| delete(&db, &events, ids));
        }
    });
    wait_for(&db, "the deleters have ended", is_clean);
}

#[test]
fn rows_that_a_pool_thread_deleted_leave_the_idle_tree() {
    let db = in_memory(options().pool_threads(2));
    let events = db.create_table::<Event>().unwrap();
    let ids = fill(&db, &events);
    let table = events.clone();
    let job = db.submit(move |tx| ids.iter().try_for_each(|id| table.delete(tx, id).map(|_| ())));
    job.unwrap().wait().unwrap();
    wait_for(&db, "the pool is idle", is_clean);
}

#[test]
fn a_count_is_not_slowed_by_rows_that_an_idle_thread_deleted() {
    let db = in_memory(options());
    let events = db.create_table::<Event>().unwrap();
    let (done, is_over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let (ready, is_deleted) = mpsc::channel();
        let (db, events) = (&db, &events);
        scope.spawn(move || {
            let ids = fill(db, events);
            delete(db, events, &ids[10..]);
            ready.send(()).unwrap();
            // Alive, and idle.
            let _ = is_over.recv();
        });
        is_deleted.recv().unwrap();
        let began = Instant::now();
        loop {
            assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), 10);
            if db.statistics().unwrap().memory.deleted_records == 0 {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{:?}", db.statistics().unwrap());
        }
        drop(done);
    });
}

#[test]
fn all_memory_of_a_dropped_table_comes_back_while_nobody_works() {
    let db = in_memory(options());
    let before = db.statistics().unwrap().memory.live_bytes;
    let events = db.create_table::<Event>().unwrap();
    let ids = fill(&db, &events);
    // Deleted rows belong to their deleter, the others to the tree.
    delete(&db, &events, &ids[..ROWS / 2]);
    db.drop_table("event").unwrap();
    wait_for(&db, "the table was dropped", |statistics| {
        let memory = &statistics.memory;
        // What is left are the rows of the catalog that have grown by one place.
        memory.deleted_records == 0 && memory.retired_bytes == 0 && memory.live_bytes < before + 10_000
    });
}

#[test]
fn a_database_is_closed_while_garbage_is_collected() {
    for _ in 0..5 {
        let db = in_memory(options());
        let events = db.create_table::<Event>().unwrap();
        let ids = fill(&db, &events);
        delete(&db, &events, &ids);
        wait_for(&db, "the deleter is idle", |statistics| statistics.memory.deleted_records < ROWS as u64);
        db.close().unwrap();
    }
}

#[test]
fn threads_with_a_row_each_share_chunks() {
    const THREADS: usize = 100;
    let db = in_memory(options());
    let events = db.create_table::<Event>().unwrap();
    let before = db.statistics().unwrap().memory.mapped_bytes;
    let all_have_written = std::sync::Barrier::new(THREADS + 1);
    let all_have_seen = std::sync::Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                db.transact(|tx| events.insert(tx, &Event { kind: 1, text: "one".into() })).unwrap();
                all_have_written.wait();
                all_have_seen.wait();
            });
        }
        all_have_written.wait();
        let taken = db.statistics().unwrap().memory.mapped_bytes - before;
        all_have_seen.wait();
        assert!(taken <= (THREADS as u64) * (96 << 10), "{} bytes each", taken / THREADS as u64);
    });
}

#[test]
fn unused_memory_of_idle_threads_goes_back_to_the_system() {
    let db = in_memory(options());
    let events = db.create_table::<Event>().unwrap();
    let event = Event { kind: 0, text: "x".repeat(1000) };
    let ids = db.transact(|tx| events.insert_many(tx, vec![&event; ROWS])).unwrap();
    let full = db.statistics().unwrap().memory.mapped_bytes;
    assert!(full > 30 << 20, "{full}");
    delete(&db, &events, &ids);
    wait_for(&db, "the deleter is idle", |statistics| statistics.memory.mapped_bytes < 12 << 20);
}

#[test]
fn at_the_limit_what_idle_threads_have_deleted_serves_others() {
    let db = in_memory(options().memory_limit_bytes(32 << 20));
    let events = db.create_table::<Event>().unwrap();
    let event = Event { kind: 0, text: "x".repeat(1000) };
    let mut ids = Vec::new();
    // A deletion takes some memory itself, for the version that snapshots see.
    while db.statistics().unwrap().memory.mapped_bytes <= 26 << 20 {
        ids.extend(db.transact(|tx| events.insert_many(tx, vec![&event; 100])).unwrap());
    }
    // Every second one: no chunk is free as a whole.
    let ids: Vec<_> = ids.into_iter().step_by(2).collect();
    let half = ids.len();
    // In steps: what one step takes comes back before the next.
    for ids in ids.chunks(50) {
        let began = Instant::now();
        while db.transact(|tx| ids.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))).is_err() {
            assert!(began.elapsed() < PATIENCE, "{:?}", db.statistics().unwrap());
            thread::yield_now();
        }
    }
    thread::scope(|scope| {
        let inserter = scope.spawn(|| {
            let began = Instant::now();
            let mut inserted = 0;
            // More than the limit leaves to new chunks.
            while inserted < half * 9 / 10 {
                match db.transact(|tx| events.insert(tx, &event)) {
                    Ok(_) => inserted += 1,
                    Err(error) => assert!(began.elapsed() < PATIENCE, "{inserted} of {half}: {error}"),
                }
            }
        });
        inserter.join().unwrap();
    });
}
