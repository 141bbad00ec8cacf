//! The link from a record to what was there before.

use std::ptr::NonNull;

use ensilo_engine::{RawRecord, TableId};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::prefetch;

use super::RecordPtr;
use crate::tid::TidWord;

/// In a link: it leads to a copy, which stands beside the tree.
const LEADS_TO_COPY: usize = 1;

/// In the link of a copy: it was [renewed](super::renew) since its owner put it on its list.
const IS_RENEWED: usize = 1 << 1;

impl RecordPtr {
    /// Returns the version before this one. Acquire: [previous] its row is as complete as the link.
    #[inline]
    pub(crate) fn previous(self) -> Option<RecordPtr> {
        record_of(self.link())
    }

    /// Returns the version before this one if it is a copy.
    #[inline]
    pub(super) fn previous_copy(self) -> Option<RecordPtr> {
        let link = self.link();
        if link.addr() & LEADS_TO_COPY == 0 { None } else { record_of(link) }
    }

    /// Returns the link to the version before this one, with its bits. Acquire: [previous].
    #[inline]
    fn link(self) -> *mut () {
        self.header().previous.load(Ordering::Acquire)
    }

    /// Links `older`, which has been in the tree, as the version before this one. Release: [previous].
    #[inline]
    pub(crate) fn set_previous(self, older: RecordPtr) {
        self.header().previous.store(older.as_ptr().as_ptr(), Ordering::Release);
    }

    /// Links what `newer` links to as the version before this one. Release: [previous].
    #[inline]
    pub(crate) fn set_previous_of(self, newer: RecordPtr) {
        let link = newer.link().map_addr(|address| address & !IS_RENEWED);
        self.header().previous.store(link, Ordering::Release);
    }

    /// Links a copy as the version before this one. Release: [previous].
    #[inline]
    pub(super) fn link_copy(self, copy: RecordPtr) {
        let link = copy.as_ptr().as_ptr().map_addr(|address| address | LEADS_TO_COPY);
        self.header().previous.store(link, Ordering::Release);
    }

    /// Copies this record's row and its `word` into `copy`, and links it as the previous version. The caller holds the lock.
    pub(crate) fn push_version(self, copy: RecordPtr, word: TidWord) {
        copy.copy_row(self);
        copy.header().tid.store(word.superseded().raw(), Ordering::Relaxed);
        copy.set_previous_of(self);
        self.link_copy(copy);
    }

    /// Makes `mark` the version with this record's `word` and row, and links it as the previous one. The caller holds the lock, and
    /// deletes the record.
    pub(crate) fn push_mark(self, mark: RecordPtr, word: TidWord) {
        debug_assert!(mark.is_mark());
        mark.header().tid.store(word.superseded().raw(), Ordering::Relaxed);
        mark.set_previous_of(self);
        self.set_previous(mark);
    }

    /// Takes a copy out of the chain, between `newer` and what is behind it. The caller holds the lock of the record in the tree.
    pub(super) fn unlink_copy(self, newer: RecordPtr) {
        // Relaxed: only its owner's `end_renewal` may change the bit meanwhile, which is then set again, and ended again.
        let is_renewed = newer.header().previous.load(Ordering::Relaxed).addr() & IS_RENEWED;
        let link = self.link().map_addr(|address| address & !IS_RENEWED | is_renewed);
        // Release: [previous] what is linked now was linked before.
        newer.header().previous.store(link, Ordering::Release);
    }

    /// Links what `newer` links to behind this copy, and says in the same store that it is renewed. The caller holds the lock of the record in
    /// the tree.
    pub(super) fn mark_renewed_before(self, newer: RecordPtr) {
        let link = newer.link().map_addr(|address| address | IS_RENEWED);
        // Release: [renewal] its owner sees the new version, and the epoch that there was then.
        self.header().previous.store(link, Ordering::Release);
    }

    /// Returns whether a copy was renewed since it was put on its owner's list, and forgets that: the caller, its owner, puts it there again.
    pub(crate) fn end_renewal(self) -> bool {
        // Acquire: [renewal] the epoch that is read next is that of the new version's successor, or a later one.
        if self.link().addr() & IS_RENEWED == 0 {
            return false;
        }
        let previous = &self.header().previous;
        let mut link = previous.load(Ordering::Acquire);
        loop {
            let cleared = link.map_addr(|address| address & !IS_RENEWED);
            match previous.compare_exchange(link, cleared, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => link = now,
            }
        }
    }

    /// Returns whether this is a mark (I4).
    #[inline]
    pub(crate) fn is_mark(self) -> bool {
        self.store() == TableId::NONE
    }
}

/// Returns the record that a link leads to.
#[inline]
fn record_of(link: *mut ()) -> Option<RecordPtr> {
    let address = NonNull::new(link.map_addr(|address| address & !(LEADS_TO_COPY | IS_RENEWED)));
    // SAFETY: the functions of this file have put the address there, and I3 keeps what a link leads to.
    address.map(|address| RecordPtr(unsafe { RawRecord::from_ptr(address) }))
}

/// While a log is replayed records have no previous versions, and the link leads to something else.
impl RecordPtr {
    /// Returns what the link to the previous version leads to during a replay, which is something else. The caller holds the record's lock.
    #[inline]
    pub(crate) fn side(self) -> *mut () {
        // Relaxed: the lock orders it.
        self.header().previous.load(Ordering::Relaxed)
    }

    /// Puts another address there. The caller holds the record's lock.
    #[inline]
    pub(crate) fn set_side(self, side: *mut ()) {
        // Relaxed: as in `side`.
        self.header().previous.store(side, Ordering::Relaxed);
    }

    /// Starts to load what lies behind the link. The header is waited for if it is not in the cache.
    #[inline]
    pub(crate) fn prefetch_side(self) {
        prefetch(self.side().cast::<u8>().cast_const());
    }
}
