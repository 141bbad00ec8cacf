//! Indexes and tables that come and go under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ensilo::{Error, Order, Result};

use super::{Account, Database, SetOnDrop, Table, Visits, account, quick, with_accounts};

/// Inserts, deletes and changes random rows until it is to stop, and once at least; the visits are what the tests index.
fn churn(db: &Database, accounts: &Table<Account>, seed: u64, stop: &AtomicBool) -> u64 {
    let mut random = seed;
    let mut commits = 0;
    while commits == 0 || !stop.load(Ordering::Relaxed) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (id, visits) = ((random >> 33) as u32 % 400, (random >> 20) as u32 % 50);
        let result: Result<()> = db.transact(|tx| match random >> 61 {
            0 | 1 => accounts.delete(tx, id).map(|_| ()),
            2 | 3 => accounts.update(tx, id, |columns: &mut Visits| columns.visits = visits),
            _ => accounts.upsert(tx, &Account { visits, ..account(id) }),
        });
        match result {
            Ok(()) => commits += 1,
            Err(Error::MissingRow(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    commits
}

/// The index has exactly the table's rows, under their present keys.
fn check_index(db: &Database, accounts: &Table<Account>, name: &str) {
    let index = accounts.index::<u32>(name).unwrap();
    // What was read counts once the transaction has committed, and is not looked at before.
    // So long a one seldom gets between two of those that write.
    let (rows, by_index, count) = db
        .request()
        .retries(1_000_000)
        .transact(|tx| Ok((accounts.scan().rows(tx)?, index.scan().rows(tx)?, index.scan().count(tx)?)))
        .unwrap();
    let pair = |row: &Account| (row.visits, row.id);
    let mut by_table: Vec<_> = rows.iter().map(pair).collect();
    by_table.sort_unstable();
    assert_eq!(by_index.iter().map(pair).collect::<Vec<_>>(), by_table);
    assert_eq!(count, by_table.len());
}

#[test]
fn an_index_built_under_load_is_complete_and_stays_so() {
    let (db, accounts) = with_accounts(400);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (db, accounts, stop) = (&db, &accounts, &stop);
        let at_end = SetOnDrop(stop);
        let workers: Vec<_> =
            (0..2).map(|seed| scope.spawn(move || churn(db, accounts, seed, stop))).collect();
        for round in 0..15 {
            let name = format!("by_visits_{}", round % 2);
            db.create_index("account", &name, [("visits", Order::Ascending)]).unwrap();
            check_index(db, accounts, &name);
            if round % 2 == 1 {
                check_index(db, accounts, "by_visits_0");
                db.drop_index("account", "by_visits_0").unwrap();
                db.drop_index("account", "by_visits_1").unwrap();
            }
        }
        drop(at_end);
        for worker in workers {
            assert!(worker.join().unwrap() > 0);
        }
    });
    check_index(&db, &accounts, "by_visits_0");
    let counts = db.statistics().unwrap();
    let table = counts.table("account").unwrap();
    assert!(table.indexes.iter().all(|index| index.records == table.records && index.is_ready), "{table:?}");
}

#[test]
fn a_unique_index_built_under_load_holds_from_then_on() {
    let (db, accounts) = with_accounts(0);
    let (stop, pause) = (AtomicBool::new(false), AtomicBool::new(false));
    // Every row's visits equal its id, except that two rows now and then fight for one number.
    let insert = |id: u32, visits: u32| {
        db.transact(|tx| accounts.upsert(tx, &Account { visits, ..account(id) })).map_err(|error| match error
        {
            Error::DuplicateKey(_) => (),
            error => panic!("{error}"),
        })
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut id = 0;
            while !stop.load(Ordering::Relaxed) {
                // A look at all rows beside it might never end.
                if pause.load(Ordering::Relaxed) {
                    thread::yield_now();
                    continue;
                }
                id += 1;
                let _ = insert(id % 300, id % 300);
                if id.is_multiple_of(64) {
                    let _ = insert(1000 + id % 10, id % 300);
                    db.transact(|tx| accounts.delete(tx, 1000 + id % 10)).unwrap();
                }
            }
        });
        let at_end = SetOnDrop(&stop);
        let mut built = 0;
        while built < 5 {
            match db.create_unique_index("account", "by_visits", [("visits", Order::Ascending)]) {
                Ok(()) => {
                    built += 1;
                    pause.store(true, Ordering::Relaxed);
                    db.transact(|tx| {
                        let mut visits: Vec<_> =
                            accounts.scan().rows(tx)?.iter().map(|row| row.visits).collect();
                        let rows = visits.len();
                        visits.sort_unstable();
                        visits.dedup();
                        assert_eq!(visits.len(), rows, "two rows have the same visits");
                        Ok(())
                    })
                    .unwrap();
                    check_index(&db, &accounts, "by_visits");
                    pause.store(false, Ordering::Relaxed);
                    db.drop_index("account", "by_visits").unwrap();
                }
                // Two rows had the same number just then.
                Err(Error::DuplicateKey(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        drop(at_end);
        writer.join().unwrap();
    });
}

#[test]
fn a_table_dropped_under_load_is_unknown_and_its_name_is_free() {
    let db = quick();
    for _ in 0..20 {
        let accounts = db.create_table::<Account>().unwrap();
        thread::scope(|scope| {
            let workers: Vec<_> = (0..2u32)
                .map(|worker| {
                    let (db, accounts) = (&db, &accounts);
                    scope.spawn(move || {
                        for number in 0.. {
                            let id = number % 100 * 2 + worker;
                            let result = db.transact(|tx| {
                                accounts.upsert(tx, &account(id))?;
                                accounts.delete(tx, id + 4).map(|_| ())
                            });
                            match result {
                                Ok(()) => {}
                                Err(Error::UnknownTable(name)) => {
                                    assert_eq!(&*name, "account");
                                    return;
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    })
                })
                .collect();
            while db.statistics().unwrap().table("account").unwrap().records < 50 {
                thread::yield_now();
            }
            db.drop_table("account").unwrap();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }
    let system_only = db.list_tables().unwrap();
    assert!(system_only.is_empty());
}

#[test]
fn an_index_of_a_table_that_is_dropped_meanwhile_is_given_up() {
    for _ in 0..20 {
        let (db, _) = with_accounts(300);
        thread::scope(|scope| {
            let builder =
                scope.spawn(|| db.create_index("account", "by_visits", [("visits", Order::Ascending)]));
            db.drop_table("account").unwrap();
            let built = builder.join().unwrap();
            assert!(matches!(built, Ok(()) | Err(Error::UnknownTable(_))), "{built:?}");
        });
    }
}
