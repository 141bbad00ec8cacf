//! What TPC-C needs of a database that knows keys and bytes: ordered tables, and transactions on several of them.
//!
//! Keys are those of Ensilo's tables, as its key codec writes them, so that their bytes sort as the keys do.

mod fjall;
mod lmdb;
mod redb;
mod sqlite;

use std::ops::{ControlFlow, Range};
use std::path::Path;

use ensilo::Row;
use ensilo_bench::driver::{Aborts, Failure};

pub use fjall::FjallTables;
pub use lmdb::LmdbTables;
pub use redb::RedbTables;
pub use sqlite::SqliteTables;

use crate::peer::Setting;

/// A key and its row.
pub type KeyAndRow = (Vec<u8>, Vec<u8>);

/// What a scan does with a row: whether it goes on.
pub type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A table of TPC-C, or a secondary index: its entries are rows too, which hold a primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the tables of clause 1.3, and the indexes of two of them")]
pub enum OrderedTable {
    Warehouses,
    Districts,
    Customers,
    CustomersByName,
    History,
    NewOrders,
    Orders,
    OrdersByCustomer,
    OrderLines,
    Items,
    Stocks,
}

/// How many tables there are.
pub const ORDERED_TABLES: usize = OrderedTable::ALL.len();

impl OrderedTable {
    /// Every table, each at the place of its number.
    pub const ALL: [Self; 11] = [
        Self::Warehouses,
        Self::Districts,
        Self::Customers,
        Self::CustomersByName,
        Self::History,
        Self::NewOrders,
        Self::Orders,
        Self::OrdersByCustomer,
        Self::OrderLines,
        Self::Items,
        Self::Stocks,
    ];

    /// The table of the rows `T`, which are of TPC-C.
    ///
    /// # Panics
    /// If they are not.
    #[inline(always)]
    pub fn of<T: Row>() -> Self {
        match T::DESCRIPTION.table {
            "warehouse" => Self::Warehouses,
            "district" => Self::Districts,
            "customer" => Self::Customers,
            "history" => Self::History,
            "new_order" => Self::NewOrders,
            "order" => Self::Orders,
            "order_line" => Self::OrderLines,
            "item" => Self::Items,
            "stock" => Self::Stocks,
            other => unreachable!("TPC-C has no table {other}"),
        }
    }

    /// The secondary index of the table, if it has one.
    #[inline]
    pub fn index(self) -> Option<Self> {
        match self {
            Self::Customers => Some(Self::CustomersByName),
            Self::Orders => Some(Self::OrdersByCustomer),
            _ => None,
        }
    }

    /// Its place in [`OrderedTable::ALL`].
    #[inline]
    pub fn number(self) -> usize {
        self as usize
    }

    /// Its name in a database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warehouses => "warehouse",
            Self::Districts => "district",
            Self::Customers => "customer",
            Self::CustomersByName => "customer_by_name",
            Self::History => "history",
            Self::NewOrders => "new_order",
            Self::Orders => "orders",
            Self::OrdersByCustomer => "orders_by_customer",
            Self::OrderLines => "order_line",
            Self::Items => "item",
            Self::Stocks => "stock",
        }
    }

    /// The bytes of its keys, if they are always the same and at most eight.
    #[inline]
    pub fn short_key_bytes(self) -> Option<usize> {
        match self {
            Self::Warehouses => Some(2),
            Self::Districts => Some(3),
            Self::Customers => Some(5),
            Self::History | Self::OrderLines => Some(8),
            Self::NewOrders | Self::Orders => Some(7),
            Self::Items => Some(4),
            Self::Stocks => Some(6),
            Self::CustomersByName | Self::OrdersByCustomer => None,
        }
    }
}

/// An open database with the tables of TPC-C.
pub trait OrderedStore: Sized + Sync {
    /// One thread's way to run transactions.
    type Client<'a>: OrderedClient
    where
        Self: 'a;

    /// Opens a database in the directory `place`, which is empty, and makes its tables.
    ///
    /// # Errors
    /// A failure of the database.
    fn open(place: &Path, setting: Setting) -> Result<Self, Failure>;

    /// A client for the calling thread.
    ///
    /// # Errors
    /// A failure of the database.
    fn client(&self) -> Result<Self::Client<'_>, Failure>;

    /// Puts rows, in the order of their keys, into an empty table.
    ///
    /// # Errors
    /// A failure of the database.
    fn load(&self, table: OrderedTable, rows: &[KeyAndRow]) -> Result<(), Failure>;
}

/// How the body of a transaction wants it to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All that was written counts.
    Commit,
    /// None does.
    RollBack,
}

/// Transactions of one thread. They are serializable.
pub trait OrderedClient {
    /// Runs `body` and commits, again if that is undone because of others, which is counted in `aborts`. Says how it ended.
    ///
    /// # Errors
    /// A failure of the database, or what `body` returned: nothing has changed then.
    fn write(
        &mut self,
        aborts: &mut Aborts,
        body: &mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>,
    ) -> Result<End, Failure>;

    /// Runs `body` on what is committed now.
    ///
    /// # Errors
    /// As [`OrderedClient::write`].
    fn read(
        &mut self,
        body: &mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>,
    ) -> Result<(), Failure>;
}

/// A transaction that reads.
pub trait OrderedRead {
    /// Makes `row` the row of `key`; `false` if there is none.
    ///
    /// # Errors
    /// A failure of the database.
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure>;

    /// Shows the rows of a range of keys, from its end if `is_reverse`, until it is told to stop.
    ///
    /// # Errors
    /// A failure of the database.
    fn scan(
        &mut self,
        table: OrderedTable,
        keys: Range<&[u8]>,
        is_reverse: bool,
        visit: Visit<'_>,
    ) -> Result<(), Failure>;
}

/// A transaction that writes as well, and sees what it has written.
pub trait OrderedWrite: OrderedRead {
    /// Puts a row, in the place of the one that is there, if any.
    ///
    /// # Errors
    /// A failure of the database.
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure>;

    /// Deletes a row.
    ///
    /// # Errors
    /// A failure of the database.
    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure>;
}

/// Gives rows to `visit` until it has enough.
fn visit_each<R>(
    rows: impl Iterator<Item = Result<R, Failure>>,
    mut visit: impl FnMut(&R) -> ControlFlow<()>,
) -> Result<(), Failure> {
    for row in rows {
        if visit(&row?).is_break() {
            break;
        }
    }
    Ok(())
}
