//! A worker's market exchange: it takes the orders that the worker has submitted, says which of them are executed, and makes the ticker.
//!
//! # Source
//! TPC-E revision 1.14, clause 6.5. There one emulator outside of the database serves everybody. Here each worker has one of its own, so that
//! workers share nothing but the database: a worker executes what it has submitted itself, and what one of its market-feeds has
//! triggered, whoever had ordered that. Prices are the same for all without a word between them (`prices`).
//!
//! # How an order goes
//! ```text
//! trade-order, at the market ------------------------------> submitted --> trade-result --> executed, into the ticker
//! trade-order, with a limit --> waiting --> market-feed -----^
//! ```
//! An order with a limit is remembered as waiting so that the ticker names its security once its price is met; the row in
//! TRADE_REQUEST decides. Memory holds what waits and what is submitted; nothing else grows.

use std::collections::VecDeque;

use ensilo::Timestamp;

use super::kind::TradeKind;
use super::population::Population;
use super::prices::price;
use super::schema::{Money, Symbol};
use crate::random::Random;

/// Entries of a ticker (clause 3.3.3).
pub(super) const TICKS: usize = 20;
/// Waiting orders that are looked at for one ticker.
const LOOKED_AT: usize = 200;

/// An order that was sent to the market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Submitted {
    pub(super) trade: u64,
    pub(super) security: u32,
    pub(super) kind: TradeKind,
    pub(super) quantity: i32,
    pub(super) bid: Money,
}

/// An entry of a ticker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tick {
    pub(super) symbol: Symbol,
    pub(super) security: u32,
    pub(super) price: Money,
    pub(super) quantity: i32,
}

/// A worker's exchange.
#[derive(Debug, Default)]
pub(super) struct MarketExchange {
    submitted: VecDeque<Submitted>,
    waiting: VecDeque<Submitted>,
    /// The last that were executed: security and quantity.
    executed: VecDeque<(u32, i32)>,
}

/// A ticker, and the waiting orders that it was made for.
#[derive(Debug)]
pub(super) struct Ticker {
    pub(super) ticks: Vec<Tick>,
    pub(super) wanted: Vec<Submitted>,
}

impl MarketExchange {
    /// Takes an order of a committed trade-order.
    pub(super) fn send(&mut self, order: Submitted) {
        if order.kind.is_market() {
            self.submitted.push_back(order);
        } else {
            self.waiting.push_back(order);
        }
    }

    /// Takes an order that a market-feed has triggered, or whose execution did not commit.
    pub(super) fn submit(&mut self, order: Submitted) {
        self.submitted.push_back(order);
    }

    /// Whether there is an order to execute.
    pub(super) fn has_submitted(&self) -> bool {
        !self.submitted.is_empty()
    }

    /// The order that is executed next.
    pub(super) fn next_submitted(&mut self) -> Option<Submitted> {
        self.submitted.pop_front()
    }

    /// Notes that an order was executed.
    pub(super) fn note_executed(&mut self, order: &Submitted) {
        if self.executed.len() == TICKS {
            self.executed.pop_front();
        }
        self.executed.push_back((order.security, order.quantity));
    }

    /// Makes a ticker: securities for which an order waits whose price is met, those executed last, and any others.
    pub(super) fn ticker(&mut self, now: Timestamp, population: &Population, random: &mut Random) -> Ticker {
        let wanted = self.take_met(now);
        let mut ticked: Vec<(u32, i32)> =
            wanted.iter().map(|order| (order.security, order.quantity)).collect();
        while ticked.len() < TICKS {
            let any = || (random.below(u64::from(population.securities)) as u32, 100);
            ticked.push(self.executed.pop_front().unwrap_or_else(any));
        }
        let tick = |&(security, quantity): &(u32, i32)| Tick {
            symbol: population.symbol(security),
            security,
            price: price(security, now),
            quantity,
        };
        Ticker { ticks: ticked.iter().map(tick).collect(), wanted }
    }

    /// Takes a ticker's orders back whose market-feed did not commit.
    pub(super) fn take_back_wanted(&mut self, ticker: Ticker) {
        self.waiting.extend(ticker.wanted);
    }

    /// Takes out waiting orders whose price is met, of the first that wait; the others go to the end.
    fn take_met(&mut self, now: Timestamp) -> Vec<Submitted> {
        let mut met = Vec::with_capacity(TICKS);
        for _ in 0..self.waiting.len().min(LOOKED_AT) {
            let Some(order) = self.waiting.pop_front() else { break };
            let is_met = order.kind.is_triggered(order.bid, price(order.security, now));
            if is_met && met.len() < TICKS {
                met.push(order);
            } else {
                self.waiting.push_back(order);
            }
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpce::options::TpceOptions;

    #[test]
    fn an_order_with_a_limit_waits_for_its_price() {
        let population = Population::new(&TpceOptions { customers: 100, ..TpceOptions::new(1) });
        let (mut exchange, mut random) = (MarketExchange::default(), Random::new(1));
        let order = |trade, bid| Submitted {
            trade,
            security: 3,
            kind: TradeKind::LimitBuy,
            quantity: 100,
            bid: Money::from_int(bid),
        };
        exchange.send(order(1, 10));
        exchange.send(order(2, 40));
        assert_eq!(exchange.next_submitted(), None);
        let ticker = exchange.ticker(Timestamp::from_micros(0), &population, &mut random);
        assert_eq!((ticker.ticks.len(), ticker.wanted.as_slice()), (TICKS, &[order(2, 40)][..]));
        assert_eq!(ticker.ticks[0].security, 3);
        exchange.take_back_wanted(ticker);
        assert_eq!(exchange.waiting.len(), 2);
    }
}
