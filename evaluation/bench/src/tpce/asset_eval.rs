//! AssetEval of TPC-E-hybrid: the assets of a group of accounts, entered in ASSET_HISTORY.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §4.2: the total asset of an account is computed by joining HoldingSummary and LastTrade, the results are inserted into
//! a table that is added, and the size of a group of accounts is the footprint. Here a group is all accounts of customers with consecutive
//! numbers, as many percent of the customers as the options say; the paper does not say how a group is chosen.

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Timestamp};

use super::input::Inputs;
use super::population::ACCOUNTS_MAX;
use super::schema::{AssetHistory, CustomerAccount, Money};
use super::tables::Tables;
use super::worth;

/// Which accounts are evaluated.
#[derive(Debug)]
pub(super) struct AssetEvalInput {
    /// The evaluation's number.
    pub(super) number: u64,
    pub(super) first_customer: u32,
    pub(super) customers: u32,
    pub(super) now: Timestamp,
}

#[derive(Columns)]
#[columns(of = CustomerAccount)]
struct Balance {
    ca_bal: Money,
}

impl AssetEvalInput {
    /// Draws an evaluation of `percent` of the customers.
    pub(super) fn draw(inputs: &mut Inputs<'_>, number: u64, percent: u8) -> Self {
        let all = inputs.population.customers;
        let customers = (all * u32::from(percent) / 100).max(1);
        let first_customer = inputs.random.between(1, u64::from(all - customers) + 1) as u32;
        Self { number, first_customer, customers, now: inputs.now }
    }

    /// Runs the transaction and returns how many accounts it has evaluated, and what they are worth together.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'t, E>,
    ) -> Result<(usize, Money)> {
        let first = (self.first_customer - 1) * ACCOUNTS_MAX + 1;
        let group = first..first + self.customers * ACCOUNTS_MAX;
        let accounts = tables.accounts.range(group).columns::<Balance>().collect(tx)?;
        let mut total = Money::default();
        for (account, balance) in &accounts {
            let assets = balance.ca_bal + worth::of_holdings(*account, tables, tx)?;
            let row =
                AssetHistory { ah_id: self.number, ah_ca_id: *account, ah_dts: self.now, ah_assets: assets };
            tables.asset_histories.insert(tx, &row)?;
            total += assets;
        }
        Ok((accounts.len(), total))
    }
}
