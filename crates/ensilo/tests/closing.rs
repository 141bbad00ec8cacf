//! Closing databases from jobs, hooks and wakers, and when parts of them panic: it ends, and whatever it finds, others can open the files.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use ensilo::{Database, Error};

fn with_one_pool_thread() -> Database {
    Database::options().pool_threads(1).in_memory().unwrap()
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
fn a_job_does_not_wait_for_who_closes_a_database_whose_jobs_wait_for_it() {
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
