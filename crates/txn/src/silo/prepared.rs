//! A prepared transaction: it has voted to commit and waits for the decision of a two-phase commit.
//!
//! # Source
//! Two-phase commit as in Islands (VLDB Journal) §3.1. What a prepared transaction of Silo has to hold is ours.
//!
//! # What it holds
//! - Its write set is locked. A word of its own says that the holder is prepared
//!   ([`TidWord::prepared`](crate::TidWord::prepared)):
//!   - another transaction that meets it aborts at once ([`AbortReason::PreparedLock`]) and does not spin;
//!   - a snapshot, and the walk of a checkpoint, read the version in place. It stands until the decision,
//!     which changes the word before the row;
//!   - the collection of garbage leaves the record alone.
//! - What it has *read* stays as it is: its read set and its node set stand in the
//!   [`PreparedRegistry`](registry::PreparedRegistry). A commit that would write over such a record, and an
//!   insert or a removal that would change such a node, is refused ([`AbortReason::PreparedRead`]) or deferred.
//! - Memory and room in the log for its writes, whatever the epoch of the decision will be.
//!
//! It holds nothing else: it is not pinned, since what it will touch cannot go (locked, protected, or in a
//! store that is not taken apart meanwhile), and it publishes no commit epoch. So the durable epoch,
//! snapshots, checkpoints and the reclamation of memory go on, but for the garbage of its own worker. The
//! decision to commit publishes a commit epoch, reads the epoch, chooses the TID, logs and installs.
//!
//! A variant that does not [validate](Variant::VALIDATES) registers nothing: a layer above keeps what was read as it is. Records
//! of deleted keys that such a transaction has read may be freed before the decision, which looks at none of them.
//!
//! # Why what was read has to stay
//! With write locks alone: `P` has read `x` and will write `y`. Before the decision `T` overwrites `x` and
//! commits in epoch 5. A snapshot at epoch 6 shows the `x` of `T` and the old `y`. The decision comes in
//! epoch 7. `P` lies before `T`, since it did not see the `x` of `T`; `T` before the snapshot, which sees it; the
//! snapshot before `P`, which it does not see: a cycle. The fault [`Fault::UnprotectedPreparedReads`] plants
//! it.
//!
//! # Why it is serializable
//! The serialization point of a prepared transaction is the read of the epoch in its *decision*. All that it
//! has read is current there, and its write set is locked, as if it had validated just then. It remains to
//! show that a transaction `T` which changes what `P` has read, and so lies behind it, either makes the vote
//! of `P` fail or reads its own epoch after the decision of `P` did.
//! - *Records.* `P` locks, adds itself to the number of prepared transactions, passes a full barrier, registers its
//!   records one by one and validates. `T` locks, passes a full barrier, asks the registry, and reads its epoch
//!   **after that**. It asks for the number first. If that is 0, `P` has not added itself, unless it has been
//!   here and gone: the barrier of `P` comes second then, and its validation sees the lock or the new TID of
//!   `T`, and fails. If it is not 0, `T` asks for each record under the lock under which `P` registers it: of
//!   the two one comes second. If it is `P`, it validates after that, sees the lock of `T`, and fails. If it
//!   is `T`, it finds the record registered and aborts, unless the decision of `P` was carried out before: then
//!   (`[decision]`) its read of the epoch comes after that of `P`. If `T` read the epoch before it asked, it
//!   could commit in an earlier epoch than `P`, and the cycle above would be back. What `P` has not registered
//!   yet, or has let go of already, while the rest is registered, makes no difference: each record is argued
//!   for by itself, and one that is still registered makes `T` abort for no reason.
//! - *Keys.* A key that is missing is protected by its border node. Whoever changes the keys of a node asks
//!   with the node locked, before anything has changed; `P` validates a node when nobody holds it. So one of
//!   the two sees the other, as above. While it is protected a node is not split, and does not become empty
//!   and leave, nor does the layer that it belongs to or that a slot of it leads to: the keys of its range
//!   stay those of this node. A key that was read as an absent record (a placeholder, a deleted record) is
//!   protected with the record, which does not leave the tree: otherwise an insert would make another record.
//! - *Key of `T` already in the tree.* A placeholder that was there when `P` read the range is in the read
//!   set of `P`.
//!
//! Two transactions that prepare at once ask and register alike: of two that read what the other writes at
//! most one is prepared.
//!
//! # Memory ordering
//! `[decision]`: [`release`](registry::PreparedRegistry::release) subtracts with Release after the epoch was
//! read; [`is_empty`](registry::PreparedRegistry::is_empty) loads with Acquire before it is read. Who finds
//! others registered passes the lock of the address instead.
//!
//! # Limits
//! - It waits in memory: the vote is not logged, and after a crash it is as if it had never been.
//! - Room in the log is taken at the vote for whole rows, also of those of which the decision will log single words. A transaction that patches large
//!   rows may be too large to be prepared ([`AbortReason::TransactionTooLarge`]) where a plain commit goes through.
//! - Others abort at once from the vote on. *During* the vote the write set is locked like that of any commit, and others
//!   that meet it wait: with a large read set that takes as long as the validation of it.
//! - Nobody queues. Where some prepared transaction is always there that has read a record or a range, others that
//!   would change it are refused again and again.
//! - A range is protected by border nodes, not by its ends. A small or empty table is one border node: one prepared
//!   transaction that has missed a key in it keeps all inserts out of it.
//! - The vote finds out that there is no later epoch to commit in, or that the log has failed; both may also happen between
//!   vote and decision. Then the decision to commit fails, and nothing has changed.
//! - One that is leaked (`std::mem::forget`) gets no decision. What it holds it holds for good.
//! - While any transaction is prepared, each commit and each insert asks the registry, under a lock for each address.
//!
//! # What the layers above ask
//! A wait for all transactions that began before some moment, as the making of an index needs it, cannot go by the memory horizon alone: prepared
//! ones are not pinned. It asks [`Engine::has_prepared_begun_by`](ensilo_engine::Engine::has_prepared_begun_by) after the horizon has passed.

mod addresses;
pub(super) mod registry;

use std::collections::BTreeSet;
use std::fmt;

use ensilo_engine::parts::refused;
use ensilo_engine::{Abort, AbortReason, Committed, Failpoint, Fault, TableId};
use ensilo_epoch::{Epoch, Unpinned};

use self::registry::PreparedUse;
use super::collect::carry_out_deferred;
use super::commit::{Locked, Prepared};
use super::context::Context;
use super::stop::CommitStop;
use super::transaction::Transaction;
use super::variant::{Variant, has_fault};
use crate::shared::SiloShared;

/// A transaction of Silo that waits for the decision. Dropping it is the decision to abort.
pub struct PreparedTransaction<'w, V: Variant> {
    /// Present until the decision.
    waiting: Option<Waiting<'w>>,
    variant: std::marker::PhantomData<V>,
}

/// What a prepared transaction needs for its decision.
struct Waiting<'w> {
    shared: &'w SiloShared,
    participant: Unpinned<'w>,
    context: &'w mut Context,
    prepared: Prepared,
    used: PreparedUse,
}

impl<'w, V: Variant> Transaction<'w, V> {
    /// Votes: everything that can fail happens here.
    pub(super) fn vote(mut self) -> Result<PreparedTransaction<'w, V>, Abort> {
        let used = PreparedUse { began: self.guard.epoch(), stores: self.stores_used() };
        match self.prepare_write_set(&used) {
            Ok(prepared) => {
                if V::RECORDS_HISTORY {
                    self.context.record_prepared();
                }
                let (shared, guard, context) = self.into_parts();
                let participant = guard.unpin();
                let waiting = Waiting { shared, participant, context, prepared, used };
                Ok(PreparedTransaction { waiting: Some(waiting), variant: std::marker::PhantomData })
            }
            Err(abort) => {
                let _ = self.finish(Err(abort.clone()));
                Err(abort)
            }
        }
    }

    fn stores_used(&self) -> Vec<TableId> {
        let read = self.context.reads.iter().map(|read| read.record.store());
        let written = self.context.writes.iter().map(|write| write.record.store());
        let used: BTreeSet<TableId> =
            read.chain(written).chain(self.context.nodes.stores().iter().copied()).collect();
        used.into_iter().collect()
    }

    fn prepare_write_set(&mut self, used: &PreparedUse) -> Result<Prepared, Abort> {
        if let Some(abort) = self.context.doomed.take() {
            return Err(abort);
        }
        self.order_write_set()?;
        let reads = self.context.reads.len();
        loop {
            let locked = self.lock_write_set()?;
            match self.prepare_locked(locked, used) {
                Ok(prepared) => return Ok(prepared),
                Err(CommitStop::Abort(abort)) => return Err(abort),
                Err(CommitStop::LogFull) => self.wait_for_log()?,
                Err(CommitStop::EpochExhausted(epoch)) => self.leave_epoch(epoch)?,
            }
            self.context.take_sums_back(reads);
        }
    }

    /// From the locked write set to the prepared one. On an error nothing is locked or protected.
    fn prepare_locked(&mut self, locked: Locked, used: &PreparedUse) -> Result<Prepared, CommitStop> {
        let registered = self.register(used);
        let validated = registered.and_then(|()| self.validate_at_rest(locked)).map_err(CommitStop::from);
        match validated.and_then(|validated| self.reserve_for_any_epoch(validated)) {
            Ok(prepared) => {
                self.context.writes.iter().for_each(|write| write.record.hold_prepared(write.observed));
                Ok(prepared)
            }
            Err(stop) => {
                self.unlock_write_set();
                self.release_reads();
                self.shared.prepared.end(used);
                Err(stop)
            }
        }
    }

    /// Registers what was read. On an error a part of it is registered.
    fn register(&mut self, used: &PreparedUse) -> Result<(), Abort> {
        let prepared = &self.shared.prepared;
        prepared.enter(used);
        let mut registered = 0;
        let is_refused = relied_on::<V>(self.context).any(|address| {
            let is_registered = prepared.rely_on(address);
            V::reached(Failpoint::PreparedReadRegistered);
            registered += usize::from(is_registered);
            !is_registered
        });
        self.context.registered = registered;
        if is_refused { Err(refused(AbortReason::OutOfMemory)) } else { Ok(()) }
    }

    /// Ends the protection of what was read, and carries out what others have deferred. No lock is held.
    fn release_reads(&mut self) {
        let registered = relied_on::<V>(self.context).take(self.context.registered);
        let registered = registered.inspect(|_| V::reached(Failpoint::PreparedReadReleased));
        for deferred in self.shared.prepared.release(registered) {
            carry_out_deferred::<V>(self.shared, &self.guard, self.context, deferred);
        }
    }

    /// Carries out the decision to commit, up to the free locks.
    fn install_prepared(&mut self, prepared: Prepared) -> Result<Committed, Abort> {
        if self.context.writes.is_empty() {
            let tid = self.context.largest_tid_seen();
            let epoch = if V::RECORDS_HISTORY { self.guard.epochs().global_epoch() } else { Epoch::new(0) };
            return Ok(Committed { tid, epoch: epoch.max(tid.epoch()) });
        }
        loop {
            self.guard.participant().begin_commit();
            let epoch = self.guard.epochs().global_epoch();
            let tid = self.next_tid(epoch).ok_or(CommitStop::EpochExhausted(epoch));
            // The room is there since the vote; how much of it is needed depends on the epoch.
            let stop = match tid.and_then(|tid| self.reserve_log().map(|()| tid)) {
                Ok(tid) => {
                    self.give_back_versions(self.guard.epochs().snapshot_of(epoch));
                    self.context.writes.iter().for_each(|write| write.record.begin_install(write.observed));
                    self.log_writes(tid);
                    let _ = self.install(prepared, tid);
                    self.guard.participant().end_commit();
                    return Ok(Committed { tid, epoch });
                }
                Err(stop) => stop,
            };
            self.guard.participant().end_commit();
            let waited = match stop {
                CommitStop::Abort(abort) => Err(abort),
                CommitStop::LogFull => self.wait_for_log(),
                CommitStop::EpochExhausted(epoch) => self.leave_epoch(epoch),
            };
            if let Err(abort) = waited {
                self.give_up_prepared();
                return Err(abort);
            }
        }
    }

    /// Frees the locks and what was reserved.
    fn give_up_prepared(&mut self) {
        self.unlock_write_set();
        self.give_back_memory(self.context.writes.len());
        self.give_up_log();
    }
}

/// Returns the records and nodes that are protected: all that were read, but for a planted fault, and unless they stay as they are anyway.
fn relied_on<V: Variant>(context: &Context) -> impl Iterator<Item = usize> {
    let is_protected = V::VALIDATES && !has_fault::<V>(Fault::UnprotectedPreparedReads);
    let records = context.reads.iter().map(|read| read.record.address());
    let nodes = context.nodes.stamps().iter().map(|stamp| stamp.node.address());
    records.chain(nodes).filter(move |_| is_protected)
}

impl<'w> Waiting<'w> {
    /// Carries out a decision. The transaction is pinned again.
    fn end<V: Variant>(
        self,
        decision: impl FnOnce(&mut Transaction<'w, V>, Prepared) -> Result<Committed, Abort>,
    ) -> Result<Committed, Abort> {
        let Waiting { shared, participant, context, prepared, used } = self;
        let mut transaction = Transaction::<V>::resume(shared, participant, context);
        let outcome = decision(&mut transaction, prepared);
        transaction.release_reads();
        let outcome = transaction.finish(outcome);
        // The last thing: the stores' records were in use until here.
        shared.prepared.end(&used);
        outcome
    }

    fn abort<V: Variant>(self) {
        let _ = self.end::<V>(|transaction, prepared| {
            drop(prepared);
            transaction.give_up_prepared();
            Err(refused(AbortReason::User))
        });
    }
}

impl<V: Variant> ensilo_engine::Prepared for PreparedTransaction<'_, V> {
    fn commit(mut self) -> Result<Committed, Abort> {
        match self.waiting.take() {
            Some(waiting) => waiting.end::<V>(Transaction::install_prepared),
            None => unreachable!("there is one decision"),
        }
    }
}

impl<V: Variant> Drop for PreparedTransaction<'_, V> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.abort::<V>();
        }
    }
}

impl<V: Variant> fmt::Debug for PreparedTransaction<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTransaction").finish_non_exhaustive()
    }
}
