//! The thread that removes rows that have expired: when it looks for those of which table.
//!
//! It makes one small transaction at a time, and rests for as long as that has taken while there are more rows to remove.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::Engine;
use ensilo_log::call_foreign;

use super::ExpiryCore;
use super::expiries::Expiries;
use super::pass::Pass;
use crate::durable::{Event, report_event};
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// How long it waits at most after an error until it looks again; twice as long each time until then.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Removes rows until the database is closed.
///
/// With what a program has said goes its clock, whose destructor is the program's code.
pub(super) fn run<E: Engine>(shared: &DatabaseShared<E>) {
    let mut scheduled: Vec<Scheduled<E>> = Vec::new();
    while await_due(&shared.expiries, &mut scheduled) {
        if let Some(next) = scheduled.iter_mut().min_by_key(|scheduled| scheduled.due) {
            next.run(shared);
        }
    }
    call_foreign(|| drop(scheduled));
}

/// Waits until one is due, and returns `true`; or until the database is being closed.
fn await_due<E: Engine>(expiries: &Expiries, scheduled: &mut Vec<Scheduled<E>>) -> bool {
    loop {
        let Some(added) = expiries.take_changes() else { return false };
        call_foreign(|| scheduled.retain(|scheduled| !scheduled.expiry.has_ended()));
        scheduled.extend(added.into_iter().map(Scheduled::new));
        let due = scheduled.iter().map(|scheduled| scheduled.due).min();
        if due.is_some_and(|due| due <= Instant::now()) {
            return true;
        }
        expiries.await_change(due);
    }
}

/// What a program has said of one table, and when the thread goes on with it.
struct Scheduled<E: Engine> {
    expiry: Arc<ExpiryCore>,
    /// The rows that are being removed.
    pass: Option<Pass<E>>,
    due: Instant,
    /// How long after the end of a pass the next one begins.
    pause: Duration,
}

impl<E: Engine> Scheduled<E> {
    fn new(expiry: Arc<ExpiryCore>) -> Self {
        let pause = expiry.options.check_interval;
        Scheduled { expiry, pass: None, due: Instant::now(), pause }
    }

    /// Removes the next rows, and decides when to go on.
    fn run(&mut self, shared: &DatabaseShared<E>) {
        let begin = Instant::now();
        let outcome = self.step(shared);
        let rest = match outcome {
            Ok(true) => begin.elapsed(),
            Ok(false) => self.end_pass(shared, None),
            Err(error) => self.end_pass(shared, Some(error)),
        };
        self.due = Instant::now() + rest;
    }

    fn step(&mut self, shared: &DatabaseShared<E>) -> Result<bool> {
        let pass = match &mut self.pass {
            Some(pass) => pass,
            None => self.pass.insert(Pass::begin(shared, &self.expiry)?),
        };
        pass.step(shared, &self.expiry)
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
            error => match error.or(pass.and_then(|pass| pass.failure)) {
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
        let event = Event::ExpiryFailed { table: self.expiry.table.clone(), error: error.to_string() };
        if shared.expiries.note_failure(&self.expiry, error) {
            report_event(shared.options.on_event.as_ref(), &event);
        }
        let pause = self.pause;
        self.pause = (2 * pause).min(FAILURE_PAUSE_MAX).max(pause);
        pause
    }
}
