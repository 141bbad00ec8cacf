//! What a worker keeps from one transaction to the next: emptied sets with their memory, garbage, its last TID.

use std::sync::Arc;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::parts::{HeldMemory, Lookups, NodeSet, PointerMap, SetBuffer, spread};
use ensilo_engine::{Abort, AbortReason, RawRow, TableId, Tid, TransactionNumber, WorkerCounters};
use ensilo_epoch::{Epoch, Guard, OpenSnapshots};
use ensilo_index::NodeStamp;
use ensilo_log::LogWriter;
use ensilo_slab::Pool;
use ensilo_sync::atomic::AtomicU64;

use super::contention::Contention;
use super::garbage::Garbage;
use super::lost_write::LostWrites;
use super::protection::Protection;
use super::write_set::{InstallPlan, KeySpan, RecordChange, RowSpan, WALKED_MAX, WriteEntry};
use crate::handle::RecordHandle;
use crate::record::RecordPtr;
use crate::shared::SiloShared;
use crate::store::Store;
use crate::tid::TidWord;

/// Stands for "not in the read set": own placeholders are validated by their lock alone, and what is added to is read late.
pub(super) const NOT_READ: u32 = u32::MAX;

/// A record that was read, and the version that was seen.
#[derive(Copy, Clone, Debug)]
pub(super) struct ReadEntry {
    pub(super) record: RecordPtr,
    pub(super) word: TidWord,
    pub(super) key: KeySpan,
}

/// What a context holds of a transaction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing. The beginning of one makes it `Open`.
    Idle,
    /// Nothing, and the next one will be [protected](super::protection).
    IdleWithTurn,
    /// One is under way. Its end makes it `Idle`, its vote to commit `Prepared`.
    Open,
    /// One waits for its decision, which makes it `Open` again.
    Prepared,
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(super) phase: Phase,
    /// Of the transaction that is under way, or the last one.
    pub(super) number: TransactionNumber,
    /// Why the running transaction cannot commit any more, if it cannot.
    pub(super) doomed: Option<Abort>,
    /// With their keys where a handle may be written through; an abort names its key then.
    pub(super) reads: SetBuffer<ReadEntry>,
    pub(super) writes: SetBuffer<WriteEntry>,
    /// The [bits](bit_of) of the records in `writes`: a record without its bit here is not among them.
    written_bits: u64,
    /// Positions in `writes` by record address, kept once they are more than [`WALKED_MAX`].
    pub(super) written: PointerMap,
    pub(super) lost: LostWrites,
    pub(super) nodes: NodeSet,
    /// The largest TID of a deletion that may have left a node on which the transaction relies, or into which it inserts.
    removed: Tid,
    pub(super) keys: SetBuffer<u8>,
    pub(super) rows: SetBuffer<AtomicU64>,
    /// The write set's lock order: address and position.
    pub(super) lock_order: SetBuffer<(usize, u32)>,
    pub(super) lookups: Lookups,
    /// What the sets hold beyond what they keep.
    pub(super) held: HeldMemory,
    pub(super) last_tid: Tid,
    pub(crate) garbage: Garbage,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) history: Vec<TransactionRecord>,
    /// What the running transaction read, when histories are recorded.
    pub(super) recording: TransactionRecord,
    /// The stores of what a prepared transaction has read, when histories are recorded.
    pub(super) prepared_reads: Vec<TableId>,
    /// The worker's way into the log, if the database has one.
    pub(crate) log: Option<LogWriter>,
    /// While committing: a record with a version of an earlier epoch is logged whole.
    pub(super) full_rows_before: Epoch,
    /// While committing: how many writes go to the log.
    pub(super) logged_count: usize,
    /// While prepared: how many of the records and nodes that were read are registered.
    pub(super) registered: usize,
    /// Of the rows that transactions have added to.
    pub(super) contention: Contention,
    /// The snapshots that others have overtaken, as they were found last.
    pub(super) open_snapshots: OpenSnapshots,
    /// What the transaction has registered, if it is protected.
    pub(super) protection: Option<Box<Protection>>,
}

/// Returns one bit of 64 for a record: most transactions write so few that most of what they read has none of their bits.
#[inline]
fn bit_of(record: RecordPtr) -> u64 {
    1 << (spread(record.address()) >> (u64::BITS - 6))
}

impl Context {
    /// Returns the context of a worker of a database with this pool.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Context {
            phase: Phase::Idle,
            number: TransactionNumber::fresh(),
            doomed: None,
            reads: SetBuffer::new(),
            writes: SetBuffer::new(),
            written_bits: 0,
            written: PointerMap::default(),
            lost: LostWrites::new(),
            nodes: NodeSet::default(),
            removed: Tid::ZERO,
            keys: SetBuffer::new(),
            rows: SetBuffer::new(),
            lock_order: SetBuffer::new(),
            lookups: Lookups::default(),
            held: HeldMemory::new(pool),
            last_tid: Tid::ZERO,
            garbage: Garbage::default(),
            counters: Arc::default(),
            history: Vec::new(),
            recording: TransactionRecord::default(),
            prepared_reads: Vec::new(),
            log: None,
            full_rows_before: Epoch::new(0),
            logged_count: 0,
            registered: 0,
            contention: Contention::default(),
            open_snapshots: OpenSnapshots::default(),
            protection: None,
        }
    }

    /// Returns a handle to a record that the transaction has found, with its place in the read set.
    #[inline(always)]
    pub(super) fn handle(&self, record: RecordPtr, entry: u32) -> RecordHandle {
        RecordHandle { record, number: self.number, entry }
    }

    #[inline(always)]
    pub(super) fn has_found(&self, found: RecordHandle) -> bool {
        found.number == self.number
    }

    /// # Panics
    /// When another transaction has found the record.
    #[inline(always)]
    pub(super) fn refuse_others(&self, found: RecordHandle) {
        assert!(self.has_found(found), "a handle of another transaction");
    }

    /// Empties the sets. Their memory stays, unless it is out of the ordinary.
    #[inline]
    pub(super) fn clear(&mut self) {
        debug_assert!(self.protection.is_none(), "what is registered is released before");
        self.reads.clear();
        self.keys.clear();
        self.rows.clear();
        if !self.writes.is_empty() {
            self.writes.clear();
            self.written_bits = 0;
            self.lock_order.clear();
            self.written.clear();
            self.lost.clear();
        }
        if !self.nodes.is_empty() {
            self.nodes.clear();
        }
        self.removed = Tid::ZERO;
        self.lookups.clear();
        self.held.release();
    }

    /// Returns whether the transaction has written nothing and relies on one record at most.
    #[inline]
    pub(super) fn has_single_read(&self) -> bool {
        self.doomed.is_none()
            && self.reads.len() <= 1
            && self.writes.is_empty()
            && self.nodes.is_empty()
            && self.protection.is_none()
    }

    /// Empties the sets of a transaction that [has looked once](Self::has_single_read).
    #[inline]
    pub(super) fn clear_single_read(&mut self) {
        self.reads.clear();
        self.removed = Tid::ZERO;
        self.keys.clear();
        self.rows.clear();
        self.lookups.clear();
        self.held.release();
    }

    /// Returns the largest TID among the versions that were read, deletions that have left the tree included.
    #[inline]
    pub(super) fn largest_tid_seen(&self) -> Tid {
        let read = self.reads.iter().map(|read| read.word.tid()).max();
        read.map_or(self.removed, |read| read.max(self.removed))
    }

    /// Notes that what the transaction misses may have been deleted by commits with TIDs up to this one.
    #[inline]
    pub(super) fn note_removed(&mut self, latest: Tid) {
        self.removed = self.removed.max(latest);
    }

    /// Returns where `record` stands in the write set.
    #[inline]
    pub(super) fn own_write(&self, record: RecordPtr) -> Option<usize> {
        if self.written_bits & bit_of(record) == 0 { None } else { self.find_write(record) }
    }

    #[inline(never)]
    fn find_write(&self, record: RecordPtr) -> Option<usize> {
        if self.writes.len() > WALKED_MAX {
            return self.written.get(record.address()).map(|at| at as usize);
        }
        self.writes.iter().position(|write| write.record == record)
    }

    #[inline]
    pub(super) fn push_key(&mut self, key: &[u8]) -> Result<KeySpan, Abort> {
        self.keys.reserve(key.len(), &mut self.held)?;
        Ok(self.push_key_reserved(key))
    }

    /// Adds a key, for which there is room.
    #[inline]
    fn push_key_reserved(&mut self, key: &[u8]) -> KeySpan {
        let start = self.keys.end();
        self.keys.extend_from_slice_reserved(key);
        KeySpan { start, len: key.len() as u32 }
    }

    #[inline]
    pub(super) fn key(&self, span: KeySpan) -> &[u8] {
        span.of(&self.keys)
    }

    #[inline]
    pub(super) fn push_read(&mut self, record: RecordPtr, word: TidWord, key: KeySpan) -> Result<u32, Abort> {
        self.reads.push(ReadEntry { record, word, key }, &mut self.held)
    }

    /// Copies a row into the transaction's row words.
    #[inline]
    pub(super) fn push_row(
        &mut self,
        row: impl IntoIterator<Item = u64>,
        len_bytes: usize,
    ) -> Result<RowSpan, Abort> {
        self.rows.reserve(len_bytes.div_ceil(8), &mut self.held)?;
        let start = self.rows.end();
        self.rows.extend_reserved(row.into_iter().map(AtomicU64::new));
        debug_assert_eq!(self.rows.len() - start as usize, len_bytes.div_ceil(8));
        Ok(RowSpan { start, len: len_bytes as u32 })
    }

    #[inline]
    pub(super) fn push_patch(&mut self, words: &[(u32, u64)]) -> Result<RowSpan, Abort> {
        self.rows.reserve(2 * words.len(), &mut self.held)?;
        let start = self.rows.end();
        // Zeros first: to push one by one is to look at the capacity for each.
        self.rows.extend_reserved((0..2 * words.len()).map(|_| AtomicU64::new(0)));
        let (pairs, _) = self.rows[start as usize..].as_chunks_mut();
        for (pair, &(index, word)) in pairs.iter_mut().zip(words) {
            *pair = [AtomicU64::new(u64::from(index)), AtomicU64::new(word)];
        }
        Ok(RowSpan { start, len: words.len() as u32 })
    }

    /// Returns the words of a row in the transaction's row words.
    #[inline]
    pub(super) fn row_words(&self, span: RowSpan) -> &[AtomicU64] {
        &self.rows[span.start as usize..][..(span.len as usize).div_ceil(8)]
    }

    #[inline]
    pub(super) fn row(&self, span: RowSpan) -> RawRow<'_> {
        RawRow::new(self.row_words(span), span.len as usize)
    }

    /// Returns the words of a patch, each with its index in the row.
    #[inline]
    pub(super) fn patch_words(&self, patch: RowSpan) -> impl ExactSizeIterator<Item = (usize, u64)> {
        patch.patch_words(&self.rows)
    }

    #[inline]
    pub(super) fn push_write(&mut self, write: WriteEntry) -> Result<(), Abort> {
        self.reserve_write()?;
        self.push_write_reserved(write);
        Ok(())
    }

    /// Makes room for one more write, of this key, so that noting it cannot fail.
    #[inline]
    pub(super) fn reserve_insert(&mut self, key: &[u8]) -> Result<(), Abort> {
        self.keys.reserve(key.len(), &mut self.held)?;
        self.reserve_write()
    }

    /// Notes the insert of a placeholder, for which there is room.
    #[inline]
    pub(super) fn push_insert_reserved(&mut self, placeholder: RecordPtr, key: &[u8]) {
        let key = self.push_key_reserved(key);
        self.push_write_reserved(WriteEntry {
            record: placeholder,
            observed: TidWord::PLACEHOLDER,
            change: RecordChange::Placed,
            key,
            entry: NOT_READ,
            is_created: true,
            plan: InstallPlan::Open,
        });
    }

    #[inline]
    fn reserve_write(&mut self) -> Result<(), Abort> {
        self.writes.reserve(1, &mut self.held)?;
        if self.writes.len() >= WALKED_MAX && self.written.is_full() {
            self.held.add(self.written.growth_bytes(1))?;
        }
        Ok(())
    }

    #[inline]
    fn push_write_reserved(&mut self, write: WriteEntry) {
        self.written_bits |= bit_of(write.record);
        self.writes.push_reserved(write);
        if self.writes.len() > WALKED_MAX {
            self.map_writes();
        }
    }

    /// Puts the last write into the map, and with the first that is too many for a walk all before it.
    fn map_writes(&mut self) {
        let last = self.writes.len() - 1;
        let first = if last == WALKED_MAX { 0 } else { last };
        // Begins there instead of skipping what comes before, which is a walk.
        for (at, write) in (first as u32..).zip(&self.writes[first..]) {
            self.written.insert(write.record.address(), at);
        }
    }

    /// Returns whether a record with this version, which is not one of this transaction's own writes, may stand in the place of one
    /// that is. The transaction began in epoch `began`.
    #[inline]
    pub(super) fn may_hide_write(&self, word: TidWord, began: Epoch) -> bool {
        !self.writes.is_empty() && (word.tid().epoch() >= began || word.tid() == Tid::ZERO)
    }

    /// Returns whether a key that is missing from a node with this latest removal may be one that this transaction has written. It began
    /// in epoch `began`.
    #[inline]
    pub(super) fn may_miss_write(&self, latest: Tid, began: Epoch) -> bool {
        !self.writes.is_empty() && (latest.epoch() >= began || self.lost.has_revived())
    }

    /// Returns whether this transaction has written the key.
    #[cold]
    pub(super) fn has_written(&mut self, store: TableId, key: &[u8]) -> Result<bool, Abort> {
        self.lost.has_written(&self.writes, &self.keys, (store, key), &mut self.held)
    }

    /// Notes that the last write is an insert over a deleted record.
    pub(super) fn note_revived(&mut self) -> Result<(), Abort> {
        self.lost.note_revived(self.writes.end() - 1, &mut self.held)
    }

    /// After a range was read, in nodes with this latest removal: whether the records of own writes are still where they were. A deletion
    /// that is seen here and has not left the tree ends the attempt as well; it could not commit. The transaction began in epoch `began`.
    #[inline]
    pub(super) fn check_writes_in_place(&self, latest: Tid, began: Epoch) -> Result<(), Abort> {
        if self.may_miss_write(latest, began) {
            self.find_lost_write(latest.epoch() >= began)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn find_lost_write(&self, is_any_lost: bool) -> Result<(), Abort> {
        let lost = self.lost.find(&self.writes, is_any_lost);
        lost.map_or(Ok(()), |write| Err(self.abort_at(AbortReason::ReadValidation, write.record, write.key)))
    }

    /// Notes a store in which a key is missing or a range is read.
    #[inline]
    pub(super) fn rely_on_nodes_of(&mut self, store: &Store) -> Result<(), Abort> {
        self.nodes.note_store(store.id(), &mut self.held)
    }

    /// Adds a node to the node set; false when it was there with another version, so that the transaction cannot commit.
    #[inline]
    pub(super) fn rely_on_node(
        &mut self,
        shared: &SiloShared,
        guard: &Guard<'_>,
        stamp: NodeStamp,
    ) -> Result<bool, Abort> {
        Ok(self.nodes.add(stamp, &mut self.held)? && self.protect_node(shared, guard, stamp)?)
    }

    /// Returns an abort that showed at `record`. It names the key if that was kept.
    #[cold]
    pub(super) fn abort_at(&self, reason: AbortReason, record: RecordPtr, key: KeySpan) -> Abort {
        Abort::new(reason, record.store(), if key.is_kept() { self.key(key) } else { &[] })
    }
}
