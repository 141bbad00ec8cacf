//! Phase 1: the write set is locked.

use ensilo_engine::{Abort, AbortReason, Fault};
use ensilo_sync::barrier;

use crate::silo::context::Context;
use crate::silo::protection::own_count;
use crate::silo::transaction::Transaction;
use crate::silo::variant::{Variant, has_fault};
use crate::silo::write_set::{RecordChange, WriteEntry};
use crate::tid::TidWord;

/// The write set is locked, and everybody that looks from now on sees the locks. Next: the validation.
#[derive(Debug)]
#[must_use = "the locks are held until the commit is over or given up"]
pub(in crate::silo) struct Locked(());

impl<V: Variant> Transaction<'_, V> {
    /// Sorts the write set by record address: every transaction locks in the same order, so that none waits in a circle.
    #[inline(always)]
    pub(in crate::silo) fn order_write_set(&mut self) -> Result<(), Abort> {
        let Context { lock_order, writes, held, .. } = &mut *self.context;
        lock_order.reserve(writes.len(), held)?;
        for (at, write) in (0..).zip(&**writes) {
            lock_order.push_reserved((write.record.address(), at));
        }
        if lock_order.len() > 1 && !has_fault::<V>(Fault::UnorderedLocks) {
            // A record has one entry, so that no two addresses are the same.
            lock_order.sort_unstable_by_key(|&(address, _)| address);
        }
        Ok(())
    }

    /// Phase 1. On an error no lock is held.
    #[inline(always)]
    pub(in crate::silo) fn lock_write_set(&mut self) -> Result<Locked, Abort> {
        for position in 0..self.context.lock_order.len() {
            let at = self.context.lock_order[position].1 as usize;
            let write = &self.context.writes[at];
            if matches!(write.change, RecordChange::Add(_)) {
                if let Err(abort) = self.lock_additions(at) {
                    self.unlock_first(position);
                    return Err(abort);
                }
            } else if let Err(reason) = lock_record(write) {
                let abort = self.context.abort_at(reason, write.record, write.key);
                self.unlock_first(position);
                return Err(abort);
            }
        }
        barrier::after_rmw();
        // Before the epoch is read: see `prepared`.
        if !self.shared.prepared.is_empty() {
            self.refuse_protected_writes()?;
        }
        Ok(Locked(()))
    }

    /// Refuses to write over what a prepared transaction has read. On an error no lock is held.
    #[cold]
    fn refuse_protected_writes(&mut self) -> Result<(), Abort> {
        if self.context.protection.is_some() {
            self.take_over_placeholders();
        }
        let records = self.context.writes.iter().map(|write| write.record);
        let own = |address| own_count(self.context.protection.as_deref(), address);
        let Some(at) = self.shared.prepared.first_protected(records, own) else { return Ok(()) };
        let write = &self.context.writes[at];
        let abort = self.context.abort_at(AbortReason::PreparedRead, write.record, write.key);
        self.unlock_write_set();
        Err(abort)
    }

    /// Takes over placeholders in the write set, all locked, that their makers have left to the registry because this transaction has read
    /// them: it may commit into them, or withdraws them.
    fn take_over_placeholders(&mut self) {
        for write in &mut *self.context.writes {
            if write.observed == TidWord::PLACEHOLDER && !write.is_created {
                write.is_created = self.shared.prepared.take_over(write.record);
            }
        }
    }

    /// Frees all locks without having changed anything: the commit is given up.
    #[cold]
    pub(in crate::silo) fn unlock_write_set(&mut self) {
        self.unlock_first(self.context.lock_order.len());
    }

    /// Frees the first `count` locks, in lock order.
    #[cold]
    fn unlock_first(&mut self, count: usize) {
        for &(_, at) in &self.context.lock_order[..count] {
            let write = &self.context.writes[at as usize];
            write.record.publish(write.observed);
        }
    }
}

/// Locks a record that still carries the version that was seen.
#[inline]
fn lock_record(write: &WriteEntry) -> Result<(), AbortReason> {
    loop {
        if write.record.try_lock(write.observed) {
            return Ok(());
        }
        match write.record.stable_tid() {
            Err(reason) => return Err(reason),
            Ok(now) if now == write.observed => {}
            Ok(now) if write.observed.is_absent() && !now.is_absent() && now.is_latest() => {
                return Err(AbortReason::KeyExists);
            }
            Ok(_) => return Err(AbortReason::ReadValidation),
        }
    }
}
