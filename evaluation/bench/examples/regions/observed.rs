//! A workload whose workers can be looked at.

use ensilo::generic::Database;
use ensilo_bench::driver::{Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use ensilo_sync::region::{Observed, Region, enter, observe};

/// A workload that is run as it is, by workers that are observed during their transactions.
pub(crate) struct ObservedWorkload<'w, W>(pub(crate) &'w W);

pub(crate) struct ObservedSession<S> {
    session: S,
    _observed: Observed,
}

impl<W: Workload> Workload for ObservedWorkload<'_, W> {
    type Engine = W::Engine;
    type Session<'s>
        = ObservedSession<W::Session<'s>>
    where
        Self: 's;

    fn transaction_types(&self) -> &'static [&'static str] {
        self.0.transaction_types()
    }

    fn session(&self, worker: usize) -> Self::Session<'_> {
        ObservedSession { session: self.0.session(worker), _observed: observe(worker) }
    }

    fn database(&self) -> Option<&Database<Self::Engine>> {
        self.0.database()
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        self.0.check(view, interrupt)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        self.0.count_effects()
    }
}

impl<S: Session> Session for ObservedSession<S> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let _workload = enter(Region::Workload);
        self.session.run_one(now_unix_us, aborts)
    }

    fn finish(self) {
        self.session.finish();
    }
}
