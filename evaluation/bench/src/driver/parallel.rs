//! Work that is divided into numbered tasks and done by several threads: loading and checking.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::failure::Failure;
use super::interrupt::Interrupt;
use super::view::{Progress, View};

/// How to divide the work and what to call it.
#[derive(Debug, Clone, Copy)]
pub struct Division<'a> {
    /// Threads to use.
    pub workers: usize,
    /// Tasks there are, numbered from 0; a thread that is free takes the next.
    pub tasks: u64,
    /// What the stage is called.
    pub stage: &'a str,
    /// Units of progress that all tasks together will report.
    pub total: u64,
    /// The unit's name in plural.
    pub unit: &'a str,
}

/// A task's way to tell how far it is, and to hear that it should stop.
#[derive(Debug)]
pub struct Reporter<'a> {
    sender: Sender<u64>,
    interrupt: &'a Interrupt,
    failed: &'a AtomicBool,
}

impl Reporter<'_> {
    /// Tells that `units` more are done.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] if the work should stop: the user asked for it or another task failed.
    pub fn advance(&self, units: u64) -> Result<(), Failure> {
        if self.interrupt.is_raised() || self.failed.load(Relaxed) {
            return Err(Failure::Interrupted);
        }
        // The receiver outlives every task; if it were gone, nobody would miss the progress.
        let _ = self.sender.send(units);
        Ok(())
    }
}

/// Runs `work` for every task and returns the results in the order of tasks.
///
/// # Errors
/// The first failure of a task, after the others have stopped.
///
/// # Panics
/// If a task panics.
pub fn parallel<R: Send>(
    division: Division<'_>,
    view: &mut View,
    interrupt: &Interrupt,
    work: impl Fn(u64, &Reporter<'_>) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next_task = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let results = Mutex::new(Vec::new());
    let (sender, receiver) = channel();
    view.stage(division.stage);
    thread::scope(|scope| {
        for _ in 0..division.workers.max(1) {
            let reporter = Reporter { sender: sender.clone(), interrupt, failed: &failed };
            let (next_task, results, work) = (&next_task, &results, &work);
            scope.spawn(move || {
                loop {
                    let task = next_task.fetch_add(1, Relaxed);
                    if task >= division.tasks || reporter.failed.load(Relaxed) {
                        return;
                    }
                    let result = work(task, &reporter);
                    reporter.failed.fetch_or(result.is_err(), Relaxed);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((task, result));
                }
            });
        }
        drop(sender);
        show(division, view, &receiver);
    });
    in_order(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Shows progress until every task's thread has let go of its sender.
fn show(division: Division<'_>, view: &mut View, receiver: &Receiver<u64>) {
    let mut done = 0;
    for units in receiver {
        done += units;
        view.progress(Progress { done, total: division.total, unit: division.unit });
    }
}

/// The results by task; of several failures, one that is not the echo of another.
fn in_order<R>(mut results: Vec<(u64, Result<R, Failure>)>) -> Result<Vec<R>, Failure> {
    results.sort_by_key(|&(task, _)| task);
    let mut values = Vec::with_capacity(results.len());
    let mut interrupted = None;
    for (_, result) in results {
        match result {
            Ok(value) => values.push(value),
            Err(Failure::Interrupted) => interrupted = Some(Failure::Interrupted),
            Err(failure) => return Err(failure),
        }
    }
    interrupted.map_or(Ok(values), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIVISION: Division<'_> =
        Division { workers: 3, tasks: 100, stage: "test", total: 100, unit: "tasks" };

    #[test]
    fn every_task_runs_once_and_results_are_in_order() {
        let results = parallel(DIVISION, &mut View::silent(), &Interrupt::new(), |task, reporter| {
            reporter.advance(1)?;
            Ok(task * 2)
        });
        assert_eq!(results.unwrap(), (0..100).map(|task| task * 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_stops_the_others_and_is_returned() {
        let failure = parallel(DIVISION, &mut View::silent(), &Interrupt::new(), |task, reporter| {
            reporter.advance(1)?;
            if task == 5 { Err(Failure::Broken("task 5".to_owned())) } else { Ok(()) }
        });
        assert!(matches!(failure, Err(Failure::Broken(what)) if what == "task 5"));
    }

    #[test]
    fn an_interrupt_stops_the_work() {
        let interrupt = Interrupt::new();
        let failure = parallel(DIVISION, &mut View::silent(), &interrupt, |task, reporter| {
            if task == 5 {
                interrupt.raise();
            }
            reporter.advance(1)
        });
        assert!(matches!(failure, Err(Failure::Interrupted)));
    }
}
