//! A loaded TPC-C database as the driver runs it.

use ensilo::{Database, Engine, Silo};

use super::arrangement::{Arrangement, Whole};
use super::consistency;
use super::effects;
use super::load::load;
use super::options::{TRANSACTION_TYPES, TpccOptions};
use super::random::NuRand;
use super::session::TpccSession;
use crate::database;
use crate::driver::{Check, Failure, Interrupt, View, Workload};
use crate::random::Random;

/// TPC-C on the product.
pub type Tpcc = TpccOf<Whole<Silo>>;

/// TPC-C: the database of the options, loaded, with its tables arranged like this.
#[derive(Debug)]
pub struct TpccOf<A: Arrangement> {
    pub(super) options: TpccOptions,
    pub(super) database: Database<A::Engine>,
    pub(super) tables: A,
}

impl<A: Arrangement> TpccOf<A> {
    /// Loads `database`, which is empty. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: TpccOptions,
        database: Database<A::Engine>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let tables = A::create(&database, &options)?;
        let (for_load, _) = constants(&options);
        load(&database, &tables, &options, for_load, view, interrupt)?;
        database::wait_until_stored(&database)?;
        // Read-only transactions are to find the rows from the beginning.
        database::wait_for_fresh_snapshot(&database)?;
        Ok(Self { options, database, tables })
    }
}

impl<E: Engine> TpccOf<Whole<E>> {
    /// The workload of a `database` that has no tables yet; they are created, empty.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn create(options: TpccOptions, database: Database<E>) -> Result<Self, Failure> {
        let tables = Whole::create(&database, &options)?;
        Ok(Self { options, database, tables })
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: TpccOptions, database: Database<E>) -> Result<Self, Failure> {
        let tables = Whole::open(&database)?;
        Ok(Self { options, database, tables })
    }
}

/// Those for loading and those for running.
pub(super) fn constants(options: &TpccOptions) -> (NuRand, NuRand) {
    let mut random = Random::new(options.seed);
    let for_load = NuRand::for_load(&mut random);
    let for_run = NuRand::for_run(&for_load, &mut random);
    (for_load, for_run)
}

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
