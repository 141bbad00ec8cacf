//! Silo's engine, and the types of [`generic`] over it: those that programs name.

use crate::generic;
use crate::request::NoHook;

/// Silo's engine, which runs the transactions of every type at the root of this crate.
pub type Silo = ensilo_txn::Silo;

/// A database. Cloning gives another handle to the same one; dropping the last handle closes it.
///
/// All methods may be called from any number of threads at once. [`Database::open`] and
/// [`Database::in_memory`] open one with the default [`Options`](crate::Options); these have methods to open
/// one with others.
///
/// Methods: [`generic::Database`].
pub type Database = generic::Database<Silo>;

/// The changes of a database behind a position, as they are stored.
///
/// Methods: [`generic::Changes`].
pub type Changes = generic::Changes<Silo>;

/// The changes of a database for async code: a stream of batches.
///
/// Methods: [`generic::ChangeStream`].
pub type ChangeStream = generic::ChangeStream<Silo>;

/// What is asked of a change feed.
///
/// Methods: [`generic::ChangesRequest`].
pub type ChangesRequest<'d> = generic::ChangesRequest<'d, Silo>;

/// A table with rows of the Rust type `T`.
///
/// This is a handle: it is cheap to clone, can be used from any thread, and is not tied to a transaction.
/// [`Database::create_table`] and [`Database::open_table`] make one. Every method takes the transaction that
/// it is a statement of. [`generic::Table`] says which errors every statement may return.
///
/// Methods: [`generic::Table`].
pub type Table<T> = generic::Table<T, Silo>;

/// A secondary index of a table over columns of the Rust types `K`: one type, or a tuple in the order of the
/// index's columns, with [`Reverse`](std::cmp::Reverse) around those in descending order.
///
/// Every write to the table maintains the index. [`Table::index`] makes a handle to one.
///
/// Methods: [`generic::Index`].
pub type Index<T, K> = generic::Index<T, K, Silo>;

/// A scan of a table in the order of its primary key, to be narrowed and then run in a transaction.
///
/// [`Table::scan`], [`Table::range`] and [`Table::prefix`] make one. It gives the columns `C` of the rows:
/// all of them, unless [`Scan::columns`] has chosen some. [`generic::Scan`] says what it protects against
/// phantoms.
///
/// Methods: [`generic::Scan`].
pub type Scan<'h, T, C = T> = generic::Scan<'h, T, C, Silo>;

/// A scan of a table in the order of a secondary index, to be narrowed and then run in a transaction.
///
/// [`Index::scan`], [`Index::range`], [`Index::prefix`] and [`Index::equal`] make one. As to isolation it is
/// like [`Scan`].
///
/// Methods: [`generic::IndexScan`].
pub type IndexScan<'h, T, K, C = T> = generic::IndexScan<'h, T, K, C, Silo>;

/// A row of the table `'h`, as the transaction `'t` has found it.
///
/// It is read and changed without another look-up, and good for that transaction only, which the compiler
/// checks. [`Table::find`] returns one.
///
/// Methods: [`generic::Found`].
pub type Found<'h, 't, T> = generic::Found<'h, 't, T, Silo>;

/// Transactions that stay open between calls, one at a time, for one user of the database.
///
/// [`Database::session`] makes one, and [`Database::begin`] one that has begun a transaction. It may be moved
/// to another thread at any time, also with a transaction open, and be held across an `.await`. The
/// statements of tables take it like any transaction. [`generic::Session`] says what an open transaction
/// holds back, and when it ends.
///
/// Methods: [`generic::Session`].
pub type Session = generic::Session<Silo>;

/// A transaction that has voted to commit, by [`Session::prepare`], and waits for the decision of a two-phase commit.
///
/// It holds back nobody but those that would change what it has read, or meet what it has written. [`generic::PreparedTransaction`] says what it
/// promises.
///
/// Methods: [`generic::PreparedTransaction`].
pub type PreparedTransaction = generic::PreparedTransaction<Silo>;

/// A serializable read-write transaction, inside [`Database::transact`].
///
/// Pass it to the methods of [`Table`], [`Index`] and [`DynamicTable`]. It sees its own writes. Its reads are
/// validated when it commits; until then two of them may not belong together, see [`generic::Transaction`].
///
/// Methods: [`generic::Transaction`].
pub type Transaction<'t> = generic::Transaction<'t, Silo>;

/// A read-only transaction on a recent consistent point of the serial order, inside [`Database::read_stale`].
///
/// The point is at most about one snapshot interval old, or as old as [`Request::max_staleness`] allows. The
/// transaction never conflicts with others.
///
/// Methods: [`generic::Snapshot`].
pub type Snapshot<'t> = generic::Snapshot<'t, Silo>;

/// A read-only transaction on the present, inside [`Database::read`].
///
/// All that it has read, once its closure has ended, was there at one moment.
///
/// Methods: [`generic::Reader`].
pub type Reader<'t> = generic::Reader<'t, Silo>;

/// Collects the keys of rows that requests will look up soon, for [`Database::prefetch`] and [`Database::transact_many`].
///
/// Methods: [`generic::Prefetch`].
pub type Prefetch = generic::Prefetch<Silo>;

/// A request with settings that can be changed: retries, durability, a hook for aborts, how stale its reads may
/// be.
///
/// [`Database::request`] and [`Session::request`] make one.
///
/// Methods: [`generic::Request`].
pub type Request<'d, H = NoHook> = generic::Request<'d, H, Silo>;

/// A job for the threads of the pool, with settings that can be changed: priority, deadline, retries, durability.
///
/// [`Database::job`] makes one.
///
/// Methods: [`generic::JobRequest`].
pub type JobRequest = generic::JobRequest<Silo>;

/// A scan that gives one row at a time, while the transaction does other things in between.
///
/// [`Scan::cursor`] makes one, and so do scans by an index and of dynamic tables.
///
/// Methods: [`generic::Cursor`].
pub type Cursor<S> = generic::Cursor<S, Silo>;

/// The rows of a scan, for `for` loops that do nothing else with the transaction.
///
/// [`Scan::iter`] makes one. It is an [`Iterator`] over results.
pub type Rows<'x, 't, Tx, S> = generic::Rows<'x, 't, Tx, S, Silo>;

/// A table as rows of [`Value`](crate::Value)s: the same tables that [`Table`] shows as Rust structs.
///
/// [`Database::create_dynamic_table`] and [`Database::open_dynamic_table`] make a handle to one.
/// [`generic::DynamicTable`] says which errors every statement may return.
///
/// Methods: [`generic::DynamicTable`].
pub type DynamicTable = generic::DynamicTable<Silo>;

/// A scan of a [`DynamicTable`], to be narrowed and then run in a transaction.
///
/// [`DynamicTable::scan`] makes one. As to isolation it is like [`Scan`]. [`generic::DynamicScan`] says what
/// its bounds are.
///
/// Methods: [`generic::DynamicScan`].
pub type DynamicScan<'h> = generic::DynamicScan<'h, Silo>;

/// A transaction that rows can be read in: [`Transaction`], [`Snapshot`], or a [`Session`] with an open one.
///
/// A function that takes any of them names this trait. It is implemented by the transactions of this crate
/// only.
///
/// ```
/// use ensilo::{Database, ReadTransaction, Result, Row, Table};
///
/// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// fn balance<'t>(accounts: &Table<Account>, tx: &mut impl ReadTransaction<'t>, id: u32) -> Result<i64> {
///     Ok(accounts.get(tx, id)?.map_or(0, |account| account.balance))
/// }
///
/// # fn main() -> Result<()> {
/// # let db = Database::in_memory()?;
/// # let accounts: Table<Account> = db.create_table()?;
/// # db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 10 }))?;
/// assert_eq!(db.transact(|tx| balance(&accounts, tx, 1))?, 10);
/// assert_eq!(balance(&accounts, &mut db.begin()?, 1)?, 10);
/// db.read_stale(|tx| balance(&accounts, tx, 1)).ok();
/// # Ok(()) }
/// ```
pub trait ReadTransaction<'t>: generic::ReadTransaction<'t, Silo> {}

/// A transaction that rows can be written in: [`Transaction`], or a [`Session`] with an open one.
///
/// It is implemented by the transactions of this crate only.
///
/// ```
/// use ensilo::{Database, ReadTransaction, Result, Row, Table, WriteTransaction};
///
/// # #[derive(Debug, PartialEq, Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// fn balance<'t>(accounts: &Table<Account>, tx: &mut impl ReadTransaction<'t>, id: u32) -> Result<i64> {
///     Ok(accounts.get(tx, id)?.map_or(0, |account| account.balance))
/// }
///
/// /// Pays in, and returns the new balance.
/// fn pay_in<'t>(accounts: &Table<Account>, tx: &mut impl WriteTransaction<'t>, id: u32) -> Result<i64> {
///     accounts.update(tx, id, |account: &mut Account| account.balance += 5)?;
///     balance(accounts, tx, id)
/// }
///
/// # fn main() -> Result<()> {
/// # let db = Database::in_memory()?;
/// # let accounts: Table<Account> = db.create_table()?;
/// # db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 10 }))?;
/// assert_eq!(db.transact(|tx| pay_in(&accounts, tx, 1))?, 15);
/// # Ok(()) }
/// ```
///
/// A snapshot is none:
/// ```compile_fail,E0277
/// # use ensilo::{Database, Result, WriteTransaction};
/// fn write<'t>(tx: &mut impl WriteTransaction<'t>) -> Result<()> {
/// #    let _ = tx;
/// #    Ok(())
/// }
/// # let db = Database::in_memory().unwrap();
/// db.read_stale(|tx| write(tx));
/// ```
pub trait WriteTransaction<'t>: ReadTransaction<'t> + generic::WriteTransaction<'t, Silo> {}

impl<'t, Tx: generic::ReadTransaction<'t, Silo>> ReadTransaction<'t> for Tx {}
impl<'t, Tx: generic::WriteTransaction<'t, Silo>> WriteTransaction<'t> for Tx {}

/// The removal of the rows of one table that have expired, which goes on in the background as long as this is there, and the database is
/// open.
///
/// [`Database::expire_rows`] makes one.
///
/// Methods: [`generic::Expiry`].
pub type Expiry = generic::Expiry<Silo>;

/// The steps from the first version of a program to the newest one, in order, for [`Database::migrate`].
///
/// Methods, an example, and which steps are applied to which database: [`generic::Migrations`].
pub type Migrations = generic::Migrations<Silo>;

/// Numbers of the type `N`, `u64` by default, that are given one after the other, and never again.
///
/// [`Database::sequence`] makes one, or opens the one that is there. [`generic::Sequence`] says what a program may rely on.
///
/// Methods: [`generic::Sequence`].
pub type Sequence<N = u64> = generic::Sequence<N, Silo>;
