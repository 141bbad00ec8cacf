//! Handing the writes of a commit to the log.
//!
//! The log is that of Silo's engine: a buffer for each session, ordered by epochs. A stamp names its epoch, and who reads a version has a later
//! stamp than its author: so the transactions up to the end of an epoch are a prefix of the order of commits, and with each of them there
//! is all that it has read.
//!
//! Of a row that kept its length only the words are logged that changed, if there are few. The log replays in any order, as long as some
//! whole row comes before these. So the first change of a row after a checkpoint began is logged whole: checkpoints leave out what
//! changed since they began.

use ensilo_engine::{Abort, AbortReason, Store as _, TableId, Tid};
use ensilo_epoch::Epoch;
use ensilo_log::{PATCH_PAIR_BYTES_MAX, ReserveError, transaction_bytes, write_bytes_max};

use crate::commit::CommitStop;
use crate::context::{Context, WriteEntry};
use crate::isolation::Isolation;
use crate::stamp::Author;
use crate::store::ErmiaStore;

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
        if self.log.is_none() {
            return 0;
        }
        let bytes_of = |write: &WriteEntry<I>| {
            write_bytes_max(self.key(write.key).len(), write.version.row().len_bytes())
        };
        transaction_bytes(self.writes.len())
            + self.logged_writes().map(|(write, _)| bytes_of(write)).sum::<usize>()
    }

    /// Takes room in the session's log buffer, so that logging cannot fail.
    pub(crate) fn reserve_log(&mut self, bytes: usize) -> Result<(), CommitStop> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let refused = |reason| Err(CommitStop::Abort(Abort::new(reason, TableId::NONE, &[])));
        match log.reserve(bytes) {
            Ok(()) => Ok(()),
            Err(ReserveError::Full) => Err(CommitStop::LogFull),
            Err(ReserveError::Failed) => refused(AbortReason::LogFailed),
            Err(ReserveError::TooLarge) => refused(AbortReason::TransactionTooLarge),
        }
    }

    /// Puts the writes into the log buffer, from where a logger may take them at once. The epoch of the commit was read.
    pub(crate) fn log_writes(&mut self, tid: Tid) {
        // Taken out so that the sets can be read meanwhile.
        let Some(mut log) = self.log.take() else { return };
        // Read after the epoch: who commits in a checkpoint's first epoch, or later, sees its beginning.
        let full_rows_before = log.full_rows_before();
        log.begin(tid.get(), self.logged_writes().count());
        for (write, store) in self.logged_writes() {
            let (table, key, row) = (store.id().0, self.key(write.key), write.version.row());
            if write.version.is_deletion() {
                log.delete(table, key);
            } else if let Some(words) = few_changed_words(write, full_rows_before) {
                log.patch(table, key, words);
            } else {
                log.put(table, key, row.len_bytes(), row.all_words());
            }
        }
        log.publish();
        self.log = Some(log);
    }

    /// Waits until the log has a buffer to spare.
    #[cold]
    pub(crate) fn wait_for_log(&self) -> Result<(), Abort> {
        let failed = || Abort::new(AbortReason::LogFailed, TableId::NONE, &[]);
        self.log.as_ref().map_or(Ok(()), |log| log.wait_for_buffer().map_err(|_| failed()))
    }
}

/// Returns the words that a write has changed, with their indexes, if they take less room than the row, and the version before is in the log
/// that goes with the newest checkpoint.
fn few_changed_words<I: Isolation>(
    write: &WriteEntry<I>,
    full_rows_before: Epoch,
) -> Option<ChangedWords<impl Iterator<Item = (u32, u64)> + use<I>>> {
    let (before, row) = (write.before?, write.version.row());
    let is_logged = match before.author() {
        Author::At(stamp) => stamp.tid().epoch() >= full_rows_before && !before.is_deletion(),
        Author::By(_) => false,
    };
    if !is_logged || before.row().len_bytes() != row.len_bytes() {
        return None;
    }
    let pairs = before.row().all_words().zip(row.all_words()).zip(0..);
    let changed = pairs.filter_map(|((before, word), index)| (before != word).then_some((index, word)));
    let left = changed.clone().count();
    (left * PATCH_PAIR_BYTES_MAX < row.len_bytes()).then_some(ChangedWords { changed, left })
}

/// Words of which it is known how many they are.
struct ChangedWords<W> {
    changed: W,
    left: usize,
}

impl<W: Iterator> Iterator for ChangedWords<W> {
    type Item = W::Item;

    #[inline]
    fn next(&mut self) -> Option<W::Item> {
        self.left = self.left.saturating_sub(1);
        self.changed.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<W: Iterator> ExactSizeIterator for ChangedWords<W> {}
