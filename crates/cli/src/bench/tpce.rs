//! `ensilo bench tpce` and `ensilo bench tpce-hybrid`.

use clap::{Args, ValueEnum, value_parser};
use ensilo_bench::mix::{Mix, MixError};
use ensilo_bench::tpcc::ReadOnly;
use ensilo_bench::tpce::{CUSTOMERS_MIN, TpceOptions, parse_mix};

use super::common::Common;

const EXAMPLES: &str = "\
Examples:
  ensilo bench tpce --memory
      All cores, 5000 customers with the trades of ten days, ten seconds, in memory. The load takes a while.
  ensilo bench tpce --customers 1000 --initial-trading-days 1
      A smaller database, durable, removed at the end.
  ensilo bench tpce --memory --engine ermia --isolation snapshot --customers 1000 --initial-trading-days 1
      The same on ERMIA's engine under snapshot isolation.
  ensilo bench tpce --memory --customers 1000 --initial-trading-days 1 --mix trade-order=50,trade-result=50
      Orders and their results alone.

After each run, and after a recovery, the conditions of the specification on brokers and holdings are checked, and
nine more: balances, settlements, the history of trades and holdings, requests. If one does not hold, or a crash
loses a transaction that was acknowledged as stored, the exit code is 1.
After Ctrl-C the report is on what there was, and the exit code is 130; after SIGTERM 143.";

const HYBRID_EXAMPLES: &str = "\
Examples:
  ensilo bench tpce-hybrid --memory --engine ermia
      ERMIA's engine, with evaluations of the assets of a tenth of the customers: ERMIA's figures 6 and 9.
  ensilo bench tpce-hybrid --memory --asset-eval-percent 60
      Ensilo's default engine, with evaluations of 60 of 100 customers.
  ensilo bench tpce-hybrid --memory --customers 1000 --initial-trading-days 1 --asset-eval-percent 1
      A smaller database, and the smallest evaluations.

Everything else is as with ensilo bench tpce. One more condition is checked: evaluations are of accounts that there
are.";

/// A brokerage house: 33 tables, twelve transaction types (TPC-E 1.14)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Percent of broker-volume/customer-position/market-feed/market-watch/security-detail/trade-lookup/
    /// trade-order/trade-result/trade-status/trade-update, or by name like trade-order=50,trade-result=50.
    /// Where nothing waits for its result an order comes in its place
    #[arg(long, value_name = "SHARES", default_value = "4.9/13/1/18/14/8/10.1/10/19/2", value_parser = mix)]
    mix: Mix,

    #[command(flatten)]
    database: DatabaseArguments,

    #[command(flatten)]
    pub(super) common: Common,
}

/// TPC-E with AssetEval, which reads much and writes some (ERMIA, SIGMOD 2016)
#[derive(Debug, Args)]
#[command(after_help = HYBRID_EXAMPLES)]
pub(super) struct HybridArguments {
    /// Percent of the customers whose accounts one evaluation looks at
    #[arg(long, value_name = "P", default_value_t = 10, value_parser = value_parser!(u8).range(1..=100))]
    asset_eval_percent: u8,

    /// Percent of broker-volume/customer-position/market-feed/market-watch/security-detail/trade-lookup/
    /// trade-order/trade-result/trade-status/trade-update/asset-eval, or by name like
    /// trade-result=50,asset-eval=50. Where nothing waits for its result an order comes in its place
    #[arg(long, value_name = "SHARES", default_value = "4.9/8/1/13/14/8/10.1/10/9/2/20", value_parser = hybrid_mix)]
    mix: Mix,

    #[command(flatten)]
    database: DatabaseArguments,

    #[command(flatten)]
    pub(super) common: Common,
}

/// How much is loaded, and how it is read.
#[derive(Debug, Args)]
struct DatabaseArguments {
    /// Customers; there is a company for two of them and a broker for a hundred
    #[arg(long, value_name = "N", default_value_t = 5_000,
          value_parser = value_parser!(u32).range(i64::from(CUSTOMERS_MIN)..=10_000_000))]
    customers: u32,

    /// Days of eight hours whose trades are loaded
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=10_000))]
    initial_trading_days: u32,

    /// How many customers give one trade a second in the trades that are loaded
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = value_parser!(u32).range(1..=1_000_000))]
    scale_factor: u32,

    /// How transactions run that only read: against a snapshot about a second old, or as ordinary
    /// transactions
    #[arg(long, value_enum, default_value_t = ReadOnlyArgument::Snapshot)]
    read_only: ReadOnlyArgument,

    /// Days of each security's market; the specification's five years unless a small test is wanted
    #[arg(long, value_name = "N", default_value_t = 1_305, value_parser = value_parser!(u32).range(1..=10_000),
          hide_short_help = true)]
    daily_market_days: u32,

    /// Bytes of a news item, of which there is one for each customer; the specification's most unless a small
    /// test is wanted
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=100_000),
          hide_short_help = true)]
    news_bytes: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReadOnlyArgument {
    Snapshot,
    Ordinary,
}

fn mix(text: &str) -> Result<Mix, MixError> {
    parse_mix(text, false)
}

fn hybrid_mix(text: &str) -> Result<Mix, MixError> {
    parse_mix(text, true)
}

impl Arguments {
    pub(super) fn options(&self) -> TpceOptions {
        let options = TpceOptions { mix: self.mix.clone(), ..TpceOptions::new(self.common.workers()) };
        self.database.apply(options, &self.common)
    }
}

impl HybridArguments {
    pub(super) fn options(&self) -> TpceOptions {
        let hybrid = TpceOptions::hybrid(self.common.workers(), self.asset_eval_percent);
        self.database.apply(TpceOptions { mix: self.mix.clone(), ..hybrid }, &self.common)
    }
}

impl DatabaseArguments {
    fn apply(&self, options: TpceOptions, common: &Common) -> TpceOptions {
        TpceOptions {
            customers: self.customers,
            initial_trading_days: self.initial_trading_days,
            scale_factor: self.scale_factor,
            daily_market_days: self.daily_market_days,
            news_bytes: self.news_bytes,
            read_only: match self.read_only {
                ReadOnlyArgument::Snapshot => ReadOnly::Snapshot,
                ReadOnlyArgument::Ordinary => ReadOnly::Ordinary,
            },
            seed: common.seed,
            ..options
        }
    }
}
