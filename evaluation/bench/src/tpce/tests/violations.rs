//! Each consistency condition, violated on purpose: the check names exactly the conditions that do not hold.

use std::time::Duration;

use ensilo::{Result, Silo, Timestamp, Transaction};

use super::super::kind::{pending, submitted};
use super::super::loaded::Tpce;
use super::super::options::TpceOptions;
use super::super::schema::{
    AssetHistory, Broker, CashTransaction, CustomerAccount, Holding, HoldingHistory, HoldingSummary, Money,
    Settlement, Trade, TradeRequest,
};
use super::super::tables::Tables;
use super::{loaded, reduced};
use crate::tests::check;

const CENT: Money = Money::from_scaled(1);

/// A database with few trades.
fn few_trades() -> Tpce<Silo> {
    let hybrid = reduced(TpceOptions { maintenance_interval: Duration::MAX, ..TpceOptions::hybrid(1, 10) });
    loaded(TpceOptions { customers: 20, scale_factor: 2_880, ..hybrid })
}

/// Asserts that after `violate` the conditions with these names fail and no other.
fn assert_violates(names: &[&str], violate: impl Fn(&Tables<Silo>, &mut Transaction<'_>) -> Result<()>) {
    let tpce = few_trades();
    tpce.database.transact(|tx| violate(&tpce.tables, tx)).unwrap();
    let checks = check(&tpce);
    let failed: Vec<&str> = checks.iter().filter(|check| !check.passed()).map(|check| check.name).collect();
    assert_eq!(failed, names, "{checks:?}");
}

/// A trade that is held in part or whole.
fn first_holding(tables: &Tables<Silo>, tx: &mut Transaction<'_>) -> Result<(u64, Holding)> {
    Ok(tables.holdings.scan().first(tx)?.unwrap())
}

#[test]
fn brokers_count_their_trades() {
    assert_violates(&["broker trades"], |tables, tx| {
        tables.brokers.update(tx, 1, |row: &mut Broker| row.b_num_trades += 1)
    });
}

#[test]
fn brokers_sum_their_commissions() {
    assert_violates(&["broker commissions"], |tables, tx| {
        tables.brokers.update(tx, 1, |row: &mut Broker| row.b_comm_total += CENT)
    });
}

#[test]
fn a_summary_is_the_sum_of_holdings_and_of_trades() {
    assert_violates(&["holding sums", "positions"], |tables, tx| {
        let (key, _) = tables.holding_summaries.scan().first(tx)?.unwrap();
        tables.holding_summaries.update(tx, key, |row: &mut HoldingSummary| row.hs_qty += 1)
    });
}

#[test]
fn a_holding_is_what_its_changes_have_left() {
    assert_violates(&["holding sums", "holding chains"], |tables, tx| {
        let (key, _) = first_holding(tables, tx)?;
        tables.holdings.update(tx, key, |row: &mut Holding| row.h_qty *= 2)
    });
}

#[test]
fn a_change_of_a_holding_is_its_trades_quantity() {
    assert_violates(&["holding chains", "holding changes"], |tables, tx| {
        let (key, _) = tables.holding_histories.scan().first(tx)?.unwrap();
        tables.holding_histories.update(tx, key, |row: &mut HoldingHistory| row.hh_before_qty += 7)
    });
}

#[test]
fn a_balance_is_the_sum_of_cash() {
    assert_violates(&["balances"], |tables, tx| {
        let (key, _) = tables.accounts.scan().first(tx)?.unwrap();
        tables.accounts.update(tx, key, |row: &mut CustomerAccount| row.ca_bal += CENT)
    });
}

#[test]
fn a_settlement_is_the_trades_worth_less_fees() {
    // A sale or a loan: what is not in cash has no cash transaction that would disagree as well.
    assert_violates(&["settlements"], |tables, tx| {
        let mut margin = None;
        tables.trades.scan().for_each(tx, |number, row| {
            if !row.t_is_cash {
                margin = Some(number);
            }
        })?;
        tables.settlements.update(tx, margin.unwrap(), |row: &mut Settlement| row.se_amt += CENT)
    });
}

#[test]
fn cash_is_what_was_settled() {
    assert_violates(&["balances", "cash"], |tables, tx| {
        let (key, _) = tables.cash_transactions.scan().first(tx)?.unwrap();
        tables.cash_transactions.update(tx, key, |row: &mut CashTransaction| row.ct_amt += CENT)
    });
}

#[test]
fn a_trade_is_in_its_last_state() {
    assert_violates(&["states"], |tables, tx| {
        let status = submitted();
        tables.trade_histories.delete(tx, (1, status)).map(|_| ())
    });
    assert_violates(&["states"], |tables, tx| {
        tables
            .trades
            .update(tx, 1, |row: &mut Trade| row.t_dts = Timestamp::from_micros(row.t_dts.micros() + 1))
    });
}

#[test]
fn only_what_is_pending_is_requested() {
    assert_violates(&["requests"], |tables, tx| {
        let trade = tables.trades.get(tx, 1)?.unwrap();
        let request = TradeRequest {
            tr_t_id: 1,
            tr_tt_id: trade.t_tt_id,
            tr_s_symb: trade.t_s_symb,
            tr_qty: trade.t_qty,
            tr_bid_price: trade.t_bid_price,
            tr_b_id: 1,
        };
        tables.trade_requests.insert(tx, &request).map(|_| ())
    });
}

#[test]
fn a_pending_trade_is_requested_and_nothing_more() {
    let tpce = few_trades();
    let tables = &tpce.tables;
    tpce.database
        .transact(|tx| tables.trades.update(tx, 1, |row: &mut Trade| row.t_st_id = pending()))
        .unwrap();
    let failed: Vec<&str> =
        check(&tpce).iter().filter(|check| !check.passed()).map(|check| check.name).collect();
    for name in ["broker trades", "positions", "settlements", "holding changes", "states", "requests"] {
        assert!(failed.contains(&name), "{name}: {failed:?}");
    }
}

#[test]
fn what_a_row_refers_to_is_there() {
    assert_violates(&["references"], |tables, tx| {
        let (_, mut row) = tables.settlements.scan().first(tx)?.unwrap();
        row.se_t_id = 1 << 40;
        tables.settlements.insert(tx, &row).map(|_| ())
    });
}

#[test]
fn an_evaluation_is_of_accounts_that_there_are() {
    assert_violates(&["evaluations"], |tables, tx| {
        let row =
            AssetHistory { ah_id: 1, ah_ca_id: u32::MAX, ah_dts: Timestamp::from_micros(0), ah_assets: CENT };
        tables.asset_histories.insert(tx, &row).map(|_| ())
    });
}
