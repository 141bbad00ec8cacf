//! One worker's stream of transactions.

use ensilo::{Engine, Error, Result};

use super::options::CH_Q2;
use super::query::{Query, QueryScratch};
use super::workload::TpccHybrid;
use crate::driver::{Aborts, Failure, Outcome, Session};
use crate::random::Random;
use crate::tpcc::{TpccSession, Whole};

/// Queries have a stream of random numbers for each worker, up from here.
const FIRST_STREAM: u64 = 1 << 63;

/// A worker: its terminals, and its CH-Q2*.
#[derive(Debug)]
pub struct HybridSession<'a, E: Engine> {
    workload: &'a TpccHybrid<E>,
    terminals: TpccSession<'a, Whole<E>>,
    random: Random,
    scratch: QueryScratch,
    restocked: u64,
}

impl<'a, E: Engine> HybridSession<'a, E> {
    pub(super) fn new(workload: &'a TpccHybrid<E>, worker: usize) -> Self {
        Self {
            workload,
            terminals: TpccSession::new(&workload.tpcc, worker),
            random: Random::for_stream(workload.options.tpcc.seed, FIRST_STREAM + worker as u64),
            scratch: QueryScratch::default(),
            restocked: 0,
        }
    }

    /// Runs one CH-Q2*, and says that it reads mostly. Returns how many stocks it restocked, and its epoch.
    pub(super) fn query(&mut self, aborts: &mut Aborts) -> Result<(u16, u64)> {
        let Self { workload, random, scratch, .. } = self;
        let all = workload.options.suppliers;
        let query = Query::draw(random, workload.options.supplier_percent.of(all), all);
        let tables = workload.query_tables();
        let request = workload.tpcc.database.request().read_mostly();
        let request = request.on_abort(|abort| aborts.count(abort.reason().into()));
        let (restocked, epoch) = request.transact_with_epoch(|tx| query.run(&tables, tx, scratch))?;
        self.restocked += u64::from(restocked);
        Ok((restocked, epoch))
    }
}

impl<E: Engine> Session for HybridSession<'_, E> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        if !self.workload.options.ch_q2.draw(&mut self.random) {
            return self.terminals.run_one(now_unix_us, aborts);
        }
        match self.query(aborts) {
            // Nothing in the database shows how many stocks one transaction restocked.
            Ok((_, epoch)) => Ok(Outcome { transaction: CH_Q2, committed: true, epoch, effects: 0 }),
            // Too many conflicts, each counted when it happened.
            Err(Error::Aborted(_)) => Ok(Outcome::not_committed(CH_Q2)),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(self) {
        self.workload.add_restocked(self.restocked);
        self.terminals.finish();
    }
}
