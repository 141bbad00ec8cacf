//! TPC-E as the driver runs it.

use ensilo::Engine;
use ensilo::generic::Database;

use super::loaded::Tpce;
use super::session::TpceSession;
use super::{consistency, effects};
use crate::driver::{Check, Failure, Interrupt, View, Workload};

impl<E: Engine> Workload for Tpce<E> {
    type Engine = E;
    type Session<'a> = TpceSession<'a, E>;

    fn transaction_types(&self) -> &'static [&'static str] {
        self.options.transaction_types()
    }

    fn session(&self, worker: usize) -> TpceSession<'_, E> {
        TpceSession::new(self, worker)
    }

    fn database(&self) -> Option<&Database<E>> {
        Some(&self.database)
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        consistency::check(self, view, interrupt)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        Ok(effects::count(self)?)
    }
}
