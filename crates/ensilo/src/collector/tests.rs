use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::Database;

/// Returns a database with epochs that hardly move.
fn in_memory() -> Database {
    Database::options().epoch_interval(Duration::from_secs(10)).epochs_per_snapshot(1).in_memory().unwrap()
}

#[test]
fn a_collection_that_missed_a_busy_worker_is_not_complete() {
    let db = in_memory();
    let (is_busy, may_end) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let busy = scope.spawn(|| {
            db.transact(|_| {
                is_busy.wait();
                may_end.wait();
                Ok(())
            })
        });
        is_busy.wait();
        // As often as somebody asks.
        let answers = [(); 3].map(|()| db.shared.free_memory_of_all());
        may_end.wait();
        assert_eq!(answers, [true; 3]);
        busy.join().unwrap().unwrap();
    });
    while db.shared.free_memory_of_all() {}
}

#[test]
fn workers_that_wait_in_a_request_are_not_missed() {
    let db = in_memory();
    let mut worker = db.shared.enter().unwrap();
    while db.shared.free_memory(&mut worker) {}
}
