//! The conditions on a single trade: its state, settlement, cash and request, and what it refers to.

use super::condition::{Condition, Conditions};
use super::known::Known;
use super::piece::{CheckedTrade, OfTrade};
use crate::tpce::fees::{settlement, value};
use crate::tpce::kind::{TradeKind, canceled, completed, pending, submitted};
use crate::tpce::schema::{Money, StatusId};

/// The ways of a trade at the market and of one with a limit, as far as they may have come.
fn is_legal(kind: TradeKind, states: &[StatusId]) -> bool {
    let way: &[StatusId] =
        if kind.is_market() { &[submitted(), completed()] } else { &[pending(), submitted(), completed()] };
    let is_canceled = states.last() == Some(&canceled());
    let gone = if is_canceled { &states[..states.len() - 1] } else { states };
    // Only what is at the market is canceled: trade-cleanup submits what waits before.
    way.starts_with(gone) && !gone.is_empty() && (!is_canceled || gone.last() == Some(&submitted()))
}

/// Checks a trade.
pub(super) fn check(number: u64, rows: &OfTrade, known: &Known, conditions: &mut Conditions) {
    let Some(trade) = &rows.trade else {
        conditions.expect(Condition::References, false, || {
            format!("trade {number}: there is none, but rows of it")
        });
        return;
    };
    let (kind, account) = (TradeKind::of_id(&trade.t_tt_id), known.accounts.get(&trade.t_ca_id));
    let refers_well = kind.is_some()
        && account.is_some()
        && known.symbols.contains(&trade.t_s_symb)
        && rows
            .holding
            .as_ref()
            .is_none_or(|holding| (holding.h_ca_id, holding.h_s_symb) == (trade.t_ca_id, trade.t_s_symb));
    conditions.expect(Condition::References, refers_well, || {
        format!("trade {number}: {} {} of account {}", trade.t_tt_id, trade.t_s_symb, trade.t_ca_id)
    });
    let (Some(kind), Some(account)) = (kind, account) else { return };
    check_states(number, trade, rows, kind, conditions);
    check_money(number, trade, rows, kind, account.ca_tax_st, conditions);
    let is_done = trade.t_st_id == completed();
    let expected = if is_done { i64::from(kind.signed(trade.t_qty)) } else { 0 };
    conditions.expect(Condition::HoldingChanges, rows.changed == expected, || {
        format!("trade {number}: quantity {expected}, changes {}", rows.changed)
    });
    let agrees = match &rows.request {
        None => trade.t_st_id != pending(),
        Some(request) => {
            trade.t_st_id == pending()
                && (request.tr_tt_id, request.tr_s_symb) == (trade.t_tt_id, trade.t_s_symb)
                && (request.tr_qty, request.tr_bid_price) == (trade.t_qty, trade.t_bid_price)
                && request.tr_b_id == account.ca_b_id
        }
    };
    conditions.expect(Condition::Requests, agrees, || {
        format!("trade {number}: t_st_id {}, request {:?}", trade.t_st_id, rows.request)
    });
}

fn check_states(
    number: u64,
    trade: &CheckedTrade,
    rows: &OfTrade,
    kind: TradeKind,
    conditions: &mut Conditions,
) {
    let mut states = rows.states.clone();
    let place = |status: &StatusId| {
        [pending(), submitted(), completed(), canceled()].iter().position(|known| known == status)
    };
    states.sort_by_key(|(status, at)| (*at, place(status)));
    let (last, way) = (states.last().copied(), states.iter().map(|&(status, _)| status).collect::<Vec<_>>());
    let holds = is_legal(kind, &way) && last == Some((trade.t_st_id, trade.t_dts));
    conditions.expect(Condition::States, holds, || {
        format!(
            "trade {number} ({}): t_st_id {}, t_dts {}, {states:?}",
            trade.t_tt_id, trade.t_st_id, trade.t_dts
        )
    });
}

fn check_money(
    number: u64,
    trade: &CheckedTrade,
    rows: &OfTrade,
    kind: TradeKind,
    tax_status: u8,
    conditions: &mut Conditions,
) {
    let is_done = trade.t_st_id == completed();
    let amount = |price: Money| {
        let whole = value(trade.t_qty, price);
        settlement(kind.is_sell(), whole, trade.t_chrg, trade.t_comm, tax_status, trade.t_tax)
    };
    let expected = trade.t_trade_price.filter(|_| is_done).map(amount);
    conditions.expect(
        Condition::Settlements,
        is_done == expected.is_some() && rows.settled == expected,
        || format!("trade {number}: t_st_id {}, due {expected:?}, se_amt {:?}", trade.t_st_id, rows.settled),
    );
    let in_cash = rows.settled.filter(|_| trade.t_is_cash);
    conditions.expect(Condition::Cash, rows.cash == in_cash, || {
        format!(
            "trade {number}: t_is_cash {}, se_amt {:?}, ct_amt {:?}",
            trade.t_is_cash, rows.settled, rows.cash
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_in_one_order() {
        let legal = |kind, states: &[StatusId]| is_legal(kind, states);
        assert!(legal(TradeKind::MarketBuy, &[submitted(), completed()]));
        assert!(legal(TradeKind::LimitSell, &[pending()]));
        assert!(legal(TradeKind::LimitSell, &[pending(), submitted(), canceled()]));
        assert!(!legal(TradeKind::LimitSell, &[submitted(), completed()]));
        assert!(!legal(TradeKind::MarketBuy, &[completed()]));
        assert!(!legal(TradeKind::MarketBuy, &[]));
        assert!(!legal(TradeKind::MarketBuy, &[submitted(), completed(), canceled()]));
    }
}
