//! Handing the writes of a commit to the log.
//!
//! # Source
//! SiloR (OSDI 2014) §3.1: value logging. Where we deviate: of a row that was patched only the words are logged that changed, with
//! the values they have now. The log replays in any order, word by word, as long as some whole row of the record comes before
//! its patches. So the first change of a record after a checkpoint began is logged as a whole row: checkpoints leave out what
//! changed since they began.

use ensilo_engine::{Abort, AbortReason, TableId, Tid};
use ensilo_epoch::Epoch;
use ensilo_log::{
    LEFT_OUT_BYTES, LogWriter, PATCH_PAIR_BYTES_MAX, ReserveError, transaction_bytes, write_bytes_max,
};
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::region::{self, Region};

use super::context::Context;
use super::stop::CommitStop;
use super::transaction::Transaction;
use super::variant::{LogRecords, Variant};
use super::write_set::{RecordChange, RowSpan, WriteEntry};

/// What of a write goes to the log.
enum Logged {
    Nothing,
    Row { len_bytes: usize },
    Words(RowSpan),
    Deletion,
}

impl<V: Variant> Transaction<'_, V> {
    /// Takes room for the writes in the worker's log buffer, so that logging cannot fail. The locks are held.
    #[inline]
    pub(super) fn reserve_log(&mut self) -> Result<(), CommitStop> {
        let Some(log) = &mut self.context.log else { return Ok(()) };
        // Read after the epoch: who commits in the checkpoint's first epoch, or later, sees its beginning.
        let full_rows_before = log.full_rows_before();
        self.reserve_log_since(full_rows_before)
    }

    /// The same for a commit in an epoch that is not known yet: there is room for whole rows.
    pub(super) fn reserve_log_for_any_epoch(&mut self) -> Result<(), CommitStop> {
        self.reserve_log_since(Epoch::LAST)
    }

    /// The same where a record with a version of an earlier epoch is logged whole.
    #[inline(always)]
    fn reserve_log_since(&mut self, full_rows_before: Epoch) -> Result<(), CommitStop> {
        let _log = region::enter(Region::Log);
        self.context.full_rows_before = full_rows_before;
        let bytes = self.context.measure_log::<V>();
        let Some(log) = &mut self.context.log else { return Ok(()) };
        let refused = |reason| Err(CommitStop::Abort(Abort::new(reason, TableId::NONE, &[])));
        match log.reserve(bytes) {
            Ok(()) => Ok(()),
            Err(ReserveError::Full) => Err(CommitStop::LogFull),
            Err(ReserveError::Failed) => refused(AbortReason::LogFailed),
            Err(ReserveError::TooLarge) => refused(AbortReason::TransactionTooLarge),
            Err(ReserveError::OutOfMemory) => refused(AbortReason::OutOfMemory),
        }
    }

    /// Puts the writes into the log buffer, from where a logger may take them at once. The locks are held: the rows are what
    /// this commit will install.
    #[inline(always)]
    pub(super) fn log_writes(&mut self, tid: Tid) {
        let _log = region::enter(Region::Log);
        // Taken out so that the sets can be read meanwhile.
        let Some(mut log) = self.context.log.take() else { return };
        self.context.log_entry::<V>(&mut log, tid);
        log.publish();
        self.context.log = Some(log);
    }

    /// Gives back what room in the log was taken beyond the usual: nothing is logged.
    #[cold]
    pub(super) fn give_up_log(&mut self) {
        self.context.log.iter_mut().for_each(LogWriter::give_up);
    }

    /// The room in the log waits for a decision.
    pub(super) fn set_log_aside(&mut self) {
        self.context.log.iter_mut().for_each(LogWriter::set_aside);
    }

    /// Waits until the log has a buffer to spare. No lock is held.
    #[cold]
    pub(super) fn wait_for_log(&self) -> Result<(), Abort> {
        let failed = || Abort::new(AbortReason::LogFailed, TableId::NONE, &[]);
        self.context.log.as_ref().map_or(Ok(()), |log| log.wait_for_buffer().map_err(|_| failed()))
    }
}

impl Context {
    /// Logs the entry of the transaction.
    #[inline]
    fn log_entry<V: Variant>(&self, log: &mut LogWriter, tid: Tid) {
        let count = self.logged_count;
        if matches!(V::LOGGED, LogRecords::Tids) && count > 0 {
            log.begin(tid.get(), 1);
            return log.leave_out();
        }
        log.begin(tid.get(), count);
        for write in &*self.writes {
            let (table, key) = (write.record.store().0, self.key(write.key));
            match self.logged::<V>(write) {
                Logged::Nothing => {}
                Logged::Row { len_bytes } => self.log_row(log, write, len_bytes),
                Logged::Words(patch) => log.patch(table, key, self.patch_pairs(patch)),
                Logged::Deletion => log.delete(table, key),
            }
        }
    }

    /// Returns what of a write goes to the log. The record's lock is held.
    #[inline]
    fn logged<V: Variant>(&self, write: &WriteEntry) -> Logged {
        if !write.record.store().is_logged() {
            return Logged::Nothing;
        }
        match write.change {
            RecordChange::Cancelled => Logged::Nothing,
            RecordChange::Delete => Logged::Deletion,
            RecordChange::Put(row) => Logged::Row { len_bytes: row.len as usize },
            RecordChange::Placed => Logged::Row { len_bytes: write.record.row().len_bytes() },
            RecordChange::Add(_) => unreachable!("what is locked has sums"),
            RecordChange::Patch(patch) => {
                let len_bytes = write.record.row().len_bytes();
                let is_whole = matches!(V::LOGGED, LogRecords::Rows)
                    || write.observed.tid().epoch() < self.full_rows_before;
                if is_whole || patch.len as usize * PATCH_PAIR_BYTES_MAX >= len_bytes {
                    Logged::Row { len_bytes }
                } else {
                    Logged::Words(patch)
                }
            }
        }
    }

    /// Counts the writes that go to the log, and returns no fewer bytes than they take there.
    #[inline]
    fn measure_log<V: Variant>(&mut self) -> usize {
        let (mut count, mut bytes) = (0, 0);
        for write in &*self.writes {
            let content = match self.logged::<V>(write) {
                Logged::Nothing => continue,
                Logged::Row { len_bytes } => len_bytes,
                Logged::Words(patch) => patch.len as usize * PATCH_PAIR_BYTES_MAX,
                Logged::Deletion => 0,
            };
            count += 1;
            bytes += write_bytes_max(self.key(write.key).len(), content);
        }
        self.logged_count = count;
        if matches!(V::LOGGED, LogRecords::Tids) { LEFT_OUT_BYTES } else { transaction_bytes(count) + bytes }
    }

    /// Logs the whole row that the write leaves.
    fn log_row(&self, log: &mut LogWriter, write: &WriteEntry, len_bytes: usize) {
        let (table, key) = (write.record.store().0, self.key(write.key));
        let row = write.record.row();
        match write.change {
            RecordChange::Put(span) => {
                // Relaxed: these words are this worker's own.
                let words = self.row_words(span).iter().map(|word: &AtomicU64| word.load(Ordering::Relaxed));
                log.put(table, key, len_bytes, words);
            }
            RecordChange::Patch(patch) => {
                log.put_patched(table, key, len_bytes, row.all_words(), self.patch_pairs(patch));
            }
            _ => log.put(table, key, len_bytes, row.all_words()),
        }
    }

    /// Returns the changed words of a patch, with their places.
    fn patch_pairs(&self, patch: RowSpan) -> impl ExactSizeIterator<Item = (u32, u64)> + '_ {
        self.patch_words(patch).map(|(index, word)| (index as u32, word))
    }
}
