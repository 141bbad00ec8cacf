//! Closing while requests of every kind are under way: each ends well, and is stored, or with `Closed`.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use ensilo::{Durability, Error, Order, Result};
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::{
    Account, Database, Event, Table, account, accounts, all_rows, open, open_with, options, with_accounts,
};

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
        loop {
            let mut tx = db.begin()?;
            match tx.with(|tx| accounts.insert(tx, &account(id))).and_then(|_| tx.commit()) {
                // An index is being dropped, or the row's place is locked: nobody but the caller runs it again.
                Err(Error::Aborted(_)) => {}
                outcome => return outcome,
            }
        }
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
        match db.read_stale(|snapshot| accounts.scan().count(snapshot)) {
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
fn requests_under_way_are_stored_or_end_as_closed() {
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
fn after_the_log_has_ended_only_requests_that_write_are_refused() {
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

#[test]
fn who_closes_while_another_one_does_waits_until_all_is_stored() {
    const CLOSERS: usize = 4;
    let disk = Arc::new(SimulatedDisk::new());
    let options = options().checkpoint_at_close(true);
    let db = open_with(options.clone().durability(Durability::Visible), &disk).unwrap();
    let table = db.create_table::<Account>().unwrap();
    for id in 0..1000 {
        db.transact(|tx| table.insert(tx, &account(id))).unwrap();
    }
    let start = Barrier::new(CLOSERS);
    thread::scope(|scope| {
        for _ in 0..CLOSERS {
            scope.spawn(|| {
                start.wait();
                db.close().unwrap();
                let rows = all_rows(&open_with(options.clone().read_only(true), &disk).unwrap());
                assert_eq!(rows.len(), 1000);
            });
        }
    });
}

#[test]
fn a_job_under_way_ends_as_it_would_however_many_close() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, table) = with_accounts(&disk, 1);
    let (begun, closed) = (mpsc::channel(), mpsc::channel());
    let job = {
        let table = table.clone();
        db.submit(move |tx| {
            begun.0.send(()).unwrap();
            // One that closes and does not wait for this job would be done soon.
            let _ = closed.1.recv_timeout(Duration::from_millis(500));
            table.insert(tx, &account(1)).map(drop)
        })
    };
    begun.1.recv().unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                db.close().unwrap();
                let _ = closed.0.send(());
            });
        }
    });
    job.unwrap().wait().unwrap();
    drop((table, db));
    assert_eq!(all_rows(&open(&disk)), [account(0), account(1)]);
}

/// Closes the database when it wakes, and reports that it has.
struct Closes(Database, mpsc::SyncSender<()>);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        self.0.close().unwrap();
        self.1.send(()).unwrap();
    }
}

#[test]
fn a_waker_of_a_job_that_closing_drops_may_close() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let (begun, woken) = (mpsc::channel(), mpsc::sync_channel(1));
    let running = db.submit(move |_| {
        begun.0.send(()).unwrap();
        woken.1.recv().unwrap();
        Ok(())
    });
    begun.1.recv().unwrap();
    let mut dropped = pin!(db.submit(|_| Ok(())).unwrap());
    let waker = Waker::from(Arc::new(Closes(db.clone(), woken.0)));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    db.close().unwrap();
    running.unwrap().wait().unwrap();
    let polled = dropped.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(Err(Error::Closed))), "{polled:?}");
}

/// Opens the database as soon as nobody holds it any more.
fn open_when_closed(disk: &Arc<SimulatedDisk>) -> Database {
    loop {
        match open_with(options(), disk) {
            Err(Error::Open(_)) => thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}

#[test]
fn closing_from_a_hook_ends() {
    let disk = Arc::new(SimulatedDisk::new());
    let held: Arc<Mutex<Option<Database>>> = Arc::default();
    let closing = Arc::clone(&held);
    let options = options().on_event(move |event| {
        if matches!(event, ensilo::Event::LogFailed { .. }) {
            closing.lock().unwrap().as_ref().unwrap().close().unwrap();
        }
    });
    let db = open_with(options, &disk).unwrap();
    let table = db.create_table::<Account>().unwrap();
    db.transact(|tx| table.insert(tx, &account(1))).unwrap();
    *held.lock().unwrap() = Some(db.clone());
    disk.set_faults(Faults { sync_error_at: Some(1), ..Faults::default() });
    while db.transact(|tx| table.upsert(tx, &account(2))).is_ok() {}
    disk.set_faults(Faults::default());
    assert_eq!(all_rows(&open_when_closed(&disk))[0], account(1));
}

/// Drops what it holds when it wakes.
struct DropsDatabase(Mutex<Option<Database>>);

impl Wake for DropsDatabase {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
fn a_waker_may_drop_the_last_handle() {
    let disk = Arc::new(SimulatedDisk::new());
    // Longer than it takes to poll the ticket once.
    let options = options().checkpoint_at_close(true).epoch_interval(Duration::from_secs(1));
    let db = open_with(options, &disk).unwrap();
    let table = db.create_table::<Account>().unwrap();
    let (_, ticket) = db.request().transact_with_ticket(|tx| table.insert(tx, &account(1))).unwrap();
    let waker = Waker::from(Arc::new(DropsDatabase(Mutex::new(Some(db)))));
    let mut ticket = pin!(ticket);
    while ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        thread::yield_now();
    }
    drop(waker);
    assert_eq!(all_rows(&open_when_closed(&disk)), [account(1)]);
}
