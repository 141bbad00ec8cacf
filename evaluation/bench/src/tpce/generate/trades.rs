//! The trades of a customer, one after the other in the order of time, with all that each of them leaves behind.
//!
//! A trade is completed by the rules of trade-result: holdings, their history and summaries, settlement, cash, balance and the broker's
//! counters agree because they are made from one calculation.

use std::collections::BTreeMap;

use ensilo::{Text, Timestamp};

use super::market::security_name;
use super::{BrokerSums, Plan};
use crate::random::Random;
use crate::tpce::calendar::{TRADING_US, due_date, moved, trading_time};
use crate::tpce::cash::{cash_name, cash_type};
use crate::tpce::fees;
use crate::tpce::kind::{TradeKind, completed, pending, submitted};
use crate::tpce::lots::{Lot, Matching};
use crate::tpce::population::{Account, Population};
use crate::tpce::prices;
use crate::tpce::schema::{
    CashTransaction, Holding, HoldingHistory, HoldingSummary, Money, Settlement, StatusId, TaxRate, Trade,
    TradeHistory,
};
use crate::tpce::tables::Rows;

/// Quantities of a trade (clause 6.4).
pub(in crate::tpce) const QUANTITIES: [i32; 4] = [100, 200, 400, 800];

/// What a customer holds while their trades are made.
struct Portfolio<'a> {
    plan: Plan<'a>,
    customer: u32,
    tax_rate: TaxRate,
    /// By account and security, the oldest first.
    holdings: BTreeMap<(u32, u32), Vec<Holding>>,
    matching: Matching,
}

/// Makes the trades of `customer`, who pays taxes at these rates.
pub(super) fn make(
    plan: Plan<'_>,
    customer: u32,
    taxrates: [u32; 2],
    random: &mut Random,
    rows: &mut Rows,
    brokers: &mut BrokerSums,
) {
    let at = customer as usize;
    let (first, last) = (plan.trades_before[at - 1], plan.trades_before[at]);
    let length_us = u64::from(plan.options.initial_trading_days) * TRADING_US;
    let mut times: Vec<u64> = (first..last).map(|_| random.below(length_us)).collect();
    times.sort_unstable();
    let mut portfolio = Portfolio {
        plan,
        customer,
        tax_rate: taxrates.map(fees::taxrate).into_iter().sum(),
        holdings: BTreeMap::new(),
        matching: Matching::default(),
    };
    let population = plan.population;
    let accounts: Vec<u32> = population.accounts(customer).collect();
    for (number, time) in (first + 1..).zip(times) {
        let account = accounts[random.below(accounts.len() as u64) as usize];
        let order = Order::draw(population, number, account, trading_time(time), random);
        let commission = portfolio.complete(&order, rows);
        let sums = &mut brokers[order.known.broker as usize - 1];
        sums.0 += 1;
        sums.1 += commission;
    }
    portfolio.finish(rows);
}

/// An order that was executed.
struct Order {
    number: u64,
    account: u32,
    known: Account,
    security: u32,
    kind: TradeKind,
    quantity: i32,
    price: Money,
    executor: Text<49>,
    is_cash: bool,
    is_lifo: bool,
    requested: Timestamp,
    submitted: Timestamp,
    done: Timestamp,
}

impl Order {
    fn draw(
        population: &Population,
        number: u64,
        account: u32,
        done: Timestamp,
        random: &mut Random,
    ) -> Self {
        const SECOND_US: u64 = 1_000_000;
        let known = population.account(account);
        let kind = TradeKind::draw(random);
        let security = known.draw_security(random);
        let is_others = known.permitted > 1 && random.percent(10);
        let submitted = moved(done, -(random.between(SECOND_US, 5 * SECOND_US) as i64));
        let waited = if kind.is_market() { 0 } else { random.between(SECOND_US, 900 * SECOND_US) };
        Self {
            number,
            account,
            known,
            security,
            kind,
            quantity: QUANTITIES[random.below(4) as usize],
            price: prices::price(security, done),
            executor: known.person(u32::from(is_others)).full_name(),
            is_cash: kind.is_sell() || !random.percent(16),
            is_lifo: random.percent(35),
            requested: moved(submitted, -(waited as i64)),
            submitted,
            done,
        }
    }

    fn history(&self, status: StatusId, at: Timestamp) -> TradeHistory {
        TradeHistory { th_t_id: self.number, th_st_id: status, th_dts: at }
    }
}

impl Portfolio<'_> {
    /// Makes the rows of a trade and returns its commission.
    fn complete(&mut self, order: &Order, rows: &mut Rows) -> Money {
        let symbol = self.plan.population.symbol(order.security);
        self.change_holdings(order, rows);
        let tier = self.plan.population.tier(self.customer);
        let value = fees::value(order.quantity, order.price);
        let exchange = Population::exchange_of(order.security);
        let range = fees::range_of(order.quantity);
        let commission = fees::commission(value, fees::commission_rate(tier, order.kind, exchange, range));
        let charge = fees::charge(order.kind, tier);
        let Matching { buy_value, sell_value, .. } = self.matching;
        let tax = fees::tax(order.known.tax_status, buy_value, sell_value, self.tax_rate);
        rows.trades.push(Trade {
            t_id: order.number,
            t_dts: order.done,
            t_st_id: completed(),
            t_tt_id: order.kind.id(),
            t_is_cash: order.is_cash,
            t_s_symb: symbol,
            t_qty: order.quantity,
            t_bid_price: order.price,
            t_ca_id: order.account,
            t_exec_name: order.executor,
            t_trade_price: Some(order.price),
            t_chrg: charge,
            t_comm: commission,
            t_tax: tax,
            t_lifo: order.is_lifo,
        });
        let waiting = (!order.kind.is_market()).then(|| order.history(pending(), order.requested));
        rows.trade_histories.extend(waiting);
        rows.trade_histories.push(order.history(submitted(), order.submitted));
        rows.trade_histories.push(order.history(completed(), order.done));
        let amount =
            fees::settlement(order.kind.is_sell(), value, charge, commission, order.known.tax_status, tax);
        self.settle(order, amount, rows);
        commission
    }

    fn change_holdings(&mut self, order: &Order, rows: &mut Rows) {
        let signed = order.kind.signed(order.quantity);
        let holdings = self.holdings.entry((order.account, order.security)).or_default();
        let lot = |holding: &Holding| Lot { quantity: holding.h_qty, price: holding.h_price };
        if order.is_lifo {
            holdings.reverse();
        }
        self.matching.run(holdings.iter().map(lot), signed, order.price);
        for taken in &self.matching.taken {
            let holding = &mut holdings[taken.at];
            holding.h_qty = taken.after;
            rows.holding_histories.push(HoldingHistory {
                hh_h_t_id: holding.h_t_id,
                hh_t_id: order.number,
                hh_before_qty: taken.before,
                hh_after_qty: taken.after,
            });
        }
        if order.is_lifo {
            holdings.reverse();
        }
        holdings.retain(|holding| holding.h_qty != 0);
        let remainder = self.matching.remainder;
        if remainder != 0 {
            holdings.push(Holding {
                h_t_id: order.number,
                h_ca_id: order.account,
                h_s_symb: self.plan.population.symbol(order.security),
                h_dts: order.done,
                h_price: order.price,
                h_qty: remainder,
            });
            rows.holding_histories.push(HoldingHistory {
                hh_h_t_id: order.number,
                hh_t_id: order.number,
                hh_before_qty: 0,
                hh_after_qty: remainder,
            });
        }
    }

    fn settle(&self, order: &Order, amount: Money, rows: &mut Rows) {
        rows.settlements.push(Settlement {
            se_t_id: order.number,
            se_cash_type: cash_type(order.is_cash),
            se_cash_due_date: due_date(order.done),
            se_amt: amount,
        });
        if !order.is_cash {
            return;
        }
        rows.cash_transactions.push(CashTransaction {
            ct_t_id: order.number,
            ct_dts: order.done,
            ct_amt: amount,
            ct_name: cash_name(
                order.kind.name(),
                order.quantity,
                security_name(self.plan.population, order.security).as_str(),
            ),
        });
        let mut accounts = rows.accounts.iter_mut();
        if let Some(account) = accounts.find(|account| account.ca_id == order.account) {
            account.ca_bal += amount;
        }
    }

    fn finish(self, rows: &mut Rows) {
        for ((account, security), holdings) in self.holdings {
            let quantity: i32 = holdings.iter().map(|holding| holding.h_qty).sum();
            if quantity != 0 {
                rows.holding_summaries.push(HoldingSummary {
                    hs_ca_id: account,
                    hs_s_symb: self.plan.population.symbol(security),
                    hs_qty: quantity,
                });
            }
            rows.holdings.extend(holdings);
        }
    }
}
