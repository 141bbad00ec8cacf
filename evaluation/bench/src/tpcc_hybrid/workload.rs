//! A loaded database of TPC-C-hybrid as the driver runs it.

use std::sync::{Mutex, PoisonError};

use ensilo::generic::Database;
use ensilo::{Engine, Silo};

use super::check;
use super::load::HybridTables;
use super::options::{HybridOptions, TRANSACTION_TYPES};
use super::query::QueryTables;
use super::session::HybridSession;
use super::supplier_stocks::SupplierStocks;
use crate::database;
use crate::driver::{Check, Failure, Interrupt, View, Workload};
use crate::tpcc::{Arrangement, TpccOf, Whole};

/// TPC-C-hybrid: the database of the options, loaded.
#[derive(Debug)]
pub struct TpccHybrid<E: Engine = Silo> {
    pub(super) options: HybridOptions,
    pub(super) tpcc: TpccOf<Whole<E>>,
    pub(super) tables: HybridTables<E>,
    pub(super) supplier_stocks: SupplierStocks,
    /// `None` when transactions were run that this process knows nothing of.
    tally: Mutex<Option<StockTally>>,
}

/// What is known of the stocks beside what they show.
#[derive(Debug, Clone, Copy)]
pub(super) struct StockTally {
    /// The sum of all quantities after the load.
    pub(super) loaded: u64,
    /// Stocks that were restocked since, the warm-up included.
    pub(super) restocked: u64,
}

impl<E: Engine> TpccHybrid<E> {
    /// Loads `database`, which is empty. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: HybridOptions,
        database: Database<E>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let tables = HybridTables::load(&database, options.suppliers, options.tpcc.seed)?;
        let tpcc = TpccOf::load(options.tpcc.clone(), database, view, interrupt)?;
        let workload = Self::new(options, tpcc, tables);
        let loaded = check::sum_stocks(&workload)?.quantity_and_sold;
        workload.set_tally(StockTally { loaded, restocked: 0 });
        Ok(workload)
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: HybridOptions, database: Database<E>) -> Result<Self, Failure> {
        let tables = HybridTables::open(&database)?;
        let tpcc = TpccOf::open(options.tpcc.clone(), database)?;
        Ok(Self::new(options, tpcc, tables))
    }

    fn new(options: HybridOptions, tpcc: TpccOf<Whole<E>>, tables: HybridTables<E>) -> Self {
        let (warehouses, items) = (options.tpcc.warehouses, options.tpcc.scale.items);
        let supplier_stocks = SupplierStocks::new(options.suppliers, warehouses, items);
        Self { options, tpcc, tables, supplier_stocks, tally: Mutex::new(None) }
    }

    pub(super) fn query_tables(&self) -> QueryTables<'_, E> {
        let tpcc = self.tpcc.tables.of(1);
        QueryTables { tpcc, hybrid: &self.tables, supplier_stocks: &self.supplier_stocks }
    }

    /// Adds the stocks that a session restocked.
    pub(super) fn add_restocked(&self, stocks: u64) {
        if let Some(tally) = self.tally.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            tally.restocked += stocks;
        }
    }

    /// What is known of the stocks, once all sessions have finished.
    pub(super) fn tally(&self) -> Option<StockTally> {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_tally(&self, tally: StockTally) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = Some(tally);
    }
}

impl<E: Engine> Workload for TpccHybrid<E> {
    type Engine = E;
    type Session<'a> = HybridSession<'a, E>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> HybridSession<'_, E> {
        HybridSession::new(self, worker)
    }

    fn database(&self) -> Option<&Database<E>> {
        Some(&self.tpcc.database)
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        let mut checks = self.tpcc.check(view, interrupt)?;
        database::make_fresh_snapshot(&self.tpcc.database)?;
        checks.extend(check::check(self)?);
        Ok(checks)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        let mut effects = self.tpcc.count_effects()?;
        effects.push(0);
        Ok(effects)
    }
}
