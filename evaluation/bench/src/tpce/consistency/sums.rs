//! The conditions on sums over trades and holdings: brokers' counters, balances, holding summaries; and the evaluations.

use std::collections::BTreeMap;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Timestamp};

use super::condition::{Condition, Conditions};
use super::known::Known;
use super::piece::OfTrade;
use crate::tpce::kind::{TradeKind, completed};
use crate::tpce::loaded::Tpce;
use crate::tpce::schema::{AssetHistory, Broker, CustomerAccount, HoldingSummary, Money, Symbol};

/// Sums over a part of the trades.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// By broker: completed trades and their commissions.
    brokers: BTreeMap<u32, (u64, Money)>,
    /// By account: cash transactions.
    cash: BTreeMap<u32, Money>,
    /// By account and security.
    positions: BTreeMap<(u32, Symbol), Position>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Position {
    traded: i64,
    held: i64,
}

#[derive(Columns)]
#[columns(of = Broker)]
struct Counters {
    b_num_trades: u32,
    b_comm_total: Money,
}

#[derive(Columns)]
#[columns(of = CustomerAccount)]
struct Balance {
    ca_bal: Money,
}

#[derive(Columns)]
#[columns(of = HoldingSummary)]
struct Quantity {
    hs_qty: i32,
}

#[derive(Columns)]
#[columns(of = AssetHistory)]
struct Evaluated {
    ah_dts: Timestamp,
}

impl Sums {
    /// Adds what the rows of a trade say.
    pub(super) fn note(&mut self, rows: &OfTrade, known: &Known) {
        if let Some(holding) = &rows.holding {
            let position = self.positions.entry((holding.h_ca_id, holding.h_s_symb)).or_default();
            position.held += i64::from(holding.h_qty);
        }
        let Some(trade) = &rows.trade else { return };
        if let Some(amount) = rows.cash {
            *self.cash.entry(trade.t_ca_id).or_default() += amount;
        }
        if trade.t_st_id != completed() {
            return;
        }
        if let Some(account) = known.accounts.get(&trade.t_ca_id) {
            let broker = self.brokers.entry(account.ca_b_id).or_default();
            broker.0 += 1;
            broker.1 += trade.t_comm;
        }
        if let Some(kind) = TradeKind::of_id(&trade.t_tt_id) {
            let position = self.positions.entry((trade.t_ca_id, trade.t_s_symb)).or_default();
            position.traded += i64::from(kind.signed(trade.t_qty));
        }
    }

    /// Adds the sums of another part.
    pub(super) fn add(&mut self, other: Self) {
        for (broker, (trades, commissions)) in other.brokers {
            let sum = self.brokers.entry(broker).or_default();
            sum.0 += trades;
            sum.1 += commissions;
        }
        for (account, amount) in other.cash {
            *self.cash.entry(account).or_default() += amount;
        }
        for (key, position) in other.positions {
            let sum = self.positions.entry(key).or_default();
            sum.traded += position.traded;
            sum.held += position.held;
        }
    }

    /// Holds the sums against the rows that say the same.
    pub(super) fn check<'t, E: Engine>(
        &self,
        tpce: &Tpce<E>,
        known: &Known,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Conditions> {
        let mut conditions = Conditions::new();
        self.check_brokers(tpce, tx, &mut conditions)?;
        self.check_balances(tpce, tx, &mut conditions)?;
        self.check_positions(tpce, known, tx, &mut conditions)?;
        check_evaluations(tpce, known, tx, &mut conditions)?;
        Ok(conditions)
    }

    fn check_brokers<'t, E: Engine>(
        &self,
        tpce: &Tpce<E>,
        tx: &mut impl ReadTransaction<'t, E>,
        conditions: &mut Conditions,
    ) -> Result<()> {
        tpce.tables.brokers.scan().columns::<Counters>().for_each(tx, |broker, row| {
            let (trades, commissions) = self.brokers.get(&broker).copied().unwrap_or_default();
            conditions.expect(Condition::BrokerTrades, u64::from(row.b_num_trades) == trades, || {
                format!("broker {broker}: b_num_trades {}, completed trades {trades}", row.b_num_trades)
            });
            conditions.expect(Condition::BrokerCommissions, row.b_comm_total == commissions, || {
                format!("broker {broker}: b_comm_total {}, sum of t_comm {commissions}", row.b_comm_total)
            });
        })
    }

    fn check_balances<'t, E: Engine>(
        &self,
        tpce: &Tpce<E>,
        tx: &mut impl ReadTransaction<'t, E>,
        conditions: &mut Conditions,
    ) -> Result<()> {
        tpce.tables.accounts.scan().columns::<Balance>().for_each(tx, |account, row| {
            let opening = Money::from_scaled(tpce.population.account(account).opening_cents);
            let expected = opening + self.cash.get(&account).copied().unwrap_or_default();
            conditions.expect(Condition::Balances, row.ca_bal == expected, || {
                format!("account {account}: ca_bal {}, opening and cash {expected}", row.ca_bal)
            });
        })
    }

    fn check_positions<'t, E: Engine>(
        &self,
        tpce: &Tpce<E>,
        known: &Known,
        tx: &mut impl ReadTransaction<'t, E>,
        conditions: &mut Conditions,
    ) -> Result<()> {
        let mut summaries = BTreeMap::new();
        let rows = tpce.tables.holding_summaries.scan().columns::<Quantity>();
        rows.for_each(tx, |key, row| {
            summaries.insert(key, row.hs_qty);
        })?;
        for (&(account, symbol), &quantity) in &summaries {
            let refers_well = known.accounts.contains_key(&account) && known.symbols.contains(&symbol);
            conditions.expect(Condition::References, refers_well, || {
                format!("holding summary of account {account}, {symbol}")
            });
            let is_known = quantity != 0 && self.positions.contains_key(&(account, symbol));
            conditions.expect(Condition::HoldingSums, is_known, || {
                format!("account {account}, {symbol}: hs_qty {quantity} without a trade or a quantity")
            });
        }
        for (&(account, symbol), position) in &self.positions {
            let summary = i64::from(summaries.get(&(account, symbol)).copied().unwrap_or_default());
            conditions.expect(Condition::HoldingSums, summary == position.held, || {
                format!("account {account}, {symbol}: hs_qty {summary}, sum of h_qty {}", position.held)
            });
            conditions.expect(Condition::Positions, summary == position.traded, || {
                format!("account {account}, {symbol}: hs_qty {summary}, traded {}", position.traded)
            });
        }
        Ok(())
    }
}

fn check_evaluations<'t, E: Engine>(
    tpce: &Tpce<E>,
    known: &Known,
    tx: &mut impl ReadTransaction<'t, E>,
    conditions: &mut Conditions,
) -> Result<()> {
    let mut current = None;
    let rows = tpce.tables.asset_histories.scan().columns::<Evaluated>();
    rows.for_each(tx, |(evaluation, account), row| {
        let is_same = current.is_none_or(|(last, at)| last != evaluation || at == row.ah_dts);
        current = Some((evaluation, row.ah_dts));
        conditions.expect(Condition::Evaluations, is_same && known.accounts.contains_key(&account), || {
            format!("evaluation {evaluation}, account {account}: at {}", row.ah_dts)
        });
    })
}
