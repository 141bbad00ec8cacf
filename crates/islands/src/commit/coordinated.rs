//! A transaction that a site coordinates, from its begin to the last acknowledgement.

use std::time::Instant;

use super::ages::Age;
use super::id::{OpenId, SiteId};
use super::message::{Refusal, RefusalReason};
use super::voted::Voted;

/// A transaction that has not ended.
#[derive(Debug)]
pub(super) struct Coordinated {
    pub(super) stage: Stage,
    /// When something was last sent for it, or when it began to wait.
    pub(super) since: Instant,
    /// Whether it was admitted, and counts as under way: until the others are told.
    pub(super) is_admitted: bool,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Votes are missing, or the coordinator's own part waits for what is prepared. Nothing is decided: it becomes `Deciding`, or is aborted.
    Voting { age: Age, own: Own, missing: Vec<SiteId>, voted: Voted },
    /// The decision to commit was made, and waits to be stored: it becomes `Decided`, or ends where nobody is missing. These have not acknowledged
    /// it; they are told when it is stored, or, where [epochs commit](super::PartStore::commits_by_epoch), at once. After a crash it is aborted, or
    /// `Decided`, as the disk has it.
    Deciding { local: Option<Vec<u8>>, replies: Vec<(SiteId, Vec<u8>)>, missing: Vec<SiteId> },
    /// The decision to commit is stored, and these have not acknowledged it: it ends when they have. After a crash it is `Decided`.
    Decided { missing: Vec<SiteId> },
    /// It was aborted, since the coordinator's own part was refused. What that follows from waits to be stored: it ends then. After a crash it is
    /// aborted.
    Refused(Refusal),
}

/// What the coordinator is to carry out itself, if anything.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) open: Option<OpenId>,
    pub(super) part: Option<Vec<u8>>,
}

impl Stage {
    /// Returns whether it is not decided, or all have carried the decision out.
    pub(super) fn is_carried_out(&self) -> bool {
        match self {
            Stage::Voting { .. } | Stage::Refused(_) => true,
            Stage::Deciding { missing, .. } | Stage::Decided { missing } => missing.is_empty(),
        }
    }

    /// Returns whether it cannot commit without what a site keeps in memory alone.
    pub(super) fn needs_memory_of(&self, site: SiteId) -> bool {
        match self {
            // What an open transaction has read before it has written first is not protected again after a crash.
            Stage::Voting { own, missing, voted, .. } => {
                let is_open_writer = own.open.is_some() && voted.writers.contains(&site);
                missing.contains(&site) || voted.readers.contains(&site) || is_open_writer
            }
            Stage::Deciding { .. } | Stage::Decided { .. } | Stage::Refused(_) => false,
        }
    }
}

impl Own {
    /// Returns whether one that is refused so may wait for what is in its way. What was open has ended.
    pub(super) fn may_wait(&self, refusal: &Refusal) -> bool {
        refusal.reason == RefusalReason::Held && self.open.is_none()
    }
}
