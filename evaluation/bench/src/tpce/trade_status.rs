//! Trade-status: the last fifty trades of an account (clause 3.3.9).

use std::hint::black_box;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Text, Timestamp};

use super::input::Inputs;
use super::rows::{required, shown_columns};
use super::schema::{
    Broker, Customer, CustomerAccount, Exchange, Money, Security, StatusId, StatusType, Symbol, Trade,
    TradeType, TradeTypeId,
};
use super::tables::Tables;

/// Trades that are shown.
const TRADES: usize = 50;

/// Whose trades are asked for.
#[derive(Debug)]
pub(super) struct TradeStatusInput {
    pub(super) account: u32,
}

#[derive(Columns)]
#[columns(of = Trade)]
struct TradeOfList {
    t_id: u64,
    t_dts: Timestamp,
    t_st_id: StatusId,
    t_tt_id: TradeTypeId,
    t_s_symb: Symbol,
    t_qty: i32,
    t_exec_name: Text<49>,
    t_chrg: Money,
}

#[derive(Columns)]
#[columns(of = Security)]
struct SecurityOfList {
    s_name: Text<70>,
    s_ex_id: Text<6>,
}

#[derive(Columns)]
#[columns(of = CustomerAccount)]
struct Parties {
    ca_b_id: u32,
    ca_c_id: u32,
}

shown_columns! {
    StatusName of StatusType { st_name: Text<10> }
    TypeName of TradeType { tt_name: Text<12> }
    ExchangeName of Exchange { ex_name: Text<100> }
    CustomerName of Customer { c_l_name: Text<25>, c_f_name: Text<20> }
    BrokerName of Broker { b_name: Text<49> }
}

impl TradeStatusInput {
    pub(super) fn draw(inputs: &mut Inputs<'_>) -> Self {
        Self { account: inputs.account() }
    }

    /// Runs the transaction and returns the numbers of the trades, the latest first.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Vec<u64>> {
        let latest = tables.trades_by_account.prefix((self.account,)).reverse().limit(TRADES);
        let trades = latest.columns::<TradeOfList>().rows(tx)?;
        let symbols: Vec<Symbol> = trades.iter().map(|trade| trade.t_s_symb).collect();
        let mut exchanges = Vec::with_capacity(trades.len());
        tables.securities.get_columns_many::<SecurityOfList>(tx, &symbols, |_, security| {
            exchanges.extend(security.map(|security| {
                black_box(security.s_name);
                security.s_ex_id
            }));
        })?;
        for (trade, exchange) in trades.iter().zip(&exchanges) {
            black_box((trade.t_dts, trade.t_qty, trade.t_exec_name, trade.t_chrg));
            black_box(required(tables.status_types.get_columns::<StatusName>(tx, trade.t_st_id)?)?);
            black_box(required(tables.trade_types.get_columns::<TypeName>(tx, trade.t_tt_id)?)?);
            black_box(required(tables.exchanges.get_columns::<ExchangeName>(tx, exchange)?)?);
        }
        let parties = required(tables.accounts.get_columns::<Parties>(tx, self.account)?)?;
        black_box(required(tables.customers.get_columns::<CustomerName>(tx, parties.ca_c_id)?)?);
        black_box(required(tables.brokers.get_columns::<BrokerName>(tx, parties.ca_b_id)?)?);
        Ok(trades.iter().map(|trade| trade.t_id).collect())
    }
}
