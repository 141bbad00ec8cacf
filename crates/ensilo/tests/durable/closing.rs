//! Closing while requests of every kind are under way: each ends well, and is stored, or with `Closed`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use ensilo::disk::SimulatedDisk;
use ensilo::{Database, Durability, Error, Order, Result, Table};

use crate::{Account, Event, account, accounts, all_rows, open, with_accounts};

/// A request with a number.
type Request = fn(&Database, &Table<Account>, u32) -> Result<()>;

/// Those that insert the account of their number if they end well.
const REQUESTS: [(&str, Request); 7] = [
    ("transact", |db, accounts, id| db.transact(|tx| accounts.insert(tx, &account(id))).map(drop)),
    ("visible", |db, accounts, id| {
        let request = db.request().durability(Durability::Visible);
        request.transact(|tx| accounts.insert(tx, &account(id))).map(drop)
    }),
    ("ticket", |db, accounts, id| {
        db.request().transact_with_ticket(|tx| accounts.insert(tx, &account(id)))?.1.wait()
    }),
    ("submit", |db, accounts, id| {
        let accounts = accounts.clone();
        db.submit(move |tx| accounts.insert(tx, &account(id)))?.wait().map(drop)
    }),
    ("interactive", |db, accounts, id| {
        let mut tx = db.begin()?;
        tx.with(|tx| accounts.insert(tx, &account(id)))?;
        tx.commit()
    }),
    ("read and write", |db, accounts, id| {
        db.transact(|tx| {
            accounts.get(tx, id / 2)?;
            accounts.insert(tx, &account(id)).map(drop)
        })
    }),
    ("catalog", |db, accounts, id| {
        let name = format!("events{id}");
        let events = db.create_table_named::<Event>(&name)?;
        db.transact(|tx| events.insert(tx, &Event { what: name.clone() }))?;
        db.create_index("account", &format!("by_balance{id}"), [("balance", Order::Ascending)])?;
        db.drop_index("account", &format!("by_balance{id}"))?;
        db.drop_table(&name)?;
        db.transact(|tx| accounts.insert(tx, &account(id))).map(drop)
    }),
];

/// Requests that leave no row.
const OTHERS: [(&str, Request); 3] = [
    ("snapshot", |db, accounts, _| {
        match db.snapshot(|snapshot| accounts.scan().count(snapshot)) {
            // Younger than the snapshot.
            Err(Error::UnknownTable(_) | Error::IndexNotReady(_)) => Ok(()),
            other => other.map(drop),
        }
    }),
    ("checkpoint", |db, _, _| db.checkpoint().map(drop)),
    ("backup", |db, _, id| db.backup(format!("/backup-{id}")).map(drop)),
];

/// Makes requests until one does not end well, which has to be because the database was closed.
fn run_until_closed(what: &str, mut request: impl FnMut(u32) -> Result<()>, done: &AtomicU32) -> Vec<u32> {
    for round in 0.. {
        match request(round) {
            Ok(()) => _ = done.fetch_add(1, Ordering::Relaxed),
            Err(Error::Closed) => return (0..round).collect(),
            Err(error) => panic!("{what}: {error:?}"),
        }
    }
    unreachable!("it is closed before the numbers end")
}

#[test]
fn requests_under_way_end_as_they_would_and_are_stored_or_are_told_that_the_database_is_closed() {
    for round in 0..8 {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, table) = with_accounts(&disk, 0);
        let (start, done) = (Barrier::new(REQUESTS.len() + OTHERS.len() + 1), AtomicU32::new(0));
        let kept: BTreeSet<u32> = thread::scope(|scope| {
            let (db, table, start, done) = (&db, &table, &start, &done);
            let inserting = REQUESTS.iter().enumerate().map(|(number, &(what, request))| {
                scope.spawn(move || {
                    start.wait();
                    let id = |round: u32| round * REQUESTS.len() as u32 + number as u32;
                    let well = run_until_closed(what, |round| request(db, table, id(round)), done);
                    well.into_iter().map(id).collect::<Vec<_>>()
                })
            });
            let inserting: Vec<_> = inserting.collect();
            for &(what, request) in &OTHERS {
                scope.spawn(move || {
                    start.wait();
                    run_until_closed(what, |round| request(db, table, round), done)
                });
            }
            start.wait();
            while done.load(Ordering::Relaxed) < 20 * round {
                thread::yield_now();
            }
            db.close().unwrap();
            inserting.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        drop((table, db));
        let db = open(&disk);
        let found: BTreeSet<u32> = all_rows(&db).into_iter().map(|row| row.id).collect();
        // What was refused as closed may not be there either, unless the database was closed while the answer waited for the disk.
        assert!(kept.is_subset(&found), "{:?} are not stored", kept.difference(&found).collect::<Vec<_>>());
        let refused: Vec<_> = found.difference(&kept).collect();
        assert!(refused.is_empty(), "{refused:?} were refused and are there");
    }
}

#[test]
fn a_request_that_comes_to_its_end_after_the_log_has_is_closed_only_if_it_writes() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, table) = with_accounts(&disk, 1);
    let (in_requests, closed) = (Barrier::new(3), Barrier::new(3));
    let meanwhile = || {
        in_requests.wait();
        closed.wait();
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            db.transact(|tx| {
                meanwhile();
                table.insert(tx, &account(5))
            })
        });
        let reader = scope.spawn(|| {
            db.transact(|tx| {
                meanwhile();
                table.get(tx, 0)
            })
        });
        in_requests.wait();
        db.close().unwrap();
        closed.wait();
        assert!(matches!(writer.join().unwrap(), Err(Error::Closed)));
        assert_eq!(reader.join().unwrap().unwrap(), Some(account(0)));
    });
    drop((table, db));
    assert_eq!(all_rows(&open(&disk)), [account(0)]);
}

#[test]
fn closing_from_inside_a_request_or_a_job_ends() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, table) = with_accounts(&disk, 1);
    let from_job = {
        let (db, table) = (db.clone(), table.clone());
        let closing = db.clone();
        db.submit(move |tx| {
            table.insert(tx, &account(5))?;
            closing.close()?;
            Ok(())
        })
        .unwrap()
    };
    assert!(matches!(from_job.wait(), Err(Error::Closed)));
    drop((table, db));
    let db = open(&disk);
    let table = accounts(&db);
    let from_request = db.transact(|tx| {
        table.insert(tx, &account(6))?;
        db.close()
    });
    assert!(matches!(from_request, Err(Error::Closed)));
    drop((table, db));
    assert_eq!(all_rows(&open(&disk)), [account(0)]);
}
