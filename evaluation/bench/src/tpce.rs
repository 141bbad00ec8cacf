//! TPC-E, a brokerage house, after its specification's revision 1.14, and TPC-E-hybrid of ERMIA (SIGMOD 2016) §4.2.
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
