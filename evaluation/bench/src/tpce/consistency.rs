//! The consistency conditions of the specification and ours, held against what a snapshot shows.
//!
//! Everything that belongs to a trade is keyed by the trade's number: trades, their states, settlements, cash transactions, requests,
//! holdings and the holdings' history are walked side by side in pieces of some thousand numbers, several pieces at a time (`trade`, `chain`). What
//! a piece says of brokers, accounts and positions is summed up, and the sums are held against the rows of these in the end (`sums`).
//!
//! # Source
//! TPC-E revision 1.14: the three conditions on brokers' counters and holding summaries. The others are ours.
//!
//! # Snapshot isolation
//! Every condition holds under snapshot isolation as well. A condition can break by write skew only where two transactions read what the other
//! writes and write different rows. Trade-results of one account and security both write that HOLDING_SUMMARY (an insert counts: it is the
//! same key), those of one account write its balance if they move cash, those of one broker write the broker; so of two that run side by side and
//! matter to each other one gives way. Two market-feeds that trigger one order both delete its request. A trade has one
//! trade-result, because one worker alone was told that it is at the market. All others insert rows of their own or write columns that no
//! condition is about.

mod chain;
mod condition;
mod known;
mod piece;
mod sums;
mod trade;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result as DatabaseResult};

use condition::Conditions;
use known::Known;
use sums::Sums;

use super::loaded::Tpce;
use super::schema::Trade;
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, parallel};

/// Numbers of trades that are checked at a time.
const PIECE: u64 = 10_000;

#[derive(Columns)]
#[columns(of = Trade)]
struct TradeKey {}

/// Reads what a snapshot shows, or what is there where nobody changes anything meanwhile and there are no snapshots.
macro_rules! read {
    ($tpce:ident, $body:expr) => {
        if E::SNAPSHOTS { $tpce.database.read_stale($body) } else { $tpce.database.transact($body) }
    };
}

/// Checks the whole database, once a snapshot shows all that was committed.
pub(super) fn check<E: Engine>(
    tpce: &Tpce<E>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Vec<Check>, Failure> {
    database::make_fresh_snapshot(&tpce.database)?;
    let known = read!(tpce, |tx| Known::collect(tpce, tx))?;
    let last = read!(tpce, |tx| last_trade(tpce, tx))?;
    let pieces = last / PIECE + 1;
    let division = Division {
        workers: tpce.options.workers,
        tasks: pieces,
        stage: "checking consistency",
        total: last,
        unit: "trades",
    };
    let parts = parallel(division, view, interrupt, |task, reporter| {
        // Rows of trades that are not there belong to the last piece.
        let end = if task + 1 == pieces { u64::MAX } else { (task + 1) * PIECE };
        let part = read!(tpce, |tx| piece::check(tpce, &known, task * PIECE..end, tx))?;
        reporter.advance(PIECE.min(last - task * PIECE))?;
        Ok(part)
    })?;
    let (mut conditions, mut sums) = (Conditions::new(), Sums::default());
    for (part, part_sums) in parts {
        conditions.add(part);
        sums.add(part_sums);
    }
    conditions.add(read!(tpce, |tx| sums.check(tpce, &known, tx))?);
    Ok(conditions.into_checks(tpce.options.is_hybrid()))
}

/// The highest number of a trade, 0 if there is none.
fn last_trade<'t, E: Engine>(tpce: &Tpce<E>, tx: &mut impl ReadTransaction<'t, E>) -> DatabaseResult<u64> {
    let last = tpce.tables.trades.scan().reverse().columns::<TradeKey>().first(tx)?;
    Ok(last.map_or(0, |(number, _)| number))
}
