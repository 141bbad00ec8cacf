//! Validation within a scan: one that goes over many rows and cannot commit any more ends soon.
//!
//! A scan of a hundred thousand rows beside a writer of the same rows is outdated after the first few thousand. Its commit would find
//! that out after all the rest was done in vain. So whenever the transaction has read twice as much as at the look before, all its reads are
//! looked at again: that is no more looks than reads, and none before [`FIRST_LOOK`] reads. Between the statements of a transaction a
//! caller does the same by [`Write::check_so_far`](ensilo_engine::Write::check_so_far).
//!
//! Nothing follows from a look that finds all of it current; the commit validates as ever. A record that somebody has locked and not yet
//! changed counts as current, since the lock may be given back.

use ensilo_engine::{Abort, AbortReason, TableId};
use ensilo_epoch::Guard;
use ensilo_index::Masstree;

use super::context::Context;
use super::variant::Variant;

/// How many reads come before the first look.
pub(super) const FIRST_LOOK: usize = 1024;

impl Context {
    /// Looks at all reads so far if it is time to.
    ///
    /// # Errors
    /// [`Abort`] when one of them is outdated, so that the transaction cannot commit.
    #[inline(always)]
    pub(super) fn validate_early<V: Variant>(&mut self, guard: &Guard<'_>) -> Result<(), Abort> {
        if self.reads.len() < self.next_look { Ok(()) } else { self.look_at_reads::<V>(guard) }
    }

    #[cold]
    fn look_at_reads<V: Variant>(&mut self, guard: &Guard<'_>) -> Result<(), Abort> {
        self.next_look = 2 * self.reads.len();
        if !V::VALIDATES || V::FAULT.is_some() {
            // What is locked stays as it is, and a planted fault is for the commit's validation to show.
            return Ok(());
        }
        if let Some(read) = self.reads.iter().find(|read| read.record.tid().unlocked() != read.word) {
            return Err(self.abort_at(AbortReason::ReadValidation, read.record, read.key));
        }
        // SAFETY: the stamps were taken by this transaction, under the guard that it still holds.
        let is_current = |&stamp: &_| unsafe { Masstree::is_current(stamp, guard) };
        if self.nodes.stamps().iter().all(is_current) {
            return Ok(());
        }
        Err(Abort::new(AbortReason::NodeValidation, TableId::NONE, &[]))
    }
}
