//! The table of transactions: what others ask about one whose id they have met.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.5. Places are handed to sessions and stay with them from one transaction to the next: so none is allocated or
//! recycled while a transaction begins, and no epochs are needed at that time scale.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[id]` | begin: id, Release | ask: id, Acquire | the outcome belongs to the transaction with this id |
//! | `[outcome]` | an outcome, Release | ask: outcome, Acquire | what the transaction did before |
//! | `[end]` | end: id, Release | ask: id, Acquire | who finds the transaction gone finds its stamps where its id was |
//! | `[claim]` | a place is handed out, Release | all places are looked at, Acquire | the place, with an entry in which nothing has begun |
//! | `[horizon]` | see [`Horizon`](crate::horizon::Horizon) | | what a transaction has read |
//! | `[commit-order]`, `[reader-commit]` | see `commit` | | that a commit was announced |
//!
//! A question reads the id, the outcome and the id again. A transaction that begins takes the id away, behind which there is a fence,
//! before it writes an outcome: who reads that one then does not find the old id again.

use std::sync::OnceLock;

use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicU64, Ordering, fence};
use ensilo_sync::sync::Mutex;
use ensilo_sync::{Backoff, CachePadded};

use crate::planted::{Step, is_left_out, ordering_of};
use crate::stamp::{SLOTS, Stamp, TransactionId};
use crate::store::lock;

/// What has become of a transaction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It goes on: a stamp that it takes is later than all that were taken by now.
    Active,
    /// It commits. It has this stamp, or is about to take one.
    Committing(Option<Stamp>),
    /// It has committed, with its successor stamp. Its versions do not say so yet.
    Committed { stamp: Stamp, successor: Stamp },
    /// It has aborted.
    Aborted,
    /// It is over: where its id was found there is something else by now.
    Gone,
}

const STATUS_BITS: u32 = 2;
const STATUS: u64 = (1 << STATUS_BITS) - 1;
const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const COMMITTED: u64 = 2;
const ABORTED: u64 = 3;

/// Where a transaction has begun stands above this bit, which says that it is about to begin there or later.
const ENTERING: u64 = 1;
const BEGIN_SHIFT: u32 = 1;

/// How often a place is read again at which a transaction is about to begin: while there is one, the long readers are not known anew.
const LOOKS_AT_ENTERING: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 200 };

/// No epoch.
const NOT_LOOKING: u64 = u64::MAX;

/// A place in the table.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The id's word, 0 between transactions.
    id: AtomicU64,
    /// Status in the low bits, and the stamp above.
    outcome: AtomicU64,
    successor: AtomicU64,
    /// Where the transaction has begun, and whether it is about to; what was there then must stay. 0 between transactions.
    begin: AtomicU64,
    /// Since which epoch it looks at versions; [`NOT_LOOKING`] while it does not.
    looks_since: AtomicU64,
    /// Of the last transaction. Its owner alone uses it.
    generation: AtomicU64,
}

impl Entry {
    fn new() -> Self {
        Entry {
            id: AtomicU64::new(0),
            outcome: AtomicU64::new(0),
            successor: AtomicU64::new(0),
            begin: AtomicU64::new(0),
            looks_since: AtomicU64::new(NOT_LOOKING),
            generation: AtomicU64::new(0),
        }
    }

    /// Begins the next transaction of this place, which is at `slot`.
    #[inline]
    pub(crate) fn begin(&self, slot: u16) -> TransactionId {
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        self.generation.store(generation, Ordering::Relaxed);
        let id = TransactionId::new(slot, generation);
        if !is_left_out(Step::FenceAtBegin) {
            // Release: [id] the id is 0 since the last one has ended: who finds an outcome from here on finds the old id gone.
            fence(Ordering::Release);
        }
        self.outcome.store(ACTIVE, Ordering::Relaxed);
        // Release: [id].
        self.id.store(id.to_word(), Ordering::Release);
        id
    }

    /// Returns the id of the transaction that was begun last.
    pub(crate) fn current(&self, slot: u16) -> TransactionId {
        TransactionId::new(slot, self.generation.load(Ordering::Relaxed))
    }

    /// The transaction goes on, after a check for which it announced a commit.
    pub(crate) fn set_active(&self) {
        // Release: [outcome].
        self.outcome.store(ACTIVE, Ordering::Release);
    }

    /// Announces that a stamp is about to be taken.
    #[inline]
    pub(crate) fn announce(&self) {
        if is_left_out(Step::Announcement) {
            return;
        }
        // Relaxed: [commit-order] taking the stamp releases it.
        self.outcome.store(COMMITTING, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn set_stamp(&self, stamp: Stamp) {
        // Release: [outcome].
        self.outcome.store(stamp.get() << STATUS_BITS | COMMITTING, Ordering::Release);
    }

    #[inline]
    pub(crate) fn set_committed(&self, stamp: Stamp, successor: Stamp) {
        self.successor.store(successor.get(), Ordering::Relaxed);
        // Release: [outcome] the successor stamp, and what the transaction has written.
        let ordering = ordering_of(Step::OrderOfOutcome, Ordering::Release);
        self.outcome.store(stamp.get() << STATUS_BITS | COMMITTED, ordering);
    }

    pub(crate) fn set_aborted(&self) {
        // Release: [outcome].
        self.outcome.store(ABORTED, Ordering::Release);
    }

    /// The transaction is over, and its id nowhere.
    #[inline]
    pub(crate) fn end(&self) {
        // Release: [end].
        self.id.store(0, ordering_of(Step::OrderOfEnd, Ordering::Release));
        // Release: [horizon] what it has read was read before it may go.
        self.begin.store(0, Ordering::Release);
        self.end_look();
    }

    /// Returns whether a transaction is under way, or was leaked.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        // Relaxed: the owner asks.
        self.begin.load(Ordering::Relaxed) != 0
    }

    /// Says what the transaction needs, see [`Horizon`](crate::horizon::Horizon).
    #[inline]
    pub(crate) fn publish_begin(&self, begin: Stamp) {
        // Release: [horizon] the last transaction's reads come before, if this one begins later.
        self.begin.store(begin.get() << BEGIN_SHIFT, Ordering::Release);
    }

    /// Says that a transaction is about to begin here or later.
    #[inline]
    pub(crate) fn publish_entering(&self, horizon: Stamp) {
        // Release: [horizon] as above.
        self.begin.store(horizon.get() << BEGIN_SHIFT | ENTERING, Ordering::Release);
    }

    /// Returns where a transaction has begun. It waits a little for one that is about to begin, which may have lost its core.
    fn begin_seen(&self) -> u64 {
        // Acquire: [horizon], both. A transaction that has come in place of the one that was seen begins later.
        let mut begin = self.begin.load(Ordering::Acquire);
        for _ in 0..LOOKS_AT_ENTERING {
            if begin & ENTERING == 0 {
                break;
            }
            std::hint::spin_loop();
            begin = self.begin.load(Ordering::Acquire);
        }
        begin
    }

    /// From a light barrier on the transaction looks at versions, see [`Horizon`](crate::horizon::Horizon).
    #[inline]
    pub(crate) fn begin_look(&self, tick: Epoch) {
        if is_left_out(Step::Look) {
            return;
        }
        // Release: [horizon] an earlier look may be overwritten before anybody has seen that it ended.
        self.looks_since.store(tick.get(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn end_look(&self) {
        // Release: [horizon] what was looked at was looked at before it is freed.
        self.looks_since.store(NOT_LOOKING, Ordering::Release);
    }

    fn outcome_of(&self, id: TransactionId) -> Outcome {
        // Acquire: [id], [end].
        if self.id.load(Ordering::Acquire) != id.to_word() {
            return Outcome::Gone;
        }
        // Acquire: [outcome].
        let word = self.outcome.load(Ordering::Acquire);
        let successor = Stamp::new(self.successor.load(Ordering::Relaxed));
        // Acquire: an outcome of a later transaction shows that the id is gone.
        fence(Ordering::Acquire);
        if self.id.load(Ordering::Relaxed) != id.to_word() && !is_left_out(Step::SecondLookAtId) {
            // Acquire: [end].
            fence(Ordering::Acquire);
            return Outcome::Gone;
        }
        let stamp = Stamp::new(word >> STATUS_BITS);
        match word & STATUS {
            ACTIVE => Outcome::Active,
            COMMITTING => Outcome::Committing((stamp != Stamp::ZERO).then_some(stamp)),
            COMMITTED => Outcome::Committed { stamp, successor },
            _ => Outcome::Aborted,
        }
    }

    /// Waits while a transaction with a smaller stamp commits here.
    fn wait_for_commit_before(&self, stamp: Stamp) {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: [end].
            let id = self.id.load(Ordering::Acquire);
            // Acquire: [outcome].
            let word = self.outcome.load(Ordering::Acquire);
            let at = word >> STATUS_BITS;
            let is_earlier = match word & STATUS {
                COMMITTING => at == 0 || at < stamp.get(),
                COMMITTED => at < stamp.get(),
                _ => false,
            };
            if id == 0 || !is_earlier {
                return;
            }
            backoff.wait();
        }
    }
}

/// What is known of the transactions that are under way.
#[derive(Copy, Clone, Debug)]
pub(crate) struct UnderWay {
    /// Whether some are about to begin, later than they say.
    pub(crate) some_enter: bool,
    /// The first epoch since which one looks at versions.
    pub(crate) looks_since: Epoch,
}

const BLOCK_LEN: usize = if cfg!(any(loom, shuttle)) { 4 } else { 256 };

type Block = Box<[CachePadded<Entry>]>;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct TransactionTable {
    /// Made when the first of their places is handed out.
    blocks: Box<[OnceLock<Block>]>,
    /// Places that were never handed out begin here.
    used: AtomicU64,
    free: Mutex<Vec<u16>>,
}

impl TransactionTable {
    pub(crate) fn new() -> Self {
        let blocks = (0..SLOTS / BLOCK_LEN).map(|_| OnceLock::new()).collect();
        TransactionTable { blocks, used: AtomicU64::new(0), free: Mutex::new(Vec::new()) }
    }

    /// Hands out a place; `None` when there are none.
    pub(crate) fn claim(&self) -> Option<u16> {
        let mut free = lock(&self.free);
        free.pop().or_else(|| {
            let next = self.used.load(Ordering::Relaxed);
            let slot = u16::try_from(next).ok().filter(|slot| usize::from(*slot) < SLOTS)?;
            self.blocks[usize::from(slot) / BLOCK_LEN]
                .get_or_init(|| (0..BLOCK_LEN).map(|_| CachePadded::new(Entry::new())).collect());
            // Release: [claim] the block.
            self.used.store(next + 1, Ordering::Release);
            Some(slot)
        })
    }

    /// Takes a place back.
    pub(crate) fn release(&self, slot: u16) {
        lock(&self.free).push(slot);
    }

    /// Returns whether there are few places left: sessions give theirs back at the end of each transaction.
    pub(crate) fn is_crowded(&self) -> bool {
        // Relaxed: any recent value serves.
        self.used.load(Ordering::Relaxed) > SLOTS as u64 / 2
    }

    #[inline]
    pub(crate) fn entry(&self, slot: u16) -> &Entry {
        self.entry_at(usize::from(slot))
    }

    #[inline]
    fn entry_at(&self, slot: usize) -> &Entry {
        match self.blocks[slot / BLOCK_LEN].get() {
            Some(block) => &block[slot % BLOCK_LEN],
            None => unreachable!("the place was handed out"),
        }
    }

    /// Returns what has become of a transaction whose id was just met.
    #[inline]
    pub(crate) fn ask(&self, id: TransactionId) -> Outcome {
        self.entry_at(id.slot()).outcome_of(id)
    }

    /// Waits until all other transactions with stamps before this one, which its own transaction has taken, have ended.
    pub(crate) fn wait_for_commits_before(&self, stamp: Stamp, own: u16) {
        if !is_left_out(Step::FenceOfWriter) {
            // SeqCst fence: [reader-commit] one that only reads and has a smaller stamp is seen to commit.
            fence(Ordering::SeqCst);
        }
        let others = self.in_use().filter(|(slot, _)| *slot != usize::from(own));
        others.for_each(|(_, entry)| entry.wait_for_commit_before(stamp));
    }

    /// Adds where the transactions have begun that are under way, and are seen. Returns what else is known of them.
    pub(crate) fn look_around(&self, begins: &mut Vec<Stamp>) -> UnderWay {
        let mut under_way = UnderWay { some_enter: false, looks_since: Epoch::MAX };
        for (_, entry) in self.in_use() {
            let begin = entry.begin_seen();
            // Acquire: [horizon].
            let looks_since = Epoch::new(entry.looks_since.load(Ordering::Acquire));
            if begin != 0 {
                begins.push(Stamp::new(begin >> BEGIN_SHIFT));
            }
            under_way.some_enter |= begin & ENTERING != 0 && !is_left_out(Step::EnteringMark);
            under_way.looks_since = under_way.looks_since.min(looks_since);
        }
        under_way
    }

    fn in_use(&self) -> impl Iterator<Item = (usize, &Entry)> {
        // Acquire: [claim]. A place that is handed out later begins a transaction later.
        let used = self.used.load(Ordering::Acquire) as usize;
        (0..used).map(|slot| (slot, self.entry_at(slot)))
    }
}
