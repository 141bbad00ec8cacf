//! TPC-C on small databases: the load, each transaction's effects, runs, and every consistency condition violated.

mod arrangements;
mod effects;
mod runs;
mod violations;

use std::time::Duration;

use super::loaded::Tpcc;
use super::options::{Scale, TpccOptions};
use crate::database::DatabaseOptions;
use crate::driver::{Interrupt, View};
use ensilo::Engine;
use ensilo::generic::Database;

/// A database with epochs short enough that snapshots are fresh within milliseconds.
fn database<E: Engine>() -> Database<E> {
    let options = DatabaseOptions {
        epoch_interval: Some(Duration::from_millis(1)),
        epochs_per_snapshot: Some(4),
        ..DatabaseOptions::default()
    };
    options.open(None).unwrap()
}

/// A database of the specification's shape and a fraction of its size.
pub(super) fn small(warehouses: u16, workers: usize) -> TpccOptions {
    TpccOptions { warehouses, scale: Scale { items: 200, customers: 30 }, ..TpccOptions::new(workers) }
}

fn loaded(options: TpccOptions) -> Tpcc {
    Tpcc::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap()
}
