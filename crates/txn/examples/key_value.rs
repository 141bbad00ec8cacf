//! What transactions cost over the bare index: the same single-key reads and read-modify-writes through both, in one run.
//!
//! `cargo run --release -p ensilo-txn --example key_value -- [RECORDS] [THREADS] [SECONDS] [ROUNDS] [READ_PERCENT]`
//!
//! *Key-Value* is what Silo's evaluation (SOSP 2013, §5.2) calls the tree underneath the engine: single-key gets and puts, each atomic by
//! itself, without read sets, TIDs, versions or snapshots. 80 of 100 operations read the 100-byte value, the others
//! read it, change it and write it back: a get and then a put in Key-Value, where another put may come between, one
//! transaction in the engine. Both keep records of 128 bytes in the same slabs. The two take turns, and the ratio of every
//! round is printed.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use ensilo_epoch::{EpochOptions, Epochs};
use ensilo_index::{InsertObserver, Lookup, Masstree, NodeId, NodeStamp, NodeVersion};
use ensilo_slab::{AccountId, Pool};
use ensilo_txn::{Engine, EngineOptions, Read, Session, Silo, Store, TableId, Write};

const VALUE_BYTES: usize = 100;
const VALUE_WORDS: usize = VALUE_BYTES.div_ceil(8);
const OPERATIONS_PER_LOOK_AT_THE_CLOCK: u64 = 1024;

type Value = [u64; VALUE_WORDS];

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let argument = |at: usize, default: u64| arguments.get(at).copied().unwrap_or(default);
    let (records, threads) = (argument(0, 10_000_000), argument(1, 1));
    let (time, rounds) = (Duration::from_secs(argument(2, 5)), argument(3, 3));
    let read_percent = argument(4, 80);
    let load = Load { records, threads, time, read_percent };
    let key_value = KeyValue::load(records);
    let transactions = Transactions::load(records);
    for round in 1..=rounds {
        let bare = measure(&load, || key_value.worker());
        let engine = measure(&load, || transactions.worker());
        println!(
            "round {round}: Key-Value {:.3} M/s, transactions {:.3} M/s, ratio {:.3}",
            bare / 1e6,
            engine / 1e6,
            engine / bare
        );
    }
}

/// One thread's way to read and to read-modify-write the record `key`.
trait Worker {
    fn read(&mut self, key: &[u8; 8], value: &mut Value);
    fn read_modify_write(&mut self, key: &[u8; 8]);
}

/// What is asked of both.
struct Load {
    records: u64,
    threads: u64,
    time: Duration,
    read_percent: u64,
}

/// Operations a second of all threads.
fn measure<W: Worker>(load: &Load, worker: impl Fn() -> W + Sync) -> f64 {
    let Load { records, threads, time, read_percent } = *load;
    let begin = Instant::now();
    let work = |thread: u64| {
        let mut worker = worker();
        let mut value = [0; VALUE_WORDS];
        let mut state = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut operations = 0;
        while begin.elapsed() < time {
            for _ in 0..OPERATIONS_PER_LOOK_AT_THE_CLOCK {
                let key = (next(&mut state) % records).to_be_bytes();
                if next(&mut state) % 100 < read_percent {
                    worker.read(&key, black_box(&mut value));
                } else {
                    worker.read_modify_write(&key);
                }
            }
            operations += OPERATIONS_PER_LOOK_AT_THE_CLOCK;
        }
        operations
    };
    let operations: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=threads).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    });
    operations as f64 / begin.elapsed().as_secs_f64()
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The bare index; its values lead to records of a version, which is odd while somebody writes, and words.
struct KeyValue {
    epochs: Arc<Epochs>,
    index: Masstree,
}

#[repr(align(128))]
struct VersionedValue {
    version: AtomicU64,
    words: [AtomicU64; VALUE_WORDS],
}

struct KeyValueWorker<'a> {
    index: &'a Masstree,
    participant: ensilo_epoch::Participant,
}

struct Unobserved;

impl InsertObserver for Unobserved {
    fn changed(&mut self, _: NodeId, _: NodeVersion, _: NodeVersion) {}
    fn split(&mut self, _: NodeId, _: NodeStamp) {}
}

impl KeyValue {
    fn load(records: u64) -> Self {
        let epochs = Epochs::new(EpochOptions::default(), Pool::new(None));
        let participant = epochs.participant();
        let guard = participant.pin();
        let index = Masstree::new(&guard, AccountId(1)).expect("no limit is set");
        for key in 0..records {
            let layout = std::alloc::Layout::new::<VersionedValue>();
            let block =
                guard.allocate(layout, AccountId(1)).expect("no limit is set").cast::<VersionedValue>();
            // SAFETY: a fresh block of this layout, which nobody else knows yet.
            unsafe {
                block.write(VersionedValue {
                    version: AtomicU64::new(0),
                    words: [const { AtomicU64::new(0) }; VALUE_WORDS],
                });
            }
            let value = block.as_ptr().expose_provenance() as u64;
            index
                .insert_if_absent(&key.to_be_bytes(), value, &guard, &mut Unobserved)
                .expect("no limit is set");
        }
        drop(guard);
        KeyValue { epochs, index }
    }

    fn worker(&self) -> KeyValueWorker<'_> {
        KeyValueWorker { index: &self.index, participant: self.epochs.participant() }
    }
}

impl KeyValueWorker<'_> {
    fn with_value<R>(&self, key: &[u8; 8], each: impl FnOnce(&VersionedValue) -> R) -> R {
        let guard = self.participant.pin();
        let Lookup::Found(value) = self.index.get(key, &guard) else { unreachable!("every key was loaded") };
        // SAFETY: the index holds addresses of values that `load` made, which live as long as the pool.
        each(unsafe { &*std::ptr::with_exposed_provenance::<VersionedValue>(value as usize) })
    }
}

impl VersionedValue {
    /// Copies the words of one version.
    fn read(&self, value: &mut Value) {
        loop {
            // Acquire: the words below are at least as new as this version.
            let before = self.version.load(Ordering::Acquire);
            if before & 1 == 0 {
                *value = std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed));
                // Acquire fence: if a word came from a later writer, the load below sees its version.
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == before {
                    return;
                }
            }
            std::hint::spin_loop();
        }
    }

    /// Overwrites the words.
    fn write(&self, words: &Value) {
        loop {
            let before = self.version.load(Ordering::Relaxed) & !1;
            // Acquire: we write over what the previous writer wrote.
            let locked =
                self.version.compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed);
            if locked.is_err() {
                std::hint::spin_loop();
                continue;
            }
            // Release fence: no word becomes visible before the odd version does.
            fence(Ordering::Release);
            for (target, word) in self.words.iter().zip(words) {
                target.store(*word, Ordering::Relaxed);
            }
            // Release: the words before the even version.
            return self.version.store(before + 2, Ordering::Release);
        }
    }
}

impl Worker for KeyValueWorker<'_> {
    fn read(&mut self, key: &[u8; 8], value: &mut Value) {
        self.with_value(key, |stored| stored.read(value));
    }

    fn read_modify_write(&mut self, key: &[u8; 8]) {
        let mut value = [0; VALUE_WORDS];
        self.read(key, &mut value);
        value[0] += 1;
        self.with_value(key, |stored| stored.write(&value));
    }
}

/// The engine, by the interface that tables are built on.
struct Transactions {
    engine: Arc<Silo>,
    store: Arc<Store>,
}

struct TransactionsWorker<'a> {
    store: &'a Store,
    worker: ensilo_txn::Worker,
}

impl Transactions {
    fn load(records: u64) -> Self {
        let engine = <Silo>::start(EngineOptions::default()).expect("a thread for the epochs");
        let store = engine.new_store(TableId(1)).expect("the first store");
        let mut worker = engine.session();
        for key in 0..records {
            let mut tx = worker.begin();
            tx.insert(&store, &key.to_be_bytes(), &[0; VALUE_WORDS], VALUE_BYTES)
                .expect("nobody is in the way");
            tx.commit().expect("nobody is in the way");
        }
        Transactions { engine, store }
    }

    fn worker(&self) -> TransactionsWorker<'_> {
        TransactionsWorker { store: &self.store, worker: self.engine.session() }
    }
}

impl Worker for TransactionsWorker<'_> {
    fn read(&mut self, key: &[u8; 8], value: &mut Value) {
        let mut tx = self.worker.begin();
        let found = tx.get(self.store, key, |row| *value = row.words()).expect("a single read");
        found.expect("every key was loaded");
        tx.commit().expect("a single read");
    }

    fn read_modify_write(&mut self, key: &[u8; 8]) {
        loop {
            let mut tx = self.worker.begin();
            let found = tx.find(self.store, key).expect("a single key").expect("every key was loaded");
            let outcome = tx.read(found, |row| row.words()).and_then(|mut words: Value| {
                words[0] += 1;
                tx.put(found, &words, VALUE_BYTES)
            });
            if outcome.is_ok() && tx.commit().is_ok() {
                return;
            }
        }
    }
}
