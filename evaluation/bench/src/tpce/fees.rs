//! What a trade costs: charges, commissions and taxes. The tables CHARGE, COMMISSION_RATE and TAXRATE are loaded from here.

use ensilo::Text;

use super::kind::TradeKind;
use super::schema::{Money, TaxRate};

/// Customers' tiers.
pub(super) const TIERS: [u8; 3] = [1, 2, 3];
/// The exchanges, with what they are called.
pub(super) const EXCHANGES: [(&str, &str); 4] = [
    ("NORTH", "Northern Exchange"),
    ("EAST", "Eastern Board"),
    ("COAST", "Coastal Market"),
    ("INLAND", "Inland Exchange"),
];
/// The ranges of quantities that have a commission rate of their own.
pub(super) const QUANTITIES: [(i32, i32); 4] = [(1, 100), (101, 300), (301, 500), (501, 10_000)];
/// Tax rates; the first of them are national, the others regional.
pub(super) const TAXRATES: u32 = 320;
/// National tax rates.
pub(super) const NATIONAL_TAXRATES: u32 = 20;

/// What a customer of `tier` pays for a trade.
pub(super) fn charge(kind: TradeKind, tier: u8) -> Money {
    let base = if kind.is_market() { 250 } else { 400 };
    Money::from_scaled(base - 50 * i64::from(tier))
}

/// The commission of a customer of `tier` in percent of a trade's value, at the exchange with this number.
pub(super) fn commission_rate(tier: u8, kind: TradeKind, exchange: usize, range: usize) -> Money {
    let base = if kind.is_market() { 40 } else { 55 };
    Money::from_scaled(base - 6 * i64::from(tier) - 5 * range as i64 + exchange as i64)
}

/// Which range of quantities a trade is in.
pub(super) fn range_of(quantity: i32) -> usize {
    QUANTITIES.iter().position(|&(_, last)| quantity <= last).unwrap_or(QUANTITIES.len() - 1)
}

/// The commission on `value` at a rate in percent.
pub(super) fn commission(value: Money, rate: Money) -> Money {
    Money::from_scaled(value.scaled() * rate.scaled() / 10_000)
}

/// The value of so many pieces at this price.
pub(super) fn value(quantity: i32, price: Money) -> Money {
    Money::from_scaled(price.scaled() * i64::from(quantity))
}

/// The key of a tax rate.
pub(super) fn taxrate_id(number: u32) -> Text<4> {
    Text::truncated(&format!("{}{number:03}", if number < NATIONAL_TAXRATES { 'N' } else { 'R' }))
}

/// A tax rate by its number.
pub(super) fn taxrate(number: u32) -> TaxRate {
    let scaled = if number < NATIONAL_TAXRATES { 10_000 + 800 * number } else { number * 30 };
    TaxRate::from_scaled(i64::from(scaled))
}

/// What is due for a trade: the gain's share, if the account is taxed and there is a gain.
pub(super) fn tax(tax_status: u8, buy_value: Money, sell_value: Money, rate: TaxRate) -> Money {
    if matches!(tax_status, 1 | 2) && sell_value > buy_value {
        (sell_value - buy_value).times(rate)
    } else {
        Money::default()
    }
}

/// What the account gets for a trade, negative if it pays: only accounts of tax status 1 have the tax withheld.
pub(super) fn settlement(
    kind_is_sell: bool,
    value: Money,
    charge: Money,
    commission: Money,
    tax_status: u8,
    tax: Money,
) -> Money {
    let before_tax = if kind_is_sell { value - charge - commission } else { -(value + charge + commission) };
    if tax_status == 1 { before_tax - tax } else { before_tax }
}
