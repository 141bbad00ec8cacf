//! The tests: compiled for each engine, which is that of the module above.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use ensilo::disk::Disk;
use ensilo::ermia::{Isolation, Serializable};
use ensilo::two_phase_locking::Locking;
use ensilo::variants::{Failpoint, Variant};
use ensilo::{Error, JobHandle, Options, Row, generic};
use ensilo_test_disk::SimulatedDisk;

use super::{Engine, EngineWith, LOCKS};

type Database = generic::Database<Engine>;

fn with_one_pool_thread() -> Database {
    Options::default().pool_threads(1).in_memory_with().unwrap()
}

#[test]
fn jobs_that_close_the_database_of_each_other_end() {
    let (one, other) = (with_one_pool_thread(), with_one_pool_thread());
    let are_under_way = Arc::new(Barrier::new(2));
    let closing = |of: &Database, closes: &Database| {
        let (closes, are_under_way) = (closes.clone(), Arc::clone(&are_under_way));
        let job = of.submit(move |_| {
            are_under_way.wait();
            Ok(closes.close())
        });
        job.unwrap()
    };
    let (of_one, of_other) = (closing(&one, &other), closing(&other, &one));
    of_one.wait().unwrap().unwrap();
    of_other.wait().unwrap().unwrap();
    one.close().unwrap();
    other.close().unwrap();
}

#[test]
fn jobs_that_hold_the_last_handles_to_the_databases_of_each_other_end() {
    let (one, other) = (with_one_pool_thread(), with_one_pool_thread());
    let are_under_way = Arc::new(Barrier::new(2));
    let (hand_over_one, last_of_one) = mpsc::channel::<Database>();
    let (hand_over_other, last_of_other) = mpsc::channel::<Database>();
    let dropping = |of: &Database, last: mpsc::Receiver<Database>| {
        let are_under_way = Arc::clone(&are_under_way);
        let job = of.submit(move |_| {
            let last = last.recv().unwrap();
            are_under_way.wait();
            drop(last);
            Ok(())
        });
        job.unwrap()
    };
    let jobs = [dropping(&one, last_of_other), dropping(&other, last_of_one)];
    hand_over_one.send(one).unwrap();
    hand_over_other.send(other).unwrap();
    jobs.into_iter().for_each(|job| job.wait().unwrap());
}

#[test]
fn a_job_does_not_wait_for_a_closer_that_waits_for_it() {
    let (closed, other) = (with_one_pool_thread(), with_one_pool_thread());
    let (begun, has_begun) = mpsc::channel();
    let waits = {
        let (closes, other) = (closed.clone(), other.clone());
        closed.submit(move |_| {
            let closes = closes.clone();
            let closes = other.submit(move |_| {
                // Until somebody else closes it, and waits for the job that waits for this one.
                while !matches!(closes.begin(), Err(Error::Closed)) {
                    thread::yield_now();
                }
                closes.close()
            })?;
            begun.send(()).unwrap();
            Ok(closes.wait())
        })
    };
    has_begun.recv().unwrap();
    closed.close().unwrap();
    // Whichever comes second to waiting does not.
    let waited = waits.unwrap().wait().unwrap();
    assert!(matches!(waited, Ok(()) | Err(Error::JobWaitsForJob)), "{waited:?}");
}

/// Calls a closure when it wakes.
struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn waker(call: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Calls(call)))
}

/// Polls what is not ready yet.
fn leave_waker<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    assert!(Pin::new(future).poll(&mut Context::from_waker(waker)).is_pending());
}

/// A database with a job under way that ends when `is_over` does.
fn with_job_until<T: Send + 'static>(is_over: mpsc::Receiver<T>) -> (Database, JobHandle<()>) {
    let db = with_one_pool_thread();
    let (begun, has_begun) = mpsc::channel();
    let job = db.submit(move |_| {
        begun.send(()).unwrap();
        is_over.recv().unwrap();
        Ok(())
    });
    has_begun.recv().unwrap();
    (db, job.unwrap())
}

#[test]
fn wakers_that_panic_keep_neither_others_nor_closing_from_their_work() {
    let (end, is_over) = mpsc::channel();
    let (db, running) = with_job_until(is_over);
    let panics = waker(|| panic!("on purpose"));
    let ends = waker(move || end.send(()).unwrap());
    let mut dropped: Vec<_> = (0..3).map(|_| db.submit(|_| Ok(())).unwrap()).collect();
    for (job, waker) in dropped.iter_mut().zip([&panics, &panics, &ends]) {
        leave_waker(job, waker);
    }
    db.close().unwrap();
    running.wait().unwrap();
    assert!(dropped.into_iter().all(|job| matches!(job.wait(), Err(Error::Closed))));
}

#[test]
fn the_waker_of_a_job_may_close_another_database() {
    let (end, is_over) = mpsc::channel();
    let (closed, running) = with_job_until(is_over);
    let (go_on, goes_on) = mpsc::channel();
    let (db, mut job) = with_job_until(goes_on);
    let closes = closed.clone();
    leave_waker(
        &mut job,
        &waker(move || {
            closes.close().unwrap();
            assert!(matches!(closes.begin(), Err(Error::Closed)));
            end.send(()).unwrap();
        }),
    );
    go_on.send(()).unwrap();
    running.wait().unwrap();
    closed.close().unwrap();
    db.close().unwrap();
}

#[test]
fn the_waker_of_a_ticket_may_close_another_database() {
    let (end, is_over) = mpsc::channel();
    let (closed, running) = with_job_until(is_over);
    // Longer than it takes to poll the ticket once.
    let options = Options::default().epoch_interval(Duration::from_secs(1));
    let db: Database = options.open_with(Arc::new(SimulatedDisk::new()), "/db").unwrap();
    let table = db.create_table::<Note>().unwrap();
    let note = Note { id: 1, text: String::new() };
    let (_, mut ticket) = db.request().transact_with_ticket(|tx| table.insert(tx, &note)).unwrap();
    let closes = closed.clone();
    leave_waker(
        &mut ticket,
        &waker(move || {
            closes.close().unwrap();
            end.send(()).unwrap();
        }),
    );
    running.wait().unwrap();
    closed.close().unwrap();
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "note")]
struct Note {
    #[row(key)]
    id: u32,
    text: String,
}

const ROWS: usize = 200;

/// A thread of a database, and a place that it comes to.
type Place = (&'static str, Failpoint);

const PLACES: [Place; 2] =
    [("ensilo-checkpoint", Failpoint::CheckpointBegun), ("ensilo-collector", Failpoint::UnhookBegun)];

static HAS_PANICKED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// An engine that panics at one of the places.
#[derive(Copy, Clone, Debug)]
struct Panics<const AT: usize>;

impl<const AT: usize> Variant for Panics<AT> {
    const VALIDATES: bool = !LOCKS;

    fn reached(place: Failpoint) {
        reached::<AT>(place);
    }
}

impl<const AT: usize> Locking for Panics<AT> {
    const WAITS: bool = true;
}

impl<const AT: usize> Isolation for Panics<AT> {
    type Dependencies = <Serializable as Isolation>::Dependencies;
    const SERIALIZABLE: bool = true;

    fn reached(place: Failpoint) {
        reached::<AT>(place);
    }
}

fn reached<const AT: usize>(place: Failpoint) {
    if PLACES[AT] == (thread::current().name().unwrap_or_default(), place) {
        HAS_PANICKED[AT].fetch_add(1, Ordering::Relaxed);
        panic!("planted {AT}");
    }
}

/// Writes and deletes rows, and waits until the thread of this place has panicked.
fn with_panicked_thread<const AT: usize>(
    disk: &Arc<SimulatedDisk>,
) -> generic::Database<EngineWith<Panics<AT>>> {
    let before = HAS_PANICKED[AT].load(Ordering::Relaxed);
    // The collector panics with a record locked, for which a checkpoint would wait.
    let log_bytes = if AT == 0 { 1 << 20 } else { 1 << 30 };
    let options = Options::default().checkpoint_log_bytes(log_bytes).epochs_per_snapshot(1);
    let db: generic::Database<EngineWith<Panics<AT>>> =
        options.open_with(Arc::clone(disk) as Arc<dyn Disk>, "/db").unwrap();
    let table = db.create_table::<Note>().unwrap();
    let rows: Vec<_> = (0..=ROWS as u32).map(|id| Note { id, text: "x".repeat(10_000) }).collect();
    db.transact(|tx| table.insert_many(tx, &rows)).unwrap();
    db.transact(|tx| table.delete(tx, 0)).unwrap();
    while HAS_PANICKED[AT].load(Ordering::Relaxed) == before {
        // A checkpoint counts what was logged since its thread began to look.
        if AT == 0 {
            db.transact(|tx| table.upsert(tx, &rows[1])).unwrap();
        }
        thread::yield_now();
    }
    db
}

fn rows_in(disk: &Arc<SimulatedDisk>) -> usize {
    let db: Database = Options::default().open_with(Arc::clone(disk) as Arc<dyn Disk>, "/db").unwrap();
    let table = db.open_table::<Note>().unwrap();
    db.transact(|tx| table.scan().count(tx)).unwrap()
}

fn closing_goes_on_after_a_panic<const AT: usize>() {
    let message = format!("planted {AT}");
    let disk = Arc::new(SimulatedDisk::new());
    let db = with_panicked_thread::<AT>(&disk);
    let panic = catch_unwind(AssertUnwindSafe(|| db.close())).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>(), Some(&message));
    for _ in 0..2 {
        let again = db.close();
        assert!(matches!(&again, Err(Error::ThreadPanicked(text)) if **text == message), "{again:?}");
    }
    // The handle is there still.
    assert_eq!(rows_in(&disk), ROWS);
    // Dropping the last one tells nobody.
    let disk = Arc::new(SimulatedDisk::new());
    drop(with_panicked_thread::<AT>(&disk));
    assert_eq!(rows_in(&disk), ROWS);
}

#[test]
fn a_panic_of_the_checkpoints_keeps_no_other_part_from_being_closed() {
    closing_goes_on_after_a_panic::<0>();
}

#[test]
fn a_panic_of_the_collector_keeps_no_other_part_from_being_closed() {
    closing_goes_on_after_a_panic::<1>();
}

/// Closes the database when its thread ends.
struct ClosesAtTheEnd(Database, mpsc::Sender<bool>);

impl Drop for ClosesAtTheEnd {
    fn drop(&mut self) {
        self.1.send(self.0.close().is_ok()).unwrap();
    }
}

thread_local! {
    static AT_THE_END: std::cell::RefCell<Option<ClosesAtTheEnd>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn a_destructor_on_a_pool_thread_may_close_the_database() {
    let db = with_one_pool_thread();
    let (closed, is_closed) = mpsc::channel();
    let closes = db.clone();
    let job = db.submit(move |_| {
        AT_THE_END.set(Some(ClosesAtTheEnd(closes.clone(), closed.clone())));
        Ok(())
    });
    job.unwrap().wait().unwrap();
    db.close().unwrap();
    assert!(is_closed.recv().unwrap());
}
