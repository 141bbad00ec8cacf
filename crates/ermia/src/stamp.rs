//! Stamps: places in the order of commits, and what a version says of its creator.
//!
//! # Layout
//! ```text
//! created word of a version, and its successor word:
//!  63 62                  16 15         0
//! +--+----------------------+------------+
//! | 0|            a stamp                |   the creator has committed
//! | 1|     generation       |  table slot |   the transaction with this id
//! +--+----------------------+------------+
//! ```
//! Transactions that write have even stamps, from one counter. One that only reads takes the odd number before the next of these: it has
//! its place, and the counter stays as it is.

use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering, fence};

const TRANSACTION: u64 = 1 << 63;
const SLOT_BITS: u32 = 16;

/// The number of transactions that the table has places for.
pub(crate) const SLOTS: usize = 1 << SLOT_BITS;

/// A place in the order of commits. A transaction that began at a stamp sees what has a smaller one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// Before every commit.
    pub(crate) const ZERO: Stamp = Stamp(0);
    /// After every commit: what a version is created at that is never seen.
    pub(crate) const NEVER: Stamp = Stamp(TRANSACTION - 1);

    pub(crate) const fn new(stamp: u64) -> Stamp {
        debug_assert!(stamp < TRANSACTION);
        Stamp(stamp)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// Returns the place just before this one.
    pub(crate) const fn before(self) -> Stamp {
        Stamp(self.0 - 1)
    }
}

/// Names a transaction among all that ever had its place in the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransactionId(u64);

impl TransactionId {
    /// The transaction of this generation at a place of the table. A place that begins a transaction each microsecond uses its
    /// generations up in four years.
    pub(crate) fn new(slot: u16, generation: u64) -> Self {
        assert!(generation < 1 << (63 - SLOT_BITS), "the generations of a place are used up");
        TransactionId(TRANSACTION | generation << SLOT_BITS | u64::from(slot))
    }

    pub(crate) fn slot(self) -> usize {
        self.0 as usize & (SLOTS - 1)
    }

    pub(crate) const fn to_word(self) -> u64 {
        self.0
    }
}

/// Who has created a version, or overwritten it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// One with this stamp.
    At(Stamp),
    /// One that the table of transactions knows, or has known.
    By(TransactionId),
}

impl Author {
    #[inline]
    pub(crate) const fn from_word(word: u64) -> Author {
        if word & TRANSACTION == 0 { Author::At(Stamp(word)) } else { Author::By(TransactionId(word)) }
    }
}

/// Where stamps come from.
#[derive(Debug)]
pub(crate) struct Clock(CachePadded<AtomicU64>);

const STEP: u64 = 2;

impl Clock {
    pub(crate) fn new() -> Self {
        Clock(CachePadded::new(AtomicU64::new(STEP)))
    }

    /// Returns the stamp of the next commit: who begins here sees all that has committed by now.
    #[inline]
    pub(crate) fn now(&self) -> Stamp {
        // Acquire: [commit-order] what those with smaller stamps have announced before they took them is visible.
        Stamp(self.0.load(Ordering::Acquire))
    }

    /// Takes the stamp of a transaction that has written.
    #[inline]
    pub(crate) fn take(&self) -> Stamp {
        // AcqRel: [commit-order].
        Stamp(self.0.fetch_add(STEP, Ordering::AcqRel))
    }

    /// Returns a stamp for a transaction that has announced its commit and has written nothing.
    #[inline]
    pub(crate) fn reader_stamp(&self) -> Stamp {
        // SeqCst fence: [reader-commit] whoever takes a later stamp and then looks at this transaction, behind a fence, sees that it
        // commits: otherwise this load would see the stamp taken.
        fence(Ordering::SeqCst);
        self.now().before()
    }
}
