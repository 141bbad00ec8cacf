//! Tickets and handles as futures: what they leave behind.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use ensilo::{Durability, Error, NestedCall, RowStream, generic};
use ensilo_test_disk::{Faults, SimulatedDisk, SyncPause};

use super::{Engine, account, in_memory, with_accounts};

/// Counts, by the references to it, the wakers that are kept.
struct Counter;

impl Wake for Counter {
    fn wake(self: Arc<Self>) {}
}

/// Polls the future a thousand times, and returns how many wakers that left.
fn wakers_left<F: Future + Unpin>(future: &mut F, counter: &Arc<Counter>) -> usize {
    let before = Arc::strong_count(counter);
    for _ in 0..1000 {
        let waker = Waker::from(Arc::clone(counter));
        assert!(Pin::new(&mut *future).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    Arc::strong_count(counter) - before
}

#[test]
fn a_ticket_keeps_one_waker_and_none_when_it_is_dropped() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 1);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let (_, mut ticket) = db.request().transact_with_ticket(|tx| accounts.insert(tx, &account(7))).unwrap();
    let counter = Arc::new(Counter);
    assert_eq!(wakers_left(&mut ticket, &counter), 1);
    let mut other = ticket.clone();
    assert_eq!(wakers_left(&mut other, &counter), 1);
    assert_eq!(wakers_left(&mut ticket, &counter), 0);
    drop(ticket);
    assert_eq!(Arc::strong_count(&counter), 2);
    pause.end();
    other.wait().unwrap();
    let waker = Waker::from(Arc::clone(&counter));
    assert!(matches!(Pin::new(&mut other).poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(()))));
    drop((waker, other));
    // The log's thread drops the one that was woken.
    while Arc::strong_count(&counter) > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn a_read_that_need_not_be_stored_does_not_wait_for_the_disk() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 1);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let insert = db.request().durability(Durability::Visible);
    insert.transact(|tx| accounts.insert(tx, &account(7))).unwrap();
    let read = db.request().durability(Durability::Visible);
    assert!(read.read(|tx| accounts.get(tx, 7)).unwrap().is_some());
    let mut session = db.session().unwrap();
    let read = session.request().durability(Durability::Visible);
    assert!(read.read(|tx| accounts.get(tx, 7)).unwrap().is_some());
    pause.end();
    assert!(db.request().durability(Durability::Stored).read(|tx| accounts.get(tx, 7)).unwrap().is_some());
}

/// Polls the stream until it gives a row.
fn row_of<R>(rows: &mut RowStream<R>) -> R {
    loop {
        let polled = pin!(rows.next()).poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(row) = polled {
            return row.unwrap().unwrap();
        }
        std::thread::yield_now();
    }
}

#[test]
fn rows_of_a_stream_come_when_they_are_stored() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 0);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let insert = db.request().durability(Durability::Visible);
    insert.transact(|tx| accounts.insert(tx, &account(7))).unwrap();
    let mut visible = db.job().durability(Durability::Visible).stream(accounts.scan());
    assert_eq!(row_of(&mut visible), (7, account(7)));
    let (mut stored, counter) = (db.stream(accounts.scan()), Arc::new(Counter));
    assert!(wakers_left(&mut Box::pin(stored.next()), &counter) <= 1);
    pause.end();
    assert_eq!(row_of(&mut stored), (7, account(7)));
}

#[test]
fn a_jobs_handle_keeps_one_waker_and_none_when_it_is_dropped() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 1);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let counter = Arc::new(Counter);
    let submit = |id: u32| {
        let (accounts, (go, may_go)) = (accounts.clone(), mpsc::channel::<()>());
        let job = db.submit(move |tx| {
            let _ = may_go.recv();
            accounts.insert(tx, &account(id))
        });
        (job.unwrap(), go)
    };
    let (mut dropped_early, go) = submit(7);
    assert_eq!(wakers_left(&mut dropped_early, &counter), 1);
    drop(dropped_early);
    assert_eq!(Arc::strong_count(&counter), 1);
    drop(go);

    let (mut handle, go) = submit(8);
    assert_eq!(wakers_left(&mut handle, &counter), 1);
    drop(go);
    // The end of the job wakes its waker, and keeps it no longer. The next one waits for the disk.
    while Arc::strong_count(&counter) > 1 {
        std::thread::yield_now();
    }
    assert!(handle.is_visible());
    assert_eq!(wakers_left(&mut handle, &counter), 1);
    drop(handle);
    assert_eq!(Arc::strong_count(&counter), 1);
    pause.end();
}

#[test]
fn a_session_commits_with_a_ticket_that_tells_when_it_is_stored() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 1);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(7)).unwrap();
    let ticket = session.commit_with_ticket().unwrap();
    assert!(!ticket.is_stored());
    let visible = db.request().durability(Durability::Visible).transact(|tx| accounts.contains(tx, 7));
    assert!(visible.unwrap());
    let (_, of_request) =
        session.request().transact_with_ticket(|tx| accounts.insert(tx, &account(8))).unwrap();
    assert!(!of_request.is_stored());
    pause.end();
    ticket.wait().unwrap();
    of_request.wait().unwrap();
}

#[test]
fn a_session_of_a_database_in_memory_has_no_tickets_and_stays_open() {
    let db = in_memory();
    let mut session = db.begin().unwrap();
    assert!(matches!(session.commit_with_ticket(), Err(Error::NotDurable)));
    assert!(session.is_open());
    session.commit().unwrap();
}

/// Commits a session's transaction when it is woken.
struct Commits(Mutex<Option<generic::Session<Engine>>>, mpsc::Sender<bool>);

impl Wake for Commits {
    fn wake(self: Arc<Self>) {
        let Some(mut session) = self.0.lock().unwrap().take() else { return };
        let refused = matches!(session.commit(), Err(Error::NestedRequest(NestedCall::WaitInWaker)));
        let is_visible = session.is_open() && session.commit_with_ticket().is_ok();
        self.1.send(refused && is_visible).unwrap();
    }
}

#[test]
fn a_waker_on_the_log_thread_cannot_wait_for_the_disk() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 1);
    let pause = SyncPause::new();
    disk.set_faults(Faults { sync_hangs: Some(Arc::clone(&pause)), ..Faults::default() });
    let mut session = db.begin().unwrap();
    accounts.insert(&mut session, &account(7)).unwrap();
    let (_, mut ticket) = db.request().transact_with_ticket(|tx| accounts.insert(tx, &account(8))).unwrap();
    let (done, is_done) = mpsc::channel();
    let waker = Waker::from(Arc::new(Commits(Mutex::new(Some(session)), done)));
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    pause.end();
    assert!(is_done.recv().unwrap());
    db.transact(|tx| accounts.insert(tx, &account(9))).unwrap();
    assert!(db.transact(|tx| accounts.contains(tx, 7)).unwrap());
}
