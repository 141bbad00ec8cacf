//! Security-detail: everything about a security and its company (clause 3.3.5).

use std::hint::black_box;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Text, Timestamp};

use super::input::Inputs;
use super::rows::{required, shown_columns};
use super::schema::{
    Address, Company, DailyMarket, Day, Exchange, Financial, Industry, LastTrade, Money, NewsItem, Security,
    StatusId, Symbol, ZipCode,
};
use super::tables::Tables;

/// The most quarters, competitors and news items that are shown.
const QUARTERS: usize = 20;
const COMPETITORS: usize = 3;
const NEWS: usize = 2;

/// What is asked for.
#[derive(Debug)]
pub(super) struct SecurityDetailInput {
    pub(super) symbol: Symbol,
    pub(super) since: Day,
    pub(super) days: usize,
    /// Whether news are shown whole, not by headline and summary.
    pub(super) has_whole_news: bool,
}

#[derive(Columns)]
#[columns(of = Security)]
#[allow(dead_code, reason = "what a client would show; nobody looks at all of it here")]
struct SecurityShown {
    s_name: Text<70>,
    s_ex_id: Text<6>,
    s_co_id: u32,
    s_num_out: i64,
    s_start_date: Day,
    s_exch_date: Day,
    s_pe: Money,
    s_52wk_high: Money,
    s_52wk_high_date: Day,
    s_52wk_low: Money,
    s_52wk_low_date: Day,
    s_dividend: Money,
    s_yield: Money,
}

#[derive(Columns)]
#[columns(of = Company)]
#[allow(dead_code, reason = "what a client would show; nobody looks at all of it here")]
struct CompanyShown {
    co_st_id: StatusId,
    co_name: Text<60>,
    co_sp_rate: Text<4>,
    co_ceo: Text<46>,
    co_ad_id: u32,
    co_desc: Text<150>,
    co_open_date: Day,
}

#[derive(Columns)]
#[columns(of = Exchange)]
#[allow(dead_code, reason = "what a client would show; nobody looks at all of it here")]
struct ExchangeShown {
    ex_name: Text<100>,
    ex_num_symb: u32,
    ex_open: u16,
    ex_close: u16,
    ex_desc: Text<150>,
    ex_ad_id: u32,
}

#[derive(Columns)]
#[columns(of = Address)]
#[allow(dead_code, reason = "what a client would show; nobody looks at all of it here")]
struct AddressShown {
    ad_line1: Text<80>,
    ad_line2: Option<Text<80>>,
    ad_zc_code: Text<12>,
    ad_ctry: Text<80>,
}

shown_columns! {
    ZipShown of ZipCode { zc_town: Text<80>, zc_div: Text<80> }
    CompetitorShown of Company { co_name: Text<60> }
    IndustryShown of Industry { in_name: Text<50> }
    DayShown of DailyMarket { dm_close: Money, dm_high: Money, dm_low: Money, dm_vol: i64 }
    LastShown of LastTrade { lt_price: Money, lt_open_price: Money, lt_vol: i64 }
    NewsShown of NewsItem {
        ni_dts: Timestamp,
        ni_source: Text<30>,
        ni_author: Option<Text<30>>,
        ni_headline: Text<80>,
        ni_summary: Text<255>,
    }
    WholeNews of NewsItem {
        ni_item: Vec<u8>,
        ni_dts: Timestamp,
        ni_source: Text<30>,
        ni_author: Option<Text<30>>,
    }
}

impl SecurityDetailInput {
    pub(super) fn draw(inputs: &mut Inputs<'_>) -> Self {
        let days = inputs.random.between(5, 20);
        Self {
            symbol: inputs.symbol(),
            since: inputs.market_day(days as u32),
            days: days as usize,
            has_whole_news: inputs.random.percent(1),
        }
    }

    /// Runs the transaction and returns the security's last price.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Money> {
        let security = required(tables.securities.get_columns::<SecurityShown>(tx, self.symbol)?)?;
        let company = required(tables.companies.get_columns::<CompanyShown>(tx, security.s_co_id)?)?;
        let exchange = required(tables.exchanges.get_columns::<ExchangeShown>(tx, security.s_ex_id)?)?;
        for address in [company.co_ad_id, exchange.ex_ad_id] {
            let address = required(tables.addresses.get_columns::<AddressShown>(tx, address)?)?;
            black_box(required(tables.zip_codes.get_columns::<ZipShown>(tx, address.ad_zc_code)?)?);
            black_box(address);
        }
        show_competitors(security.s_co_id, tables, tx)?;
        let figures = tables.financials.prefix((security.s_co_id,)).limit(QUARTERS);
        figures.for_each(tx, |_, quarter: Financial| {
            black_box(quarter);
        })?;
        let days = (self.symbol, self.since)..=(self.symbol, Day::MAX);
        let days = tables.daily_markets.range(days).limit(self.days).columns::<DayShown>();
        days.for_each(tx, |_, day| {
            black_box(day);
        })?;
        self.show_news(security.s_co_id, tables, tx)?;
        let last = required(tables.last_trades.get_columns::<LastShown>(tx, self.symbol)?)?;
        let price = last.lt_price;
        black_box((security, company, exchange, last));
        Ok(price)
    }

    fn show_news<'t, E: Engine>(
        &self,
        company: u32,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<()> {
        let mut items = Vec::with_capacity(NEWS);
        tables.news_xrefs.prefix((company,)).limit(NEWS).for_each(tx, |(_, item), _| items.push(item))?;
        for item in items {
            if self.has_whole_news {
                black_box(required(tables.news_items.get_columns::<WholeNews>(tx, item)?)?);
            } else {
                black_box(required(tables.news_items.get_columns::<NewsShown>(tx, item)?)?);
            }
        }
        Ok(())
    }
}

fn show_competitors<'t, E: Engine>(
    company: u32,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<()> {
    let mut competitors = Vec::with_capacity(COMPETITORS);
    let rows = tables.company_competitors.prefix((company,)).limit(COMPETITORS);
    rows.for_each(tx, |(_, competitor, industry), _| competitors.push((competitor, industry)))?;
    for (competitor, industry) in competitors {
        black_box(required(tables.companies.get_columns::<CompetitorShown>(tx, competitor)?)?);
        black_box(required(tables.industries.get_columns::<IndustryShown>(tx, industry)?)?);
    }
    Ok(())
}
