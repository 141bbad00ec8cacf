//! What a run of TPC-C-hybrid can be asked for.

use crate::mix::{Mix, MixError, Share};
use crate::tpcc::{self, TpccOptions};

/// The names of the transaction types, in the order of the mix: those of TPC-C, and CH-Q2*.
pub const TRANSACTION_TYPES: [&str; 6] = {
    let [new_order, payment, order_status, delivery, stock_level] = tpcc::TRANSACTION_TYPES;
    [new_order, payment, order_status, delivery, stock_level, "ch_q2"]
};

/// The place of CH-Q2* in [`TRANSACTION_TYPES`].
pub(super) const CH_Q2: usize = 5;

/// The paper's share of each transaction type.
pub const DEFAULT_MIX: &str = "40/38/4/4/4/10";

/// Suppliers of CH-benCHmark.
pub const SUPPLIERS: u32 = 10_000;

/// The percent of the suppliers that one CH-Q2* covers, from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupplierPercent(u8);

impl SupplierPercent {
    /// Of 1 to 100 percent; `None` for any other number.
    pub fn new(percent: u8) -> Option<Self> {
        (1..=100).contains(&percent).then_some(Self(percent))
    }

    /// How many of this many suppliers that is, at least one.
    pub(super) fn of(self, suppliers: u32) -> u32 {
        (u64::from(suppliers) * u64::from(self.0) / 100).max(1) as u32
    }
}

/// Options of a database of TPC-C-hybrid and its workers.
#[derive(Debug, Clone)]
pub struct HybridOptions {
    /// TPC-C's part; its mix is that of the transactions other than CH-Q2*.
    pub(super) tpcc: TpccOptions,
    /// The shares of all transaction types.
    mix: Mix,
    /// The share of CH-Q2*.
    pub(super) ch_q2: Share,
    /// Suppliers, at least 1.
    pub(super) suppliers: u32,
    /// How many of them one CH-Q2* covers.
    pub(super) supplier_percent: SupplierPercent,
}

impl HybridOptions {
    /// TPC-C as `tpcc` has it but for its mix, with the shares of [`TRANSACTION_TYPES`] that `mix` has.
    ///
    /// # Panics
    /// If `mix` has fewer types, or there are no suppliers.
    pub fn new(tpcc: TpccOptions, mix: Mix, suppliers: u32, supplier_percent: SupplierPercent) -> Self {
        assert!(suppliers > 0, "stocks have suppliers");
        let ch_q2 = mix.percent(CH_Q2);
        let tpcc = TpccOptions { mix: others(&mix).unwrap_or(tpcc.mix), ..tpcc };
        let ch_q2 = Share::of_percent(ch_q2).unwrap_or_else(|| unreachable!("a mix has shares up to 100 %"));
        Self { tpcc, mix, ch_q2, suppliers, supplier_percent }
    }

    /// TPC-C's part.
    pub fn tpcc(&self) -> &TpccOptions {
        &self.tpcc
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        let mut parameters = self.tpcc.parameters();
        parameters["mix"] = TRANSACTION_TYPES
            .iter()
            .enumerate()
            .map(|(at, &name)| (name.to_owned(), self.mix.percent(at).into()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        parameters["suppliers"] = self.suppliers.into();
        parameters["supplier_percent"] = self.supplier_percent.0.into();
        parameters
    }
}

/// The shares of the other types among themselves; `None` if CH-Q2* is all there is.
fn others(mix: &Mix) -> Option<Mix> {
    let percents: Vec<f64> = (0..CH_Q2).map(|at| mix.percent(at)).collect();
    let sum: f64 = percents.iter().sum();
    Mix::new(&percents.iter().map(|percent| 100.0 * percent / sum).collect::<Vec<_>>()).ok()
}

/// Reads a mix like `40/38/4/4/4/10` or `payment=50,ch-q2=50`.
///
/// # Errors
/// Any [`MixError`].
pub fn parse_mix(text: &str) -> Result<Mix, MixError> {
    Mix::parse(text, &TRANSACTION_TYPES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(mix: &str) -> HybridOptions {
        let percent = SupplierPercent::new(10).unwrap();
        HybridOptions::new(TpccOptions::new(1), parse_mix(mix).unwrap(), SUPPLIERS, percent)
    }

    #[test]
    fn the_papers_mix_is_that_of_tpcc_beside_ch_q2() {
        let options = options(DEFAULT_MIX);
        assert_eq!(options.ch_q2.percent(), 10.0);
        assert!((options.tpcc.mix.percent(0) - 100.0 * 40.0 / 90.0).abs() < 1e-9);
        assert_eq!(options.parameters()["mix"]["new_order"], 40.0);
        assert_eq!(options.parameters()["mix"]["ch_q2"], 10.0);
    }

    #[test]
    fn ch_q2_may_be_all_there_is_or_nothing() {
        assert_eq!(options("ch-q2=100").ch_q2.percent(), 100.0);
        assert_eq!(options("100/0/0/0/0/0").ch_q2.percent(), 0.0);
        assert!(parse_mix("45/43/4/4/4").is_err());
    }

    #[test]
    fn a_query_covers_at_least_one_supplier() {
        assert!(SupplierPercent::new(0).is_none() && SupplierPercent::new(101).is_none());
        let of = |percent, suppliers| SupplierPercent::new(percent).unwrap().of(suppliers);
        assert_eq!([of(1, 10_000), of(100, 10_000), of(1, 7), of(60, 10)], [100, 10_000, 1, 6]);
    }
}
