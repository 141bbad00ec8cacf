//! The initial database: all rows of clause 2.6, made and inserted by several threads.
//!
//! The work is cut into tasks of some companies or some customers. Each company and each customer has random numbers of its own, so that a
//! seed makes the same database however many threads load it. What a thread has made and not inserted yet is one company or one customer.
//!
//! # Deviations
//! Trades are numbered by customer, and by time among the trades of one customer, because customers are made side by side. Trades that were
//! rolled back leave no gaps. News items consist of words made up here.

mod customer;
mod fixed;
mod market;
mod trades;

use ensilo::Engine;
use ensilo::generic::Database;

pub(super) use trades::QUANTITIES;

use super::kind;
use super::names;
use super::options::TpceOptions;
use super::population::Population;
use super::schema::{Broker, Money};
use super::tables::{Rows, Tables};
use crate::driver::{Division, Failure, Interrupt, View, parallel};

/// Companies and customers of one task.
const COMPANIES_OF_TASK: u32 = 10;
const CUSTOMERS_OF_TASK: u32 = 10;

/// By broker: trades and commissions.
type BrokerSums = Vec<(u32, Money)>;

/// What all tasks share.
#[derive(Debug, Clone, Copy)]
struct Plan<'a> {
    population: &'a Population,
    options: &'a TpceOptions,
    /// For each customer, the trades of those before, and all trades at the end.
    trades_before: &'a [u64],
}

/// Fills `tables`, which are empty.
pub(super) fn load<E: Engine>(
    database: &Database<E>,
    tables: &Tables<E>,
    population: &Population,
    options: &TpceOptions,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let trades_before = trades_before(population, options.initial_trades());
    let plan = Plan { population, options, trades_before: &trades_before };
    let mut rows = Rows::default();
    fixed::make(population, &mut rows);
    rows.insert(database, tables)?;
    load_companies(database, tables, plan, view, interrupt)?;
    let sums = load_customers(database, tables, plan, view, interrupt)?;
    rows.brokers.extend((1..).zip(sums).map(|(number, sums)| broker(number, sums)));
    Ok(rows.insert(database, tables)?)
}

fn load_companies<E: Engine>(
    database: &Database<E>,
    tables: &Tables<E>,
    plan: Plan<'_>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let companies = plan.population.companies;
    let division = Division {
        workers: plan.options.workers,
        tasks: u64::from(companies.div_ceil(COMPANIES_OF_TASK)),
        stage: "loading the market",
        total: u64::from(companies),
        unit: "companies",
    };
    parallel(division, view, interrupt, |task, reporter| {
        let mut rows = Rows::default();
        let first = task as u32 * COMPANIES_OF_TASK + 1;
        for company in first..(first + COMPANIES_OF_TASK).min(companies + 1) {
            market::make(plan, company, &mut rows);
            rows.insert(database, tables)?;
            reporter.advance(1)?;
        }
        Ok(())
    })?;
    Ok(())
}

fn load_customers<E: Engine>(
    database: &Database<E>,
    tables: &Tables<E>,
    plan: Plan<'_>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<BrokerSums, Failure> {
    let customers = plan.population.customers;
    let division = Division {
        workers: plan.options.workers,
        tasks: u64::from(customers.div_ceil(CUSTOMERS_OF_TASK)),
        stage: "loading customers and their trades",
        total: plan.options.initial_trades(),
        unit: "trades",
    };
    let no_sums = || vec![(0, Money::default()); plan.population.brokers as usize];
    let parts = parallel(division, view, interrupt, |task, reporter| {
        let (mut rows, mut sums) = (Rows::default(), no_sums());
        let first = task as u32 * CUSTOMERS_OF_TASK + 1;
        for customer in first..(first + CUSTOMERS_OF_TASK).min(customers + 1) {
            customer::make(plan, customer, &mut rows, &mut sums);
            let trades = rows.trades.len() as u64;
            rows.insert(database, tables)?;
            reporter.advance(trades)?;
        }
        Ok(sums)
    })?;
    let mut whole = no_sums();
    for part in parts {
        for (sum, (trades, commissions)) in whole.iter_mut().zip(part) {
            sum.0 += trades;
            sum.1 += commissions;
        }
    }
    Ok(whole)
}

fn broker(number: u32, (trades, commissions): (u32, Money)) -> Broker {
    Broker {
        b_id: number,
        b_st_id: kind::active(),
        b_name: names::broker(number),
        b_num_trades: trades,
        b_comm_total: commissions,
    }
}

/// Shares the trades out among the customers by their weights.
fn trades_before(population: &Population, trades: u64) -> Vec<u64> {
    let mut weights = vec![0];
    let mut sum = 0;
    weights.extend((1..=population.customers).map(|customer| {
        sum += population.weight(customer);
        sum
    }));
    weights.iter().map(|weight| trades * weight / sum).collect()
}
