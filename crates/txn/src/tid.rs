//! The TID word: what names a version, orders it, locks it and says whether it counts.
//!
//! # Source
//! Silo (SOSP 2013) §4.2. The widths are ours: epochs may be as short as a millisecond, and a 31-bit counter of those
//! would wrap within a month.
//!
//! # Layout
//! ```text
//!  63                      24 23                 3    2       1       0
//! +--------------------------+--------------------+-------+-------+-------+
//! |      epoch (40 bits)     | sequence (21 bits) | absent| latest| locked|
//! +--------------------------+--------------------+-------+-------+-------+
//! ```
//! Without its three status bits the word is the TID of the transaction that wrote the version. A larger TID on the same
//! record is a later version, and TIDs of different epochs are in serial order.

use ensilo_epoch::Epoch;

const LOCKED: u64 = 1;
const LATEST: u64 = 1 << 1;
const ABSENT: u64 = 1 << 2;
const STATUS: u64 = LOCKED | LATEST | ABSENT;
const SEQUENCE_SHIFT: u32 = 3;
const SEQUENCE_BITS: u32 = 21;
const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;
const EPOCH_SHIFT: u32 = SEQUENCE_SHIFT + SEQUENCE_BITS;
const EPOCH_BITS: u32 = 40;
const _: () = assert!(Epoch::LAST.get() == (1 << EPOCH_BITS) - 1 && EPOCH_SHIFT + EPOCH_BITS == u64::BITS);

/// A transaction id: epoch and sequence, without status bits.
///
/// TIDs are unique for one key and for one worker, not among all transactions: two workers whose transactions have nothing in common
/// may choose the same one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(u64);

impl Tid {
    /// The TID of a placeholder: before every transaction.
    pub const ZERO: Tid = Tid(0);

    /// What lies between the integers of two neighbouring TIDs.
    pub(crate) const STEP: u64 = 1 << SEQUENCE_SHIFT;

    /// The number before the first TID of `epoch`, which no transaction has.
    pub(crate) const fn before(epoch: Epoch) -> Tid {
        Tid(epoch.get() << EPOCH_SHIFT)
    }

    /// The TID as one integer that orders like the TID.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The TID that [`Tid::get`] made an integer of; bits that no TID has are left out.
    #[must_use]
    pub const fn from_raw(tid: u64) -> Tid {
        Tid(tid & !STATUS)
    }

    /// The epoch in which the transaction committed.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        Epoch::new(self.0 >> EPOCH_SHIFT)
    }

    /// The smallest TID in `epoch` that is larger than `self`, or `None` when the epoch has no sequence number left, or is the last one.
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

/// A TID with the status bits of the version that carries it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TidWord(u64);

impl TidWord {
    /// An absent record that no transaction has written: what an insert puts into the tree before it commits.
    pub const PLACEHOLDER: TidWord = TidWord(LATEST | ABSENT);

    /// The word as it stands in memory.
    #[inline]
    pub const fn from_raw(word: u64) -> Self {
        TidWord(word)
    }

    /// The word as it stands in memory.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The word of a live, latest version that `tid` wrote.
    #[inline]
    pub const fn live(tid: Tid) -> Self {
        TidWord(tid.0 | LATEST)
    }

    /// The word of a deletion that `tid` made.
    #[inline]
    pub const fn deleted(tid: Tid) -> Self {
        TidWord(tid.0 | LATEST | ABSENT)
    }

    /// The TID without the status bits.
    #[inline]
    pub const fn tid(self) -> Tid {
        Tid(self.0 & !STATUS)
    }

    /// Whether a transaction is installing a version or about to.
    #[inline]
    pub const fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    /// Whether this is the newest version of its key.
    #[inline]
    pub const fn is_latest(self) -> bool {
        self.0 & LATEST != 0
    }

    /// Whether the record stands for a key that does not exist.
    #[inline]
    pub const fn is_absent(self) -> bool {
        self.0 & ABSENT != 0
    }

    /// The same word with the lock held.
    #[inline]
    pub const fn locked(self) -> Self {
        TidWord(self.0 | LOCKED)
    }

    /// The same word with the lock free.
    #[inline]
    pub const fn unlocked(self) -> Self {
        TidWord(self.0 & !LOCKED)
    }

    /// The word of the version after this one, for those who count versions and do not name transactions.
    #[inline]
    pub(crate) const fn next_version(self) -> Self {
        TidWord(self.0.wrapping_add(Tid::STEP))
    }

    /// The same version, no longer the newest of its key, with the lock free.
    #[inline]
    pub const fn superseded(self) -> Self {
        TidWord(self.0 & !(LATEST | LOCKED))
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

    #[test]
    fn status_bits_leave_the_tid_alone() {
        let tid = Tid::ZERO.next_in(Epoch::new(Epoch::LAST.get() - 1)).unwrap();
        let word = TidWord::deleted(tid).locked();
        assert_eq!(word.tid(), tid);
        assert!(word.is_locked() && word.is_latest() && word.is_absent());
        assert_eq!(word.unlocked(), TidWord::deleted(tid));
        assert!(!word.superseded().is_latest() && !word.superseded().is_locked());
        assert_eq!(TidWord::live(tid).tid(), tid);
    }
}
