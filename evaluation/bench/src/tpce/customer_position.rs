//! Customer-position: what a customer's accounts are worth, and half of the times the last trades of one (clause 3.3.2).

use std::hint::black_box;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Text, Timestamp};

use super::input::Inputs;
use super::names::Person;
use super::rows::{required, shown_columns};
use super::schema::{Customer, CustomerAccount, Money, StatusId, Symbol, Trade, TradeHistory};
use super::tables::Tables;
use super::worth;

/// Accounts that are shown, and trades of one of them.
const ACCOUNTS: usize = 10;
const TRADES: usize = 10;

/// Who asks.
#[derive(Debug)]
pub(super) struct CustomerPositionInput {
    pub(super) customer: CustomerName,
    /// Which of the accounts' last trades are wanted, if any.
    pub(super) history_of: Option<usize>,
}

/// How a customer is named.
#[derive(Debug)]
pub(super) enum CustomerName {
    Number(u32),
    TaxId(Text<20>),
}

#[derive(Columns)]
#[columns(of = Customer)]
struct CustomerId {
    c_id: u32,
}

#[derive(Columns)]
#[columns(of = CustomerAccount)]
struct Balance {
    ca_id: u32,
    ca_bal: Money,
}

#[derive(Columns)]
#[columns(of = Trade)]
struct TradeOfList {
    t_id: u64,
    t_s_symb: Symbol,
    t_qty: i32,
}

shown_columns! {
    CustomerShown of Customer {
        c_st_id: StatusId,
        c_l_name: Text<25>,
        c_f_name: Text<20>,
        c_m_name: Option<Text<1>>,
        c_gndr: Option<Text<1>>,
        c_tier: u8,
        c_dob: i32,
        c_ad_id: u32,
        c_ctry_1: Text<3>,
        c_area_1: Text<3>,
        c_local_1: Text<10>,
        c_ext_1: Option<Text<5>>,
        c_ctry_2: Text<3>,
        c_area_2: Text<3>,
        c_local_2: Text<10>,
        c_ext_2: Option<Text<5>>,
        c_ctry_3: Text<3>,
        c_area_3: Text<3>,
        c_local_3: Text<10>,
        c_ext_3: Option<Text<5>>,
        c_email_1: Text<50>,
        c_email_2: Text<50>,
    }
    HistoryShown of TradeHistory { th_st_id: StatusId, th_dts: Timestamp }
}

impl CustomerPositionInput {
    pub(super) fn draw(inputs: &mut Inputs<'_>) -> Self {
        let number = inputs.customer();
        let accounts = inputs.population.accounts(number).len() as u64;
        Self {
            customer: if inputs.random.percent(50) {
                CustomerName::Number(number)
            } else {
                CustomerName::TaxId(Person::of(u64::from(number)).tax_id)
            },
            history_of: inputs.random.percent(50).then(|| inputs.random.below(accounts) as usize),
        }
    }

    /// Runs the transaction and returns accounts with their balance and the worth of what they hold, the least first.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Vec<(u32, Money, Money)>> {
        let number = match &self.customer {
            CustomerName::Number(number) => *number,
            CustomerName::TaxId(tax_id) => {
                let found = tables.customers_by_tax_id.prefix((*tax_id,)).columns::<CustomerId>();
                required(found.first(tx)?)?.1.c_id
            }
        };
        black_box(required(tables.customers.get_columns::<CustomerShown>(tx, number)?)?);
        let accounts = tables.accounts_by_customer.prefix((number,)).limit(ACCOUNTS);
        let accounts = accounts.columns::<Balance>().rows(tx)?;
        let mut positions = Vec::with_capacity(accounts.len());
        for account in &accounts {
            positions.push((account.ca_id, account.ca_bal, worth::of_holdings(account.ca_id, tables, tx)?));
        }
        positions.sort_by_key(|&(_, _, worth)| worth);
        if let Some(&(account, ..)) = self.history_of.and_then(|at| positions.get(at)) {
            show_last_trades(account, tables, tx)?;
        }
        Ok(positions)
    }
}

fn show_last_trades<'t, E: Engine>(
    account: u32,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<()> {
    let last = tables.trades_by_account.prefix((account,)).reverse().limit(TRADES);
    for trade in last.columns::<TradeOfList>().rows(tx)? {
        let states = tables.trade_histories.prefix((trade.t_id,)).columns::<HistoryShown>();
        states.for_each(tx, |_, state| {
            black_box((trade.t_s_symb, trade.t_qty, state));
        })?;
    }
    Ok(())
}
