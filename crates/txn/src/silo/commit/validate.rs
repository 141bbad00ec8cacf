//! Phase 2: what was read is still current.

use ensilo_engine::{Abort, AbortReason, Fault, TableId};
use ensilo_epoch::Epoch;
use ensilo_index::{Masstree, NodeStamp};

use super::lock::Locked;
use crate::record::RecordPtr;
use crate::silo::transaction::Transaction;
use crate::silo::variant::{Variant, has_fault};

/// What was read is current while the write set is locked. Next: all that the writes need.
#[derive(Debug)]
#[must_use = "the locks are held until the commit is over or given up"]
pub(in crate::silo) struct Validated(());

impl<V: Variant> Transaction<'_, V> {
    /// Phase 2. On an error the locks are still held.
    #[inline]
    pub(in crate::silo) fn validate(&self, locked: Locked) -> Result<Validated, Abort> {
        let Locked { .. } = locked;
        self.validate_reads()?;
        Ok(Validated(()))
    }

    /// Checks that what was read is current.
    #[inline(always)]
    pub(in crate::silo) fn validate_reads(&self) -> Result<(), Abort> {
        self.validate_read_set()?;
        self.validate_node_set()
    }

    /// Phase 2 of a transaction that has registered what it read: nobody has begun to change it before. On an error the locks are
    /// still held.
    pub(in crate::silo) fn validate_at_rest(&self, locked: Locked) -> Result<Validated, Abort> {
        let Locked { .. } = locked;
        self.validate_read_set()?;
        self.validate_nodes(|stamp| {
            // SAFETY: as in `validate_node_set`.
            unsafe { Masstree::is_current_at_rest(stamp, &self.guard) }
        })?;
        Ok(Validated(()))
    }

    /// Phase 2 without a commit: says whether what was read was current, and the last epoch that it is of.
    pub(in crate::silo) fn check_reads(&mut self) -> Result<Epoch, Abort> {
        self.settle_all().map_err(|abort| self.doom(abort))?;
        self.check_reads_so_far()?;
        Ok(self.context.largest_tid_seen().epoch())
    }

    /// The same for a transaction that goes on: of what it adds to it looks only whether the rows are there.
    pub(in crate::silo) fn check_reads_so_far(&mut self) -> Result<(), Abort> {
        let outcome = self.validate_reads().and_then(|()| self.validate_writes());
        outcome.map_err(|abort| self.doom(abort))
    }

    /// For records: each still carries the TID that was read and nobody else has locked it.
    #[inline(always)]
    fn validate_read_set(&self) -> Result<(), Abort> {
        if self.begin_epoch() < self.shared.stores.dropped_before() {
            self.refuse_dropped_stores()?;
        }
        if !V::VALIDATES {
            debug_assert!(V::FAULT.is_some() || self.has_kept_reads(), "a record has changed that was read");
            return Ok(());
        }
        if has_fault::<V>(Fault::SkipReadValidation) {
            return Ok(());
        }
        for read in &*self.context.reads {
            let now = read.record.tid();
            let is_valid =
                now == read.word || (now == read.word.locked() && self.is_lock_harmless(read.record));
            if !is_valid {
                let reason = if now.is_prepared() && now.unlocked() == read.word {
                    AbortReason::PreparedLock
                } else {
                    AbortReason::ReadValidation
                };
                return Err(self.context.abort_at(reason, read.record, read.key));
            }
        }
        Ok(())
    }

    /// Returns whether each row that was read is still there, as a variant that does not validate relies on. A record without a row may
    /// have left its tree.
    fn has_kept_reads(&self) -> bool {
        let mut present = self.context.reads.iter().filter(|read| !read.word.is_absent());
        present.all(|read| read.record.tid().unlocked() == read.word)
    }

    /// Returns whether a record that was read stays as it is though it is locked: this transaction holds the lock, or it is protected, so
    /// that who holds the lock has to give it back.
    #[inline]
    fn is_lock_harmless(&self, record: RecordPtr) -> bool {
        self.context.own_write(record).is_some() || self.context.protection.is_some()
    }

    /// After a store was dropped: it is none of those that were used. An index that was only written may be: its entries just go with it.
    #[cold]
    fn refuse_dropped_stores(&self) -> Result<(), Abort> {
        let read = self.context.reads.iter().map(|read| read.record.store());
        let written = self.context.writes.iter().map(|write| write.record.store());
        let written = written.filter(|table| table.is_logged());
        let mut used = read.chain(written).chain(self.context.nodes.stores().iter().copied());
        match used.find(|&table| self.shared.stores.store(table).is_none()) {
            Some(dropped) => Err(Abort::new(AbortReason::StoreDropped, dropped, &[])),
            None => Ok(()),
        }
    }

    /// For nodes: each still holds the keys it held.
    #[inline]
    fn validate_node_set(&self) -> Result<(), Abort> {
        self.validate_nodes(|stamp| {
            // SAFETY: the stamp was taken by this transaction, under the guard that it still holds.
            unsafe { Masstree::is_current(stamp, &self.guard) }
        })
    }

    #[inline(always)]
    fn validate_nodes(&self, is_current: impl Fn(NodeStamp) -> bool) -> Result<(), Abort> {
        if has_fault::<V>(Fault::SkipNodeValidation) {
            return Ok(());
        }
        for &stamp in self.context.nodes.stamps() {
            if !is_current(stamp) {
                return Err(Abort::new(AbortReason::NodeValidation, TableId::NONE, &[]));
            }
        }
        Ok(())
    }

    /// Without locks: the keys that were inserted are still missing. Whoever else inserts one of them writes into the placeholder,
    /// which changes no node. The rows that are added to are there.
    fn validate_writes(&self) -> Result<(), Abort> {
        for write in self.context.writes.iter().filter(|write| write.is_created) {
            if !self.context.is_unchanged(write.record, write.observed) {
                return Err(self.context.abort_at(AbortReason::KeyExists, write.record, write.key));
            }
        }
        self.context.validate_additions()
    }
}
