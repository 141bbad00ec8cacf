//! The market tables (clause 2.2.6).

use ensilo::{Row, Text, Timestamp};

use super::{Day, Money, StatusId, Symbol};

/// A row of the table COMPANY.
#[derive(Debug, Clone, Row)]
#[row(
    table = "company",
    index(name = "by_name", columns(co_name)),
    index(name = "by_industry", columns(co_in_id))
)]
pub struct Company {
    #[row(key)]
    pub co_id: u32,
    pub co_st_id: StatusId,
    pub co_name: Text<60>,
    pub co_in_id: Text<2>,
    pub co_sp_rate: Text<4>,
    pub co_ceo: Text<46>,
    pub co_ad_id: u32,
    pub co_desc: Text<150>,
    pub co_open_date: Day,
}

/// A row of the table COMPANY_COMPETITOR.
#[derive(Debug, Clone, Row)]
#[row(table = "company_competitor")]
pub struct CompanyCompetitor {
    #[row(key)]
    pub cp_co_id: u32,
    #[row(key)]
    pub cp_comp_co_id: u32,
    #[row(key)]
    pub cp_in_id: Text<2>,
}

/// A row of the table DAILY_MARKET.
#[derive(Debug, Clone, Row)]
#[row(table = "daily_market")]
pub struct DailyMarket {
    #[row(key)]
    pub dm_s_symb: Symbol,
    #[row(key)]
    pub dm_date: Day,
    pub dm_close: Money,
    pub dm_high: Money,
    pub dm_low: Money,
    pub dm_vol: i64,
}

/// A row of the table EXCHANGE.
#[derive(Debug, Clone, Row)]
#[row(table = "exchange")]
pub struct Exchange {
    #[row(key)]
    pub ex_id: Text<6>,
    pub ex_name: Text<100>,
    pub ex_num_symb: u32,
    pub ex_open: u16,
    pub ex_close: u16,
    pub ex_desc: Text<150>,
    pub ex_ad_id: u32,
}

/// A row of the table FINANCIAL.
#[derive(Debug, Clone, Row)]
#[row(table = "financial")]
pub struct Financial {
    #[row(key)]
    pub fi_co_id: u32,
    #[row(key)]
    pub fi_year: u16,
    #[row(key)]
    pub fi_qtr: u8,
    pub fi_qtr_start_date: Day,
    pub fi_revenue: Money,
    pub fi_net_earn: Money,
    pub fi_basic_eps: Money,
    pub fi_dilut_eps: Money,
    pub fi_margin: Money,
    pub fi_inventory: Money,
    pub fi_assets: Money,
    pub fi_liability: Money,
    pub fi_out_basic: i64,
    pub fi_out_dilut: i64,
}

/// A row of the table INDUSTRY.
#[derive(Debug, Clone, Row)]
#[row(table = "industry", index(name = "by_name", columns(in_name)))]
pub struct Industry {
    #[row(key)]
    pub in_id: Text<2>,
    pub in_name: Text<50>,
    pub in_sc_id: Text<2>,
}

/// A row of the table LAST_TRADE.
#[derive(Debug, Clone, Row)]
#[row(table = "last_trade")]
pub struct LastTrade {
    #[row(key)]
    pub lt_s_symb: Symbol,
    pub lt_dts: Timestamp,
    pub lt_price: Money,
    pub lt_open_price: Money,
    pub lt_vol: i64,
}

/// A row of the table NEWS_ITEM.
#[derive(Debug, Clone, Row)]
#[row(table = "news_item")]
pub struct NewsItem {
    #[row(key)]
    pub ni_id: u32,
    pub ni_headline: Text<80>,
    pub ni_summary: Text<255>,
    pub ni_item: Vec<u8>,
    pub ni_dts: Timestamp,
    pub ni_source: Text<30>,
    pub ni_author: Option<Text<30>>,
}

/// A row of the table NEWS_XREF.
#[derive(Debug, Clone, Row)]
#[row(table = "news_xref")]
pub struct NewsXref {
    #[row(key)]
    pub nx_co_id: u32,
    #[row(key)]
    pub nx_ni_id: u32,
}

/// A row of the table SECTOR.
#[derive(Debug, Clone, Row)]
#[row(table = "sector", index(name = "by_name", columns(sc_name)))]
pub struct Sector {
    #[row(key)]
    pub sc_id: Text<2>,
    pub sc_name: Text<30>,
}

/// A row of the table SECURITY.
#[derive(Debug, Clone, Row)]
#[row(table = "security", index(name = "by_company", columns(s_co_id, s_issue)))]
pub struct Security {
    #[row(key)]
    pub s_symb: Symbol,
    pub s_issue: Text<6>,
    pub s_st_id: StatusId,
    pub s_name: Text<70>,
    pub s_ex_id: Text<6>,
    pub s_co_id: u32,
    pub s_num_out: i64,
    pub s_start_date: Day,
    pub s_exch_date: Day,
    pub s_pe: Money,
    pub s_52wk_high: Money,
    pub s_52wk_high_date: Day,
    pub s_52wk_low: Money,
    pub s_52wk_low_date: Day,
    pub s_dividend: Money,
    pub s_yield: Money,
}
