//! TPC-C on Ensilo itself: the workload of `ensilo-bench`, with clients that wait for their answers.

use std::fmt;

use ensilo::{Database, Silo};
use ensilo_bench::driver::{Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use ensilo_bench::tpcc::{Tpcc, TpccOptions, TpccSession, Whole};

/// A loaded TPC-C database of Ensilo.
#[derive(Debug)]
pub struct OwnTpcc {
    tpcc: Tpcc,
    database: Database,
}

/// A worker's stream of transactions, each of which ends when it is stored, if the database stores them.
pub struct OwnTpccSession<'a> {
    session: TpccSession<'a, Whole<Silo>>,
    database: &'a Database,
}

impl fmt::Debug for OwnTpccSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnTpccSession").finish_non_exhaustive()
    }
}

impl OwnTpcc {
    /// The workload of a `database` that was loaded with the same options.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: TpccOptions, database: Database) -> Result<Self, Failure> {
        Ok(Self { tpcc: Tpcc::open(options, database.clone())?, database })
    }
}

impl Workload for OwnTpcc {
    type Engine = Silo;
    type Session<'a> = OwnTpccSession<'a>;

    fn transaction_types(&self) -> &'static [&'static str] {
        self.tpcc.transaction_types()
    }

    fn session(&self, worker: usize) -> OwnTpccSession<'_> {
        OwnTpccSession { session: self.tpcc.session(worker), database: &self.database }
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        self.tpcc.check(view, interrupt)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        self.tpcc.count_effects()
    }
}

impl Session for OwnTpccSession<'_> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let outcome = self.session.run_one(now_unix_us, aborts)?;
        // What is not committed has nothing to wait for.
        if outcome.committed && self.database.durable_epoch().is_some() {
            self.database.ticket(outcome.epoch)?.wait()?;
        }
        Ok(outcome)
    }

    fn finish(self) {
        self.session.finish();
    }
}
