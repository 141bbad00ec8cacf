//! What trade-lookup and trade-update show of trades: the trades, their settlement, cash and history.

use std::hint::black_box;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Text, Timestamp};

use super::input::{TRADES_AT_ONCE, TradeChoice};
use super::rows::{required, shown_columns};
use super::schema::{
    CashTransaction, Money, Settlement, StatusId, Symbol, Trade, TradeHistory, TradeType, TradeTypeId,
};
use super::tables::Tables;

/// A trade as it is shown.
#[derive(Columns)]
#[columns(of = Trade)]
pub(super) struct TradeShown {
    pub(super) t_bid_price: Money,
    pub(super) t_exec_name: Text<49>,
    pub(super) t_is_cash: bool,
    pub(super) t_trade_price: Option<Money>,
    pub(super) t_s_symb: Symbol,
    pub(super) t_qty: i32,
    pub(super) t_ca_id: u32,
    pub(super) t_dts: Timestamp,
    pub(super) t_tt_id: TradeTypeId,
}

shown_columns! {
    SettlementShown of Settlement { se_amt: Money, se_cash_due_date: Timestamp, se_cash_type: Text<40> }
    CashShown of CashTransaction { ct_amt: Money, ct_dts: Timestamp, ct_name: Text<100> }
    HistoryShown of TradeHistory { th_st_id: StatusId, th_dts: Timestamp }
    TypeShown of TradeType { tt_name: Text<12>, tt_is_mrkt: bool }
}

/// Finds the trades, at most [`TRADES_AT_ONCE`].
pub(super) fn find<'t, E: Engine>(
    choice: &TradeChoice,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<Vec<u64>> {
    let mut numbers = Vec::with_capacity(TRADES_AT_ONCE);
    match *choice {
        TradeChoice::Numbers(given) => numbers.extend(given),
        TradeChoice::OfAccount { account, from, to } => {
            let trades = tables.trades_by_account.range((account, from)..=(account, to));
            trades.limit(TRADES_AT_ONCE).for_each_primary_key(tx, |number| numbers.push(number))?;
        }
        TradeChoice::OfSecurity { symbol, from, to } => {
            let trades = tables.trades_by_security.range((symbol, from)..=(symbol, to));
            trades.limit(TRADES_AT_ONCE).for_each_primary_key(tx, |number| numbers.push(number))?;
        }
    }
    Ok(numbers)
}

/// Shows trades with their types, settlements, cash transactions and histories.
pub(super) fn show<'t, E: Engine>(
    numbers: &[u64],
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<()> {
    let mut paid_in_cash = Vec::with_capacity(numbers.len());
    let mut types = Vec::with_capacity(numbers.len());
    tables.trades.get_columns_many::<TradeShown>(tx, numbers, |at, trade| {
        if let Some(trade) = trade {
            paid_in_cash.extend(trade.t_is_cash.then_some(numbers[at]));
            types.push(trade.t_tt_id);
            black_box(trade);
        }
    })?;
    for trade_type in types {
        black_box(required(tables.trade_types.get_columns::<TypeShown>(tx, trade_type)?)?);
    }
    tables.settlements.get_columns_many::<SettlementShown>(tx, numbers, |_, row| {
        black_box(row);
    })?;
    tables.cash_transactions.get_columns_many::<CashShown>(tx, &paid_in_cash, |_, row| {
        black_box(row);
    })?;
    show_histories(numbers, tables, tx)
}

/// Shows the states that trades went through.
pub(super) fn show_histories<'t, E: Engine>(
    numbers: &[u64],
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<()> {
    for &number in numbers {
        let states = tables.trade_histories.prefix((number,)).columns::<HistoryShown>();
        states.for_each(tx, |_, state| {
            black_box(state);
        })?;
    }
    Ok(())
}
