//! Internal to `ensilo`, not to be used by itself: a pessimistic engine, strict two-phase locking over Silo's records.
//!
//! A transaction locks each key that it reads or writes, and each range that it reads, before it looks at it, and keeps all locks until
//! it has ended. What records are, how writes are installed, logged, replayed and collected, snapshots, checkpoints and two-phase commit
//! are Silo's ([`ensilo_txn`]): this engine is a layer over it, whose transactions do without validation
//! ([`Variant::VALIDATES`](ensilo_txn::Variant::VALIDATES)).
//!
//! # Source
//! Bernstein, Hadzilacos, Goodman: *Concurrency Control and Recovery in Database Systems* (1987), chapter 3; `WAIT_DIE` is by Rosenkrantz,
//! Stearns, Lewis: *System Level Concurrency Control for Distributed Database Systems* (TODS 1978). The engine has the role that Shore-MT plays
//! in *Characterization of the Impact of Hardware Islands on OLTP* (VLDB Journal): the pessimistic point of comparison. There is no
//! hierarchy of locks and no detection of deadlocks, which cannot come to be.
//!
//! # Terms
//! - *shared*, *exclusive lock*: what a transaction that reads and one that writes a key hold. Any number of transactions hold a
//!   shared lock at once, one alone an exclusive one. A missing key is locked like one that is there;
//! - *range lock*: a shared lock of all keys in a range, those that are missing included;
//! - *age*: when the first attempt of a request began.
//!
//! # Why it is serializable
//! Of two transactions that read or write the same key, one of them writing, the second gets its lock once the first has ended. A
//! transaction reads the epoch of its commit while it holds all of its locks. So the order in which locks are handed on is an order of the
//! transactions, and the epochs of their commits rise along it. A transaction that only reads has its place between, and a snapshot before
//! the first commit of its epoch, as in Silo's engine. TIDs of one key rise, since a transaction takes a TID above all that it has seen, and it
//! has seen what it writes over: a row, or the latest deletion that its node in the tree tells of.
//!
//! Locks are given back when the writes are visible, before they are stored. Who reads them then is stored with them or later: epochs are stored
//! as a whole and in order.
//!
//! # Why nobody waits for ever
//! Under [`NoWait`] nobody waits: a transaction that meets a lock in conflict aborts. Under [`WaitDie`] a transaction waits only for
//! younger ones, and for those that commit, which wait for nobody; otherwise it aborts, and keeps its age for its next attempt:
//! - The transactions that wait for each other rise in age along each chain, so that no chain is a circle. That includes those that
//!   hold a lock as shared and ask for it as exclusive, and holds because of what follows a grant: everybody who waits in that part
//!   of the lock table looks again, and aborts if it is younger than a new holder.
//! - A request that conflicts with an older one which waits aborts too, but where a range grows: who waits for a key in what it covers
//!   already waits for its holder anyway. So the oldest transaction waits for those alone that hold locks already, and gets through,
//!   unless one of them holds its lock for longer than a wait.
//! - A transaction takes Silo's locks of records in its commit alone, when it has all of its locks here, and asks for none here after that.
//! - Nobody waits for a prepared transaction: the request aborts at once, as in Silo's engine, and the layers above see to the order.
//! - A thread may have several transactions open, and a client may think while one is open. So each wait has an end
//!   ([`WAIT_MAX`]), and then the transaction aborts. The wait of a transaction for one of its own thread ends there.
//!
//! # Limits
//! Locks are of keys, one by one: nothing becomes a lock of the whole table, however many they are. Ranges are merged instead of being
//! noted one by one where they adjoin, and also with what lies between them when a transaction has read very many in one table. What
//! locks take in the table of locks counts against the memory limit roughly, once a transaction has some thousand of them: one that reads
//! very many rows by their keys may find no memory where one of Silo's engine goes on.

mod engine;
mod held;
mod key;
mod lock_table;
mod locking;
#[cfg(all(test, loom))]
mod model;
mod prepared;
mod range;
mod scan;
mod session;
mod transaction;

pub use engine::TwoPhaseLocking;
pub use lock_table::WAIT_MAX;
pub use locking::{Locking, NoWait, WaitDie};
pub use prepared::LockingPrepared;
pub use session::LockingSession;
pub use transaction::LockingTransaction;
