//! Garbage that waits for the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_test_disk::SimulatedDisk;

use super::{DIRECTORY, Database, Event, options};

#[test]
fn deleted_rows_leave_a_tree_that_is_only_read() {
    for interval in [None, Some(Duration::from_millis(2))] {
        let mut options = options().epochs_per_snapshot(5);
        if let Some(interval) = interval {
            options = options.epoch_interval(interval);
        }
        let db: Database = options.open_with(Arc::new(SimulatedDisk::new()), DIRECTORY).unwrap();
        let events = db.create_table::<Event>().unwrap();
        let ids = db.transact(|tx| events.insert_many(tx, &vec![Event { what: "x".into() }; 2000])).unwrap();
        db.transact(|tx| ids.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))).unwrap();
        let began = Instant::now();
        while db.statistics().unwrap().memory.deleted_records > 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", db.statistics().unwrap());
            assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), 0);
        }
        db.close().unwrap();
    }
}
