//! Errors that tell something of the rows are answers, too: they wait for the disk as others do.

use std::sync::mpsc;
use std::thread;

use ensilo::{Durability, Error, JobHandle};
use ensilo_test_disk::{Faults, SyncPause};

use super::*;

/// A database with accounts 0 and 1 whose disk syncs nothing from now on, so that what follows stays undurable: account 0 is gone and
/// account 2 is there.
struct Hanging {
    db: Database,
    accounts: Table<Account>,
    disk: Arc<SimulatedDisk>,
    pause: Arc<SyncPause>,
    /// The epoch of what is not stored.
    epoch: u64,
}

impl Hanging {
    fn new() -> Self {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, accounts) = with_accounts(&disk, 2);
        db.create_table::<Event>().unwrap();
        let pause = SyncPause::new();
        disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
        let changed = db.request().transact_with_epoch(|tx| {
            assert!(accounts.delete(tx, 0)?);
            accounts.insert(tx, &account(2))
        });
        let epoch = changed.unwrap().1;
        assert!(db.durable_epoch() < Some(epoch));
        Hanging { db, accounts, disk, pause, epoch }
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        // The log is to end before the disk goes.
        self.pause.end();
    }
}

/// A request that fails on account of what is not stored.
type Refused = fn(&Table<Account>, &mut Transaction<'_>) -> Result<()>;

const REFUSED: [Refused; 4] = [
    |accounts, tx| accounts.insert(tx, &account(2)).map(|_| ()),
    |accounts, tx| accounts.update(tx, 0, |row: &mut Balance| row.balance += 1),
    |accounts, tx| match accounts.get(tx, 2)? {
        Some(_) => Err(Error::rollback("account 2 is there")),
        None => Ok(()),
    },
    |accounts, tx| match accounts.scan().count(tx)? {
        2 if !accounts.contains(tx, 0)? => Err(Error::rollback("account 0 is gone")),
        _ => Ok(()),
    },
];

fn is_expected(number: usize, error: &Error) -> bool {
    match number {
        0 => matches!(error, Error::DuplicateKey(_)),
        1 => matches!(error, Error::MissingRow(_)),
        _ => matches!(error, Error::User(_)),
    }
}

#[test]
fn an_error_is_told_when_what_it_tells_is_stored() {
    for (number, refused) in REFUSED.into_iter().enumerate() {
        let hanging = Hanging::new();
        let Hanging { db, accounts, pause, epoch, .. } = &hanging;
        let (sender, told) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let error = db.transact(|tx| refused(accounts, tx)).unwrap_err();
                sender.send((error, db.durable_epoch())).unwrap();
            });
            pause.wait_until_hanging(1);
            // Whoever does not wait has all the time to be caught.
            assert!(told.recv_timeout(Duration::from_millis(50)).is_err(), "request {number} did not wait");
            pause.end();
            let (error, durable_epoch) = told.recv().unwrap();
            assert!(is_expected(number, &error), "{error}");
            assert!(durable_epoch >= Some(*epoch), "{error} was told before its time");
        });
    }
}

#[test]
fn the_error_of_a_job_is_visible_before_it_is_done() {
    for (number, refused) in REFUSED.into_iter().enumerate() {
        let hanging = Hanging::new();
        let submit = || -> JobHandle<()> {
            let accounts = accounts(&hanging.db);
            hanging.db.submit(move |tx| refused(&accounts, tx)).unwrap()
        };
        let (handle, other) = (submit(), submit());
        while !(handle.is_visible() && other.is_visible()) {
            thread::yield_now();
        }
        assert!(!handle.is_done() && !other.is_done());
        let visible = other.durability(Durability::Visible).unwrap();
        assert!(visible.is_done());
        assert!(is_expected(number, &visible.wait().unwrap_err()));
        hanging.pause.end();
        assert!(is_expected(number, &handle.wait().unwrap_err()));
        assert!(hanging.db.durable_epoch() >= Some(hanging.epoch));
    }
}

#[test]
fn a_job_is_waited_for_at_the_level_that_its_handle_asks_for() {
    let disk = Arc::new(SimulatedDisk::new());
    drop(with_accounts(&disk, 1));
    let db = open_with(options().durability(Durability::Visible), &disk).unwrap();
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let submit = || {
        let accounts = accounts(&db);
        db.submit(move |tx| accounts.update(tx, 0, |row: &mut Balance| row.balance += 1)).unwrap()
    };
    submit().wait().unwrap();
    let stored = submit().durability(Durability::Stored).unwrap();
    while !stored.is_visible() {
        thread::yield_now();
    }
    pause.wait_until_hanging(1);
    assert!(!stored.is_done());
    pause.end();
    stored.wait().unwrap();
    // Asking for what cannot be had is refused.
    let in_memory = in_memory().submit(|_| Ok(())).unwrap();
    assert!(matches!(in_memory.durability(Durability::Stored), Err(Error::NotDurable)));
}

#[test]
fn an_error_that_tells_nothing_of_undurable_rows_waits_for_nothing() {
    let hanging = Hanging::new();
    let Hanging { db, accounts, .. } = &hanging;
    let undone = |result: Result<()>| assert!(matches!(result.unwrap_err(), Error::User(_)));
    let rollback = || Error::rollback("planned");
    undone(db.transact(|_| Err(rollback())));
    let events = db.open_table().unwrap();
    undone(db.transact(|tx| events.insert(tx, &Event { what: "any".into() }).and(Err(rollback()))));
    undone(db.transact(|tx| accounts.get(tx, 1).and(Err(rollback()))));
    undone(db.read_stale(|_| Err(rollback())));
    // One that is content with what is visible does not wait either.
    for (number, refused) in REFUSED.into_iter().enumerate() {
        let visible = db.request().durability(Durability::Visible);
        assert!(is_expected(number, &visible.transact(|tx| refused(accounts, tx)).unwrap_err()));
        let ticketed = db.request().transact_with_ticket(|tx| refused(accounts, tx));
        assert!(is_expected(number, &ticketed.unwrap_err()));
        let with_epoch = db.request().transact_with_epoch(|tx| refused(accounts, tx));
        assert!(is_expected(number, &with_epoch.unwrap_err()));
    }
    assert!(db.durable_epoch() < Some(hanging.epoch));
}

#[test]
fn what_will_never_be_stored_is_never_told() {
    let hanging = Hanging::new();
    let Hanging { db, accounts, disk, pause, .. } = &hanging;
    pause.wait_until_hanging(1);
    // Too late for the round that hangs.
    db.request().durability(Durability::Visible).transact(|tx| accounts.insert(tx, &account(3))).unwrap();
    disk.set_faults(Faults { sync_error_at: Some(1), write_error_at: Some(1), ..Faults::default() });
    pause.end();
    // Makes sure that the log has failed, if the sync that hung has gone through.
    db.transact(|tx| accounts.insert(tx, &account(4))).unwrap_err();
    let insert = |id| db.transact(|tx| accounts.insert(tx, &account(id)));
    let refused = db.request().durability(Durability::Visible).transact(|tx| accounts.delete(tx, 3));
    assert!(matches!(refused, Err(Error::LogFailed(_))), "{refused:?}");
    assert!(
        matches!(insert(3), Err(Error::LogFailed(_))),
        "3 is visible, and whether it is stored nobody knows"
    );
    // 1 was stored before.
    assert!(matches!(insert(1), Err(Error::DuplicateKey(_))));
}
