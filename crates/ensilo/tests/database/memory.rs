//! The memory limit, and memory that comes back.

use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Database, Error, Options, RowId, Table};

use crate::Event;

#[test]
fn a_transaction_that_would_pass_the_limit_fails_and_the_database_goes_on() {
    let limit = 16 << 20;
    let db = Database::options()
        .epoch_interval(Duration::from_millis(1))
        .epochs_per_snapshot(2)
        .memory_limit_bytes(limit)
        .in_memory()
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
    let db = Database::options()
        .epoch_interval(Duration::from_millis(1))
        .epochs_per_snapshot(2)
        .in_memory()
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

/// A database of 16 MiB that is full, with the ids of its rows, none of which is so young that an overwrite needs no copy.
fn full(options: Options) -> (Database, Table<Event>, Vec<RowId>) {
    let db = options
        .epoch_interval(Duration::from_millis(1))
        .epochs_per_snapshot(2)
        .memory_limit_bytes(16 << 20)
        .in_memory()
        .unwrap();
    let events = db.create_table::<Event>().unwrap();
    let mut ids = Vec::new();
    let error = loop {
        match db.transact(|tx| events.insert(tx, &event(1))) {
            Ok(id) => ids.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
    while db.read_stale(|snapshot| events.scan().count(snapshot)).unwrap() < ids.len() {
        thread::yield_now();
    }
    (db, events, ids)
}

fn event(kind: u8) -> Event {
    Event { kind, text: "x".repeat(1000) }
}

/// Inserts once more, as soon as the memory of deleted rows has come back.
fn insert_again(db: &Database, events: &Table<Event>) {
    let began = Instant::now();
    while db.transact(|tx| events.insert(tx, &event(2))).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "the memory of deleted rows does not come back");
        thread::yield_now();
    }
}

#[test]
fn at_the_limit_rows_are_read_and_deleted_and_others_inserted_again() {
    let (db, events, ids) = full(Database::options());
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), ids.len());
    // What needs memory says so, and changes nothing.
    let grown = db
        .transact(|tx| events.update(tx, ids[0], |event: &mut Event| event.text.push_str(&"y".repeat(5000))));
    assert!(matches!(grown, Err(Error::OutOfMemory(_))), "{grown:?}");
    assert!(db.transact(|tx| events.insert(tx, &event(2))).is_err());
    assert_eq!(db.transact(|tx| events.get(tx, ids[0])).unwrap(), Some(event(1)));
    // One by one, in one large transaction, and rolled back.
    let (one_by_one, rest) = ids.split_at(500);
    for id in one_by_one {
        assert!(db.transact(|tx| events.delete(tx, id)).unwrap());
    }
    let rolled_back = db.transact(|tx| {
        rest.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))?;
        Err::<(), _>(Error::rollback("on second thoughts"))
    });
    assert!(matches!(rolled_back, Err(Error::User(_))), "{rolled_back:?}");
    db.transact(|tx| rest.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))).unwrap();
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), 0);
    for _ in 0..1000 {
        insert_again(&db, &events);
    }
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), 1000);
}

#[test]
fn at_the_limit_rows_are_deleted_under_a_snapshot_that_still_shows_them() {
    let (db, events, ids) = full(Database::options());
    let (opened, is_open) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    thread::scope(|scope| {
        let (db, events) = (&db, &events);
        let count = ids.len();
        scope.spawn(move || {
            db.read_stale(|snapshot| {
                opened.send(()).unwrap();
                // Until the sender is dropped.
                let _ = ended.recv();
                let mut seen = 0;
                events.scan().for_each(snapshot, |_, seen_event| {
                    assert_eq!(seen_event, event(1));
                    seen += 1;
                })?;
                assert_eq!(seen, count, "the snapshot shows what was there when it began");
                Ok(())
            })
            .unwrap();
        });
        is_open.recv().unwrap();
        for id in &ids {
            assert!(db.transact(|tx| events.delete(tx, id)).unwrap());
        }
        drop(end);
    });
    insert_again(&db, &events);
}
