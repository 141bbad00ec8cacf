//! The broker tables (clause 2.2.5).
#![allow(clippy::duplicated_attributes, reason = "two indexes of trades have a column in common")]

use ensilo::{Row, Text, Timestamp};

use super::{Money, StatusId, Symbol, TradeTypeId};

/// A row of the table BROKER.
#[derive(Debug, Clone, Row)]
#[row(table = "broker", index(name = "by_name", columns(b_name)))]
pub struct Broker {
    #[row(key)]
    pub b_id: u32,
    pub b_st_id: StatusId,
    pub b_name: Text<49>,
    pub b_num_trades: u32,
    pub b_comm_total: Money,
}

/// A row of the table CASH_TRANSACTION.
#[derive(Debug, Clone, Row)]
#[row(table = "cash_transaction")]
pub struct CashTransaction {
    #[row(key)]
    pub ct_t_id: u64,
    pub ct_dts: Timestamp,
    pub ct_amt: Money,
    pub ct_name: Text<100>,
}

/// A row of the table CHARGE.
#[derive(Debug, Clone, Row)]
#[row(table = "charge")]
pub struct Charge {
    #[row(key)]
    pub ch_tt_id: TradeTypeId,
    #[row(key)]
    pub ch_c_tier: u8,
    pub ch_chrg: Money,
}

/// A row of the table COMMISSION_RATE.
#[derive(Debug, Clone, Row)]
#[row(table = "commission_rate")]
pub struct CommissionRate {
    #[row(key)]
    pub cr_c_tier: u8,
    #[row(key)]
    pub cr_tt_id: TradeTypeId,
    #[row(key)]
    pub cr_ex_id: Text<6>,
    #[row(key)]
    pub cr_from_qty: i32,
    pub cr_to_qty: i32,
    pub cr_rate: Money,
}

/// A row of the table SETTLEMENT.
#[derive(Debug, Clone, Row)]
#[row(table = "settlement")]
pub struct Settlement {
    #[row(key)]
    pub se_t_id: u64,
    pub se_cash_type: Text<40>,
    pub se_cash_due_date: Timestamp,
    pub se_amt: Money,
}

/// A row of the table TRADE.
#[derive(Debug, Clone, Row)]
#[row(
    table = "trade",
    index(name = "by_account", columns(t_ca_id, t_dts)),
    index(name = "by_security", columns(t_s_symb, t_dts))
)]
pub struct Trade {
    #[row(key)]
    pub t_id: u64,
    pub t_dts: Timestamp,
    pub t_st_id: StatusId,
    pub t_tt_id: TradeTypeId,
    pub t_is_cash: bool,
    pub t_s_symb: Symbol,
    pub t_qty: i32,
    pub t_bid_price: Money,
    pub t_ca_id: u32,
    pub t_exec_name: Text<49>,
    pub t_trade_price: Option<Money>,
    pub t_chrg: Money,
    pub t_comm: Money,
    pub t_tax: Money,
    pub t_lifo: bool,
}

/// A row of the table TRADE_HISTORY.
#[derive(Debug, Clone, Row)]
#[row(table = "trade_history")]
pub struct TradeHistory {
    #[row(key)]
    pub th_t_id: u64,
    #[row(key)]
    pub th_st_id: StatusId,
    pub th_dts: Timestamp,
}

/// A row of the table TRADE_REQUEST.
#[derive(Debug, Clone, Row)]
#[row(
    table = "trade_request",
    index(name = "by_security", columns(tr_s_symb)),
    index(name = "by_broker", columns(tr_b_id))
)]
pub struct TradeRequest {
    #[row(key)]
    pub tr_t_id: u64,
    pub tr_tt_id: TradeTypeId,
    pub tr_s_symb: Symbol,
    pub tr_qty: i32,
    pub tr_bid_price: Money,
    pub tr_b_id: u32,
}

/// A row of the table TRADE_TYPE.
#[derive(Debug, Clone, Row)]
#[row(table = "trade_type")]
pub struct TradeType {
    #[row(key)]
    pub tt_id: TradeTypeId,
    pub tt_name: Text<12>,
    pub tt_is_sell: bool,
    pub tt_is_mrkt: bool,
}
