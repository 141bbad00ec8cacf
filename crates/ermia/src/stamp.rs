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
//! Transactions that write have even stamps, from one clock. One that only reads takes the odd number before the next of these: it has
//! its place, and the clock stays as it is. So has a snapshot.
//!
//! An even stamp is the [TID](Tid) of its transaction without the bits that no TID has, so that it names its epoch: the clock follows the
//! epochs. So what commits in one epoch comes before what commits in the next, in the order of commits and in the log.
//!
//! The clock counts units of the central log buffer. A transaction takes as many as its log entry has, and its stamp is the first of
//! them, which is the place of the entry: see `log`. In memory each takes one.

use ensilo_engine::Tid;
use ensilo_epoch::Epoch;
use ensilo_log::take_place;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering, fence};

use crate::planted::{Step, is_left_out, ordering_of};

const TRANSACTION: u64 = 1 << 63;
const SLOT_BITS: u32 = if cfg!(any(loom, shuttle)) { 3 } else { 16 };

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

    /// Returns the stamp of the transaction with this TID.
    pub(crate) const fn of(tid: Tid) -> Stamp {
        Stamp(tid.get() >> TID_SHIFT)
    }

    /// Returns the TID of the transaction with this stamp, which has written.
    pub(crate) const fn tid(self) -> Tid {
        Tid::from_raw(self.0 << TID_SHIFT)
    }

    /// Returns the first stamp of an epoch.
    const fn first_of(epoch: Epoch) -> Stamp {
        Stamp(Stamp::of(Tid::before(epoch)).0 + STEP)
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

    pub(crate) const fn to_word(self) -> u64 {
        match self {
            Author::At(stamp) => stamp.0,
            Author::By(id) => id.0,
        }
    }
}

/// Where stamps come from.
#[derive(Debug)]
pub(crate) struct Clock(CachePadded<ClockWords>);

/// On one cache line: whoever looks at the second has looked at the first.
#[derive(Debug)]
struct ClockWords {
    /// The next stamp.
    next: AtomicU64,
    /// See [`Clock::is_far_from`].
    far: AtomicU64,
}

const STEP: u64 = 2;

/// The first stamp. The odd number before it is that of a snapshot without commits, and not the one by which a snapshot says that it is about
/// to be taken.
const FIRST: u64 = 2 * STEP;

/// How many commits there are on the way to a stamp that is far.
const COMMITS_MAX: u64 = 256;

/// A stamp is of long ago that is so many times as far, or lies so many epochs before.
const FARS_OF_LONG: u64 = 16;
const EPOCHS_OF_LONG: u64 = 4;

/// How many units of the log a commit has, as a rule.
const UNITS_PER_COMMIT: u64 = 16;

/// The bits that no TID has, but for those that make stamps even.
const TID_SHIFT: u32 = (Tid::STEP / STEP).trailing_zeros();

impl Clock {
    pub(crate) fn new() -> Self {
        let (next, far) = (AtomicU64::new(FIRST), AtomicU64::new(COMMITS_MAX * STEP));
        Clock(CachePadded::new(ClockWords { next, far }))
    }

    /// Commits take places in the log from now on, and not one unit each.
    pub(crate) fn count_log_units(&self) {
        // Relaxed: a matter of speed.
        self.0.far.store(COMMITS_MAX * UNITS_PER_COMMIT * STEP, Ordering::Relaxed);
    }

    /// Returns the stamp of the next commit: who begins here sees all that has committed by now.
    #[inline]
    pub(crate) fn now(&self) -> Stamp {
        // Acquire: [commit-order] what those with smaller stamps have announced before they took them is visible.
        Stamp(self.0.next.load(Ordering::Acquire))
    }

    /// Returns whether so many have committed since `stamp` was the next one that what they have overwritten is about to leave the cache.
    /// Those of epochs before the present one do not count.
    #[inline]
    pub(crate) fn is_far_from(&self, stamp: Stamp) -> bool {
        self.are_fars_between(stamp, self.now(), 1)
    }

    /// Returns whether what was overwritten since `stamp` was the next one may be much.
    pub(crate) fn is_long_ago(&self, stamp: Stamp) -> bool {
        let now = self.now();
        let [began_in, now_in] = [stamp, now].map(|stamp| stamp.tid().epoch().get());
        now_in > began_in + EPOCHS_OF_LONG || self.are_fars_between(stamp, now, FARS_OF_LONG)
    }

    /// Returns whether so many times as many as are far have committed between the two in the later one's epoch.
    #[inline]
    fn are_fars_between(&self, stamp: Stamp, now: Stamp, fars: u64) -> bool {
        let since = stamp.max(Stamp::first_of(now.tid().epoch()));
        // Saturating: `stamp` may have been read behind a later one.
        now.get().saturating_sub(since.get()) >= self.0.far.load(Ordering::Relaxed) * fars
    }

    /// Takes the stamp of a transaction that has written, and as many units of the clock, for a commit in this epoch. All of them come after the
    /// epochs before; where later ones have begun, or this one's units are used up, they do not lie in the epoch.
    #[inline]
    pub(crate) fn take_in(&self, epoch: Epoch, units: u64) -> Stamp {
        // AcqRel: [commit-order].
        let ordering = ordering_of(Step::OrderOfStamps, Ordering::AcqRel);
        Stamp(take_place(&self.0.next, Stamp::first_of(epoch).get(), units * STEP, ordering))
    }

    /// Takes a stamp as [`Clock::take_in`] does where the clock need not be raised: loom does not look for other orders around the load by
    /// which that one finds it out.
    #[cfg(all(test, loom))]
    pub(crate) fn take(&self) -> Stamp {
        Stamp(self.0.next.fetch_add(STEP, ordering_of(Step::OrderOfStamps, Ordering::AcqRel)))
    }

    /// Returns the stamp of a snapshot: all that has committed before is shown, and none that takes its stamp later.
    pub(crate) fn snapshot_stamp(&self) -> Stamp {
        // AcqRel: [commit-order] as if a stamp was taken: who takes a later one sees what the caller has done before.
        Stamp(self.0.next.fetch_add(0, Ordering::AcqRel)).before()
    }

    /// Stamps are later than this one from now on.
    pub(crate) fn pass(&self, stamp: Stamp) {
        // AcqRel: [commit-order].
        self.0.next.fetch_max(stamp.get() + STEP, Ordering::AcqRel);
    }

    /// Returns a stamp for a transaction that has announced its commit and has written nothing.
    #[inline]
    pub(crate) fn reader_stamp(&self) -> Stamp {
        // SeqCst fence: [reader-commit] whoever takes a later stamp and then looks at this transaction, behind a fence, sees that it
        // commits: otherwise this load would see the stamp taken.
        if !is_left_out(Step::FenceOfReader) {
            fence(Ordering::SeqCst);
        }
        self.now().before()
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use ensilo_log::Place;

    use super::*;

    const EPOCH: Epoch = Epoch::new(7);

    fn takes_in(clock: &Clock, epoch: u64, units: u64) -> Option<Stamp> {
        let stamp = clock.take_in(Epoch::new(epoch), units);
        Place::new(stamp.tid().get(), units).lies_in(Epoch::new(epoch)).then_some(stamp)
    }

    #[test]
    fn stamps_follow_the_epochs_and_never_go_back() {
        let clock = Clock::new();
        let [first, second] = [3, 1].map(|units| takes_in(&clock, 7, units).unwrap());
        assert_eq!(second.get() - first.get(), 3 * STEP);
        assert!(first.tid().epoch() == EPOCH && second.tid().epoch() == EPOCH);
        assert!(Tid::before(EPOCH) < first.tid() && first.tid() < second.tid());
        assert_eq!((Stamp::of(first.tid()), Stamp::of(second.tid())), (first, second));
        let later = takes_in(&clock, 9, 1).unwrap();
        assert!(later > second && later.tid().epoch() == Epoch::new(9));
        assert_eq!(takes_in(&clock, 8, 1), None, "its time is over");
    }

    #[test]
    fn an_epoch_without_stamps_left_ends() {
        let clock = Clock::new();
        let taken = std::iter::from_fn(|| takes_in(&clock, 7, 1)).count() as u64;
        assert_eq!(taken, Tid::PER_EPOCH);
        assert_eq!(takes_in(&clock, 7, 1), None);
        assert!(takes_in(&clock, 8, 1).is_some_and(|stamp| stamp.tid() > Tid::before(Epoch::new(8))));
    }

    #[test]
    fn what_is_long_ago_is_so_behind_many_commits_or_some_epochs() {
        let clock = Clock::new();
        let begun = takes_in(&clock, 7, 1).unwrap();
        let many = COMMITS_MAX * FARS_OF_LONG;
        assert!(takes_in(&clock, 7, many - 2).is_some() && !clock.is_long_ago(begun));
        assert!(takes_in(&clock, 7, 1).is_some() && clock.is_long_ago(begun));
        // The next epoch may last as long.
        assert!(takes_in(&clock, 8, many - 1).is_some() && !clock.is_long_ago(begun));
        assert!(takes_in(&clock, 8, 1).is_some() && clock.is_long_ago(begun));
        assert!(takes_in(&clock, 11, 1).is_some() && !clock.is_long_ago(begun));
        assert!(takes_in(&clock, 12, 1).is_some() && clock.is_long_ago(begun));
    }

    #[test]
    fn a_snapshot_lies_between_the_stamps_before_and_after() {
        let clock = Clock::new();
        let before = clock.take_in(EPOCH, 5);
        let snapshot = clock.snapshot_stamp();
        assert!(before < snapshot && snapshot < clock.take_in(EPOCH, 1));
    }

    #[test]
    fn the_largest_stamp_leaves_room_for_the_bits_of_others() {
        let last = Stamp::of(Tid::before(Epoch::LAST));
        assert!(last.get() << STATUS_ROOM_BITS >> STATUS_ROOM_BITS == last.get() && last < Stamp::NEVER);
    }

    /// What the table of transactions keeps beside a stamp.
    const STATUS_ROOM_BITS: u32 = 2;

    #[test]
    fn stamps_come_after_what_was_recovered() {
        let clock = Clock::new();
        let recovered = Stamp::of(Tid::before(EPOCH).next_in(EPOCH).unwrap());
        clock.pass(recovered);
        assert!(clock.now() > recovered);
        assert!(takes_in(&clock, 7, 1).is_some_and(|stamp| stamp > recovered));
    }
}
