//! An in-memory, serializable, durable transactional database for multicore machines.
//!
//! Tables hold typed rows. A request is a closure that runs as one transaction; when it meets a conflict it
//! is undone and run again. Any number of threads may make requests at once: readers write no shared memory,
//! and writers wait for nobody.
//!
//! ```
//! use ensilo::{Columns, Database, Error, Row, Table, Text};
//!
//! #[derive(Debug, PartialEq, Row)]
//! #[row(table = "account", index(name = "by_owner", columns(owner)))]
//! struct Account {
//!     #[row(key)]
//!     id: u32,
//!     owner: Text<16>,
//!     balance: i64,
//! }
//!
//! /// Some columns of an account, to be read and changed without the others.
//! #[derive(Columns)]
//! #[columns(of = Account)]
//! struct Balance {
//!     balance: i64,
//! }
//!
//! # fn main() -> ensilo::Result<()> {
//! let db = Database::in_memory()?;
//! let accounts: Table<Account> = db.table()?;
//! let anna = Text::truncated("Anna");
//! db.transact(|tx| {
//!     accounts.insert(tx, &Account { id: 1, owner: anna, balance: 100 })?;
//!     accounts.insert(tx, &Account { id: 2, owner: Text::truncated("Bert"), balance: 0 })?;
//!     Ok(())
//! })?;
//!
//! // All of a transfer happens, or nothing.
//! let transfer = |from: u32, to: u32, amount: i64| {
//!     db.transact(|tx| {
//!         let source = accounts.get_columns::<Balance>(tx, from)?;
//!         if source.is_none_or(|source| source.balance < amount) {
//!             return Err(Error::rollback("not enough money"));
//!         }
//!         accounts.update(tx, from, |account: &mut Balance| account.balance -= amount)?;
//!         accounts.update(tx, to, |account: &mut Balance| account.balance += amount)
//!     })
//! };
//! transfer(1, 2, 30)?;
//! assert!(transfer(1, 2, 1000).is_err());
//!
//! // Reads of a transaction belong to one moment; indexes are kept by every write.
//! let by_owner = accounts.index::<Text<16>>("by_owner")?;
//! let (sum, of_anna) = db.transact(|tx| {
//!     let mut sum = 0;
//!     accounts.scan().columns::<Balance>().for_each(tx, |_id, account| sum += account.balance)?;
//!     Ok((sum, by_owner.equal(&anna).rows(tx)?))
//! })?;
//! assert_eq!(sum, 100);
//! assert_eq!(of_anna, [Account { id: 1, owner: anna, balance: 70 }]);
//! # Ok(()) }
//! ```
//!
//! # Source
//! The engine by default is that of Silo (*Speedy Transactions in Multicore In-Memory Databases*, SOSP 2013). Log,
//! checkpoints and recovery are those of SiloR (*Fast Databases with Fast Durability and Recovery Through
//! Multicore Parallelism*, OSDI 2014). A second engine, [`ermia`], is that of ERMIA (*Fast
//! Memory-Optimized Database System for Heterogeneous Workloads*, SIGMOD 2016). A third one,
//! [`two_phase_locking`], is there to compare them with. These two are compiled with the features `ermia` and
//! `two-phase-locking`.
//!
//! # Where to look
//! - [`Database`]: opening, requests on the calling thread ([`Database::transact`], [`Database::read`], [`Database::read_stale`]) and on a pool of
//!   pinned threads ([`Database::submit`]), tables and indexes that come and go, statistics.
//! - [`Table`]: statements on rows that are Rust structs; [`Scan`], [`Cursor`], [`Index`] and [`Found`] go with it.
//! - [`DynamicTable`]: the same tables with rows of [`Value`]s.
//! - [`Session`]: transactions that stay open between calls, on any thread.
//! - [`Scan::take_first`](generic::Scan::take_first), [`Arrivals`]: tables as queues, with many consumers
//!   that do not conflict with each other, and that wait for rows instead of asking again and again.
//! - [`Sequence`]: numbers in order, each given once.
//! - [`Database::migrate`], [`Migrations`]: steps from each version of a program to the next, and the version kept in the database.
//! - [`Database::expire_rows`](generic::Database::expire_rows), [`Expiry`]: rows that are removed in the background once their time has passed.
//! - [`Ticket`], [`JobHandle`]: answers that come before their transaction is stored.
//! - [`Error`]: what can fail, what that leaves behind, and the remedy.
//!
//! # Isolation
//! Every transaction is serializable, but over [`Ermia<SnapshotIsolation>`](ermia): the outcome is that of some
//! order in which they ran one after the other. Conflicts are found at commit, so inside a closure two reads
//! need not belong together; a request returns neither a value nor an error nor a panic that follows from such reads. An effect outside the
//! database could still follow from them, so a closure should have none. [`Database::read`] is for reading
//! alone: it shows one moment, the present, and gets through whoever writes. [`Database::read_stale`] shows one
//! past point of that order, at most about a second ago by default, and [`Request::max_staleness`] bounds how
//! long ago.
//!
//! # Durability
//! A database in a directory ([`Database::open`]) logs what its transactions change, makes checkpoints by
//! itself, and is there again after any crash. [`Durability`] says what a request waits for: by default its
//! answer comes when the transaction is on disk, and with it everything that it has read; an error comes
//! when what the transaction has read is on disk. Transactions are stored by *epochs*, each as long as the
//! disk takes for the one before: a crash leaves everything up to some point of the serial order, and
//! nothing after it (over [ERMIA's engine](ermia): everything up to the end of an epoch). One disk sync serves
//! all transactions of an epoch, so throughput comes from many requests at once: from threads, by
//! [`Database::submit`], or with [`Ticket`]s.
//!
//! # Async code
//! A future of this crate needs no runtime, and can be awaited in any.
//! - [`Ticket`]: ready when its transaction is stored. [`Request::transact_with_ticket`] makes one.
//! - [`JobFuture`]: ready with the result of a closure that a thread of the pool runs once the future is awaited
//!   ([`Database::transact_async`], `read_async`, `read_stale_async`). This is the way
//!   to run closures: the methods that run one on the calling thread, such as [`Database::transact`], block it while
//!   they run, while they are tried again, and until the answer is stored. Dropped before it is ready, it gives the
//!   transaction up. [`Database::job`] sets its priority and a deadline.
//! - [`JobHandle`]: the same for a closure that the pool runs in any case ([`Database::submit`],
//!   [`Database::submit_read_stale`]). Where the pool's queue is full, `submit` waits and [`Database::try_submit`] does
//!   not.
//! - [`RowStream`]: the rows of a scan, one after the other, of one snapshot that the pool reads as they are asked for ([`Database::stream`]).
//! - [`ChangeStream`]: the [changes](Changes) that are stored, batch by batch; the pool reads the files.
//! - [`Arrivals`]: ready when rows may have come, `(&mut arrivals).await`. A wait may be given up at any
//!   time, by `select!` for example, and nothing is lost: what has come meanwhile ends the next one.
//! - [`Session`]: a transaction that may be held across an `.await`. Its statements are no futures, and run
//!   on the calling thread. [`Session::commit`] blocks the thread until the transaction is stored;
//!   `session.commit_with_ticket()?.await?` does not.
//!
//! No timer is built in: for a wait with a limit, take that of the runtime. Threads have
//! [`Arrivals::wait_timeout`].
//!
//! # Types of columns
//! A field of a [`Row`] is one of these, or an `Option` of one:
//!
//! | in the program | stored as | feature |
//! |---|---|---|
//! | `bool`, integers from `u8` and `i8` to `u128` and `i128`, `f32`, `f64` | the same | |
//! | [`Text<N>`](Text), `[u8; N]` | text and bytes of bounded length, in place | |
//! | `String`, `Vec<u8>` | text and bytes of any length | |
//! | [`Decimal<SCALE>`](Decimal), [`Timestamp`], [`RowId`] | an integer of 64 bits | |
//! | a struct with one field that is a column, by `#[derive(ColumnValue)]` | what the field is stored as | |
//! | an enum without fields, by `#[derive(ColumnValue)]` | the number of the variant, a `u8` by default | |
//! | `uuid::Uuid` | 16 bytes | `uuid` |
//! | `jiff::Timestamp`, `jiff::civil::DateTime` | an `i128` of nanoseconds | `jiff` |
//! | `jiff::civil::Date`, `jiff::civil::Time` | an `i32` of days, a `u64` of nanoseconds | `jiff` |
//! | `chrono::DateTime<Utc>`, `NaiveDateTime` | an `i128` of nanoseconds | `chrono` |
//! | `chrono::NaiveDate`, `NaiveTime` | an `i32` of days, a `u64` of nanoseconds | `chrono` |
//! | `time::UtcDateTime`, `OffsetDateTime`, `PrimitiveDateTime` | an `i128` of nanoseconds | `time` |
//! | `time::Date`, `Time` | an `i32` of days, a `u64` of nanoseconds | `time` |
//! | `rust_decimal::Decimal` | 16 bytes, in the order of the numbers | `rust_decimal` |
//! | `Json<T>` of any type that serde knows | text | `json` |
//!
//! Keys and indexes have the order of the values. All values of a type are stored, and read as they were, with three exceptions:
//! a leap second of `chrono` becomes the last nanosecond before it, an `OffsetDateTime` is read in UTC, and a `Decimal` of
//! `rust_decimal` without zeros at its end; in each case what is read is the same point in time, or number. Times take 16 bytes for that.
//! [`Timestamp`] takes 8, is made of the points in time of those crates by `From`, which cuts nanoseconds off, and makes them by
//! `TryFrom`.
//!
//! What is stored is what counts: two types that are stored alike are two ways to see one column, so a table can be
//! opened with either. A row may hold what the program's type does not have, such as the number of a variant that a newer version of the program
//! knows: reading it is [`Error::UnknownValue`].
//!
//! # Features
//! None is on by default.
//! - `lz4`: the log and checkpoints can be compressed ([`Options::log_compression`],
//!   [`Options::checkpoint_compression`]), and databases with compressed files be opened. Without it, opening
//!   one ends with [`OpenError::CompressionUnsupported`] and changes nothing.
//! - `uuid`, `jiff`, `chrono`, `time`, `rust_decimal`: types of these crates as columns, see above.
//! - `serde`: `Text`, `Decimal`, `Timestamp` and `RowId` can be serialized and deserialized, and so can dynamic rows, by the
//!   names of their columns (`Schema::named_row`, `Schema::row_seed`). [`Statistics`] can be serialized.
//! - `json`: `Json<T>`, and dynamic rows as JSON objects (`Schema::row_to_json`, `Schema::row_from_json`). It has `serde` in it.
//! - `live-statistics`: other processes see the [`Statistics`] of an open database, for which it was opened with `Options::live_statistics`. It has
//!   `serde` in it.
//! - `metrics`: `Database::publish_metrics` passes the [`Statistics`] on to the recorder that the program has installed
//!   for the crate `metrics`, whenever it is called. Nothing is counted for it in transactions.
//! - `tracing`: openings with the phases of their recovery, checkpoints, backups, closings, and what [`Options::on_event`] reports are
//!   events of the crate `tracing`, with the target `ensilo`. Transactions make none.
//!
//! # Systems
//! 64-bit Unix systems; on others the build ends with an error that says so.
//! - Linux has everything. It is tested on x86-64; other processors take the portable search in nodes of the
//!   index, and pay for a fence between a commit's locks and its validation where x86-64 needs none.
//! - Other Unix systems are built for, but not tested on. There every transaction pays for a fence, since
//!   `membarrier(2)` is missing; rows lie on pages of the ordinary size; the threads of the pool are not
//!   bound to cores; files are written through the page cache, except on FreeBSD.
//!
//! # Engines
//! What runs the transactions is an engine: [`Silo`] for all types here. These are aliases of the types of
//! [`generic`], which have the engine as their last type parameter and compile to direct calls of it; their
//! methods are documented there. Only a program that chooses another engine, or code for any engine, imports
//! from [`generic`]. Another engine implements the traits of the crate `ensilo-engine`.

#![deny(unsafe_code)]
#![cfg_attr(
    not(all(feature = "ermia", feature = "two-phase-locking")),
    allow(rustdoc::broken_intra_doc_links, reason = "the documents name engines that are not compiled")
)]

extern crate self as ensilo;

mod addition;
mod all_or_none;
mod attempt;
mod batch;
mod catalog;
mod changes;
mod closing;
mod collector;
mod database;
mod durability;
mod durable;
mod dynamic;
mod entry_changes;
#[cfg(feature = "ermia")]
pub mod ermia;
mod error;
mod expiry;
pub mod generic;
pub mod guide;
mod index_check;
mod job_request;
#[cfg(feature = "live-statistics")]
pub mod live_statistics;
mod loading;
mod local;
mod long_values;
mod maintain;
#[cfg(feature = "metrics")]
mod metrics;
mod migrations;
mod mutex;
mod older_rows;
mod options;
mod outcome;
mod own_error;
mod pool;
mod prefetch;
mod queue;
mod records;
mod request;
mod row_ids;
mod row_pass;
mod row_stream;
mod row_words;
mod sequence;
#[cfg(feature = "serde")]
mod serialized;
mod session;
mod shared;
mod shortage;
mod silo;
mod slow_request;
mod statistics;
mod table;
#[cfg(test)]
mod test_support;
#[cfg_attr(not(feature = "tracing"), path = "trace_absent.rs")]
mod trace;
mod transaction;
#[cfg(feature = "two-phase-locking")]
pub mod two_phase_locking;
mod unknown_value;
mod worker;

/// What measures and checks the engine and is no part of the API: variants of Silo,
/// `generic::Database<Silo<GlobalTid>>` and so on, mistakes that are built in, and points where tests wait.
/// It changes without notice.
#[doc(hidden)]
pub mod variants {
    pub use ensilo_engine::{Failpoint, Fault};
    pub use ensilo_txn::{
        Allocator, GlobalTid, NoGc, NoSnapshots, RowLog, Silo, Simple, Standard, TidLog, Variant,
    };
}

/// Rows that are encoded already, for crates of this workspace that pass them on. It changes without notice.
#[doc(hidden)]
pub mod encoded {
    pub use crate::dynamic::{EncodedScan, EncodedTable};
}

/// Sequences as a whole, for crates of this workspace that carry them to another database. It changes without notice.
#[doc(hidden)]
pub mod numbers {
    pub use crate::sequence::{CarriedSequence, SequenceOf, SequencePosition};
}

/// Several databases that are durable together, for crates of this workspace that make one of them. It changes without
/// notice.
#[doc(hidden)]
pub mod group {
    pub use crate::durable::GroupMember;
}

/// What rows, keys, schemas and values are, beyond what most programs name.
///
/// `#[derive(Row)]`, `#[derive(Columns)]` and `#[derive(ColumnValue)]` write code that names this module. What that code needs and
/// nothing else is not shown, and changes without notice.
pub mod row {
    pub use ensilo_row::{
        AsKey, AsKeyColumn, AsKeyRange, AutoKey, Column, ColumnType, ColumnValue, Columns, Decimal,
        DecimalError, FIXED_LEN_MAX, INDEXES_MAX, IndexSchema, KEY_LEN_MAX, Key, KeyBuf, KeyColumn, KeyPart,
        KeyPrefix, KeyReader, KeyedRow, Malformed, NAME_LEN_MAX, NullsLast, Order, PartSchema, PrimaryKey,
        ROW_LEN_MAX, Row, RowBuf, RowError, RowId, Schema, SchemaBuilder, SchemaChange, SchemaError,
        SchemaHistory, Text, TextError, Timestamp, TimestampError, Value, WordSlice, Words,
    };
    #[doc(hidden)]
    pub use ensilo_row::{
        ColumnSpec, HasColumn, IndexDescription, IsType, Layout, RowDescription, Slot, TextColumn, WordPatch,
        rewrite_row, window, window_len,
    };
    #[cfg(feature = "json")]
    pub use ensilo_row::{Json, JsonError};
}

/// The disk that the files of a database lie on, as a trait: [`Options::open_with`] takes another one than
/// the machine's.
pub mod disk {
    pub use ensilo_disk::{Disk, File, Listed, Lock, LockHeld, Place, RealDisk, is_disk_full};
}

pub use catalog::index_core::IndexState;
pub use changes::{Change, ChangeBatch, ChangePosition, MissedChanges, RowChange, Subscription};
pub use durability::{Durability, Ticket};
pub use durable::{
    Backup, Checkpoint, CheckpointStatistics, Degraded, DegradedReason, DurabilityStatistics, Event,
    RecoveryForecast, RecoveryProgress, RecoveryStatistics,
};
// `ColumnValue` is the macro alone: its trait, in `row`, has a method `write` that would hide that of `std::io::Write` for a `Vec<u8>`.
pub use ensilo_derive::{ColumnValue, Columns, Row};
pub use ensilo_engine::Engine;
pub use ensilo_log::{Compression, LogError, OpenError};
pub use ensilo_row::{
    AsKey, AsKeyColumn, AsKeyRange, Column, ColumnType, Columns, Decimal, GivenAs, Key, KeyColumn, KeyPrefix,
    KeyedRow, NullsLast, Order, Row, RowId, Schema, SchemaBuilder, SchemaChange, SchemaError, Text,
    TextError, Timestamp, TimestampError, Value,
};
#[cfg(feature = "json")]
pub use ensilo_row::{Json, JsonError};
pub use error::{
    Abort, AbortReason, DuplicateKey, Error, MigrationFailed, MissingRow, Name, NameInTable, NestedCall,
    Result, SchemaMismatch, SumOutOfRange, TooLong, UnknownValue, UserError, WrongType,
};
pub use expiry::{ExpiryOptions, ExpiryStatistics, TimeUnit};
pub use index_check::{EncodedEntry, IndexCheck};
pub use loading::LoadStatistics;
pub use migrations::{AppliedMigration, MigrationOutcome};
pub use older_rows::RewrittenRows;
pub use options::Options;
pub use pool::{JobFuture, JobHandle, Priority};
pub use queue::Arrivals;
pub use request::NoHook;
pub use row_stream::RowStream;
pub use sequence::{SequenceNumber, SequenceNumbers, SequenceOptions};
pub use session::control::CancelToken;
pub use silo::{
    ChangeStream, Changes, ChangesRequest, Cursor, Database, DynamicScan, DynamicTable, Expiry, Found, Index,
    IndexScan, JobRequest, Migrations, Prefetch, PreparedTransaction, ReadTransaction, Reader, Request, Rows,
    Scan, Sequence, Session, Silo, Snapshot, Table, Transaction, WriteTransaction,
};
pub use slow_request::SlowRequest;
pub use statistics::{
    EpochStatistics, IndexStatistics, LongValueStatistics, MemoryStatistics, Statistics, TableStatistics,
};
pub use table::ScanFlow;

const _: () = assert!(ensilo_row::ROW_LEN_MAX <= ensilo_engine::ROW_LEN_MAX);

/// The programs in the README, which are compiled as examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
