//! Checkpoints, backups, closing, reading only and the memory limit while rows are loaded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Error, NestedCall, RecoveryProgress};

use super::*;

#[test]
fn a_checkpoint_waits_and_a_backup_does_not() {
    let hold = Hold::new();
    let disk = left_behind(2000, 1);
    let db = open(loading(), &disk).unwrap();
    let table = items(&db);
    db.transact(|tx| table.delete(tx, 1)).unwrap();
    let expected: Vec<_> = (2..2000).filter(|&id| is_key(id)).map(item).collect();
    thread::scope(|scope| {
        let checkpoint = scope.spawn(|| db.checkpoint());
        db.backup("/backup").unwrap();
        assert_eq!(load(&db).tables_left, 2);
        assert_eq!(db.statistics().unwrap().durability.unwrap().checkpoints.made, 0);
        hold.release();
        assert!(checkpoint.join().unwrap().unwrap().rows as usize >= 2 * expected.len());
    });
    assert_eq!(load(&db).tables_left, 0);
    assert_eq!(all_items(&db), expected);
    db.close().unwrap();
    drop(db);
    assert_eq!(all_items(&open(loading(), &disk).unwrap()), expected);
    let restored: Database = loading().open_with(disk as Arc<dyn Disk>, Path::new("/backup")).unwrap();
    assert_eq!(all_items(&restored), expected);
}

#[test]
fn closing_ends_a_load_and_makes_no_checkpoint_of_half_the_rows() {
    let hold = Hold::new();
    let disk = left_behind(2000, 1);
    let db = open(loading().checkpoint_at_close(true).checkpoint_log_bytes(1 << 20), &disk).unwrap();
    let table = items(&db);
    db.transact(|tx| table.update(tx, 1, |row: &mut Count| row.count = 4)).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| db.wait_until_loaded());
        let checkpoint = scope.spawn(|| db.checkpoint());
        let closing = scope.spawn(|| db.close());
        // They end without the background, which is let go for it to end as well.
        assert!(matches!(waits.join().unwrap(), Err(Error::Closed)));
        assert!(matches!(checkpoint.join().unwrap(), Err(Error::Closed)));
        hold.release();
        closing.join().unwrap().unwrap();
    });
    drop((db, table));
    let db = open(options(), &disk).unwrap();
    assert_eq!(db.statistics().unwrap().durability.unwrap().recovery.checkpoint_rows % 1333, 6);
    assert_eq!(all_items(&db).len(), 1333);
    assert_eq!(all_items(&db)[0].count, 4);
}

#[test]
fn a_load_that_is_over_lets_closing_make_its_checkpoint() {
    let hold = Hold::new();
    let disk = left_behind(500, 1);
    let db = open(loading().checkpoint_at_close(true), &disk).unwrap();
    hold.release();
    let table = items(&db);
    db.transact(|tx| table.delete(tx, 1)).unwrap();
    db.wait_until_loaded().unwrap();
    db.close().unwrap();
    drop((db, table));
    let db = open(options(), &disk).unwrap();
    assert_eq!(db.statistics().unwrap().durability.unwrap().recovery.log_writes, 0);
    assert_eq!(all_items(&db).len(), 332);
}

#[test]
fn a_database_is_read_only_and_answers_while_it_loads() {
    let hold = Hold::new();
    let disk = left_behind(2000, 2);
    let db = open(loading().read_only(true), &disk).unwrap();
    let table = items(&db);
    assert_eq!(db.transact(|tx| table.get(tx, 1000)).unwrap(), Some(item(1000)));
    assert!(load(&db).blocks_done <= 2);
    assert!(matches!(db.transact(|tx| table.delete(tx, 1000)), Err(Error::ReadOnly)));
    assert!(matches!(db.checkpoint(), Err(Error::ReadOnly)));
    let by_group = people(&db).index::<u32>("by_group").unwrap();
    let expected = (0..2000).filter(|&id| is_key(id) && id % 7 == 3).count();
    assert_eq!(db.read_stale(|tx| by_group.equal(3).count(tx)).unwrap(), expected);
    hold.release();
    db.wait_until_loaded().unwrap();
    assert_eq!(all_items(&db).len(), 1333);
    db.close().unwrap();
}

#[test]
fn rows_are_loaded_within_the_memory_limit() {
    let hold = Hold::new();
    let disk = left_behind(16_000, 1);
    let db = open(loading().memory_limit_bytes(12 << 20), &disk).unwrap();
    let table = items(&db);
    assert_eq!(db.transact(|tx| table.get(tx, 10_000)).unwrap(), Some(item(10_000)));
    let mut refused = None;
    for id in (0..16_000).filter(|&id| is_key(id)).step_by(100) {
        match db.transact(|tx| table.get(tx, id)) {
            Ok(found) => assert_eq!(found, Some(item(id))),
            Err(Error::OutOfMemory(_)) => {
                refused.get_or_insert(id);
            }
            Err(other) => panic!("{other}"),
        }
    }
    let evicts = db.statistics().unwrap().memory.evicted_rows > 0;
    assert_eq!(refused.is_none(), evicts, "more rows than the limit holds");
    // Where rows leave memory there was room for all of these.
    let Some(refused) = refused else { return };
    // Of the rows that are there some go, and others come in their place, in the end all.
    db.drop_table("person").unwrap();
    let (mut taken, began) = (0, Instant::now());
    loop {
        match db.transact(|tx| table.scan().take_first(tx)) {
            Ok(Some(_)) => taken += 1,
            Ok(None) => break,
            Err(error) => assert!(
                matches!(error, Error::OutOfMemory(_)) && began.elapsed() < Duration::from_secs(60),
                "{error}"
            ),
        }
    }
    assert_eq!(taken, 10_666);
    assert_eq!(db.transact(|tx| table.get(tx, refused)).unwrap(), None);
    hold.release();
    db.wait_until_loaded().unwrap();
}

#[test]
fn tables_with_indexes_are_loaded_within_the_memory_limit_where_rows_leave_memory() {
    if !<Engine as ensilo::Engine>::EVICTS {
        return;
    }
    let hold = Hold::new();
    let disk = left_behind(16_000, 1);
    let limited = |options: Options| options.memory_limit_bytes(10 << 20);
    let db = open(limited(loading()), &disk).unwrap();
    hold.release();
    // The first write to a table with indexes waits until all of it is loaded.
    let text = Text { text: "z".repeat(1000) };
    db.transact(|tx| people(&db).update(tx, 1, |row: &mut Text| row.text.clone_from(&text.text))).unwrap();
    assert_eq!(db.statistics().unwrap().table("person").unwrap().records, 10_666);
    db.wait_until_loaded().unwrap();
    let by_name = people(&db).index::<String>("by_name").unwrap();
    for id in (2..16_000).filter(|&id| is_key(id)).step_by(37) {
        let found = db.transact(|tx| by_name.get(tx, format!("name {id}")));
        assert_eq!(found.unwrap(), Some(person(id)));
    }
    assert!(db.statistics().unwrap().memory.evicted_rows > 0);
    db.checkpoint().unwrap();
    drop(db);
    let db = open(limited(options()), &Arc::new(disk.kill())).unwrap();
    let people = db.open_dynamic_table("person").unwrap();
    let check = db.read_stale(|tx| people.check_index(tx, "by_group"));
    assert!(check.unwrap().is_whole());
}

#[test]
fn row_ids_go_on_behind_those_that_are_not_loaded() {
    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "event")]
    struct Event {
        what: String,
    }
    let _hold = Hold::new();
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options(), &disk).unwrap();
    let events = db.create_table::<Event>().unwrap();
    let event = |number: u32| Event { what: format!("{number} {}", "x".repeat(1000)) };
    let before = (0..1500).map(|number| db.transact(|tx| events.insert(tx, &event(number))).unwrap());
    let before: Vec<_> = before.collect();
    db.checkpoint().unwrap();
    let db = open(loading(), &disk.kill().into()).unwrap();
    let events = db.open_table::<Event>().unwrap();
    let new = db.transact(|tx| events.insert(tx, &event(1500))).unwrap();
    assert!(new > *before.last().unwrap());
    let load = load(&db);
    assert!(load.blocks_done < load.blocks_total, "{load:?}");
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), 1501);
}

#[test]
fn progress_is_told_while_rows_are_loaded() {
    let hold = Hold::new();
    let disk = left_behind(1000, 1);
    let (reports, reported) = std::sync::mpsc::channel();
    let db = open(loading().on_recovery(move |progress| _ = reports.send(*progress)), &disk).unwrap();
    let total = load(&db).bytes_total;
    hold.release();
    db.wait_until_loaded().unwrap();
    db.close().unwrap();
    drop(db);
    let last = reported.into_iter().last().unwrap();
    assert_eq!((last.bytes_done, last.bytes_total), (total, total));
}

/// The thread that tells of the progress is the background's: it must not wait there until that is over.
#[test]
fn a_request_without_memory_ends_in_the_hook_of_the_progress() {
    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "note")]
    struct Note {
        what: String,
    }
    let hold = Hold::new();
    let disk = left_behind(1000, 1);
    let opened = Arc::new(OnceLock::<Database>::new());
    let (outcomes, outcome) = std::sync::mpsc::channel();
    let hook = {
        let opened = Arc::downgrade(&opened);
        let is_done = AtomicBool::new(false);
        move |_: &RecoveryProgress| {
            let Some(opened) = opened.upgrade() else { return };
            let Some(db) = opened.get() else { return };
            if is_done.swap(true, Ordering::Relaxed) {
                return;
            }
            let notes = db.open_table::<Note>().unwrap();
            let note = Note { what: "x".repeat(1000) };
            let inserted = db.transact(|tx| (0..20_000).try_for_each(|_| notes.insert(tx, &note).map(drop)));
            outcomes.send((inserted, db.wait_until_loaded())).unwrap();
        }
    };
    let db = open(loading().memory_limit_bytes(10 << 20).on_recovery(hook), &disk).unwrap();
    db.create_table::<Note>().unwrap();
    opened.set(db.clone()).unwrap();
    let (inserted, waited) = outcome.recv_timeout(Duration::from_secs(60)).expect("it waits for itself");
    assert!(matches!(inserted, Err(Error::OutOfMemory(_))), "{inserted:?}");
    assert!(matches!(waited, Err(Error::NestedRequest(NestedCall::WaitInLoad))), "{waited:?}");
    hold.release();
}
