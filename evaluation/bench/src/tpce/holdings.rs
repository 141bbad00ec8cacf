//! The holdings of an account in a security, in the order in which a trade takes from them.

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result};

use super::lots::Lot;
use super::schema::{Holding, Money, Symbol};
use super::tables::Tables;

/// A holding with its number.
#[derive(Debug, Columns)]
#[columns(of = Holding)]
pub(super) struct OpenLot {
    pub(super) h_t_id: u64,
    pub(super) h_price: Money,
    pub(super) h_qty: i32,
}

impl OpenLot {
    pub(super) fn lot(&self) -> Lot {
        Lot { quantity: self.h_qty, price: self.h_price }
    }
}

/// The holdings, the oldest first or the latest first.
pub(super) fn lots<'t, E: Engine>(
    account: u32,
    symbol: Symbol,
    is_lifo: bool,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<Vec<OpenLot>> {
    let holdings = tables.holdings_by_account.prefix((account, symbol)).columns::<OpenLot>();
    if is_lifo { holdings.reverse().rows(tx) } else { holdings.rows(tx) }
}
