//! Which blocks a request loads, and what it finds.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

use super::*;

#[test]
fn a_look_up_loads_the_blocks_of_its_key_alone() {
    let hold = Hold::new();
    let disk = left_behind(4000, 1);
    let db = open(loading(), &disk).unwrap();
    let items = items(&db);
    let before = load(&db);
    assert!(before.blocks_total > 20 && before.blocks_done == 0 && before.tables_left == 2, "{before:?}");
    assert_eq!(db.transact(|tx| items.get(tx, 2000)).unwrap(), Some(item(2000)));
    let parts = load(&db).blocks_done;
    assert!((1..=2).contains(&parts), "{parts}");
    // Neighbours are there as well, and those that are missing are missing.
    assert_eq!(db.transact(|tx| items.get(tx, 2001)).unwrap(), None);
    assert_eq!(db.read(|tx| items.get(tx, 2002)).unwrap(), Some(item(2002)));
    assert_eq!(db.read_stale(|tx| items.get(tx, 1999)).unwrap(), Some(item(1999)));
    assert!(load(&db).blocks_done <= 2 * parts);
    hold.release();
    db.wait_until_loaded().unwrap();
    let after = load(&db);
    assert_eq!((after.blocks_done, after.bytes_done), (after.blocks_total, after.bytes_total));
    assert_eq!((after.tables_left, after.failure), (0, None));
    assert_eq!(all_items(&db).len(), db.statistics().unwrap().table("item").unwrap().records as usize);
}

#[test]
fn the_ends_of_a_table_are_found_without_the_rest() {
    let _hold = Hold::new();
    let disk = left_behind(4000, 2);
    let db = open(loading(), &disk).unwrap();
    let items = items(&db);
    let first = db.transact(|tx| items.scan().first(tx)).unwrap();
    assert_eq!(first, Some((1, item(1))));
    let last = db.transact(|tx| items.scan().reverse().first(tx)).unwrap();
    assert_eq!(last, Some((3998, item(3998))));
    let middle = db.transact(|tx| items.range(..=2001).reverse().limit(3).collect(tx)).unwrap();
    assert_eq!(middle.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), [2000, 1999, 1997]);
    let load = load(&db);
    assert!(load.blocks_done < load.blocks_total / 2, "{load:?}");
}

#[test]
fn scans_in_both_directions_find_everything() {
    let _hold = Hold::new();
    for threads in [1, 3] {
        let disk = left_behind(4000, threads);
        let expected: Vec<_> = (0..4000).filter(|&id| is_key(id)).collect();
        let reversed: Vec<_> = expected.iter().rev().copied().collect();
        let ids = |rows: Vec<(u32, Count)>| rows.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        let opened = || {
            let db = open(loading(), &disk.kill().into()).unwrap();
            let table = items(&db);
            (db, table)
        };
        let (db, items) = opened();
        assert_eq!(ids(db.transact(|tx| items.scan().columns().collect(tx)).unwrap()), expected);
        let (db, items) = opened();
        assert_eq!(ids(db.transact(|tx| items.scan().reverse().columns().collect(tx)).unwrap()), reversed);
        let (db, items) = opened();
        assert_eq!(ids(db.read_stale(|tx| items.scan().columns().collect(tx)).unwrap()), expected);
        let (db, items) = opened();
        assert_eq!(ids(db.read(|tx| items.scan().reverse().columns().collect(tx)).unwrap()), reversed);
        let (db, items) = opened();
        let within = |low: u32, high: u32| (low..high).filter(|&id| is_key(id)).count();
        assert_eq!(db.transact(|tx| items.range(700..2300).count(tx)).unwrap(), within(700, 2300));
        assert_eq!(db.transact(|tx| items.range(3000..).count(tx)).unwrap(), within(3000, 4000));
        let keys: Vec<u32> = (0..4000).step_by(37).collect();
        let found = db.transact(|tx| items.get_many(tx, &keys)).unwrap();
        for (id, found) in keys.into_iter().zip(found) {
            assert_eq!(found, is_key(id).then(|| item(id)));
        }
    }
}

#[test]
fn what_the_log_says_is_newer() {
    let _hold = Hold::new();
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options(), &disk).unwrap();
    filled(&db, 3000);
    let mut expected: BTreeMap<_, _> = all_items(&db).into_iter().map(|item| (item.id, item)).collect();
    let table = items(&db);
    for id in (0..3000).step_by(11) {
        db.transact(|tx| {
            if id % 2 == 0 {
                table.delete(tx, id)?;
                return Ok(());
            }
            table.upsert(tx, &Item { count: 7, ..item(id) })?;
            // Words alone, behind a whole row.
            table.update(tx, id, |row: &mut Count| row.count += 1)
        })
        .unwrap();
        expected.remove(&id);
        if id % 2 != 0 {
            expected.insert(id, Item { count: 8, ..item(id) });
        }
    }
    // Deleted and there again.
    db.transact(|tx| table.insert(tx, &Item { count: 9, ..item(22) })).unwrap();
    expected.insert(22, Item { count: 9, ..item(22) });
    for seed in 0..2 {
        let db = open(loading(), &disk.crash(seed).into()).unwrap();
        let table = items(&db);
        for id in (0..3000).step_by(11) {
            assert_eq!(db.transact(|tx| table.get(tx, id)).unwrap().as_ref(), expected.get(&id), "{id}");
        }
        assert!(expected.values().eq(&all_items(&db)));
    }
}

#[test]
fn one_thread_loads_a_block_and_the_others_wait() {
    let _hold = Hold::new();
    let disk = left_behind(3000, 1);
    let db = open(loading(), &disk).unwrap();
    let items = items(&db);
    let begin = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            let (db, items, begin) = (&db, &items, &begin);
            scope.spawn(move || {
                begin.wait();
                let id = 1000 + number % 2;
                assert_eq!(db.transact(|tx| items.get(tx, id)).unwrap(), is_key(id).then(|| item(id)));
            });
        }
    });
    let rows = db.statistics().unwrap().table("item").unwrap().records;
    let load = load(&db);
    assert!(load.blocks_done <= 2 && rows <= 260 * load.blocks_done, "{load:?} {rows}");
}

#[test]
fn rows_are_taken_from_a_queue_that_is_not_loaded() {
    let _hold = Hold::new();
    let disk = left_behind(3000, 2);
    let db = open(loading(), &disk).unwrap();
    let items = items(&db);
    for id in [1, 2, 4, 5] {
        let taken = db.transact(|tx| items.scan().take_first(tx)).unwrap();
        assert_eq!(taken.map(|(id, _)| id), Some(id));
    }
    let last = db.transact(|tx| items.scan().reverse().take_first(tx)).unwrap();
    assert_eq!(last.map(|(id, _)| id), Some(2999));
    // An open session has what it has taken, and the next consumer passes it over.
    let mut session = db.begin().unwrap();
    assert_eq!(items.scan().take_first(&mut session).unwrap().map(|(id, _)| id), Some(7));
    assert_eq!(db.transact(|tx| items.scan().take_first(tx)).unwrap().map(|(id, _)| id), Some(8));
    session.commit().unwrap();
    let load = load(&db);
    assert!(load.blocks_done < load.blocks_total / 2, "{load:?}");
    let mut left = 0;
    while let Some((id, _)) = db.transact(|tx| items.range(10..1000).take_first(tx)).unwrap() {
        assert!(is_key(id));
        left += 1;
    }
    assert_eq!(left, 660);
}

#[test]
fn a_database_without_a_checkpoint_is_loaded_at_once() {
    let _hold = Hold::new();
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options(), &disk).unwrap();
    let table = db.create_table::<Item>().unwrap();
    db.transact(|tx| table.insert(tx, &item(1))).unwrap();
    let db = open(loading(), &disk.kill().into()).unwrap();
    assert_eq!(load(&db), LoadStatistics::default());
    db.wait_until_loaded().unwrap();
    assert_eq!(all_items(&db), [item(1)]);
    db.checkpoint().unwrap();
}

#[test]
fn a_new_database_can_be_opened_so() {
    let _hold = Hold::new();
    let db = open(loading(), &Arc::new(SimulatedDisk::new())).unwrap();
    filled(&db, 100);
    assert_eq!(all_items(&db).len(), 66);
}

#[cfg(feature = "lz4")]
#[test]
fn a_compressed_checkpoint_is_loaded_by_blocks_as_well() {
    let _hold = Hold::new();
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(options().checkpoint_compression(ensilo::Compression::Lz4), &disk).unwrap();
    filled(&db, 4000);
    let expected = all_items(&db);
    let db = open(loading(), &disk.kill().into()).unwrap();
    let items = items(&db);
    assert_eq!(db.transact(|tx| items.get(tx, 2000)).unwrap(), Some(item(2000)));
    let load = load(&db);
    assert!(load.blocks_done <= 2 && load.blocks_total > 20, "{load:?}");
    assert!(load.bytes_total < 2 << 20, "{load:?}");
    assert_eq!(all_items(&db), expected);
}
