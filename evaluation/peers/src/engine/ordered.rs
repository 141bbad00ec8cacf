//! What the workloads need of a database that knows keys and bytes: ordered tables, and transactions on several of them.
//!
//! Keys sort as their bytes do: those of records and accounts are big-endian numbers, those of TPC-C are what Ensilo's key codec writes.

use std::ops::ControlFlow;
use std::path::Path;

use ensilo::Row;
use ensilo_bench::driver::{Aborts, Failure};
use ensilo_bench::peer::Setting;

/// A function that a scan calls with the key and the bytes of each row; its result says whether the scan goes on.
pub type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// The body of a transaction that writes. It may run several times.
pub type WriteBody<'b> = &'b mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>;

/// The body of a transaction that reads.
pub type ReadBody<'b> = &'b mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>;

/// A table of TPC-C, of YCSB or of the transfers, or a secondary index: its entries are rows too, which hold a primary key.
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
    /// Records of YCSB: 8 bytes to [`VALUE_BYTES`](crate::VALUE_BYTES).
    Records,
    /// Accounts of the transfers.
    Accounts,
}

/// The most tables that a database has.
pub const ORDERED_TABLES_MAX: usize = OrderedTable::TPCC.len();

impl OrderedTable {
    /// The tables of YCSB and of the transfers, each at the place of its number.
    pub const RECORDS_AND_ACCOUNTS: [Self; 2] = [Self::Records, Self::Accounts];

    /// The tables of TPC-C, each at the place of its number.
    pub const TPCC: [Self; 11] = [
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

    /// Its place among the tables of its database.
    #[inline]
    pub fn number(self) -> usize {
        match self {
            Self::Records => 0,
            Self::Accounts => 1,
            of_tpcc => of_tpcc as usize,
        }
    }

    /// Its name in a database.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// The bytes of its keys, if they are always the same and at most eight.
    #[inline]
    pub fn short_key_bytes(self) -> Option<usize> {
        self.described().1
    }

    #[inline]
    fn described(self) -> (&'static str, Option<usize>) {
        match self {
            Self::Warehouses => ("warehouse", Some(2)),
            Self::Districts => ("district", Some(3)),
            Self::Customers => ("customer", Some(5)),
            Self::CustomersByName => ("customer_by_name", None),
            Self::History => ("history", Some(8)),
            Self::NewOrders => ("new_order", Some(7)),
            Self::Orders => ("orders", Some(7)),
            Self::OrdersByCustomer => ("orders_by_customer", None),
            Self::OrderLines => ("order_line", Some(8)),
            Self::Items => ("item", Some(4)),
            Self::Stocks => ("stock", Some(6)),
            Self::Records => ("usertable", Some(8)),
            Self::Accounts => ("account", Some(8)),
        }
    }
}

/// An open database.
pub trait OrderedStore: Sized + Sync {
    /// One thread's way to run transactions.
    type Client<'a>: OrderedClient
    where
        Self: 'a;

    /// Opens a database in the directory `place`, which is empty, and creates `tables`, which are those of one constant of [`OrderedTable`].
    ///
    /// # Errors
    /// A failure of the database.
    fn open(place: &Path, setting: Setting, tables: &[OrderedTable]) -> Result<Self, Failure>;

    /// Returns a client for the calling thread.
    ///
    /// # Errors
    /// A failure of the database.
    fn client(&self) -> Result<Self::Client<'_>, Failure>;

    /// Puts rows, which come in the order of their keys, into an empty table.
    ///
    /// # Errors
    /// A failure of the database.
    fn load<B: AsRef<[u8]>>(
        &self,
        table: OrderedTable,
        rows: impl Iterator<Item = (impl AsRef<[u8]>, B)>,
    ) -> Result<(), Failure>;

    /// Shows every row of a table.
    ///
    /// # Errors
    /// A failure of the database, or what `visit` returned.
    fn for_each(
        &self,
        table: OrderedTable,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.client()?.read(&mut |transaction| {
            scan(transaction, OrderedRange::whole(table), |key, row| {
                visit(key, row).map(ControlFlow::Continue)
            })
        })
    }
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
    /// Runs `body` and commits, and runs it again if the commit fails because of others, which is counted in `aborts`. Returns how it ended.
    ///
    /// # Errors
    /// A failure of the database, or what `body` returned: nothing has changed then.
    fn write(&mut self, aborts: &mut Aborts, body: WriteBody<'_>) -> Result<End, Failure>;

    /// Runs `body` on what is committed now.
    ///
    /// # Errors
    /// As [`OrderedClient::write`].
    fn read(&mut self, body: ReadBody<'_>) -> Result<(), Failure>;

    /// Makes `row` the row of `key` in a transaction of its own; returns `false` if there is none. Overridden where the database has a
    /// shorter way than [`OrderedClient::read`].
    ///
    /// # Errors
    /// A failure of the database.
    #[inline]
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let mut is_found = false;
        self.read(&mut |transaction| {
            is_found = transaction.get(table, key, row)?;
            Ok(())
        })?;
        Ok(is_found)
    }

    /// Puts a row in a transaction of its own. Overridden where the database has a shorter way than [`OrderedClient::write`].
    ///
    /// # Errors
    /// As [`OrderedClient::write`].
    #[inline]
    fn put(
        &mut self,
        table: OrderedTable,
        key: &[u8],
        row: &[u8],
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        self.write(aborts, &mut |transaction| transaction.put(table, key, row).map(|()| End::Commit))?;
        Ok(())
    }
}

/// The rows that a scan shows, and in which order.
#[derive(Debug, Clone, Copy)]
pub struct OrderedRange<'k> {
    /// The table or index.
    pub table: OrderedTable,
    /// The first key.
    pub start: &'k [u8],
    /// The key after the last one.
    pub end: &'k [u8],
    /// Whether rows come from the end.
    pub is_reverse: bool,
}

impl OrderedRange<'_> {
    /// All rows of a table, in the order of their keys: those all begin with a number of 16 bits or more that is below `0x7f00`.
    pub fn whole(table: OrderedTable) -> Self {
        Self { table, start: &[0], end: &[0x7f], is_reverse: false }
    }
}

/// A transaction that reads.
pub trait OrderedRead {
    /// Makes `row` the row of `key`; returns `false` if there is none.
    ///
    /// # Errors
    /// A failure of the database.
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure>;

    /// Shows the rows of a range until `visit` breaks.
    ///
    /// # Errors
    /// A failure of the database.
    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure>;
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

/// Shows the rows of a range until `visit` breaks or fails.
///
/// # Errors
/// A failure of the database, or what `visit` returned.
pub(crate) fn scan<X: OrderedRead + ?Sized>(
    transaction: &mut X,
    range: OrderedRange<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    let mut visited = Ok(());
    transaction.scan(range, &mut |key, row| {
        visit(key, row).unwrap_or_else(|failure| {
            visited = Err(failure);
            ControlFlow::Break(())
        })
    })?;
    visited
}

/// Makes `row` the bytes that were found, and returns whether any were.
pub(super) fn keep(found: Option<impl AsRef<[u8]>>, row: &mut Vec<u8>) -> bool {
    row.clear();
    found.inspect(|found| row.extend_from_slice(found.as_ref())).is_some()
}

/// Gives rows to `visit` until it breaks.
pub(super) fn visit_each<R>(
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
