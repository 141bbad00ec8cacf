//! What a concurrency-control protocol offers to the layers above, chosen at compile time.
//!
//! The hot path is generic over [`Protocol`]: `Engine<P>`, `Worker<P>` and what is built on them compile to direct
//! calls. [`crate::Silo`] is the protocol of this crate; another one comes beside it by implementing these traits.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_epoch::{Epoch, Participant};
use ensilo_index::Direction;
use ensilo_log::Log;
use ensilo_slab::Pool;

use crate::abort::Abort;
use crate::counters::WorkerCounters;
use crate::engine::Shared;
use crate::place::Place;
use crate::record::RecordPtr;
use crate::row::RowRef;
use crate::store::Store;
use crate::tid::Tid;

/// A concurrency-control protocol.
pub trait Protocol: std::fmt::Debug + Sized + Send + Sync + 'static {
    /// A mistake that is built in on purpose, to see that a checker finds it.
    const FAULT: Option<crate::Fault> = None;

    /// Called at every [`Place`], on the thread that has come to it: tests wait there, or let others go first.
    #[inline(always)]
    fn reached(place: Place) {
        let _ = place;
    }

    /// Whether there are snapshot transactions.
    const SNAPSHOTS: bool = true;

    /// Whether a transaction is all or nothing, at one point of a serial order. A protocol without is for comparisons: each of its writes
    /// takes place when it is made, by itself.
    const IS_TRANSACTIONAL: bool = true;

    /// Whether what commits can be logged, so that a database in a directory can use the protocol.
    const LOGS: bool = true;

    /// Whether records lie in slabs, which go with the engine. If not, the engine frees them one by one when it goes.
    const SLABS: bool = true;

    /// What a worker keeps from one transaction to the next: sets, garbage, its last TID.
    type Context: Send;
    /// A read-write transaction.
    type Transaction<'w>: Write;
    /// A read-only transaction on a recent consistent point of the serial order.
    type Snapshot<'w>: Read;

    /// The context of a new worker, whose database has this memory.
    fn context(pool: &Arc<Pool>) -> Self::Context;

    /// The worker's own counters, which anyone may read.
    fn counters(context: &Self::Context) -> &Arc<WorkerCounters>;

    /// Makes the worker log what it commits from now on, unless it does.
    fn attach_log(context: &mut Self::Context, log: &Arc<Log>);

    /// Begins a transaction.
    fn begin<'w>(
        shared: &'w Shared,
        participant: &'w Participant,
        context: &'w mut Self::Context,
    ) -> Self::Transaction<'w>;

    /// Begins a snapshot transaction.
    ///
    /// # Panics
    /// When there are none, see [`Protocol::SNAPSHOTS`].
    fn begin_snapshot<'w>(
        shared: &'w Shared,
        participant: &'w Participant,
        context: &'w mut Self::Context,
    ) -> Self::Snapshot<'w>;

    /// Frees what no transaction can reach any more, a bounded amount; true when nothing of that kind is left. Called between
    /// transactions.
    fn collect(shared: &Shared, participant: &Participant, context: &mut Self::Context) -> bool;

    /// Whether [`Protocol::collect`] has something left to free, now or later, beside what the participant has retired.
    fn has_garbage(context: &Self::Context) -> bool {
        let _ = context;
        false
    }

    /// Frees what the context owns outside of slabs, when the engine goes.
    fn free_garbage(participant: &Participant, context: &mut Self::Context) {
        let _ = (participant, context);
    }

    /// Takes the committed transactions that were recorded since the last call; empty unless the protocol records.
    fn take_history(context: &mut Self::Context) -> Vec<crate::history::TransactionRecord>;
}

/// A handle to an existing record that this transaction has found.
///
/// It means something only to the transaction that returned it. Passing it to another one is a mistake of the caller, which the
/// layers above rule out by a lifetime.
#[derive(Copy, Clone, Debug)]
pub struct Found {
    pub(crate) record: RecordPtr,
    /// The place of the record in the transaction's read set.
    pub(crate) entry: u32,
}

/// Range bounds over encoded keys.
pub type KeyBounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Reads of a transaction.
///
/// Closures named `decode` may run on a row that is being overwritten; see [`RowRef`]. What the methods return or pass on to
/// `each` is from a row that was whole.
pub trait Read {
    /// Looks up `key`.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn find(&mut self, store: &Store, key: &[u8]) -> Result<Option<Found>, Abort>;

    /// Looks up all `keys`, their descents interleaved, and calls `each` with the position and result of every key, in order.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &Store,
        keys: &[K],
        each: impl FnMut(usize, Option<Found>),
    ) -> Result<(), Abort>;

    /// Computes a value from the row of a record that was found before.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When this transaction has deleted the record.
    fn read<R>(&mut self, found: Found, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort>;

    /// Looks up `key` and computes a value from its row; `None` when there is no such key.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn get<R>(
        &mut self,
        store: &Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort>;

    /// Walks the keys within `bounds` in `direction`; `each` gets a handle and the value computed from key and row, until it breaks.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn scan<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(Found, R) -> ControlFlow<()>,
    ) -> Result<(), Abort>;

    /// Like [`Read::scan`], with handles that are good for reading alone: nothing is written through them. Then the keys need not be
    /// kept, however many there are, and an abort at a record that was read so may name no key.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    #[inline]
    fn scan_to_read<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(Found, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan(store, bounds, direction, decode, each)
    }

    /// The last epoch that what was read so far is of, deletions included: once it is durable, no crash takes back what was read.
    fn largest_epoch_seen(&self) -> Epoch;
}

/// Writes of a transaction, and its end. Dropping it without [`Write::commit`] aborts it.
pub trait Write: Read + Sized {
    /// As [`Protocol::FAULT`], for the layers above.
    const FAULT: Option<crate::Fault> = None;

    /// Replaces single words of the row; `words` are pairs of word index and new word, computed from what this
    /// transaction read of the row. The row's length stays.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When a word lies outside the row, or this transaction has deleted the record.
    fn patch(&mut self, found: Found, words: &[(u32, u64)]) -> Result<(), Abort>;

    /// Replaces the whole row by `len_bytes` bytes in `row`, the last word padded with zero bytes.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When the row is longer than [`crate::ROW_LEN_MAX`] or `row` has not exactly the words it needs, or this
    /// transaction has deleted the record.
    fn put(&mut self, found: Found, row: &[u64], len_bytes: usize) -> Result<(), Abort>;

    /// Inserts a row under `key`; `false`, and nothing changed, when the key exists.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When key or row are longer than [`ensilo_index::KEY_LEN_MAX`] and [`crate::ROW_LEN_MAX`] allow.
    fn insert(&mut self, store: &Store, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort>;

    /// Deletes a record.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When this transaction has deleted the record before.
    fn delete(&mut self, found: Found) -> Result<(), Abort>;

    /// Ends the transaction: all of its writes become visible at one point of the serial order, or none.
    ///
    /// # Errors
    /// [`Abort`] when another transaction got in between; nothing has changed.
    fn commit(self) -> Result<Committed, Abort>;

    /// Says whether all that this transaction has read is still current, so that what its caller concluded from it
    /// holds. A transaction may read what no serial history would show it, and only its commit would tell: whoever gives up for
    /// a reason that lies in what was read, such as a key that exists already, asks first. Returns the epoch that has to be durable before
    /// no crash can take back what was read.
    ///
    /// # Errors
    /// [`Abort`] when something has changed: the conclusion means nothing.
    fn check(&mut self) -> Result<Epoch, Abort>;

    /// Ends the transaction on the caller's request; nothing has changed.
    fn abort(self);
}

/// How a transaction committed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction's TID; of a read-only transaction the largest TID that it read.
    pub tid: Tid,
    /// The epoch that has to be durable before the transaction is.
    pub epoch: Epoch,
}
