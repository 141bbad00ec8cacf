//! What a TPC-E run can be asked for.

use std::time::Duration;

use crate::mix::{Mix, MixError};
use crate::tpcc::ReadOnly;

/// The names of TPC-E's transaction types: those of the mix in its order, then data-maintenance, which comes by time.
pub const TRANSACTION_TYPES: [&str; 11] = [
    "broker_volume",
    "customer_position",
    "market_feed",
    "market_watch",
    "security_detail",
    "trade_lookup",
    "trade_order",
    "trade_result",
    "trade_status",
    "trade_update",
    "data_maintenance",
];

/// The names of TPC-E-hybrid's transaction types, in the same way.
pub const HYBRID_TRANSACTION_TYPES: [&str; 12] = [
    "broker_volume",
    "customer_position",
    "market_feed",
    "market_watch",
    "security_detail",
    "trade_lookup",
    "trade_order",
    "trade_result",
    "trade_status",
    "trade_update",
    "asset_eval",
    "data_maintenance",
];

/// The default share of each transaction type of TPC-E.
pub const DEFAULT_MIX: [f64; 10] = [4.9, 13.0, 1.0, 18.0, 14.0, 8.0, 10.1, 10.0, 19.0, 2.0];

/// The default share of each transaction type of TPC-E-hybrid: ERMIA (SIGMOD 2016) §4.2.
pub const DEFAULT_HYBRID_MIX: [f64; 11] = [4.9, 8.0, 1.0, 13.0, 14.0, 8.0, 10.1, 10.0, 9.0, 2.0, 20.0];

/// The place of each transaction type in the mix. Data-maintenance stands behind the last.
pub(super) const BROKER_VOLUME: usize = 0;
pub(super) const CUSTOMER_POSITION: usize = 1;
pub(super) const MARKET_FEED: usize = 2;
pub(super) const MARKET_WATCH: usize = 3;
pub(super) const SECURITY_DETAIL: usize = 4;
pub(super) const TRADE_LOOKUP: usize = 5;
pub(super) const TRADE_ORDER: usize = 6;
pub(super) const TRADE_RESULT: usize = 7;
pub(super) const TRADE_STATUS: usize = 8;
pub(super) const TRADE_UPDATE: usize = 9;
pub(super) const ASSET_EVAL: usize = 10;

/// The fewest customers that a database may have.
pub const CUSTOMERS_MIN: u32 = 20;

/// Options of a TPC-E database and its workers.
#[derive(Debug, Clone)]
pub struct TpceOptions {
    /// Customers, at least [`CUSTOMERS_MIN`].
    pub customers: u32,
    /// Days of eight hours whose trades are loaded.
    pub initial_trading_days: u32,
    /// How many customers give one trade a second in the trades that are loaded; at least 1.
    pub scale_factor: u32,
    /// Days of each security's market that are loaded, at least 1; clause 2.6 has five years of them.
    pub daily_market_days: u32,
    /// Bytes of a news item; clause 2.2.6.8 has up to 100 000.
    pub news_bytes: u32,
    /// For TPC-E-hybrid, the percent of the customers whose accounts an evaluation looks at, 1 to 100; `None` for TPC-E.
    pub asset_eval_percent: Option<u8>,
    /// The shares of the transaction types.
    pub mix: Mix,
    /// How transactions run that only read.
    pub read_only: ReadOnly,
    /// The time between two data-maintenances.
    pub maintenance_interval: Duration,
    /// Where all random numbers come from.
    pub seed: u64,
    /// Workers that there will be.
    pub workers: usize,
}

/// Seconds of a trading day, from nine to five.
pub(super) const DAY_SECONDS: u32 = 8 * 3_600;

impl TpceOptions {
    /// TPC-E with the parameters of ERMIA (SIGMOD 2016) §4.2.
    pub fn new(workers: usize) -> Self {
        Self {
            customers: 5_000,
            initial_trading_days: 10,
            scale_factor: 500,
            daily_market_days: 1_305,
            news_bytes: 100_000,
            asset_eval_percent: None,
            mix: default_mix(&DEFAULT_MIX),
            read_only: ReadOnly::default(),
            maintenance_interval: Duration::from_secs(60),
            seed: 1,
            workers,
        }
    }

    /// TPC-E-hybrid, with evaluations of the accounts of this many percent of the customers.
    pub fn hybrid(workers: usize, asset_eval_percent: u8) -> Self {
        Self {
            asset_eval_percent: Some(asset_eval_percent),
            mix: default_mix(&DEFAULT_HYBRID_MIX),
            ..Self::new(workers)
        }
    }

    /// The name of the workload.
    pub(crate) fn name(&self) -> &'static str {
        if self.is_hybrid() { "tpce-hybrid" } else { "tpce" }
    }

    /// Whether it is TPC-E-hybrid.
    pub fn is_hybrid(&self) -> bool {
        self.asset_eval_percent.is_some()
    }

    /// The names of the transaction types.
    pub fn transaction_types(&self) -> &'static [&'static str] {
        if self.is_hybrid() { &HYBRID_TRANSACTION_TYPES } else { &TRANSACTION_TYPES }
    }

    /// The place of data-maintenance among the transaction types.
    pub(super) fn data_maintenance(&self) -> usize {
        self.transaction_types().len() - 1
    }

    /// Trades that are loaded; they are numbered from 1.
    pub fn initial_trades(&self) -> u64 {
        let seconds = u64::from(self.initial_trading_days) * u64::from(DAY_SECONDS);
        u64::from(self.customers) * seconds / u64::from(self.scale_factor)
    }

    /// Bytes of the loaded rows and their indexes, roughly.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        /// Of a trade with all that belongs to it; of a day of a security's market; of a customer with everything else.
        const TRADE_BYTES: u64 = 1_550;
        const DAY_BYTES: u64 = 110;
        const CUSTOMER_BYTES: u64 = 20_000;
        let customers = u64::from(self.customers);
        let days = customers * 685 / 1_000 * u64::from(self.daily_market_days);
        self.initial_trades() * TRADE_BYTES
            + days * DAY_BYTES
            + customers * (CUSTOMER_BYTES + u64::from(self.news_bytes))
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        let mixed = &self.transaction_types()[..self.data_maintenance()];
        let mix: serde_json::Map<_, _> = mixed
            .iter()
            .enumerate()
            .map(|(at, &name)| (name.to_owned(), self.mix.percent(at).into()))
            .collect();
        serde_json::json!({
            "customers": self.customers,
            "initial_trading_days": self.initial_trading_days,
            "scale_factor": self.scale_factor,
            "daily_market_days": self.daily_market_days,
            "news_bytes": self.news_bytes,
            "asset_eval_percent": self.asset_eval_percent,
            "mix": mix,
            "read_only": self.read_only,
            "maintenance_interval_seconds": self.maintenance_interval.as_secs_f64(),
            "seed": self.seed,
        })
    }
}

/// Reads a mix of TPC-E, or of TPC-E-hybrid, like `trade-order=50,trade-result=50`, or shares of all types in their order.
///
/// # Errors
/// Any [`MixError`].
pub fn parse_mix(text: &str, is_hybrid: bool) -> Result<Mix, MixError> {
    let names: &[&str] = if is_hybrid { &HYBRID_TRANSACTION_TYPES } else { &TRANSACTION_TYPES };
    Mix::parse(text, &names[..names.len() - 1])
}

fn default_mix(percents: &[f64]) -> Mix {
    Mix::new(percents).unwrap_or_else(|error| unreachable!("the default mix is a mix: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_scale_has_as_many_trades_as_its_days_and_customers_give() {
        assert_eq!(TpceOptions::new(1).initial_trades(), 2_880_000);
    }

    #[test]
    fn mixes_are_read_by_name_and_in_order() {
        let mix = parse_mix("trade-order=50,trade-result=50", false).unwrap();
        assert_eq!(mix.percent(TRADE_RESULT), 50.0);
        assert_eq!(parse_mix("4.9/13/1/18/14/8/10.1/10/19/2", false).unwrap(), TpceOptions::new(1).mix);
        assert!(parse_mix("asset-eval=100", false).is_err());
        assert_eq!(parse_mix("asset-eval=100", true).unwrap().percent(ASSET_EVAL), 100.0);
        assert!(parse_mix("data-maintenance=100", true).is_err());
    }
}
