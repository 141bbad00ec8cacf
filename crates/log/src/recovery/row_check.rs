//! Whether every row that the log changes is there: what a replay finds at its end, found without the rows.
//!
//! The log has some rows by their changed words only, as patches. A patch counts if it is later than the
//! latest put or delete of its key, and then needs a put, in the log or in the checkpoint, of a row with such
//! a word.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::corruption::{Corruption, CorruptionKind, DataLoss};
use super::{Replay, ReplayError};
use crate::format::{Change, Write};

/// Takes what is replayed, as often as one likes, and keeps what concerns the keys that patches change. It
/// knows these when it was given all of the log, and their rows when it was given everything after that.
#[derive(Debug, Default)]
pub(super) struct RowCheck(Mutex<Tables>);

/// By table and key.
type Tables = BTreeMap<u32, HashMap<Box<[u8]>, Patched>>;

/// What is known of a key that patches change.
#[derive(Debug, Default)]
struct Patched {
    /// The words that are set, by their indexes, each with the TID of the latest patch.
    words: BTreeMap<u32, u64>,
    /// The TID of the latest put or delete, and how many words its row has.
    base: Option<(u64, u32)>,
}

impl RowCheck {
    /// Returns whether there is anything to check.
    pub(super) fn has_patches(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Returns the corruptions of a database in `dir`, one for each table that has any.
    pub(super) fn corruptions(&self, dir: &Path) -> Vec<Corruption> {
        let tables = self.lock();
        let corruption = |(&table, keys): (&u32, &HashMap<_, Patched>)| {
            let rows = keys.values().filter(|patched| patched.is_without_row()).count() as u64;
            (rows > 0).then(|| Corruption {
                file: dir.to_path_buf(),
                offset: None,
                kind: CorruptionKind::WithoutRow { table, rows },
                loss: DataLoss::Checkpoint,
            })
        };
        tables.iter().filter_map(corruption).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Patched {
    fn take_word(&mut self, index: u32, tid: u64) {
        let latest = self.words.entry(index).or_default();
        *latest = tid.max(*latest);
    }

    /// A row of so many words; none if it was deleted.
    fn take_base(&mut self, tid: u64, len_words: u32) {
        if self.base.is_none_or(|(latest, _)| latest <= tid) {
            self.base = Some((tid, len_words));
        }
    }

    fn is_without_row(&self) -> bool {
        let Some((base, len_words)) = self.base else { return true };
        self.words.range(len_words..).any(|(_, &tid)| tid > base)
    }
}

impl Replay for RowCheck {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), writes: &[Write<'_>]) -> Result<(), ReplayError> {
        let mut tables = self.lock();
        for write in writes {
            let len_words = match &write.change {
                Change::Patch(words) => {
                    let patched = tables.entry(write.table).or_default().entry(write.key.into()).or_default();
                    words.clone().for_each(|(index, _)| patched.take_word(index, write.tid));
                    continue;
                }
                Change::Put(row) => row.len().div_ceil(8) as u32,
                Change::Delete => 0,
            };
            if let Some(patched) = tables.get_mut(&write.table).and_then(|keys| keys.get_mut(write.key)) {
                patched.take_base(write.tid, len_words);
            }
        }
        Ok(())
    }
}
