use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::*;
use crate::durability::Durability;
use crate::outcome::Visible;
use crate::test_support::block_on;

fn pool(threads: usize, queue_len_max: usize) -> Pool {
    Pool::start(&PoolOptions { threads, queue_len_max, pin_to_cores: true }).unwrap()
}

fn submit<R: Send + 'static>(pool: &Pool, job: impl FnOnce() -> R + Send + 'static) -> JobHandle<R> {
    let (promise, handle) = promise(pool, None, Durability::Visible);
    pool.submit(
        Box::new(move || promise.run(|| Ok(Visible { value: job(), epoch: ensilo_epoch::Epoch::new(0) }))),
        Priority::Normal,
        WhenFull::Wait,
    )
    .unwrap();
    handle
}

#[test]
fn jobs_run_and_their_results_arrive_in_plain_and_async_code() {
    let pool = pool(2, 4);
    let handles: Vec<_> = (0..100).map(|number| submit(&pool, move || number * 2)).collect();
    let sum: i32 = handles.into_iter().map(|handle| handle.wait().unwrap()).sum();
    assert_eq!(sum, 9900);
    assert_eq!(block_on(submit(&pool, || "async")).unwrap(), "async");
}

#[test]
fn a_panicking_job_leaves_its_thread_alive() {
    let pool = pool(1, 4);
    let message = submit(&pool, || -> i32 { panic!("planted {}", 7) }).wait().unwrap_err().to_string();
    assert_eq!(message, "the submitted job panicked: planted 7");
    assert_eq!(submit(&pool, || 7).wait().unwrap(), 7);
}

#[test]
fn a_full_queue_refuses_but_never_its_own_jobs() {
    let pool = Arc::new(pool(1, 1));
    let (release, gate) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let inner = Arc::clone(&pool);
    let first = submit(&pool, move || {
        begun.send(()).unwrap();
        gate.recv().unwrap();
        // The queue is full of the second job, and this is its only thread.
        submit(&inner, || 3)
    });
    has_begun.recv().unwrap();
    let second = submit(&pool, || 2);
    let refused = pool.submit(Box::new(|| ()), Priority::Normal, WhenFull::Refuse);
    assert!(matches!(refused, Err(Error::QueueFull)));
    release.send(()).unwrap();
    assert_eq!(first.wait().unwrap().wait().unwrap(), 3);
    assert_eq!(second.wait().unwrap(), 2);
}

#[test]
fn stopping_completes_every_handle() {
    let pool = Arc::new(pool(1, 64));
    let ran = Arc::new(AtomicUsize::new(0));
    let (begun, has_begun) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    let first = submit(&pool, move || {
        begun.send(()).unwrap();
        gate.recv().unwrap()
    });
    has_begun.recv().unwrap();
    let waiting: Vec<_> = (0..10)
        .map(|_| {
            let ran = Arc::clone(&ran);
            submit(&pool, move || ran.fetch_add(1, Ordering::Relaxed))
        })
        .collect();
    let stopper = {
        let pool = Arc::clone(&pool);
        std::thread::spawn(move || pool.stop())
    };
    assert!(waiting.into_iter().all(|handle| matches!(handle.wait(), Err(Error::Closed))));
    release.send(()).unwrap();
    first.wait().unwrap();
    stopper.join().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert!(matches!(pool.submit(Box::new(|| ()), Priority::Normal, WhenFull::Wait), Err(Error::Closed)));
}

#[test]
fn a_pool_that_ends_on_its_own_thread_does_not_wait_for_itself() {
    let own = Arc::new(pool(1, 4));
    let (hand_over, taken) = mpsc::channel::<Arc<Pool>>();
    let last = submit(&own, move || drop(taken.recv().unwrap()));
    hand_over.send(own).unwrap();
    last.wait().unwrap();
}

#[test]
fn a_thread_that_has_left_its_pool_works_for_none() {
    let queue = Queue::new(1);
    queue.close();
    let work = || {
        queue.work(Serves::All);
        Queue::of_thread()
    };
    assert_eq!(std::thread::scope(|scope| scope.spawn(work).join().unwrap()), None);
}
