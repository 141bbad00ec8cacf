//! Internal to `ensilo`, not to be used by itself: what a transaction engine offers to the tables above it.
//!
//! An engine runs serializable transactions over *stores*: ordered maps from encoded keys to rows of words. Tables
//! with columns, indexes, requests and retries are written once, against the traits of this crate: [`Engine`],
//! [`Session`], [`Read`] and [`Write`]. An engine comes from a crate of its own and knows nothing of columns.
//!
//! What is common to all engines lies here too: the reasons of aborts, TIDs, records and the words of their rows,
//! statistics, the histories that a checker judges, and the failpoints of tests.
//!
//! # Writing an engine
//! `verification/map-engine` is the smallest one, in three files. An engine consists of:
//! 1. **Stores.** A type that implements [`Store`]. [`Engine::new_store`] makes one under an id that was never used
//!    before, also not by a store that was dropped since. After [`Engine::drop_store`] operations on it abort with
//!    [`AbortReason::StoreDropped`].
//! 2. **Sessions.** A session owns a [`Participant`](ensilo_epoch::Participant) of the engine's
//!    [epochs](Engine::epochs), and [`WorkerCounters`], which the [statistics](Engine::statistics) add up, also once
//!    the session has ended. It runs one transaction at a time, on any thread. [`Session::begin`] pins the participant
//!    and gives the guard to the transaction: this is why the trait is unsafe.
//! 3. **Handles.** [`Read::find`] and [`Read::scan`] return handles to records, through which the transaction reads,
//!    patches, puts and deletes. A handle carries the [`TransactionNumber`] of its transaction, and every other
//!    transaction refuses it with a panic. It stays good when this transaction itself writes to the record.
//! 4. **Reads.** A row is a sequence of words ([`RowRef`]). The closures that decode it have no effect but their
//!    result, so that an engine may run them on a row that is being overwritten, and run them again. A transaction
//!    sees its own writes, in scans as well. Each row says [in which epoch](RowRef::epoch) it was committed, or that
//!    the transaction has written it itself; an engine that keeps no TIDs says so
//!    ([`Engine::ROWS_HAVE_EPOCHS`]).
//! 5. **Writes.** They take place at the commit. An engine that makes each of them at once says so
//!    ([`Engine::IS_TRANSACTIONAL`]). Row and key are held against [`assert_is_row`] and [`Engine::KEY_LEN_MAX`].
//! 6. **The end.** [`Write::commit`] works between [`begin_commit`](ensilo_epoch::Participant::begin_commit) and
//!    [`end_commit`](ensilo_epoch::Participant::end_commit): it reads the global epoch there, chooses a TID of that
//!    epoch ([`Tid::next_in`]), and makes all writes visible. Dropping a transaction aborts it. Each one is counted
//!    once, as a commit or as an abort by its reason.
//! 7. **Aborts.** A statement that returns an [`Abort`] has doomed its transaction: the commit fails with the same
//!    one, whatever comes in between. The layers above run a transaction again if its reason
//!    [is retryable](AbortReason::is_retryable). A key that exists is no abort ([`Write::insert`] returns `false`);
//!    the layers above call [`Write::check`] before they report it.
//!
//! Everything else has a default, and a constant that says whether the engine has it: [snapshots](Engine::SNAPSHOTS),
//! a [log](Engine::LOGS) with checkpoints and replay, [two-phase commit](Engine::TWO_PHASE_COMMIT),
//! [additions without a read](Write::ADDS). An engine without
//! names [`NoReplay`] and [`NeverPrepared`], and its snapshots are a type that is never made. The methods on garbage
//! and memory ([`Engine::collect_orphaned`] and those after it, [`Session::collect`] and those after it) are called
//! by a thread of the database; an engine that frees all of its garbage in [`Session::begin`] needs none of them.
//!
//! An engine with records in slabs can build them on [`RawRecord`], whose rows are [`RawRow`]s. Memory that it allocates through its
//! participant counts against the limit in [`EngineOptions`], and is shown under the id of its store.
//!
//! `Database::options().in_memory_with::<E>()` opens a database in memory over the engine `E`, and
//! `Database::options().open_with::<E>(disk, directory)` one on a disk, if the engine logs. Programs name the types
//! over `E` by the module `ensilo::generic`: `generic::Database<E>`, `generic::Table<T, E>`.
//!
//! The tests that every engine passes are a crate, `verification/engine-suite`:
//! `ensilo_engine_suite::engine_tests!(E)` makes `#[test]`s of them for an engine of any crate. Its documentation says
//! what they assume.
//!
//! # Contract
//! - **Serializable.** A transaction that commits has read and written at one point of a serial order. The order
//!   agrees with the order of epochs: a transaction that has written has its point in the epoch of its TID, so that
//!   what a crash leaves, all up to an epoch, is all up to a point of the serial order.
//! - **The present.** A read-write transaction that commits has seen all that was committed before it began: its
//!   statements read what is there now, and not what was there when it began. An index that was filled meanwhile
//!   would look empty to it otherwise.
//! - **Epochs of rows.** A row that was read says the epoch of the TID of its version, in every method that reads, after
//!   a recovery as well. The layers above know by it which layout the row has, since a schema changes in an epoch: those
//!   of earlier ones have the older layout.
//! - **Foreign code.** A closure named `each` is the program's: it may begin other transactions, on other threads and
//!   on this one, and drop the store. An engine holds no latch while it runs. A transaction that would wait for
//!   another one of its own thread has to abort instead.
//! - **Logged before visible.** An engine that [logs](Engine::LOGS) hands each commit to the
//!   [`Log`](ensilo_log::Log) before others see it, under a TID of the commit's epoch. TIDs of one key rise in the
//!   order of its versions.
//! - **Two-phase commit**, in an engine that [has it](Engine::TWO_PHASE_COMMIT). A transaction that is
//!   [prepared](Write::prepare) can wait for its decision for seconds. Until then all that it has read stays as it
//!   is. The durable epoch, snapshots, checkpoints and the reclamation of memory go on, and a transaction that meets
//!   what it will write aborts at once.
//! - **Checkpoints.** [`Engine::walk`] hands out every row of a store that did not change since the epoch that it is
//!   given. What has changed may be left out, or handed out in any committed version that it had: the log has the
//!   later ones.
//! - **Replay.** [`Engine::replayer`] takes checkpoint and log in any order and from many threads at once, by the rules
//!   of [`Replay`](ensilo_log::Replay), which says as well how far all has come. It makes the stores whose ids it meets; the stores of indexes are not among
//!   them, and come afterwards by [`Engine::new_store`] and [`Engine::derive`]. It takes patches, also in an engine that
//!   never logs any: files do not say which engine has written them. No transaction has begun by then. Where the log
//!   alone is replayed, the records of the checkpoint come later, one by one and beside transactions, by
//!   [`Engine::derive`]; [`Recovered::deleted`] says which of them must not.

mod abort;
mod addition;
mod cold_counters;
mod cold_place;
mod committed;
mod counters;
mod engine;
mod failpoint;
mod fault;
#[doc(hidden)]
pub mod history;
mod key_range;
mod options;
pub mod parts;
mod prepared;
mod raw_record;
mod remains;
mod replayer;
mod rounded_words;
mod row;
mod session;
mod store;
mod tid;
mod transaction;
mod transaction_number;

pub use abort::{Abort, AbortReason, TRANSACTION_LIMITS};
pub use addition::Addition;
pub use cold_counters::ColdCounters;
pub use cold_place::ColdPlace;
pub use committed::Committed;
pub use counters::{TransactionStatistics, WorkerCounters};
pub use engine::{Engine, EngineStatistics, PreparedOf, ReadOf, SnapshotOf, TransactionOf, WriteOf};
#[doc(hidden)]
pub use failpoint::Failpoint;
#[doc(hidden)]
pub use fault::Fault;
pub use key_range::{KeyBounds, KeyRange};
pub use options::EngineOptions;
pub use prepared::{NeverPrepared, Prepared};
pub use raw_record::RawRecord;
pub use remains::Remains;
pub use replayer::{NoReplay, Recovered, RecoveredStore, Replayer};
pub use rounded_words::RoundedWords;
pub use row::{ROW_LEN_MAX, RawRow, RowRef, StoredRow, assert_is_row};
pub use session::Session;
pub use store::{NewStoreError, Store, TableId};
pub use tid::Tid;
pub use transaction::{Direction, KeyChange, Read, Write};
pub use transaction_number::TransactionNumber;
