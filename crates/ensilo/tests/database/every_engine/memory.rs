//! The memory limit, and memory that comes back.

use std::time::{Duration, Instant};

use ensilo::{Error, Options};

use super::{Database, Event};

#[test]
fn a_transaction_that_would_pass_the_limit_fails_and_the_database_goes_on() {
    let limit = 16 << 20;
    let db: Database = Options::default()
        .epoch_interval(Duration::from_millis(1))
        .epochs_per_snapshot(2)
        .memory_limit_bytes(limit)
        .in_memory_with()
        .unwrap();
    let events = db.create_table::<Event>().unwrap();
    let event = Event { kind: 0, text: "x".repeat(1000) };
    let mut inserted = Vec::new();
    let error = loop {
        match db.transact(|tx| events.insert(tx, &event)) {
            Ok(id) => inserted.push(id),
            Err(error) => break error,
        }
    };
    let Error::OutOfMemory(place) = &error else { panic!("{error}") };
    assert_eq!(place.table(), Some("event"));
    assert!(inserted.len() > 5000, "only {} rows of 1 KB fit 16 MiB", inserted.len());
    // Reads, and updates in place, go on.
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), inserted.len());
    let statistics = db.statistics().unwrap();
    assert!(statistics.memory.mapped_bytes <= limit && statistics.memory.limit_bytes == Some(limit));
    assert_eq!(statistics.table("event").unwrap().records, inserted.len() as u64);
    assert!(statistics.table("event").unwrap().memory_bytes >= inserted.len() as u64 * 1000);
    // A dropped table gives everything back.
    db.drop_table("event").unwrap();
    let again = db.create_table::<Event>();
    let events = again.unwrap();
    let began = Instant::now();
    while db.transact(|tx| events.insert(tx, &event)).is_err() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the memory of a dropped table does not come back"
        );
        std::thread::yield_now();
    }
}

#[test]
fn deleted_rows_give_their_memory_back() {
    let db: Database = Options::default()
        .epoch_interval(Duration::from_millis(1))
        .epochs_per_snapshot(2)
        .in_memory_with()
        .unwrap();
    let events = db.create_table::<Event>().unwrap();
    let event = Event { kind: 0, text: "x".repeat(500) };
    let ids = db.transact(|tx| events.insert_many(tx, vec![&event; 2000])).unwrap();
    let full = db.statistics().unwrap().table("event").unwrap().memory_bytes;
    db.transact(|tx| ids.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))).unwrap();
    let mut rounds = 0;
    while db.statistics().unwrap().table("event").unwrap().memory_bytes > full / 10 {
        rounds += 1;
        assert!(rounds < 1_000_000, "{:?}", db.statistics().unwrap());
        db.transact(|tx| events.contains(tx, ids[0])).unwrap();
    }
    assert_eq!(db.statistics().unwrap().table("event").unwrap().records, 0);
}
