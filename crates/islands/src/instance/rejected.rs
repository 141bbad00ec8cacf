//! Transactions that were rejected by rows that are not stored yet, where epochs of all instances are stored as one.
//!
//! What rejects a transaction may have been read at any instance. One ticket of the worker's own instance is for all of them, if they are all in the
//! same epoch. While one ends, another instance may have ended it already, and have refused a part by what belongs to the next one: so the ticket of
//! what is rejected meanwhile is taken when all have ended it.

use ensilo::group::GroupMember;

use super::store::Storing;
use crate::commit::{DistributedId, Failed, Outcome};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct RejectedOutcomes {
    waiting: Vec<Rejected>,
    /// Whether an epoch ends.
    is_paused: bool,
}

#[derive(Debug)]
struct Rejected {
    /// `None` until the epoch has ended everywhere.
    storing: Option<Storing>,
    id: DistributedId,
    outcome: Outcome,
}

impl RejectedOutcomes {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// An epoch is about to end.
    pub(super) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// It has ended everywhere.
    pub(super) fn resume(&mut self, member: Option<&GroupMember>) {
        self.is_paused = false;
        let Some(member) = member else { return };
        for rejected in self.waiting.iter_mut().filter(|rejected| rejected.storing.is_none()) {
            rejected.storing = Some(Storing::new(member.ticket()));
        }
    }

    /// Keeps an outcome until what it follows from is stored.
    pub(super) fn keep(&mut self, member: &GroupMember, id: DistributedId, outcome: Outcome) {
        let storing = (!self.is_paused).then(|| Storing::new(member.ticket()));
        self.waiting.push(Rejected { storing, id, outcome });
    }

    /// Returns one of those that may be told by now.
    pub(super) fn take_stored(
        &mut self,
        mut is_stored: impl FnMut(&mut Storing) -> Result<bool, Failed>,
    ) -> Result<Option<(DistributedId, Outcome)>, Failed> {
        for at in 0..self.waiting.len() {
            if let Some(storing) = &mut self.waiting[at].storing
                && is_stored(storing)?
            {
                let Rejected { id, outcome, .. } = self.waiting.swap_remove(at);
                return Ok(Some((id, outcome)));
            }
        }
        Ok(None)
    }
}
