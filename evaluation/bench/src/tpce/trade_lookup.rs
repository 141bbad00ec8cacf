//! Trade-lookup: what became of old trades, asked for in four ways (clause 3.3.6).

use std::hint::black_box;

use ensilo::generic::ReadTransaction;
use ensilo::{Engine, Result};

use super::input::{Inputs, TRADES_AT_ONCE, TradeChoice};
use super::rows::shown_columns;
use super::schema::HoldingHistory;
use super::tables::Tables;
use super::trade_details;

/// What is asked for: trades in the frames 1 to 3, what became of the holdings of the first of them in frame 4.
#[derive(Debug)]
pub(super) enum TradeLookupInput {
    Trades(TradeChoice),
    Holdings(TradeChoice),
}

shown_columns! {
    HistoryShown of HoldingHistory { hh_h_t_id: u64, hh_t_id: u64, hh_before_qty: i32, hh_after_qty: i32 }
}

impl TradeLookupInput {
    pub(super) fn draw(inputs: &mut Inputs<'_>) -> Self {
        match inputs.random.below(10) {
            0..3 => Self::Trades(TradeChoice::draw_numbers(inputs)),
            3..6 => Self::Trades(TradeChoice::draw_account(inputs)),
            6..9 => Self::Trades(TradeChoice::draw_security(inputs)),
            _ => Self::Holdings(TradeChoice::draw_account(inputs)),
        }
    }

    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<()> {
        match self {
            Self::Trades(choice) => {
                let numbers = trade_details::find(choice, tables, tx)?;
                trade_details::show(&numbers, tables, tx)
            }
            Self::Holdings(choice) => {
                let numbers = trade_details::find(choice, tables, tx)?;
                numbers.first().map_or(Ok(()), |&number| show_holdings(number, tables, tx))
            }
        }
    }
}

/// Shows what all trades did to the holdings that a trade has changed.
fn show_holdings<'t, E: Engine>(
    number: u64,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<()> {
    let mut holdings = Vec::new();
    tables
        .holding_histories_by_trade
        .prefix((number,))
        .for_each_primary_key(tx, |(holding, _)| holdings.push(holding))?;
    let mut room = TRADES_AT_ONCE;
    for holding in holdings {
        let changes = tables.holding_histories.prefix((holding,)).limit(room).columns::<HistoryShown>();
        changes.for_each(tx, |_, change| {
            room -= 1;
            black_box(change);
        })?;
        if room == 0 {
            break;
        }
    }
    Ok(())
}
