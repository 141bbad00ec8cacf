//! The TID word: what names a version, orders it, locks it and says whether it counts.
//!
//! # Source
//! Silo (SOSP 2013) §4.2.
//!
//! # Layout
//! The TID of the transaction that wrote the version, with three status bits in its low bits: locked (bit 0), latest (bit 1) and
//! absent (bit 2).
//!
//! Only the latest version of a key is ever locked. So a locked word without *latest* is free for another meaning: the lock is that of a
//! prepared transaction, which keeps it until its decision, and the version stands as long.

use ensilo_engine::Tid;

const LOCKED: u64 = 1;
const LATEST: u64 = 1 << 1;
const ABSENT: u64 = 1 << 2;
const _: () = assert!(Tid::from_raw(LOCKED | LATEST | ABSENT).get() == 0, "the bits that no TID has");

/// A TID with the status bits of the version that carries it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TidWord(u64);

impl TidWord {
    /// An absent record that no transaction has written: what an insert puts into the tree before it commits.
    pub const PLACEHOLDER: TidWord = TidWord(LATEST | ABSENT);

    /// Returns the word as it stands in memory.
    #[inline]
    pub const fn from_raw(word: u64) -> Self {
        TidWord(word)
    }

    /// Returns the word as it stands in memory.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the word of a live, latest version that `tid` wrote.
    #[inline]
    pub const fn live(tid: Tid) -> Self {
        TidWord(tid.get() | LATEST)
    }

    /// Returns the word of a deletion that `tid` made.
    #[inline]
    pub const fn deleted(tid: Tid) -> Self {
        TidWord(tid.get() | LATEST | ABSENT)
    }

    /// Returns the TID without the status bits.
    #[inline]
    pub const fn tid(self) -> Tid {
        Tid::from_raw(self.0)
    }

    /// Returns whether a transaction is installing a version or about to.
    #[inline]
    pub const fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    /// Returns whether this is the newest version of its key.
    #[inline]
    pub const fn is_latest(self) -> bool {
        self.0 & LATEST != 0
    }

    /// Returns whether the record stands for a key that does not exist.
    #[inline]
    pub const fn is_absent(self) -> bool {
        self.0 & ABSENT != 0
    }

    /// The same word with the lock held.
    #[inline]
    pub const fn locked(self) -> Self {
        TidWord(self.0 | LOCKED)
    }

    /// The same word with the lock held by a prepared transaction.
    #[inline]
    pub const fn prepared(self) -> Self {
        TidWord((self.0 | LOCKED) & !LATEST)
    }

    /// Returns whether a prepared transaction holds the lock: the version stands until its decision.
    #[inline]
    pub const fn is_prepared(self) -> bool {
        self.0 & (LOCKED | LATEST) == LOCKED
    }

    /// The same word with the lock free.
    #[inline]
    pub const fn unlocked(self) -> Self {
        TidWord(if self.is_prepared() { (self.0 | LATEST) & !LOCKED } else { self.0 & !LOCKED })
    }

    /// The same version, no longer the newest of its key, with the lock free.
    #[inline]
    pub const fn superseded(self) -> Self {
        TidWord(self.0 & !(LATEST | LOCKED))
    }
}

#[cfg(test)]
mod tests {
    use ensilo_epoch::Epoch;

    use super::*;

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

    #[test]
    fn the_lock_of_a_prepared_transaction_is_told_from_others() {
        let tid = Tid::ZERO.next_in(Epoch::new(7)).unwrap();
        for word in [TidWord::live(tid), TidWord::deleted(tid), TidWord::PLACEHOLDER] {
            let prepared = word.prepared();
            assert!(prepared.is_prepared() && prepared.is_locked());
            assert_eq!((prepared.unlocked(), prepared.tid()), (word, word.tid()));
            assert_eq!((prepared.locked(), prepared.is_absent()), (prepared, word.is_absent()));
            assert!([word, word.locked(), word.superseded()].iter().all(|other| !other.is_prepared()));
        }
    }
}
