//! Transactions of workers that take turns, and what was counted of them.

use std::thread;

use ensilo_bench::driver::{Aborts, Failure, Interrupt, Session, View, Workload};
use ensilo_bench::{DatabaseOptions, Visitor, visit_in_memory};
use ensilo_counting::{LineCounter, SharingCounts};

use crate::arguments::{Arguments, Subject};
use crate::turns::Turns;

/// Loads the subject's database, runs its transactions and counts.
pub(crate) fn measure(arguments: &Arguments, subject: &Subject) -> Result<SharingCounts, Failure> {
    let counter = LineCounter::new(arguments.cache_lines(subject.workload));
    let mut run = TakingTurns {
        workers: u64::from(arguments.workers),
        transactions: arguments.transactions,
        counter: &counter,
    };
    let database = DatabaseOptions::default();
    visit_in_memory(&arguments.benchmark(subject), subject.system, &database, &mut run)?;
    Ok(counter.totals())
}

struct TakingTurns<'a> {
    workers: u64,
    transactions: u64,
    counter: &'a LineCounter,
}

impl Visitor for TakingTurns<'_> {
    type Result = ();

    fn visit<W: Workload>(&mut self, workload: &W, _: &mut View, _: &Interrupt) -> Result<(), Failure> {
        let turns = Turns::default();
        let run = &*self;
        thread::scope(|scope| {
            let start = |worker| {
                let turns = &turns;
                scope.spawn(move || run.work(workload, worker, turns))
            };
            let workers: Vec<_> = (0..self.workers).map(start).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

impl TakingTurns<'_> {
    /// A worker's life. A worker that fails goes on to take its turns, for the others' sake.
    fn work<W: Workload>(&self, workload: &W, worker: u64, turns: &Turns) -> Result<(), Failure> {
        let at = worker as usize;
        let (mut session, attached) = turns.take(worker, || (workload.session(at), self.counter.attach(at)));
        let mut outcome = Ok(());
        for number in 0..2 * self.transactions {
            turns.take(self.workers * (number + 1) + worker, || {
                if number == self.transactions && worker == 0 {
                    self.counter.start();
                }
                if outcome.is_ok() {
                    outcome = session.run_one(0, &mut Aborts::default()).map(|_| ());
                    attached.end_transaction();
                }
            });
        }
        drop(attached);
        turns.take(self.workers * (2 * self.transactions + 1) + worker, || session.finish());
        outcome
    }
}
