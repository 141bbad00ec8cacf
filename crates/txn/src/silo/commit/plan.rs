//! What each write does at its install is decided, and the memory for it is taken, so that installing cannot fail.
//!
//! | change | record | variant | plan |
//! |---|---|---|---|
//! | `Placed` | the transaction's own placeholder | | [`InstallPlan::MakeLive`] |
//! | `Cancelled` | the transaction's own placeholder | | [`InstallPlan::Leave`] |
//! | `Delete` | live | | [`InstallPlan::Delete`], and a mark stands for the old version if a snapshot may read it |
//! | `Put` | a placeholder with room for the row | | [`InstallPlan::Overwrite`], and nothing is kept |
//! | `Put` | live, with room for the row | overwrites | [`InstallPlan::Overwrite`], and a copy of the old version is kept if a snapshot may read it |
//! | `Put` | live, and large for the row | overwrites | [`InstallPlan::Replace`], and without memory for that as in the line above |
//! | `Put` | live | never overwrites | [`InstallPlan::Replace`] |
//! | `Put` | deleted, or too small for the row | | [`InstallPlan::Replace`] |
//! | `Patch` | live | overwrites | [`InstallPlan::Overwrite`], with a copy as for `Put` |
//! | `Patch` | live | never overwrites | [`InstallPlan::Replace`] |
//!
//! A snapshot may read the old version if that is of an earlier snapshot interval than the new one (Silo §4.9). A deleted record is never
//! brought back to life (§4.5): the worker that deleted it has it on its list. A deletion leaves the row where it is, so that it needs no
//! copy: otherwise nothing could be deleted once the memory limit is reached.

use ensilo_engine::{Abort, AbortReason};
use ensilo_epoch::{Epoch, Guard};
use ensilo_slab::OutOfMemory;

use super::validate::Validated;
use crate::record::RecordPtr;
use crate::silo::memory;
use crate::silo::stop::CommitStop;
use crate::silo::transaction::Transaction;
use crate::silo::variant::Variant;
use crate::silo::write_set::{InstallPlan, KeptVersion, RecordChange, StorePtr, WriteEntry};
use crate::tid::TidWord;

/// Everything that can fail has happened, and the locks are held. Next: the install, or the end without one.
#[derive(Debug)]
#[must_use = "the locks are held until the commit is over or given up"]
pub(in crate::silo) struct Prepared(());

/// Gives back what was reserved for an old version.
#[cold]
fn give_back<V: Variant>(kept: &mut Option<KeptVersion>, guard: &Guard<'_>) {
    if let Some(version) = kept.take() {
        // SAFETY: its commit has reserved it and has shown it to nobody.
        unsafe { memory::free_kept::<V>(version, guard) }
    }
}

impl<V: Variant> Transaction<'_, V> {
    /// Takes room in the log and memory for the writes, and decides what each of them does. Old versions of epochs before `snapshot` are
    /// kept. On an error the locks are still held, and nothing else.
    #[inline]
    pub(in crate::silo) fn reserve(
        &mut self,
        validated: Validated,
        snapshot: Epoch,
    ) -> Result<Prepared, CommitStop> {
        let Validated { .. } = validated;
        self.reserve_log()?;
        self.plan_writes(snapshot)?;
        Ok(Prepared(()))
    }

    /// The same for a commit in an epoch that is not known yet: old versions are kept and rows logged whole. It is refused where there is
    /// no TID for it even now: nothing commits in the last epoch.
    pub(in crate::silo) fn reserve_for_any_epoch(
        &mut self,
        validated: Validated,
    ) -> Result<Prepared, CommitStop> {
        let Validated { .. } = validated;
        if !self.context.writes.is_empty() {
            let epoch = self.guard.epochs().global_epoch();
            self.next_tid(epoch).ok_or(CommitStop::EpochExhausted(epoch))?;
            self.reserve_log_for_any_epoch()?;
            self.plan_writes(Epoch::LAST)?;
            self.set_log_aside();
        }
        Ok(Prepared(()))
    }

    #[inline(always)]
    fn plan_writes(&mut self, snapshot: Epoch) -> Result<(), Abort> {
        for at in 0..self.context.writes.len() {
            match self.plan_for(&self.context.writes[at], snapshot) {
                Ok(plan) => self.context.writes[at].plan = plan,
                Err(reason) => {
                    let write = self.context.writes[at];
                    self.give_back_memory(at);
                    self.give_up_log();
                    return Err(self.context.abort_at(reason, write.record, write.key));
                }
            }
        }
        Ok(())
    }

    /// Gives back what was reserved for old versions of epochs from `snapshot` on, now that the commit's epoch is known: no snapshot reads
    /// them.
    pub(in crate::silo) fn give_back_versions(&mut self, snapshot: Epoch) {
        for write in &mut *self.context.writes {
            let is_kept = is_kept::<V>(write, snapshot);
            if let InstallPlan::Delete(kept) | InstallPlan::Overwrite(kept) = &mut write.plan
                && !is_kept
            {
                give_back::<V>(kept, &self.guard);
            }
        }
    }

    /// Gives back what the first `count` writes took.
    #[cold]
    pub(in crate::silo) fn give_back_memory(&mut self, count: usize) {
        for write in &mut self.context.writes[..count] {
            match std::mem::replace(&mut write.plan, InstallPlan::Open) {
                InstallPlan::Open | InstallPlan::MakeLive | InstallPlan::Leave => {}
                InstallPlan::Delete(mut kept) | InstallPlan::Overwrite(mut kept) => {
                    give_back::<V>(&mut kept, &self.guard);
                }
                // SAFETY: reserved by this commit and not yet linked anywhere.
                InstallPlan::Replace(record, _) => unsafe { memory::free::<V>(record, &self.guard) },
            }
        }
    }

    /// See the module's table.
    #[inline]
    fn plan_for(&self, write: &WriteEntry, snapshot: Epoch) -> Result<InstallPlan, AbortReason> {
        let record = write.record;
        match write.change {
            RecordChange::Placed => Ok(InstallPlan::MakeLive),
            RecordChange::Cancelled => Ok(InstallPlan::Leave),
            RecordChange::Put(row) if needs_replacement::<V>(write, row.len as usize) => {
                self.replacement_for(record, row.len as usize)
            }
            RecordChange::Put(row) if V::COLLECTS && is_wasted(write, row.len as usize) => {
                let replaced = self.replacement_for(record, row.len as usize);
                replaced.or_else(|_| self.plan_overwrite(write, snapshot))
            }
            RecordChange::Patch(_) if !V::OVERWRITES => {
                self.replacement_for(record, record.row().len_bytes())
            }
            RecordChange::Put(_) | RecordChange::Patch(_) => self.plan_overwrite(write, snapshot),
            RecordChange::Add(_) => unreachable!("what is locked has sums"),
            RecordChange::Delete => self.plan_delete(write, snapshot),
        }
    }

    /// With room for a copy of the record as it is: in the reserve, if the memory limit leaves none.
    #[inline]
    fn plan_overwrite(&self, write: &WriteEntry, snapshot: Epoch) -> Result<InstallPlan, AbortReason> {
        if !is_kept::<V>(write, snapshot) {
            return Ok(InstallPlan::Overwrite(None));
        }
        let record = write.record;
        let row_len = record.row().len_bytes();
        match self.allocate(record, row_len) {
            Ok(copy) => Ok(InstallPlan::Overwrite(Some(KeptVersion::Copy(copy)))),
            Err(_) => {
                let reserve = RecordPtr::allocate_reserve(&self.guard, record.store(), row_len);
                Ok(InstallPlan::Overwrite(Some(KeptVersion::ReserveCopy(reserve.map_err(out_of_memory)?))))
            }
        }
    }

    /// With what stands for the record as it is.
    #[inline]
    fn plan_delete(&self, write: &WriteEntry, snapshot: Epoch) -> Result<InstallPlan, AbortReason> {
        if !is_kept::<V>(write, snapshot) {
            return Ok(InstallPlan::Delete(None));
        }
        let mark = RecordPtr::allocate_mark(&self.guard).map_err(out_of_memory)?;
        Ok(InstallPlan::Delete(Some(KeptVersion::Mark(mark))))
    }

    /// Returns a record to replace this one in the tree, with room for a row of so many bytes.
    #[inline]
    fn replacement_for(&self, record: RecordPtr, row_len: usize) -> Result<InstallPlan, AbortReason> {
        let Some(store) = self.shared.stores.store(record.store()) else {
            return Err(AbortReason::StoreDropped);
        };
        let store = StorePtr::new(store);
        self.allocate(record, row_len).map(|replacement| InstallPlan::Replace(replacement, store))
    }

    fn allocate(&self, like: RecordPtr, row_len: usize) -> Result<RecordPtr, AbortReason> {
        memory::allocate::<V>(&self.guard, like.store(), row_len, TidWord::PLACEHOLDER).map_err(out_of_memory)
    }
}

fn out_of_memory(_: OutOfMemory) -> AbortReason {
    AbortReason::OutOfMemory
}

/// Returns whether the old version is kept beside the one that a write leaves in its record: there is one, and a snapshot may read it.
#[inline]
fn is_kept<V: Variant>(write: &WriteEntry, snapshot: Epoch) -> bool {
    V::SNAPSHOTS && !write.observed.is_absent() && write.observed.tid().epoch() < snapshot
}

/// Returns whether a new row of `len_bytes` needs a record of its own.
#[inline]
fn needs_replacement<V: Variant>(write: &WriteEntry, len_bytes: usize) -> bool {
    let is_deleted = write.observed.is_absent() && write.observed != TidWord::PLACEHOLDER;
    is_deleted || !write.record.fits(len_bytes) || !V::OVERWRITES && !write.observed.is_absent()
}

/// Returns whether a live record is a large block of which a row of `len_bytes` would leave most unused.
#[inline]
fn is_wasted(write: &WriteEntry, len_bytes: usize) -> bool {
    !write.observed.is_absent() && write.record.wastes_large(len_bytes)
}
