//! Places in the order of changes.

use ensilo_epoch::Epoch;

use crate::format::epoch_of;

/// A place between two changes, in the order in which they are given: by TID, and those with one TID as they lie in the
/// log. The log is never written anew, so that a place stays what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace {
    /// The change that follows has this TID, or a larger one.
    pub tid: u64,
    /// Of those with this TID, the next one is this logger's,
    pub logger: u32,
    /// in the file with this sequence number,
    pub sequence: u64,
    /// in the block at this offset,
    pub offset: u64,
    /// the entry with this number.
    pub index: u32,
}

impl LogPlace {
    /// Returns the place before everything of an epoch.
    #[must_use]
    pub const fn before(epoch: Epoch) -> LogPlace {
        let tid = epoch.get() << (u64::BITS - Epoch::BITS);
        LogPlace { tid, logger: 0, sequence: 0, offset: 0, index: 0 }
    }

    /// Returns the place behind everything of an epoch.
    #[must_use]
    pub const fn after(epoch: Epoch) -> LogPlace {
        LogPlace::before(Epoch::new(epoch.get() + 1))
    }

    /// Returns the place right behind the entry here.
    pub(super) fn next(self) -> LogPlace {
        LogPlace { index: self.index + 1, ..self }
    }

    /// Returns the epoch of the change that follows, if that epoch has one.
    #[must_use]
    pub fn epoch(self) -> Epoch {
        epoch_of(self.tid)
    }

    /// Returns whether it lies between two epochs.
    #[must_use]
    pub fn is_between_epochs(self) -> bool {
        self == LogPlace::before(self.epoch())
    }
}
