//! TPC-E, a brokerage house, after its specification's revision 1.14, and TPC-E-hybrid of ERMIA (SIGMOD 2016) §4.2.
//!
//! All 33 tables, and the twelve transactions with their frames. A worker stands for the customers, the brokers and the market at once: it
//! draws what comes next from the mix, and executes the orders that it has submitted (`exchange`).
//!
//! # Deviations from the specification
//! - Nobody waits: there is no think time and no ratio of customers to throughput is asked for.
//! - The market is a part of each worker (`exchange`). Trade-result and market-feed come by the mix, as ERMIA's evaluation has them,
//!   not when an emulator answers; where nothing was submitted an order comes in a result's place.
//! - A wave of prices takes 15 seconds, not 15 minutes (`prices`), so that orders with a limit meet their price within a run.
//! - A market-feed is one transaction of all twenty entries.
//! - Trades are numbered in blocks for each worker, so that no counter is shared (`numbers`), and the numbers of identifiers begin at 1.
//! - Names, rates and texts are made up here; keys of several columns begin with the column that is asked for (`schema`).
//! - Trades that are loaded are numbered by customer (`generate`). Their quantities, kinds and prices follow the rules of orders, without
//!   the specification's fixed share of orders that were withdrawn.
//! - Customers are drawn by tier alone, without the specification's partitions of customers by driver.
//! - Transactions that only read may run on a snapshot ([`ReadOnly`](crate::tpcc::ReadOnly)), as Silo did in ERMIA's evaluation.
//! - Results are held by clauses of consistency (`consistency`), not by the audit's response times.

mod asset_eval;
mod broker_volume;
mod calendar;
mod cash;
mod consistency;
mod customer_position;
mod data_maintenance;
mod effects;
mod exchange;
mod fees;
mod generate;
mod holdings;
mod input;
mod kind;
mod loaded;
mod lots;
mod market_feed;
mod market_watch;
mod names;
mod numbers;
mod options;
mod population;
mod prices;
mod rows;
pub mod schema;
mod security_detail;
mod session;
mod tables;
mod taxes;
#[cfg(test)]
mod tests;
mod trade_cleanup;
mod trade_details;
mod trade_lookup;
mod trade_order;
mod trade_result;
mod trade_status;
mod trade_update;
mod workload;
mod worth;

pub use loaded::Tpce;
pub use options::{
    CUSTOMERS_MIN, DEFAULT_HYBRID_MIX, DEFAULT_MIX, HYBRID_TRANSACTION_TYPES, TRANSACTION_TYPES, TpceOptions,
    parse_mix,
};
pub use session::TpceSession;
