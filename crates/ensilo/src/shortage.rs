//! What is tried again where there is no memory.

use std::thread;
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Remains};

use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// What finds no memory is tried again, where rows leave memory, until none has left for so long: a disk that has much to
/// write takes its time.
const EVICTION_TIME: Duration = Duration::from_secs(2);

/// And for so long at most: others may take what rows leave, but what needs more than there is at once comes to its end.
const EVICTION_TIME_MAX: Duration = Duration::from_secs(10);

/// So many attempts are made at once, if something was freed for them.
const QUICK_ATTEMPTS: u32 = 10;

/// How long it waits until rows have left otherwise.
const EVICTION_WAIT: Duration = Duration::from_millis(5);

/// How long it frees at a time.
const COLLECTION_TIME: Duration = Duration::from_millis(5);

/// The attempts that have found no memory, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    attempts: u32,
    since: Option<Instant>,
    /// How many rows had left memory by the last attempt, and since when that is so.
    evicted: Option<(u64, Instant)>,
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
        let may_evict = self.may_evict(&*shared.engine);
        // What is being loaded makes room for itself, and is waited for to its end.
        let is_loading = E::EVICTS && shared.loading.state.is_under_way();
        let evicts = (may_evict || is_loading) && !shared.is_closed();
        // What is freed at once may be too little, or be taken by others, again and again.
        if (self.attempts == 1 || evicts) && free() && self.attempts <= QUICK_ATTEMPTS {
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
        if evicts {
            if !free_orphaned(engine) {
                thread::sleep(EVICTION_WAIT);
            }
            // Nobody else may move the epoch on, behind which rows can leave: a database that is being opened has no rounds of the log.
            let epochs = engine.epochs();
            epochs.advance_past(epochs.global_epoch());
        }
        evicts
    }

    fn may_evict<E: Engine>(&mut self, engine: &E) -> bool {
        self.attempts += 1;
        if !engine.evicts() {
            return false;
        }
        let (now, evicted) = (Instant::now(), engine.statistics().cold.evicted);
        let since = *self.since.get_or_insert(now);
        let (_, evicted_at) = *self.evicted.insert(match self.evicted {
            Some((before, at)) if before == evicted => (before, at),
            _ => (evicted, now),
        });
        now - evicted_at < EVICTION_TIME && now - since < EVICTION_TIME_MAX
    }
}

/// Frees what nobody uses, and lends what lies in heaps that nobody uses, as the collector does, which may not be there yet. Returns
/// whether there was something to do.
fn free_orphaned<E: Engine>(engine: &E) -> bool {
    let began = Instant::now();
    let mut remains = engine.collect_orphaned();
    while remains == Remains::Now && began.elapsed() < COLLECTION_TIME {
        remains = engine.collect_orphaned();
    }
    let trimmed_bytes = engine.trim_orphaned();
    if engine.take_shortage() {
        engine.return_lent_memory();
        engine.lend_orphaned();
    }
    remains == Remains::Now || trimmed_bytes > 0
}

/// Runs this until there is memory for it, as long as rows leave memory. `done` says how far it has come.
///
/// # Errors
/// Its own; [`Error::OutOfMemory`] when it has come no further for so long.
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
