//! The slots of threads as the collector sees them: which workers are quiet, and what it does with those.

use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use ensilo_engine::{Engine, Remains, Session, WorkerCounters};

use super::LOOK_INTERVAL;
use super::control::CollectorControl;
use crate::local::ThreadWorker;
use crate::mutex::lock;
use crate::worker::Slot;

/// A worker that ends fewer transactions than one in so many milliseconds is quiet: it may not get round to
/// freeing its garbage.
const QUIET_MILLISECONDS: u128 = 4;

/// Calls of the worker's own collector in one visit, unless its owner comes before.
const STEPS_PER_VISIT: usize = 16;

/// A thread's slot, and what the collector knows of it.
pub(crate) struct WatchedSlot<E: Engine> {
    pub(crate) slot: Weak<Slot<ThreadWorker<E>>>,
    counters: Arc<WorkerCounters>,
    look: Mutex<Observation>,
}

/// What the collector saw when it looked last.
#[derive(Debug)]
struct Observation {
    at: Instant,
    /// Transactions that had ended then.
    ended: u64,
    is_quiet: bool,
    remains: Remains,
}

/// What collecting has come to.
#[derive(Copy, Clone, Debug)]
pub(super) struct Collected {
    pub(super) remains: Remains,
    /// Whether a worker was in use that may have garbage which could be freed.
    pub(super) has_missed: bool,
}

impl Collected {
    pub(super) fn and(self, other: Collected) -> Collected {
        Collected {
            remains: self.remains.max(other.remains),
            has_missed: self.has_missed || other.has_missed,
        }
    }
}

impl From<Remains> for Collected {
    fn from(remains: Remains) -> Self {
        Collected { remains, has_missed: false }
    }
}

impl<E: Engine> WatchedSlot<E> {
    pub(crate) fn new(slot: &Arc<Slot<ThreadWorker<E>>>, counters: Arc<WorkerCounters>) -> Self {
        let look = Observation { at: Instant::now(), ended: 0, is_quiet: false, remains: Remains::Later };
        WatchedSlot { slot: Arc::downgrade(slot), counters, look: Mutex::new(look) }
    }

    /// Frees some of the worker's garbage if it is quiet, or somebody has asked for it, and its owner does
    /// not use it.
    pub(super) fn collect(&self, now: Instant, asked: Option<&CollectorControl>) -> Collected {
        // A slot that is gone has left its worker to the engine.
        let Some(slot) = self.slot.upgrade() else { return Remains::Nothing.into() };
        let mut look = lock(&self.look);
        look.update(now, self.counters.ended());
        let mut has_missed = false;
        if asked.is_some() || look.is_quiet && look.remains != Remains::Nothing {
            let visited = slot.visit(|worker| collect_until(worker, || slot.is_busy()));
            has_missed =
                visited.is_none() && asked.is_some_and(|control| !control.is_waited_for_by(&self.counters));
            look.remains = visited.unwrap_or(Remains::Later);
        }
        Collected { remains: look.remains, has_missed }
    }

    /// Takes memory back that the worker has whole, if it is quiet, or there is a shortage, and its owner
    /// does not use it.
    pub(super) fn trim(&self, is_short: bool) -> u64 {
        let is_visited = is_short || lock(&self.look).is_quiet;
        if is_visited { self.visit(|worker, is_busy| worker.raw.trim(is_busy)).unwrap_or(0) } else { 0 }
    }

    /// Lends what the worker has free, if its owner does not use it. A busy one lends by itself.
    pub(super) fn lend(&self) {
        self.visit(|worker, is_busy| worker.raw.lend(is_busy));
    }

    fn visit<R>(&self, work: impl FnOnce(&mut ThreadWorker<E>, &dyn Fn() -> bool) -> R) -> Option<R> {
        let slot = self.slot.upgrade()?;
        slot.visit(|worker| work(worker, &|| slot.is_busy()))
    }
}

impl Observation {
    fn update(&mut self, now: Instant, ended: u64) {
        let elapsed = now.saturating_duration_since(self.at);
        if elapsed < LOOK_INTERVAL {
            return;
        }
        let more = ended.wrapping_sub(self.ended);
        if more > 0 {
            // It may have left garbage.
            self.remains = Remains::Later;
        }
        self.is_quiet = u128::from(more) <= elapsed.as_millis() / QUIET_MILLISECONDS;
        (self.at, self.ended) = (now, ended);
    }
}

pub(super) fn collect_until<E: Engine>(
    worker: &mut ThreadWorker<E>,
    is_interrupted: impl Fn() -> bool,
) -> Remains {
    let mut remains = worker.raw.collect();
    for _ in 1..STEPS_PER_VISIT {
        if remains != Remains::Now || is_interrupted() {
            break;
        }
        remains = worker.raw.collect();
    }
    remains
}
