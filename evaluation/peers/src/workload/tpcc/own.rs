//! TPC-C on Ensilo itself: the workload of `ensilo-bench`, with clients that wait for their answers.

use std::fmt;

use ensilo::Engine;
use ensilo::generic::Database;
use ensilo_bench::driver::{Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use ensilo_bench::tpcc::{TpccOf, TpccOptions, TpccSession, Whole};

/// A loaded TPC-C database of Ensilo with this engine.
#[derive(Debug)]
pub struct OwnTpcc<E: Engine>(TpccOf<Whole<E>>);

/// A worker's stream of transactions, each of which ends when it is stored, if the database stores them.
pub struct OwnTpccSession<'a, E: Engine> {
    session: TpccSession<'a, Whole<E>>,
    database: Option<&'a Database<E>>,
}

impl<E: Engine> fmt::Debug for OwnTpccSession<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnTpccSession").finish_non_exhaustive()
    }
}

impl<E: Engine> OwnTpcc<E> {
    /// The workload of a `database` that was loaded with the same options.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: TpccOptions, database: Database<E>) -> Result<Self, Failure> {
        TpccOf::open(options, database).map(Self)
    }
}

impl<E: Engine> Workload for OwnTpcc<E> {
    type Engine = E;
    type Session<'a> = OwnTpccSession<'a, E>;

    fn transaction_types(&self) -> &'static [&'static str] {
        self.0.transaction_types()
    }

    fn session(&self, worker: usize) -> OwnTpccSession<'_, E> {
        OwnTpccSession { session: self.0.session(worker), database: self.0.database() }
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        self.0.check(view, interrupt)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        self.0.count_effects()
    }
}

impl<E: Engine> Session for OwnTpccSession<'_, E> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let outcome = self.session.run_one(now_unix_us, aborts)?;
        // What is not committed has nothing to wait for.
        let durable = self.database.filter(|database| database.durable_epoch().is_some());
        if let (true, Some(database)) = (outcome.committed, durable) {
            database.ticket(outcome.epoch)?.wait()?;
        }
        Ok(outcome)
    }

    fn finish(self) {
        self.session.finish();
    }
}
