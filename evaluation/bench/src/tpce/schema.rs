//! The 33 tables of TPC-E with all their columns, and the table of results that TPC-E-hybrid adds.
//!
//! # Source
//! TPC-E revision 1.14, clause 2.2. The groups of tables are the specification's: customer, broker, market, dimension.
//!
//! # Keys
//! Identifiers of customers, accounts, brokers, companies and addresses are 32 bits wide and count from 1, without the
//! specification's offset of 4 300 000 000; those of trades are 64 bits wide. A symbol has at most seven letters. Keys of several columns
//! begin with the column that transactions ask for.
#![allow(missing_docs, reason = "the columns are those of clause 2.2")]

mod broker;
mod customer;
mod dimension;
mod market;

use ensilo::{Decimal, Text};

pub use broker::{
    Broker, CashTransaction, Charge, CommissionRate, Settlement, Trade, TradeHistory, TradeRequest, TradeType,
};
pub use customer::{
    AccountPermission, AssetHistory, Customer, CustomerAccount, CustomerTaxrate, Holding, HoldingHistory,
    HoldingSummary, WatchItem, WatchList,
};
pub use dimension::{Address, StatusType, Taxrate, ZipCode};
pub use market::{
    Company, CompanyCompetitor, DailyMarket, Exchange, Financial, Industry, LastTrade, NewsItem, NewsXref,
    Sector, Security,
};

/// An amount of money or a price in cents.
pub type Money = Decimal<2>;
/// A tax rate in thousandths of a percent.
pub type TaxRate = Decimal<5>;
/// The symbol of a security.
pub type Symbol = Text<7>;
/// A day, counted from 1970-01-01.
pub type Day = i32;
/// What state a trade, a customer or a company is in: a key of STATUS_TYPE.
pub type StatusId = Text<4>;
/// A kind of trade: a key of TRADE_TYPE.
pub type TradeTypeId = Text<3>;
