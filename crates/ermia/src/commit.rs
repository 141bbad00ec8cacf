//! The commit: a stamp, the check, and the stamp in every version.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.1, pre-commit and post-commit.
//!
//! # Memory ordering
//! `[commit-order]` A transaction announces its commit before it takes its stamp. Who takes a later stamp, or begins later, finds it
//! announced: it waits for the stamp or the decision where these matter, and never takes one that may have committed before for one that
//! has not.
//!
//! `[reader-commit]` A transaction that has written nothing takes no stamp from the clock, it reads one: so no read-modify-write orders its
//! announcement. It announces, has a fence, and reads the clock. Who has written takes a stamp, has a fence, and looks at what is announced.
//! If the first fence comes first, the announcement is seen. If the second one does, the clock is read behind the stamp that was taken, and
//! the reader's own is a later one, for which nobody waits.
//!
//! # Models
//! `models/serializable.rs` runs these under loom, with each of the steps and orders left out once (`planted`).

use ensilo_engine::{Abort, AbortReason, Committed, TableId, Tid};
use ensilo_epoch::Epoch;
use ensilo_log::Place;
use ensilo_sync::atomic::Ordering;

use crate::context::WriteEntry;
use crate::isolation::{Fault, Isolation, has_fault};
use crate::overwritten::Overwritten;
use crate::stamp::Stamp;
use crate::transaction::Transaction;

/// Why a commit stopped before it had a stamp, or because of what it found behind it.
pub(crate) enum CommitStop {
    Abort(Abort),
    /// The log has no buffer to spare.
    LogFull,
    /// There is no stamp in the epoch.
    NoStamp(Epoch),
}

impl From<Abort> for CommitStop {
    fn from(abort: Abort) -> Self {
        CommitStop::Abort(abort)
    }
}

impl<I: Isolation> Transaction<'_, I> {
    /// Commits, or aborts.
    pub(crate) fn end_by_commit(mut self) -> Result<Committed, Abort> {
        match self.try_commit() {
            Ok(committed) => {
                self.context.counters.count_commit();
                self.end();
                Ok(committed)
            }
            Err(abort) => {
                self.doom(abort.clone());
                self.roll_back();
                Err(abort)
            }
        }
    }

    fn try_commit(&mut self) -> Result<Committed, Abort> {
        if let Some(abort) = &self.context.doomed {
            return Err(abort.clone());
        }
        self.check_stores()?;
        if self.context.writes.iter().all(WriteEntry::is_cancelled) {
            // Who has written is refused where the log takes nothing, also if nothing is left of it.
            if !self.context.writes.is_empty()
                && let Err(CommitStop::Abort(abort)) = self.context.reserve_log(0)
            {
                return Err(abort);
            }
            let (tid, epoch) = (self.context.latest_read.tid(), self.context.epoch_seen());
            return self.commit_reads().map(|()| Committed { tid, epoch });
        }
        let log_bytes = self.context.log_bytes();
        loop {
            self.guard.participant().begin_commit();
            let outcome = self.commit_writes(log_bytes);
            // Before the commit ends: then a logger relies on it.
            self.context.skip_place(self.guard.participant());
            self.guard.participant().end_commit();
            match outcome {
                Ok(tid) => return Ok(Committed { tid, epoch: tid.epoch() }),
                Err(CommitStop::Abort(abort)) => return Err(abort),
                Err(CommitStop::LogFull) => self.context.wait_for_log()?,
                Err(CommitStop::NoStamp(epoch)) => self.leave_epoch(epoch)?,
            }
        }
    }

    /// Waits for an epoch after this one: they may be long, and nobody else may be about to begin the next one.
    #[cold]
    fn leave_epoch(&self, epoch: Epoch) -> Result<(), Abort> {
        if self.shared.epochs.advance_past(epoch) {
            return Ok(());
        }
        Err(Abort::new(AbortReason::EpochsExhausted, TableId::NONE, &[]))
    }

    /// Checks that no store that was used has been dropped since.
    fn check_stores(&self) -> Result<(), Abort> {
        self.context.stores().try_for_each(|store| store.check(&self.shared.epochs))
    }

    /// Certifies what was read, at a place in the order of commits that no other transaction's writes have.
    pub(crate) fn commit_reads(&mut self) -> Result<(), Abort> {
        // Whoever has made a row and taken it back has missed its key.
        let has_read = !self.context.reads.is_empty()
            || !self.context.nodes.stamps().is_empty()
            || !self.context.writes.is_empty();
        if !I::SERIALIZABLE || !has_read {
            self.withdraw_cancelled(Stamp::ZERO);
            if I::RECORDS_HISTORY {
                self.context.record_commit(Stamp::ZERO);
            }
            return Ok(());
        }
        self.entry.announce();
        let stamp = self.shared.clock.reader_stamp();
        self.entry.set_stamp(stamp);
        self.check_stores()?;
        let successor = self.certify(stamp, false)?;
        self.withdraw_cancelled(stamp);
        self.entry.set_committed(stamp, successor);
        if I::RECORDS_HISTORY {
            self.context.record_commit(stamp);
        }
        Ok(())
    }

    fn commit_writes(&mut self, log_bytes: usize) -> Result<Tid, CommitStop> {
        let epoch = self.guard.participant().global_epoch();
        if epoch >= Epoch::LAST {
            return Err(CommitStop::NoStamp(epoch));
        }
        // The epoch that was published may be an earlier one. Who has a smaller stamp than this commit will have may wait for its place in the
        // log until nobody commits in that one any more, and this commit for its decision.
        self.guard.participant().move_commit(epoch);
        // Before others may wait for this commit: from there on it waits for nothing but theirs.
        self.context.reserve_log(log_bytes)?;
        let units = self.context.prepare_log();
        self.entry.announce();
        let stamp = self.shared.clock.take_in(epoch, units);
        let place = Place::new(stamp.tid().get(), units);
        self.context.note_place(place);
        if !place.lies_in(epoch) {
            self.entry.set_active();
            return Err(CommitStop::NoStamp(epoch));
        }
        self.entry.set_stamp(stamp);
        if has_fault::<I>(Fault::SkipCommitting) {
            // On few cores nobody would come by.
            std::thread::yield_now();
        }
        // Again: who has dropped a store before others took smaller stamps is seen from here.
        self.check_stores()?;
        let successor = if I::SERIALIZABLE { self.certify(stamp, true)? } else { stamp };
        self.context.fill_place(stamp.tid(), self.guard.participant());
        self.withdraw_cancelled(stamp);
        self.entry.set_committed(stamp, successor);
        if I::RECORDS_HISTORY {
            self.context.record_commit(stamp);
        }
        self.stamp_versions(stamp, successor);
        Ok(stamp.tid())
    }

    /// Takes out the records that the transaction has made and deleted, when it can no longer fail. Not later: to others such a record is
    /// locked until the transaction has committed, and then a deletion, over which they insert. Its stamp stays at the node, as that of one
    /// that has missed the key: whoever inserts it comes later.
    fn withdraw_cancelled(&mut self, stamp: Stamp) {
        let stamp = if has_fault::<I>(Fault::ForgetTakenBack) { Stamp::ZERO } else { stamp };
        for at in 0..self.context.writes.len() {
            let write = self.context.writes[at];
            if write.is_cancelled() {
                self.withdraw_insert(&write, stamp);
            }
        }
    }

    /// Puts the stamp into every version that was written, in the place of the id.
    fn stamp_versions(&mut self, stamp: Stamp, successor: Stamp) {
        for at in 0..self.context.writes.len() {
            let write = self.context.writes[at];
            if write.is_cancelled() {
                continue;
            }
            if let Some(before) = write.before {
                if let Some(certificates) = before.certificates() {
                    // Release: [successor].
                    certificates.successor.store(successor.get(), Ordering::Release);
                }
                let overwritten = Overwritten { version: before, stamp, oid: write.oid };
                self.garbage.add_overwritten(overwritten, &self.context.counters);
            }
            if let Some(certificates) = write.version.certificates() {
                certificates.note_reader(stamp);
            }
            for version in write.own_versions() {
                version.set_created(stamp);
                if version != write.version {
                    let overwritten = Overwritten { version, stamp, oid: write.oid };
                    self.garbage.add_overwritten(overwritten, &self.context.counters);
                }
            }
            if write.version.is_deletion() {
                let key = self.context.key(write.key);
                let record = (write.store, write.oid);
                self.garbage.add_deletion(stamp, record, key, write.version, &self.context.counters);
            }
        }
    }

    /// Certifies what was read so far, for a caller that concludes something from it, and goes on.
    pub(crate) fn check_reads(&mut self) -> Result<Epoch, Abort> {
        if let Some(abort) = &self.context.doomed {
            return Err(abort.clone());
        }
        self.check_stores().map_err(|abort| self.doom(abort))?;
        self.note_misses_of_own();
        if I::SERIALIZABLE {
            self.entry.announce();
            let stamp = self.shared.clock.reader_stamp();
            self.entry.set_stamp(stamp);
            let certified = self.certify(stamp, false);
            if certified.is_ok() {
                self.context.checked_at = stamp;
            }
            self.entry.set_active();
            certified.map_err(|abort| self.doom(abort))?;
        }
        Ok(self.context.epoch_seen())
    }
}
