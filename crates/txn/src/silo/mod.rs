//! Silo's optimistic protocol.
//!
//! # Source
//! Silo (SOSP 2013) §4.4 to §4.9, figure 2. One file a verb: `read`, `scan`, `write`, `commit`, `snapshot`, `collect`; what waits for the
//! decision of a two-phase commit stands in `prepared`, what a worker keeps between transactions stands in `context`.

mod baselines;
mod buffer;
mod collect;
mod commit;
mod context;
mod log;
mod lost_write;
mod memory;
#[cfg(all(test, loom))]
mod model;
mod node_set;
mod own_write;
mod prepared;
mod read;
mod record_history;
mod scan;
#[cfg(all(test, not(any(loom, shuttle))))]
mod size_tests;
mod snapshot;
mod transaction;
mod variant;
mod write;

use std::marker::PhantomData;
use std::sync::Arc;

use ensilo_engine::{Failpoint, Fault, WorkerCounters};
use ensilo_epoch::Participant;
use ensilo_log::Log;
use ensilo_slab::Pool;

pub use baselines::{Allocator, GlobalTid, NoGc, NoSnapshots, RowLog, Simple, TidLog};
pub(crate) use prepared::PreparedRegistry;
pub use prepared::PreparedTransaction;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
pub use variant::{LogRecords, Standard, Variant};

use crate::engine::Shared;
use crate::protocol::Protocol;
use context::Context;
use ensilo_engine::history::TransactionRecord;

/// Silo's protocol; `V` chooses among its variants at compile time.
#[derive(Debug)]
pub struct Silo<V: Variant = Standard>(PhantomData<V>);

/// What a worker keeps from one transaction to the next. Opaque outside the protocol.
#[derive(Debug)]
pub struct SiloContext(Context);

impl<V: Variant> Protocol for Silo<V> {
    const FAULT: Option<Fault> = V::FAULT;

    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        V::reached(failpoint);
    }

    const SNAPSHOTS: bool = V::SNAPSHOTS;
    const SLABS: bool = V::SLABS;
    const TWO_PHASE_COMMIT: bool = true;

    type Context = SiloContext;
    type Transaction<'w> = Transaction<'w, V>;
    type Snapshot<'w> = Snapshot<'w, V>;

    fn context(pool: &Arc<Pool>) -> SiloContext {
        SiloContext(Context::new(Arc::clone(pool)))
    }

    fn counters(context: &SiloContext) -> &Arc<WorkerCounters> {
        &context.0.counters
    }

    fn attach_log(context: &mut SiloContext, log: &Arc<Log>) {
        context.0.log.get_or_insert_with(|| log.writer());
    }

    #[inline]
    fn begin<'w>(
        shared: &'w Shared,
        participant: &'w mut Participant,
        context: &'w mut SiloContext,
    ) -> Transaction<'w, V> {
        Transaction::begin(shared, participant, &mut context.0)
    }

    #[inline]
    fn begin_snapshot<'w>(
        shared: &'w Shared,
        participant: &'w Participant,
        context: &'w mut SiloContext,
    ) -> Snapshot<'w, V> {
        Snapshot::begin(shared, participant, &mut context.0)
    }

    fn collect(shared: &Shared, participant: &Participant, context: &mut SiloContext) -> bool {
        collect::collect::<V>(shared, participant, &mut context.0)
    }

    fn has_garbage(context: &SiloContext) -> bool {
        V::COLLECTS && !context.0.garbage.is_empty()
    }

    fn free_garbage(participant: &Participant, context: &mut SiloContext) {
        memory::free_all::<V>(participant, &mut context.0);
    }

    fn take_history(context: &mut SiloContext) -> Vec<TransactionRecord> {
        std::mem::take(&mut context.0.history)
    }
}
