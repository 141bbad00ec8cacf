//! The link from a record to what was there before.

use std::ptr::NonNull;

use ensilo_engine::{RawRecord, TableId};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::prefetch;

use super::RecordPtr;
use crate::tid::TidWord;

impl RecordPtr {
    /// Returns the version before this one. Acquire: [previous] its row is as complete as the link.
    #[inline]
    pub(crate) fn previous(self) -> Option<RecordPtr> {
        let link = NonNull::new(self.header().previous.load(Ordering::Acquire));
        // SAFETY: `set_previous` has put the address there, and I3 keeps what a link leads to.
        link.map(|address| RecordPtr(unsafe { RawRecord::from_ptr(address) }))
    }

    /// Links `older` as the version before this one. Release: [previous].
    #[inline]
    pub(crate) fn set_previous(self, older: Option<RecordPtr>) {
        let link = older.map_or(std::ptr::null_mut(), |record| record.as_ptr().as_ptr());
        self.header().previous.store(link, Ordering::Release);
    }

    /// Copies this record's row and its `word` into `copy`, and links it as the previous version. The caller holds the lock.
    pub(crate) fn push_version(self, copy: RecordPtr, word: TidWord) {
        copy.copy_row(self);
        copy.header().tid.store(word.superseded().raw(), Ordering::Relaxed);
        copy.set_previous(self.previous());
        self.set_previous(Some(copy));
    }

    /// Makes `mark` the version with this record's `word` and row, and links it as the previous one. The caller holds the lock, and
    /// deletes the record.
    pub(crate) fn push_mark(self, mark: RecordPtr, word: TidWord) {
        debug_assert!(mark.is_mark());
        mark.header().tid.store(word.superseded().raw(), Ordering::Relaxed);
        mark.set_previous(self.previous());
        self.set_previous(Some(mark));
    }

    /// Returns whether this is a mark (I4).
    #[inline]
    pub(crate) fn is_mark(self) -> bool {
        self.store() == TableId::NONE
    }
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

    /// Starts to load the row, and what lies behind the link. The header is waited for if it is not in the cache.
    #[inline]
    pub(crate) fn prefetch_row_and_side(self) {
        self.prefetch_row();
        prefetch(self.side().cast::<u8>().cast_const());
    }
}
