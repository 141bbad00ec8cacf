//! What all threads of a round have recorded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use ensilo::Engine;
use ensilo::generic::Database;
use ensilo_check::{History, Options, Transaction, TransactionId, Verdict, check};

use super::truncations::{self, Truncation};
use crate::engine::transaction_of;

#[derive(Default)]
pub(crate) struct Recorder {
    threads: AtomicU32,
    transactions: Mutex<Vec<Transaction>>,
    truncations: Mutex<Vec<Truncation>>,
}

/// One thread's part. What it has not taken when it is dropped is lost, so that a thread takes after its last request.
pub(crate) struct Recording<'r> {
    recorder: &'r Recorder,
    worker: u32,
    taken: Vec<Transaction>,
}

impl Recorder {
    /// Begins to record what the calling thread does.
    pub(crate) fn start<E: Engine>(&self, db: &Database<E>) -> Recording<'_> {
        let worker = self.threads.fetch_add(1, Ordering::Relaxed);
        let mut recording = Recording { recorder: self, worker, taken: Vec::new() };
        // A worker that another thread has left may have some.
        recording.take(db);
        recording
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Notes that a table was truncated, after all that were noted before.
    pub(crate) fn note(&self, truncation: Truncation) {
        self.truncations.lock().unwrap_or_else(PoisonError::into_inner).push(truncation);
    }

    /// Whether all of it has a serial order, which agrees with that of each thread if the engine promises it.
    pub(crate) fn verdict(&self, program_order: bool) -> Verdict {
        let mut transactions = std::mem::take(&mut *self.lock());
        // ERMIA's engine records no epochs, and has no program order either: each store is looked at by itself there.
        if program_order {
            let truncations = self.truncations.lock().unwrap_or_else(PoisonError::into_inner);
            truncations::add(&mut transactions, &truncations);
        }
        let options =
            Options { program_order, transactions_min: 100, dependencies_min: 100, ..Options::default() };
        check(&History::of(transactions), &options)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Transaction>> {
        self.transactions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording<'_> {
    /// What was taken, in its order.
    pub(crate) fn taken(&self) -> &[Transaction] {
        &self.taken
    }

    /// Takes what was committed since the last call.
    pub(crate) fn take<E: Engine>(&mut self, db: &Database<E>) {
        for record in db.take_history().unwrap() {
            let id = TransactionId { worker: self.worker, sequence: self.taken.len() as u64 };
            self.taken.push(transaction_of(id, &record));
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.recorder.lock().append(&mut self.taken);
    }
}
