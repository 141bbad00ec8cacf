//! The words of a record that patches have set, until the replay ends.
//!
//! They stand behind the link to the record's previous version (R3): no record has one while a log is replayed.

use crate::record::RecordPtr;
use crate::tid::Tid;

/// One word that a patch has set.
#[derive(Copy, Clone, Debug)]
pub(super) struct PendingWord {
    pub(super) index: u32,
    pub(super) tid: Tid,
    pub(super) word: u64,
}

/// The pending words of one record, each index once.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) words: Vec<PendingWord>,
}

impl Pending {
    /// None yet, and room for no more than `words`: most records are patched in the same few words, and there may be millions of them.
    pub(super) fn with_capacity(words: usize) -> Self {
        Pending { words: Vec::with_capacity(words) }
    }

    /// Sets a word, unless a later patch has set it; says whether it did.
    pub(super) fn set(&mut self, index: u32, tid: Tid, word: u64) -> bool {
        match self.words.iter_mut().find(|pending| pending.index == index) {
            Some(pending) if pending.tid > tid => false,
            Some(pending) => {
                *pending = PendingWord { index, tid, word };
                true
            }
            None => {
                self.words.push(PendingWord { index, tid, word });
                true
            }
        }
    }

    /// The largest TID of a pending word.
    pub(super) fn largest_tid(&self) -> Option<Tid> {
        self.words.iter().map(|pending| pending.tid).max()
    }
}

/// A record whose lock the caller holds, so that its pending words are the caller's.
pub(super) struct LockedRecord(RecordPtr);

impl LockedRecord {
    /// The record must be locked by the caller, or not yet known to anybody else, while this value lives.
    pub(super) fn new(record: RecordPtr) -> Self {
        LockedRecord(record)
    }

    /// Takes the pending words out.
    pub(super) fn take_pending(&self) -> Option<Box<Pending>> {
        let link = self.0.exchange_side(std::ptr::null_mut());
        // SAFETY: R3: during a replay the link is null or was made by `put_pending`, which gave the box away; the exchange
        // leaves no second owner.
        (!link.is_null()).then(|| unsafe { Box::from_raw(link.cast::<Pending>()) })
    }

    /// Puts pending words in; there are none.
    pub(super) fn put_pending(&self, pending: Box<Pending>) {
        let before = self.0.exchange_side(Box::into_raw(pending).cast());
        debug_assert!(before.is_null(), "the pending words were taken out before");
    }
}
