//! TPC-C as the driver runs it.

use ensilo::generic::Database;

use super::arrangement::Arrangement;
use super::loaded::TpccOf;
use super::options::TRANSACTION_TYPES;
use super::session::TpccSession;
use super::{consistency, effects};
use crate::driver::{Check, Failure, Interrupt, View, Workload};

impl<A: Arrangement> Workload for TpccOf<A> {
    type Engine = A::Engine;
    type Session<'a> = TpccSession<'a, A>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> TpccSession<'_, A> {
        TpccSession::new(self, worker)
    }

    fn database(&self) -> Option<&Database<A::Engine>> {
        Some(&self.database)
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        consistency::check(self, view, interrupt)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        Ok(effects::count(self)?)
    }
}
