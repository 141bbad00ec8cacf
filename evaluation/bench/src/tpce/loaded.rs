//! A loaded TPC-E database.

use ensilo::generic::Database;
use ensilo::{Columns, Engine, Silo};

use super::generate::load;
use super::numbers::Numbers;
use super::options::TpceOptions;
use super::population::Population;
use super::schema::{AssetHistory, Trade};
use super::tables::Tables;
use super::trade_cleanup;
use crate::database;
use crate::driver::{Failure, Interrupt, View};

#[derive(Columns)]
#[columns(of = Trade)]
struct TradeKey {}

#[derive(Columns)]
#[columns(of = AssetHistory)]
struct EvaluationKey {}

/// TPC-E or TPC-E-hybrid: the database of the options, loaded.
#[derive(Debug)]
pub struct Tpce<E: Engine = Silo> {
    pub(super) options: TpceOptions,
    pub(super) population: Population,
    pub(super) database: Database<E>,
    pub(super) tables: Tables<E>,
    /// The numbers of trades and evaluations that are not there yet.
    pub(super) trades: Numbers,
    pub(super) evaluations: Numbers,
}

impl<E: Engine> Tpce<E> {
    /// Loads `database`, which is empty, and runs trade-cleanup. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: TpceOptions,
        database: Database<E>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let population = Population::new(&options);
        let tables = Tables::create(&database)?;
        load(&database, &tables, &population, &options, view, interrupt)?;
        let (trades, evaluations) = (Numbers::new(options.initial_trades() + 1), Numbers::new(1));
        let tpce = Self { options, population, database, tables, trades, evaluations };
        trade_cleanup::run(&tpce, ensilo::Timestamp::now())?;
        database::wait_until_stored(&tpce.database)?;
        // Transactions that only read are to find the rows from the beginning.
        database::make_fresh_snapshot(&tpce.database)?;
        Ok(tpce)
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: TpceOptions, database: Database<E>) -> Result<Self, Failure> {
        let tables = Tables::open(&database)?;
        let (trade, evaluation) = database.transact(|tx| {
            let trade = tables.trades.scan().reverse().columns::<TradeKey>().first(tx)?;
            let evaluation = tables.asset_histories.scan().reverse().columns::<EvaluationKey>().first(tx)?;
            Ok((trade.map_or(0, |(number, _)| number), evaluation.map_or(0, |((number, _), _)| number)))
        })?;
        let (trades, evaluations) = (Numbers::new(trade + 1), Numbers::new(evaluation + 1));
        Ok(Self { population: Population::new(&options), options, database, tables, trades, evaluations })
    }
}
