//! A concurrency-control protocol over trees of records, chosen at compile time.
//!
//! The hot path is generic over [`Protocol`]: [`Engine<P>`](crate::Engine), [`Worker<P>`](crate::Worker) and what is built on them compile to
//! direct calls. [`crate::Silo`] is the protocol of this crate.

use std::sync::Arc;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::{Failpoint, Fault, Read, TransactionNumber, WorkerCounters, Write};
use ensilo_epoch::Participant;
use ensilo_log::Log;
use ensilo_slab::Pool;

use crate::engine::Shared;
use crate::record::RecordPtr;
use crate::store::Store;

/// A concurrency-control protocol.
pub trait Protocol: std::fmt::Debug + Sized + Send + Sync + 'static {
    /// A mistake that is built in on purpose, to see that a checker finds it.
    const FAULT: Option<Fault> = None;

    /// Called at every [`Failpoint`], on the thread that has come to it: tests wait there, or let others go first.
    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        let _ = failpoint;
    }

    /// Whether there are snapshot transactions.
    const SNAPSHOTS: bool = true;

    /// Whether records lie in slabs, which go with the engine. If not, the engine frees them one by one when it goes.
    const SLABS: bool = true;

    /// What a worker keeps from one transaction to the next: sets, garbage, its last TID.
    type Context: Send;
    /// A read-write transaction.
    type Transaction<'w>: Write<Store = Store, Found = Found> + Send;
    /// A read-only transaction on a recent consistent point of the serial order.
    type Snapshot<'w>: Read<Store = Store, Found = Found>;

    /// The context of a new worker, whose database has this memory.
    fn context(pool: &Arc<Pool>) -> Self::Context;

    /// The worker's own counters, which anyone may read.
    fn counters(context: &Self::Context) -> &Arc<WorkerCounters>;

    /// Makes the worker log what it commits from now on, unless it does.
    fn attach_log(context: &mut Self::Context, log: &Arc<Log>);

    /// Whether transactions can be prepared.
    const TWO_PHASE_COMMIT: bool = false;

    /// Begins a transaction. While that lasts, nobody else has the participant.
    fn begin<'w>(
        shared: &'w Shared,
        participant: &'w mut Participant,
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
    fn take_history(context: &mut Self::Context) -> Vec<TransactionRecord>;
}

/// A handle to an existing record that this transaction has found.
///
/// It is good in the transaction that returned it; another one refuses it.
#[derive(Copy, Clone, Debug)]
pub struct Found {
    pub(crate) record: RecordPtr,
    /// Of the transaction that has found it.
    pub(crate) number: TransactionNumber,
    /// The place of the record in the transaction's read set.
    pub(crate) entry: u32,
}
