//! Market-feed: the last prices of a ticker are noted, and orders whose price is met go to the market (clause 3.3.3).
//!
//! The twenty entries of a ticker are one transaction.

use ensilo::generic::{Found, Transaction};
use ensilo::{Columns, Engine, Result, Timestamp};

use super::exchange::{Submitted, Tick};
use super::kind::{TradeKind, submitted};
use super::rows::required;
use super::schema::{LastTrade, Money, StatusId, Trade, TradeHistory, TradeRequest, TradeTypeId};
use super::tables::Tables;

/// A ticker's entries.
#[derive(Debug)]
pub(super) struct MarketFeedInput<'a> {
    pub(super) ticks: &'a [Tick],
    pub(super) now: Timestamp,
}

#[derive(Columns)]
#[columns(of = LastTrade)]
struct Last {
    lt_dts: Timestamp,
    lt_price: Money,
    lt_vol: i64,
}

#[derive(Columns)]
#[columns(of = TradeRequest)]
struct Request {
    tr_tt_id: TradeTypeId,
    tr_qty: i32,
    tr_bid_price: Money,
}

#[derive(Columns)]
#[columns(of = Trade)]
struct State {
    t_dts: Timestamp,
    t_st_id: StatusId,
}

impl MarketFeedInput<'_> {
    /// Runs the transaction and returns the orders that go to the market.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'t, E>,
    ) -> Result<Vec<Submitted>> {
        let mut triggered = Vec::new();
        for tick in self.ticks {
            tables.last_trades.update(tx, tick.symbol, |last: &mut Last| {
                last.lt_dts = self.now;
                last.lt_price = tick.price;
                last.lt_vol += i64::from(tick.quantity);
            })?;
            let mut met = Vec::new();
            let requests = tables.trade_requests_by_security.prefix((tick.symbol,)).columns::<Request>();
            requests.for_each_found(tx, |found, request| {
                let kind = TradeKind::of_id(&request.tr_tt_id);
                met.extend(
                    kind.filter(|kind| kind.is_triggered(request.tr_bid_price, tick.price))
                        .map(|kind| (found, kind, request)),
                );
            })?;
            for (found, kind, request) in met {
                let trade = *found.key();
                self.trigger(tables, tx, found)?;
                let (quantity, bid) = (request.tr_qty, request.tr_bid_price);
                triggered.push(Submitted { trade, security: tick.security, kind, quantity, bid });
            }
        }
        Ok(triggered)
    }

    fn trigger<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'t, E>,
        request: Found<'_, 't, TradeRequest, E>,
    ) -> Result<()> {
        let number = *request.key();
        let trade = required(tables.trades.find(tx, number)?)?;
        // Workers read the clock before they begin: an order may be of a moment after this ticker's.
        let at = self.now.max(trade.columns::<State>(tx)?.t_dts);
        trade.set(tx, State { t_dts: at, t_st_id: submitted() })?;
        request.delete(tx)?;
        let row = TradeHistory { th_t_id: number, th_st_id: submitted(), th_dts: at };
        tables.trade_histories.insert(tx, &row).map(|_| ())
    }
}
