//! A thread that frees by time what nobody frees in passing: the garbage of idle workers and of those that have left, and dropped tables.
//!
//! What is then free as a whole goes back, for any thread, and to the system if nobody wants it for some time. At the memory limit other
//! free memory is lent to threads that find none.
//!
//! A busy worker frees its own garbage between its transactions. This thread leaves it alone. It works in short steps, and for a
//! part of the time only; an owner that comes back during a step waits for the rest of it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ensilo_epoch::Epoch;
use ensilo_txn::{Protocol, Remains, WorkerCounters};

use crate::error::Name;
use crate::shared::{Shared, ThreadWorker};
use crate::worker::Slot;
use crate::{Error, Result};

/// How long the thread works at once.
const SLICE: Duration = Duration::from_millis(5);

/// How long it rests before the next slice.
const REST: Duration = Duration::from_millis(5);

/// How long it sleeps while garbage waits for the epochs, which do not move faster than that by themselves.
const LOOK_INTERVAL: Duration = Duration::from_millis(40);

/// How long it sleeps at most while there is no garbage. Twice as long each time until then.
const IDLE_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// A worker that ends fewer transactions than one in so many milliseconds is quiet: it may not get round to freeing its garbage.
const QUIET_MILLISECONDS: u128 = 4;

/// Calls of the worker's own collector in one visit, unless its owner comes before.
const STEPS_PER_VISIT: usize = 16;

/// Memory that nobody has used for so long goes back to the system.
const UNUSED_FOR: Duration = Duration::from_secs(5);

/// How long at least from one search for memory that is free as a whole to the next. Twice as long each time one brings nothing.
const TRIM_INTERVAL_MIN: Duration = Duration::from_secs(1);
const TRIM_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The thread, while it runs.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    stop: Arc<Stop>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Stop {
    is_stopped: Mutex<bool>,
    wake: Condvar,
}

/// A thread's slot, and what the collector knows of it.
pub(crate) struct Watched<P: Protocol> {
    pub(crate) slot: Weak<Slot<ThreadWorker<P>>>,
    counters: Arc<WorkerCounters>,
    look: Mutex<Look>,
}

/// What the collector saw when it looked last.
#[derive(Debug)]
struct Look {
    at: Instant,
    /// Transactions that had ended then.
    ended: u64,
    is_quiet: bool,
    remains: Remains,
}

impl Collector {
    /// Starts the thread. It keeps the database's shared part alive until [`Collector::stop`].
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when the system has no thread left.
    pub(crate) fn start<P: Protocol>(&self, shared: Arc<Shared<P>>) -> Result<()> {
        let stop = Arc::clone(&self.stop);
        let thread = thread::Builder::new().name("ensilo-collector".into());
        let thread = thread.spawn(move || run(&shared, &stop));
        let thread = thread.map_err(|error| {
            Error::InvalidOption(Name::new(format!(
                "the thread that collects garbage does not start: {error}"
            )))
        })?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Ends the thread, and waits until it has ended.
    pub(crate) fn stop(&self) {
        *lock(&self.stop.is_stopped) = true;
        self.stop.wake.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && let Err(panic) = thread.join()
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Stop {
    fn is_stopped(&self) -> bool {
        *lock(&self.is_stopped)
    }

    /// Sleeps for so long, or until the end, which it returns.
    fn sleep(&self, duration: Duration) -> bool {
        let is_stopped = lock(&self.is_stopped);
        let woken = self.wake.wait_timeout_while(is_stopped, duration, |is_stopped| !*is_stopped);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn run<P: Protocol>(shared: &Shared<P>, stop: &Stop) {
    let mut pause = LOOK_INTERVAL;
    let mut asked = Epoch::new(0);
    let mut trims = Trims { not_before: Instant::now(), interval: TRIM_INTERVAL_MIN, lent_at: None };
    while !stop.sleep(pause) {
        let remains = collect_for_a_slice(shared, stop);
        ask_for_durable_epoch(shared, &mut asked);
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

fn collect_for_a_slice<P: Protocol>(shared: &Shared<P>, stop: &Stop) -> Remains {
    let began = Instant::now();
    let watched = shared.watched();
    loop {
        let of_workers = watched.iter().map(|watched| watched.collect(began));
        let remains = of_workers.fold(shared.engine.collect_left_behind(), Remains::max);
        if remains != Remains::Now || began.elapsed() >= SLICE || stop.is_stopped() {
            return remains;
        }
    }
}

/// Deleted records wait until their deletion is durable. Where nothing is logged any more nobody else moves the durable epoch on.
fn ask_for_durable_epoch<P: Protocol>(shared: &Shared<P>, asked: &mut Epoch) {
    let Some(durable) = shared.durable() else { return };
    // One at a time, however long the disk takes.
    if durable.log.durable_epoch() < *asked || durable.log.failure().is_some() {
        return;
    }
    if let Some(wanted) = shared.engine.wanted_durable_epoch() {
        *asked = wanted;
        durable.log.on_durable(wanted, Box::new(|_| ()));
    }
}

/// When memory was looked for that is free as a whole.
#[derive(Debug)]
struct Trims {
    not_before: Instant,
    interval: Duration,
    /// When memory was lent that was not given back yet.
    lent_at: Option<Instant>,
}

impl Trims {
    /// Garbage is being freed: the next look may bring something, whatever the last one did.
    fn expect_more(&mut self) {
        self.interval = TRIM_INTERVAL_MIN;
        self.not_before = self.not_before.min(Instant::now() + self.interval);
    }

    fn trim_if_due<P: Protocol>(&mut self, shared: &Shared<P>) {
        let now = Instant::now();
        if now < self.not_before {
            return;
        }
        let brings_nothing = shared.engine.is_sparse() && trim(shared) == 0;
        self.interval =
            if brings_nothing { (2 * self.interval).min(TRIM_INTERVAL_MAX) } else { TRIM_INTERVAL_MIN };
        self.not_before = now + self.interval;
    }

    fn lend_in_shortage<P: Protocol>(&mut self, shared: &Shared<P>) {
        if shared.engine.take_shortage() {
            self.lent_at = Some(Instant::now());
            trim(shared);
            shared.engine.lend_left_behind();
            shared.watched().iter().for_each(|watched| watched.lend());
        } else if self.lent_at.is_some_and(|at| at.elapsed() >= UNUSED_FOR) {
            self.lent_at = None;
            shared.engine.return_lent_memory();
        }
    }
}

/// Takes back what workers have whole, and returns how many bytes.
fn trim<P: Protocol>(shared: &Shared<P>) -> u64 {
    let left_behind = shared.engine.trim_left_behind();
    left_behind + shared.watched().iter().map(|watched| watched.trim()).sum::<u64>()
}

impl<P: Protocol> Watched<P> {
    pub(crate) fn new(slot: &Arc<Slot<ThreadWorker<P>>>, counters: Arc<WorkerCounters>) -> Self {
        let look = Look { at: Instant::now(), ended: 0, is_quiet: false, remains: Remains::Later };
        Watched { slot: Arc::downgrade(slot), counters, look: Mutex::new(look) }
    }

    /// Frees some of the worker's garbage if it is quiet and its owner does not use it.
    fn collect(&self, now: Instant) -> Remains {
        // A slot that is gone has left its worker to the engine.
        let Some(slot) = self.slot.upgrade() else { return Remains::Nothing };
        let mut look = lock(&self.look);
        look.update(now, self.counters.ended());
        if look.is_quiet && look.remains != Remains::Nothing {
            let visited = slot.visit(|worker| collect_until_busy(worker, || slot.is_busy()));
            look.remains = visited.unwrap_or(Remains::Later);
        }
        look.remains
    }
}

impl<P: Protocol> Watched<P> {
    /// Takes memory back that the worker has whole, if it is quiet and its owner does not use it.
    fn trim(&self) -> u64 {
        self.visit_if_quiet(|worker, is_busy| worker.raw.trim(is_busy)).unwrap_or(0)
    }

    /// Lends what the worker has free, as above.
    fn lend(&self) {
        self.visit_if_quiet(|worker, is_busy| worker.raw.lend(is_busy));
    }

    fn visit_if_quiet<R>(
        &self,
        work: impl FnOnce(&mut ThreadWorker<P>, &dyn Fn() -> bool) -> R,
    ) -> Option<R> {
        let slot = self.slot.upgrade()?;
        let is_quiet = lock(&self.look).is_quiet;
        if is_quiet { slot.visit(|worker| work(worker, &|| slot.is_busy())) } else { None }
    }
}

impl Look {
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

fn collect_until_busy<P: Protocol>(worker: &mut ThreadWorker<P>, is_busy: impl Fn() -> bool) -> Remains {
    let mut remains = worker.raw.collect();
    for _ in 1..STEPS_PER_VISIT {
        if remains != Remains::Now || is_busy() {
            break;
        }
        remains = worker.raw.collect();
    }
    remains
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks panics half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
