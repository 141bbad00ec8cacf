//! A thread's way into the engine, and what lies beside it: scratch memory that is used again by every
//! statement, and ids to hand out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ensilo_engine::{Addition, Engine};
use ensilo_epoch::Epoch;
use ensilo_row::{KeyBuf, RowBuf, RowId, WordPatch};

use crate::Result;
use crate::attempt::backoff::Jitter;
use crate::entry_changes::EntryChanges;
use crate::older_rows::{ConvertedRow, LONG_ROW_BYTES};
use crate::queue::{Queues, WrittenTable};
use crate::records::{RecordCounts, RecordTally};
use crate::row_ids::{RowIdSource, RowIds};
use crate::session::control::SessionControl;
use crate::worker::Lendable;

/// A row is changed in place where no more than this part of its words differ, ...
const CHANGED_SHARE: usize = 4;
/// ... and no more than so many.
const CHANGED_WORDS_MAX: usize = 512;

/// One thread's way into the engine, and its scratch memory.
pub(crate) struct ThreadWorker<E: Engine> {
    pub(crate) raw: E::Session,
    pub(crate) local: Local<E::Found>,
}

impl<E: Engine> Lendable for ThreadWorker<E> {
    fn forget_use(&mut self) {
        self.local.end_use();
        self.local.control = None;
    }
}

/// What a thread keeps beside its way into the engine. Between two statements the scratch holds nothing that
/// matters.
#[derive(Debug)]
pub(crate) struct Local<F> {
    /// The database that the worker belongs to: tables of another one are refused.
    pub(crate) database: u64,
    /// What may stop the transaction from outside, if it is a session's.
    pub(crate) control: Option<Arc<SessionControl>>,
    /// Tells the worker from all others of its database.
    pub(crate) number: u64,
    /// How many transactions the worker has begun, and rows it has written.
    pub(crate) steps: u64,
    /// Whether something is to be done about cursors or long rows when the transaction ends, or else when the next one begins.
    has_leftovers: bool,
    /// If the transaction under way uses a cursor, whether it has committed.
    cursor_use: Option<CursorUse>,
    pub(crate) queues: Arc<Queues>,
    /// What the transaction has written in observed tables.
    pub(crate) written: Vec<WrittenTable>,
    pub(crate) row_ids: RowIds,
    /// The latest epoch in which numbers were reserved that one of the worker's transactions has got. It stays with those that follow: a closure
    /// may keep a number from one attempt to the next.
    numbers_epoch: Epoch,
    pub(crate) records: RecordTally,
    pub(crate) jitter: Jitter,
    /// The row that is written.
    pub(crate) row: RowBuf,
    /// The row that it replaces.
    pub(crate) before: RowBuf,
    /// The words of `row` that are others than in `before`.
    pub(crate) changed_words: Vec<WordPatch>,
    /// The row that is read, if it is of an older schema.
    pub(crate) converted: ConvertedRow,
    /// What an entry of an index holds: the primary key.
    pub(crate) entry: RowBuf,
    /// What a statement does to the entries of a row.
    pub(crate) entry_changes: EntryChanges,
    pub(crate) keys: Vec<KeyBuf>,
    /// Keys that are loaded in advance.
    pub(crate) prefetched: Vec<(usize, KeyBuf)>,
    pub(crate) found: Vec<Option<F>>,
    /// What is added to numbers of a row, and the words of the row with the sums.
    pub(crate) additions: Vec<Addition>,
    pub(crate) sums: Vec<WordPatch>,
    /// Whether what is added to is read first: in a session's transaction, which nobody runs again, and where an attempt has found no room for a sum.
    pub(crate) adds_by_reading: bool,
}

/// A transaction, and what it has written: what is read at one point stays as it was read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransactionStep {
    database: u64,
    worker: u64,
    step: u64,
}

/// The use of cursors in one transaction: whether that has committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct CursorUse(Arc<AtomicBool>);

impl CursorUse {
    /// Returns whether it is the use in the same transaction.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether the transaction has committed, so that a cursor goes on behind what it gave there.
    pub(crate) fn has_committed(&self) -> bool {
        // Relaxed: see `end_leftovers`.
        self.0.load(Ordering::Relaxed)
    }
}

impl<F> Local<F> {
    pub(crate) fn new(
        database: u64,
        number: u64,
        row_ids: &Arc<RowIdSource>,
        records: &Arc<RecordCounts>,
        queues: &Arc<Queues>,
    ) -> Self {
        Local {
            database,
            control: None,
            number,
            steps: 0,
            has_leftovers: false,
            cursor_use: None,
            queues: Arc::clone(queues),
            written: Vec::new(),
            row_ids: RowIds::new(Arc::clone(row_ids)),
            numbers_epoch: Epoch::new(0),
            records: records.tally(),
            jitter: Jitter::new(database << 32 | number),
            row: RowBuf::new(),
            before: RowBuf::new(),
            changed_words: Vec::new(),
            converted: ConvertedRow::default(),
            entry: RowBuf::new(),
            entry_changes: EntryChanges::default(),
            keys: Vec::new(),
            prefetched: Vec::new(),
            found: Vec::new(),
            additions: Vec::new(),
            sums: Vec::new(),
            adds_by_reading: false,
        }
    }

    /// Returns an id for a new row.
    #[inline]
    pub(crate) fn next_row_id(&mut self) -> RowId {
        self.row_ids.next(self.control.as_ref().and_then(|control| control.row_ids()))
    }

    /// Makes `changed_words` the words of `row` that are others than in `before`, one of them at least. Returns `false` where the rows are not as long, or
    /// so many words differ that the row is better written as a whole.
    pub(crate) fn note_changed_words(&mut self) -> bool {
        note_changed_words(&self.row, &self.before, &mut self.changed_words)
    }

    /// The same of the record in `entry`, which takes the place of another one.
    pub(crate) fn note_changed_words_of_entry(&mut self, before: &RowBuf) -> bool {
        note_changed_words(&self.entry, before, &mut self.changed_words)
    }

    /// Ends the use for a session or a job.
    pub(crate) fn end_use(&mut self) {
        self.end_leftovers(false);
        self.row_ids.end_use(self.control.as_ref().and_then(|control| control.row_ids()));
    }

    /// Notes that the worker begins a transaction.
    #[inline(always)]
    pub(crate) fn begin_transaction(&mut self) {
        self.steps += 1;
        if self.is_to_be_ended() {
            self.end_leftovers(false);
        }
    }

    /// Notes that the scratch has held a long row, or may have: what it took goes back.
    #[cold]
    pub(crate) fn note_long_row(&mut self) {
        self.has_leftovers = true;
    }

    /// Ends the use of cursors, and gives back what long rows took.
    #[cold]
    fn end_leftovers(&mut self, has_committed: bool) {
        self.has_leftovers = false;
        if let Some(cursor_use) = self.cursor_use.take()
            && has_committed
        {
            // Relaxed: whoever uses the cursor next knows by other means that the transaction has ended.
            cursor_use.0.store(true, Ordering::Relaxed);
        }
        self.row.shrink_to(LONG_ROW_BYTES);
        self.before.shrink_to(LONG_ROW_BYTES);
        self.converted.shrink_to(LONG_ROW_BYTES);
    }

    /// Notes that the transaction has got numbers of a sequence that were reserved in this epoch: what it returns, or does, is stored only once that is.
    pub(crate) fn note_numbers(&mut self, epoch: Epoch) {
        self.numbers_epoch = self.numbers_epoch.max(epoch);
    }

    /// Returns the epoch that has to be durable before the transaction under way counts as stored, which is `epoch` without numbers of
    /// sequences.
    #[inline(always)]
    pub(crate) fn epoch_with_numbers(&self, epoch: Epoch) -> Epoch {
        epoch.max(self.numbers_epoch)
    }

    /// Returns what says whether the transaction under way has committed, for a cursor that is used in it.
    pub(crate) fn cursor_use(&mut self) -> &CursorUse {
        self.has_leftovers = true;
        self.cursor_use.get_or_insert_default()
    }

    /// Notes that the transaction has committed, or has ended well if it was a snapshot: its cursors have, and long rows go.
    #[inline(always)]
    pub(crate) fn end_transaction(&mut self) {
        if self.is_to_be_ended() {
            self.end_leftovers(true);
        }
    }

    /// Returns whether something is to be done about cursors or long rows.
    #[inline(always)]
    fn is_to_be_ended(&self) -> bool {
        self.has_leftovers || self.converted.has_held_long
    }

    /// Returns the point that what is read now belongs to.
    pub(crate) fn transaction_step(&self) -> TransactionStep {
        TransactionStep { database: self.database, worker: self.number, step: self.steps }
    }

    /// Checks whether a statement may begin, or a scan go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled),
    /// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded).
    #[inline(always)]
    pub(crate) fn check_control(&self) -> Result<()> {
        match &self.control {
            None => Ok(()),
            Some(control) => control.check(),
        }
    }
}

fn note_changed_words(row: &RowBuf, before: &RowBuf, changed_words: &mut Vec<WordPatch>) -> bool {
    let (words, words_before) = (row.words(), before.words());
    if row.len_bytes() != before.len_bytes() || words.is_empty() {
        return false;
    }
    let changed = (0..).zip(words.iter().zip(words_before)).filter(|(_, (now, before))| now != before);
    let changed_max = (words.len() / CHANGED_SHARE).min(CHANGED_WORDS_MAX);
    changed_words.clear();
    changed_words.extend(changed.map(|(at, (&now, _))| (at, now)).take(changed_max + 1));
    if changed_words.is_empty() {
        changed_words.push((0, words[0]));
    }
    changed_words.len() <= changed_max
}

#[cfg(test)]
mod tests {
    use ensilo_row::{ColumnType, Order, Schema, SchemaChange, Value};

    use super::LONG_ROW_BYTES;
    use crate::long_values::INLINE_LEN_MAX;
    use crate::{Database, Error};

    #[test]
    fn what_long_rows_took_goes_back_when_the_transaction_has_ended() {
        let db = Database::in_memory().unwrap();
        // Of many columns: a value that is long by itself does not lie in its row.
        let builder = Schema::builder("t").column("id", ColumnType::U32).column("kind", ColumnType::U32);
        let texts = 0..2 * LONG_ROW_BYTES / INLINE_LEN_MAX + 1;
        let schema = texts
            .clone()
            .fold(builder, |builder, number| builder.column(format!("text{number}"), ColumnType::Text))
            .key([("id", Order::Ascending)])
            .index("by_kind", [("kind", Order::Ascending)])
            .build()
            .unwrap();
        let table = db.create_dynamic_table(schema).unwrap();
        let row = |id: u32| -> Vec<Value> {
            let texts = texts.clone().map(|_| Value::from("x".repeat(INLINE_LEN_MAX)));
            [id.into(), 0u32.into()].into_iter().chain(texts).collect()
        };
        for (id, commits) in [(1, true), (2, false)] {
            let outcome = db.transact(|tx| {
                table.insert(tx, &row(id))?;
                table.update(tx, &[id.into()], &[("kind", 1u32.into())])?;
                let local = &tx.inner.local;
                assert!(local.row.capacity_bytes() > LONG_ROW_BYTES);
                assert!(local.before.capacity_bytes() > LONG_ROW_BYTES);
                if commits { Ok(()) } else { Err(Error::rollback("given up")) }
            });
            assert_eq!(outcome.is_ok(), commits);
            db.transact(|tx| {
                let local = &tx.inner.local;
                assert!(local.row.capacity_bytes() <= LONG_ROW_BYTES);
                assert!(local.before.capacity_bytes() <= LONG_ROW_BYTES);
                Ok(())
            })
            .unwrap();
        }
        db.change_table("t", &SchemaChange::new().add("level", ColumnType::U16, 3u16)).unwrap();
        let changed = db.open_dynamic_table("t").unwrap();
        db.transact(|tx| {
            assert!(changed.get(tx, &[1u32.into()])?.is_some());
            assert!(tx.inner.local.converted.has_held_long);
            Ok(())
        })
        .unwrap();
        db.transact(|tx| {
            assert!(!tx.inner.local.converted.has_held_long);
            Ok(())
        })
        .unwrap();
        let mut too_long = row(3);
        too_long[2] = "x".repeat(33 << 20).into();
        too_long.push(3u16.into());
        assert!(matches!(db.transact(|tx| changed.insert(tx, &too_long)), Err(Error::RowTooLarge(_))));
        db.transact(|tx| {
            assert!(tx.inner.local.row.capacity_bytes() <= LONG_ROW_BYTES);
            Ok(())
        })
        .unwrap();
    }
}
