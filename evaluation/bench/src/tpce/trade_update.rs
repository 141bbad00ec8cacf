//! Trade-update: small corrections of old trades, found in three ways (clause 3.3.11).

use std::hint::black_box;

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Text};

use super::cash::{other_cash_name, other_cash_type, other_executor};
use super::input::{Inputs, TradeChoice};
use super::rows::required;
use super::schema::{CashTransaction, Security, Settlement, Trade, TradeType};
use super::tables::Tables;
use super::trade_details::{self, TradeShown};

/// Which trades are corrected; what of them depends on how they were found.
#[derive(Debug)]
pub(super) struct TradeUpdateInput {
    pub(super) choice: TradeChoice,
}

#[derive(Columns)]
#[columns(of = Trade)]
struct Executor {
    t_exec_name: Text<49>,
}

#[derive(Columns)]
#[columns(of = Settlement)]
struct CashType {
    se_cash_type: Text<40>,
}

#[derive(Columns)]
#[columns(of = CashTransaction)]
struct CashName {
    ct_name: Text<100>,
}

#[derive(Columns)]
#[columns(of = TradeType)]
struct TypeName {
    tt_name: Text<12>,
}

#[derive(Columns)]
#[columns(of = Security)]
struct SecurityName {
    s_name: Text<70>,
}

impl TradeUpdateInput {
    pub(super) fn draw(inputs: &mut Inputs<'_>) -> Self {
        let choice = match inputs.random.below(100) {
            0..33 => TradeChoice::draw_numbers(inputs),
            33..66 => TradeChoice::draw_account(inputs),
            _ => TradeChoice::draw_security(inputs),
        };
        Self { choice }
    }

    /// Runs the transaction and returns how many rows it has changed.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'t, E>,
    ) -> Result<usize> {
        let numbers = trade_details::find(&self.choice, tables, tx)?;
        let mut updated = 0;
        for &number in &numbers {
            updated += usize::from(match &self.choice {
                TradeChoice::Numbers(_) => rename_executor(tables, tx, number)?,
                TradeChoice::OfAccount { .. } => change_cash_type(tables, tx, number)?,
                TradeChoice::OfSecurity { .. } => change_cash_name(tables, tx, number)?,
            });
        }
        trade_details::show(&numbers, tables, tx)?;
        Ok(updated)
    }
}

fn rename_executor<E: Engine>(tables: &Tables<E>, tx: &mut Transaction<'_, E>, number: u64) -> Result<bool> {
    let Some(trade) = tables.trades.find(tx, number)? else { return Ok(false) };
    trade.update(tx, |row: &mut Executor| row.t_exec_name = other_executor(&row.t_exec_name))?;
    Ok(true)
}

fn change_cash_type<E: Engine>(tables: &Tables<E>, tx: &mut Transaction<'_, E>, number: u64) -> Result<bool> {
    let trade = required(tables.trades.get_columns::<TradeShown>(tx, number)?)?;
    let Some(settlement) = tables.settlements.find(tx, number)? else { return Ok(false) };
    settlement.update(tx, |row: &mut CashType| {
        row.se_cash_type = other_cash_type(trade.t_is_cash, &row.se_cash_type);
    })?;
    Ok(true)
}

fn change_cash_name<E: Engine>(tables: &Tables<E>, tx: &mut Transaction<'_, E>, number: u64) -> Result<bool> {
    let trade = required(tables.trades.get_columns::<TradeShown>(tx, number)?)?;
    let trade_type = required(tables.trade_types.get_columns::<TypeName>(tx, trade.t_tt_id)?)?;
    let security = required(tables.securities.get_columns::<SecurityName>(tx, trade.t_s_symb)?)?;
    black_box((trade.t_bid_price, trade.t_exec_name, trade.t_trade_price, trade.t_ca_id, trade.t_dts));
    let Some(cash) = tables.cash_transactions.find(tx, number)? else { return Ok(false) };
    cash.update(tx, |row: &mut CashName| {
        let (kind, name) = (trade_type.tt_name.as_str(), security.s_name.as_str());
        row.ct_name = other_cash_name(kind, trade.t_qty, name, &row.ct_name);
    })?;
    Ok(true)
}
