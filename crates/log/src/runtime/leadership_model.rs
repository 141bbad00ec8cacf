//! How rounds come about, in every order of the steps of two threads that wait and of the log's thread:
//! `RUSTFLAGS="--cfg loom" cargo test -p ensilo-log --lib --profile quick`.
//!
//! The leader has no disk: its round takes what was committed, moves the epoch on and says that it is stored. All that hands rounds over
//! is as it runs. Time stands still, so that the checker reports a deadlock where a thread would go on after a time only, if at all.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_epoch::Epoch;
use loom::model::Builder;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread::{self, JoinHandle};

use super::durable::{Durable, ReadyCalls};
use super::error::LogError;
use super::leadership::{Lead, Leadership, Led};
use super::notifier::{Notifier, Signals, Sleep};

/// What is wrong in a model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// A thread that leaves its wait with the log believes that the one that leads will find it.
    WaitWithoutNotice,
    /// A thread that leaves its wait does not wake a log's thread that sleeps until a round which nobody hurries.
    ShallowNotice,
    /// A thread that has led does not say at its end that its round has failed.
    NoReport,
    /// A round says that it has stored the epoch that goes on.
    DurableTooEarly,
}

/// The epoch in which the log begins.
const FIRST: u64 = 10;

/// What the threads share.
struct Shared {
    durable: Durable,
    notifier: Notifier,
    global: AtomicU64,
    /// How many transactions have committed.
    committed: AtomicU64,
    /// The last epoch that is stored as a whole.
    stored: AtomicU64,
    has_failed: AtomicBool,
    /// How many rounds were begun.
    rounds: AtomicU64,
    fault: Fault,
}

impl Shared {
    fn global(&self) -> Epoch {
        Epoch::new(self.global.load(Ordering::Acquire))
    }

    fn fail(&self, error: &LogError) {
        self.has_failed.store(true, Ordering::Release);
        self.durable.end(error);
        self.notifier.notify(Sleep::Short, |signals| signals.end = true);
    }
}

impl Led for Shared {
    fn durable(&self) -> &Durable {
        &self.durable
    }

    fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    fn call_leader(&self) {
        if self.fault != Fault::NoReport {
            self.notifier.notify(Sleep::Short, |signals| signals.look = true);
        }
    }

    fn hurry_leader(&self) {
        match self.fault {
            Fault::WaitWithoutNotice => (),
            Fault::ShallowNotice => self.notifier.notify(Sleep::Sound, |signals| signals.look = true),
            _ => self.notifier.notify(Sleep::Long, |signals| signals.look = true),
        }
    }
}

/// How rounds come to an end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RoundsEnd {
    /// When the log is closed.
    Closed,
    /// The round of this number fails.
    FailsAt(u64),
}

/// What makes rounds without a disk.
struct Rounds {
    shared: Arc<Shared>,
    made: u64,
    /// So many transactions had committed before the last round.
    taken: u64,
    end: RoundsEnd,
    is_ended: bool,
}

impl Rounds {
    fn make_round(&mut self) -> Result<ReadyCalls, LogError> {
        self.made += 1;
        self.shared.rounds.store(self.made, Ordering::Relaxed);
        if self.end == RoundsEnd::FailsAt(self.made) {
            return Err(LogError::Unfinished);
        }
        self.taken = self.shared.committed.load(Ordering::Acquire);
        let mark = self.shared.global.fetch_add(1, Ordering::AcqRel) + 1;
        // Relaxed: who learns of it reads the durable epoch first.
        self.shared.stored.store(mark - 1, Ordering::Relaxed);
        let early = u64::from(self.shared.fault == Fault::DurableTooEarly);
        Ok(self.shared.durable.stored(0, Epoch::new(mark + early), self.made).calls)
    }
}

impl Lead for Rounds {
    fn look(&mut self, signals: Signals) -> Result<ReadyCalls, LogError> {
        self.is_ended |= signals.end;
        if self.is_urgent() { self.make_round() } else { Ok(ReadyCalls::default()) }
    }

    fn make_caller_round(&mut self) -> Result<ReadyCalls, LogError> {
        self.make_round()
    }

    fn may_lead_for(&self, epoch: Epoch) -> bool {
        self.shared.durable.epoch() < epoch && epoch <= self.shared.global() && !self.is_ended
    }

    fn is_over(&self) -> bool {
        self.is_ended
    }

    fn is_urgent(&self) -> bool {
        self.shared.durable.is_waited_for(self.shared.global())
    }

    /// While somebody waits it is time at once. A round that nobody waits for comes later, where something has been committed.
    fn next_look(&self) -> Option<(Instant, Sleep)> {
        let now = Instant::now();
        if self.is_urgent() {
            return Some((now, Sleep::Short));
        }
        let is_worthwhile = self.shared.committed.load(Ordering::Acquire) > self.taken;
        is_worthwhile.then_some((now + Duration::from_secs(3600), Sleep::Long))
    }
}

/// A log without files, and its thread.
struct Log {
    shared: Arc<Shared>,
    leadership: Arc<Leadership<Rounds>>,
    thread: JoinHandle<()>,
}

impl Log {
    fn start(fault: Fault, end: RoundsEnd) -> Log {
        let shared = Arc::new(Shared {
            durable: Durable::new(1, Epoch::new(FIRST)),
            notifier: Notifier::new(),
            global: AtomicU64::new(FIRST),
            committed: AtomicU64::new(0),
            stored: AtomicU64::new(FIRST - 1),
            has_failed: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            fault,
        });
        let rounds = Rounds { shared: Arc::clone(&shared), made: 0, taken: 0, end, is_ended: false };
        let leadership = Arc::new(Leadership::new(Some(rounds)));
        let thread = thread::spawn({
            let (shared, leadership) = (Arc::clone(&shared), Arc::clone(&leadership));
            move || {
                if let Err(error) = leadership.lead(&*shared) {
                    shared.fail(&error);
                }
            }
        });
        Log { shared, leadership, thread }
    }

    /// Returns a client, which commits and waits until that is stored. It returns whether it is.
    fn client(&self) -> impl FnOnce() -> bool + 'static {
        let (shared, leadership) = (Arc::clone(&self.shared), Arc::clone(&self.leadership));
        move || {
            let epoch = shared.global();
            shared.committed.fetch_add(1, Ordering::Release);
            let answer = leadership.wait_durable(&*shared, epoch);
            let stored = shared.stored.load(Ordering::Relaxed);
            assert!(
                answer.is_err() || stored >= epoch.get(),
                "answered for {epoch} when {stored} was stored"
            );
            answer.is_ok()
        }
    }

    fn close(self) {
        self.shared.notifier.notify(Sleep::Short, |signals| signals.end = true);
        self.thread.join().unwrap();
    }
}

/// Two clients get their answers, and the log ends when it is closed.
fn two_clients(fault: Fault) {
    let log = Log::start(fault, RoundsEnd::Closed);
    let other = thread::spawn(log.client());
    let is_stored = log.client()();
    assert!(is_stored && other.join().unwrap());
    log.close();
}

/// Two clients get answers although a round fails, and the log ends by itself.
fn a_round_fails<const NUMBER: u64>(fault: Fault) {
    let log = Log::start(fault, RoundsEnd::FailsAt(NUMBER));
    let other = thread::spawn(log.client());
    let are_stored = [log.client()(), other.join().unwrap()];
    assert!(NUMBER > 1 || are_stored == [false; 2]);
    log.close();
}

/// A round fails on a thread that does not go on to wait, and the log ends by itself.
fn a_round_fails_on_a_thread_that_leaves(fault: Fault) {
    let log = Log::start(fault, RoundsEnd::FailsAt(1));
    let epoch = log.shared.global();
    log.shared.committed.fetch_add(1, Ordering::Release);
    assert!(!log.leadership.lead_for(&*log.shared, epoch));
    if log.shared.rounds.load(Ordering::Relaxed) == 0 {
        return log.close();
    }
    log.thread.join().unwrap();
    assert!(log.shared.has_failed());
}

fn explore(fault: Fault, model: fn(Fault)) {
    let check = || {
        let mut builder = Builder::new();
        // LOOM_MAX_PREEMPTIONS explores further: 3 takes minutes.
        builder.preemption_bound = builder.preemption_bound.or(Some(2));
        builder.check(move || model(fault));
    };
    if fault == Fault::None {
        return check();
    }
    let found = catch_unwind(AssertUnwindSafe(check));
    assert!(found.is_err(), "the model does not notice {fault:?}");
}

#[test]
fn nobody_waits_for_ever_and_nobody_is_answered_too_early() {
    explore(Fault::None, two_clients);
}

#[test]
fn a_failed_round_ends_every_wait() {
    explore(Fault::None, a_round_fails::<1>);
    explore(Fault::None, a_round_fails::<2>);
}

#[test]
fn a_round_that_fails_elsewhere_ends_the_log() {
    explore(Fault::None, a_round_fails_on_a_thread_that_leaves);
}

#[test]
fn planted_faults_of_the_hand_over_are_found() {
    explore(Fault::DurableTooEarly, two_clients);
    explore(Fault::WaitWithoutNotice, two_clients);
    explore(Fault::ShallowNotice, two_clients);
    explore(Fault::NoReport, a_round_fails_on_a_thread_that_leaves);
}
