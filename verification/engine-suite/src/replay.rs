//! A log is replayed in any order, and folded on its way, to what its transactions have left.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use ensilo_engine::{Engine, EngineOptions, Recovered, RecoveredStore, Replayer, Store, Tid};
use ensilo_epoch::{Advance, Epoch};
use ensilo_log::{
    Cursor, Replay, ReplayError, Transactions, Write as LogWrite, delete_bytes, encode_delete, encode_patch,
    encode_put, encode_transaction, patch_bytes_max, put_bytes, transaction_bytes,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

/// What a transaction does to a key.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u64>),
    Patch(Vec<(usize, u64)>),
    Delete,
}

/// The rows by table and key, with the TID of the last change.
type Rows = BTreeMap<(u32, Vec<u8>), (u64, Vec<u64>)>;

fn tid(number: usize) -> u64 {
    // Three transactions an epoch.
    (number as u64 / 3 + 1) << 20 | (number as u64 % 3 + 1) << 3
}

fn steps() -> impl Strategy<Value = Vec<(u32, u8, Step)>> {
    let step = prop_oneof![
        2 => prop::collection::vec(any::<u64>(), 1..40).prop_map(Step::Put),
        4 => prop::collection::vec((0..40usize, any::<u64>()), 1..4).prop_map(Step::Patch),
        1 => Just(Step::Delete),
    ];
    prop::collection::vec((prop_oneof![Just(1u32), Just(3)], 0..6u8, step), 1..60)
}

fn key(key: u8) -> Vec<u8> {
    vec![key; usize::from(key)]
}

/// Applies the steps in order and encodes the log of those that change something, each a transaction.
fn run(steps: &[(u32, u8, Step)]) -> (Rows, Vec<Vec<u8>>) {
    let (mut rows, mut log) = (Rows::new(), Vec::new());
    for (number, (table, name, step)) in steps.iter().enumerate() {
        let place = (*table, key(*name));
        let Some(step) = change(&mut rows, &place, step, tid(number)) else { continue };
        log.push(encode(*table, &place.1, &step, tid(number)));
    }
    (rows, log)
}

/// Changes the rows; returns the step as it can be logged.
fn change(rows: &mut Rows, place: &(u32, Vec<u8>), step: &Step, tid: u64) -> Option<Step> {
    match step {
        Step::Put(row) => _ = rows.insert(place.clone(), (tid, row.clone())),
        Step::Delete => _ = rows.remove(place)?,
        Step::Patch(words) => {
            let (last, row) = rows.get_mut(place)?;
            let words: BTreeMap<_, _> = words.iter().map(|&(at, word)| (at % row.len(), word)).collect();
            words.iter().for_each(|(&at, &word)| row[at] = word);
            *last = tid;
            return Some(Step::Patch(words.into_iter().collect()));
        }
    }
    Some(step.clone())
}

/// Returns what a transaction of one step logs.
fn encode(table: u32, key: &[u8], step: &Step, tid: u64) -> Vec<u8> {
    let body = match step {
        Step::Put(row) => put_bytes(table, key.len(), 8 * row.len()),
        Step::Patch(words) => patch_bytes_max(table, key.len(), words.len()),
        Step::Delete => delete_bytes(table, key.len()),
    };
    let mut bytes = vec![0; transaction_bytes(1) + body];
    let mut cursor = Cursor::new(&mut bytes);
    encode_transaction(&mut cursor, tid, 1);
    match step {
        Step::Put(row) => encode_put(&mut cursor, table, key, 8 * row.len(), row.iter().copied()),
        Step::Patch(words) => {
            let pairs: Vec<_> = words.iter().map(|&(at, word)| (at as u32, word)).collect();
            encode_patch(&mut cursor, table, key, pairs.iter().copied());
        }
        Step::Delete => encode_delete(&mut cursor, table, key),
    }
    let filled = cursor.filled();
    bytes.truncate(filled);
    bytes
}

fn start<E: Engine>() -> Arc<E> {
    let mut options = EngineOptions::default();
    options.epochs.advance = Advance::Manual;
    options.epochs.first_epoch = Epoch::new(1000);
    E::start(options).unwrap()
}

/// The order of a log is free, and so is which thread gets what.
pub fn any_order_on_any_number_of_threads_leaves_the_same_rows<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let case = (steps(), any::<Index>(), any::<u64>(), 1..4usize);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    let outcome = runner.run(&case, |(steps, order, seed, threads)| {
        let (rows, mut log) = run(&steps);
        shuffle(&mut log, seed ^ order.index(usize::MAX) as u64);
        let mut parts = vec![Vec::new(); threads];
        for (at, entry) in log.into_iter().enumerate() {
            // Some entries twice: a crash may leave them so.
            if at % 5 == 0 {
                parts[(at + 1) % threads].push(entry.clone());
            }
            parts[at % threads].push(entry);
        }
        let engine = start::<E>();
        let recovered = replay(&*engine, &parts).unwrap();
        check_rows(&*engine, &recovered, &rows)
    });
    outcome.unwrap();
}

/// Words may be folded at any time, up to any epoch of which all has come.
pub fn words_that_are_folded_at_any_frontier_leave_the_same_rows<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let mut runner = TestRunner::new(ProptestConfig::with_cases(600));
    let outcome = runner.run(&(steps(), disorder()), |(steps, disorder)| {
        let (rows, log) = run(&steps);
        let mut order: Vec<_> = (0..log.len()).collect();
        order.sort_by_key(|&at| at + disorder[at].0);
        let entries: Vec<_> = order.iter().map(|&at| &log[at][..]).collect();
        let folds: Vec<_> = order.iter().map(|&at| &disorder[at].1[..]).collect();
        let engine = start::<E>();
        let recovered = replay_and_fold(&*engine, &entries, &folds).unwrap();
        check_rows(&*engine, &recovered, &rows)
    });
    outcome.unwrap();
}

/// Threads fold as they go, what was remembered of older words is forgotten while others still come, and a long log leaves what its transactions have.
pub fn a_long_log_on_threads_that_fold_leaves_its_rows<E: Engine>() {
    if !E::LOGS {
        return;
    }
    for seed in 1..4 {
        let mut random = Random(seed);
        let steps: Vec<_> = (0..60_000).map(|_| random.step()).collect();
        let (rows, log) = run(&steps);
        let mut order: Vec<_> = (0..log.len()).map(|at| (at + random.delay(), at)).collect();
        order.sort_unstable();
        let entries: Vec<_> = order.iter().map(|&(_, at)| &log[at][..]).collect();
        let engine = start::<E>();
        let recovered = replay_in_pieces(&*engine, &entries, seed as usize).unwrap();
        check_rows(&*engine, &recovered, &rows).unwrap();
    }
}

/// A patch says nothing of the rest of its row.
pub fn words_without_their_row_are_damage<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let patch = encode(1, b"key", &Step::Patch(vec![(0, 7)]), tid(4));
    let replayed = replay(&*start::<E>(), &[vec![patch]]);
    assert!(matches!(replayed, Err(ReplayError::Refused(_))), "{replayed:?}");
}

/// What is missing need not be waited for until the end.
pub fn words_without_their_row_are_damage_as_soon_as_it_cannot_come<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let engine = start::<E>();
    let replayer = engine.replayer();
    let mut worker = replayer.worker();
    let patch = encode(1, b"key", &Step::Patch(vec![(0, 7)]), tid(4));
    replayer.apply(&mut worker, &writes_of(&patch)).unwrap();
    // An engine may fold a part of the rows each time.
    let mut fold = |epoch| (0..100).try_for_each(|_| replayer.fold(&mut worker, Epoch::new(epoch)));
    let epoch = Tid::from_raw(tid(4)).epoch().get();
    fold(epoch).unwrap();
    let folded = fold(epoch + 1);
    assert!(matches!(folded, Err(ReplayError::Refused(_))), "{folded:?}");
}

/// A patch changes words of its row alone.
pub fn words_outside_their_row_are_damage<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let put = encode(1, b"key", &Step::Put(vec![1, 2]), tid(1));
    let patch = encode(1, b"key", &Step::Patch(vec![(2, 7)]), tid(4));
    for order in [[put.clone(), patch.clone()], [patch, put]] {
        let replayed = replay(&*start::<E>(), &[order.to_vec()]);
        assert!(matches!(replayed, Err(ReplayError::Refused(_))), "{replayed:?}");
    }
}

/// A deletion is remembered until all is there.
pub fn an_old_put_does_not_revive_a_deleted_key<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let engine = start::<E>();
    let put = encode(1, b"key", &Step::Put(vec![1, 2]), tid(1));
    let delete = encode(1, b"key", &Step::Delete, tid(4));
    replay(&*engine, &[vec![delete, put]]).unwrap();
    assert!(rows_of(&*engine).is_empty());
    assert!(Tid::from_raw(tid(4)) > Tid::from_raw(tid(1)));
}

/// Replays the log by as many threads as it has parts.
fn replay<E: Engine>(engine: &E, parts: &[Vec<Vec<u8>>]) -> Result<Recovered, ReplayError> {
    let replayer = engine.replayer();
    thread::scope(|scope| {
        let threads: Vec<_> = parts.iter().map(|part| scope.spawn(|| replay_part(&replayer, part))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    replayer.finish()
}

fn replay_part<R: Replay>(replayer: &R, part: &[Vec<u8>]) -> Result<(), ReplayError> {
    let writes: Vec<_> = part.iter().flat_map(|entry| writes_of(entry)).collect();
    replayer.apply(&mut replayer.worker(), &writes)
}

fn writes_of(entry: &[u8]) -> Vec<LogWrite<'_>> {
    let mut transactions = Transactions::new(entry);
    std::iter::from_fn(|| transactions.next_write().unwrap()).collect()
}

/// What a replay does between two entries: a worker folds, up to an epoch so far before the last one that it may.
#[derive(Clone, Debug)]
struct Fold {
    worker: usize,
    epochs_less: u64,
}

/// How far back an entry is put, of how many there are, and the folds before it.
fn disorder() -> impl Strategy<Value = Vec<(usize, Vec<Fold>)>> {
    let fold = (0..WORKERS, prop_oneof![3 => Just(0u64), 1 => 0..5u64]);
    let fold = fold.prop_map(|(worker, epochs_less)| Fold { worker, epochs_less });
    let back = prop_oneof![3 => 0..3usize, 1 => 0..60usize];
    prop::collection::vec((back, prop::collection::vec(fold, 0..4)), 60)
}

const WORKERS: usize = 3;

/// Applies the entries, in their order, by the workers in turn, with the folds before each.
fn replay_and_fold<E: Engine>(
    engine: &E,
    log: &[&[u8]],
    folds: &[&[Fold]],
) -> Result<Recovered, ReplayError> {
    let replayer = engine.replayer();
    let mut workers: Vec<_> = (0..WORKERS).map(|_| replayer.worker()).collect();
    let mut last = [0; WORKERS];
    for (at, entry) in log.iter().enumerate() {
        let epochs = log[at..].iter().map(|entry| Tid::from_raw(writes_of(entry)[0].tid).epoch().get());
        let frontier = epochs.min().unwrap();
        for fold in folds[at] {
            let last = &mut last[fold.worker];
            *last = frontier.saturating_sub(fold.epochs_less).max(*last);
            replayer.fold(&mut workers[fold.worker], Epoch::new(*last))?;
        }
        replayer.apply(&mut workers[at % WORKERS], &writes_of(entry))?;
    }
    drop(workers);
    replayer.finish()
}

/// So many entries go to one thread together.
const PIECE_LEN: usize = 200;

/// Replays the entries, in their order, on so many threads, which take a piece each and fold before it as far as all have come.
fn replay_in_pieces<E: Engine>(engine: &E, log: &[&[u8]], threads: usize) -> Result<Recovered, ReplayError> {
    let pieces: Vec<_> = log.chunks(PIECE_LEN).collect();
    let mut frontiers = vec![u64::MAX; pieces.len() + 1];
    for (at, piece) in pieces.iter().enumerate().rev() {
        let epochs = piece.iter().map(|entry| Tid::from_raw(writes_of(entry)[0].tid).epoch().get());
        frontiers[at] = epochs.min().unwrap().min(frontiers[at + 1]);
    }
    let (replayer, next) = (engine.replayer(), AtomicUsize::new(0));
    let reached: Vec<_> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let work = |thread: usize| -> Result<(), ReplayError> {
        let mut worker = replayer.worker();
        while let at = next.fetch_add(1, Ordering::SeqCst)
            && at < pieces.len()
        {
            reached[thread].store(frontiers[at], Ordering::SeqCst);
            let least = reached.iter().map(|frontier| frontier.load(Ordering::SeqCst)).min().unwrap();
            replayer.fold(&mut worker, Epoch::new(least))?;
            let writes: Vec<_> = pieces[at].iter().flat_map(|entry| writes_of(entry)).collect();
            replayer.apply(&mut worker, &writes)?;
        }
        reached[thread].store(u64::MAX, Ordering::SeqCst);
        Ok(())
    };
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    replayer.finish()
}

/// A generator of the same steps for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }

    /// Returns how many entries later one comes: few of them come late.
    fn delay(&mut self) -> usize {
        let bound = if self.below(20) == 0 { 5000 } else { 20 };
        self.below(bound)
    }

    /// Returns a step, which patches most of the time.
    fn step(&mut self) -> (u32, u8, Step) {
        let (table, key) = (1 + 2 * self.below(2) as u32, self.below(200) as u8);
        let step = match self.below(100) {
            0 => Step::Delete,
            1..=4 => Step::Put((0..=self.below(40)).map(|_| self.below(1000) as u64).collect()),
            _ => {
                Step::Patch((0..=self.below(3)).map(|_| (self.below(40), self.below(1000) as u64)).collect())
            }
        };
        (table, key, step)
    }
}

fn check_rows<E: Engine>(engine: &E, recovered: &Recovered, rows: &Rows) -> Result<(), TestCaseError> {
    prop_assert_eq!(&rows_of(engine), rows);
    for &RecoveredStore { id, rows: count } in &recovered.stores {
        prop_assert_eq!(count, rows.keys().filter(|place| place.0 == id.0).count() as u64);
    }
    Ok(())
}

fn rows_of<E: Engine>(engine: &E) -> Rows {
    let mut rows = Rows::new();
    for store in engine.stores() {
        for range in engine.key_ranges(&store, 5) {
            let _ = engine.walk(
                &store,
                &range,
                Epoch::MAX,
                |record| {
                    let place = (store.id().0, record.key.to_vec());
                    let twice = rows.insert(place, (record.tid.get(), record.words.to_vec()));
                    assert!(twice.is_none(), "a key in two ranges");
                    ControlFlow::Continue(())
                },
                || ControlFlow::Continue(()),
            );
        }
    }
    rows
}

fn shuffle(entries: &mut [Vec<u8>], mut seed: u64) {
    for at in (1..entries.len()).rev() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        entries.swap(at, (seed >> 33) as usize % (at + 1));
    }
}
