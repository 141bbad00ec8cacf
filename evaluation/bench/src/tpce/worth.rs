//! What an account holds is worth: holding summaries joined with the last trades.

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result};

use super::fees::value;
use super::schema::{HoldingSummary, LastTrade, Money};
use super::tables::Tables;

#[derive(Columns)]
#[columns(of = HoldingSummary)]
struct Quantity {
    hs_qty: i32,
}

#[derive(Columns)]
#[columns(of = LastTrade)]
pub(super) struct LastPrice {
    pub(super) lt_price: Money,
}

/// The worth of all that an account holds, at the last prices.
pub(super) fn of_holdings<'t, E: Engine>(
    account: u32,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<Money> {
    let (mut symbols, mut quantities) = (Vec::new(), Vec::new());
    let summaries = tables.holding_summaries.prefix((account,)).columns::<Quantity>();
    summaries.for_each(tx, |(_, symbol), summary| {
        symbols.push(symbol);
        quantities.push(summary.hs_qty);
    })?;
    let mut worth = Money::default();
    tables.last_trades.get_columns_many::<LastPrice>(tx, &symbols, |at, last| {
        worth += last.map_or(Money::default(), |last| value(quantities[at], last.lt_price));
    })?;
    Ok(worth)
}
