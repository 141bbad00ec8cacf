//! Requests on the pool's threads.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use ensilo::{Error, Options};

use super::{Database, Visits, in_memory, with_accounts};

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
