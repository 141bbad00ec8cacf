//! Snapshots that have begun and cannot be read yet, and when they began.

use std::collections::VecDeque;
use std::time::Instant;

use crate::Epoch;

/// So many are known at a time. Where commits that are under way hold back more of them, the later ones are left out, and the snapshot
/// that is read at last counts as older than it is.
const AWAITED_MAX: usize = 16;

/// Epochs that have become the global epoch, and become the snapshot epoch once all commits of earlier epochs are complete.
#[derive(Debug, Default)]
pub(super) struct AwaitedSnapshots {
    oldest_first: VecDeque<SnapshotBegin>,
}

/// The begin of a snapshot.
#[derive(Debug, Clone, Copy)]
struct SnapshotBegin {
    epoch: u64,
    /// Read before `epoch` became the global epoch: whoever had committed by then had read an earlier one.
    at: Instant,
}

impl AwaitedSnapshots {
    /// Notes that a snapshot begins at this epoch, before that becomes the global epoch.
    pub(super) fn begin(&mut self, epoch: Epoch) {
        if self.oldest_first.len() < AWAITED_MAX {
            self.oldest_first.push_back(SnapshotBegin { epoch: epoch.get(), at: Instant::now() });
        }
    }

    /// Returns the epoch of the newest one that began after `since`, if there is any.
    pub(super) fn begun_after(&self, since: Instant) -> Option<Epoch> {
        self.oldest_first.back().filter(|newest| newest.at > since).map(|newest| Epoch::new(newest.epoch))
    }

    /// Forgets those up to this snapshot epoch, and returns when it began, or an earlier one if that is not known.
    pub(super) fn reach(&mut self, snapshot_epoch: u64) -> Option<Instant> {
        let mut began = None;
        while let Some(begin) = self.oldest_first.pop_front_if(|begin| begin.epoch <= snapshot_epoch) {
            began = Some(begin.at);
        }
        began
    }
}
