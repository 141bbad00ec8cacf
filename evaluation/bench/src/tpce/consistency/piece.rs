//! A piece of the check: all rows of the trades with some numbers, collected by trade.

use std::collections::BTreeMap;
use std::ops::Range;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Timestamp};

use super::condition::Conditions;
use super::known::Known;
use super::sums::Sums;
use super::{chain, trade};
use crate::tpce::loaded::Tpce;
use crate::tpce::schema::{
    CashTransaction, Holding, HoldingHistory, Money, Settlement, StatusId, Symbol, Trade, TradeRequest,
    TradeTypeId,
};

/// All rows with the number of one trade.
#[derive(Debug, Default)]
pub(super) struct OfTrade {
    pub(super) trade: Option<CheckedTrade>,
    pub(super) states: Vec<(StatusId, Timestamp)>,
    pub(super) settled: Option<Money>,
    pub(super) cash: Option<Money>,
    pub(super) request: Option<CheckedRequest>,
    /// The holding that the trade has left.
    pub(super) holding: Option<CheckedHolding>,
    /// The changes of that holding: by which trade, from, to.
    pub(super) chain: Vec<(u64, i32, i32)>,
    /// What the trade has changed in all holdings together.
    pub(super) changed: i64,
}

#[derive(Debug, Columns)]
#[columns(of = Trade)]
pub(super) struct CheckedTrade {
    pub(super) t_dts: Timestamp,
    pub(super) t_st_id: StatusId,
    pub(super) t_tt_id: TradeTypeId,
    pub(super) t_is_cash: bool,
    pub(super) t_s_symb: Symbol,
    pub(super) t_qty: i32,
    pub(super) t_bid_price: Money,
    pub(super) t_ca_id: u32,
    pub(super) t_trade_price: Option<Money>,
    pub(super) t_chrg: Money,
    pub(super) t_comm: Money,
    pub(super) t_tax: Money,
}

#[derive(Debug, Columns)]
#[columns(of = TradeRequest)]
pub(super) struct CheckedRequest {
    pub(super) tr_tt_id: TradeTypeId,
    pub(super) tr_s_symb: Symbol,
    pub(super) tr_qty: i32,
    pub(super) tr_bid_price: Money,
    pub(super) tr_b_id: u32,
}

#[derive(Debug, Columns)]
#[columns(of = Holding)]
pub(super) struct CheckedHolding {
    pub(super) h_ca_id: u32,
    pub(super) h_s_symb: Symbol,
    pub(super) h_qty: i32,
}

#[derive(Columns)]
#[columns(of = Settlement)]
struct Amount {
    se_amt: Money,
}

#[derive(Columns)]
#[columns(of = CashTransaction)]
struct CashAmount {
    ct_amt: Money,
}

#[derive(Columns)]
#[columns(of = HoldingHistory)]
struct Change {
    hh_t_id: u64,
    hh_before_qty: i32,
    hh_after_qty: i32,
}

/// Checks the trades with these numbers.
pub(super) fn check<'t, E: Engine>(
    tpce: &Tpce<E>,
    known: &Known,
    numbers: Range<u64>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<(Conditions, Sums)> {
    let trades = collect(tpce, numbers, tx)?;
    let (mut conditions, mut sums) = (Conditions::new(), Sums::default());
    for (&number, of_trade) in &trades {
        trade::check(number, of_trade, known, &mut conditions);
        chain::check(number, of_trade, &mut conditions);
        sums.note(of_trade, known);
    }
    Ok((conditions, sums))
}

fn collect<'t, E: Engine>(
    tpce: &Tpce<E>,
    numbers: Range<u64>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<BTreeMap<u64, OfTrade>> {
    let tables = &tpce.tables;
    let mut found: BTreeMap<u64, OfTrade> = BTreeMap::new();
    let trades = tables.trades.range(numbers.clone()).columns::<CheckedTrade>();
    trades.for_each(tx, |number, row| found.entry(number).or_default().trade = Some(row))?;
    let (low, high) = (numbers.start, numbers.end);
    let least = StatusId::EMPTY;
    tables.trade_histories.range((low, least)..(high, least)).for_each(tx, |(number, status), row| {
        found.entry(number).or_default().states.push((status, row.th_dts));
    })?;
    let settlements = tables.settlements.range(numbers.clone()).columns::<Amount>();
    settlements.for_each(tx, |number, row| found.entry(number).or_default().settled = Some(row.se_amt))?;
    let cash = tables.cash_transactions.range(numbers.clone()).columns::<CashAmount>();
    cash.for_each(tx, |number, row| found.entry(number).or_default().cash = Some(row.ct_amt))?;
    let requests = tables.trade_requests.range(numbers.clone()).columns::<CheckedRequest>();
    requests.for_each(tx, |number, row| found.entry(number).or_default().request = Some(row))?;
    let holdings = tables.holdings.range(numbers.clone()).columns::<CheckedHolding>();
    holdings.for_each(tx, |number, row| found.entry(number).or_default().holding = Some(row))?;
    let chains = tables.holding_histories.range((low, 0)..(high, 0)).columns::<Change>();
    chains.for_each(tx, |(holding, trade), row| {
        let change = (trade, row.hh_before_qty, row.hh_after_qty);
        found.entry(holding).or_default().chain.push(change);
    })?;
    let changes = tables.holding_histories_by_trade.range(numbers).columns::<Change>();
    changes.for_each(tx, |_, row| {
        let changed = i64::from(row.hh_after_qty) - i64::from(row.hh_before_qty);
        found.entry(row.hh_t_id).or_default().changed += changed;
    })?;
    Ok(found)
}
