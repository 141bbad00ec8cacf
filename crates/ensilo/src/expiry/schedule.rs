//! The thread that removes rows that have expired: when it looks for those of which table.
//!
//! It makes one small transaction at a time, and rests for as long as that has taken, also where another table is next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::Engine;
use ensilo_log::call_foreign;

use super::ExpiryCore;
use super::expiries::Expiries;
use super::pass::Pass;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// How long it waits at most after an error until it looks again, unless it looks more seldom anyway; twice as long each time until then.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long it waits while another thread removes rows of the same table.
const TURN_PAUSE: Duration = Duration::from_millis(1);

/// Removes rows until the database is closed.
///
/// With what a program has said goes its clock, whose destructor is the program's code.
pub(super) fn run<E: Engine>(shared: &DatabaseShared<E>) {
    let mut schedule = Schedule::<E>::new();
    while schedule.await_due(&shared.expiries) {
        schedule.run_next(shared);
    }
    call_foreign(|| drop(schedule));
}

/// All that the thread goes on with.
struct Schedule<E: Engine> {
    scheduled: Vec<Scheduled<E>>,
    /// When the thread has rested for as long as it has worked last, for whichever table.
    rests_until: Instant,
}

impl<E: Engine> Schedule<E> {
    fn new() -> Self {
        Schedule { scheduled: Vec::new(), rests_until: Instant::now() }
    }

    /// Waits until one is due, and returns `true`; or until the database is being closed.
    fn await_due(&mut self, expiries: &Expiries) -> bool {
        while self.take_changes(expiries) {
            let due = self.due();
            if due.is_some_and(|due| due <= Instant::now()) {
                return true;
            }
            expiries.await_change(due);
        }
        false
    }

    /// Takes up what was said since the last call, forgets what has ended, and returns whether the database is open.
    fn take_changes(&mut self, expiries: &Expiries) -> bool {
        let (added, is_open) = expiries.take_changes();
        self.scheduled.extend(added.into_iter().map(Scheduled::new));
        call_foreign(|| self.scheduled.retain(|scheduled| !scheduled.expiry.has_ended()));
        is_open
    }

    /// Returns when the thread goes on: when the first is due, and it has rested. `None` if none is ever due.
    fn due(&self) -> Option<Instant> {
        let first = self.scheduled.iter().filter_map(|scheduled| scheduled.due).min();
        first.map(|due| due.max(self.rests_until))
    }

    /// Goes on with the one that has been due for the longest time.
    fn run_next(&mut self, shared: &DatabaseShared<E>) {
        let begin = Instant::now();
        let due = self.scheduled.iter_mut().filter(|scheduled| scheduled.due.is_some());
        if let Some(next) = due.min_by_key(|scheduled| scheduled.due) {
            next.run(shared);
        }
        self.rests_until = Instant::now() + begin.elapsed();
    }
}

/// What a program has said of one table, and when the thread goes on with it.
struct Scheduled<E: Engine> {
    expiry: Arc<ExpiryCore>,
    /// The rows that are being removed.
    pass: Option<Pass<E>>,
    /// `None` if that is later than any time there is.
    due: Option<Instant>,
    /// How long after the end of a pass the next one begins.
    pause: Duration,
}

/// What has come of one look.
enum Step {
    Made,
    /// Nothing was looked at: another thread removes rows of the table, or it has ended.
    Postponed,
    /// There is nothing left to remove.
    Last,
}

impl<E: Engine> Scheduled<E> {
    fn new(expiry: Arc<ExpiryCore>) -> Self {
        let pause = expiry.options.check_interval;
        Scheduled { expiry, pass: None, due: Some(Instant::now()), pause }
    }

    /// Removes the next rows, and decides when to go on.
    fn run(&mut self, shared: &DatabaseShared<E>) {
        let pause = match self.step(shared) {
            Ok(Step::Made) => Duration::ZERO,
            Ok(Step::Postponed) => TURN_PAUSE,
            Ok(Step::Last) => self.end_pass(shared, None),
            Err(error) => self.end_pass(shared, Some(error)),
        };
        self.due = Instant::now().checked_add(pause);
    }

    fn step(&mut self, shared: &DatabaseShared<E>) -> Result<Step> {
        let pass = match &mut self.pass {
            Some(pass) => pass,
            None => self.pass.insert(Pass::begin(shared, &self.expiry)?),
        };
        let turn = self.expiry.turn.try_take();
        // The clock of the program may have taken its time.
        if turn.is_none() || self.expiry.has_ended() {
            return Ok(Step::Postponed);
        }
        let may_have_more = pass.step(shared, &self.expiry, turn)?;
        Ok(if may_have_more { Step::Made } else { Step::Last })
    }

    /// Notes how a pass has ended, and returns how long after it the next one begins.
    fn end_pass(&mut self, shared: &DatabaseShared<E>, error: Option<Error>) -> Duration {
        let pass = self.pass.take();
        // What the pass has begun with is not there any more. The next one finds out what is there in its place.
        let is_outdated = |error: &Error| {
            matches!(error, Error::UnknownTable(_) | Error::TableChanged(_) | Error::UnknownIndex(_))
        };
        let interval = self.expiry.options.check_interval;
        match error {
            Some(error) if pass.is_some() && is_outdated(&error) || matches!(error, Error::Closed) => {
                interval
            }
            error => match error.or(pass.and_then(Pass::into_failure)) {
                Some(error) => self.note_failure(shared, error),
                None => {
                    self.expiry.note_success();
                    self.pause = interval;
                    interval
                }
            },
        }
    }

    /// Notes and reports an error, and returns how long to wait.
    fn note_failure(&mut self, shared: &DatabaseShared<E>, error: Error) -> Duration {
        shared.note_expiry_failure(&self.expiry, error);
        let pause = self.pause;
        self.pause = pause.saturating_mul(2).min(FAILURE_PAUSE_MAX).max(pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{array, thread};

    use ensilo_row::{ColumnType, Order, Schema, Timestamp};

    use super::*;
    use crate::Silo;
    use crate::expiry::{Expiry, ExpiryOptions};
    use crate::generic::Database;

    fn schedule_of(cores: impl IntoIterator<Item = Arc<ExpiryCore>>) -> Schedule<Silo> {
        Schedule { scheduled: cores.into_iter().map(Scheduled::new).collect(), ..Schedule::new() }
    }

    fn schedule_of_two() -> Schedule<Silo> {
        let core = || Arc::new(ExpiryCore::new("token", ExpiryOptions::new("expires"), Arc::default()));
        schedule_of([core(), core()])
    }

    #[test]
    fn the_thread_rests_between_two_tables_too() {
        let mut schedule = schedule_of_two();
        schedule.rests_until = Instant::now() + Duration::from_secs(3600);
        assert_eq!(schedule.due(), Some(schedule.rests_until));
    }

    #[test]
    fn what_is_never_due_keeps_nothing_else() {
        let mut schedule = schedule_of_two();
        schedule.scheduled[0].due = None;
        assert!(schedule.due().is_some_and(|due| due <= Instant::now()));
        schedule.scheduled[1].due = None;
        assert_eq!(schedule.due(), None);
    }

    #[test]
    fn who_removes_rows_of_a_table_is_waited_for_by_calls_and_not_by_the_thread() {
        let db: Database<Silo> = Database::in_memory().unwrap();
        let schema = Schema::builder("reading")
            .column("at", ColumnType::Timestamp)
            .key([("at", Order::Ascending)])
            .build()
            .unwrap();
        let readings = db.create_dynamic_table(schema).unwrap();
        db.transact(|tx| readings.insert(tx, &[Timestamp::from_micros(0).into()])).unwrap();
        let rows = || db.transact(|tx| readings.scan().collect(tx)).unwrap().len();
        let shared = &db.shared;
        // Two of one table.
        let [of_thread, of_call] = array::from_fn(|_| {
            let turn = shared.expiries.turn_of("reading");
            Arc::new(ExpiryCore::new("reading", ExpiryOptions::new("at"), turn))
        });
        let mut schedule = schedule_of([Arc::clone(&of_thread)]);
        let expiry = Expiry { shared: Arc::clone(shared), core: of_call, is_detached: true };
        let turn = of_thread.turn.try_take().unwrap();
        schedule.run_next(shared);
        assert_eq!(rows(), 1);
        let (has_begun, is_given_up) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                has_begun.store(true, Ordering::Relaxed);
                assert_eq!(expiry.remove_now().unwrap(), 1);
                assert!(is_given_up.load(Ordering::Relaxed), "it has waited");
            });
            while !has_begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            // Time to go wrong in.
            (0..100).for_each(|_| thread::yield_now());
            is_given_up.store(true, Ordering::Relaxed);
            drop(turn);
        });
        assert_eq!(rows(), 0);
        db.transact(|tx| readings.insert(tx, &[Timestamp::from_micros(1).into()])).unwrap();
        schedule.run_next(shared);
        assert_eq!(rows(), 0);
    }
}
