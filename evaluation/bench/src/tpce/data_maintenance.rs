//! Data-maintenance: one row or a few of a table that is otherwise only read are changed, a table a time (clause 3.3.11).

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Text, Timestamp};

use super::calendar::{DAY_US, moved};
use super::fees::{EXCHANGES, NATIONAL_TAXRATES, TAXRATES, taxrate_id};
use super::input::Inputs;
use super::names::Person;
use super::rows::required;
use super::schema::{
    AccountPermission, Address, Company, Customer, CustomerTaxrate, DailyMarket, Day, Exchange, Financial,
    NewsItem, Security, Symbol, Taxrate, WatchItem,
};
use super::tables::Tables;

/// Tables that are maintained in turn.
pub(super) const MAINTAINED: usize = 12;

/// What is maintained.
#[derive(Debug)]
pub(super) struct DataMaintenanceInput {
    /// The table's number, below [`MAINTAINED`].
    pub(super) table: usize,
    pub(super) account: u32,
    pub(super) address: u32,
    pub(super) company: u32,
    pub(super) customer: u32,
    pub(super) symbol: Symbol,
    pub(super) other_symbol: Symbol,
    pub(super) day: Day,
    pub(super) exchange: usize,
    pub(super) taxrate: u32,
}

/// Makes structs of the columns that are changed.
macro_rules! changed_columns {
    ($($name:ident of $row:ident { $($column:ident: $type:ty),+ })+) => {$(
        #[derive(Columns)]
        #[columns(of = $row)]
        struct $name {
            $($column: $type,)+
        }
    )+};
}

changed_columns! {
    Permission of AccountPermission { ap_acl: Text<4> }
    Line2 of Address { ad_line2: Option<Text<80>> }
    Rating of Company { co_sp_rate: Text<4> }
    Email of Customer { c_email_2: Text<50> }
    Volume of DailyMarket { dm_vol: i64 }
    Description of Exchange { ex_desc: Text<150> }
    QuarterStart of Financial { fi_qtr_start_date: Day }
    NewsDate of NewsItem { ni_dts: Timestamp }
    ExchangeDate of Security { s_exch_date: Day }
    TaxName of Taxrate { tx_name: Text<50> }
}

/// `one`, unless that is what is there; then `other`.
fn other_than<const N: usize>(before: &Text<N>, one: &str, other: &str) -> Text<N> {
    Text::truncated(if *before == one { other } else { one })
}

impl DataMaintenanceInput {
    pub(super) fn draw(inputs: &mut Inputs<'_>, table: usize) -> Self {
        let addresses = EXCHANGES.len() as u32 + inputs.population.companies + inputs.population.customers;
        Self {
            table,
            account: inputs.account(),
            address: inputs.random.between(1, u64::from(addresses)) as u32,
            company: inputs.company(),
            customer: inputs.customer(),
            symbol: inputs.symbol(),
            other_symbol: inputs.symbol(),
            day: inputs.market_day(0),
            exchange: inputs.random.below(EXCHANGES.len() as u64) as usize,
            taxrate: inputs.random.below(u64::from(TAXRATES)) as u32,
        }
    }

    /// Runs the transaction.
    pub(super) fn run<'t, E: Engine>(&self, tables: &Tables<E>, tx: &mut Transaction<'t, E>) -> Result<()> {
        match self.table {
            0 => {
                let person = Person::of(u64::from(super::population::Population::customer_of(self.account)));
                let key = (self.account, person.tax_id);
                tables.account_permissions.update(tx, key, |row: &mut Permission| {
                    row.ap_acl = other_than(&row.ap_acl, "1111", "0011");
                })
            }
            1 => tables.addresses.update(tx, self.address, |row: &mut Line2| {
                let before = row.ad_line2.unwrap_or_default();
                row.ad_line2 = Some(other_than(&before, "Apt. 10C", "Apt. 22"));
            }),
            2 => tables.companies.update(tx, self.company, |row: &mut Rating| {
                row.co_sp_rate = other_than(&row.co_sp_rate, "ABA", "AAA");
            }),
            3 => tables.customers.update(tx, self.customer, |row: &mut Email| {
                row.c_email_2 = other_than(&row.c_email_2, "one@mail.example", "two@mail.example");
            }),
            4 => self.change_tax(tables, tx),
            5 => {
                let key = (self.symbol, self.day);
                tables.daily_markets.update(tx, key, |row: &mut Volume| row.dm_vol += 1)
            }
            6 => {
                let id = Text::truncated(EXCHANGES[self.exchange].0);
                tables.exchanges.update(tx, id, |row: &mut Description| {
                    row.ex_desc = other_than(&row.ex_desc, "Last updated today", "Last updated");
                })
            }
            7 => self.move_quarters(tables, tx),
            8 => self.move_news(tables, tx),
            9 => tables.securities.update(tx, self.symbol, |row: &mut ExchangeDate| row.s_exch_date += 1),
            10 => tables.taxrates.update(tx, taxrate_id(self.taxrate), |row: &mut TaxName| {
                row.tx_name = other_than(&row.tx_name, "A tax", "A Tax");
            }),
            _ => self.change_watch_list(tables, tx),
        }
    }

    /// The customer's national tax becomes the next one.
    fn change_tax<E: Engine>(&self, tables: &Tables<E>, tx: &mut Transaction<'_, E>) -> Result<()> {
        let national = taxrate_id(0)..=taxrate_id(NATIONAL_TAXRATES - 1);
        let range = (self.customer, *national.start())..=(self.customer, *national.end());
        let (key, _) = required(tables.customer_taxrates.range(range).first(tx)?)?;
        let next = (0..NATIONAL_TAXRATES).find(|&number| taxrate_id(number) == key.1).unwrap_or(0) + 1;
        tables.customer_taxrates.delete(tx, key)?;
        let row = CustomerTaxrate { cx_c_id: self.customer, cx_tx_id: taxrate_id(next % NATIONAL_TAXRATES) };
        tables.customer_taxrates.insert(tx, &row).map(|_| ())
    }

    fn move_quarters<E: Engine>(&self, tables: &Tables<E>, tx: &mut Transaction<'_, E>) -> Result<()> {
        let mut quarters = Vec::new();
        let rows = tables.financials.prefix((self.company,)).columns::<QuarterStart>();
        rows.for_each_found(tx, |found, row| quarters.push((found, row.fi_qtr_start_date)))?;
        for (found, date) in quarters {
            found.set(tx, QuarterStart { fi_qtr_start_date: date + 1 })?;
        }
        Ok(())
    }

    fn move_news<E: Engine>(&self, tables: &Tables<E>, tx: &mut Transaction<'_, E>) -> Result<()> {
        let mut items = Vec::new();
        tables.news_xrefs.prefix((self.company,)).for_each(tx, |(_, item), _| items.push(item))?;
        items.iter().try_for_each(|&item| {
            tables.news_items.update(tx, item, |row: &mut NewsDate| row.ni_dts = moved(row.ni_dts, DAY_US))
        })
    }

    /// Another security takes the place of the first on the customer's list, unless it is there already.
    fn change_watch_list<E: Engine>(&self, tables: &Tables<E>, tx: &mut Transaction<'_, E>) -> Result<()> {
        let list = tables.watch_lists_by_customer.prefix((self.customer,)).primary_keys(tx)?;
        let list = *required(list.first())?;
        if tables.watch_items.contains(tx, (list, self.other_symbol))? {
            return Ok(());
        }
        let (key, _) = required(tables.watch_items.prefix((list,)).first(tx)?)?;
        tables.watch_items.delete(tx, key)?;
        let row = WatchItem { wi_wl_id: list, wi_s_symb: self.other_symbol };
        tables.watch_items.insert(tx, &row).map(|_| ())
    }
}
