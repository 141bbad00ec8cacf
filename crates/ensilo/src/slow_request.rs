//! Requests that take long, or are run often: who they are, and what stands in their way.
//!
//! A program that does not ask for it pays a look at an option for each request, and reads no clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::Engine;
use ensilo_log::{call_foreign, is_in_foreign_code};

use crate::attempt::RetryPolicy;
use crate::error::Conflict;
use crate::outcome::{Outcome, Undone};
use crate::shared::DatabaseShared;
use crate::trace;
use crate::{Abort, Error};

/// A request that took long or was run often, see [`Options::on_slow_request`](crate::Options::on_slow_request).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlowRequest {
    /// That of [`Request::label`](crate::Request::label) or [`JobRequest::label`](crate::JobRequest::label), or else the type of
    /// the closure, which names the function that it stands in.
    pub label: &'static str,
    /// From the beginning of the first attempt to the end of the last one, the waits between them included, and without the time in a
    /// queue, or until it was stored.
    pub duration: Duration,
    /// How often it was run: again after conflicts, and where it found no memory.
    pub attempts: u32,
    /// Why the last attempt that was undone by a conflict was undone, with table and key; `None` if none was.
    pub last_abort: Option<Abort>,
    /// Whether it has committed in the end.
    pub has_committed: bool,
}

impl fmt::Display for SlowRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SlowRequest { label, duration, attempts, last_abort, has_committed } = self;
        let end = if *has_committed { "has committed" } else { "has failed" };
        write!(f, "{label} {end} after {duration:.1?} and {attempts} ")?;
        f.write_str(if *attempts == 1 { "attempt" } else { "attempts" })?;
        match last_abort {
            Some(abort) => write!(f, "; last conflict: {}", Conflict(abort)),
            None => Ok(()),
        }
    }
}

/// Which requests are slow, and what is called with them.
#[derive(Clone)]
pub(crate) struct SlowRequestHook {
    pub(crate) duration_min: Duration,
    pub(crate) attempts_min: u32,
    pub(crate) hook: Arc<dyn Fn(&SlowRequest) + Send + Sync>,
}

impl fmt::Debug for SlowRequestHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowRequestHook").finish_non_exhaustive()
    }
}

/// Watches a request from its first attempt to its end, if the program wants to hear of slow ones.
pub(crate) struct RequestWatch<'h>(Option<Box<Watched<'h>>>);

struct Watched<'h> {
    hook: &'h SlowRequestHook,
    label: &'static str,
    begin: Instant,
    attempts: u32,
    last_abort: Option<Abort>,
}

impl<'h> RequestWatch<'h> {
    /// The first attempt of the request begins.
    #[inline(always)]
    pub(crate) fn begin(
        hook: Option<&'h SlowRequestHook>,
        policy: &RetryPolicy,
        closure: &'static str,
    ) -> Self {
        RequestWatch(hook.and_then(|hook| Watched::begin(hook, policy, closure)))
    }

    /// An attempt has ended so.
    pub(crate) fn note_undone(&mut self, undone: &Undone) {
        if let Some(watched) = &mut self.0
            && undone.is_own_abort
            && let Error::Aborted(abort) = &undone.error
        {
            watched.last_abort = Some(abort.clone());
        }
    }

    /// The next attempt begins.
    pub(crate) fn note_attempt(&mut self) {
        if let Some(watched) = &mut self.0 {
            watched.attempts += 1;
        }
    }

    /// The request has ended so.
    #[inline]
    pub(crate) fn end<E: Engine, R>(self, shared: &DatabaseShared<E>, outcome: &Outcome<R>) {
        if let Some(watched) = self.0 {
            (*watched).end(shared, outcome.is_ok());
        }
    }
}

impl<'h> Watched<'h> {
    #[cold]
    fn begin(hook: &'h SlowRequestHook, policy: &RetryPolicy, closure: &'static str) -> Option<Box<Self>> {
        let label = if policy.label.is_empty() { closure } else { policy.label };
        let begin = Instant::now();
        policy.is_watched.then(|| Box::new(Watched { hook, label, begin, attempts: 1, last_abort: None }))
    }

    #[cold]
    fn end<E: Engine>(self, shared: &DatabaseShared<E>, has_committed: bool) {
        let Watched { hook, label, begin, attempts, last_abort } = self;
        let duration = begin.elapsed();
        let is_slow = duration >= hook.duration_min || attempts >= hook.attempts_min;
        // A request that a hook makes is not reported to it.
        if !is_slow || is_in_foreign_code() {
            return;
        }
        let last_abort = last_abort.map(|mut abort| {
            shared.name_abort(&mut abort);
            abort
        });
        let request = SlowRequest { label, duration, attempts, last_abort, has_committed };
        trace::slow_request(&request);
        call_foreign(|| (hook.hook)(&request));
    }
}
