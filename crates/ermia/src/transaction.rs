//! A read-write transaction: its beginning, and its end without a commit.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.1.

use std::fmt;
use std::ptr::NonNull;

use ensilo_engine::{Abort, AbortReason, Store as _};
use ensilo_epoch::{Epoch, ExclusiveGuard, Participant};
use ensilo_sync::atomic::Ordering;

use crate::context::{Context, WriteEntry};
use crate::garbage::Garbage;
use crate::isolation::{Isolation, Serializable};
use crate::oid_array::{DEAD, Oid};
use crate::planted::{Step, is_left_out};
use crate::shared::ErmiaShared;
use crate::stamp::{Stamp, TransactionId};
use crate::store::ErmiaStore;
use crate::transaction_table::Entry;

/// A read-write transaction over ERMIA's engine. It reads what was committed when it began. Dropping it aborts it.
pub struct Transaction<'s, I: Isolation = Serializable> {
    pub(crate) shared: &'s ErmiaShared,
    pub(crate) guard: ExclusiveGuard<'s>,
    pub(crate) context: &'s mut Context<I>,
    pub(crate) garbage: &'s mut Garbage<I>,
    pub(crate) entry: &'s Entry,
    pub(crate) slot: u16,
    pub(crate) id: TransactionId,
    /// It sees what has a smaller stamp.
    pub(crate) begin: Stamp,
    /// The last tick by the last look at versions.
    looks_at: Epoch,
}

impl<'s, I: Isolation> Transaction<'s, I> {
    #[inline]
    pub(crate) fn open(
        shared: &'s ErmiaShared,
        participant: &'s mut Participant,
        context: &'s mut Context<I>,
        garbage: &'s mut Garbage<I>,
        slot: u16,
    ) -> Self {
        let entry = shared.table.entry(slot);
        let now = |_: &ExclusiveGuard<'s>| {
            if context.favor_next {
                context.favor(shared);
            }
            shared.clock.now()
        };
        let looks_at = shared.epochs.last_tick();
        let (guard, begin) =
            shared.horizon.enter_and_look(entry, looks_at, || participant.pin_exclusively(), now);
        let id = entry.begin(slot);
        context.number = context.number.next();
        context.is_open = true;
        context.keeps_look = shared.cold.is_some();
        Transaction { shared, guard, context, garbage, entry, slot, id, begin, looks_at }
    }

    /// Looks at versions anew, if epochs have gone by: then those may go that the transaction has only walked over.
    #[inline]
    pub(crate) fn renew_look(&mut self) {
        let tick = self.shared.epochs.last_tick();
        if tick != self.looks_at {
            self.look_from(tick);
        }
    }

    #[cold]
    fn look_from(&mut self, tick: Epoch) {
        self.looks_at = tick;
        if !self.context.keeps_look {
            self.entry.begin_look(tick);
            self.guard.participant().light_barrier();
        }
    }

    /// Ends a transaction that was leaked.
    #[cold]
    pub(crate) fn end_forgotten(
        shared: &'s ErmiaShared,
        participant: &'s mut Participant,
        context: &'s mut Context<I>,
        garbage: &'s mut Garbage<I>,
        slot: u16,
    ) {
        let entry = shared.table.entry(slot);
        let (begin, id, looks_at) = (Stamp::ZERO, entry.current(slot), shared.epochs.last_tick());
        let guard = participant.pin_exclusively();
        drop(Transaction { shared, guard, context, garbage, entry, slot, id, begin, looks_at });
    }

    /// Notes that the transaction cannot commit any more, whatever the caller makes of the error.
    #[cold]
    pub(crate) fn doom(&mut self, abort: Abort) -> Abort {
        self.context.doomed.get_or_insert(abort).clone()
    }

    #[cold]
    pub(crate) fn doom_at(&mut self, reason: AbortReason, store: &ErmiaStore, key: &[u8]) -> Abort {
        self.doom(Abort::new(reason, store.id(), key))
    }

    /// Checks that the store is there, and notes that it is used.
    #[inline]
    pub(crate) fn use_store(&mut self, store: &ErmiaStore) -> Result<(), Abort> {
        let used = store.check(&self.shared.epochs).and_then(|()| self.context.note_store(store));
        used.map_err(|abort| self.doom(abort))
    }

    /// Checks that a store is there that an insert goes into. An index may be dropped before the commit, a table may not.
    #[inline]
    pub(crate) fn use_store_to_insert(&mut self, store: &ErmiaStore) -> Result<(), Abort> {
        if store.id().is_logged() {
            return self.use_store(store);
        }
        store.check(&self.shared.epochs).map_err(|abort| self.doom(abort))
    }

    /// Undoes all writes, and ends.
    #[cold]
    pub(crate) fn roll_back(&mut self) {
        let reason = self.context.doomed.take().map_or(AbortReason::User, |abort| abort.reason());
        self.context.counters.count_abort(reason);
        // Behind a panic.
        self.context.skip_place(self.guard.participant());
        self.entry.set_aborted();
        for at in (0..self.context.writes.len()).rev() {
            let write = self.context.writes[at];
            self.undo(&write);
        }
        self.end();
    }

    /// Takes a version of this transaction's own back.
    fn undo(&mut self, write: &WriteEntry<I>) {
        match write.before {
            Some(before) => {
                if let Some(certificates) = before.certificates() {
                    // What the caller has concluded from it holds: whoever overwrites it later comes later.
                    certificates.note_reader(self.context.checked_at);
                    if !is_left_out(Step::WithdrawnSuccessor) {
                        // Release: [end] who finds this transaction gone finds no successor.
                        certificates.successor.store(0, Ordering::Release);
                    }
                }
                // SAFETY: the engine keeps all of its stores.
                let slot = unsafe { write.store.as_ref() }.slot(write.oid);
                // Release: [head].
                slot.store(before.to_word(), Ordering::Release);
                for version in write.own_versions() {
                    version.set_created(Stamp::NEVER);
                    // SAFETY: nothing leads to the version any more, and it was this transaction's alone.
                    unsafe { self.garbage.retire(&self.guard, version, &self.context.counters) };
                }
            }
            None => self.withdraw_insert(write, self.context.checked_at),
        }
    }

    /// Takes a record out that this transaction has made, and leaves a stamp at its node for those who insert the key later.
    pub(crate) fn withdraw_insert(&mut self, write: &WriteEntry<I>, stamp: Stamp) {
        // SAFETY: the engine keeps all of its stores.
        let store = unsafe { write.store.as_ref() };
        // Release: [head] who would put a version on this one, which nobody else may, waits until the key is gone.
        store.slot(write.oid).store(DEAD, Ordering::Release);
        let key = self.context.key(write.key);
        store.index().remove_if(key, write.oid.index_value(), stamp.get(), &self.guard, |_| true);
        for version in write.own_versions() {
            version.set_created(Stamp::NEVER);
            // SAFETY: nothing leads to the version any more, and it was this transaction's alone.
            unsafe { self.garbage.retire(&self.guard, version, &self.context.counters) };
        }
        self.garbage.bury(&self.guard, write.store, write.oid);
    }

    /// Ends the transaction: it holds nobody back any more.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.context.is_favored {
            self.context.end_favor(self.shared);
        }
        self.entry.end();
        self.context.clear();
    }

    /// Returns the position of the write to this record, if the transaction has written to it.
    #[inline]
    pub(crate) fn own_write(&self, store: &ErmiaStore, oid: Oid) -> Option<usize> {
        if self.context.writes.is_empty() {
            return None;
        }
        let slot = std::ptr::from_ref(store.slot(oid)).addr();
        self.context.written.get(slot).map(|at| at as usize)
    }

    /// Returns the store of an entry.
    #[inline]
    pub(crate) fn store_of(store: NonNull<ErmiaStore>) -> &'s ErmiaStore {
        // SAFETY: the engine keeps all of its stores, and outlives the session.
        unsafe { store.as_ref() }
    }
}

impl<I: Isolation> Drop for Transaction<'_, I> {
    #[inline]
    fn drop(&mut self) {
        if self.context.is_open {
            self.roll_back();
        }
    }
}

impl<I: Isolation> fmt::Debug for Transaction<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("begin", &self.begin)
            .field("reads", &self.context.reads.len())
            .field("writes", &self.context.writes.len())
            .field("doomed", &self.context.doomed)
            .finish_non_exhaustive()
    }
}
