//! ERMIA's engine, for databases with long transactions that read much and write a little.
//!
//! This module is there with the feature `ermia`.
//!
//! A transaction over this engine reads what was committed when it began, however long it takes, and waits for nobody: beside others that
//! change what it reads it commits, where one over [`Silo`](crate::Silo) would have to run again. Of two that overlap and write the same row
//! the first one wins, and the other is run again. A closure may see a state that no serial order has; then its transaction aborts, and
//! it is run again.
//!
//! [`Ermia`] is serializable. `Ermia<SnapshotIsolation>` leaves that last check out, for programs that need no more than snapshot
//! isolation: of two transactions each may write what it has concluded from a row that the other one changes (write skew). Wherever this crate says "serializable", read "under snapshot isolation" for it.
//!
//! Databases over it are in memory ([`Options::in_memory_with`](crate::Options::in_memory_with)) or in a directory
//! ([`Options::open_as`](crate::Options::open_as)). A directory opens with either engine, also with the one that has not written it:
//! log and checkpoints are the same, so there is nothing to export or to import. Over Silo all of its rows have to fit into memory.
//!
//! What was acknowledged as stored survives, with all that it has read or built on. A transaction that nobody has
//! read from, and that was not acknowledged, may be lost where later ones are kept, also if it stands before them in the serial order. So what a crash leaves, and what a [backup](crate::generic::Database::backup) holds, is everything up to the end of an
//! epoch, and not always a prefix of the serial order.
//!
//! A snapshot ([`Database::read_stale`](crate::generic::Database::read_stale)) is as old as the epoch, not a second as over Silo, unless a
//! transaction that [reads mostly](crate::generic::Request::read_mostly) is under way. So its answer may have to wait
//! until what it shows is stored.
//!
//! However long a snapshot lasts ([`Options::snapshot_age_limit`](crate::Options::snapshot_age_limit), by default a minute), and however
//! often rows are updated meanwhile, of each row it keeps the version that it sees and no other. So does a read-write transaction that goes
//! on reading or writing. One that does nothing may keep all versions since it began; so may one that has met an insert which it does not
//! see, and each where rows may leave memory. A row that was deleted since it began, and is not there again, keeps its place in the table and in
//! the indexes until it ends, with some 200 bytes; so does an entry of an index whose row has moved to another one.
//!
//! With a [memory limit](crate::Options::memory_limit_bytes) that is smaller than the data, a database in a directory goes on: rows that nobody
//! has used lately leave memory for the disk, and a transaction that needs one reads it back. How many that are is in the
//! [statistics](crate::MemoryStatistics::cold_rows).
//!
//! ```
//! use ensilo::ermia::Ermia;
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
//!     let db: generic::Database<Ermia> = Database::options().in_memory_with()?;
//!     let accounts = db.create_table::<Account>()?;
//!     db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 100 }))?;
//!     let balance = db.transact(|tx| Ok(accounts.get(tx, 1)?.map(|row| row.balance)))?;
//!     assert_eq!(balance, Some(100));
//!     Ok(())
//! }
//! ```
//!
//! In a directory, with a limit beyond which rows leave memory:
//!
//! ```no_run
//! # use ensilo::ermia::Ermia;
//! # use ensilo::{Database, Result, generic};
//! # fn open() -> Result<generic::Database<Ermia>> {
//! let options = Database::options().memory_limit_bytes(1 << 30).checkpoint_at_close(true);
//! let db: generic::Database<Ermia> = options.open_as("inventory")?;
//! # Ok(db)
//! # }
//! ```
//!
//! A program that chooses the engine when it starts is written once, over any of them:
//!
//! ```no_run
//! use ensilo::ermia::{Ermia, SnapshotIsolation};
//! use ensilo::{Database, Engine, Result, Silo, generic};
//!
//! fn serve<E: Engine>(db: &generic::Database<E>) -> Result<()> {
//!     println!("{} tables", db.list_tables()?.len());
//!     Ok(())
//! }
//!
//! fn main() -> Result<()> {
//!     let options = Database::options();
//!     match std::env::args().nth(1).as_deref() {
//!         None | Some("silo") => serve(&options.open_as::<Silo>("inventory")?),
//!         Some("ermia") => serve(&options.open_as::<Ermia>("inventory")?),
//!         Some("snapshot-isolation") => serve(&options.open_as::<Ermia<SnapshotIsolation>>("inventory")?),
//!         Some(other) => Err(ensilo::Error::rollback(format!("no such engine: {other}"))),
//!     }
//! }
//! ```

#[doc(inline)]
pub use ensilo_ermia::{Ermia, Isolation, Serializable, SnapshotIsolation};
