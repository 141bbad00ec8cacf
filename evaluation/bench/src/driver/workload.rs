//! What the driver asks of a workload.

use ensilo::Engine;
use ensilo::generic::Database;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::measurements::Aborts;
use super::view::View;

/// Transactions against one loaded database.
pub trait Workload: Sync {
    /// What runs the transactions of the database.
    type Engine: Engine;
    /// One worker's part: its random numbers, its buffers, its handles to tables.
    type Session<'a>: Session
    where
        Self: 'a;

    /// The names of the transaction types, in the order of [`Outcome::transaction`].
    fn transaction_types(&self) -> &'static [&'static str];

    /// Makes worker `worker`'s session; called on the worker's own thread after it is pinned.
    fn session(&self, worker: usize) -> Self::Session<'_>;

    /// The database of which the driver observes log, memory and durable epoch. The default is none: a transaction is then stored when
    /// it ends, if it ever is.
    fn database(&self) -> Option<&Database<Self::Engine>> {
        None
    }

    /// Checks that the database is consistent; called when no session is left.
    ///
    /// # Errors
    /// A failure of the database itself; an inconsistency is a value.
    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure>;

    /// By transaction type, what the database shows of all transactions since the load: the sum of their [`Outcome::effects`].
    ///
    /// # Errors
    /// A failure of the database.
    fn count_effects(&self) -> Result<Vec<u64>, Failure>;
}

/// One worker's stream of transactions.
pub trait Session {
    /// Runs the next transaction to its end, retries included, and counts in `aborts` each attempt that did not
    /// commit. `now_unix_us` is the time at its start in microseconds since 1970.
    ///
    /// # Errors
    /// A failure that ends the run: memory exhausted, a broken table.
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure>;

    /// Whether the driver calls [`run_batch`](Self::run_batch) in place of [`run_one`](Self::run_one). The default is that it does not.
    fn runs_batches(&self) -> bool {
        false
    }

    /// Runs some transactions whose answers come together, and adds to `ended` how each has ended and its attempts that did not commit.
    /// The default is one transaction.
    ///
    /// # Errors
    /// As [`run_one`](Self::run_one).
    fn run_batch(&mut self, now_unix_us: i64, ended: &mut Vec<(Outcome, Aborts)>) -> Result<(), Failure> {
        let mut aborts = Aborts::default();
        ended.push((self.run_one(now_unix_us, &mut aborts)?, aborts));
        Ok(())
    }

    /// Hands what the session counted to its workload, for the check after the run.
    fn finish(self);
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its type, an index into [`Workload::transaction_types`].
    pub transaction: usize,
    /// False if it was rolled back or gave up after many retries.
    pub committed: bool,
    /// The epoch that has to be durable before it is stored; 0 if it has nothing to wait for.
    pub epoch: u64,
    /// What it added to the database that can be counted there afterwards.
    pub effects: u16,
}

impl Outcome {
    /// A request of this type that was rolled back or gave up.
    pub fn not_committed(transaction: usize) -> Self {
        Self { transaction, committed: false, epoch: 0, effects: 0 }
    }
}

/// Memory of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes in use by rows, index nodes and versions.
    pub live_bytes: u64,
    /// Bytes taken from the operating system.
    pub mapped_bytes: u64,
    /// Older versions of rows that snapshots may need.
    pub versions: u64,
    /// Bytes of those versions.
    pub version_bytes: u64,
    /// Bytes in use by table and index.
    pub by_table: Vec<(String, u64)>,
}
