//! Requests on the pool's threads.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use ensilo::{Durability, Error, Options, Priority};

use super::{Database, Transaction, Visits, in_memory, with_accounts};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

#[test]
fn jobs_are_serializable_transactions_with_results() {
    let (db, accounts) = with_accounts(1);
    let handles: Vec<_> = (0..200)
        .map(|_| {
            let accounts = accounts.clone();
            let visit = move |visits: &mut Visits| visits.visits += 1;
            db.submit(move |tx| {
                accounts.update(tx, 0, visit)?;
                Ok(accounts.get_columns::<Visits>(tx, 0)?.expect("exists").visits)
            })
            .unwrap()
        })
        .collect();
    let mut seen: Vec<u32> = handles.into_iter().map(|handle| handle.wait().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=200).collect::<Vec<_>>());
}

#[test]
fn handles_can_be_awaited() {
    let (db, accounts) = with_accounts(3);
    let counted = block_on(async {
        let inserted = {
            let accounts = accounts.clone();
            db.submit(move |tx| accounts.insert(tx, &super::account(9)))?.await?
        };
        assert_eq!(inserted, 9);
        let accounts = accounts.clone();
        db.submit(move |tx| accounts.scan().count(tx))?.await
    });
    assert_eq!(counted.unwrap(), 4);
    let snapshot = db.submit_read_stale(|_| Ok(5)).unwrap();
    assert_eq!(block_on(snapshot).unwrap(), 5);
}

#[test]
fn errors_and_panics_of_jobs_come_out_of_their_handles() {
    let (db, _) = with_accounts(1);
    let failed = db.submit(|_| Err::<(), _>(Error::rollback("no"))).unwrap().wait();
    assert!(matches!(failed, Err(Error::User(_))));
    for _ in 0..4 {
        let panicked = db.submit(|_| -> ensilo::Result<()> { panic!("planted") }).unwrap().wait();
        assert!(matches!(&panicked, Err(Error::JobPanicked(text)) if &**text == "planted"));
    }
    assert_eq!(db.submit(|_| Ok(1)).unwrap().wait().unwrap(), 1);
}

#[test]
fn a_full_queue_refuses_who_will_not_wait() {
    let db = in_memory(Options::default().pool_threads(1).pool_queue_len_max(1));
    let gate = Arc::new(std::sync::Barrier::new(2));
    let held = Arc::clone(&gate);
    let first = db
        .submit(move |_| {
            held.wait();
            held.wait();
            Ok(())
        })
        .unwrap();
    gate.wait();
    let second = db.try_submit(|_| Ok(2)).unwrap();
    assert!(matches!(db.try_submit(|_| Ok(3)), Err(Error::QueueFull)));
    gate.wait();
    first.wait().unwrap();
    assert_eq!(second.wait().unwrap(), 2);
}

#[test]
fn dropping_the_last_handle_inside_a_job_closes_the_database() {
    let (db, accounts) = with_accounts(2);
    let inner = db.clone();
    let gate = Arc::new(std::sync::Barrier::new(2));
    let held = Arc::clone(&gate);
    let mut own = Some((inner, accounts));
    let job = db
        .submit(move |tx| {
            held.wait();
            let Some((db, accounts)) = own.take() else { return Err(Error::rollback("ran twice")) };
            let count = accounts.scan().count(tx)?;
            drop(db);
            Ok(count)
        })
        .unwrap();
    drop(db);
    gate.wait();
    assert_eq!(job.wait().unwrap(), 2);
}

#[test]
fn jobs_of_two_databases_that_wait_for_each_other_end() {
    let pools = || in_memory(Options::default().pool_threads(1));
    let (one, other) = (pools(), pools());
    let (of_one, of_other) = (one.clone(), other.clone());
    let job = one.submit(move |_| {
        let of_one = of_one.clone();
        // Runs on the thread of the other's pool, and waits for the one that waits for it.
        let inner = of_other.submit(move |_| Ok(of_one.submit(|_| Ok(1))?.wait()))?;
        Ok(inner.wait())
    });
    // Whichever comes second to waiting is refused; a job whose own waiting was not gets what it has waited for.
    match job.unwrap().wait().unwrap() {
        Ok(inner) => assert!(matches!(inner, Err(Error::JobWaitsForJob)), "{inner:?}"),
        outer => assert!(matches!(outer, Err(Error::JobWaitsForJob)), "{outer:?}"),
    }
}

#[test]
fn a_job_that_waits_for_a_job_of_its_database_is_refused() {
    for threads in [1, 4] {
        let db = in_memory(Options::default().pool_threads(threads));
        let (inner, elsewhere) = (db.clone(), in_memory(Options::default()));
        let waits = db.submit(move |_| {
            let (waited, awaited) = (inner.submit(|_| Ok(1))?, inner.submit(|_| Ok(2))?);
            let mut refused = 0;
            // On several threads either may have ended meanwhile, and then has its result.
            for outcome in [waited.wait(), block_on(awaited)] {
                match outcome {
                    Err(Error::JobWaitsForJob) => refused += 1,
                    outcome => assert!(threads > 1 && outcome.is_ok(), "{outcome:?}"),
                }
            }
            let later = inner.submit(|_| Ok(3))?;
            Ok((refused, later, elsewhere.submit(|_| Ok(4))?.wait()?))
        });
        let (refused, later, of_another_database) = waits.unwrap().wait().unwrap();
        assert!(threads > 1 || refused == 2);
        assert_eq!((later.wait().unwrap(), of_another_database), (3, 4));
    }
}

#[test]
fn the_last_handle_may_go_in_a_job() {
    let (db, accounts) = with_accounts(1);
    let (hand_over, taken) = std::sync::mpsc::channel::<Database>();
    let last = db.submit(move |tx| {
        drop(taken.recv());
        accounts.contains(tx, 0)
    });
    hand_over.send(db).unwrap();
    assert!(last.unwrap().wait().unwrap());
}

/// A waker with which the last handle to a database goes, while a job waits for that.
struct Keeper {
    _db: Database,
    goes: std::sync::mpsc::Sender<()>,
}

impl Wake for Keeper {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.goes.send(()).unwrap();
    }
}

#[test]
fn the_last_handle_may_go_with_a_waker_that_another_one_replaces() {
    let db = in_memory(Options::default());
    let (goes, waited_for) = std::sync::mpsc::channel();
    let (begins, has_begun) = std::sync::mpsc::channel();
    let job = db.submit(move |_| {
        begins.send(()).unwrap();
        waited_for.recv().unwrap();
        Ok(7)
    });
    let mut job = pin!(job.unwrap());
    has_begun.recv().unwrap();
    let keeper = Waker::from(Arc::new(Keeper { _db: db, goes }));
    assert!(job.as_mut().poll(&mut Context::from_waker(&keeper)).is_pending());
    drop(keeper);
    // Closes the database, which waits for the job.
    assert!(job.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(block_on(job).unwrap(), 7);
}

/// A database whose only thread is held by a job until what is returned is called.
fn held(queue_len_max: usize) -> (Database, impl FnOnce()) {
    let db = in_memory(Options::default().pool_threads(1).pool_queue_len_max(queue_len_max));
    let gate = Arc::new(Barrier::new(2));
    let held = Arc::clone(&gate);
    let job = db.submit(move |_| {
        held.wait();
        held.wait();
        Ok(())
    });
    gate.wait();
    (db, move || {
        gate.wait();
        job.unwrap().wait().unwrap();
    })
}

/// Polls once, and returns what that gives.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn futures_run_transactions_once_they_are_awaited() {
    let (db, accounts) = with_accounts(3);
    let visit = || {
        let accounts = accounts.clone();
        db.transact_async(move |tx| accounts.update(tx, 0, |row: &mut Visits| row.visits += 1))
    };
    drop(visit());
    block_on(visit()).unwrap();
    let of_first = |row: Option<Visits>| row.map(|row| row.visits);
    let read = {
        let accounts = accounts.clone();
        db.read_async(move |tx| accounts.get_columns::<Visits>(tx, 0))
    };
    assert_eq!(of_first(block_on(read).unwrap()), Some(1), "the one that nobody awaited never ran");
    let stale = db.job().max_staleness(Duration::ZERO);
    let count = {
        let accounts = accounts.clone();
        stale.read_stale_async(move |tx| accounts.scan().count(tx))
    };
    assert_eq!(block_on(count).unwrap(), 3);
    let failed = block_on(db.transact_async(|_| Err::<(), _>(Error::rollback("no"))));
    assert!(matches!(failed, Err(Error::User(_))));
    let panicked = block_on(db.transact_async(|_| -> ensilo::Result<()> { panic!("planted") }));
    assert!(matches!(panicked, Err(Error::JobPanicked(_))));
    let unstored = block_on(db.job().durability(Durability::Stored).transact_async(|_| Ok(())));
    assert!(matches!(unstored, Err(Error::NotDurable)));
    let pending = visit();
    db.close().unwrap();
    assert!(matches!(block_on(pending), Err(Error::Closed)));
    assert!(matches!(block_on(visit()), Err(Error::Closed)));
}

#[test]
fn futures_wait_for_room_without_a_thread_and_pass_it_on_when_they_are_dropped() {
    let (db, release) = held(1);
    let mut first = db.transact_async(|_| Ok(1));
    assert!(poll(&mut first).is_pending());
    // The queue is full now. These three wait for room, and two of them give up: one that may have been woken, one that was not.
    let [mut second, mut third, mut fourth] = [2, 3, 4].map(|number| db.transact_async(move |_| Ok(number)));
    for future in [&mut second, &mut third, &mut fourth] {
        assert!(poll(future).is_pending());
    }
    let looker = thread::spawn(move || block_on(fourth));
    drop(third);
    release();
    assert_eq!(block_on(first).unwrap(), 1);
    drop(second);
    assert_eq!(looker.join().unwrap().unwrap(), 4);
    assert_eq!(block_on(db.transact_async(|_| Ok(5))).unwrap(), 5);
}

#[test]
fn a_future_that_is_dropped_in_the_queue_never_runs() {
    let (db_held, release) = held(4);
    let (ran, has_run) = mpsc::channel::<()>();
    let mut queued = db_held.transact_async(move |_| {
        ran.send(()).unwrap();
        Ok(())
    });
    assert!(poll(&mut queued).is_pending());
    drop(queued);
    release();
    block_on(db_held.transact_async(|_| Ok(()))).unwrap();
    assert!(has_run.recv().is_err(), "its closure is gone, and has sent nothing");
}

#[test]
fn what_a_dropped_future_has_written_is_undone() {
    let (db, accounts) = with_accounts(2);
    let (begun, has_begun) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    let (ended, has_ended) = mpsc::channel();
    let mut future = {
        let accounts = accounts.clone();
        db.transact_async(move |tx| {
            accounts.update(tx, 0, |row: &mut Visits| row.visits += 1)?;
            begun.send(()).unwrap();
            gate.recv().unwrap();
            let outcome = accounts.update(tx, 1, |row: &mut Visits| row.visits += 1);
            ended.send(matches!(outcome, Err(Error::Cancelled))).unwrap();
            outcome
        })
    };
    assert!(poll(&mut future).is_pending());
    has_begun.recv().unwrap();
    drop(future);
    release.send(()).unwrap();
    assert!(has_ended.recv().unwrap(), "the statement ends it");
    let rows = db.transact(|tx| accounts.scan().columns::<Visits>().rows(tx)).unwrap();
    assert_eq!(rows, [Visits { visits: 0 }, Visits { visits: 0 }]);
}

#[test]
fn an_urgent_job_does_not_wait_behind_long_ones() {
    let (db, release) = held(4);
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |number: u32| {
        let order = Arc::clone(&order);
        move |_: &mut Transaction<'_>| {
            order.lock().unwrap().push(number);
            Ok(())
        }
    };
    let normal = db.submit(note(1)).unwrap();
    let urgent = db.job().priority(Priority::High).submit(note(2)).unwrap();
    urgent.wait().unwrap();
    block_on(db.job().priority(Priority::High).transact_async(note(3))).unwrap();
    assert!(!normal.is_visible());
    release();
    normal.wait().unwrap();
    assert_eq!(*order.lock().unwrap(), [2, 3, 1]);
}

#[test]
fn a_job_is_given_up_at_its_deadline() {
    let (db, accounts) = with_accounts(1);
    let late = db.job().deadline(Instant::now());
    let visit = move |tx: &mut Transaction<'_>| accounts.update(tx, 0, |row: &mut Visits| row.visits += 1);
    assert!(matches!(late.submit(visit.clone()).unwrap().wait(), Err(Error::DeadlineExceeded)));
    let in_time = db.job().deadline(Instant::now() + Duration::from_secs(60)).retries(3).read_mostly();
    in_time.try_submit(visit).unwrap().wait().unwrap();
}

#[test]
fn a_future_that_a_job_of_the_database_awaits_is_refused_and_does_nothing() {
    let (db, accounts) = with_accounts(1);
    let inner = db.clone();
    let visited = accounts.clone();
    let awaited = db.submit(move |_| {
        let visited = visited.clone();
        let visit = move |tx: &mut Transaction<'_>| visited.update(tx, 0, |row: &mut Visits| row.visits += 1);
        Ok(block_on(inner.transact_async(visit)))
    });
    assert!(matches!(awaited.unwrap().wait().unwrap(), Err(Error::JobWaitsForJob)));
    block_on(db.transact_async(|_| Ok(()))).unwrap();
    let visits = db.transact(|tx| accounts.get_columns::<Visits>(tx, 0)).unwrap();
    assert_eq!(visits, Some(Visits { visits: 0 }));
}

#[test]
fn a_request_within_a_future_is_refused() {
    let (db, _) = with_accounts(1);
    let inner = db.clone();
    let nested = block_on(db.transact_async(move |_| Ok(inner.transact(|_| Ok(())))));
    assert!(matches!(nested.unwrap(), Err(Error::NestedRequest(_))));
}
