//! A loaded TPC-C database as the driver runs it.

use ensilo::Database;

use super::consistency;
use super::load::load;
use super::options::{TRANSACTION_TYPES, TpccOptions};
use super::random::NuRand;
use super::session::TpccSession;
use super::tables::Tables;
use crate::database::{self, DatabaseOptions};
use crate::driver::{Check, Failure, Interrupt, Memory, View, Workload};
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
    /// Loads a new database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: TpccOptions,
        database_options: DatabaseOptions,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let database = database_options.open()?;
        let tables = Tables::create(&database)?;
        let mut random = Random::new(options.seed);
        let for_load = NuRand::for_load(&mut random);
        let nu_rand = NuRand::for_run(&for_load, &mut random);
        load(&database, &tables, &options, for_load, view, interrupt)?;
        // Read-only transactions are to find the rows from the beginning.
        database::wait_for_fresh_snapshot(&database)?;
        Ok(Self { options, database, tables, nu_rand })
    }
}

impl Workload for Tpcc {
    type Session<'a> = TpccSession<'a>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> TpccSession<'_> {
        TpccSession::new(self, worker)
    }

    fn memory(&self) -> Memory {
        database::memory(&self.database)
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        consistency::check(self, view, interrupt)
    }
}
