//! Reads of many random stocks, of which a few are updated: where readers and writers meet, and nothing else.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §4.2, the microbenchmark of figure 1: one transaction that picks rows of TPC-C's table STOCK at random to read,
//! and updates a part of them. The rows are those that [`tpcc`](crate::tpcc) loads.

mod check;
mod options;
mod session;
mod table;
#[cfg(test)]
mod tests;

pub use options::{READS_MAX, StockOptions, TRANSACTION_TYPES, WritePercent};
pub use session::StockSession;
pub use table::StockTable;
