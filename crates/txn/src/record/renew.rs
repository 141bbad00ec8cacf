//! Copies of older versions that no snapshot needs, which are made copies of newer ones.
//!
//! As long as a snapshot is read, nothing is freed that was superseded since it began, and behind a record that is written again and again lies
//! a version for each snapshot interval. The snapshot needs one of them. So a commit that has to keep the version that it supersedes looks
//! for a copy of an older one that nobody needs, and renews it: memory and the chain stay as they are however long the snapshot lasts.
//! Records that were replaced by larger ones, and those that were deleted, are no copies: they stay as long as the snapshot lasts, with what lies
//! behind them.
//!
//! # Source
//! Ours; Silo (SOSP 2013) §4.9 frees versions in the order in which they were superseded, behind the oldest snapshot.
//!
//! # Invariants
//! N1. A version that was created in `c`, before one of `s` superseded it, is shown by the snapshots at the epochs behind `c` and no later than
//!     `s`. Once there is none that is under way or may begin, there never is one ([`OpenSnapshots`]).
//! N2. A commit looks at a copy only if the version in front of it is of the oldest snapshot's epoch or a later one, as it has read that during
//!     the commit. Then its owner does not free it before the commit ends: the snapshot horizon is no later than that epoch
//!     ([`Epochs::oldest_snapshot`](ensilo_epoch::Epochs::oldest_snapshot)); and where versions were taken out between the two, no horizon
//!     ever lies between them (N1).
//! N3. Who walks over a copy while it is renewed finds both its former and its new version too new, and goes on behind it, or once more from the
//!     first copy, which leads there too. Nobody reads its row, by N1.
//! N4. Copies are linked, taken out and renewed under the lock of the record in the tree. Its owner alone frees a copy, after it has looked
//!     whether it was renewed. A copy that was renewed stands on its owner's list under too early an epoch, and only that it is marked keeps it from
//!     being freed, until the owner has put it back: no store leaves the mark out meanwhile.

use ensilo_epoch::{Epoch, OpenSnapshots};
use ensilo_sync::atomic::Ordering;

use super::RecordPtr;
use crate::tid::TidWord;

/// How many copies a commit looks at, as the record is locked meanwhile. A copy that nobody needs is among the first few: snapshots that last
/// need older ones, and one that is new the first.
const COPIES_MAX: usize = 8;

impl RecordPtr {
    /// Copies this record's row and its `word` into a copy of an older version that no snapshot needs, and links it as the previous version.
    /// Returns whether there is one in front. The caller holds the lock, and has read `oldest`, the epoch of the oldest snapshot, during its commit.
    pub(crate) fn renew_copy(self, word: TidWord, oldest: Epoch, open: &OpenSnapshots) -> bool {
        let unneeded = self.unneeded_copy(word, oldest, open);
        if let Some((newer, copy)) = unneeded {
            self.renew(word, newer, copy);
        }
        unneeded.is_some()
    }

    /// Returns the first copy, of those in front, that no snapshot needs and that has room for this record's row, and the version in front of it.
    fn unneeded_copy(
        self,
        word: TidWord,
        oldest: Epoch,
        open: &OpenSnapshots,
    ) -> Option<(RecordPtr, RecordPtr)> {
        let row_len = self.row().len_bytes();
        let (mut newer, mut superseded) = (self, word.tid().epoch());
        for _ in 0..COPIES_MAX {
            // N2.
            if superseded < oldest {
                break;
            }
            let copy = newer.previous_copy()?;
            let created = copy.tid().tid().epoch();
            let is_needed = created < oldest || open.may_show(created, superseded);
            if !is_needed && copy.fits(row_len) && !copy.wastes_large(row_len) {
                return Some((newer, copy));
            }
            (newer, superseded) = (copy, created);
        }
        None
    }

    /// Makes `copy`, which stands behind `newer`, that of this record.
    fn renew(self, word: TidWord, newer: RecordPtr, copy: RecordPtr) {
        let is_first = newer == self;
        if !is_first {
            copy.unlink_copy(newer);
        }
        copy.copy_row(self);
        // Release: [renewal] who goes on behind the new version finds the copy taken out.
        copy.header().tid.store(word.superseded().raw(), Ordering::Release);
        if is_first {
            copy.mark_renewed_before(copy);
        } else {
            copy.mark_renewed_before(self);
            self.link_copy(copy);
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use ensilo_engine::{TableId, Tid};
    use ensilo_epoch::{Advance, EpochOptions, Epochs};
    use ensilo_slab::Pool;
    use loom::thread;

    use super::*;

    /// Nothing but the mark keeps a copy from being freed that was renewed before and is renewed again.
    #[test]
    fn a_copy_that_is_renewed_again_is_marked_all_the_time() {
        loom::model(|| {
            let options = EpochOptions { advance: Advance::Manual, ..EpochOptions::default() };
            let epochs = Epochs::new(options, Pool::new(None));
            let participant = epochs.participant();
            let guard = participant.pin();
            let mut word = TidWord::live(Tid::ZERO.next_in(epochs.global_epoch()).unwrap());
            let mut record = || {
                word = TidWord::live(word.tid().next_in(epochs.global_epoch()).unwrap());
                let record = RecordPtr::allocate(&guard, TableId(1), 8, word).unwrap();
                record.store_row([word.raw()].into_iter(), 8);
                record
            };
            let [copy, newer, latest] = [record(), record(), record()];
            latest.push_version(copy, latest.tid());
            latest.push_version(newer, latest.tid());
            copy.mark_renewed_before(copy);
            let owner = thread::spawn(move || copy.end_renewal());
            latest.renew(latest.tid(), newer, copy);
            assert!(owner.join().unwrap(), "a copy in use would be freed");
        });
    }
}
