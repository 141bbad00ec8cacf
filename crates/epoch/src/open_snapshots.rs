//! Snapshots that are under way, as far as ticks know of them.

use crate::Epoch;

/// Snapshots that are under way: between them lie versions that nobody needs.
///
/// # Invariant
/// **S1** Every snapshot that is under way, or begins, is of one of `epochs`, or of `until` or a later epoch. What is known stays true: what a
/// later tick finds is one of `epochs`, or not before `until`.
#[derive(Debug, Default)]
pub struct OpenSnapshots {
    /// In order, each once.
    epochs: Vec<Epoch>,
    until: Epoch,
    /// The global epoch of the tick that has found them.
    pub(crate) found_at: Epoch,
}

impl OpenSnapshots {
    /// Returns what is known when there was no snapshot before this epoch.
    pub(crate) fn from(first: Epoch) -> Self {
        OpenSnapshots { epochs: Vec::new(), until: first, found_at: Epoch::new(0) }
    }

    /// Plants a fault for a test to find: there is no snapshot, and none begins.
    #[doc(hidden)]
    #[must_use]
    pub fn none() -> Self {
        OpenSnapshots { until: Epoch::MAX, ..OpenSnapshots::default() }
    }

    /// Makes this a copy of `other`.
    pub(crate) fn copy_from(&mut self, other: &OpenSnapshots) {
        let OpenSnapshots { epochs, until, found_at } = other;
        self.epochs.clone_from(epochs);
        (self.until, self.found_at) = (*until, *found_at);
    }

    /// Takes over the epochs that the tick of epoch `found_at` has found published, or where others may be before `until`; `found` is used up.
    ///
    /// What is not known, and of an epoch before the former `until`, is published by a participant that has read the snapshot epoch long ago,
    /// and will find that out: it reads nothing at it (S1).
    pub(crate) fn renew(&mut self, found: &mut Vec<Epoch>, until: Epoch, found_at: Epoch) {
        found.retain(|epoch| *epoch >= self.until || self.epochs.binary_search(epoch).is_ok());
        found.sort_unstable();
        found.dedup();
        std::mem::swap(&mut self.epochs, found);
        (self.until, self.found_at) = (until, found_at);
    }

    /// Returns the earliest epoch that a snapshot reads at, now or later. It never falls (S1).
    pub(crate) fn oldest(&self) -> Epoch {
        self.epochs.first().copied().unwrap_or(self.until).min(self.until)
    }

    /// Returns whether a snapshot, now or later, may show a version of the epoch `created`, which one of the epoch `superseded` has superseded.
    #[must_use]
    pub fn may_show(&self, created: Epoch, superseded: Epoch) -> bool {
        let later = self.epochs.partition_point(|epoch| *epoch <= created);
        superseded >= self.until || self.epochs.get(later).is_some_and(|epoch| *epoch <= superseded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(epochs: &[u64]) -> Vec<Epoch> {
        epochs.iter().copied().map(Epoch::new).collect()
    }

    fn may_show(open: &OpenSnapshots, created: u64, superseded: u64) -> bool {
        open.may_show(Epoch::new(created), Epoch::new(superseded))
    }

    #[test]
    fn a_snapshot_shows_the_newest_version_before_its_epoch() {
        let mut open = OpenSnapshots::from(Epoch::new(10));
        open.renew(&mut found(&[30, 10, 30]), Epoch::new(50), Epoch::new(55));
        assert_eq!(open.oldest(), Epoch::new(10));
        for (created, superseded, is_shown) in [
            (5, 9, false),
            (5, 10, true),
            (10, 29, false),
            (10, 30, true),
            (29, 30, true),
            (30, 49, false),
            (30, 50, true),
            (51, 52, true),
        ] {
            assert_eq!(may_show(&open, created, superseded), is_shown, "{created} to {superseded}");
        }
    }

    #[test]
    fn an_epoch_that_is_published_late_is_no_snapshot() {
        let mut open = OpenSnapshots::from(Epoch::new(10));
        open.renew(&mut found(&[10]), Epoch::new(40), Epoch::new(41));
        open.renew(&mut found(&[20]), Epoch::new(50), Epoch::new(51));
        assert_eq!(open.oldest(), Epoch::new(50), "20 was not known, and not as late as 40");
        assert!(!may_show(&open, 5, 49));
        open.renew(&mut found(&[50, 60]), Epoch::new(60), Epoch::new(61));
        assert_eq!(open.oldest(), Epoch::new(50));
    }
}
