//! What the collector's thread does, step by step.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Remains, Session, WorkerCounters};

use super::LOOK_INTERVAL;
use super::control::CollectorControl;
use super::watched::{Collected, collect_until};
use crate::Result;
use crate::local::ThreadWorker;
use crate::shared::DatabaseShared;

/// How long the thread works at once.
const SLICE: Duration = Duration::from_millis(5);

/// How long it rests before the next slice.
const REST: Duration = Duration::from_millis(5);

/// How long it sleeps at most while there is no garbage. Twice as long each time until then.
const IDLE_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Memory that nobody has used for so long goes back to the system.
const UNUSED_FOR: Duration = Duration::from_secs(5);

/// How long at least from one search for memory that is free as a whole to the next. Twice as long each time
/// one brings nothing.
const TRIM_INTERVAL_MIN: Duration = Duration::from_secs(1);
const TRIM_INTERVAL_MAX: Duration = Duration::from_secs(60);

impl<E: Engine> DatabaseShared<E> {
    /// Starts the collector's thread. It keeps the database's shared part alive until
    /// [`Collector::stop`](super::Collector::stop).
    ///
    /// # Errors
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) when the system has no thread left.
    pub(crate) fn start_collector(self: &Arc<Self>) -> Result<()> {
        self.collector.start(
            Arc::clone(self),
            |shared, control| run(shared, control),
            |shared| shared.close_unless_begun(),
        )
    }

    /// Frees at once what can be freed, when a request of this worker has found no memory; false when there
    /// was nothing to do.
    #[cold]
    pub(crate) fn free_memory(&self, worker: &mut ThreadWorker<E>) -> bool {
        let has_own = worker.raw.remains() == Remains::Now;
        collect_until(worker, || false);
        self.collect_now(Some(worker.raw.counters())) || has_own
    }

    /// Like [`DatabaseShared::free_memory`], on a thread that is between two requests.
    #[cold]
    pub(crate) fn free_memory_of_all(&self) -> bool {
        self.collect_now(None)
    }

    fn collect_now(&self, own: Option<Arc<WorkerCounters>>) -> bool {
        self.collector.control.collect_now(self.engine.epochs().last_tick(), own)
    }
}

fn run<E: Engine>(shared: &DatabaseShared<E>, control: &CollectorControl) {
    let mut pause = LOOK_INTERVAL;
    let mut trims = TrimSchedule { not_before: Instant::now(), interval: TRIM_INTERVAL_MIN, lent_at: None };
    while !control.sleep(pause) {
        shared.held_snapshots.end_older(shared.options.snapshot_age_limit);
        let (asked, tick) = (control.asked(), shared.engine.epochs().last_tick());
        let Collected { remains, has_missed } = collect_for_a_slice(shared, control, asked.is_some());
        if let Some(asked) = asked {
            trims.lend_in_shortage(shared);
            control.answer(asked, (remains != Remains::Now && !has_missed).then_some(tick));
        }
        if remains == Remains::Now {
            trims.expect_more();
        } else {
            trims.trim_if_due(shared);
            trims.lend_in_shortage(shared);
            shared.engine.return_unused_memory(UNUSED_FOR);
        }
        pause = match remains {
            Remains::Now => REST,
            Remains::Later => LOOK_INTERVAL,
            Remains::Nothing => (2 * pause).min(IDLE_INTERVAL_MAX),
        };
    }
}

/// Collects for at most a slice. If `is_asked`, busy workers are visited too if they are between two
/// requests.
fn collect_for_a_slice<E: Engine>(
    shared: &DatabaseShared<E>,
    control: &CollectorControl,
    is_asked: bool,
) -> Collected {
    let began = Instant::now();
    let watched = shared.watched();
    loop {
        let of_workers = watched.iter().map(|watched| watched.collect(began, is_asked.then_some(control)));
        let collected = of_workers.fold(shared.engine.collect_orphaned().into(), Collected::and);
        if collected.remains != Remains::Now || began.elapsed() >= SLICE || control.is_stopped() {
            return collected;
        }
    }
}

/// When memory was looked for that is free as a whole.
#[derive(Debug)]
struct TrimSchedule {
    not_before: Instant,
    interval: Duration,
    /// When memory was lent that was not given back yet.
    lent_at: Option<Instant>,
}

impl TrimSchedule {
    /// Garbage is being freed: the next look may bring something, whatever the last one did.
    fn expect_more(&mut self) {
        self.interval = TRIM_INTERVAL_MIN;
        self.not_before = self.not_before.min(Instant::now() + self.interval);
    }

    fn trim_if_due<E: Engine>(&mut self, shared: &DatabaseShared<E>) {
        let now = Instant::now();
        if now < self.not_before {
            return;
        }
        let brings_nothing = shared.engine.is_sparse() && trim(shared, false) == 0;
        self.interval =
            if brings_nothing { (2 * self.interval).min(TRIM_INTERVAL_MAX) } else { TRIM_INTERVAL_MIN };
        self.not_before = now + self.interval;
    }

    fn lend_in_shortage<E: Engine>(&mut self, shared: &DatabaseShared<E>) {
        if shared.engine.take_shortage() {
            self.lent_at = Some(Instant::now());
            // What was lent before was no help, and may be part of what is free as a whole.
            shared.engine.return_lent_memory();
            trim(shared, true);
            shared.engine.lend_orphaned();
            shared.watched().iter().for_each(|watched| watched.lend());
        } else if self.lent_at.is_some_and(|at| at.elapsed() >= UNUSED_FOR) {
            self.lent_at = None;
            shared.engine.return_lent_memory();
        }
    }
}

/// Takes back what workers have whole, and returns how many bytes. In a shortage, busy workers are visited
/// too if they are between two requests.
fn trim<E: Engine>(shared: &DatabaseShared<E>, is_short: bool) -> u64 {
    let of_orphaned = shared.engine.trim_orphaned();
    of_orphaned + shared.watched().iter().map(|watched| watched.trim(is_short)).sum::<u64>()
}
