//! A thread that frees by time what nobody frees in passing: the garbage of idle workers and of those that have left, and dropped tables.
//!
//! What is then free as a whole goes back, for any thread, and to the system if nobody wants it for some time. At the memory limit other
//! free memory is lent to threads that find none.
//!
//! A busy worker frees its own garbage between its transactions. This thread leaves it alone. It works in short steps, and for a
//! part of the time only; an owner that comes back during a step waits for the rest of it.
//!
//! A request that finds no memory has the thread do all of this at once, and then runs again.
//!
//! The thread has another use: it closes the database for hooks and wakers, which must not wait for that. It is there until then, also after a
//! panic of its work.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Remains, Session, WorkerCounters};
use ensilo_epoch::Epoch;
use ensilo_log::ForeignAfter;

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

/// How long a request that finds no memory waits for the thread at most.
const COLLECT_NOW_MAX: Duration = Duration::from_secs(1);

/// The thread, while it runs.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    control: Arc<Control>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What others want of the thread.
#[derive(Debug, Default)]
struct Control {
    wanted: Mutex<Wanted>,
    has_changed: Condvar,
}

#[derive(Debug, Default)]
struct Wanted {
    /// The thread was started.
    has_thread: bool,
    is_running: bool,
    is_stopped: bool,
    /// The thread is to close the database.
    closes: bool,
    /// What has ended the thread's work before it was stopped.
    panic: Option<Box<dyn Any + Send>>,
    /// How often somebody has asked for a collection at once, and how many of these were answered.
    asked: u64,
    answered: u64,
    /// The tick of the epochs after which a collection that was asked for has visited all workers and left nothing.
    collected_at: Epoch,
    /// Those who wait in a request, by their workers' counters: such a worker is busy, and has collected its own garbage.
    waiting: Vec<Arc<WorkerCounters>>,
}

/// A thread's slot, and what the collector knows of it.
pub(crate) struct Watched<E: Engine> {
    pub(crate) slot: Weak<Slot<ThreadWorker<E>>>,
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
    pub(crate) fn start<E: Engine>(&self, shared: Arc<Shared<E>>) -> Result<()> {
        let control = Arc::clone(&self.control);
        // Before it runs: it says itself when it does so no more.
        lock(&control.wanted).is_running = true;
        let thread = thread::Builder::new().name("ensilo-collector".into());
        let thread = thread.spawn(move || {
            let _working = ForeignAfter::default();
            let worked = catch_unwind(AssertUnwindSafe(|| run(&shared, &control)));
            control.end_work(worked.err());
            if control.wait_for_end() {
                shared.close_unless_begun();
            }
        });
        let thread = thread.map_err(|error| {
            Error::InvalidOption(Name::new(format!(
                "the thread that collects garbage does not start: {error}"
            )))
        })?;
        *lock(&self.thread) = Some(thread);
        lock(&self.control.wanted).has_thread = true;
        Ok(())
    }

    /// Ends the thread, and waits until it has ended; called on the thread itself, it does not wait.
    ///
    /// # Panics
    /// When the thread's work has panicked.
    pub(crate) fn stop(&self) {
        lock(&self.control.wanted).is_stopped = true;
        self.control.has_changed.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // Panics of its work are caught, see below; one of closing was told to those who ask how that went.
            let _ = thread.join();
        }
        let panic = lock(&self.control.wanted).panic.take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Lets the thread close the database, unless that is being closed, and does not wait for it; false where there is no thread.
    pub(crate) fn close_database(&self) -> bool {
        let mut wanted = lock(&self.control.wanted);
        wanted.closes = true;
        self.control.has_changed.notify_all();
        wanted.has_thread
    }
}

impl Control {
    fn is_stopped(&self) -> bool {
        lock(&self.wanted).is_at_end()
    }

    /// Sleeps for so long, or until somebody asks or it is the end, which it returns.
    fn sleep(&self, duration: Duration) -> bool {
        let wanted = lock(&self.wanted);
        let sleeps = |wanted: &mut Wanted| !wanted.is_at_end() && wanted.asked == wanted.answered;
        let woken = self.has_changed.wait_timeout_while(wanted, duration, sleeps);
        woken.unwrap_or_else(PoisonError::into_inner).0.is_at_end()
    }

    /// Says that the thread collects nothing any more, and lets those go on who wait for it.
    fn end_work(&self, panic: Option<Box<dyn Any + Send>>) {
        let mut wanted = lock(&self.wanted);
        (wanted.is_running, wanted.panic) = (false, panic);
        drop(wanted);
        self.has_changed.notify_all();
    }

    /// Waits until the thread is to end, and returns whether it is to close the database before.
    fn wait_for_end(&self) -> bool {
        let waited = self.has_changed.wait_while(lock(&self.wanted), |wanted| !wanted.is_at_end());
        waited.unwrap_or_else(PoisonError::into_inner).closes
    }

    /// The number of the last request for a collection at once, if it is not answered yet.
    fn asked(&self) -> Option<u64> {
        let wanted = lock(&self.wanted);
        (wanted.asked > wanted.answered).then_some(wanted.asked)
    }

    /// Answers requests up to this one: a collection has left nothing, with any worker, that was ripe at that tick, if there is one.
    fn answer(&self, asked: u64, collected_at: Option<Epoch>) {
        let mut wanted = lock(&self.wanted);
        wanted.answered = asked;
        wanted.collected_at = collected_at.unwrap_or(wanted.collected_at);
        drop(wanted);
        self.has_changed.notify_all();
    }

    /// Has the thread collect garbage at once, and waits until it has; false when nothing can have become free since the last time. `own` is
    /// of the worker that the calling thread is using.
    fn collect_now(&self, tick: Epoch, own: Option<Arc<WorkerCounters>>) -> bool {
        let mut wanted = lock(&self.wanted);
        if wanted.collected_at >= tick || !wanted.is_running {
            return false;
        }
        wanted.asked += 1;
        let number = wanted.asked;
        wanted.waiting.extend(own.clone());
        self.has_changed.notify_all();
        let waits = |wanted: &mut Wanted| wanted.answered < number && wanted.is_running && !wanted.is_stopped;
        let waited = self.has_changed.wait_timeout_while(wanted, COLLECT_NOW_MAX, waits);
        let (mut wanted, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = own {
            wanted.waiting.retain(|waiting| !Arc::ptr_eq(waiting, &own));
        }
        true
    }

    /// Whether the worker's owner waits for a collection.
    fn is_waited_for_by(&self, worker: &Arc<WorkerCounters>) -> bool {
        lock(&self.wanted).waiting.iter().any(|waiting| Arc::ptr_eq(waiting, worker))
    }
}

impl Wanted {
    /// Whether the thread is to leave its work.
    fn is_at_end(&self) -> bool {
        self.is_stopped || self.closes
    }
}

impl<E: Engine> Shared<E> {
    /// Frees at once what can be freed, when a request of this worker has found no memory; false when there was nothing to do.
    #[cold]
    pub(crate) fn free_memory(&self, worker: &mut ThreadWorker<E>) -> bool {
        let has_own = worker.raw.remains() == Remains::Now;
        collect_until(worker, || false);
        self.collect_now(Some(worker.raw.counters())) || has_own
    }

    /// The same between two requests.
    #[cold]
    pub(crate) fn free_memory_of_all(&self) -> bool {
        self.collect_now(None)
    }

    fn collect_now(&self, own: Option<Arc<WorkerCounters>>) -> bool {
        self.collector.control.collect_now(self.engine.epochs().last_tick(), own)
    }
}

fn run<E: Engine>(shared: &Shared<E>, control: &Control) {
    let mut pause = LOOK_INTERVAL;
    let mut wanted_epoch = Epoch::new(0);
    let mut trims = Trims { not_before: Instant::now(), interval: TRIM_INTERVAL_MIN, lent_at: None };
    while !control.sleep(pause) {
        let (asked, tick) = (control.asked(), shared.engine.epochs().last_tick());
        let Collected { remains, has_missed } = collect_for_a_slice(shared, control, asked.is_some());
        ask_for_durable_epoch(shared, &mut wanted_epoch);
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

/// What collecting has come to.
#[derive(Copy, Clone, Debug)]
struct Collected {
    remains: Remains,
    /// Whether a worker was in use that may have garbage which could be freed.
    has_missed: bool,
}

impl Collected {
    fn and(self, other: Collected) -> Collected {
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

/// Where somebody waits, busy workers are visited too if they are between two requests.
fn collect_for_a_slice<E: Engine>(shared: &Shared<E>, control: &Control, is_asked: bool) -> Collected {
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

/// Deleted records wait until their deletion is durable. Where nothing is logged any more nobody else moves the durable epoch on.
fn ask_for_durable_epoch<E: Engine>(shared: &Shared<E>, asked: &mut Epoch) {
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

    fn trim_if_due<E: Engine>(&mut self, shared: &Shared<E>) {
        let now = Instant::now();
        if now < self.not_before {
            return;
        }
        let brings_nothing = shared.engine.is_sparse() && trim(shared, false) == 0;
        self.interval =
            if brings_nothing { (2 * self.interval).min(TRIM_INTERVAL_MAX) } else { TRIM_INTERVAL_MIN };
        self.not_before = now + self.interval;
    }

    fn lend_in_shortage<E: Engine>(&mut self, shared: &Shared<E>) {
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

/// Takes back what workers have whole, and returns how many bytes. In a shortage, busy workers are visited too if they are between two
/// requests.
fn trim<E: Engine>(shared: &Shared<E>, is_short: bool) -> u64 {
    let of_orphaned = shared.engine.trim_orphaned();
    of_orphaned + shared.watched().iter().map(|watched| watched.trim(is_short)).sum::<u64>()
}

impl<E: Engine> Watched<E> {
    pub(crate) fn new(slot: &Arc<Slot<ThreadWorker<E>>>, counters: Arc<WorkerCounters>) -> Self {
        let look = Look { at: Instant::now(), ended: 0, is_quiet: false, remains: Remains::Later };
        Watched { slot: Arc::downgrade(slot), counters, look: Mutex::new(look) }
    }

    /// Frees some of the worker's garbage if it is quiet, or somebody has asked for it, and its owner does not use it.
    fn collect(&self, now: Instant, asked: Option<&Control>) -> Collected {
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
}

impl<E: Engine> Watched<E> {
    /// Takes memory back that the worker has whole, if it is quiet, or there is a shortage, and its owner does not use it.
    fn trim(&self, is_short: bool) -> u64 {
        let is_visited = is_short || lock(&self.look).is_quiet;
        if is_visited { self.visit(|worker, is_busy| worker.raw.trim(is_busy)).unwrap_or(0) } else { 0 }
    }

    /// Lends what the worker has free, if its owner does not use it. A busy one lends by itself.
    fn lend(&self) {
        self.visit(|worker, is_busy| worker.raw.lend(is_busy));
    }

    fn visit<R>(&self, work: impl FnOnce(&mut ThreadWorker<E>, &dyn Fn() -> bool) -> R) -> Option<R> {
        let slot = self.slot.upgrade()?;
        slot.visit(|worker| work(worker, &|| slot.is_busy()))
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

fn collect_until<E: Engine>(worker: &mut ThreadWorker<E>, is_interrupted: impl Fn() -> bool) -> Remains {
    let mut remains = worker.raw.collect();
    for _ in 1..STEPS_PER_VISIT {
        if remains != Remains::Now || is_interrupted() {
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

#[cfg(test)]
mod tests;
