//! TPC-E on small databases: the load, each transaction's effects, runs, and every consistency condition violated.

mod effects;
mod runs;
mod violations;

use std::time::Duration;

use ensilo::Engine;

use super::loaded::Tpce;
use super::options::TpceOptions;
use crate::driver::{Interrupt, View};
use crate::tests::database;

/// A fraction of a database, of the specification's shape: 2 000 trades.
fn reduced(options: TpceOptions) -> TpceOptions {
    TpceOptions {
        customers: 100,
        initial_trading_days: 1,
        scale_factor: 1_440,
        daily_market_days: 30,
        news_bytes: 200,
        maintenance_interval: Duration::from_millis(5),
        ..options
    }
}

/// Options of TPC-E.
fn small(workers: usize) -> TpceOptions {
    reduced(TpceOptions::new(workers))
}

fn loaded<E: Engine>(options: TpceOptions) -> Tpce<E> {
    Tpce::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap()
}
