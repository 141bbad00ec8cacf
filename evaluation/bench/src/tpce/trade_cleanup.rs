//! Trade-cleanup: orders that an earlier run left behind are cancelled before the first transaction (clause 3.3.12).

use ensilo::{Columns, Engine, Result, Timestamp};

use super::kind::{canceled, completed, pending, submitted};
use super::loaded::Tpce;
use super::rows::required;
use super::schema::{StatusId, Trade, TradeHistory};
use crate::database;

/// Orders that one transaction cancels.
const BATCH: usize = 500;

#[derive(Columns)]
#[columns(of = Trade)]
struct State {
    t_st_id: StatusId,
}

#[derive(Columns)]
#[columns(of = Trade)]
struct Canceled {
    t_dts: Timestamp,
    t_st_id: StatusId,
}

/// Cancels every trade that is not completed, and removes all trade requests. Returns how many trades it cancelled.
pub(super) fn run<E: Engine>(tpce: &Tpce<E>, now: Timestamp) -> Result<usize> {
    let first = tpce.options.initial_trades() + 1;
    let mut open = Vec::new();
    database::load_request(&tpce.database).transact(|tx| {
        open.clear();
        tpce.tables.trades.range(first..).columns::<State>().for_each(tx, |number, trade| {
            if trade.t_st_id != completed() && trade.t_st_id != canceled() {
                open.push(number);
            }
        })
    })?;
    for batch in open.chunks(BATCH) {
        database::load_request(&tpce.database)
            .transact(|tx| batch.iter().try_for_each(|&number| cancel(tpce, tx, number, now)))?;
    }
    Ok(open.len())
}

fn cancel<E: Engine>(
    tpce: &Tpce<E>,
    tx: &mut ensilo::generic::Transaction<'_, E>,
    number: u64,
    now: Timestamp,
) -> Result<()> {
    let tables = &tpce.tables;
    let trade = required(tables.trades.find(tx, number)?)?;
    let history = |status| TradeHistory { th_t_id: number, th_st_id: status, th_dts: now };
    if trade.columns::<State>(tx)?.t_st_id == pending() {
        tables.trade_histories.insert(tx, &history(submitted()))?;
        tables.trade_requests.delete(tx, number)?;
    }
    tables.trade_histories.insert(tx, &history(canceled()))?;
    trade.set(tx, Canceled { t_dts: now, t_st_id: canceled() })
}
