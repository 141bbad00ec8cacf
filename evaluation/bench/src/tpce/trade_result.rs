//! Trade-result: an order was executed; holdings, commission, taxes, settlement and balance follow from it (clause 3.3.8).

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Text, Timestamp};

use super::calendar::due_date;
use super::cash::{cash_name, cash_type};
use super::fees::{commission, settlement, tax, value};
use super::holdings::{self, OpenLot};
use super::kind::completed;
use super::lots::Matching;
use super::rows::required;
use super::schema::{
    Broker, CashTransaction, Customer, CustomerAccount, Holding, HoldingHistory, HoldingSummary, Money,
    Security, Settlement, StatusId, Symbol, Trade, TradeHistory, TradeType, TradeTypeId,
};
use super::tables::Tables;
use super::taxes;

/// What was executed.
#[derive(Debug)]
pub(super) struct TradeResultInput {
    pub(super) trade: u64,
    pub(super) price: Money,
    pub(super) now: Timestamp,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TradeResultOutput {
    /// The balance of the account.
    pub(super) balance: Money,
    /// What the account got, negative if it paid.
    pub(super) amount: Money,
}

#[derive(Columns)]
#[columns(of = Trade)]
struct TradeRead {
    t_ca_id: u32,
    t_tt_id: TradeTypeId,
    t_s_symb: Symbol,
    t_qty: i32,
    t_chrg: Money,
    t_lifo: bool,
    t_is_cash: bool,
    t_dts: Timestamp,
}

/// What changes in the trade.
#[derive(Columns)]
#[columns(of = Trade)]
struct TradeDone {
    t_dts: Timestamp,
    t_st_id: StatusId,
    t_trade_price: Option<Money>,
    t_comm: Money,
    t_tax: Money,
}

#[derive(Columns)]
#[columns(of = TradeType)]
struct TypeRead {
    tt_name: Text<12>,
    tt_is_sell: bool,
}

#[derive(Columns)]
#[columns(of = HoldingSummary)]
struct Quantity {
    hs_qty: i32,
}

#[derive(Columns)]
#[columns(of = Holding)]
struct HoldingQuantity {
    h_qty: i32,
}

#[derive(Columns)]
#[columns(of = CustomerAccount)]
struct Account {
    ca_b_id: u32,
    ca_c_id: u32,
    ca_tax_st: u8,
    ca_bal: Money,
}

#[derive(Columns)]
#[columns(of = CustomerAccount)]
struct Balance {
    ca_bal: Money,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct Tier {
    c_tier: u8,
}

#[derive(Columns)]
#[columns(of = Security)]
struct SecurityTraded {
    s_ex_id: Text<6>,
    s_name: Text<70>,
}

#[derive(Columns)]
#[columns(of = Broker)]
struct Counters {
    b_num_trades: u32,
    b_comm_total: Money,
}

impl TradeResultInput {
    /// Runs the transaction.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'t, E>,
    ) -> Result<TradeResultOutput> {
        // Frame 1: the trade.
        let found = required(tables.trades.find(tx, self.trade)?)?;
        let trade = found.columns::<TradeRead>(tx)?;
        let kind = required(tables.trade_types.get_columns::<TypeRead>(tx, trade.t_tt_id)?)?;
        // Workers read the clock before they begin: the order may be of a moment after this one.
        let now = self.now.max(trade.t_dts);
        // Frame 2: the holdings.
        let signed = if kind.tt_is_sell { -trade.t_qty } else { trade.t_qty };
        let matching = self.change_holdings(&trade, signed, now, tables, tx)?;
        let account_found = required(tables.accounts.find(tx, trade.t_ca_id)?)?;
        let account = account_found.columns::<Account>(tx)?;
        // Frames 3 and 4: taxes and commission.
        let rate = taxes::rate_of(account.ca_c_id, account.ca_tax_st, tables, tx)?;
        let tax = tax(account.ca_tax_st, matching.buy_value, matching.sell_value, rate);
        let security = required(tables.securities.get_columns::<SecurityTraded>(tx, trade.t_s_symb)?)?;
        let tier = required(tables.customers.get_columns::<Tier>(tx, account.ca_c_id)?)?.c_tier;
        let rate = taxes::commission_rate(tier, trade.t_tt_id, security.s_ex_id, trade.t_qty, tables, tx)?;
        let worth = value(trade.t_qty, self.price);
        let commission = commission(worth, rate);
        // Frame 5: the trade is done.
        let done = TradeDone {
            t_dts: now,
            t_st_id: completed(),
            t_trade_price: Some(self.price),
            t_comm: commission,
            t_tax: tax,
        };
        found.set(tx, done)?;
        let history = TradeHistory { th_t_id: self.trade, th_st_id: completed(), th_dts: now };
        tables.trade_histories.insert(tx, &history)?;
        tables.brokers.update(tx, account.ca_b_id, |broker: &mut Counters| {
            broker.b_num_trades += 1;
            broker.b_comm_total += commission;
        })?;
        // Frame 6: the settlement.
        let amount = settlement(kind.tt_is_sell, worth, trade.t_chrg, commission, account.ca_tax_st, tax);
        let name = cash_name(kind.tt_name.as_str(), trade.t_qty, security.s_name.as_str());
        self.settle(trade.t_is_cash, amount, name, now, tables, tx)?;
        let balance = if trade.t_is_cash { account.ca_bal + amount } else { account.ca_bal };
        if trade.t_is_cash {
            account_found.set(tx, Balance { ca_bal: balance })?;
        }
        Ok(TradeResultOutput { balance, amount })
    }

    fn change_holdings<E: Engine>(
        &self,
        trade: &TradeRead,
        signed: i32,
        now: Timestamp,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<Matching> {
        self.change_summary(trade, signed, tables, tx)?;
        let lots = holdings::lots(trade.t_ca_id, trade.t_s_symb, trade.t_lifo, tables, tx)?;
        let mut matching = Matching::default();
        matching.run(lots.iter().map(OpenLot::lot), signed, self.price);
        for taken in &matching.taken {
            let holding = lots[taken.at].h_t_id;
            self.note_change(holding, taken.before, taken.after, tables, tx)?;
            if taken.after == 0 {
                tables.holdings.delete(tx, holding)?;
            } else {
                tables.holdings.update(tx, holding, |row: &mut HoldingQuantity| row.h_qty = taken.after)?;
            }
        }
        if matching.remainder != 0 {
            self.note_change(self.trade, 0, matching.remainder, tables, tx)?;
            let row = Holding {
                h_t_id: self.trade,
                h_ca_id: trade.t_ca_id,
                h_s_symb: trade.t_s_symb,
                h_dts: now,
                h_price: self.price,
                h_qty: matching.remainder,
            };
            tables.holdings.insert(tx, &row)?;
        }
        Ok(matching)
    }

    /// The summary of holdings is the sum of all trades; where that is 0 there is no row.
    fn change_summary<E: Engine>(
        &self,
        trade: &TradeRead,
        signed: i32,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<()> {
        let key = (trade.t_ca_id, trade.t_s_symb);
        let Some(summary) = tables.holding_summaries.find(tx, key)? else {
            let row = HoldingSummary { hs_ca_id: key.0, hs_s_symb: key.1, hs_qty: signed };
            return tables.holding_summaries.insert(tx, &row).map(|_| ());
        };
        match summary.columns::<Quantity>(tx)?.hs_qty + signed {
            0 => summary.delete(tx),
            hs_qty => summary.set(tx, Quantity { hs_qty }),
        }
    }

    fn note_change<E: Engine>(
        &self,
        holding: u64,
        before: i32,
        after: i32,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<()> {
        let row = HoldingHistory {
            hh_h_t_id: holding,
            hh_t_id: self.trade,
            hh_before_qty: before,
            hh_after_qty: after,
        };
        tables.holding_histories.insert(tx, &row).map(|_| ())
    }

    fn settle<E: Engine>(
        &self,
        is_cash: bool,
        amount: Money,
        name: Text<100>,
        now: Timestamp,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<()> {
        let row = Settlement {
            se_t_id: self.trade,
            se_cash_type: cash_type(is_cash),
            se_cash_due_date: due_date(now),
            se_amt: amount,
        };
        tables.settlements.insert(tx, &row)?;
        if is_cash {
            let row = CashTransaction { ct_t_id: self.trade, ct_dts: now, ct_amt: amount, ct_name: name };
            tables.cash_transactions.insert(tx, &row)?;
        }
        Ok(())
    }
}
