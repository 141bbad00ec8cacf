//! `ensilo bench tpcc-hybrid`.

use clap::{Args, value_parser};
use ensilo_bench::mix::{Mix, MixError};
use ensilo_bench::tpcc_hybrid::{DEFAULT_MIX, HybridOptions, SUPPLIERS, SupplierPercent, parse_mix};

use super::common::Common;
use super::tpcc::OrderEntry;

const EXAMPLES: &str = "\
Examples:
  ensilo bench tpcc-hybrid --memory
      All cores, a warehouse for each, CH-Q2* over a tenth of the suppliers.
  ensilo bench tpcc-hybrid --memory --supplier-percent 60 --retries 0
      Over more of them; what met a conflict is given up, as in ERMIA's evaluation.
  ensilo bench tpcc-hybrid --memory --supplier-percent 60 --retries 0 --engine ermia
      The same by ERMIA's engine.
  ensilo bench tpcc-hybrid --memory --supplier-percent 60 --retries 0 --engine ermia --isolation snapshot
      And under snapshot isolation.
  ensilo bench tpcc-hybrid --mix new-order=90,ch-q2=10 --crash
      Two types, durable; killed at the end of the run, and recovered.

CH-Q2* goes over suppliers, finds the stock that each supplier of a random region has least of, and restocks it if
there is little. After each run, and after a recovery, TPC-C's twelve consistency conditions, the suppliers and the
quantities of the stocks are checked; if one does not hold, the exit code is 1.";

/// Order entry beside a long transaction that reads much and writes little, CH-Q2* (ERMIA's TPC-C-hybrid)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Percent of the suppliers that one CH-Q2* covers, from 1 to 100
    #[arg(long, value_name = "P", default_value = "10", value_parser = supplier_percent)]
    supplier_percent: SupplierPercent,

    /// Percent of new-order/payment/order-status/delivery/stock-level/ch-q2, or by name like
    /// payment=50,ch-q2=50
    #[arg(long, value_name = "SHARES", default_value = DEFAULT_MIX, value_parser = mix)]
    mix: Mix,

    /// Suppliers; CH-benCHmark's number unless a small test is wanted
    #[arg(long, value_name = "N", default_value_t = SUPPLIERS, value_parser = value_parser!(u32).range(1..=60_000),
          hide_short_help = true)]
    suppliers: u32,

    #[command(flatten)]
    order_entry: OrderEntry,

    #[command(flatten)]
    pub(super) common: Common,
}

fn mix(text: &str) -> Result<Mix, MixError> {
    parse_mix(text)
}

fn supplier_percent(text: &str) -> Result<SupplierPercent, String> {
    text.parse().ok().and_then(SupplierPercent::new).ok_or_else(|| "not in 1..=100".to_owned())
}

impl Arguments {
    pub(super) fn options(&self) -> HybridOptions {
        let tpcc = self.order_entry.options(&self.common);
        HybridOptions::new(tpcc, self.mix.clone(), self.suppliers, self.supplier_percent)
    }
}
