//! A loaded TPC-C database as the driver runs it.

use ensilo::Database;

use super::consistency;
use super::effects;
use super::load::load;
use super::options::{TRANSACTION_TYPES, TpccOptions};
use super::random::NuRand;
use super::session::TpccSession;
use super::tables::Tables;
use crate::database;
use crate::driver::{Check, Failure, Interrupt, View, Workload};
use crate::random::Random;

/// TPC-C: the database of the options, loaded.
#[derive(Debug)]
pub struct Tpcc {
    pub(super) options: TpccOptions,
    pub(super) database: Database,
    pub(super) tables: Tables,
    pub(super) nu_rand: NuRand,
}

impl Tpcc {
    /// Loads `database`, which is empty. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: TpccOptions,
        database: Database,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let tables = Tables::create(&database)?;
        let (for_load, nu_rand) = constants(&options);
        load(&database, &tables, &options, for_load, view, interrupt)?;
        database::wait_until_stored(&database)?;
        // Read-only transactions are to find the rows from the beginning.
        database::wait_for_fresh_snapshot(&database)?;
        Ok(Self { options, database, tables, nu_rand })
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: TpccOptions, database: Database) -> Result<Self, Failure> {
        let tables = Tables::open(&database)?;
        let (_, nu_rand) = constants(&options);
        Ok(Self { options, database, tables, nu_rand })
    }
}

/// Those for loading and those for running.
fn constants(options: &TpccOptions) -> (NuRand, NuRand) {
    let mut random = Random::new(options.seed);
    let for_load = NuRand::for_load(&mut random);
    let for_run = NuRand::for_run(&for_load, &mut random);
    (for_load, for_run)
}

impl Workload for Tpcc {
    type Session<'a> = TpccSession<'a>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> TpccSession<'_> {
        TpccSession::new(self, worker)
    }

    fn database(&self) -> Option<&Database> {
        Some(&self.database)
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        consistency::check(self, view, interrupt)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        Ok(effects::count(self)?)
    }
}
