//! TPC-C with a long transaction that reads much and writes little, CH-Q2*.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §4.2, TPC-C-hybrid. Query 2 is that of CH-benCHmark (Cole et al., DBTest 2011), with its tables REGION, NATION and
//! SUPPLIER. TPC-C's part is [`tpcc`](crate::tpcc) as it is: tables, load, terminals and the twelve conditions.
//!
//! The paper says that stocks below a threshold are updated, and not which threshold or how; ours stand in `restock`.

mod check;
mod load;
mod options;
mod query;
mod schema;
mod session;
mod supplier_stocks;
#[cfg(test)]
mod tests;
mod workload;

pub use options::{DEFAULT_MIX, HybridOptions, SUPPLIERS, SupplierPercent, TRANSACTION_TYPES, parse_mix};
pub use schema::{Nation, Region, Supplier};
pub use session::HybridSession;
pub use workload::TpccHybrid;
