//! What the database shows of the transactions since the load: orders entered, orders executed, evaluations made.

use ensilo::{Columns, Engine, Result};

use super::loaded::Tpce;
use super::options::{ASSET_EVAL, TRADE_ORDER, TRADE_RESULT};
use super::schema::{AssetHistory, Settlement, Trade};

#[derive(Columns)]
#[columns(of = Trade)]
struct TradeKey {}

#[derive(Columns)]
#[columns(of = Settlement)]
struct SettlementKey {}

#[derive(Columns)]
#[columns(of = AssetHistory)]
struct EvaluationKey {}

/// By transaction type, in one transaction.
pub(super) fn count<E: Engine>(tpce: &Tpce<E>) -> Result<Vec<u64>> {
    let first = tpce.options.initial_trades() + 1;
    tpce.database.transact(|tx| {
        let (mut orders, mut results, mut evaluations, mut last) = (0, 0, 0, 0);
        tpce.tables.trades.range(first..).columns::<TradeKey>().for_each(tx, |_, _| orders += 1)?;
        tpce.tables
            .settlements
            .range(first..)
            .columns::<SettlementKey>()
            .for_each(tx, |_, _| results += 1)?;
        let accounts = tpce.tables.asset_histories.scan().columns::<EvaluationKey>();
        accounts.for_each(tx, |(number, _), _| {
            evaluations += u64::from(number != last);
            last = number;
        })?;
        let mut effects = vec![0; tpce.options.transaction_types().len()];
        (effects[TRADE_ORDER], effects[TRADE_RESULT]) = (orders, results);
        if tpce.options.is_hybrid() {
            effects[ASSET_EVAL] = evaluations;
        }
        Ok(effects)
    })
}
