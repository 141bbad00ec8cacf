//! The commit protocol.
//!
//! # Source
//! Silo (SOSP 2013) §4.4, figure 2.
//!
//! # States
//! A commit walks through four states, each a type that only the step before makes. Every step but the last can fail; then the locks are
//! given back and nothing has changed.
//! ```text
//!            lock_write_set      validate          reserve        install
//! (running) ---------------> Locked -------> Validated -------> Prepared -------> Installed
//! ```
//! - [`Locked`]: the write set is locked, in address order.
//! - [`Validated`](validate::Validated): what was read is current, records and nodes.
//! - [`Prepared`]: what each write does is planned, and the memory and the room in the log that they need are taken. Nothing can fail
//!   any more.
//! - [`Installed`]: the writes are logged and visible, the locks are free.
//!
//! The commit of a single engine walks through them at once. It reads the epoch between the first two and chooses its TID after them.
//!
//! # Memory ordering
//! The serialization point is the read of the global epoch. All write locks are taken before it (a locked read-modify-write, then
//! [`after_rmw`](ensilo_sync::barrier::after_rmw)) and all validation loads come after it. Of two transactions that each read what
//! the other writes, the one with the later barrier sees the other's lock or its new TID, and aborts: that is the store-buffering
//! pattern, which needs the full barrier on both sides.

mod install;
mod lock;
mod plan;
mod validate;

use ensilo_engine::{Abort, AbortReason, Committed, Fault, TableId, Tid};
use ensilo_epoch::Epoch;

pub(super) use install::Installed;
pub(super) use lock::Locked;
pub(super) use plan::Prepared;

use super::context::Phase;
use super::stop::CommitStop;
use super::transaction::Transaction;
use super::variant::{Variant, has_fault};
use super::write_set::RecordChange;

/// The way on which a transaction ends when its caller asks for the commit.
enum CommitPath {
    /// It has looked at one record at most and written none: what it saw was current when it looked, and nothing is left to validate.
    SingleRead,
    /// It has written nothing: all that it read was current at one moment.
    ReadOnly,
    /// It walks through the states.
    Write,
    /// A statement has returned an abort.
    Doomed,
}

impl<V: Variant> Transaction<'_, V> {
    /// Which way this transaction takes. A history shows the epoch in which a read was current, so that there every read is validated.
    #[inline]
    fn path(&self) -> CommitPath {
        if self.context.has_single_read() && !V::RECORDS_HISTORY {
            CommitPath::SingleRead
        } else if self.context.doomed.is_some() {
            CommitPath::Doomed
        } else if self.context.writes.is_empty() {
            CommitPath::ReadOnly
        } else {
            CommitPath::Write
        }
    }

    /// Commits.
    #[inline]
    pub(super) fn end(self) -> Result<Committed, Abort> {
        match self.path() {
            CommitPath::SingleRead => Ok(self.end_single_read()),
            path => self.end_by(path),
        }
    }

    #[inline]
    fn end_single_read(self) -> Committed {
        let tid = self.context.largest_tid_seen();
        self.context.counters.count_commit();
        self.context.clear_single_read();
        self.context.phase = Phase::Idle;
        Committed { tid, epoch: tid.epoch() }
    }

    #[inline(never)]
    fn end_by(mut self, path: CommitPath) -> Result<Committed, Abort> {
        let outcome = match path {
            CommitPath::SingleRead | CommitPath::ReadOnly => self.commit_reads(),
            CommitPath::Write => self.commit_writes(),
            CommitPath::Doomed => self.refuse_doomed(),
        };
        self.finish(outcome)
    }

    #[cold]
    fn refuse_doomed(&mut self) -> Result<Committed, Abort> {
        match self.context.doomed.take() {
            Some(abort) => Err(abort),
            None => unreachable!("a doomed transaction knows why"),
        }
    }

    /// Counts the outcome and lets go of everything but what was installed.
    #[inline(always)]
    pub(super) fn finish(&mut self, outcome: Result<Committed, Abort>) -> Result<Committed, Abort> {
        self.context.phase = Phase::Idle;
        match &outcome {
            Ok(committed) => {
                self.context.counters.count_commit();
                if V::RECORDS_HISTORY {
                    self.context.record_commit(*committed);
                }
                self.withdraw(|change| matches!(change, RecordChange::Cancelled));
            }
            Err(abort) => {
                self.context.counters.count_abort(abort.reason());
                self.withdraw(|_| true);
            }
        }
        self.clear();
        outcome
    }

    /// Commits a transaction that wrote nothing: everything it read was current at one moment, which lies between its
    /// last read and the first look of the validation.
    #[inline]
    fn commit_reads(&mut self) -> Result<Committed, Abort> {
        let epoch = if V::RECORDS_HISTORY { self.guard.epochs().global_epoch() } else { Epoch::new(0) };
        // Without validation only the stores are looked at. A single look at shared memory is a consistent state without a second one; only a
        // history, which names the epoch, has to know that it still was one then.
        if V::RECORDS_HISTORY
            || !V::VALIDATES
            || self.context.reads.len() + self.context.nodes.stamps().len() > 1
        {
            self.validate_reads()?;
        }
        let tid = self.context.largest_tid_seen();
        Ok(Committed { tid, epoch: epoch.max(tid.epoch()) })
    }

    /// Commits a transaction that wrote something.
    #[inline]
    fn commit_writes(&mut self) -> Result<Committed, Abort> {
        self.order_write_set()?;
        let reads = self.context.reads.len();
        self.stand_back();
        loop {
            self.guard.participant().begin_commit();
            let outcome = self.walk_through();
            self.guard.participant().end_commit();
            match outcome {
                Ok(committed) => return Ok(committed),
                Err(CommitStop::Abort(abort)) => return Err(abort),
                Err(CommitStop::LogFull) => self.wait_for_log()?,
                Err(CommitStop::EpochExhausted(epoch)) => self.leave_epoch(epoch)?,
            }
            self.context.take_sums_back(reads);
        }
    }

    /// All states at once.
    fn walk_through(&mut self) -> Result<Committed, CommitStop> {
        let locked = self.lock_write_set()?;
        let epoch = self.serialization_epoch();
        match self.validate_and_reserve(epoch, locked) {
            Ok((prepared, tid)) => {
                self.log_writes(tid);
                let Installed { .. } = self.install(prepared, tid);
                Ok(Committed { tid, epoch })
            }
            Err(stop) => {
                self.unlock_write_set();
                Err(stop)
            }
        }
    }

    /// Everything between locking and installing that can fail, for a commit in `epoch`.
    #[inline]
    fn validate_and_reserve(&mut self, epoch: Epoch, locked: Locked) -> Result<(Prepared, Tid), CommitStop> {
        let validated = self.validate(locked)?;
        let tid = self.next_tid(epoch).ok_or(CommitStop::EpochExhausted(epoch))?;
        let prepared = self.reserve(validated, self.guard.epochs().snapshot_of(epoch))?;
        Ok((prepared, tid))
    }

    /// Returns a TID in `epoch` that is larger than all that this transaction and its worker have seen, unless there is none.
    #[inline(always)]
    pub(super) fn next_tid(&self, epoch: Epoch) -> Option<Tid> {
        let seen = self.context.largest_tid_seen().max(self.context.last_tid);
        if !V::GLOBAL_TID {
            return seen.next_in(epoch);
        }
        let tid = self.shared.global_tid.next_in(epoch);
        debug_assert!(tid.is_none_or(|tid| tid > seen), "the counter is behind a TID that it gave out");
        tid
    }

    #[inline]
    fn serialization_epoch(&self) -> Epoch {
        if has_fault::<V>(Fault::EarlyEpoch) {
            self.begin_epoch()
        } else {
            self.guard.epochs().global_epoch()
        }
    }

    /// Moves on to an epoch after this one, in which there are TIDs again: epochs may be long, and nobody else may be about to.
    #[cold]
    pub(super) fn leave_epoch(&self, epoch: Epoch) -> Result<(), Abort> {
        if self.guard.epochs().advance_past(epoch) {
            return Ok(());
        }
        Err(Abort::new(AbortReason::EpochsExhausted, TableId::NONE, &[]))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
