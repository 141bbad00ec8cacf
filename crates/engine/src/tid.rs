//! Transaction ids: they name the versions of a row and order them.
//!
//! # Source
//! Silo (SOSP 2013) §4.2. The widths are ours: up to ten thousand epochs go by in a second, and a 31-bit counter of those would wrap
//! within three days. One of 44 bits lasts 55 years. A worker has 131,071 TIDs in an epoch; where that is not enough, it begins the
//! next epoch early.
//!
//! # Layout
//! ```text
//!  63                      20 19                 3 2                     0
//! +--------------------------+--------------------+-----------------------+
//! |      epoch (44 bits)     | sequence (17 bits) |  0 (an engine's own)  |
//! +--------------------------+--------------------+-----------------------+
//! ```
//! A larger TID on the same row is a later version, and TIDs of different epochs are in serial order. The log and checkpoints name
//! versions by these numbers; the low three bits are 0 there.

use ensilo_epoch::Epoch;

/// The bits that no TID has.
const STATUS: u64 = (1 << SEQUENCE_SHIFT) - 1;
const SEQUENCE_SHIFT: u32 = 3;
const SEQUENCE_BITS: u32 = 17;
const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;
const EPOCH_SHIFT: u32 = SEQUENCE_SHIFT + SEQUENCE_BITS;
const _: () = assert!(EPOCH_SHIFT + Epoch::BITS == u64::BITS);

/// A transaction id: epoch and sequence, without status bits.
///
/// TIDs are unique for one key and for one worker, not among all transactions: two workers with transactions that have nothing in common
/// may choose the same one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(u64);

impl Tid {
    /// The TID of a placeholder: before every transaction.
    pub const ZERO: Tid = Tid(0);

    /// How many TIDs a worker has in an epoch.
    pub const PER_EPOCH: u64 = SEQUENCE_MAX;

    /// What lies between the integers of two neighbouring TIDs.
    pub const STEP: u64 = 1 << SEQUENCE_SHIFT;

    /// Returns the number before the first TID of `epoch`, which no transaction has.
    #[must_use]
    pub const fn before(epoch: Epoch) -> Tid {
        Tid(epoch.get() << EPOCH_SHIFT)
    }

    /// Returns the TID as one integer that orders like the TID.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the TID that [`Tid::get`] made an integer of; bits that no TID has are left out.
    #[must_use]
    pub const fn from_raw(tid: u64) -> Tid {
        Tid(tid & !STATUS)
    }

    /// Returns the epoch in which the transaction committed.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        Epoch::new(self.0 >> EPOCH_SHIFT)
    }

    /// Returns the smallest TID in `epoch` that is larger than `self`, or `None` when the epoch has no sequence number left, or is
    /// the last one. In the first case a commit that has ended its bracket and begins again in the next epoch finds one; the last
    /// epoch has none for anybody ([`AbortReason::EpochsExhausted`](crate::AbortReason::EpochsExhausted)).
    ///
    /// # Panics
    /// In debug builds when `self` lies in a later epoch: the global epoch never goes back.
    #[must_use]
    pub fn next_in(self, epoch: Epoch) -> Option<Tid> {
        debug_assert!(self.epoch() <= epoch, "a TID of a future epoch was observed");
        if epoch >= Epoch::LAST {
            return None;
        }
        if self.epoch() < epoch {
            return Some(Tid(epoch.get() << EPOCH_SHIFT | 1 << SEQUENCE_SHIFT));
        }
        let sequence = (self.0 >> SEQUENCE_SHIFT) & SEQUENCE_MAX;
        (sequence < SEQUENCE_MAX).then(|| Tid(self.0 + (1 << SEQUENCE_SHIFT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_epoch_restarts_the_sequence_and_a_full_one_ends_it() {
        let first = Tid::ZERO.next_in(Epoch::new(7)).unwrap();
        assert_eq!(first.epoch(), Epoch::new(7));
        let second = first.next_in(Epoch::new(7)).unwrap();
        assert!(second > first);
        let last = Tid(7 << EPOCH_SHIFT | SEQUENCE_MAX << SEQUENCE_SHIFT);
        assert_eq!(last.next_in(Epoch::new(7)), None);
        assert!(last.next_in(Epoch::new(8)).unwrap() > last);
    }

    #[test]
    fn the_last_epoch_has_no_tids() {
        for seen in [Tid::ZERO, Tid::before(Epoch::LAST), Tid(!STATUS)] {
            assert_eq!(seen.next_in(Epoch::LAST), None);
        }
    }
}
