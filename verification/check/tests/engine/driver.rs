//! One thread of a run: transaction after transaction, and what they leave.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_check::{Tid, Transaction, TransactionId};
use ensilo_txn::{Engine, Prepared, Session, TableId, Write};

use super::attempt::{Attempt, Seen};
use super::plan::Plan;
use super::random::Random;
use super::transaction_of;

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
    pub(crate) panics: Vec<String>,
    /// How many transactions were prepared.
    pub(crate) prepared: u64,
}

impl Log {
    pub(crate) fn append(&mut self, other: Log) {
        self.transactions.extend(other.transactions);
        self.claims.extend(other.claims);
        self.stamps.extend(other.stamps);
        self.mismatches.extend(other.mismatches);
        self.panics.extend(other.panics);
        self.prepared += other.prepared;
    }
}

/// After so many snapshots growing stores begin to shrink, and the other way around: long enough for deleted records to
/// leave the tree.
const SNAPSHOTS_PER_TIDE: u64 = 6;

/// So many committed transactions of each thread tell something, however long they take.
const TRANSACTIONS_MIN: usize = 300;

/// A decision comes within this time.
const DECISION_MAX: Duration = Duration::from_millis(50);

/// One thread at work.
pub(crate) struct Driver<'p, E: Engine> {
    plan: &'p Plan,
    thread: usize,
    stores: &'p [Arc<E::Store>],
    random: Random,
    attempts: u64,
    /// No transaction is prepared before then: others have to come through between those that wait for decisions.
    prepares_from: Instant,
    pub(crate) log: Log,
}

impl<'p, E: Engine> Driver<'p, E> {
    pub(crate) fn new(plan: &'p Plan, thread: usize, stores: &'p [Arc<E::Store>]) -> Self {
        let random = Random::new(plan.seed ^ (thread as u64 + 1) << 32);
        Driver {
            plan,
            thread,
            stores,
            random,
            attempts: 0,
            prepares_from: Instant::now(),
            log: Log::default(),
        }
    }

    /// Runs transactions; a panic ends that, but what was done until then counts.
    pub(crate) fn drive_to_the_end(&mut self, engine: &Arc<E>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.drive(engine))) {
            self.log.panics.push(text_of(&*panic));
        }
    }

    /// Runs transactions until there are enough of them. The worker is changed now and then: workers come and go.
    fn drive(&mut self, engine: &Arc<E>) {
        let deadline = Instant::now() + self.plan.duration_max;
        let mut worker = engine.session();
        let mut workers = 1;
        for turn in 0..self.plan.transactions_per_thread {
            if self.plan.drops_a_store && self.thread == 0 && turn == self.plan.transactions_per_thread / 2 {
                assert!(engine.drop_store(TableId(self.plan.stores as u32)));
            }
            if self.log.transactions.len() >= TRANSACTIONS_MIN && Instant::now() > deadline {
                break;
            }
            if self.plan.leaves_memory && self.random.one_in(4) {
                engine.collect_orphaned();
            }
            if self.random.one_in(300) {
                drop(worker);
                worker = engine.session();
                workers += 1;
            }
            let number = match self.plan.has_program_order {
                true => (self.thread * 10_000 + workers) as u32,
                // A worker for each transaction, since two of one worker have no order.
                false => (self.thread << 24) as u32 + self.attempts as u32,
            };
            if self.random.one_in(8) && E::SNAPSHOTS {
                self.read_snapshot(engine, &mut worker, number)
            } else {
                self.transact(engine, &mut worker, number)
            }
        }
    }

    fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        (self.thread as u64 + 1) << 40 | self.attempts
    }

    fn transact(&mut self, engine: &E, worker: &mut E::Session, number: u32) {
        let stamp = self.next_attempt();
        if self.random.one_in(16) {
            // One at a time: others go on without.
            let _ = worker.protect_next();
        }
        let in_use = self.plan.in_use(engine.epochs().global_epoch().get());
        let mut attempt =
            Attempt::new(worker.begin(), stamp, self.stores, &self.plan.keys, in_use, &mut self.random);
        let operations = attempt.random.within(1..self.plan.operations_max + 1);
        let tide =
            engine.epochs().global_epoch().get() / (SNAPSHOTS_PER_TIDE * self.plan.epochs_per_snapshot);
        let is_growing = tide.is_multiple_of(2);
        let mut is_ended = false;
        for _ in 0..operations {
            maybe_linger(engine, self.plan, attempt.random);
            if attempt.step(is_growing, self.plan.mix).is_err() {
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
        let is_prepared = self.plan.prepared_one_in.is_some_and(|times| self.random.one_in(times))
            && E::TWO_PHASE_COMMIT
            && Instant::now() >= self.prepares_from;
        let is_committed = if is_prepared {
            transaction.prepare().is_ok_and(|prepared| self.decide(engine, prepared))
        } else {
            transaction.commit().is_ok()
        };
        if is_committed {
            self.take_record(worker, number, seen, Some(stamp));
        }
    }

    /// Lets others go on, and epochs go by, before the decision. Returns whether the transaction is committed.
    fn decide(&mut self, engine: &E, prepared: impl Prepared) -> bool {
        self.log.prepared += 1;
        let epochs = self.random.within(0..2 * self.plan.epochs_per_snapshot as usize + 2) as u64;
        let until = engine.epochs().global_epoch().get() + epochs;
        let began = Instant::now();
        let deadline = began + DECISION_MAX;
        while engine.epochs().global_epoch().get() < until && Instant::now() < deadline {
            std::thread::yield_now();
        }
        self.prepares_from = Instant::now() + began.elapsed() * 3 * self.plan.threads as u32;
        if self.random.one_in(8) {
            prepared.abort();
            return false;
        }
        prepared.commit().is_ok()
    }

    fn read_snapshot(&mut self, engine: &E, worker: &mut E::Session, number: u32) {
        let stamp = self.next_attempt();
        let snapshot = worker.begin_snapshot();
        let in_use = self.plan.in_use(engine.epochs().global_epoch().get());
        let mut attempt =
            Attempt::new(snapshot, stamp, self.stores, &self.plan.keys, in_use, &mut self.random);
        let operations = attempt.random.within(1..self.plan.operations_max + 1);
        for _ in 0..operations {
            maybe_linger(engine, self.plan, attempt.random);
            if attempt.step_of_reader().is_err() {
                break;
            }
        }
        let (snapshot, seen) = attempt.into_parts();
        drop(snapshot);
        self.take_record(worker, number, seen, None);
    }

    /// Takes the record of the transaction that just committed and compares it with what the transaction saw.
    fn take_record(&mut self, worker: &mut E::Session, number: u32, seen: Seen, stamp: Option<u64>) {
        let mut records = worker.take_history();
        let Some(record) = records.pop().filter(|_| records.is_empty()) else {
            self.log.mismatches.push(format!("{} records of one commit", records.len()));
            return;
        };
        let id = TransactionId { worker: number, sequence: self.attempts };
        let mut transaction = transaction_of(id, &record);
        seen.settle(&mut transaction, &self.plan.keys, &mut self.log);
        if let Some(stamp) = stamp {
            self.log.stamps.push((stamp, transaction.tid));
        }
        self.log.transactions.push(transaction);
    }
}

/// Once in a while, lets some epochs go by in the middle of a transaction.
fn maybe_linger(engine: &impl Engine, plan: &Plan, random: &mut Random) {
    if random.one_in(plan.lingers_one_in) {
        let until = engine.epochs().global_epoch().get() + random.within(1..plan.lingers_for) as u64;
        let deadline = Instant::now() + Duration::from_millis(50);
        while engine.epochs().global_epoch().get() < until && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a thread panicked: {}", text.unwrap_or("?"))
}
