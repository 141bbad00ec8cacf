//! Handing the writes of a commit to the log.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.3. A transaction prepares its log entry privately, then takes its stamp from the clock, as many units of it as the
//! entry has in the central log buffer: so the stamp is the place of the entry there ([`ensilo_log::Ring`]), to which it is copied once. Whoever
//! has a place and logs nothing there fills it with a skip record. What is larger than [`RECORD_BYTES_MAX`] goes to the log by
//! the session's own buffers, and takes one unit.
//!
//! A stamp names its epoch, and who reads a version has a later stamp than its author: so the transactions up to the end of an epoch are
//! a prefix of the order of commits, and with each of them there is all that it has read.
//!
//! Of a row that kept its length only the words are logged that changed, if there are few. The log replays in any order, as long as some
//! whole row comes before these. So the first change of a row after a checkpoint began is logged whole: checkpoints leave out what
//! changed since they began.

use std::sync::Arc;

use ensilo_engine::{Abort, AbortReason, Store as _, TableId, Tid};
use ensilo_epoch::{Epoch, Participant};
use ensilo_log::{
    Log, LogWriter, PATCH_PAIR_BYTES_MAX, Place, RECORD_BYTES_MAX, ReserveError, Ring, transaction_bytes,
    write_bytes_max,
};

use crate::commit::CommitStop;
use crate::context::{Context, WriteEntry};
use crate::isolation::Isolation;
use crate::stamp::{Author, Clock};
use crate::store::ErmiaStore;
use crate::transaction::Transaction;
use crate::version::Version;

/// More changed words of a row are not remembered: it is logged whole.
const CHANGED_WORDS_MAX: usize = 64 << 10;

/// A session's way into the log.
#[derive(Debug)]
pub(crate) struct SessionLog {
    /// Where entries are prepared, and logged that are too large for the ring.
    writer: LogWriter,
    ring: Arc<Ring>,
    /// What a commit has taken and not filled.
    place: Option<Place>,
    /// The words that a write has changed, with their indexes.
    changed: Vec<(u32, u64)>,
    /// Whether every write takes a place by itself.
    logs_operations: bool,
}

impl SessionLog {
    pub(crate) fn new(log: &Log) -> Self {
        SessionLog {
            writer: log.writer(),
            ring: Arc::clone(log.ring()),
            place: None,
            changed: Vec::new(),
            logs_operations: log.logs_operations(),
        }
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), ReserveError> {
        self.writer.reserve(bytes)?;
        if self.ring.has_room() { Ok(()) } else { Err(ReserveError::Full) }
    }

    /// Adds a write to the entry that is being prepared.
    fn add<I: Isolation>(&mut self, write: &WriteEntry<I>, table: u32, key: &[u8], full_rows_before: Epoch) {
        let row = write.version.row();
        if write.version.is_deletion() {
            self.writer.delete(table, key);
        } else if self.has_few_changed_words(write, full_rows_before) {
            self.writer.patch(table, key, self.changed.iter().copied());
        } else {
            self.writer.put(table, key, row.len_bytes(), row.all_words());
        }
    }

    /// Finds the words that a write has changed, one at least. Returns whether these take less room than the row, and the version before is in the
    /// log that goes with the newest checkpoint.
    fn has_few_changed_words<I: Isolation>(
        &mut self,
        write: &WriteEntry<I>,
        full_rows_before: Epoch,
    ) -> bool {
        let Some(before) = write.before.filter(|before| is_logged(*before, full_rows_before)) else {
            return false;
        };
        let row = write.version.row();
        if before.row().len_bytes() != row.len_bytes() || row.len_bytes() == 0 {
            return false;
        }
        let words_max = ((row.len_bytes() - 1) / PATCH_PAIR_BYTES_MAX).min(CHANGED_WORDS_MAX);
        self.changed.clear();
        let pairs = before.row().all_words().zip(row.all_words()).zip(0..);
        for ((before, word), index) in pairs {
            if before != word {
                if self.changed.len() == words_max {
                    return false;
                }
                self.changed.push((index, word));
            }
        }
        if self.changed.is_empty() && words_max > 0 {
            // A row that is written as it was has a new TID all the same, and a replay takes that from a word.
            self.changed.extend(row.all_words().next().map(|word| (0, word)));
        }
        !self.changed.is_empty()
    }

    /// Fills the place of the commit with the entry that was prepared, which is that of the transaction with this TID.
    fn fill(&mut self, tid: Tid, participant: &Participant) {
        let Some(place) = self.place.take() else { return };
        self.writer.set_tid(tid.get());
        let entry = self.writer.entry();
        let move_commit = |epoch| participant.move_commit(epoch);
        if entry.len() > RECORD_BYTES_MAX {
            self.writer.publish();
            return self.ring.skip(place, &[], move_commit);
        }
        if entry.is_empty() {
            self.ring.skip(place, &[], move_commit);
        } else {
            self.ring.fill(place, entry, move_commit);
        }
        // There was room for whole rows, of which a few words were logged.
        self.writer.give_up();
    }

    /// Copies the entry that was prepared, of a write alone, to a place of its own. What is replayed is the entry of the transaction.
    fn copy_operation(&mut self, clock: &Clock, epoch: Epoch, participant: &Participant) {
        let units = Place::units_for(self.writer.entry().len());
        let stamp = clock.take_in(epoch, units);
        let place = Place::new(stamp.tid().get(), units);
        self.ring.skip(place, self.writer.entry(), |epoch| participant.move_commit(epoch));
        self.writer.give_up();
    }

    /// Fills the place of a commit that has come to nothing, if there is one.
    #[inline]
    fn skip(&mut self, participant: &Participant) {
        if let Some(place) = self.place.take() {
            self.ring.skip(place, &[], |epoch| participant.move_commit(epoch));
            self.writer.give_up();
        }
    }

    fn wait(&self) -> Result<(), Abort> {
        let waited = self.writer.wait_for_buffer().and_then(|()| self.ring.wait_for_room());
        waited.map_err(|_| Abort::new(AbortReason::LogFailed, TableId::NONE, &[]))
    }
}

impl<I: Isolation> Context<I> {
    /// Returns the writes that go to the log, each with its store.
    fn logged_writes(&self) -> impl Iterator<Item = (&WriteEntry<I>, &ErmiaStore)> {
        let writes = self.writes.iter().filter(|write| !write.is_cancelled());
        // SAFETY: the engine keeps all of its stores, and a session its engine.
        let writes = writes.map(|write| (write, unsafe { write.store.as_ref() }));
        writes.filter(|(_, store)| store.id().is_logged())
    }

    /// Returns no fewer bytes than the transaction takes in the log.
    pub(crate) fn log_bytes(&self) -> usize {
        let _log = crate::region::log();
        if self.log.is_none() {
            return 0;
        }
        let bytes_of = |write: &WriteEntry<I>| {
            write_bytes_max(self.key(write.key).len(), write.version.row().len_bytes())
        };
        transaction_bytes(self.writes.len())
            + self.logged_writes().map(|(write, _)| bytes_of(write)).sum::<usize>()
    }

    /// Takes room in the log, so that logging cannot fail.
    pub(crate) fn reserve_log(&mut self, bytes: usize) -> Result<(), CommitStop> {
        let _log = crate::region::log();
        let Some(log) = &mut self.log else { return Ok(()) };
        let refused = |reason| Err(CommitStop::Abort(Abort::new(reason, TableId::NONE, &[])));
        match log.reserve(bytes) {
            Ok(()) => Ok(()),
            Err(ReserveError::Full) => Err(CommitStop::LogFull),
            Err(ReserveError::Failed) => refused(AbortReason::LogFailed),
            Err(ReserveError::TooLarge) => refused(AbortReason::TransactionTooLarge),
            Err(ReserveError::OutOfMemory) => refused(AbortReason::OutOfMemory),
        }
    }

    /// Returns whether every write takes a place in the log by itself.
    #[inline]
    fn logs_operations(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.logs_operations)
    }

    /// Logs the newest write by itself, within a commit of this epoch.
    fn log_operation(
        &mut self,
        clock: &Clock,
        epoch: Epoch,
        participant: &Participant,
    ) -> Result<(), CommitStop> {
        let Some(write) = self.writes.last().copied() else { return Ok(()) };
        // SAFETY: as in `logged_writes`.
        let table = unsafe { write.store.as_ref() }.id();
        let bytes = write_bytes_max(self.key(write.key).len(), write.version.row().len_bytes());
        if !table.is_logged() {
            return Ok(());
        }
        self.reserve_log(transaction_bytes(1) + bytes)?;
        if let Some(mut log) = self.log.take() {
            let full_rows_before = log.writer.full_rows_before();
            log.writer.begin(0, 1);
            log.add(&write, table.0, self.key(write.key), full_rows_before);
            log.copy_operation(clock, epoch, participant);
            self.log = Some(log);
        }
        Ok(())
    }

    /// Prepares the log entry, for which there is room. The epoch of the commit was read. Returns how many units of the clock it takes.
    pub(crate) fn prepare_log(&mut self) -> u64 {
        let _log = crate::region::log();
        // Taken out so that the sets can be read meanwhile.
        let Some(mut log) = self.log.take() else { return 1 };
        // Read after the epoch: who commits in a checkpoint's first epoch, or later, sees its beginning.
        let full_rows_before = log.writer.full_rows_before();
        log.writer.begin(0, self.logged_writes().count());
        for (write, store) in self.logged_writes() {
            log.add(write, store.id().0, self.key(write.key), full_rows_before);
        }
        let units = Place::units_for(log.writer.entry().len());
        self.log = Some(log);
        units
    }

    /// Notes the place that the commit has taken in the log.
    #[inline]
    pub(crate) fn note_place(&mut self, place: Place) {
        if let Some(log) = &mut self.log {
            log.place = Some(place);
        }
    }

    /// Puts the prepared entry into the place of the commit, from where a logger takes it once the commit has ended.
    #[inline]
    pub(crate) fn fill_place(&mut self, tid: Tid, participant: &Participant) {
        let _log = crate::region::log();
        if let Some(log) = &mut self.log {
            log.fill(tid, participant);
        }
    }

    /// Fills the place of the commit if that has come to nothing.
    #[inline]
    pub(crate) fn skip_place(&mut self, participant: &Participant) {
        if let Some(log) = &mut self.log {
            log.skip(participant);
        }
    }

    /// Waits until the log has room to spare.
    #[cold]
    pub(crate) fn wait_for_log(&self) -> Result<(), Abort> {
        self.log.as_ref().map_or(Ok(()), SessionLog::wait)
    }
}

impl<I: Isolation> Transaction<'_, I> {
    /// Logs the newest write by itself, where every write is: ERMIA's evaluation (figure 10) compares that with one place for each
    /// transaction.
    #[inline]
    pub(crate) fn log_operation(&mut self) -> Result<(), Abort> {
        if self.context.logs_operations() { self.log_newest_write() } else { Ok(()) }
    }

    #[cold]
    fn log_newest_write(&mut self) -> Result<(), Abort> {
        loop {
            let participant = self.guard.participant();
            participant.begin_commit();
            let epoch = participant.global_epoch();
            // As in a commit.
            participant.move_commit(epoch);
            // The last epoch has no places; the commit says so.
            let logged = if epoch < Epoch::LAST {
                self.context.log_operation(&self.shared.clock, epoch, participant)
            } else {
                Ok(())
            };
            participant.end_commit();
            match logged {
                Ok(()) => return Ok(()),
                Err(CommitStop::Abort(abort)) => return Err(self.doom(abort)),
                Err(CommitStop::LogFull | CommitStop::NoStamp(_)) => {
                    self.context.wait_for_log().map_err(|abort| self.doom(abort))?;
                }
            }
        }
    }
}

/// Returns whether the version's row is in the log that goes with the newest checkpoint.
fn is_logged<I: Isolation>(version: Version<I>, full_rows_before: Epoch) -> bool {
    match version.author() {
        Author::At(stamp) => stamp.tid().epoch() >= full_rows_before && !version.is_deletion(),
        Author::By(_) => false,
    }
}
