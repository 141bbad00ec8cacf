//! Market-watch: how much a list of securities has gained or lost since a day (clause 3.3.4).

use std::ops::RangeInclusive;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Text};

use super::input::Inputs;
use super::names::{self, INDUSTRIES};
use super::rows::required;
use super::schema::{DailyMarket, Day, Industry, Security, Symbol};
use super::tables::Tables;
use super::worth::LastPrice;

/// What is asked for.
#[derive(Debug)]
pub(super) struct MarketWatchInput {
    pub(super) securities: Watched,
    pub(super) since: Day,
}

/// Which securities are watched.
#[derive(Debug)]
pub(super) enum Watched {
    /// Those on a customer's watch list.
    ByCustomer(u32),
    /// Those that an account holds.
    HeldBy(u32),
    /// Those of the companies of an industry, of these numbers.
    OfIndustry(Text<50>, RangeInclusive<u32>),
}

#[derive(Columns)]
#[columns(of = Industry)]
struct IndustryId {
    in_id: Text<2>,
}

#[derive(Columns)]
#[columns(of = Security)]
struct Outstanding {
    s_num_out: i64,
}

#[derive(Columns)]
#[columns(of = DailyMarket)]
struct Close {
    dm_close: super::schema::Money,
}

impl MarketWatchInput {
    pub(super) fn draw(inputs: &mut Inputs<'_>) -> Self {
        let securities = match inputs.random.below(100) {
            0..60 => Watched::ByCustomer(inputs.customer()),
            60..95 => Watched::HeldBy(inputs.account()),
            _ => {
                let industry = inputs.random.below(u64::from(INDUSTRIES)) as u32;
                Watched::OfIndustry(names::industry(industry), 1..=inputs.population.companies)
            }
        };
        Self { securities, since: inputs.market_day(0) }
    }

    /// Runs the transaction and returns the change in percent.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<f64> {
        let symbols = self.symbols(tables, tx)?;
        let days: Vec<(Symbol, Day)> = symbols.iter().map(|&symbol| (symbol, self.since)).collect();
        let mut outstanding = vec![0.0; symbols.len()];
        let (mut before, mut now) = (0.0, 0.0);
        tables.securities.get_columns_many::<Outstanding>(tx, &symbols, |at, row| {
            outstanding[at] = row.map_or(0.0, |row| row.s_num_out as f64);
        })?;
        tables.last_trades.get_columns_many::<LastPrice>(tx, &symbols, |at, row| {
            now += row.map_or(0.0, |row| outstanding[at] * row.lt_price.to_f64());
        })?;
        tables.daily_markets.get_columns_many::<Close>(tx, &days, |at, row| {
            before += row.map_or(0.0, |row| outstanding[at] * row.dm_close.to_f64());
        })?;
        Ok(if before == 0.0 { 0.0 } else { 100.0 * (now / before - 1.0) })
    }

    fn symbols<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Vec<Symbol>> {
        let mut symbols = Vec::new();
        match &self.securities {
            Watched::ByCustomer(customer) => {
                let lists = tables.watch_lists_by_customer.prefix((*customer,)).primary_keys(tx)?;
                for list in lists {
                    let items = tables.watch_items.prefix((list,));
                    items.for_each(tx, |(_, symbol), _| symbols.push(symbol))?;
                }
            }
            Watched::HeldBy(account) => {
                let summaries = tables.holding_summaries.prefix((*account,));
                summaries.for_each(tx, |(_, symbol), _| symbols.push(symbol))?;
            }
            Watched::OfIndustry(name, companies) => {
                let industry =
                    tables.industries_by_name.prefix((*name,)).columns::<IndustryId>().first(tx)?;
                let of_industry = tables.companies_by_industry.prefix((required(industry)?.1.in_id,));
                for company in of_industry.primary_keys(tx)? {
                    if companies.contains(&company) {
                        let issues = tables.securities_by_company.prefix((company,));
                        issues.for_each_primary_key(tx, |symbol| symbols.push(symbol))?;
                    }
                }
            }
        }
        Ok(symbols)
    }
}
