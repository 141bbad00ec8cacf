//! One worker's stream of YCSB transactions.

use std::hint::black_box;

use ensilo::generic::{Table, Transaction};
use ensilo::{Engine, Error, Result};

use super::batch::Batch;
use super::clients::Clients;
use super::keys::Keys;
use super::options::{INSERT, READ, RMW, UPDATE};
use super::record::Record;
use super::table::{Tally, YcsbTable};
use super::value::{self, BLIND};
use crate::driver::{Aborts, Failure, Outcome, Session};
use crate::random::Random;

/// Handles that a transaction of many operations holds at once.
const FOUND_AT_ONCE: usize = 16;

/// A worker: its random numbers, its keys and the operations of its transaction.
#[derive(Debug)]
pub(super) struct RecordSession<'a, R: Record, E: Engine> {
    shared: &'a YcsbTable<R, E>,
    clients: Clients<E>,
    random: Random,
    keys: Keys,
    operations: Operations,
    batch: Batch,
    tally: Tally,
    counts_rmws: bool,
}

/// What a committed transaction waits for and has done.
struct Done {
    epoch: u64,
    effects: u16,
}

/// The operations of one transaction, by kind; they do not depend on each other. The memory is used again by the next.
#[derive(Debug, Default)]
struct Operations {
    reads: Vec<u64>,
    updates: Vec<u64>,
    rmws: Vec<u64>,
    inserts: Vec<u64>,
    scans: Vec<(u64, usize)>,
    /// What a blind update puts in the counter.
    mark: u64,
}

impl<'a, R: Record, E: Engine> RecordSession<'a, R, E> {
    pub(super) fn new(shared: &'a YcsbTable<R, E>, worker: usize) -> Self {
        Self {
            shared,
            clients: Clients::of_worker(&shared.options, worker),
            random: Random::for_stream(shared.options.seed, worker as u64),
            keys: Keys::new(&shared.options, worker),
            operations: Operations::default(),
            batch: Batch::default(),
            tally: Tally::default(),
            counts_rmws: shared.counts_rmws(),
        }
    }

    /// A transaction of one operation. Returns its kind.
    fn run_single(&mut self, aborts: &mut Aborts) -> (usize, Result<Done>) {
        let operation = self.shared.options.mix.shares.draw(&mut self.random);
        let key =
            if operation == INSERT { self.keys.to_insert(0) } else { self.keys.existing(&mut self.random) };
        let YcsbTable { database, options, .. } = self.shared;
        let table = self.shared.table_of(key);
        let request = self.clients.request(database).on_abort(|abort| aborts.count(abort.reason().into()));
        let len = options.value_bytes;
        let result = match operation {
            READ => request.transact_with_epoch(|tx| read(table, tx, key)),
            UPDATE => {
                let mark = self.random.next_u64() | BLIND;
                request.transact_with_epoch(|tx| update(table, tx, key, len, mark))
            }
            RMW => request.transact_with_epoch(|tx| read_modify_write(table, tx, key)),
            INSERT => request.transact_with_epoch(|tx| insert(table, tx, key, len)),
            _ => {
                let limit = self.random.between(1, options.scan_len_max as u64) as usize;
                request.transact_with_epoch(|tx| scan(table, tx, key, limit))
            }
        };
        let done = Tally { rmws: u64::from(operation == RMW), inserts: u64::from(operation == INSERT) };
        (operation, result.map(|((), epoch)| self.note(epoch, done)))
    }

    /// A transaction of many operations, on the one table that there is. Returns whether it wrote.
    fn run_many_operations(&mut self, aborts: &mut Aborts) -> (usize, Result<Done>) {
        self.draw_operations();
        let Self { shared, clients, operations, .. } = self;
        let YcsbTable { database, tables, options, .. } = shared;
        let table = &tables[0];
        let request = clients.request(database).on_abort(|abort| aborts.count(abort.reason().into()));
        let result = request.transact_with_epoch(|tx| operations.run(table, tx, options.value_bytes));
        let done = Tally { rmws: operations.rmws.len() as u64, inserts: operations.inserts.len() as u64 };
        let result = result.map(|((), epoch)| self.note(epoch, done));
        (usize::from(self.operations.is_write()), result)
    }

    /// Takes note of what was committed.
    #[inline]
    fn note(&mut self, epoch: u64, done: Tally) -> Done {
        self.tally.rmws += done.rmws;
        self.tally.inserts += done.inserts;
        self.keys.note_inserted(done.inserts);
        let effects = done.inserts + if self.counts_rmws { done.rmws } else { 0 };
        Done { epoch, effects: effects as u16 }
    }

    fn draw_operations(&mut self) {
        let Self { shared, random, keys, operations, .. } = self;
        operations.clear();
        for _ in 0..shared.options.operations {
            match shared.options.mix.shares.draw(random) {
                READ => operations.reads.push(keys.existing(random)),
                UPDATE => operations.updates.push(keys.existing(random)),
                RMW => operations.rmws.push(keys.existing(random)),
                INSERT => operations.inserts.push(keys.to_insert(operations.inserts.len() as u64)),
                _ => {
                    let limit = random.between(1, shared.options.scan_len_max as u64) as usize;
                    operations.scans.push((keys.existing(random), limit));
                }
            }
        }
        operations.mark = random.next_u64() | BLIND;
    }
}

impl<R: Record, E: Engine> Session for RecordSession<'_, R, E> {
    fn runs_batches(&self) -> bool {
        self.shared.options.batch.is_some()
    }

    fn run_batch(&mut self, _now_unix_us: i64, ended: &mut Vec<(Outcome, Aborts)>) -> Result<(), Failure> {
        self.clients.open(&self.shared.database)?;
        let Self { shared, clients, random, keys, batch, .. } = self;
        batch.draw(&shared.options, random, keys);
        let done = batch.run(shared, clients.request(&shared.database), ended)?;
        self.tally.rmws += done.rmws;
        self.tally.inserts += done.inserts;
        Ok(())
    }

    fn run_one(&mut self, _now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        self.clients.open(&self.shared.database)?;
        let (transaction, result) = if self.shared.options.operations == 1 {
            self.run_single(aborts)
        } else {
            self.run_many_operations(aborts)
        };
        match result {
            Ok(Done { epoch, effects }) => Ok(Outcome { transaction, committed: true, epoch, effects }),
            // Too many conflicts, each counted when it happened.
            Err(Error::Aborted(_)) => Ok(Outcome::not_committed(transaction)),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(self) {
        self.shared.add_tally(&self.tally);
    }
}

impl Operations {
    fn clear(&mut self) {
        let Self { reads, updates, rmws, inserts, scans, mark: _ } = self;
        for keys in [reads, updates, rmws, inserts] {
            keys.clear();
        }
        scans.clear();
    }

    fn is_write(&self) -> bool {
        !(self.updates.is_empty() && self.rmws.is_empty() && self.inserts.is_empty())
    }

    /// Runs all operations; those on keys that are known have their descents interleaved.
    fn run<'t, R: Record, E: Engine>(
        &self,
        table: &Table<R, E>,
        tx: &mut Transaction<'t, E>,
        len: usize,
    ) -> Result<()> {
        table.get_columns_many::<R::Value>(tx, &self.reads, |_, value| {
            black_box(value);
        })?;
        for (keys, is_blind) in [(&self.rmws, false), (&self.updates, true)] {
            for keys in keys.chunks(FOUND_AT_ONCE) {
                self.change(table, tx, keys, len, is_blind)?;
            }
        }
        self.inserts.iter().try_for_each(|&key| insert(table, tx, key, len))?;
        self.scans.iter().try_for_each(|&(key, limit)| scan(table, tx, key, limit))
    }

    /// Changes at most [`FOUND_AT_ONCE`] records.
    fn change<'t, R: Record, E: Engine>(
        &self,
        table: &Table<R, E>,
        tx: &mut Transaction<'t, E>,
        keys: &[u64],
        len: usize,
        is_blind: bool,
    ) -> Result<()> {
        let mut records = [const { None }; FOUND_AT_ONCE];
        table.find_many(tx, keys, |at, found| records[at] = found)?;
        for (&key, found) in keys.iter().zip(&records) {
            let Some(found) = found else { continue };
            if is_blind {
                found.set(tx, R::value(len, |value| value::fill(value, key, self.mark)))?;
            } else {
                found.update(tx, |columns: &mut R::Value| count_up::<R>(columns, key))?;
            }
        }
        Ok(())
    }
}

#[inline]
pub(super) fn read<R: Record, E: Engine>(
    table: &Table<R, E>,
    tx: &mut Transaction<'_, E>,
    key: u64,
) -> Result<()> {
    black_box(table.get_columns::<R::Value>(tx, key)?);
    Ok(())
}

/// Overwrites a record without looking at it. One that is not there yet stays so.
#[inline]
pub(super) fn update<R: Record, E: Engine>(
    table: &Table<R, E>,
    tx: &mut Transaction<'_, E>,
    key: u64,
    len: usize,
    mark: u64,
) -> Result<()> {
    let Some(found) = table.find(tx, key)? else { return Ok(()) };
    found.set(tx, R::value(len, |value| value::fill(value, key, mark)))
}

/// Reads a record and writes it back, changed. Where single keys are all that there is, it is a get and then a put, each with a descent
/// of its own.
#[inline]
pub(super) fn read_modify_write<R: Record, E: Engine>(
    table: &Table<R, E>,
    tx: &mut Transaction<'_, E>,
    key: u64,
) -> Result<()> {
    if !E::IS_TRANSACTIONAL {
        let Some(mut columns) = table.get_columns::<R::Value>(tx, key)? else { return Ok(()) };
        count_up::<R>(&mut columns, key);
        let Some(found) = table.find(tx, key)? else { return Ok(()) };
        return found.set(tx, columns);
    }
    table.update(tx, key, |columns: &mut R::Value| count_up::<R>(columns, key))
}

#[inline]
fn count_up<R: Record>(columns: &mut R::Value, key: u64) {
    let counter = value::counter(columns.as_ref()).wrapping_add(1);
    value::fill(columns.as_mut(), key, counter);
    R::settle(columns);
}

#[inline]
pub(super) fn insert<R: Record, E: Engine>(
    table: &Table<R, E>,
    tx: &mut Transaction<'_, E>,
    key: u64,
    len: usize,
) -> Result<()> {
    table.insert(tx, &R::new(key, len, |value| value::fill(value, key, 0))).map(|_| ())
}

#[inline]
pub(super) fn scan<R: Record, E: Engine>(
    table: &Table<R, E>,
    tx: &mut Transaction<'_, E>,
    key: u64,
    limit: usize,
) -> Result<()> {
    let scan = table.range(key..).limit(limit).columns::<R::Value>();
    scan.for_each(tx, |_, value| {
        black_box(value);
    })
}
