//! Random statements on a database that is loading, compared with a map.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::*;

/// Numbers that look random, by a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 20) % u64::from(end)) as u32
    }
}

const KEYS: u32 = 2400;

/// What the items are to be.
type Model = BTreeMap<u32, Item>;

fn items_of(db: &Database) -> Model {
    all_items(db).into_iter().map(|item| (item.id, item)).collect()
}

/// Makes a random statement, in a transaction of its own, and compares what it finds.
fn step(db: &Database, table: &Table<Item>, model: &mut Model, random: &mut Random) {
    let id = random.below(KEYS + 20);
    let count = i64::from(random.below(1000));
    match random.below(9) {
        0 => {
            let inserted = db.transact(|tx| table.insert(tx, &Item { count, ..item(id) }));
            assert_eq!(inserted.is_err(), model.contains_key(&id), "{id}");
            model.entry(id).or_insert_with(|| Item { count, ..item(id) });
        }
        1 => {
            assert_eq!(db.transact(|tx| table.delete(tx, id)).unwrap(), model.remove(&id).is_some(), "{id}");
        }
        2 => {
            let updated = db.transact(|tx| table.update(tx, id, |row: &mut Count| row.count = count));
            assert_eq!(updated.is_ok(), model.contains_key(&id), "{id}");
            model.entry(id).and_modify(|item| item.count = count);
        }
        3 => {
            db.transact(|tx| table.upsert(tx, &Item { count, ..item(id) })).unwrap();
            model.insert(id, Item { count, ..item(id) });
        }
        4 => {
            let keys: Vec<u32> = (0..20).map(|_| random.below(KEYS)).collect();
            let found = db.transact(|tx| table.get_many(tx, &keys)).unwrap();
            assert!(found.iter().map(Option::as_ref).eq(keys.iter().map(|id| model.get(id))));
        }
        5 => assert_eq!(db.read(|tx| table.get(tx, id)).unwrap().as_ref(), model.get(&id), "{id}"),
        6 | 7 => scan(db, table, model, random),
        _ => {
            let taken = db.transact(|tx| table.range(id..).take_first(tx)).unwrap();
            let first = model.range(id..).next().map(|(&id, _)| id);
            assert_eq!(taken.map(|(id, _)| id), first);
            first.map(|id| model.remove(&id));
        }
    }
}

/// Scans a random range in a random direction, and now and then by a snapshot.
fn scan(db: &Database, table: &Table<Item>, model: &Model, random: &mut Random) {
    let bound = |random: &mut Random| match random.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(random.below(KEYS)),
        _ => Bound::Included(random.below(KEYS)),
    };
    let (low, high) = (bound(random), bound(random));
    let (is_reverse, limit) = (random.below(2) == 0, 1 + random.below(60) as usize);
    let range = || {
        let scan = table.range((low, high)).limit(limit);
        if is_reverse { scan.reverse() } else { scan }
    };
    let found = match random.below(3) {
        0 => {
            let request = db.request().max_staleness(Duration::ZERO);
            request.read_stale(|tx| range().rows(tx)).unwrap()
        }
        1 => db.read(|tx| range().rows(tx)).unwrap(),
        _ => db.transact(|tx| range().rows(tx)).unwrap(),
    };
    let is_within = |id: &u32| {
        let is_above = match low {
            Bound::Unbounded => true,
            Bound::Included(low) => *id >= low,
            Bound::Excluded(low) => *id > low,
        };
        is_above
            && match high {
                Bound::Unbounded => true,
                Bound::Included(high) => *id <= high,
                Bound::Excluded(high) => *id < high,
            }
    };
    let mut expected: Vec<_> = model.values().filter(|item| is_within(&item.id)).collect();
    if is_reverse {
        expected.reverse();
    }
    expected.truncate(limit);
    assert!(found.iter().eq(expected), "{low:?} {high:?} {is_reverse} {limit}");
}

#[test]
fn statements_on_a_table_that_is_loading_find_what_they_should() {
    let hold = Hold::new();
    for seed in 1..7 {
        let random = &mut Random(seed * 0x9e37_79b9_7f4a_7c15);
        let disk = Arc::new(SimulatedDisk::new());
        let db = open(options().checkpoint_threads(1 + seed as u32 % 3), &disk).unwrap();
        filled(&db, KEYS);
        let mut model = items_of(&db);
        let table = items(&db);
        // Some of it in the log.
        (0..60).for_each(|_| step(&db, &table, &mut model, random));
        let disk = Arc::new(disk.crash(seed));
        drop((db, table));
        let db = open(loading(), &disk).unwrap();
        let table = items(&db);
        for number in 0..250 {
            if number == 200 {
                hold.release();
            }
            step(&db, &table, &mut model, random);
        }
        db.wait_until_loaded().unwrap();
        assert_eq!(items_of(&db), model);
        let records = db.statistics().unwrap().table("item").unwrap().records;
        assert_eq!(records as usize, model.len());
        // What a crash in between leaves is whole again with the next opening, whichever.
        for options in [loading(), options()] {
            let db = open(options, &disk.crash(seed).into()).unwrap();
            assert_eq!(items_of(&db), model);
        }
        drop(db);
    }
}

#[test]
fn a_crash_while_loading_loses_nothing_again_and_again() {
    let hold = Hold::new();
    let random = &mut Random(0x1234_5678_9abc_def1);
    let mut disk = left_behind(KEYS, 2);
    let mut model = items_of(&open(options(), &disk.fork().into()).unwrap());
    for round in 0..5 {
        let db = open(loading(), &disk).unwrap();
        let table = items(&db);
        (0..40).for_each(|_| step(&db, &table, &mut model, random));
        let left = load(&db);
        assert!(left.tables_left > 0, "{left:?}");
        let after = Arc::new(disk.crash(round));
        // While held it would not end.
        hold.release();
        drop((db, table));
        disk = after;
    }
    let db = open(options(), &disk).unwrap();
    assert_eq!(items_of(&db), model);
}

/// Writers, readers and the background at the same time: no row is lost, and none is there twice.
#[test]
fn threads_and_the_background_side_by_side() {
    let hold = Hold::new();
    let disk = left_behind(4000, 2);
    let db = open(loading(), &disk).unwrap();
    let table = items(&db);
    hold.release();
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let random = &mut Random(0x5851_f42d_4c95_7f2d + number);
                let patient = || db.request().retries(u32::MAX);
                for _ in 0..300 {
                    let (from, to) = (random.below(4000), random.below(4000));
                    let transfer = patient().transact(|tx| {
                        if !table.contains(tx, from)? || !table.contains(tx, to)? {
                            return Ok(());
                        }
                        table.update(tx, from, |row: &mut Count| row.count -= 1)?;
                        table.update(tx, to, |row: &mut Count| row.count += 1)
                    });
                    transfer.unwrap();
                    let begin = random.below(3900);
                    let rows = patient().transact(|tx| table.range(begin..begin + 99).count(tx)).unwrap();
                    assert_eq!(rows, 66);
                }
            });
        }
    });
    db.wait_until_loaded().unwrap();
    let rows = all_items(&db);
    assert_eq!(rows.len(), 2666);
    assert_eq!(rows.iter().map(|item| item.count).sum::<i64>(), 2666);
    drop(db);
    let db = open(options(), &disk.kill().into()).unwrap();
    assert_eq!(all_items(&db), rows);
}
