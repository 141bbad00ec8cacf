//! A read-write transaction: its beginning and its end.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;

use ensilo_engine::{Abort, AbortReason, TableId};
use ensilo_epoch::{Epoch, ExclusiveGuard, Participant, Unpinned};
use ensilo_index::NodeStamp;

use super::collect::withdraw_placeholder;
use super::context::{Context, Phase};
use super::variant::Variant;
use super::write_set::RecordChange;
use crate::handle::RecordHandle;
use crate::shared::SiloShared;
use crate::store::Store;

/// A serializable read-write transaction under Silo's protocol.
///
/// While it runs it only reads shared memory, except that an insert puts a placeholder into the tree. Dropping it
/// aborts it.
pub struct Transaction<'w, V: Variant> {
    pub(super) shared: &'w SiloShared,
    pub(super) guard: ExclusiveGuard<'w>,
    pub(super) context: &'w mut Context,
    variant: PhantomData<V>,
}

impl<'w, V: Variant> Transaction<'w, V> {
    #[inline]
    pub(crate) fn begin(
        shared: &'w SiloShared,
        participant: &'w mut Participant,
        context: &'w mut Context,
    ) -> Self {
        if context.phase == Phase::Idle {
            Transaction::open(shared, participant, context)
        } else {
            Transaction::begin_otherwise(shared, participant, context)
        }
    }

    /// Begins a transaction that is to be protected, or after one that was leaked.
    #[cold]
    fn begin_otherwise(
        shared: &'w SiloShared,
        participant: &'w mut Participant,
        context: &'w mut Context,
    ) -> Self {
        if context.phase == Phase::IdleWithTurn {
            return Transaction::begin_protected(shared, participant, context);
        }
        Transaction::<V>::end_forgotten(shared, participant, context);
        Transaction::open(shared, participant, context)
    }

    #[inline(always)]
    pub(super) fn open(
        shared: &'w SiloShared,
        participant: &'w mut Participant,
        context: &'w mut Context,
    ) -> Self {
        debug_assert!(context.reads.is_empty() && context.writes.is_empty() && context.doomed.is_none());
        let guard = participant.pin_exclusively();
        context.number = context.number.next();
        context.phase = Phase::Open;
        Transaction { shared, guard, context, variant: PhantomData }
    }

    /// Ends a transaction that was leaked: it is undone. One that was prepared stays locked and registered, since there is no decision; the
    /// sets are emptied.
    #[cold]
    fn end_forgotten(shared: &SiloShared, participant: &mut Participant, context: &mut Context) {
        let is_open = context.phase == Phase::Open;
        let guard = participant.pin_exclusively();
        let mut forgotten = Transaction::<V> { shared, guard, context, variant: PhantomData };
        if is_open {
            forgotten.roll_back();
        } else {
            forgotten.end_protection();
            forgotten.clear();
            forgotten.context.phase = Phase::Idle;
        }
        drop(forgotten);
        participant.end_leaked_pins();
    }

    /// Returns the transaction that was taken apart by [`Transaction::into_parts`], pinned anew.
    pub(super) fn resume(
        shared: &'w SiloShared,
        participant: Unpinned<'w>,
        context: &'w mut Context,
    ) -> Self {
        context.phase = Phase::Open;
        Transaction { shared, guard: participant.pin(), context, variant: PhantomData }
    }

    /// Returns what the transaction consists of, which waits for its decision without it.
    pub(super) fn into_parts(self) -> (&'w SiloShared, ExclusiveGuard<'w>, &'w mut Context) {
        self.context.phase = Phase::Prepared;
        let transaction = ManuallyDrop::new(self);
        // SAFETY: each field is moved out once, and the transaction is neither used nor dropped after it.
        unsafe {
            (
                transaction.shared,
                ptr::read(&transaction.guard),
                &mut *ptr::read(&raw const transaction.context),
            )
        }
    }

    /// Returns the epoch in which the transaction began.
    pub(super) fn begin_epoch(&self) -> Epoch {
        self.guard.epoch()
    }

    /// Returns the store and the key of a record that this transaction has found.
    ///
    /// # Panics
    /// When another transaction has found the record.
    #[inline]
    pub fn key_of(&self, found: RecordHandle) -> (TableId, &[u8]) {
        self.context.refuse_others(found);
        let own = self.context.own_write(found.record).map(|at| self.context.writes[at].key);
        let key = own.unwrap_or_else(|| self.context.reads[found.entry as usize].key);
        (found.record.store(), self.context.key(key))
    }

    /// Notes that the transaction cannot commit any more, whatever the caller makes of the error, and returns the first reason for it.
    #[cold]
    pub fn doom(&mut self, abort: Abort) -> Abort {
        self.context.doomed.get_or_insert(abort).clone()
    }

    #[cold]
    pub(super) fn doom_at(&mut self, reason: AbortReason, table: TableId, key: &[u8]) -> Abort {
        self.doom(Abort::new(reason, table, key))
    }

    #[inline]
    pub(super) fn check_store(&mut self, store: &Store) -> Result<(), Abort> {
        if store.is_dropped() {
            return Err(self.doom_at(AbortReason::StoreDropped, store.id(), &[]));
        }
        Ok(())
    }

    /// Adds a node to the node set because `key` is missing from it.
    #[inline]
    pub(super) fn rely_on_missing(
        &mut self,
        store: &Store,
        key: &[u8],
        stamp: NodeStamp,
    ) -> Result<(), Abort> {
        if V::RECORDS_HISTORY {
            self.context.record_missing(&self.shared.recorded_removals, store.id(), key);
        }
        self.context.rely_on_nodes_of(store).map_err(|abort| self.doom(abort))?;
        if !V::VALIDATES {
            return Ok(());
        }
        match self.context.rely_on_node(self.shared, &self.guard, stamp) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.doom_at(AbortReason::NodeValidation, store.id(), key)),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Ends the transaction without a commit.
    pub(super) fn roll_back(&mut self) {
        let reason = self.context.doomed.take().map_or(AbortReason::User, |abort| abort.reason());
        self.context.counters.count_abort(reason);
        self.withdraw(|_| true);
        self.clear();
        self.context.phase = Phase::Idle;
    }

    /// Takes the placeholders that this transaction made for changes of the given kind out of the tree. Nobody has to keep away from what
    /// it has read any more; otherwise it would stand in its own way.
    #[inline]
    pub(super) fn withdraw(&mut self, concerns: impl Fn(RecordChange) -> bool) {
        if self.context.protection.is_some() {
            self.end_protection();
        }
        for at in 0..self.context.writes.len() {
            let write = &self.context.writes[at];
            if write.is_created && concerns(write.change) {
                withdraw_placeholder::<V>(self.shared, &self.guard, self.context, at);
            }
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.context.clear();
        if V::RECORDS_HISTORY {
            self.context.recording = Default::default();
            self.context.prepared_reads.clear();
        }
    }
}

impl<V: Variant> Drop for Transaction<'_, V> {
    #[inline]
    fn drop(&mut self) {
        if self.context.phase == Phase::Open {
            self.roll_back();
        }
    }
}

impl<V: Variant> fmt::Debug for Transaction<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("reads", &self.context.reads.len())
            .field("writes", &self.context.writes.len())
            .field("doomed", &self.context.doomed)
            .finish_non_exhaustive()
    }
}
