//! A record: one TID word, a link to the previous version, and the row in the same allocation.
//!
//! This file has the rules by which it is locked, read and written; [`allocate`] where it comes from and goes to, [`versions`] what
//! it links to, [`renew`] how copies of versions are used again.
//!
//! # Source
//! Silo (SOSP 2013) §4.3 and §4.5. The header is 24 bytes where the prototype's is 32. The row's words are atomics
//! (DESIGN, decision 2): readers and the one writer that holds the lock may touch them at the same time.
//!
//! # Layout
//! ```text
//!  0        8          16       24                              24 + 8 * capacity
//! +--------+----------+--------+-------------------------------+
//! | TID    | previous | meta   | row, 8 bytes a word           |
//! +--------+----------+--------+-------------------------------+
//! meta: see RawRecord
//! ```
//!
//! # Invariants
//! I1. Capacity and store never change; the row length never exceeds the capacity.
//! I2. Row and length change only under the lock, and only while the record is the latest version of its key; or while it is a copy whose row
//!     nobody reads ([`renew`], N3).
//! I3. A record that the tree or a `previous` link reached is freed only after every transaction that could have found it has ended.
//! I4. A *mark* is a version without a row of its own: its row lies in the deleted record that links to it, and stays there. A mark names
//!     no store and has no room for a row.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | tid-install | [`RecordPtr::publish`] Release | [`RecordPtr::stable_tid`] Acquire | the row before its TID |
//! | tid-lock | Release fence in [`RecordPtr::try_lock`] and [`RecordPtr::begin_install`] | Acquire fence in [`RecordPtr::is_still`] | a reader that copied a word of a later writer sees that writer's lock |
//! | previous | [`RecordPtr::push_version`] Release | [`RecordPtr::previous`] Acquire | the copied version before the link to it |
//! | renewal | [`RecordPtr::renew_copy`] Release | [`RecordPtr::end_renewal`], [`RecordPtr::tid`] Acquire | a renewed copy was taken out before, and its owner sees the epoch of then |

mod allocate;
mod renew;
mod versions;

use std::ops::Deref;

use ensilo_engine::{AbortReason, RawRecord, Tid};
use ensilo_sync::Backoff;
use ensilo_sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

use crate::tid::TidWord;

/// Waiting steps after which a held lock is reported as such. A commit holds its locks for microseconds; only a thread
/// that lost its core holds them longer, and the later waiting steps give the core away to let it run.
const LOCK_WAITS_MAX: u32 = 20_000;

/// What a record begins with.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    tid: AtomicU64,
    previous: AtomicPtr<()>,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Header>() == 16);

/// The address of a record.
///
/// The type's promise is that the record is allocated and that invariant I3 keeps it so while the transaction that
/// holds the address is pinned; the one unsafe way to break it is [`RecordPtr::from_index_value`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordPtr(RawRecord<Header>);

impl Deref for RecordPtr {
    type Target = RawRecord<Header>;

    #[inline]
    fn deref(&self) -> &RawRecord<Header> {
        &self.0
    }
}

impl RecordPtr {
    /// Returns the record that stands in an index under `value`.
    ///
    /// # Safety
    /// `value` must come from [`RawRecord::index_value`] of a record that I3 protects: read from the index while pinned.
    #[inline]
    pub(crate) unsafe fn from_index_value(value: u64) -> RecordPtr {
        // SAFETY: the caller's promise.
        RecordPtr(unsafe { RawRecord::from_index_value(value) })
    }

    /// Overwrites the row of this record, which nobody else knows, or reads (N3 of [`renew`]), by that of `locked`, which the caller has locked. It
    /// fits.
    pub(crate) fn copy_row(self, locked: RecordPtr) {
        // SAFETY: the words of `locked` are written by the holder of its lock alone, which is the caller (I2), those of `self` by the caller
        // too, and read by nobody; what earlier holders wrote is visible since the lock was taken.
        unsafe { self.0.copy_row(locked.0) }
    }

    /// Returns the TID word, for validation. Acquire: [tid-install] what is concluded from it is at least as new.
    #[inline]
    pub(crate) fn tid(self) -> TidWord {
        TidWord::from_raw(self.header().tid.load(Ordering::Acquire))
    }

    /// Returns the TID word once no writer is at work, or why there is none: a writer holds the lock for unreasonably long, or a prepared
    /// transaction does, for which nobody waits.
    #[inline]
    pub(crate) fn stable_tid(self) -> Result<TidWord, AbortReason> {
        let word = self.tid();
        if word.is_locked() { self.wait_for_unlock() } else { Ok(word) }
    }

    #[cold]
    fn wait_for_unlock(self) -> Result<TidWord, AbortReason> {
        match self.standing_tid() {
            Some(word) if word.is_prepared() => Err(AbortReason::PreparedLock),
            Some(word) => Ok(word),
            None => Err(AbortReason::LockHeld),
        }
    }

    /// Returns the TID word once the row stands: no writer is at work, or the one that holds the lock is prepared and changes
    /// nothing before its decision. `None` when a writer is at work for unreasonably long.
    pub(crate) fn standing_tid(self) -> Option<TidWord> {
        let mut backoff = Backoff::new();
        while backoff.waits() < LOCK_WAITS_MAX {
            let word = self.tid();
            if !word.is_locked() || word.is_prepared() {
                return Some(word);
            }
            backoff.wait();
        }
        None
    }

    /// Returns whether the TID word is still `word`, so that everything copied since it was read belongs to that version.
    #[inline]
    pub(crate) fn is_still(self, word: TidWord) -> bool {
        // Acquire fence: [tid-lock] if a copied word came from a later writer, the load below sees its lock or its TID.
        fence(Ordering::Acquire);
        self.header().tid.load(Ordering::Relaxed) == word.raw()
    }

    /// Takes the lock if the TID word is exactly `expected`, which must be unlocked.
    #[inline]
    pub(crate) fn try_lock(self, expected: TidWord) -> bool {
        debug_assert!(!expected.is_locked());
        let locked = expected.locked().raw();
        // Acquire: we write over what the previous holder installed. On failure nothing is concluded but "not now".
        let taken = self
            .header()
            .tid
            .compare_exchange(expected.raw(), locked, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        // Release fence: [tid-lock] no word that we store after this becomes visible before the lock does.
        fence(Ordering::Release);
        taken
    }

    /// Stores `word`, which frees the lock. Release: [tid-install].
    #[inline]
    pub(crate) fn publish(self, word: TidWord) {
        debug_assert!(self.tid().is_locked() && !word.is_locked());
        self.header().tid.store(word.raw(), Ordering::Release);
    }

    /// Sets the TID word of a record that is not published yet.
    #[inline]
    pub(crate) fn set_unpublished_tid(self, word: TidWord) {
        // Relaxed: publishing the record's address carries it.
        self.header().tid.store(word.raw(), Ordering::Relaxed);
    }

    /// Returns whether the record is a committed deletion, which its deleter's unhook list owns.
    pub(crate) fn belongs_to_unhook(self) -> bool {
        let word = self.tid();
        word.is_absent() && word.tid() != Tid::ZERO
    }
}

/// What a prepared transaction, which keeps its locks until its decision, does with them.
impl RecordPtr {
    /// Says that the holder of the lock is prepared. `word` is what the record carried before it was locked.
    pub(crate) fn hold_prepared(self, word: TidWord) {
        debug_assert!(self.tid() == word.locked());
        // Release: who sees the word sees what came before the vote.
        self.header().tid.store(word.prepared().raw(), Ordering::Release);
    }

    /// Says that the holder of the lock, which was prepared, is at work.
    pub(crate) fn begin_install(self, word: TidWord) {
        debug_assert!(self.tid() == word.prepared());
        self.header().tid.store(word.locked().raw(), Ordering::Relaxed);
        // Release fence: [tid-lock] as in `try_lock`: who has read the row beside the prepared word sees this one if a word was newer.
        fence(Ordering::Release);
    }
}
