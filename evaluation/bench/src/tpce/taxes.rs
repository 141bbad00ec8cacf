//! Rates that trade-order and trade-result look up: a customer's taxes, and the commission of a trade.

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Text};

use super::fees::{QUANTITIES, range_of};
use super::rows::required;
use super::schema::{CommissionRate, Money, TaxRate, Taxrate, TradeTypeId};
use super::tables::Tables;

#[derive(Columns)]
#[columns(of = Taxrate)]
struct Rate {
    tx_rate: TaxRate,
}

#[derive(Columns)]
#[columns(of = CommissionRate)]
struct Commission {
    cr_to_qty: i32,
    cr_rate: Money,
}

/// The sum of the tax rates of a customer; nothing for an account of a tax status without taxes, and then nothing is read.
pub(super) fn rate_of<'t, E: Engine>(
    customer: u32,
    tax_status: u8,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<TaxRate> {
    let mut sum = TaxRate::default();
    if tax_status == 0 {
        return Ok(sum);
    }
    let mut rates = Vec::with_capacity(2);
    tables.customer_taxrates.prefix((customer,)).for_each(tx, |(_, rate), _| rates.push(rate))?;
    tables.taxrates.get_columns_many::<Rate>(tx, &rates, |_, rate| {
        sum += rate.map_or(TaxRate::default(), |rate| rate.tx_rate);
    })?;
    Ok(sum)
}

/// The commission rate, in percent, of a trade of this quantity.
pub(super) fn commission_rate<'t, E: Engine>(
    tier: u8,
    kind: TradeTypeId,
    exchange: Text<6>,
    quantity: i32,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<Money> {
    let from = QUANTITIES[range_of(quantity)].0;
    let row = tables.commission_rates.get_columns::<Commission>(tx, (tier, kind, exchange, from))?;
    Ok(required(row.filter(|row| quantity <= row.cr_to_qty))?.cr_rate)
}
