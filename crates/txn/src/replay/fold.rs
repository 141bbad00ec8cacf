//! Pending words that become part of their rows, with the TID of the last one.
//!
//! # Why any frontier gives the same rows
//! All writes of epochs before the frontier were applied. So of a word that was set before it nothing older can come, and of two words the TIDs
//! are compared with nothing but later ones, as that of the base is: for all of them the last TID before the frontier stands as well as their
//! own. A patch whose base is not there by then has none.

use ensilo_epoch::Epoch;
use ensilo_log::ReplayError;

use super::apply::lock_latest;
use super::leftover::{Leftover, PendingRecord};
use super::pending::{LockedRecord, PendingWord};
use crate::record::RecordPtr;
use crate::tid::TidWord;

/// A record's header is loaded so many records ahead, and what lies behind its link half as many.
const RECORDS_AHEAD: usize = 16;

impl Leftover {
    /// Folds the words of epochs before `frontier`, in the records of this worker.
    pub(super) fn fold(&mut self, frontier: Epoch) -> Result<(), ReplayError> {
        while let Some(PendingRecord { record, .. }) =
            self.pending.pop_front_if(|first| first.epoch < frontier)
        {
            self.prefetch();
            // The list of one that was replaced is another's now.
            let Some(word) = lock_latest(record) else { continue };
            let mut locked = LockedRecord::new(record);
            let folded = fold_words(record, word, locked.words(), frontier);
            match latest_epoch(locked.words()).filter(|&latest| latest >= frontier) {
                None => locked.end(&mut self.memory),
                Some(latest) => {
                    locked.keep(|tid| tid.epoch() >= frontier);
                    self.push_pending(record, latest);
                }
            }
            record.publish(*folded.as_ref().unwrap_or(&word));
            folded?;
        }
        Ok(())
    }

    /// Starts to load what the next records need.
    fn prefetch(&self) {
        if let Some(far) = self.pending.get(RECORDS_AHEAD) {
            far.record.prefetch_header();
        }
        if let Some(near) = self.pending.get(RECORDS_AHEAD / 2) {
            near.record.prefetch_side();
        }
    }
}

fn latest_epoch(words: &[PendingWord]) -> Option<Epoch> {
    words.iter().map(|word| word.tid.epoch()).max()
}

/// Returns the TID word of a record, which is locked, after those of its words that are of epochs before `frontier` are part of its base.
fn fold_words(
    record: RecordPtr,
    word: TidWord,
    words: &[PendingWord],
    frontier: Epoch,
) -> Result<TidWord, ReplayError> {
    let folded = words.iter().filter(|word| word.tid.epoch() < frontier);
    let last = folded.clone().map(|word| word.tid).max();
    if word == TidWord::PLACEHOLDER || (word.is_absent() && last.is_some()) {
        return Err(ReplayError::Refused("words of a row that was not logged".into()));
    }
    let Some(last) = last else { return Ok(word) };
    let len_words = record.row().len_words();
    if folded.clone().any(|word| word.index as usize >= len_words) {
        return Err(ReplayError::Refused("words outside their row".into()));
    }
    Ok(TidWord::live(last.max(word.tid())))
}
