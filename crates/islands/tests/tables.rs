//! Typed tables over several instances in threads of this process, through the public API.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ensilo::{Row, Table};
use ensilo_islands::{
    Instances, IslandDatabase, IslandError, IslandRead, IslandTable, IslandTransaction, IslandsOptions,
    Partitioning, Placement, Plan, Topology,
};

#[derive(Clone, Debug, PartialEq, Row)]
#[row(
    table = "line",
    index(name = "by_item", columns(item)),
    index(name = "by_number_in_order", unique, columns(warehouse, serial))
)]
struct Line {
    #[row(key)]
    warehouse: u16,
    #[row(key)]
    order: u32,
    item: u32,
    serial: u64,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "price")]
struct Price {
    #[row(key)]
    item: u32,
    cents: i64,
}

fn options(instances: usize) -> IslandsOptions {
    let plan =
        Plan::new(&Topology::of_this_machine().unwrap(), Instances::Count(instances), Placement::System);
    IslandsOptions::new(plan).workers(1)
}

fn line(warehouse: u16, order: u32) -> Line {
    let text = "x".repeat(order as usize % 50);
    Line { warehouse, order, item: order % 7, serial: u64::from(1000 - order), text }
}

fn lines(db: &IslandDatabase, partitioning: Partitioning<(u16, u32)>) -> IslandTable<Line> {
    let lines = db.table::<Line>(partitioning).unwrap();
    let all: Vec<Line> =
        (0..10).flat_map(|warehouse| (0..30).map(move |order| line(warehouse, order))).collect();
    db.transact(|tx| lines.insert_many(tx, &all)).unwrap();
    lines
}

/// How many rows each instance has.
fn counts<T: Row>(db: &IslandDatabase) -> Vec<usize> {
    let count = |instance: usize| {
        let (local, _) = db.islands().local(instance as u16).unwrap();
        let table: Table<T> = local.open_table().unwrap();
        local.read(|tx| table.scan().collect(tx)).unwrap().len()
    };
    (0..db.islands().instances()).map(count).collect()
}

fn partitionings() -> [Partitioning<(u16, u32)>; 4] {
    [
        Partitioning::hash_of_first(1),
        Partitioning::ranges([(3u16,), (7u16,)]),
        Partitioning::ranges([(2u16, 10u32), (2, 20)]),
        Partitioning::replicated(),
    ]
}

fn look_for(tx: &mut impl IslandRead, lines: &IslandTable<Line>) -> Result<(), IslandError> {
    assert_eq!(lines.get(tx, (4, 7))?, Some(line(4, 7)));
    assert_eq!(lines.get(tx, (4, 30))?, None);
    let many = lines.get_many(tx, &[(9, 1), (0, 99), (0, 2), (5, 29)])?;
    assert_eq!(many, [Some(line(9, 1)), None, Some(line(0, 2)), Some(line(5, 29))]);
    assert!(lines.contains(tx, (4, 7))? && !lines.contains(tx, (4, 30))?);
    assert_eq!((lines.scan().count(tx)?, lines.scan().limit(7).count(tx)?), (300, 7));
    assert_eq!(lines.prefix((3,)).count(tx)?, 30);
    let all = lines.scan().collect(tx)?;
    assert_eq!(all.len(), 300);
    assert!(all.is_sorted_by_key(|line| (line.warehouse, line.order)));
    let last = lines.range((6, 28)..(7, 1)).reverse().collect(tx)?;
    assert_eq!(last, [line(7, 0), line(6, 29), line(6, 28)]);
    assert_eq!(lines.prefix((8,)).limit(2).collect(tx)?, [line(8, 0), line(8, 1)]);
    assert_eq!(lines.prefix((8,)).reverse().first(tx)?, Some(line(8, 29)));
    assert_eq!(lines.scan().limit(0).collect(tx)?, []);
    let by_item = lines.index::<u32>("by_item")?;
    let of_item = by_item.equal(&3).collect(tx)?;
    assert_eq!(of_item.len(), 40);
    assert!(of_item.is_sorted_by_key(|line| (line.warehouse, line.order)));
    let range = by_item.range(2..=3).reverse().collect(tx)?;
    assert_eq!(range.len(), 80);
    assert!(range.is_sorted_by_key(|line| Reverse((line.item, line.warehouse, line.order))));
    let by_number = lines.index::<(u16, u64)>("by_number_in_order")?;
    assert_eq!(by_number.get(tx, &(3, 990))?, Some(line(3, 10)));
    Ok(())
}

#[test]
fn rows_are_found_wherever_they_are() {
    // Its unique index tells rows of a warehouse apart: those are together, or everything is.
    for partitioning in partitionings()
        .into_iter()
        .filter(|partitioning| *partitioning != Partitioning::ranges([(2u16, 10u32), (2, 20)]))
    {
        let db = options(3).open_database().unwrap();
        let lines = lines(&db, partitioning.clone());
        db.transact(|tx| look_for(tx, &lines)).unwrap();
        db.read(|reader| look_for(reader, &lines)).unwrap();
        let counts = counts::<Line>(&db);
        match partitioning == Partitioning::replicated() {
            true => assert_eq!(counts, [300; 3]),
            false => assert_eq!(counts.iter().sum::<usize>(), 300, "{counts:?}"),
        }
    }
}

#[test]
fn rows_are_changed_wherever_they_are() {
    for partitioning in [Partitioning::hash_of_first(1), Partitioning::replicated()] {
        let db = options(3).open_database().unwrap();
        let lines = lines(&db, partitioning);
        for warehouse in 0..10 {
            let key = (warehouse, 5);
            db.transact(|tx| {
                let taken = lines.insert(tx, &line(warehouse, 5));
                assert!(matches!(taken, Err(IslandError::DuplicateKey { index: None, .. })), "{taken:?}");
                let serial_taken = Line { serial: 1000, ..line(warehouse, 50) };
                let taken = lines.insert(tx, &serial_taken);
                assert!(matches!(&taken, Err(IslandError::DuplicateKey { index: Some(index), .. }) if index == "by_number_in_order"));
                let missing = lines.replace(tx, &line(warehouse, 50));
                assert!(matches!(missing, Err(IslandError::MissingRow { .. })), "{missing:?}");
                let changed = lines.update(tx, key, |line| line.order += 1);
                assert!(matches!(changed, Err(IslandError::Unfit(_))), "{changed:?}");
                // It goes on after each of them, and sees what it has written itself.
                lines.update(tx, key, |line| line.item = 100)?;
                assert_eq!(lines.get(tx, key)?.unwrap().item, 100);
                assert_eq!((lines.delete(tx, (warehouse, 6))?, lines.delete(tx, (warehouse, 6))?), (true, false));
                lines.upsert(tx, &line(warehouse, 40))?;
                assert_eq!(lines.prefix((warehouse,)).collect(tx)?.len(), 30);
                Ok(())
            })
            .unwrap();
        }
        let all = db.transact(|tx| lines.scan().collect(tx)).unwrap();
        assert_eq!(all.len(), 300);
        assert!(all.iter().all(|line| (line.item == 100) == (line.order == 5) && line.order != 6));
        let by_item = db.transact(|tx| lines.index::<u32>("by_item")?.equal(&100).collect(tx)).unwrap();
        assert_eq!(by_item.len(), 10);
    }
}

#[test]
fn what_a_closure_gives_up_has_not_happened() {
    let db = options(2).open_database().unwrap();
    let prices = db.table::<Price>(Partitioning::hash()).unwrap();
    let insert =
        |items: std::ops::Range<u32>| -> Vec<Price> { items.map(|item| Price { item, cents: 1 }).collect() };
    let given_up = db.transact(|tx| {
        prices.insert_many(tx, &insert(0..10))?;
        Err::<(), _>(IslandError::rollback("enough"))
    });
    assert_eq!(given_up.unwrap_err().to_string(), "enough");
    db.transact(|tx| prices.insert_many(tx, &insert(5..6))).unwrap();
    // A part of them is there: the transaction has ended.
    let taken = db.transact(|tx| match prices.insert_many(tx, &insert(0..10)) {
        Err(IslandError::DuplicateKey { .. }) => prices.insert(tx, &Price { item: 99, cents: 1 }),
        other => panic!("{other:?}"),
    });
    assert!(matches!(&taken, Err(error @ IslandError::Refused(_)) if !error.is_retryable()), "{taken:?}");
    let taken = db.transact(|tx| prices.insert_many(tx, &insert(0..10)));
    assert!(matches!(&taken, Err(IslandError::DuplicateKey { .. })), "{taken:?}");
    let swallowed = db.transact(|tx| {
        let _ = prices.insert_many(tx, &insert(0..10));
        Ok(())
    });
    assert!(matches!(swallowed, Err(IslandError::Refused(_))), "{swallowed:?}");
    let mut tx = db.begin();
    prices.insert_many(&mut tx, &insert(20..30)).unwrap();
    drop(tx);
    assert_eq!(db.transact(|tx| prices.scan().collect(tx)).unwrap(), insert(5..6));
    assert_eq!(counts::<Price>(&db).iter().sum::<usize>(), 1);
}

/// Each reads what the other one writes, at two instances.
#[test]
fn write_skew_over_instances_is_rejected() {
    let db = options(2).open_database().unwrap();
    let prices = db.table::<Price>(Partitioning::ranges([(10u32,)])).unwrap();
    db.transact(|tx| prices.insert_many(tx, &[Price { item: 1, cents: 1 }, Price { item: 11, cents: 1 }]))
        .unwrap();
    let (mut first, mut second) = (db.begin(), db.begin());
    for (tx, read, written) in [(&mut first, 1, 11), (&mut second, 11, 1)] {
        assert_eq!(prices.get(tx, read).unwrap().unwrap().cents, 1);
        prices.upsert(tx, &Price { item: written, cents: 0 }).unwrap();
    }
    first.commit().unwrap();
    assert!(second.commit().is_err_and(|error| error.is_retryable()));
    let mut third = db.begin();
    assert_eq!(prices.scan().collect(&mut third).unwrap().len(), 2);
    db.transact(|tx| prices.insert(tx, &Price { item: 12, cents: 1 })).unwrap();
    // It has not seen a row at one instance, and writes at the other one.
    prices.upsert(&mut third, &Price { item: 2, cents: 1 }).unwrap();
    assert!(third.commit().is_err_and(|error| error.is_retryable()));
}

#[test]
fn statements_on_many_rows_change_all_of_them() {
    let db = options(3).open_database().unwrap();
    let prices = db.table::<Price>(Partitioning::hash()).unwrap();
    let all = |cents: i64| -> Vec<Price> { (0..30).map(|item| Price { item, cents }).collect() };
    db.transact(|tx| prices.upsert_many(tx, &all(1))).unwrap();
    db.transact(|tx| prices.upsert_many(tx, &all(2))).unwrap();
    db.transact(|tx| prices.replace_many(tx, &all(3))).unwrap();
    let (present, absent) = (Price { item: 0, cents: 4 }, Price { item: 99, cents: 4 });
    let missing = db.transact(|tx| prices.replace_many(tx, &[present.clone(), absent.clone()]));
    assert!(matches!(missing, Err(IslandError::MissingRow { .. })), "{missing:?}");
    assert_eq!(db.transact(|tx| prices.scan().collect(tx)).unwrap(), all(3));
    let homes: BTreeSet<Option<u16>> = (0..30).map(|item| prices.instance_of(item)).collect();
    assert_eq!(homes, [Some(0), Some(1), Some(2)].into());
    let shared = db.table::<Line>(Partitioning::replicated()).unwrap();
    assert_eq!(shared.instance_of((1, 1)), None);
}

/// It panics, or returns an error, where two rows do not belong together: which is at no moment so.
#[test]
fn what_a_closure_concludes_from_rows_of_different_moments_does_not_count() {
    let db = options(2).open_database().unwrap();
    let prices = db.table::<Price>(Partitioning::ranges([(1u32,)])).unwrap();
    db.transact(|tx| prices.insert_many(tx, &[Price { item: 0, cents: 50 }, Price { item: 1, cents: 50 }]))
        .unwrap();
    let is_over = AtomicBool::new(false);
    let sum = |tx: &mut IslandTransaction<'_>| -> Result<i64, IslandError> {
        let [here, there] = [0, 1].map(|item| prices.get(tx, item).map(|price| price.unwrap().cents));
        Ok(here? + there?)
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                db.transact(|tx| {
                    prices.update(tx, 0, |price| price.cents -= 1)?;
                    prices.update(tx, 1, |price| price.cents += 1)
                })
                .unwrap();
            }
        });
        for _ in 0..2000 {
            db.transact(|tx| match sum(tx)? {
                100 => Ok(()),
                other => Err(IslandError::rollback(format!("{other}"))),
            })
            .unwrap();
            db.transact(|tx| {
                // Without a message for each attempt.
                if sum(tx)? != 100 {
                    std::panic::resume_unwind(Box::new("no moment has such a sum"));
                }
                Ok(())
            })
            .unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let panics = || {
        db.transact(|tx| -> Result<(), _> { Err(sum(tx).map(|_| std::panic::resume_unwind(Box::new(7)))?) })
    };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&7));
    assert_eq!(db.transact(sum).unwrap(), 100);
}

/// What it writes is more than fits into a row of what an instance notes.
#[test]
fn large_transactions_commit_everywhere_and_are_undone_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let open = || options(2).directory(directory.path()).open_database().unwrap();
    let large = |number: u32| Line { text: "y".repeat(100_000), ..line((number % 2) as u16, number) };
    let lines = |db: &IslandDatabase| db.table::<Line>(Partitioning::ranges([(1u16,)])).unwrap();
    let all: Vec<Line> = (0..60).map(large).collect();
    {
        let db = open();
        let lines = lines(&db);
        db.transact(|tx| lines.insert_many(tx, &all)).unwrap();
        let mut attempts = 0;
        // Another transaction comes between the two reads of the first attempt.
        let sum = db.transact(|tx| {
            attempts += 1;
            let here = lines.get(tx, (0, 0))?.unwrap();
            if attempts == 1 {
                db.transact(|tx| {
                    lines.update(tx, (0, 0), |line| line.item += 10)?;
                    lines.update(tx, (1, 1), |line| line.item += 10)
                })?;
            }
            let there = lines.get(tx, (1, 1))?.unwrap();
            lines.upsert_many(tx, &all[2..])?;
            Err::<(), _>(IslandError::rollback(format!("{} and {}", here.item, there.item)))
        });
        assert_eq!((attempts, sum.unwrap_err().to_string()), (2, "10 and 11".to_owned()));
    }
    let db = open();
    let lines = lines(&db);
    let found = db.transact(|tx| lines.scan().collect(tx)).unwrap();
    assert_eq!(found.len(), 60);
    assert!(found.iter().all(|line| line.text.len() == 100_000));
}

/// Those that go to two instances hold what they have read for as long as it takes to store it.
#[test]
fn who_stays_at_one_instance_gets_through_others_that_go_to_several() {
    let directory = tempfile::tempdir().unwrap();
    let db = options(2).directory(directory.path()).open_database().unwrap();
    let prices = db.table::<Price>(Partitioning::ranges([(100u32,)])).unwrap();
    let all: Vec<Price> = (0..200).map(|item| Price { item, cents: 0 }).collect();
    db.transact(|tx| prices.insert_many(tx, &all)).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 1..3u32 {
            let (db, prices, is_over) = (&db, &prices, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    db.transact(|tx| {
                        prices.get(tx, 0)?;
                        prices.update(tx, worker, |price| price.cents += 1)?;
                        prices.update(tx, 100 + worker, |price| price.cents += 1)
                    })
                    .unwrap();
                }
            });
        }
        for _ in 0..10 {
            db.transact(|tx| prices.update(tx, 0, |price| price.cents += 1)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(db.transact(|tx| prices.get(tx, 0)).unwrap().unwrap().cents, 10);
}

#[test]
fn a_table_of_another_database_is_refused_and_one_can_be_opened_twice_at_once() {
    let (db, other) = (options(3).open_database().unwrap(), options(2).open_database().unwrap());
    let prices = db.table::<Price>(Partitioning::hash()).unwrap();
    let refused = other.transact(|tx| prices.upsert(tx, &Price { item: 1, cents: 1 }));
    assert!(
        matches!(&refused, Err(IslandError::Unfit(text)) if text.contains("another database")),
        "{refused:?}"
    );
    let refused = other.read(|reader| prices.scan().count(reader));
    assert!(matches!(refused, Err(IslandError::Unfit(_))), "{refused:?}");
    for _ in 0..20 {
        let db = options(2).open_database().unwrap();
        thread::scope(|scope| {
            let openings: Vec<_> =
                (0..4).map(|_| scope.spawn(|| db.table::<Price>(Partitioning::hash()).map(drop))).collect();
            openings.into_iter().for_each(|opening| opening.join().unwrap().unwrap());
        });
    }
}

#[test]
fn replicas_stay_the_same_whoever_writes() {
    let db = options(3).open_database().unwrap();
    let prices = db.table::<Price>(Partitioning::replicated()).unwrap();
    thread::scope(|scope| {
        for worker in 0..4u32 {
            let (db, prices) = (&db, &prices);
            scope.spawn(move || {
                for number in 0..100 {
                    let item = (worker * 7 + number) % 5;
                    db.transact(|tx| match prices.get(tx, item)? {
                        None => prices.insert(tx, &Price { item, cents: 1 }),
                        Some(price) if price.cents % 10 == 9 => {
                            prices.delete(tx, item)?;
                            prices.insert(tx, &Price { item, cents: price.cents + 1 })
                        }
                        Some(price) => prices.replace(tx, &Price { item, cents: price.cents + 1 }),
                    })
                    .unwrap();
                }
            });
        }
    });
    // At a point all decisions are carried out.
    let all = db.read(|reader| prices.scan().collect(reader)).unwrap();
    assert_eq!(all.iter().map(|price| price.cents).sum::<i64>(), 400);
    for instance in 0..3 {
        let (local, _) = db.islands().local(instance).unwrap();
        let table: Table<Price> = local.open_table().unwrap();
        let there = local.read(|tx| table.scan().collect(tx)).unwrap();
        let there: Vec<Price> = there.into_iter().map(|(_, price)| price).collect();
        assert_eq!(there, all);
    }
}

#[test]
fn a_reader_shows_all_instances_at_one_moment() {
    let db = options(3).open_database().unwrap();
    let prices = db.table::<Price>(Partitioning::hash()).unwrap();
    let all: Vec<Price> = (0..20).map(|item| Price { item, cents: 100 }).collect();
    db.transact(|tx| prices.insert_many(tx, &all)).unwrap();
    let is_over = AtomicBool::new(false);
    let move_one = |number: u32| {
        db.transact(|tx| {
            prices.update(tx, number % 20, |price| price.cents -= 1)?;
            prices.update(tx, number * 7 / 3 % 20, |price| price.cents += 1)
        })
        .unwrap();
    };
    thread::scope(|scope| {
        let mover = |from: u32| (from..).take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(move_one);
        (0..2).for_each(|from| drop(scope.spawn(move || mover(from * 1000))));
        let mut sums = BTreeSet::new();
        for read in 0..3000 {
            if read >= 30 && sums.len() > 1 {
                break;
            }
            let rows = db.read(|reader| Ok((prices.scan().collect(reader)?, prices.scan().collect(reader)?)));
            let (rows, again) = rows.unwrap();
            assert_eq!(rows, again);
            assert_eq!(rows.iter().map(|price| price.cents).sum::<i64>(), 2000);
            sums.insert(rows.iter().map(|price| price.cents).collect::<Vec<_>>());
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(sums.len() > 1, "nothing has happened meanwhile");
    });
    // What a reader's closure gives up is returned, and its snapshots are ended.
    let given_up = db.read(|_| Err::<(), _>(IslandError::rollback("enough")));
    assert!(matches!(given_up, Err(IslandError::User(_))));
}

#[test]
fn what_is_stored_is_found_again_and_nothing_else_is_taken_for_it() {
    #[derive(Row)]
    #[row(table = "price")]
    struct OtherPrice {
        #[row(key)]
        item: u32,
        cents: i64,
        text: String,
    }
    #[derive(Row)]
    #[row(table = "islands_mine")]
    struct Reserved {
        #[row(key)]
        item: u32,
    }
    let directory = tempfile::tempdir().unwrap();
    let open = || options(2).directory(directory.path()).open_database().unwrap();
    let prices: BTreeMap<u32, i64> = (0..20).map(|item| (item, i64::from(item) * 10)).collect();
    {
        let db = open();
        let table = db.table::<Price>(Partitioning::hash()).unwrap();
        let rows: Vec<Price> =
            prices.iter().map(|(item, cents)| Price { item: *item, cents: *cents }).collect();
        db.transact(|tx| table.insert_many(tx, &rows)).unwrap();
    }
    let db = open();
    let unfit = |problem: Result<(), IslandError>, what: &str| {
        let problem = problem.unwrap_err();
        assert!(matches!(problem, IslandError::Unfit(_)) && problem.to_string().contains(what), "{problem}");
    };
    unfit(db.table::<Price>(Partitioning::replicated()).map(drop), "another partitioning");
    unfit(db.table::<OtherPrice>(Partitioning::hash()).map(drop), "other columns");
    unfit(db.table::<Reserved>(Partitioning::hash()).map(drop), "islands_");
    unfit(db.table::<Price>(Partitioning::ranges([(1u32,), (2,)])).map(drop), "2 instances need 1");
    unfit(db.table::<Line>(Partitioning::hash()).map(drop), "by_number_in_order lacks");
    unfit(db.table::<Line>(Partitioning::ranges([(2u16, 10u32)])).map(drop), "by_number_in_order lacks");
    let table = db.table::<Price>(Partitioning::hash()).unwrap();
    unfit(table.index::<u32>("by_cents").map(drop), "no index by_cents");
    let stored = db.transact(|tx| table.scan().collect(tx)).unwrap();
    assert_eq!(stored.iter().map(|price| (price.item, price.cents)).collect::<BTreeMap<_, _>>(), prices);
}
