//! The handles to the tables and their secondary indexes.

use ensilo::generic::{Database, Index, Table, Transaction};
use ensilo::{Engine, Result, Row, Text, Timestamp};

use super::schema::{
    AccountPermission, Address, AssetHistory, Broker, CashTransaction, Charge, CommissionRate, Company,
    CompanyCompetitor, Customer, CustomerAccount, CustomerTaxrate, DailyMarket, Exchange, Financial, Holding,
    HoldingHistory, HoldingSummary, Industry, LastTrade, NewsItem, NewsXref, Sector, Security, Settlement,
    StatusType, Symbol, Taxrate, Trade, TradeHistory, TradeRequest, TradeType, WatchItem, WatchList, ZipCode,
};
use crate::database;

/// Rows that one transaction of the loader inserts.
const BATCH_ROWS: usize = 500;

fn insert_all<T: Row, E: Engine>(
    database: &Database<E>,
    table: &Table<T, E>,
    rows: &mut Vec<T>,
) -> Result<()> {
    for batch in rows.chunks(BATCH_ROWS) {
        transact(database, &mut |tx| batch.iter().try_for_each(|row| table.insert(tx, row).map(|_| ())))?;
    }
    rows.clear();
    Ok(())
}

/// Runs a transaction of the loader. It is compiled once for all tables.
fn transact<E: Engine>(
    database: &Database<E>,
    body: &mut dyn FnMut(&mut Transaction<'_, E>) -> Result<()>,
) -> Result<()> {
    database::load_request(database).transact(body)
}

/// Makes the struct of handles, and how it comes about: each table with its indexes, by name.
macro_rules! tables {
    ($($table:ident: $row:ident $({ $($index:ident = $name:literal: $key:ty),+ })?;)+) => {
        /// Handles to everything that transactions touch.
        #[derive(Debug)]
        pub(super) struct Tables<E: Engine> {
            $(pub(super) $table: Table<$row, E>, $($(pub(super) $index: Index<$row, $key, E>,)+)?)+
        }

        impl<E: Engine> Tables<E> {
            /// Creates the tables, empty, in `database`.
            pub(super) fn create(database: &Database<E>) -> Result<Self> {
                $(let $table: Table<$row, E> = database.create_table()?;)+
                Ok(Self { $($($($index: $table.index($name)?,)+)? $table,)+ })
            }

            /// Opens the tables that are in `database`.
            pub(super) fn open(database: &Database<E>) -> Result<Self> {
                $(let $table: Table<$row, E> = database.open_table()?;)+
                Ok(Self { $($($($index: $table.index($name)?,)+)? $table,)+ })
            }
        }

        /// Rows of all tables that are to be inserted.
        #[derive(Debug, Default)]
        pub(super) struct Rows {
            $(pub(super) $table: Vec<$row>,)+
        }

        impl Rows {
            /// Inserts all rows, in transactions of at most [`BATCH_ROWS`], and forgets them.
            pub(super) fn insert<E: Engine>(&mut self, database: &Database<E>, tables: &Tables<E>) -> Result<()> {
                $(insert_all(database, &tables.$table, &mut self.$table)?;)+
                Ok(())
            }
        }
    };
}

tables! {
    account_permissions: AccountPermission;
    customers: Customer { customers_by_tax_id = "by_tax_id": Text<20> };
    accounts: CustomerAccount { accounts_by_customer = "by_customer": u32 };
    customer_taxrates: CustomerTaxrate;
    holdings: Holding { holdings_by_account = "by_account": (u32, Symbol, Timestamp) };
    holding_histories: HoldingHistory { holding_histories_by_trade = "by_trade": u64 };
    holding_summaries: HoldingSummary;
    watch_items: WatchItem;
    watch_lists: WatchList { watch_lists_by_customer = "by_customer": u32 };
    asset_histories: AssetHistory;
    brokers: Broker { brokers_by_name = "by_name": Text<49> };
    cash_transactions: CashTransaction;
    charges: Charge;
    commission_rates: CommissionRate;
    settlements: Settlement;
    trades: Trade {
        trades_by_account = "by_account": (u32, Timestamp),
        trades_by_security = "by_security": (Symbol, Timestamp)
    };
    trade_histories: TradeHistory;
    trade_requests: TradeRequest {
        trade_requests_by_security = "by_security": Symbol,
        trade_requests_by_broker = "by_broker": u32
    };
    trade_types: TradeType;
    companies: Company { companies_by_name = "by_name": Text<60>, companies_by_industry = "by_industry": Text<2> };
    company_competitors: CompanyCompetitor;
    daily_markets: DailyMarket;
    exchanges: Exchange;
    financials: Financial;
    industries: Industry { industries_by_name = "by_name": Text<50> };
    last_trades: LastTrade;
    news_items: NewsItem;
    news_xrefs: NewsXref;
    sectors: Sector { sectors_by_name = "by_name": Text<30> };
    securities: Security { securities_by_company = "by_company": (u32, Text<6>) };
    addresses: Address;
    status_types: StatusType;
    taxrates: Taxrate;
    zip_codes: ZipCode;
}
