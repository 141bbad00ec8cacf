//! What a transaction sees of a record that it has written itself.

use ensilo_engine::{Abort, AbortReason, RowRef};
use ensilo_sync::atomic::AtomicU64;

use super::context::Context;
use super::write_set::{RecordChange, RowSpan};

impl Context {
    /// Computes a value from the row as this transaction has written it at position `at` of its write set; `None` when it
    /// has deleted the record.
    pub(super) fn read_own<R>(
        &mut self,
        at: usize,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        if !self.writes[at].change.leaves_a_row() {
            return Ok(None);
        }
        let row = self.own_row(at)?;
        Ok(Some(decode(self.row(row).uncommitted())))
    }

    /// Applies a patch to a row that this transaction has written before.
    ///
    /// # Panics
    /// When it has deleted the record, or the patch lies outside the row.
    pub(super) fn patch_own(&mut self, at: usize, words: &[(u32, u64)]) -> Result<(), Abort> {
        assert!(self.writes[at].change.leaves_a_row(), "a deleted record is written");
        let row = self.own_row(at)?;
        for &(index, word) in words {
            self.set_word(row, index as usize, word);
        }
        Ok(())
    }

    /// Returns the whole row as this transaction has written it. A patch, or a row that stands in a placeholder, becomes a row of the
    /// transaction's own first.
    fn own_row(&mut self, at: usize) -> Result<RowSpan, Abort> {
        self.settle(at)?;
        let write = self.writes[at];
        if let RecordChange::Put(row) = write.change {
            return Ok(row);
        }
        let committed = write.record.row();
        let words = (0..committed.len_words()).map(|index| committed.word(index));
        let row = self.push_row(words, committed.len_bytes())?;
        if !self.is_unchanged(write.record, write.observed) {
            let reason = if write.is_created { AbortReason::KeyExists } else { AbortReason::ReadValidation };
            return Err(self.abort_at(reason, write.record, write.key));
        }
        if let RecordChange::Patch(patch) = write.change {
            self.apply_patch(row, patch);
        }
        self.writes[at].change = RecordChange::Put(row);
        Ok(row)
    }

    /// Puts the words of an earlier patch into a row that came after it.
    fn apply_patch(&mut self, row: RowSpan, patch: RowSpan) {
        let (earlier, row_words) = self.rows.split_at_mut(row.start as usize);
        let row_words = &mut row_words[..(row.len as usize).div_ceil(8)];
        for (index, word) in patch.patch_words(earlier) {
            row_words[index] = AtomicU64::new(word);
        }
    }

    fn set_word(&mut self, row: RowSpan, index: usize, word: u64) {
        assert!(index < (row.len as usize).div_ceil(8), "a patch outside the row");
        self.rows[row.start as usize + index] = AtomicU64::new(word);
    }
}
