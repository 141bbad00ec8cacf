//! Versions: what a transaction has made of a row.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.2. The header takes 24 bytes under snapshot isolation, and 40 with the serial safety net.
//!
//! # Invariants
//! V1. A version that others can see has a row that does not change, but for its author, who may write to it until the commit.
//! V2. The versions of a record are in the order of their stamps, the newest first. One without a stamp is the first: its author holds the
//!     record's write lock by it.
//! V3. Whoever sees a version does not follow its link: what is behind a version that every transaction sees may be gone.
//! V4. Behind a version that somebody does not see are those that somebody sees; others may have been taken out of the chain.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[head]` | a version becomes the newest, Release | the newest is found, Acquire | its header and row, and those behind it |
//! | `[created]` | a stamp takes the id's place, Release | the author is asked for, Acquire | the row, to which the author has written up to its commit |
//! | `[taken-out]` | see [`LongReaders`](crate::long_readers::LongReaders) | | that nobody finds the version any more |
//! | `[successor]` | an id, or later a stamp, in the version before, Release | a reader's commit, Acquire | the transaction that is asked for |
//!
//! Who compares a stamp with its own begin has the row by `[commit-order]` already. A look at what is newest has no begin: it depends on
//! `[created]`, and on `[outcome]` where the stamp is not there yet.

use ensilo_engine::{RawRecord, RawRow, TableId};
use ensilo_epoch::Guard;
use ensilo_slab::OutOfMemory;
use ensilo_sync::Backoff;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::isolation::{Certificates, Fault, Isolation, VersionDependencies, has_fault};
use crate::planted::{Step, ordering_of};
use crate::stamp::{Author, Stamp, TransactionId};
use crate::transaction_table::{Outcome, TransactionTable};

/// In the link of a version: it is a deletion.
const DELETION: u64 = 1;

/// In the link of a version: its memory is of the reserve.
const RESERVE: u64 = 2;

/// In the link of a version: it was taken out of its chain.
const TAKEN_OUT: u64 = 4;

/// The bits of a link that are not of the address.
const MARKS: u64 = DELETION | RESERVE | TAKEN_OUT;

/// What stands before a version's row.
#[derive(Debug)]
pub(crate) struct Header<D> {
    /// Its author.
    created: AtomicU64,
    /// The version before, 0 without one; the low bits are [`MARKS`].
    older: AtomicU64,
    dependencies: D,
    /// In a model, which fails when the version is used later, or at the same time.
    #[cfg(all(test, loom))]
    is_freed: loom::cell::UnsafeCell<bool>,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Header<crate::isolation::NoCertificates>>() + 8 == 24);
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Header<Certificates>>() + 8 <= 48);

/// The address of a version, good while the transaction that has found it looks at versions, see [`Horizon`](crate::horizon::Horizon); that of one
/// that it sees, and that does not leave memory, as long as it is under way.
pub(crate) struct Version<I: Isolation>(RawRecord<Header<I::Dependencies>>);

/// What a version is to a transaction that meets it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Its own.
    Own,
    /// Committed before it began.
    Visible(Stamp),
    /// Not committed before it began.
    Invisible,
}

impl<I: Isolation> Version<I> {
    /// Returns a version by `author` in front of `older`, with room for a row of `row_len_bytes`, which is not set yet.
    #[inline]
    pub(crate) fn allocate(
        guard: &Guard<'_>,
        store: TableId,
        row_len_bytes: usize,
        author: Author,
        older: Option<Self>,
    ) -> Result<Self, OutOfMemory> {
        let _indirection = crate::region::indirection();
        RawRecord::allocate(guard, store, row_len_bytes, Self::new_header(author, older, 0)).map(Version)
    }

    /// Returns a deletion by `author` of `older`, from the reserve beside the memory limit: rows can be deleted also where the limit leaves
    /// nothing.
    #[cold]
    pub(crate) fn allocate_deletion(
        guard: &Guard<'_>,
        store: TableId,
        author: Author,
        older: Self,
    ) -> Result<Self, OutOfMemory> {
        let header = Self::new_header(author, Some(older), DELETION | RESERVE);
        let allocate = |layout, account| guard.participant().heap().allocate_reserve(layout, account);
        // SAFETY: the reserve returns a fresh block.
        unsafe { RawRecord::allocate_exact(store, 0, header, allocate) }.map(Version)
    }

    fn new_header(author: Author, older: Option<Self>, marks: u64) -> Header<I::Dependencies> {
        Header {
            created: AtomicU64::new(author.to_word()),
            older: AtomicU64::new(older.map_or(0, Version::to_word) | marks),
            dependencies: I::Dependencies::new(),
            #[cfg(all(test, loom))]
            is_freed: loom::cell::UnsafeCell::new(false),
        }
    }

    /// Returns the version as a word: its address, whose low bits are 0.
    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        self.0.index_value()
    }

    /// Returns the version that stands under `word`, if one does.
    ///
    /// # Safety
    /// `word` is 0, or comes from [`Version::to_word`] of a version that is not freed while the caller uses it.
    #[inline]
    pub(crate) unsafe fn from_word(word: u64) -> Option<Self> {
        // SAFETY: the caller's promise.
        (word != 0).then(|| Version(unsafe { RawRecord::from_index_value(word) }))
    }

    /// Returns the record that holds the row.
    #[inline]
    pub(crate) fn record(self) -> RawRecord<Header<I::Dependencies>> {
        self.0
    }

    #[inline]
    fn header(&self) -> &Header<I::Dependencies> {
        let header = self.0.header();
        #[cfg(all(test, loom))]
        // SAFETY: the checker fails the model when somebody writes meanwhile.
        assert!(!header.is_freed.with(|is_freed| unsafe { *is_freed }), "a version is used that was freed");
        header
    }

    #[inline]
    pub(crate) fn row<'a>(self) -> RawRow<'a> {
        #[cfg(all(test, loom))]
        self.header();
        self.0.row()
    }

    #[inline]
    pub(crate) fn author(&self) -> Author {
        // Acquire: [created] a version with a stamp is as its author has left it.
        Author::from_word(self.header().created.load(Ordering::Acquire))
    }

    /// Returns the stamp of a version whose author is known to have left it there.
    pub(crate) fn committed_stamp(&self) -> Stamp {
        match self.author() {
            Author::At(stamp) => stamp,
            Author::By(_) => unreachable!("it was committed, or comes from a replay"),
        }
    }

    /// The author is over: it has committed at this stamp, or the version is seen [by nobody](Stamp::NEVER).
    #[inline]
    pub(crate) fn set_created(&self, stamp: Stamp) {
        // Release: [created].
        self.header().created.store(stamp.get(), ordering_of(Step::OrderOfStamp, Ordering::Release));
    }

    #[inline]
    pub(crate) fn is_deletion(&self) -> bool {
        // Relaxed: its author alone writes the mark, before others see the version; who shortens the chain leaves it as it is.
        self.header().older.load(Ordering::Relaxed) & DELETION != 0
    }

    /// Makes the version, which is the caller's own, a deletion or a row.
    pub(crate) fn set_deletion(&self, is_deletion: bool) {
        let older = self.header().older.load(Ordering::Relaxed) & !DELETION;
        self.header().older.store(older | u64::from(is_deletion), Ordering::Relaxed);
    }

    /// Returns the version before, but for those that nobody needs. The caller does not see this one (V3).
    #[inline]
    pub(crate) fn older(&self) -> Option<Self> {
        // Acquire: whatever version of the record it leads to was complete before this one was found; what is asked of this version from here on
        // was so later than that the link was there.
        let word = self.header().older.load(Ordering::Acquire) & !MARKS;
        // SAFETY: a version is freed once every transaction sees one in front of it, and the caller does not, or when it was taken out of the
        // chain, and nobody is left who may have found it there.
        unsafe { Version::from_word(word) }
    }

    /// Leads to another one of the versions before, or to none. The caller holds the lock of the long readers, and the version is committed.
    pub(crate) fn set_older(&self, older: Option<Self>) {
        let marks = self.header().older.load(Ordering::Relaxed) & MARKS;
        // Release: [taken-out].
        self.header().older.store(older.map_or(0, Version::to_word) | marks, Ordering::Release);
    }

    /// Says that the version is in its chain no more. The caller holds the lock of the long readers.
    pub(crate) fn mark_taken_out(&self) {
        let word = self.header().older.load(Ordering::Relaxed);
        // Release: [taken-out].
        self.header().older.store(word | TAKEN_OUT, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_taken_out(&self) -> bool {
        // Acquire: [taken-out].
        self.header().older.load(Ordering::Acquire) & TAKEN_OUT != 0
    }

    /// Returns what depends on the version, under an isolation level that keeps this.
    #[inline]
    pub(crate) fn certificates(&self) -> Option<&Certificates> {
        self.header().dependencies.stamps()
    }

    /// Returns what this version is to the transaction `own` that has begun at `begin`. One that commits is waited for, if it may have been
    /// before that.
    #[inline]
    pub(crate) fn sight(&self, table: &TransactionTable, begin: Stamp, own: Option<TransactionId>) -> Sight {
        match self.author() {
            Author::At(stamp) if stamp < begin => Sight::Visible(stamp),
            Author::At(_) => Sight::Invisible,
            Author::By(id) if Some(id) == own => Sight::Own,
            Author::By(_) => self.sight_of_other(table, begin),
        }
    }

    /// Returns the first version from `newest` on that was committed before `begin`, and its stamp.
    pub(crate) fn visible_from(
        newest: Option<Self>,
        table: &TransactionTable,
        begin: Stamp,
    ) -> Option<(Self, Stamp)> {
        let mut next = newest;
        while let Some(version) = next {
            match version.sight(table, begin, None) {
                Sight::Visible(stamp) => return Some((version, stamp)),
                Sight::Own => unreachable!("who reads outside of a transaction writes nothing"),
                Sight::Invisible => next = version.older(),
            }
        }
        None
    }

    #[cold]
    fn sight_of_other(&self, table: &TransactionTable, begin: Stamp) -> Sight {
        match self.fate(table, begin) {
            Some(stamp) => Sight::Visible(stamp),
            None => Sight::Invisible,
        }
    }

    /// Returns the stamp of the author, if it has committed before `begin`, when this is decided.
    pub(crate) fn fate(&self, table: &TransactionTable, begin: Stamp) -> Option<Stamp> {
        let mut backoff = Backoff::new();
        loop {
            let id = match self.author() {
                Author::At(stamp) => return (stamp < begin).then_some(stamp),
                Author::By(id) => id,
            };
            match table.ask(id) {
                Outcome::Active | Outcome::Aborted => return None,
                Outcome::Committing(_) if has_fault::<I>(Fault::SkipCommitting) => return None,
                // Two that only look at what they have read may have the same stamp: neither waits for the other.
                Outcome::Committing(Some(stamp)) if stamp >= begin => return None,
                Outcome::Committed { stamp, .. } => {
                    // A row that was made and taken back has been left by now, and not at the stamp of the commit.
                    let stamp = if let Author::At(left) = self.author() { left } else { stamp };
                    return (stamp < begin).then_some(stamp);
                }
                Outcome::Committing(_) => backoff.wait(),
                Outcome::Gone => {}
            }
        }
    }

    /// Returns whether the memory is of the reserve.
    #[inline]
    pub(crate) fn is_of_reserve(&self) -> bool {
        // Relaxed: as for a deletion.
        self.header().older.load(Ordering::Relaxed) & RESERVE != 0
    }

    /// Frees a version that nobody else knows or can find.
    ///
    /// # Safety
    /// As [`RawRecord::free`].
    #[inline]
    pub(crate) unsafe fn free(self, guard: &Guard<'_>) {
        if self.keeps_memory() {
            return;
        }
        if self.is_of_reserve() {
            let (block, layout, account) = self.0.block();
            // SAFETY: it was taken from there; the caller's promise.
            return unsafe { guard.participant().heap().free_reserve(block, layout, account) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.0.free(guard) }
    }

    /// Returns whether the memory of a version that is freed stays as it is: in a model, so that a later use is noticed.
    #[cfg(all(test, loom))]
    fn keeps_memory(self) -> bool {
        // SAFETY: the checker fails the model when somebody else uses the cell meanwhile.
        self.0.header().is_freed.with_mut(|is_freed| unsafe { *is_freed = true });
        true
    }

    /// With these mistakes two may have overwritten the same version, and both free it, or it is freed while others use it, who should not have
    /// found it or should have given up.
    #[cfg(not(all(test, loom)))]
    fn keeps_memory(self) -> bool {
        let faults = [
            Fault::OverwriteUncommitted,
            Fault::SkipCommitting,
            Fault::SkipNodes,
            Fault::EvictUsed,
            Fault::KeepMark,
        ];
        faults.into_iter().any(has_fault::<I>)
    }
}

// Written by hand: an address is copied, compared and shown whatever the level is.
impl<I: Isolation> Clone for Version<I> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Isolation> Copy for Version<I> {}

impl<I: Isolation> PartialEq for Version<I> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<I: Isolation> std::fmt::Debug for Version<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Version").field(&self.0.as_ptr()).finish()
    }
}
