//! Transactions of one operation that a worker runs as a batch, by [`transact_many`](ensilo::Database::transact_many): what each looks up
//! is loaded for several at once. Its answers come together, so that each transaction takes as long as its batch.

use std::cell::{Cell, RefCell};

use ensilo::generic::{Request, Transaction};
use ensilo::{Engine, Error, NoHook, Result};

use super::keys::Keys;
use super::options::{INSERT, READ, RMW, SCAN, UPDATE, YcsbOptions};
use super::record::Record;
use super::session::{insert, read, read_modify_write, scan, update};
use super::table::{Tally, YcsbTable};
use super::value::BLIND;
use crate::driver::{Aborts, Failure, Outcome};
use crate::random::Random;

/// The operations of a batch. The memory is used again by the next.
#[derive(Debug, Default)]
pub(super) struct Batch {
    operations: Vec<Operation>,
}

/// A transaction.
#[derive(Debug, Clone, Copy)]
struct Operation {
    /// Its place in the batch.
    at: usize,
    kind: usize,
    key: u64,
    /// What a blind update puts in the counter.
    mark: u64,
    /// The most records of a scan.
    limit: usize,
}

impl Batch {
    /// Draws the operations. The keys of inserts are used up, whatever becomes of them.
    pub(super) fn draw(&mut self, options: &YcsbOptions, random: &mut Random, keys: &mut Keys) {
        self.operations.clear();
        for at in 0..options.batch.unwrap_or(1) {
            let kind = options.mix.shares.draw(random);
            let key = if kind == INSERT { keys.to_insert(0) } else { keys.existing(random) };
            keys.note_inserted(u64::from(kind == INSERT));
            let mark = if kind == UPDATE { random.next_u64() | BLIND } else { 0 };
            let limit =
                if kind == SCAN { random.between(1, options.scan_len_max as u64) as usize } else { 0 };
            self.operations.push(Operation { at, kind, key, mark, limit });
        }
    }

    /// Runs them, and adds to `ended` what has become of each. Returns what the committed ones have done together.
    ///
    /// # Errors
    /// A failure of the database.
    pub(super) fn run<R: Record, E: Engine>(
        &self,
        shared: &YcsbTable<R, E>,
        request: Request<'_, NoHook, E>,
        ended: &mut Vec<(Outcome, Aborts)>,
    ) -> Result<Tally, Failure> {
        let (running, aborts) = (Cell::new(0), RefCell::new(vec![Aborts::default(); self.operations.len()]));
        let request =
            request.on_abort(|abort| aborts.borrow_mut()[running.get()].count(abort.reason().into()));
        let results = request.transact_many_with_epoch(
            &self.operations,
            |operation, prefetch| prefetch.row(shared.table_of(operation.key), operation.key),
            |tx, operation| {
                running.set(operation.at);
                operation.run(shared, tx)
            },
        )?;
        let mut done = Tally::default();
        for ((operation, result), aborts) in self.operations.iter().zip(results).zip(aborts.into_inner()) {
            ended.push((operation.outcome(result, shared.counts_rmws(), &mut done)?, aborts));
        }
        Ok(done)
    }
}

impl Operation {
    fn run<R: Record, E: Engine>(&self, shared: &YcsbTable<R, E>, tx: &mut Transaction<'_, E>) -> Result<()> {
        let (table, len) = (shared.table_of(self.key), shared.options.value_bytes);
        match self.kind {
            READ => read(table, tx, self.key),
            UPDATE => update(table, tx, self.key, len, self.mark),
            RMW => read_modify_write(table, tx, self.key),
            INSERT => insert(table, tx, self.key, len),
            _ => scan(table, tx, self.key, self.limit),
        }
    }

    /// How the transaction has ended, and in `done` what it has done.
    fn outcome(
        &self,
        result: Result<((), u64)>,
        counts_rmws: bool,
        done: &mut Tally,
    ) -> Result<Outcome, Failure> {
        let epoch = match result {
            Ok(((), epoch)) => epoch,
            // Too many conflicts, each counted when it happened.
            Err(Error::Aborted(_)) => return Ok(Outcome::not_committed(self.kind)),
            Err(error) => return Err(error.into()),
        };
        done.rmws += u64::from(self.kind == RMW);
        done.inserts += u64::from(self.kind == INSERT);
        let leaves_trace = self.kind == INSERT || self.kind == RMW && counts_rmws;
        Ok(Outcome { transaction: self.kind, committed: true, epoch, effects: u16::from(leaves_trace) })
    }
}
