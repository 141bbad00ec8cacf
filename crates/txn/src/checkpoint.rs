//! Walking a store for a checkpoint, while transactions go on.
//!
//! # Source
//! SiloR (OSDI 2014) §4.2: no transaction, no snapshot; each record is read as it is when the walk comes by. What has changed since
//! the checkpoint began is in the log, and left out.

use std::ops::{Bound, ControlFlow};

use ensilo_epoch::{Epoch, Guard, Participant};
use ensilo_index::{Direction, Lookup, NodeStamp, ScanVisitor};
use ensilo_sync::cpu_relax;

use crate::engine::Engine;
use crate::protocol::Protocol;
use crate::record::RecordPtr;
use crate::store::Store;
use crate::tid::Tid;

/// So many records are visited under one pin: a walk of minutes keeps no memory from being freed.
const BATCH_LEN: usize = 512;

/// A record as a checkpoint keeps it.
#[derive(Debug)]
pub struct CheckpointRecord<'a> {
    /// The key's bytes.
    pub key: &'a [u8],
    /// The TID of the version.
    pub tid: Tid,
    /// The row's words, the last one padded with zero bytes.
    pub words: &'a [u64],
    /// The row's length in bytes.
    pub len_bytes: usize,
}

impl<P: Protocol> Engine<P> {
    /// Hands the records of a store to `each`, in the order of their keys, except those that changed in epoch `before` or later. All
    /// commits with earlier epochs are complete. Ends early when `each` or `pause` breaks, or when the store is dropped.
    ///
    /// `each` is called with memory held back from being freed, `pause` now and then without: that is where to wait.
    ///
    /// A record that somebody holds locked for unreasonably long is waited for.
    pub fn walk(
        &self,
        store: &Store,
        before: Epoch,
        mut each: impl FnMut(CheckpointRecord<'_>) -> ControlFlow<()>,
        mut pause: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let participant = self.epochs().participant();
        let mut last = None;
        loop {
            let visited = walk_batch(&participant, store, before, last.as_deref(), &mut each)?;
            pause()?;
            if visited.is_none() {
                return ControlFlow::Continue(());
            }
            last = visited;
        }
    }
}

impl<P: Protocol> Engine<P> {
    /// The largest key of a store; deleted ones count until they have left the tree.
    #[must_use]
    pub fn last_key(&self, store: &Store) -> Option<Vec<u8>> {
        let participant = self.epochs().participant();
        let mut last = LastKey(None);
        let all = (Bound::Unbounded, Bound::Unbounded);
        store.index().scan(all, Direction::Reverse, &participant.pin(), &mut last);
        last.0
    }
}

/// Takes the first key that it is shown.
struct LastKey(Option<Vec<u8>>);

impl ScanVisitor for LastKey {
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], _: u64) -> ControlFlow<()> {
        self.0 = Some(key.to_vec());
        ControlFlow::Break(())
    }
}

/// Visits the records after the key `after`; returns the last one's key if there may be more.
fn walk_batch(
    participant: &Participant,
    store: &Store,
    before: Epoch,
    after: Option<&[u8]>,
    each: &mut impl FnMut(CheckpointRecord<'_>) -> ControlFlow<()>,
) -> ControlFlow<(), Option<Vec<u8>>> {
    let guard = participant.pin();
    if store.is_dropped() {
        return ControlFlow::Continue(None);
    }
    let mut batch = Batch {
        store,
        guard: &guard,
        before,
        each,
        words: Vec::new(),
        left: BATCH_LEN,
        last: None,
        is_over: false,
    };
    let low = after.map_or(Bound::Unbounded, Bound::Excluded);
    store.index().scan((low, Bound::Unbounded), Direction::Forward, &guard, &mut batch);
    if batch.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(batch.last) }
}

/// One pin's part of a walk.
struct Batch<'a, 'g, E> {
    store: &'a Store,
    guard: &'a Guard<'g>,
    before: Epoch,
    each: &'a mut E,
    words: Vec<u64>,
    left: usize,
    /// The key at which the batch was full.
    last: Option<Vec<u8>>,
    /// Whether `each` had enough.
    is_over: bool,
}

impl<E: FnMut(CheckpointRecord<'_>) -> ControlFlow<()>> ScanVisitor for Batch<'_, '_, E> {
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        if let Some((tid, len_bytes)) = self.copy(key, value)
            && (self.each)(CheckpointRecord { key, tid, words: &self.words, len_bytes }).is_break()
        {
            self.is_over = true;
            return ControlFlow::Break(());
        }
        self.left -= 1;
        if self.left == 0 {
            self.last = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl<E> Batch<'_, '_, E> {
    /// Copies the row of a record; `None` if the checkpoint leaves it out.
    fn copy(&mut self, key: &[u8], mut value: u64) -> Option<(Tid, usize)> {
        loop {
            // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
            let record = unsafe { RecordPtr::from_index_value(value) };
            let Some(word) = record.stable_tid() else { continue };
            if !word.is_latest() {
                cpu_relax();
                let Lookup::Found(newer) = self.store.index().get(key, self.guard) else { return None };
                value = newer;
                continue;
            }
            if word.is_absent() || word.tid().epoch() >= self.before {
                return None;
            }
            let row = record.row();
            self.words.clear();
            row.copy_to(&mut self.words);
            if record.still(word) {
                return Some((word.tid(), row.len_bytes()));
            }
        }
    }
}
