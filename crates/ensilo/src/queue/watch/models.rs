//! Commits and watchers in every order of their steps, as far as weak memory allows:
//! `RUSTFLAGS="--cfg loom" cargo test -p ensilo --lib --profile quick watch`.
//!
//! A row is a flag that is written and read without any order of its own. A watcher that sleeps for ever is a
//! deadlock, which the checker reports.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::*;
use crate::queue::WrittenTable;

/// A table of a database.
#[derive(Clone)]
struct Model {
    queues: Arc<Queues>,
    queue: Arc<TableQueue>,
    rows: Arc<AtomicU64>,
}

impl Model {
    fn new(plant_fault: bool) -> Self {
        let mut queues = Queues::new();
        if plant_fault && let Some(queues) = Arc::get_mut(&mut queues) {
            queues.barrier = ensilo_sync::barrier::LightBarrier::missing();
        }
        Model { queues, queue: Arc::default(), rows: Arc::new(AtomicU64::new(0)) }
    }

    fn watch(&self) -> Result<Arrivals> {
        Arrivals::register(&self.queues, &self.queue, "job".into())
    }

    /// Commits a row.
    fn commit(&self) {
        let (begun, mut written) = (self.queues.generation(), Vec::new());
        if begun.observes() && self.queue.is_noted() {
            WrittenTable::note(&mut written, &self.queue);
        }
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.queues.report_commit(begun, &mut written);
    }
}

/// Waits until so many rows are there.
fn await_rows(arrivals: &mut Arrivals, rows: &AtomicU64, count: u64) {
    while rows.load(Ordering::Relaxed) < count {
        arrivals.wait().unwrap();
    }
}

/// A row is committed while the first watcher comes.
fn a_commit_meets_the_first_watcher(plant_fault: bool) {
    let model = Model::new(plant_fault);
    let committer = model.clone();
    let committer = thread::spawn(move || committer.commit());
    await_rows(&mut model.watch().unwrap(), &model.rows, 1);
    committer.join().unwrap();
}

/// Two rows are committed, one after the other, while a watcher waits.
fn commits_meet_a_watcher() {
    let model = Model::new(false);
    let mut arrivals = model.watch().unwrap();
    let committer = model.clone();
    let committer = thread::spawn(move || (0..2).for_each(|_| committer.commit()));
    await_rows(&mut arrivals, &model.rows, 1);
    await_rows(&mut arrivals, &model.rows, 2);
    committer.join().unwrap();
}

/// A row is committed while two watchers come, and neither has the barrier of the other one behind it.
fn a_commit_meets_two_watchers() {
    let model = Model::new(false);
    let (committer, other) = (model.clone(), model.clone());
    let committer = thread::spawn(move || committer.commit());
    let other = thread::spawn(move || await_rows(&mut other.watch().unwrap(), &other.rows, 1));
    await_rows(&mut model.watch().unwrap(), &model.rows, 1);
    committer.join().unwrap();
    other.join().unwrap();
}

/// The database is closed while a watcher comes.
fn a_close_meets_a_watcher() {
    let model = Model::new(false);
    let closer = Arc::clone(&model.queues);
    let closer = thread::spawn(move || closer.close());
    match model.watch() {
        Ok(mut arrivals) => assert!(matches!(arrivals.wait(), Err(Error::Closed))),
        Err(error) => assert!(matches!(error, Error::Closed)),
    }
    closer.join().unwrap();
}

fn bounded(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn the_first_watcher_misses_no_commit() {
    bounded(|| a_commit_meets_the_first_watcher(false));
}

#[test]
fn the_model_notices_missing_barriers() {
    let planted = catch_unwind(AssertUnwindSafe(|| bounded(|| a_commit_meets_the_first_watcher(true))));
    assert!(planted.is_err());
}

#[test]
fn a_watcher_misses_no_commit_between_its_waits() {
    bounded(commits_meet_a_watcher);
}

#[test]
fn two_watchers_that_come_at_once_miss_no_commit() {
    bounded(a_commit_meets_two_watchers);
}

#[test]
fn a_watcher_does_not_outwait_a_close() {
    bounded(a_close_meets_a_watcher);
}
