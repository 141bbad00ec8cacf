//! Random transactions of some workers, taken in turns on one thread, beside prepared ones: what those have read stays as it is.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use common::*;
use ensilo_txn::{
    Abort, AbortReason, AccountId, Direction, Engine, Prepared, PreparedTransaction, Read, Session, Silo,
    Standard, Store, TableId, Transaction, Worker, Write,
};

type Tx<'w> = Transaction<'w, Standard>;
type Rows = Vec<(Vec<u8>, u64)>;

/// The committed rows, with the number of their store.
type Model = BTreeMap<(usize, Vec<u8>), u64>;

/// A small generator of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn len(&mut self) -> usize {
        if self.one_in(4) { 40 } else { 1 }
    }
}

/// Which keys there are.
#[derive(Copy, Clone)]
struct Keys {
    shape: u64,
    count: u64,
}

impl Keys {
    /// Keys of one layer; of two; of some with suffixes; and of many layers.
    fn any(self, numbers: &mut Numbers) -> Vec<u8> {
        let number = numbers.below(self.count);
        match self.shape {
            0 => format!("{number:03}").into_bytes(),
            1 => format!("pppppppp{:02}qqqqqqqq{:02}", number / 6, number % 6).into_bytes(),
            2 => format!("{:08}{}", number / 3, ["", "a", "a-long-end"][number as usize % 3]).into_bytes(),
            _ => [vec![b'z'; number as usize % 30], number.to_string().into_bytes()].concat(),
        }
    }
}

/// A range and what was read there.
struct Seen {
    store: usize,
    low: Vec<u8>,
    high: Vec<u8>,
    rows: Rows,
}

/// What a transaction has read, beside its own writes, and what it will write.
#[derive(Default)]
struct Effects {
    seen: Vec<Seen>,
    writes: Vec<(usize, Vec<u8>, Option<u64>)>,
}

impl Effects {
    fn apply_to(self, model: &mut Model) {
        for (store, key, word) in self.writes {
            match word {
                Some(word) => _ = model.insert((store, key), word),
                None => _ = model.remove(&(store, key)),
            }
        }
    }
}

fn range<T: Read<Store = Store>>(tx: &mut T, store: &Store, low: &[u8], high: &[u8]) -> Result<Rows, Abort> {
    let mut rows = Vec::new();
    let each = |row| {
        rows.push(row);
        ControlFlow::Continue(())
    };
    let bounds = (Bound::Included(low), Bound::Included(high));
    tx.scan_to_read(store, bounds, Direction::Forward, |key, row| (key.to_vec(), row.word(0)), each)?;
    Ok(rows)
}

fn rows_of(model: &Model, store: usize, low: &[u8], high: &[u8]) -> Rows {
    let range = model.range((store, low.to_vec())..=(store, high.to_vec()));
    range.map(|((_, key), &word)| (key.clone(), word)).collect()
}

/// Everything that a run of one seed consists of.
struct Run {
    seed: u64,
    engine: Arc<Silo>,
    stores: [Arc<Store>; 2],
    keys: Keys,
    numbers: Numbers,
    model: Model,
    votes: usize,
    refused: usize,
}

const HIGHEST: &[u8] = &[255; 9];

impl Run {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let engine = manual_engine::<Standard>();
        let stores = [1, 3].map(|id| engine.new_store(TableId(id)).unwrap());
        let keys = Keys { shape: numbers.below(4), count: 8 + numbers.below(80) };
        Run { seed, engine, stores, keys, numbers, model: Model::new(), votes: 0, refused: 0 }
    }

    /// So many random operations at most.
    fn operate(&mut self, tx: &mut Tx<'_>, effects: &mut Effects, count_max: u64) -> Result<(), Abort> {
        for _ in 0..self.numbers.below(count_max + 1) {
            self.step(tx, effects)?;
        }
        Ok(())
    }

    fn step(&mut self, tx: &mut Tx<'_>, effects: &mut Effects) -> Result<(), Abort> {
        let store = self.numbers.below(2) as usize;
        let (key, word) = (self.keys.any(&mut self.numbers), self.numbers.below(1 << 30));
        let row = vec![word; self.numbers.len()];
        let at = Arc::clone(&self.stores[store]);
        match self.numbers.below(6) {
            0 | 1 => {
                let other =
                    if self.numbers.one_in(2) { key.clone() } else { self.keys.any(&mut self.numbers) };
                let (low, high) = if key <= other { (key, other) } else { (other, key) };
                let rows = range(tx, &at, &low, &high)?;
                let is_own =
                    |write: &(usize, Vec<u8>, _)| write.0 == store && low <= write.1 && write.1 <= high;
                if !effects.writes.iter().any(is_own) {
                    effects.seen.push(Seen { store, low, high, rows });
                }
            }
            2 | 3 => {
                if tx.insert(&at, &key, &row, row.len() * 8)? {
                    effects.writes.push((store, key, Some(word)));
                }
            }
            kind => {
                if let Some(found) = tx.find(&at, &key)? {
                    let is_put = kind == 4;
                    if is_put {
                        tx.put(found, &row, row.len() * 8)?
                    } else {
                        tx.delete(found)?
                    }
                    effects.writes.push((store, key, is_put.then_some(word)));
                }
            }
        }
        Ok(())
    }

    /// A transaction that is prepared, if its vote is to commit.
    fn prepare<'w>(
        &mut self,
        worker: &'w mut Worker<Standard>,
    ) -> Option<(PreparedTransaction<'w, Standard>, Effects)> {
        let (mut tx, mut effects) = (worker.begin(), Effects::default());
        self.operate(&mut tx, &mut effects, 4).ok()?;
        let prepared = tx.prepare().ok()?;
        self.votes += 1;
        Some((prepared, effects))
    }

    /// A transaction that ends at once.
    fn attempt(&mut self, worker: &mut Worker<Standard>) {
        let (mut tx, mut effects) = (worker.begin(), Effects::default());
        let done = self.operate(&mut tx, &mut effects, 5);
        if done.is_err() || self.numbers.one_in(5) {
            return;
        }
        self.commit(tx, effects);
    }

    fn commit(&mut self, tx: Tx<'_>, effects: Effects) {
        match tx.commit() {
            Ok(_) => effects.apply_to(&mut self.model),
            Err(abort) => self.refused += usize::from(abort.reason() == AbortReason::PreparedRead),
        }
    }

    /// What prepared transactions have read is as it was.
    fn check(
        &self,
        prepared: &[(PreparedTransaction<'_, Standard>, Effects)],
        worker: &mut Worker<Standard>,
    ) {
        for Seen { store, low, high, rows } in prepared.iter().flat_map(|(_, effects)| &effects.seen) {
            assert_eq!(
                &rows_of(&self.model, *store, low, high),
                rows,
                "seed {}: committed rows have changed",
                self.seed
            );
            match range(&mut worker.begin(), &self.stores[*store], low, high) {
                Ok(now) => assert_eq!(&now, rows, "seed {}: what is read has changed", self.seed),
                Err(abort) => assert_eq!(abort.reason(), AbortReason::PreparedLock),
            }
        }
    }

    /// Some are prepared while another transaction is under way; others come and go, epochs pass, garbage is collected, and the decisions
    /// come one by one.
    fn round(&mut self, workers: &mut [Worker<Standard>; 4]) {
        let [first, second, early, late] = workers;
        let (mut tx, mut effects) = (early.begin(), Effects::default());
        let mut is_fine = self.operate(&mut tx, &mut effects, 3).is_ok();
        let mut prepared: Vec<_> =
            [first, second].into_iter().filter_map(|worker| self.prepare(worker)).collect();
        is_fine = is_fine && self.operate(&mut tx, &mut effects, 2).is_ok();
        let mut under_way = Some((tx, effects));
        let mut steps = self.numbers.below(25);
        while steps > 0 || !prepared.is_empty() {
            steps = steps.saturating_sub(1);
            match self.numbers.below(8) {
                0 => (0..8).for_each(|_| self.engine.epochs().advance()),
                1 => _ = late.collect(),
                2 => match under_way.take() {
                    Some((tx, effects)) if is_fine && self.numbers.one_in(2) => self.commit(tx, effects),
                    _ => {}
                },
                3 if steps == 0 && !prepared.is_empty() => {
                    let at = self.numbers.below(prepared.len() as u64) as usize;
                    let (transaction, effects) = prepared.swap_remove(at);
                    if self.numbers.one_in(3) {
                        transaction.abort();
                    } else {
                        transaction.commit().unwrap();
                        effects.apply_to(&mut self.model);
                    }
                }
                _ => self.attempt(late),
            }
            self.check(&prepared, late);
        }
    }

    fn check_all(&self, worker: &mut Worker<Standard>) {
        for (number, store) in self.stores.iter().enumerate() {
            let rows = range(&mut worker.begin(), store, b"", HIGHEST).unwrap();
            assert_eq!(rows, rows_of(&self.model, number, b"", HIGHEST), "seed {}", self.seed);
        }
    }

    /// Once all is deleted, all memory but that of one node for each tree has come back.
    fn empty(&mut self, workers: &mut [Worker<Standard>; 4]) {
        commit(&mut workers[0], |tx| {
            for (store, key) in self.model.keys() {
                let found = tx.find(&self.stores[*store], key).unwrap().unwrap();
                tx.delete(found).unwrap();
            }
        });
        for _ in 0..8 {
            pass_snapshot(&self.engine);
            workers.iter_mut().for_each(|worker| _ = worker.collect());
            self.engine.collect_orphaned();
        }
        let left = self.engine.statistics();
        assert_eq!((left.transactions.deleted_records, left.transactions.versions), (0, 0));
        for store in &self.stores {
            assert_eq!(self.engine.last_key(store), None, "seed {}: a record is left in the tree", self.seed);
            let bytes = left.memory.of(AccountId(store.id().0));
            assert!(bytes <= NODE_BYTES_MAX, "seed {}: {bytes} bytes are left", self.seed);
        }
    }
}

/// The border nodes of two trees take less, with the bags of suffixes that they keep; some layers that have stayed take more.
const NODE_BYTES_MAX: u64 = 3 << 9;

#[test]
fn what_prepared_transactions_have_read_stays_and_everything_goes_in_the_end() {
    let (mut votes, mut refused) = (0, 0);
    for seed in 0..100 {
        let mut run = Run::new(seed);
        let mut workers = std::array::from_fn(|_| run.engine.session());
        for _ in 0..12 {
            run.round(&mut workers);
            run.check_all(&mut workers[3]);
        }
        run.empty(&mut workers);
        votes += run.votes;
        refused += run.refused;
    }
    assert!(votes > 1000 && refused > 50, "{votes} votes, {refused} refused");
}
