//! TPC-C on small databases: the load, each transaction's effects, runs, and every consistency condition violated.

mod arrangements;
mod effects;
mod runs;
mod violations;

use super::loaded::Tpcc;
use super::options::{Scale, TpccOptions};
use crate::driver::{Interrupt, View};
use crate::tests::database;

/// A database of the specification's shape and a fraction of its size.
pub(super) fn small(warehouses: u16, workers: usize) -> TpccOptions {
    TpccOptions { warehouses, scale: Scale { items: 200, customers: 30 }, ..TpccOptions::new(workers) }
}

fn loaded(options: TpccOptions) -> Tpcc {
    Tpcc::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap()
}
