//! Random transactions over a small key space, by many threads, with everything that they saw checked afterwards.
//!
//! What is checked, beside the recorded history: every row read was whole; its stamp (every attempt at a transaction
//! stamps the rows that it writes) is that of the transaction which, by the recorded version, wrote it; a transaction sees
//! its own writes; scans keep order and bounds.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use ensilo_check::{Anomaly, History, Options, Tid, Transaction, Verdict, check};
use ensilo_txn::{Advance, Engine, EngineOptions, EngineStatistics, EpochOptions, Protocol, Store, TableId};

use super::attempt::{Attempt, Seen};
use super::random::Random;
use super::transaction_of;

/// One run, drawn from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) stores: usize,
    /// The keys that all stores use, sorted.
    pub(crate) keys: Vec<Box<[u8]>>,
    pub(crate) operations_max: usize,
    pub(crate) epoch_interval: Duration,
    pub(crate) epochs_per_snapshot: u64,
    pub(crate) transactions_per_thread: usize,
    pub(crate) duration_max: Duration,
}

impl Plan {
    pub(crate) fn of_seed(seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let keys = random.within(10..100);
        let shape = random.within(0..4);
        let mut keys: Vec<Box<[u8]>> =
            (0..keys).map(|number| key(shape, number as u8, &mut random)).collect();
        keys.sort();
        keys.dedup();
        Plan {
            seed,
            threads: random.within(2..9),
            stores: random.within(1..4),
            keys,
            operations_max: random.within(2..12),
            epoch_interval: Duration::from_millis(random.within(1..3) as u64),
            epochs_per_snapshot: random.within(1..5) as u64,
            transactions_per_thread: 1500,
            duration_max: Duration::from_millis(600),
        }
    }
}

/// A key that fits one slice, several keys of one slice, long common prefixes, or any of them.
fn key(shape: usize, number: u8, random: &mut Random) -> Box<[u8]> {
    let spread = number.wrapping_mul(151);
    match shape {
        0 => Box::new([0, 0, spread, number]),
        1 => vec![7; 8 + usize::from(number % 12)].into_iter().chain([number]).collect(),
        2 => vec![b'p'; 24].into_iter().chain([spread, 0, number]).collect(),
        _ => key(random.within(0..3), number, random),
    }
}

/// What a transaction saw of a key, and the version that its record names.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) stamp: u64,
    pub(crate) version: Tid,
}

/// What one thread brings home.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) claims: Vec<Claim>,
    /// Stamps of committed transactions with their TIDs.
    pub(crate) stamps: Vec<(u64, Tid)>,
    pub(crate) mismatches: Vec<String>,
    panics: Vec<String>,
}

impl Log {
    fn append(&mut self, other: Log) {
        self.transactions.extend(other.transactions);
        self.claims.extend(other.claims);
        self.stamps.extend(other.stamps);
        self.mismatches.extend(other.mismatches);
        self.panics.extend(other.panics);
    }
}

/// What a run left behind.
pub(crate) struct Outcome {
    plan: Plan,
    pub(crate) verdict: Verdict,
    /// What contradicted the history or the transaction itself.
    pub(crate) mismatches: Vec<String>,
    /// Threads that panicked: assertions of the engine.
    pub(crate) panics: Vec<String>,
    pub(crate) statistics: EngineStatistics,
}

impl Outcome {
    /// Whether nothing at all is wrong, as far as the run can tell.
    pub(crate) fn is_clean(&self) -> bool {
        self.verdict.is_serializable() && self.mismatches.is_empty() && self.panics.is_empty()
    }

    /// The kinds of anomalies that the checker found.
    pub(crate) fn anomalies(&self) -> Vec<Anomaly> {
        match &self.verdict {
            Verdict::Violated(report) => report.anomalies(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { seed, threads, stores, keys, .. } = &self.plan;
        writeln!(f, "seed {seed}: {threads} threads, {stores} stores, {} keys", keys.len())?;
        writeln!(f, "{}", self.verdict)?;
        for mismatch in self.mismatches.iter().chain(&self.panics).take(10) {
            writeln!(f, "  {mismatch}")?;
        }
        write!(f, "{:?}", self.statistics.transactions)
    }
}

/// Runs a plan on a fresh engine and checks what it left.
pub(crate) fn run<P: Protocol>(plan: &Plan) -> Outcome {
    let mut options = EngineOptions::default();
    options.epochs = EpochOptions {
        epoch_interval: plan.epoch_interval,
        epochs_per_snapshot: plan.epochs_per_snapshot,
        advance: Advance::Thread,
    };
    let engine = Engine::<P>::new(options);
    let stores: Vec<Arc<Store>> =
        (1..=plan.stores).map(|id| engine.new_store(TableId(id as u32)).unwrap()).collect();
    let start = Barrier::new(plan.threads);
    let mut log = Log::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|thread| {
                let (engine, stores, start) = (&engine, &stores[..], &start);
                scope.spawn(move || {
                    start.wait();
                    let mut driver = Driver::new(plan, thread, stores);
                    driver.drive_to_the_end(engine);
                    driver.log
                })
            })
            .collect();
        for thread in threads {
            log.append(thread.join().unwrap());
        }
    });
    let mut mismatches = log.mismatches;
    compare_claims(&log.claims, &log.stamps, &mut mismatches);
    let options = Options { transactions_min: 100, dependencies_min: 100, ..Options::default() };
    let verdict = check(&History::of(log.transactions), &options);
    let Log { panics, .. } = log;
    Outcome { plan: plan.clone(), verdict, mismatches, panics, statistics: engine.statistics() }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a thread panicked: {}", text.unwrap_or("?"))
}

/// Each row read carries the stamp of the transaction that wrote the version read.
fn compare_claims(claims: &[Claim], stamps: &[(u64, Tid)], mismatches: &mut Vec<String>) {
    let tids: HashMap<u64, Tid> = stamps.iter().copied().collect();
    for Claim { stamp, version } in claims {
        match tids.get(stamp) {
            None => mismatches
                .push(format!("a row of the uncommitted attempt {stamp:#x} was read as {version:?}")),
            Some(tid) if tid != version => {
                mismatches.push(format!("a row of {tid:?} was recorded as {version:?}"));
            }
            Some(_) => {}
        }
    }
}

/// One thread at work.
struct Driver<'p> {
    plan: &'p Plan,
    thread: usize,
    stores: &'p [Arc<Store>],
    random: Random,
    attempts: u64,
    log: Log,
}

impl<'p> Driver<'p> {
    fn new(plan: &'p Plan, thread: usize, stores: &'p [Arc<Store>]) -> Driver<'p> {
        let random = Random::new(plan.seed ^ (thread as u64 + 1) << 32);
        Driver { plan, thread, stores, random, attempts: 0, log: Log::default() }
    }

    /// Runs transactions; a panic ends that, but what was done until then counts.
    fn drive_to_the_end<P: Protocol>(&mut self, engine: &Arc<Engine<P>>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.drive(engine))) {
            self.log.panics.push(text_of(&*panic));
        }
    }

    /// Runs transactions until there are enough of them. The worker is changed now and then: workers come and go.
    fn drive<P: Protocol>(&mut self, engine: &Arc<Engine<P>>) {
        let deadline = Instant::now() + self.plan.duration_max;
        let mut worker = engine.worker();
        let mut workers = 1;
        for _ in 0..self.plan.transactions_per_thread {
            if Instant::now() > deadline {
                break;
            }
            if self.random.one_in(300) {
                drop(worker);
                worker = engine.worker();
                workers += 1;
            }
            let number = (self.thread * 10_000 + workers) as u32;
            if self.random.one_in(8) {
                self.read_snapshot(&mut worker, number)
            } else {
                self.transact(&mut worker, number)
            }
        }
    }

    fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        (self.thread as u64 + 1) << 40 | self.attempts
    }

    fn transact<P: Protocol>(&mut self, worker: &mut ensilo_txn::Worker<P>, number: u32) {
        let stamp = self.next_attempt();
        let mut attempt = Attempt::new(worker.begin(), stamp, self.stores, &self.plan.keys, &mut self.random);
        let operations = attempt.random.within(1..self.plan.operations_max + 1);
        let mut is_ended = false;
        for _ in 0..operations {
            if attempt.step().is_err() {
                is_ended = true;
                break;
            }
        }
        let is_given_up = attempt.random.one_in(20);
        let (transaction, seen) = attempt.into_parts();
        if is_ended || is_given_up {
            drop(transaction);
            return;
        }
        if ensilo_txn::Write::commit(transaction).is_ok() {
            self.take_record(worker, number, seen, Some(stamp));
        }
    }

    fn read_snapshot<P: Protocol>(&mut self, worker: &mut ensilo_txn::Worker<P>, number: u32) {
        let stamp = self.next_attempt();
        let snapshot = worker.begin_snapshot();
        let mut attempt = Attempt::new(snapshot, stamp, self.stores, &self.plan.keys, &mut self.random);
        let operations = attempt.random.within(1..self.plan.operations_max + 1);
        for _ in 0..operations {
            if attempt.step_of_reader().is_err() {
                break;
            }
        }
        let (snapshot, seen) = attempt.into_parts();
        drop(snapshot);
        self.take_record(worker, number, seen, None);
    }

    /// Takes the record of the transaction that just committed and compares it with what the transaction saw.
    fn take_record<P: Protocol>(
        &mut self,
        worker: &mut ensilo_txn::Worker<P>,
        number: u32,
        seen: Seen,
        stamp: Option<u64>,
    ) {
        let mut records = worker.take_history();
        let Some(record) = records.pop().filter(|_| records.is_empty()) else {
            self.log.mismatches.push(format!("{} records of one commit", records.len()));
            return;
        };
        let id = ensilo_check::TransactionId { worker: number, sequence: self.attempts };
        let mut transaction = transaction_of(id, &record);
        seen.settle(&mut transaction, &self.plan.keys, &mut self.log);
        if let Some(stamp) = stamp {
            self.log.stamps.push((stamp, transaction.tid));
        }
        self.log.transactions.push(transaction);
    }
}
