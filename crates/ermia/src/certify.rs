//! The serial safety net: whether a transaction may commit without closing a cycle.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.6.2 and algorithm 1; Wang, Johnson, Fekete, Pandis, "Efficiently making (almost) any concurrency control mechanism
//! serializable" (VLDB Journal 2017), for commits side by side. Where we deviate:
//! - Readers do not register with what they read. A transaction that nobody before it in the order of commits must follow can close no cycle,
//!   whatever has been read of what it overwrites: this is nearly every one. Any other waits until all that have smaller stamps have ended,
//!   and finds the stamps of readers where they leave them.
//! - A transaction that reads much leaves its stamp with all of it, also with what nobody has overwritten lately, where the paper leaves the
//!   tracking of such versions to whoever overwrites them. That would spare long readers these writes; without any of them they are no faster
//!   (`docs/performance.md`): the walk over what was read costs them time, which is needed for their successors, not the writes.
//! - Ranges and missing keys are guarded by nodes of the index, as in Silo; and who has missed a key leaves its stamp at the node, for those
//!   that insert there and have a predecessor to find. The paper looks at nodes in one direction alone: a transaction that scans, and one that
//!   inserts later but must come before, would close a cycle.
//!
//! # Terms
//! - **successor stamp** (sstamp, pi): the smallest stamp of a transaction that has committed before and must come later in the serial order,
//!   directly or by way of others; one's own without one.
//! - **predecessor stamp** (pstamp, eta): the largest stamp of a transaction that has committed before and must come earlier, directly; or more.

use ensilo_engine::{Abort, AbortReason, TableId};
use ensilo_index::Masstree;
use ensilo_sync::Backoff;
use ensilo_sync::atomic::Ordering;

use crate::isolation::{Certificates, Fault, Isolation, has_fault};
use crate::planted::{Step, is_left_out};
use crate::read_set::ReadEntry;
use crate::stamp::{Author, Stamp};
use crate::transaction::Transaction;
use crate::transaction_table::Outcome;

impl<I: Isolation> Transaction<'_, I> {
    /// Returns the successor stamp of this transaction, which has taken `stamp`, if it may commit. The stamp lies with what was read then,
    /// and with some of it otherwise.
    pub(crate) fn certify(&self, stamp: Stamp, has_written: bool) -> Result<Stamp, Abort> {
        self.check_nodes(stamp)?;
        let successor = self.successor(stamp)?;
        if successor < stamp && !has_fault::<I>(Fault::SkipWindow) {
            self.check_exclusion_window(successor, stamp, has_written)?;
        }
        Ok(successor)
    }

    /// Checks that no key came or went in the nodes that the transaction relies on, and leaves its stamp there.
    fn check_nodes(&self, stamp: Stamp) -> Result<(), Abort> {
        for &node in self.context.nodes.stamps() {
            if has_fault::<I>(Fault::SkipNodes) {
                continue;
            }
            let stamp = if has_fault::<I>(Fault::ForgetMisses) { Stamp::ZERO } else { stamp };
            // SAFETY: it was reported under the guard of this transaction.
            if !unsafe { Masstree::note_absence(node, stamp.get(), &self.guard) } {
                return Err(Abort::new(AbortReason::NodeValidation, TableId::NONE, &[]));
            }
        }
        Ok(())
    }

    /// Returns the successor stamp, and leaves the stamp with all versions that were read, for those that overwrite them: in one walk, which finds
    /// a version in another processor's cache once. An overwriter takes the transaction for a reader before it, also if it does not commit, or comes
    /// later: that may abort the overwriter, and closes no cycle.
    fn successor(&self, stamp: Stamp) -> Result<Stamp, Abort> {
        let mut successor = stamp;
        for read in self.context.reads.iter() {
            let Some(certificates) = read.version.certificates() else { continue };
            if self.has_overwritten(certificates) {
                continue;
            }
            if !has_fault::<I>(Fault::ForgetReaders) {
                certificates.note_reader(stamp);
            }
            if !read.is_passed_over {
                successor = successor.min(self.successor_of(certificates, stamp));
            } else if !has_fault::<I>(Fault::ForgetPassedOver) {
                self.check_passed_over(read, stamp)?;
            }
        }
        Ok(successor)
    }

    /// Returns whether this transaction has overwritten a version: nobody else does unless it gives up, and it is no reader that comes before
    /// itself. If it gives up, it leaves a stamp there.
    fn has_overwritten(&self, certificates: &Certificates) -> bool {
        // Relaxed: who has written it there is this transaction.
        certificates.successor.load(Ordering::Relaxed) == self.id.to_word()
    }

    /// An insert that was not seen may not have committed before this transaction.
    fn check_passed_over(&self, read: &ReadEntry<I>, stamp: Stamp) -> Result<(), Abort> {
        match read.version.fate(&self.shared.table, stamp) {
            None => Ok(()),
            Some(_) => Err(Abort::new(AbortReason::NodeValidation, read.version.record().store(), &[])),
        }
    }

    /// Returns the successor stamp of a transaction that has overwritten a version and committed before `stamp`; `stamp` without one.
    fn successor_of(&self, certificates: &Certificates, stamp: Stamp) -> Stamp {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: [successor].
            let word = certificates.successor.load(Ordering::Acquire);
            if word == 0 {
                return stamp;
            }
            let id = match Author::from_word(word) {
                Author::At(successor) => return successor,
                Author::By(id) => id,
            };
            match self.shared.table.ask(id) {
                Outcome::Active | Outcome::Aborted => return stamp,
                Outcome::Committing(Some(of_other)) if of_other >= stamp => return stamp,
                Outcome::Committing(_) if is_left_out(Step::WaitForOverwriters) => return stamp,
                Outcome::Committed { stamp: of_other, successor } => {
                    return if of_other < stamp { successor } else { stamp };
                }
                Outcome::Committing(_) => backoff.wait(),
                Outcome::Gone => {}
            }
        }
    }

    /// Checks that nobody who must come before this transaction has committed after one who must come later.
    #[cold]
    fn check_exclusion_window(&self, successor: Stamp, stamp: Stamp, has_written: bool) -> Result<(), Abort> {
        let predecessor = if has_written { self.predecessor(stamp) } else { self.context.latest_seen() };
        // On a cycle through a snapshot, whoever leads back across it has written: a reader's predecessors have committed before it began, and
        // its successors after that.
        if successor <= predecessor || (has_written && self.shared.snapshot.is_crossed(successor)) {
            return Err(Abort::new(AbortReason::ReadValidation, TableId::NONE, &[]));
        }
        Ok(())
    }

    /// Returns the predecessor stamp of a transaction that has written.
    fn predecessor(&self, stamp: Stamp) -> Stamp {
        if !is_left_out(Step::WaitForReaders) {
            self.shared.table.wait_for_commits_before(stamp, self.slot);
        }
        let mut predecessor = self.context.latest_seen();
        for write in self.context.writes.iter().filter(|write| !write.is_cancelled()) {
            for version in write.own_versions().chain(write.before) {
                if let Some(certificates) = version.certificates() {
                    predecessor = predecessor.max(certificates.predecessor());
                }
            }
            if write.before.is_none() {
                let index = Self::store_of(write.store).index();
                let missed = index.latest_removal_near(self.context.key(write.key), &self.guard);
                predecessor = predecessor.max(Stamp::new(missed));
            }
        }
        predecessor
    }
}
