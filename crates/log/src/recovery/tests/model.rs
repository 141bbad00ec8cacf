//! Tables in maps: one that takes writes in any order, as a replay does, and one that takes transactions in
//! their own.

use std::collections::BTreeMap;

use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::sync::Mutex;

use crate::format::{Change, Write, epoch_of};
use crate::recovery::{Replay, ReplayError};

pub(crate) type RowKey = (u32, Vec<u8>);
pub(crate) type Rows = BTreeMap<RowKey, Vec<u8>>;
/// With the TID that changed each row last.
pub(crate) type Versions<R> = BTreeMap<RowKey, (u64, R)>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Put(Vec<u8>),
    Patch(Vec<(u32, u64)>),
    Delete,
}

#[derive(Debug, Clone)]
pub(crate) struct OneWrite {
    pub(crate) table: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) op: Op,
}

#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    pub(crate) tid: u64,
    pub(crate) writes: Vec<OneWrite>,
}

/// Returns what all transactions up to an epoch make of empty tables, one after the other.
pub(crate) fn in_order<'t>(transactions: impl IntoIterator<Item = &'t Transaction>) -> Rows {
    let mut sorted: Vec<&Transaction> = transactions.into_iter().collect();
    sorted.sort_by_key(|transaction| transaction.tid);
    let mut rows = Rows::new();
    for write in sorted.iter().flat_map(|transaction| &transaction.writes) {
        let key = (write.table, write.key.clone());
        match &write.op {
            Op::Put(row) => {
                rows.insert(key, row.clone());
            }
            Op::Patch(words) => {
                let row = rows.get_mut(&key).expect("a patch of a row that is there");
                words.iter().for_each(|&(index, word)| set_word(row, index, word));
            }
            Op::Delete => {
                rows.remove(&key);
            }
        }
    }
    rows
}

pub(crate) fn set_word(row: &mut [u8], index: u32, word: u64) {
    let start = index as usize * 8;
    let end = row.len().min(start + 8);
    row[start..end].copy_from_slice(&word.to_le_bytes()[..end - start]);
}

/// Takes writes in any order, but those that were said not to come any more.
#[derive(Debug, Default)]
pub(crate) struct AnyOrder {
    rows: Mutex<BTreeMap<RowKey, Entry>>,
    /// The latest frontier that anybody has folded up to.
    frontier: AtomicU64,
}

#[derive(Debug, Default)]
struct Entry {
    base: Option<(u64, Option<Vec<u8>>)>,
    words: BTreeMap<u32, (u64, u64)>,
}

impl AnyOrder {
    pub(crate) fn take(&self, write: &Write<'_>) {
        let mut rows = self.rows.lock().unwrap();
        let entry = rows.entry((write.table, write.key.to_vec())).or_default();
        let mut base = |row| {
            if entry.base.as_ref().is_none_or(|&(tid, _)| tid <= write.tid) {
                entry.base = Some((write.tid, row));
            }
        };
        match &write.change {
            Change::Put(row) => base(Some(row.to_vec())),
            Change::Delete => base(None),
            Change::Patch(words) => {
                for (index, word) in words.clone() {
                    let slot = entry.words.entry(index).or_default();
                    if slot.0 <= write.tid {
                        *slot = (write.tid, word);
                    }
                }
            }
        }
    }

    /// Returns the latest frontier.
    pub(crate) fn frontier(&self) -> Epoch {
        Epoch::new(self.frontier.load(Ordering::SeqCst))
    }

    /// Returns the rows, once everything has come.
    pub(crate) fn rows(&self) -> Rows {
        let mut rows = Rows::new();
        for (key, entry) in self.rows.lock().unwrap().iter() {
            let (base, row) = entry.base.as_ref().expect("a patch whose row never came");
            let Some(mut row) = row.clone() else { continue };
            for (&index, &(tid, word)) in &entry.words {
                if tid > *base {
                    set_word(&mut row, index, word);
                }
            }
            rows.insert(key.clone(), row);
        }
        rows
    }
}

impl Replay for AnyOrder {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), writes: &[Write<'_>]) -> Result<(), ReplayError> {
        for write in writes {
            self.take(write);
            // Whoever folds meanwhile may know no better.
            let (epoch, frontier) = (epoch_of(write.tid), self.frontier());
            assert!(epoch >= frontier, "a write of epoch {epoch} after all before {frontier}");
        }
        Ok(())
    }

    fn fold(&self, (): &mut (), frontier: Epoch) -> Result<(), ReplayError> {
        self.frontier.fetch_max(frontier.get(), Ordering::SeqCst);
        Ok(())
    }
}
