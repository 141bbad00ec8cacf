//! What is tried again where there is no memory.

use std::thread;
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Remains};

use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// How often, and for how long, what finds no memory is tried again where rows leave memory: a request that needs more
/// than there is at once comes to its end. Attempts that fail fast, since others take what is freed, are not the end.
const EVICTION_ATTEMPTS: u32 = 100;
const EVICTION_TIME: Duration = Duration::from_secs(1);

/// How long it waits until rows have left, if there was nothing to be freed.
const EVICTION_WAIT: Duration = Duration::from_millis(5);

/// The attempts that have found no memory, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    attempts: u32,
    since: Option<Instant>,
}

impl Shortage {
    /// Returns whether the next attempt of a request, after one that has found no memory, may find some. `free` frees
    /// what can be freed at once, and returns whether there was something to do. Where rows leave memory this waits
    /// for some to leave.
    pub(crate) fn ends_by<E: Engine>(
        &mut self,
        shared: &DatabaseShared<E>,
        free: impl FnOnce() -> bool,
    ) -> bool {
        let evicts = self.may_evict(&*shared.engine) && !shared.is_closed();
        if (self.attempts == 1 || evicts) && free() {
            return true;
        }
        if evicts {
            thread::sleep(EVICTION_WAIT);
        }
        evicts
    }

    /// The same for what is done outside of requests, without a pin.
    pub(crate) fn ends_by_eviction<E: Engine>(&mut self, engine: &E) -> bool {
        let evicts = self.may_evict(engine);
        if evicts && engine.collect_orphaned() != Remains::Now && engine.trim_orphaned() == 0 {
            thread::sleep(EVICTION_WAIT);
        }
        evicts
    }

    fn may_evict<E: Engine>(&mut self, engine: &E) -> bool {
        self.attempts += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        let is_early = self.attempts <= EVICTION_ATTEMPTS || since.elapsed() < EVICTION_TIME;
        is_early && engine.evicts()
    }
}

/// Runs this until there is memory for it, as long as rows leave memory. `done` says how far it has come.
///
/// # Errors
/// Its own; [`Error::OutOfMemory`] when it has come no further for so many times.
pub(crate) fn with_room<E: Engine, R>(
    engine: &E,
    done: impl Fn() -> u64,
    mut attempt: impl FnMut() -> Result<R>,
) -> Result<R> {
    let (mut shortage, mut done_before) = (Shortage::default(), done());
    loop {
        let outcome = attempt();
        let Err(Error::OutOfMemory(_)) = outcome else { return outcome };
        let done_now = done();
        if done_now != done_before {
            (shortage, done_before) = (Shortage::default(), done_now);
        }
        if !shortage.ends_by_eviction(engine) {
            return outcome;
        }
    }
}
