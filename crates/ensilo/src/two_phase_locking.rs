//! A pessimistic engine: strict two-phase locking.
//!
//! This module is there with the feature `two-phase-locking`.
//!
//! A transaction over this engine locks each row and each range before it reads it, and each row before it writes it, and keeps all of its locks
//! until it has ended. What it reads stays as it is: its reads belong together at any time, and its commit does not fail because of others, but where
//! a key was deleted a moment ago. In return it may be refused at any statement, because another one holds a lock: then it is run again, as over the
//! other engines. It is slower than [`Silo`](crate::Silo) where conflicts are rare, and there to compare both.
//!
//! Over `TwoPhaseLocking`, which is `TwoPhaseLocking<WaitDie>`, the older one of two requests that are in conflict waits, and the younger one is run
//! again. It keeps its age, so that requests get through as long as nobody holds locks for long: a wait for a lock takes 50 milliseconds at most, and
//! the transaction is run again then; one that meets a transaction of a second or more ends as one that was tried too often. Over
//! `TwoPhaseLocking<NoWait>` nobody waits, and both may be run again and again.
//!
//! A transaction that reads a row and writes it afterwards locks it twice, and two of them may be in each other's way:
//! [`Table::update`](crate::generic::Table::update) and [`Table::find_to_write`](crate::generic::Table::find_to_write) lock it for the write
//! at once.
//!
//! A [`Session`](crate::generic::Session) holds locks while its transaction is open, however long its caller thinks, and others that need them are
//! refused meanwhile, those of its own thread too. Sessions that one thread drives in turn, as a single-threaded executor does, go well with `NoWait`
//! alone. Snapshots ([`Database::read_stale`](crate::generic::Database::read_stale)) take no locks and meet none.
//!
//! All else is as over [`Silo`](crate::Silo), whose records and log the engine uses: a directory opens with either of them.
//!
//! ```
//! use ensilo::two_phase_locking::TwoPhaseLocking;
//! use ensilo::{Database, Result, Row, generic};
//!
//! #[derive(Row)]
//! struct Account {
//!     #[row(key)]
//!     id: u32,
//!     balance: i64,
//! }
//!
//! fn main() -> Result<()> {
//!     let db: generic::Database<TwoPhaseLocking> = Database::options().in_memory_with()?;
//!     let accounts = db.create_table::<Account>()?;
//!     db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 100 }))?;
//!     let balance = db.transact(|tx| Ok(accounts.get(tx, 1)?.map(|row| row.balance)))?;
//!     assert_eq!(balance, Some(100));
//!     Ok(())
//! }
//! ```

#[doc(inline)]
pub use ensilo_2pl::{Locking, NoWait, TwoPhaseLocking, WaitDie};
