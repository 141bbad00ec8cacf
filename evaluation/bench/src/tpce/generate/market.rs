//! A company with its securities, their last trade and their days, its figures and its news.

use ensilo::Text;

use super::Plan;
use super::fixed::{EXCHANGE_ADDRESSES, address};
use crate::random::Random;
use crate::tpce::calendar::{DAY_US, market_day, moved, trading_time};
use crate::tpce::fees::EXCHANGES;
use crate::tpce::kind;
use crate::tpce::names::{self, INDUSTRIES, Person};
use crate::tpce::population::{Population, Stream};
use crate::tpce::prices;
use crate::tpce::schema::{
    Company, CompanyCompetitor, DailyMarket, Financial, LastTrade, Money, NewsItem, NewsXref, Security,
};
use crate::tpce::tables::Rows;

/// Competitors, quarters of figures and news items of each company (clause 2.6).
const COMPETITORS: u32 = 3;
const QUARTERS: u32 = 20;
const NEWS: u32 = 2;
/// The year of the first quarter.
const FIRST_YEAR: u32 = 2_000;

/// Makes all rows of a company.
pub(super) fn make(plan: Plan<'_>, company: u32, rows: &mut Rows) {
    let population = plan.population;
    let mut random = population.random(Stream::Load, u64::from(company));
    let address_number = EXCHANGE_ADDRESSES + company;
    rows.addresses.push(address(address_number, &mut random));
    rows.companies.push(Company {
        co_id: company,
        co_st_id: kind::active(),
        co_name: names::company(company),
        co_in_id: names::two_letters(company % INDUSTRIES),
        co_sp_rate: Text::truncated(["AAA", "AA", "A", "BBB", "BB", "B"][random.below(6) as usize]),
        co_ceo: Text::truncated(Person::of(1 << 38 | u64::from(company)).full_name().as_str()),
        co_ad_id: address_number,
        co_desc: Text::truncated(&names::words(120, &mut random)),
        co_open_date: -(random.between(0, 30_000) as i32),
    });
    for other in 1..=COMPETITORS {
        // Companies of the same industry are so far apart; small databases have one company of each.
        let competitor = (company - 1 + other * INDUSTRIES) % population.companies + 1;
        let competitor =
            if competitor == company { competitor % population.companies + 1 } else { competitor };
        let row = CompanyCompetitor {
            cp_co_id: company,
            cp_comp_co_id: competitor,
            cp_in_id: names::two_letters(competitor % INDUSTRIES),
        };
        let is_new = rows.company_competitors.iter().all(|there| there.cp_comp_co_id != competitor);
        rows.company_competitors.extend(is_new.then_some(row));
    }
    make_financials(company, &mut random, rows);
    make_news(plan, company, &mut random, rows);
    for security in [company - 1, company - 1 + population.companies] {
        if security < population.securities {
            make_security(plan, security, &mut random, rows);
        }
    }
}

fn make_financials(company: u32, random: &mut Random, rows: &mut Rows) {
    for quarter in 0..QUARTERS {
        let mut money =
            |low: u64, high: u64| Money::from_scaled(random.between(low * 100, high * 100) as i64);
        rows.financials.push(Financial {
            fi_co_id: company,
            fi_year: (FIRST_YEAR + quarter / 4) as u16,
            fi_qtr: (quarter % 4 + 1) as u8,
            fi_qtr_start_date: market_day(quarter * 65),
            fi_revenue: money(100_000_000, 16_000_000_000),
            fi_net_earn: money(10_000_000, 1_000_000_000),
            fi_basic_eps: money(1, 10),
            fi_dilut_eps: money(1, 9),
            fi_margin: money(1, 50),
            fi_inventory: money(1_000_000, 2_000_000_000),
            fi_assets: money(10_000_000, 9_000_000_000),
            fi_liability: money(10_000_000, 4_000_000_000),
            fi_out_basic: 4_000_000 + i64::from(company),
            fi_out_dilut: 5_000_000 + i64::from(company),
        });
    }
}

fn make_news(plan: Plan<'_>, company: u32, random: &mut Random, rows: &mut Rows) {
    for item in 0..NEWS {
        let number = (company - 1) * NEWS + item + 1;
        let text = names::words(plan.options.news_bytes as usize, random);
        rows.news_items.push(NewsItem {
            ni_id: number,
            ni_headline: Text::truncated(&text),
            ni_summary: Text::truncated(&text),
            ni_item: text.into_bytes(),
            ni_dts: moved(trading_time(0), -(random.below(30) as i64) * DAY_US),
            ni_source: Text::truncated("The Daily Wire"),
            ni_author: Some(Text::truncated(Person::of(1 << 37 | u64::from(number)).full_name().as_str())),
        });
        rows.news_xrefs.push(NewsXref { nx_co_id: company, nx_ni_id: number });
    }
}

fn make_security(plan: Plan<'_>, security: u32, random: &mut Random, rows: &mut Rows) {
    let (population, options) = (plan.population, plan.options);
    let symbol = population.symbol(security);
    let days = options.daily_market_days;
    let mut high = (Money::default(), 0);
    let mut low = (Money::from_int(1_000), 0);
    for number in 0..days {
        let (day, close) = (market_day(number), prices::any_price(random));
        let spread = Money::from_scaled(random.between(1, 150) as i64);
        let (day_high, day_low) = (close + spread, close - spread);
        if number + 260 >= days {
            high = high.max((day_high, day));
            low = low.min((day_low, day));
        }
        rows.daily_markets.push(DailyMarket {
            dm_s_symb: symbol,
            dm_date: day,
            dm_close: close,
            dm_high: day_high,
            dm_low: day_low,
            dm_vol: random.between(1_000, 10_000) as i64,
        });
    }
    let company = population.company_of(security);
    rows.securities.push(Security {
        s_symb: symbol,
        s_issue: population.issue_of(security),
        s_st_id: kind::active(),
        s_name: security_name(population, security),
        s_ex_id: Text::truncated(EXCHANGES[Population::exchange_of(security)].0),
        s_co_id: company,
        s_num_out: random.between(4_000_000, 9_500_000_000) as i64,
        s_start_date: -(random.between(0, 20_000) as i32),
        s_exch_date: random.between(0, 10_000) as i32,
        s_pe: Money::from_scaled(random.between(100, 12_000) as i64),
        s_52wk_high: high.0,
        s_52wk_high_date: high.1,
        s_52wk_low: low.0,
        s_52wk_low_date: low.1,
        s_dividend: Money::from_scaled(random.between(0, 1_000) as i64),
        s_yield: Money::from_scaled(random.between(0, 12_000) as i64),
    });
    let now = trading_time(u64::from(options.initial_trading_days) * crate::tpce::calendar::TRADING_US);
    let price = prices::price(security, now);
    rows.last_trades.push(LastTrade {
        lt_s_symb: symbol,
        lt_dts: now,
        lt_price: price,
        lt_open_price: price,
        lt_vol: 0,
    });
}

/// The name of a security: the company's and the issue.
pub(super) fn security_name(population: &Population, security: u32) -> Text<70> {
    let company = names::company(population.company_of(security));
    Text::truncated(&format!("{} of {company}", population.issue_of(security)))
}
