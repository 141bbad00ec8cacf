//! Callbacks on changes.

use std::fmt::Debug;
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use ensilo::generic::{Database, Table};
use ensilo::{
    Change, Columns, Engine, Error, Event, Options, Result, RowChange, SchemaChange, Subscription, Value,
};
use ensilo_test_disk::SimulatedDisk;

use super::{Account, Other, account, later, open_with, options, put};

type AccountChange = RowChange<u32, Account>;

/// Subscribes to a table, and returns what the closure is called with.
fn subscribe<E: Engine>(
    db: &Database<E>,
    accounts: &Table<Account, E>,
) -> (Subscription, Receiver<Result<AccountChange>>) {
    let (sender, receiver) = channel();
    let subscription = db.on_change(accounts.scan(), move |change| _ = sender.send(change));
    (subscription.unwrap(), receiver)
}

fn stored(id: u32, balance: i64) -> AccountChange {
    RowChange::Stored(id, account(id, balance))
}

fn next<C>(changes: &Receiver<Result<C>>) -> C {
    changes.recv().unwrap().unwrap()
}

fn expect<C: Debug + PartialEq>(changes: &Receiver<Result<C>>, expected: impl IntoIterator<Item = C>) {
    expected.into_iter().for_each(|change| assert_eq!(next(changes), change));
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

pub(super) fn a_closure_is_called_with_the_changes_of_its_range<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let others = db.table::<Other>().unwrap();
    put(&db, &accounts, 5, 1);
    let (_all, of_all) = subscribe(&db, &accounts);
    let (sender, of_range) = channel();
    let range = accounts.range(4..=5).columns::<Balance>();
    let _range = db.on_change(range, move |change| _ = sender.send(change)).unwrap();
    let (sender, of_values) = channel();
    let dynamic = db.open_dynamic_table("account").unwrap();
    let between = dynamic.scan().between(Bound::Excluded(&[5_u32.into()]), Bound::Unbounded).unwrap();
    let _values = db.on_change(between, move |change: Result<Change>| _ = sender.send(change)).unwrap();
    // What was stored before does not come, and all else in the order of the commits.
    (3..8).for_each(|id| put(&db, &accounts, id, i64::from(id)));
    expect(&of_all, (3..8).map(|id| stored(id, id.into())));
    db.transact(|tx| others.insert(tx, &Other { id: 4 })).unwrap();
    db.transact(|tx| accounts.delete(tx, 4)).unwrap();
    put(&db, &accounts, 7, 9);
    expect(&of_all, [RowChange::Deleted(4), stored(7, 9)]);
    let balance = |id, balance| RowChange::Stored(id, Balance { balance });
    expect(&of_range, [balance(4, 4), balance(5, 5), RowChange::Deleted(4)]);
    for (id, balance) in [(6, 6), (7, 7), (7, 9)] {
        let change = next(&of_values);
        assert_eq!((change.key(), change.table()), (vec![Value::from(id)], "account"));
        assert_eq!(change.row().unwrap()[1], Value::from(i64::from(balance)));
    }
    db.close().unwrap();
    assert!(of_all.recv().is_err() && of_range.recv().is_err() && of_values.recv().is_err());
}

/// Subscribes a closure that has got its first change, and waits in that call until what comes last is dropped.
fn slow_closure<E: Engine>(
    db: &Database<E>,
    accounts: &Table<Account, E>,
) -> (Subscription, Receiver<Result<AccountChange>>, Sender<()>) {
    let (sender, changes) = channel();
    let (release, gate) = channel::<()>();
    let closure = move |change: Result<AccountChange>| {
        sender.send(change).unwrap();
        let _ = gate.recv();
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    put(db, accounts, 1, 0);
    assert_eq!(next(&changes), stored(1, 0));
    (subscription, changes, release)
}

pub(super) fn of_changes_that_wait_for_a_slow_closure_it_gets_the_last_of_each_row<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let (_subscription, changes, release) = slow_closure(&db, &accounts);
    // Commits do not wait for it.
    for balance in 1..=10 {
        (1..4).for_each(|id| put(&db, &accounts, id, balance));
    }
    db.transact(|tx| accounts.delete(tx, 2)).unwrap();
    db.truncate_table("account").unwrap();
    let accounts = db.table::<Account>().unwrap();
    [9, 8, 9].into_iter().for_each(|id| put(&db, &accounts, id, id.into()));
    drop(release);
    expect(&changes, [RowChange::Emptied, stored(8, 8), stored(9, 9)]);
    for balance in 1..=10 {
        put(&db, &accounts, 1, balance);
    }
    // It comes to the last one, whatever comes before.
    while next(&changes) != stored(1, 10) {}
}

pub(super) fn a_closure_may_use_the_database_and_other_subscriptions<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let (sender, changes) = channel();
    let (inner, copies, own) = (db.clone(), accounts.clone(), Arc::new(Mutex::new(None)));
    let (ends, mut further) = (Arc::clone(&own), None);
    let closure = move |change: Result<AccountChange>| {
        let RowChange::Stored(id, row) = change.unwrap() else { return };
        if further.is_some() {
            // It ends itself, and does not wait for itself.
            let own = ends.lock().unwrap().take();
            own.into_iter().for_each(Subscription::end);
            return;
        }
        // Visible and stored, also for requests that wait for the disk and for the pool.
        assert_eq!(inner.transact(|tx| copies.get(tx, id)).unwrap(), Some(row));
        assert_eq!(inner.submit(|_| Ok(7)).unwrap().wait().unwrap(), 7);
        let sender = sender.clone();
        let of_copies = copies.range(100..);
        further = Some(inner.on_change(of_copies, move |change| _ = sender.send(change)).unwrap());
        inner.transact(|tx| copies.upsert(tx, &account(id + 100, 5))).unwrap();
    };
    let subscription = db.on_change(accounts.range(..100), closure).unwrap();
    *own.lock().unwrap() = Some(subscription);
    put(&db, &accounts, 1, 5);
    assert_eq!(next(&changes), stored(101, 5));
    put(&db, &accounts, 200, 6);
    assert_eq!(next(&changes), stored(200, 6));
    put(&db, &accounts, 2, 6);
    // The closure is gone, and with it the subscription that it had made.
    assert!(changes.recv().is_err());
    assert!(own.lock().unwrap().is_none());
}

pub(super) fn no_call_begins_once_a_subscription_is_dropped<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let (sender, calls) = channel();
    let (release, gate) = channel::<()>();
    let closure = move |change: Result<AccountChange>| {
        sender.send(change).unwrap();
        gate.recv().unwrap();
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    put(&db, &accounts, 1, 0);
    next(&calls);
    // Does not wait for the call under way, which goes on.
    drop(subscription);
    (1..10).for_each(|balance| put(&db, &accounts, 1, balance));
    release.send(()).unwrap();
    assert!(calls.recv().is_err(), "the closure was dropped");

    // The end waits for the call.
    let (has_ended, is_late) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for balance in 0..20 {
        let (seen, late) = (Arc::clone(&has_ended), Arc::clone(&is_late));
        let (sender, calls) = channel();
        let closure = move |change: Result<AccountChange>| {
            let _ = sender.send(change);
            late.fetch_or(seen.load(Ordering::SeqCst), Ordering::SeqCst);
        };
        let subscription = db.on_change(accounts.scan(), closure).unwrap();
        put(&db, &accounts, 2, balance);
        if balance % 2 == 0 {
            next(&calls);
        }
        put(&db, &accounts, 3, balance);
        subscription.end();
        has_ended.store(true, Ordering::SeqCst);
        // Nobody is left who sends.
        while calls.recv().is_ok() {}
        has_ended.store(false, Ordering::SeqCst);
    }
    assert!(!is_late.load(Ordering::SeqCst));
}

pub(super) fn a_panic_ends_one_call_and_is_reported<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let options = options(1 << 20).on_event(move |event| sender.lock().unwrap().send(event.clone()).unwrap());
    let (db, accounts) = open_with::<E>(&disk, options);
    let (sender, changes) = channel();
    let closure = move |change: Result<AccountChange>| match change.unwrap() {
        RowChange::Deleted(id) => panic!("planted {id}"),
        change => sender.send(Ok(change)).unwrap(),
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    put(&db, &accounts, 1, 5);
    expect(&changes, [stored(1, 5)]);
    db.transact(|tx| accounts.delete(tx, 1)).unwrap();
    put(&db, &accounts, 2, 6);
    expect(&changes, [stored(2, 6)]);
    assert_eq!((subscription.panics(), subscription.is_over()), (1, false));
    let event = events.recv().unwrap();
    assert!(
        matches!(&event, Event::CallbackPanicked { table, panic } if table == "account" && panic == "planted 1"),
        "{event:?}"
    );
}

pub(super) fn what_is_no_range_of_a_kept_table_is_refused<E: Engine>() {
    fn ignore<C>(_: Result<C>) {}
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    for scan in [accounts.scan().limit(3), accounts.scan().reverse()] {
        assert!(matches!(db.on_change(scan, ignore), Err(Error::InvalidOption(_))));
    }
    let dynamic = db.open_dynamic_table("account").unwrap();
    for scan in [
        dynamic.scan().by_index("by_balance").unwrap(),
        dynamic.scan().columns(&["balance"]).unwrap(),
        dynamic.scan().limit(1),
    ] {
        assert!(matches!(db.on_change(scan, ignore), Err(Error::InvalidOption(_))));
    }
    let nested = db.transact(|_| db.on_change(accounts.scan(), ignore).map(drop));
    assert!(matches!(nested, Err(Error::NestedRequest(_))));
    let in_memory = Options::default().in_memory_with::<E>().unwrap();
    let there = in_memory.table::<Account>().unwrap();
    assert!(matches!(db.on_change(there.scan(), ignore), Err(Error::UnknownTable(_))));
    assert!(matches!(in_memory.on_change(there.scan(), ignore), Err(Error::NotDurable)));
    db.drop_table("account").unwrap();
    assert!(matches!(db.on_change(accounts.scan(), ignore), Err(Error::UnknownTable(_))));
    let others = db.table::<Other>().unwrap();
    db.close().unwrap();
    assert!(matches!(db.on_change(others.scan(), ignore), Err(Error::Closed)));
    drop((accounts, dynamic, others, db));
    let (db, accounts) = open_with::<E>(&disk, Options::default());
    assert!(matches!(db.on_change(accounts.scan(), ignore), Err(Error::ChangesNotKept)));
}

pub(super) fn a_closure_is_called_with_what_becomes_of_its_table<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let others = db.table::<Other>().unwrap();
    let (subscription, changes) = subscribe(&db, &accounts);
    let (sender, of_dropped) = channel();
    let dropped = db.on_change(others.scan(), move |change| _ = sender.send(change)).unwrap();
    // Truncated and changed in columns that come back, it goes on.
    db.truncate_table("account").unwrap();
    assert_eq!(next(&changes), RowChange::Emptied);
    put(&db, &db.table().unwrap(), 1, 5);
    assert_eq!(next(&changes), stored(1, 5));
    // Dropped, it does not, also if there is another one of the name.
    db.drop_table("other").unwrap();
    let again = db.table::<Other>().unwrap();
    db.transact(|tx| again.insert(tx, &Other { id: 1 })).unwrap();
    assert!(matches!(of_dropped.recv().unwrap(), Err(Error::UnknownTable(_))));
    assert!(of_dropped.recv().is_err() && dropped.is_over());
    // Of other columns, it does not either.
    let add = SchemaChange::new().add("visits", ensilo::ColumnType::U32, 7_u32);
    let changed = db.table_with_changes::<later::Account>(&[add]).unwrap();
    let row = later::Account { id: 2, balance: 1, note: String::new(), visits: 9 };
    db.transact(|tx| changed.insert(tx, &row)).unwrap();
    assert!(matches!(changes.recv().unwrap(), Err(Error::TableChanged(_))));
    assert!(changes.recv().is_err() && subscription.is_over());
}

pub(super) fn a_closure_that_is_too_slow_gets_an_error_and_goes_on<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(0));
    let (_subscription, changes, release) = slow_closure(&db, &accounts);
    // Twice: it may read the first file to its end, which it has open.
    for _ in 0..2 {
        // That is among what is missed.
        db.truncate_table("account").unwrap();
        let accounts = db.table::<Account>().unwrap();
        let (position, mut rounds) = (db.change_position().unwrap(), 0);
        while !matches!(db.changes().after(position), Err(Error::ChangesMissed(_))) {
            put(&db, &accounts, 1, rounds);
            db.checkpoint().unwrap();
            rounds += 1;
            assert!(rounds < 10_000);
        }
    }
    drop(release);
    let missed = changes.iter().find_map(Result::err).unwrap();
    assert!(matches!(missed, Error::ChangesMissed(_)), "{missed:?}");
    put(&db, &db.table().unwrap(), 2, 77);
    while next(&changes) != stored(2, 77) {}
}

pub(super) fn a_closure_hears_of_a_table_that_is_truncated_beside_its_subscription<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = open_with::<E>(&disk, options(64 << 20));
    for round in 0..20 {
        let accounts = db.table::<Account>().unwrap();
        let (sender, changes) = channel();
        let subscribed = thread::scope(|scope| {
            let truncating = scope.spawn(|| db.truncate_table("account"));
            let subscribed = db.on_change(accounts.scan(), move |change| _ = sender.send(change));
            truncating.join().unwrap().unwrap();
            subscribed
        });
        let Ok(_subscription) = subscribed else {
            assert!(matches!(subscribed, Err(Error::TableChanged(_))), "{subscribed:?}");
            continue;
        };
        put(&db, &db.table().unwrap(), 1, round);
        while next(&changes) != stored(1, round) {}
    }
}

pub(super) fn a_database_may_be_closed_by_a_closure_and_beside_one<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let (sender, calls) = channel::<Sender<()>>();
    let closure = move |_: Result<AccountChange>| {
        let (release, gate) = channel();
        sender.send(release).unwrap();
        let _ = gate.recv();
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    put(&db, &accounts, 1, 0);
    let release = calls.recv().unwrap();
    thread::scope(|scope| {
        let closing = scope.spawn(|| db.close());
        // It waits for the call. Others are refused meanwhile.
        while db.statistics().is_ok() {
            thread::yield_now();
        }
        drop(release);
        closing.join().unwrap().unwrap();
    });
    assert!(calls.recv().is_err() && subscription.is_over());
    drop((accounts, db));

    // A job closes it, for which the closure waits.
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let (sender, calls) = channel();
    let inner = db.clone();
    let closure = move |_: Result<AccountChange>| {
        let closes = inner.clone();
        let job = inner.submit(move |_| Ok(closes.close().is_ok()));
        let _ = sender.send(job.map(|job| job.wait().is_ok()));
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    put(&db, &accounts, 1, 1);
    assert!(calls.recv().unwrap().is_ok());
    assert!(calls.recv().is_err() && subscription.is_over());
    drop((accounts, subscription));
    db.close().unwrap();
    drop(db);

    // The last handle goes in a closure, in the other one with a closure.
    for within in [true, false] {
        let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
        let (sender, calls) = channel();
        let mut last = Some(db.clone());
        let closure = move |_: Result<AccountChange>| {
            if within {
                let db = last.take().unwrap();
                db.close().unwrap();
            }
            sender.send(()).unwrap();
        };
        let subscription = db.on_change(accounts.scan(), closure).unwrap();
        put(&db, &accounts, 1, 1);
        drop((db, accounts));
        calls.recv().unwrap();
        drop(subscription);
        assert!(calls.recv().is_err());
        // It is open until then, and closed afterwards.
        while options(1 << 20)
            .log_directories(["/db/log-0", "/db/log-1"])
            .open_with::<E>(Arc::clone(&disk) as Arc<_>, "/db")
            .is_err()
        {
            thread::yield_now();
        }
    }
}

/// Runs something when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

pub(super) fn a_closure_that_owns_the_last_handle_closes_at_its_last_error<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = open_with::<E>(&disk, options(1 << 20));
    let others = db.table::<Other>().unwrap();
    let (sender, calls) = channel();
    let (release, gate) = channel::<()>();
    let last = db.clone();
    let closure = move |change: Result<RowChange<u64, Other>>| {
        if let Err(error) = change {
            assert!(matches!(error, Error::UnknownTable(_)));
            last.close().unwrap();
        }
        sender.send(()).unwrap();
        let _ = gate.recv();
    };
    let subscription = db.on_change(others.scan(), closure).unwrap();
    db.transact(|tx| others.insert(tx, &Other { id: 1 })).unwrap();
    calls.recv().unwrap();
    db.drop_table("other").unwrap();
    drop((db, others, release));
    assert_eq!(calls.iter().count(), 1);
    subscription.end();
    while options(1 << 20)
        .log_directories(["/db/log-0", "/db/log-1"])
        .open_with::<E>(Arc::clone(&disk) as Arc<_>, "/db")
        .is_err()
    {
        thread::yield_now();
    }
}

pub(super) fn closing_ends_the_waits_for_changes_of_closures_and_jobs<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let (sender, outcomes) = channel();
    let wait_for_changes = |db: &Database<E>, sender: Sender<Result<()>>| {
        let db = db.clone();
        move || {
            let mut changes = db.changes().begin_now().unwrap();
            sender.send(Ok(())).unwrap();
            while changes.wait().map_err(|error| _ = sender.send(Err(error))).is_ok() {}
        }
    };
    let in_closure = wait_for_changes(&db, sender.clone());
    let _subscription = db.on_change(accounts.scan(), move |_| in_closure()).unwrap();
    put(&db, &accounts, 1, 1);
    assert!(outcomes.recv().unwrap().is_ok());
    let in_job = wait_for_changes(&db, sender);
    let job = db.submit(move |_| {
        in_job();
        Ok(())
    });
    let _job = job.unwrap();
    assert!(outcomes.recv().unwrap().is_ok());
    db.close().unwrap();
    let outcomes: Vec<_> = outcomes.iter().collect();
    assert!(matches!(outcomes[..], [Err(Error::Closed), Err(Error::Closed)]), "{outcomes:?}");
}

pub(super) fn a_job_of_another_database_closes_that_of_the_closure_that_waits_for_it<E: Engine>() {
    let (disk, other_disk) = (Arc::new(SimulatedDisk::new()), Arc::new(SimulatedDisk::new()));
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let (other, _) = open_with::<E>(&other_disk, options(1 << 20));
    let (sender, calls) = channel();
    let (inner, helper) = (db.clone(), other.clone());
    let closure = move |_: Result<AccountChange>| {
        let closes = inner.clone();
        let job = helper.submit(move |_| Ok(closes.close().is_ok())).unwrap();
        let _ = sender.send(job.wait().is_ok());
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    put(&db, &accounts, 1, 1);
    assert!(calls.recv().unwrap());
    assert!(calls.recv().is_err() && subscription.is_over());
    db.close().unwrap();
    other.close().unwrap();
}

pub(super) fn a_job_that_a_closure_waits_for_closes_what_is_being_closed<E: Engine>() {
    let (disk, other_disk) = (Arc::new(SimulatedDisk::new()), Arc::new(SimulatedDisk::new()));
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let (other, _) = open_with::<E>(&other_disk, options(1 << 20));
    let (begun, is_begun) = channel();
    let (inner, helper) = (db.clone(), other.clone());
    let closure = move |_: Result<AccountChange>| {
        let closes = inner.clone();
        let job = helper.submit(move |_| {
            while closes.list_tables().is_ok() {
                thread::yield_now();
            }
            Ok(closes.close().is_ok())
        });
        begun.send(()).unwrap();
        assert!(job.unwrap().wait().unwrap());
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    put(&db, &accounts, 1, 1);
    is_begun.recv().unwrap();
    db.close().unwrap();
    assert!(subscription.is_over());
    other.close().unwrap();
}

pub(super) fn the_end_of_a_subscription_waits_until_its_closure_is_dropped<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(1 << 20));
    let (sender, drops) = channel();
    let (release, gate) = channel::<()>();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&is_dropped);
    let on_drop = OnDrop(move || {
        sender.send(()).unwrap();
        let _ = gate.recv();
        noted.store(true, Ordering::SeqCst);
    });
    let closure = move |_: Result<AccountChange>| _ = &on_drop;
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    thread::scope(|scope| {
        let closing = scope.spawn(|| db.close());
        drops.recv().unwrap();
        let ending = scope.spawn(|| {
            subscription.end();
            is_dropped.load(Ordering::SeqCst)
        });
        (0..1000).for_each(|_| thread::yield_now());
        drop(release);
        assert!(ending.join().unwrap());
        closing.join().unwrap().unwrap();
    });
}

pub(super) fn a_closure_that_panics_in_its_last_call_is_called_no_more<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let (sender, calls) = channel();
    let closure = move |change: Result<AccountChange>| {
        sender.send(()).unwrap();
        panic!("planted {:?}", change.unwrap_err());
    };
    let subscription = db.on_change(accounts.scan(), closure).unwrap();
    let add = SchemaChange::new().add("visits", ensilo::ColumnType::U32, 7_u32);
    let changed = db.table_with_changes::<later::Account>(&[add]).unwrap();
    for id in 0..3 {
        let row = later::Account { id, balance: 1, note: String::new(), visits: 9 };
        db.transact(|tx| changed.insert(tx, &row)).unwrap();
    }
    assert_eq!(calls.iter().count(), 1);
    assert_eq!((subscription.panics(), subscription.is_over()), (1, true));
}

pub(super) fn changes_that_are_dropped_leave_no_waker<E: Engine>() {
    struct Ignored;
    impl Wake for Ignored {
        fn wake(self: Arc<Self>) {}
    }
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _accounts) = open_with::<E>(&disk, options(1 << 20));
    let ignored = Arc::new(Ignored);
    let waker = Waker::from(Arc::clone(&ignored));
    for _ in 0..10 {
        let mut changes = db.changes().begin_now().unwrap();
        // What opening has stored comes first, perhaps.
        while Pin::new(&mut changes).poll(&mut Context::from_waker(&waker)).is_ready() {}
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&ignored), 1);
}
