//! An engine: stores, sessions, and what runs beside transactions.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_epoch::{Epoch, EpochCounters, Epochs, Participant};
use ensilo_log::Log;
use ensilo_slab::{OutOfMemory, Usage};

use crate::cold_counters::ColdCounters;
use crate::counters::TransactionStatistics;
use crate::failpoint::Failpoint;
use crate::fault::Fault;
use crate::key_range::KeyRange;
use crate::options::EngineOptions;
use crate::remains::Remains;
use crate::replayer::Replayer;
use crate::row::StoredRow;
use crate::session::Session;
use crate::store::{NewStoreError, Store, TableId};
use crate::transaction::{Read, Write};

/// A transaction engine. See the crate's documentation for what it promises.
///
/// # Safety
/// The epochs that [`Engine::epochs`] returns are always the same, and the sessions that [`Engine::session`] returns pin participants of
/// these, as [`Session`] demands.
pub unsafe trait Engine: fmt::Debug + Sized + Send + Sync + 'static {
    /// A mistake that is built in on purpose, to see that a checker finds it.
    #[doc(hidden)]
    const FAULT: Option<Fault> = None;
    /// Whether [`RowRef::epoch`](crate::RowRef::epoch) says when a row was committed. An engine without returns [`Epoch::MAX`] for every
    /// row, and the schemas of its tables cannot change.
    const ROWS_HAVE_EPOCHS: bool = true;
    /// Whether there are snapshot transactions.
    const SNAPSHOTS: bool = true;
    /// Whether a transaction is all or nothing, at one point of a serial order. An engine without is for comparisons: each of its
    /// writes takes place when it is made, by itself.
    const IS_TRANSACTIONAL: bool = true;
    /// Whether what commits can be logged, so that a database in a directory can use the engine.
    const LOGS: bool = true;
    /// Whether it can log every write by itself, to measure what that costs.
    #[doc(hidden)]
    const LOGS_OPERATIONS: bool = false;
    /// Whether transactions can be [prepared](crate::Write::prepare).
    const TWO_PHASE_COMMIT: bool = false;
    /// Whether rows leave memory for the [disk](EngineOptions::cold_place) under the memory limit, and come back when they are used.
    const EVICTS: bool = false;
    /// The most sessions that may have a transaction under way at once: one beyond waits for another to end.
    const SESSIONS_MAX: usize = usize::MAX;
    /// The longest key in bytes.
    const KEY_LEN_MAX: usize;

    /// An ordered map from keys to rows.
    type Store: Store;
    /// A handle to a record that a transaction has found.
    type Found: Copy + fmt::Debug + Send + 'static;
    /// One user's way into the engine.
    type Session: Session<Store = Self::Store, Found = Self::Found> + 'static;
    /// Puts a log and a checkpoint back into the engine.
    type Replayer<'e>: Replayer
    where
        Self: 'e;

    /// Called at every [`Failpoint`], on the thread that has come to it: tests wait there, or let others go first.
    #[doc(hidden)]
    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        let _ = failpoint;
    }

    /// Starts an engine without stores.
    ///
    /// # Errors
    /// When the system gives no thread for it.
    fn start(options: EngineOptions) -> io::Result<Arc<Self>>;

    /// Returns the engine's epochs.
    fn epochs(&self) -> &Arc<Epochs>;

    /// Returns an instant: what [`Session::begin_snapshot`] begins from now on shows all that was committed before it.
    fn snapshot_instant(&self) -> Instant {
        self.epochs().snapshot_instant()
    }

    /// Returns once what [`Session::begin_snapshot`] begins from then on shows all that was committed before `since`, which is not in the
    /// future: at once where [`Engine::snapshot_instant`] is later. Otherwise a snapshot is taken, which may wait for a few
    /// milliseconds.
    fn take_snapshot(&self, since: Instant) {
        self.epochs().take_snapshot(since);
    }

    /// Makes a fence in the serial order: a transaction that begins after this call comes after each one that had ended before it. An engine whose
    /// serial order is the order of the commits has nothing to do for that, as by default.
    fn fence_serial_order(&self) {}

    /// Returns a session. It may go on with what another one has left behind: its memory, its garbage and its last TID.
    fn session(self: &Arc<Self>) -> Self::Session;

    /// Makes an empty store under an id that was never used before.
    ///
    /// # Errors
    /// [`NewStoreError`]; nothing has changed.
    fn new_store(&self, id: TableId) -> Result<Arc<Self::Store>, NewStoreError>;

    /// Drops the store under `id`: operations on it abort from now on, and so does the commit of a transaction that has read in it, or
    /// written if it is a table's, unless that has passed its validation by now. In an engine that is not
    /// [transactional](Engine::IS_TRANSACTIONAL) they may go on without effect. Returns whether there was such a store.
    fn drop_store(&self, id: TableId) -> bool;

    /// Returns every store that was not dropped.
    fn stores(&self) -> Vec<Arc<Self::Store>>;

    /// Returns whether a transaction that began at this epoch or earlier is [prepared](crate::Write::prepare) and waits for its
    /// decision, or has not quite ended after it. It is not pinned, so that the memory horizon says nothing of it.
    fn has_prepared_begun_by(&self, epoch: Epoch) -> bool {
        let _ = epoch;
        false
    }

    /// Returns what the engine counts.
    fn statistics(&self) -> EngineStatistics;

    // What follows, down to `derive`, is asked of engines that log.

    /// Makes all sessions that begin from now on log what they commit. Called once, after the replay, before any transaction writes;
    /// sessions that are older end without having written.
    ///
    /// # Panics
    /// When the engine has a log.
    fn start_log(&self, log: Arc<Log>) {
        drop(log);
        without_log();
    }

    /// Returns a replay into this engine, on which no transaction has begun.
    fn replayer(&self) -> Self::Replayer<'_>;

    /// Returns the largest key of a store; deleted ones may count.
    fn last_key(&self, store: &Self::Store) -> Option<Vec<u8>> {
        let _ = store;
        without_log()
    }

    /// Returns at most `parts` ranges, at least one, which have each key of a store once, in order.
    fn key_ranges(&self, store: &Self::Store, parts: usize) -> Vec<KeyRange> {
        let _ = (store, parts);
        without_log()
    }

    /// Hands the rows of a part of a store to `each`, in the order of their keys, except those that changed in epoch `before` or later. All
    /// commits of earlier epochs are complete. Ends early when `each` or `pause` breaks, or when the store is dropped.
    ///
    /// `each` is called with memory held back from being freed, `pause` now and then without: that is where to wait.
    fn walk(
        &self,
        store: &Self::Store,
        range: &KeyRange,
        before: Epoch,
        each: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
        pause: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let _ = (store, range, before, each, pause);
        without_log()
    }

    /// Returns whether rows leave memory now, so that who finds none may find some a little later.
    fn evicts(&self) -> bool {
        false
    }

    /// Returns why walks leave rows out, if they do from now on: some could not be read back from where they went when they left
    /// memory. They are as they were in checkpoint and log.
    fn unreadable_rows(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns how many rows walks have left out because there was no memory to read them back at that moment. Whoever relies on a
    /// walk compares this with what it was before; another walk may find them.
    fn rows_left_out(&self) -> u64 {
        0
    }

    /// Returns why rows do not leave memory although they should, if the last attempt has failed.
    fn eviction_failure(&self) -> Option<Arc<str>> {
        None
    }

    /// Removes the files of rows that have left memory: the database is closed, and its directory is about to be anybody's. No row leaves
    /// memory from now on. A transaction that is still under way may not find one that has left.
    fn remove_cold_files(&self) {}

    /// Puts a row into a store that follows from what is on disk, with its TID: an entry of an index, which follows from another row, or a
    /// record of a checkpoint. Returns `false`, and has changed nothing, when the key exists or the store was dropped.
    ///
    /// Transactions and snapshots may be under way, and other threads may put other rows. It is as if the row had been there all the
    /// time: each of them sees it from now on. For that to be so the caller sees to it that
    /// - the TID is of an epoch before the engine's first one;
    /// - nobody has looked for the key before, by itself or in a range, or written it, but for the replay;
    /// - no transaction is [prepared](crate::Write::prepare), which would keep what it has read by the nodes that hold it.
    ///
    /// A transaction that relies on other keys may find that what holds them has changed: it aborts, though nothing is wrong.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    ///
    /// # Panics
    /// When key or row are too long.
    fn derive(
        &self,
        participant: &Participant,
        store: &Self::Store,
        row: &StoredRow<'_>,
    ) -> Result<bool, OutOfMemory> {
        let _ = (participant, store, row);
        without_log()
    }

    /// Frees a bounded amount of what no session sees to: the garbage of sessions that have ended, and dropped stores. Called again and
    /// again by one thread.
    fn collect_orphaned(&self) -> Remains {
        Remains::Nothing
    }

    /// Returns whether so much of the memory that was taken from the system is free that trimming sessions may bring something.
    fn is_sparse(&self) -> bool {
        false
    }

    /// Takes memory back, for any session, that ended ones have whole. Returns how many bytes.
    fn trim_orphaned(&self) -> u64 {
        0
    }

    /// Returns whether a session has found no memory under the limit since this was called last. Others may have some to
    /// [lend](Session::lend).
    fn take_shortage(&self) -> bool {
        false
    }

    /// Lends the free memory of ended sessions to those that find none.
    fn lend_orphaned(&self) {}

    /// Gives memory that was lent and not used back to where it came from, so that it can be free as a whole.
    fn return_lent_memory(&self) {}

    /// Gives memory back to the system that nobody has used for so long, except for a small reserve. Returns how many bytes.
    fn return_unused_memory(&self, unused_for: Duration) -> u64 {
        let _ = unused_for;
        0
    }
}

/// Panics, where an engine that does not [log](Engine::LOGS) is asked for what only one that logs has.
#[cold]
fn without_log() -> ! {
    unreachable!("nothing opens a directory with an engine that does not log")
}

/// What an engine counts.
#[derive(Clone, Debug)]
pub struct EngineStatistics {
    /// Commits, aborts by reason, versions kept.
    pub transactions: TransactionStatistics,
    /// Memory, in total and by store.
    pub memory: Usage,
    /// Epochs, oldest pin, retired bytes.
    pub epochs: EpochCounters,
    /// Rows that have left memory.
    pub cold: ColdCounters,
}

/// The read-write transactions of an engine.
pub type TransactionOf<'s, E> = <<E as Engine>::Session as Session>::Transaction<'s>;

/// The prepared transactions of an engine.
pub type PreparedOf<'s, E> = <TransactionOf<'s, E> as Write>::Prepared;

/// The snapshot transactions of an engine.
pub type SnapshotOf<'s, E> = <<E as Engine>::Session as Session>::Snapshot<'s>;

/// Reads of a transaction of the engine `E`.
pub trait ReadOf<E: Engine>: Read<Store = E::Store, Found = E::Found> {}

impl<E: Engine, T: Read<Store = E::Store, Found = E::Found>> ReadOf<E> for T {}

/// Writes of a transaction of the engine `E`.
pub trait WriteOf<E: Engine>: Write<Store = E::Store, Found = E::Found> {}

impl<E: Engine, T: Write<Store = E::Store, Found = E::Found>> WriteOf<E> for T {}
