//! Phase 3: each record gets its new version and, in the same store, its lock back.

use ensilo_engine::{Fault, Tid};
use ensilo_epoch::{Epoch, OpenSnapshots};

use super::plan::Prepared;
use crate::record::RecordPtr;
use crate::silo::context::Context;
use crate::silo::garbage::{Retired, Unhook};
use crate::silo::memory;
use crate::silo::transaction::Transaction;
use crate::silo::variant::{Variant, has_fault};
use crate::silo::write_set::{InstallPlan, KeptVersion, RecordChange, RowSpan, WriteEntry};
use crate::store::Store;
use crate::tid::TidWord;

/// All writes are visible, and no lock is held.
#[derive(Debug)]
pub(in crate::silo) struct Installed(());

impl<V: Variant> Transaction<'_, V> {
    /// Phase 3, as planned. The caller has published a commit epoch, and logged the writes under this TID.
    #[inline(always)]
    pub(in crate::silo) fn install(&mut self, prepared: Prepared, tid: Tid) -> Installed {
        let Prepared { .. } = prepared;
        let snapshot = self.guard.epochs().snapshot_of(tid.epoch());
        for at in 0..self.context.writes.len() {
            let write = self.context.writes[at];
            match write.plan {
                InstallPlan::MakeLive => write.record.publish(TidWord::live(tid)),
                InstallPlan::Leave => write.record.publish(write.observed),
                InstallPlan::Delete(kept) => {
                    self.keep(&write, kept, snapshot);
                    self.delete_record(&write, tid, snapshot);
                }
                InstallPlan::Overwrite(kept) => {
                    self.keep(&write, kept, snapshot);
                    self.overwrite(write.record, write.change);
                    write.record.publish(TidWord::live(tid));
                }
                InstallPlan::Replace(replacement, store) => {
                    // SAFETY: reserved by this very commit.
                    let store = unsafe { store.get() };
                    self.replace(&write, store, replacement, tid, snapshot);
                }
                InstallPlan::Open => unreachable!("a prepared write has a plan"),
            }
        }
        self.context.last_tid = tid;
        Installed(())
    }

    /// Links the old version behind the record, which keeps it until no snapshot reads it.
    #[inline]
    fn keep(&mut self, write: &WriteEntry, kept: Option<KeptVersion>, snapshot: Epoch) {
        if let Some(version) = kept {
            self.keep_version(write, version, snapshot);
        }
    }

    fn keep_version(&mut self, write: &WriteEntry, version: KeptVersion, snapshot: Epoch) {
        match version {
            KeptVersion::Copy(_) | KeptVersion::ReserveCopy(_) if self.renew_copy(write) => {
                // SAFETY: this commit has reserved it and has shown it to nobody.
                return unsafe { memory::free_kept::<V>(version, &self.guard) };
            }
            KeptVersion::Copy(copy) | KeptVersion::ReserveCopy(copy) => {
                write.record.push_version(copy, write.observed);
            }
            KeptVersion::Mark(mark) => write.record.push_mark(mark, write.observed),
        }
        self.context.counters.version_kept(version.size_bytes());
        self.context.garbage.versions.push(snapshot, Retired::Kept(version));
    }

    /// Keeps the old version in the place of an older one that no snapshot needs. Returns whether there is one: it is looked for as long as a
    /// snapshot is read that others have overtaken.
    #[inline]
    fn renew_copy(&mut self, write: &WriteEntry) -> bool {
        let (epochs, open) = (self.guard.epochs(), &mut self.context.open_snapshots);
        if !V::COLLECTS || !epochs.has_overtaken_snapshots(open) {
            return false;
        }
        let nobody = OpenSnapshots::none();
        let open = if has_fault::<V>(Fault::RenewNeededCopies) { &nobody } else { &*open };
        write.record.renew_copy(write.observed, epochs.oldest_snapshot(), open)
    }

    /// Makes a record of ours absent. It stays in the tree until no snapshot needs it.
    #[inline]
    fn delete_record(&mut self, write: &WriteEntry, tid: Tid, snapshot: Epoch) {
        let word = TidWord::deleted(tid);
        if V::COLLECTS {
            let key = self.context.key(write.key).into();
            self.context.garbage.unhooks.push(snapshot, Unhook { record: write.record, word, key });
        }
        self.context.counters.unhook_waits();
        write.record.publish(word);
    }

    /// Writes the words of a change over those of a record of ours.
    #[inline]
    fn overwrite(&self, record: RecordPtr, change: RecordChange) {
        match change {
            RecordChange::Put(row) => record.store_row_words(self.context.row_words(row), row.len as usize),
            RecordChange::Patch(patch) => self.store_patch(record, patch),
            _ => unreachable!("only rows and patches have words"),
        }
    }

    #[inline]
    fn store_patch(&self, record: RecordPtr, patch: RowSpan) {
        record.store_words(self.context.patch_words(patch));
    }

    /// Puts `replacement` into the tree in place of the record of a write, which stays as its previous version.
    #[cold]
    fn replace(
        &mut self,
        write: &WriteEntry,
        store: &Store,
        replacement: RecordPtr,
        tid: Tid,
        snapshot: Epoch,
    ) {
        match write.change {
            RecordChange::Put(row) => {
                replacement.store_row_words(self.context.row_words(row), row.len as usize);
            }
            RecordChange::Patch(patch) => {
                replacement.copy_row(write.record);
                self.store_patch(replacement, patch);
            }
            _ => unreachable!("only rows replace a record"),
        }
        let is_owned_elsewhere = write.observed.is_absent() && !write.is_created;
        // A variant that replaces records all the time keeps those only that snapshots need. A mark needs the deleted record (I4).
        let is_kept =
            V::OVERWRITES || is_owned_elsewhere || V::SNAPSHOTS && write.observed.tid().epoch() < snapshot;
        if is_kept {
            replacement.set_previous(write.record);
        } else {
            replacement.set_previous_of(write.record);
        }
        replacement.set_unpublished_tid(TidWord::live(tid));
        let (old, new) = (write.record.index_value(), replacement.index_value());
        let is_replaced = store.index().replace(self.context.key(write.key), old, new, &self.guard);
        assert!(is_replaced, "a locked, latest record is the one in the tree");
        write.record.publish(write.observed.superseded());
        let Context { garbage, counters, .. } = &mut *self.context;
        if is_owned_elsewhere {
            return;
        }
        if is_kept {
            garbage.keep_replaced::<V>(snapshot, write.record, counters);
        } else {
            // SAFETY: it has left the tree, no snapshot that begins from now on needs it, and O1: the tree owned it, now this commit does.
            unsafe { memory::retire::<V>(write.record, &self.guard, garbage) };
        }
    }
}
