//! The words of a record that patches have set, until the replay ends.
//!
//! They stand behind the link to the record's previous version (R3): no record has one while a log is replayed. There may be millions of
//! such records with a word or two each, and each is looked at again for every later write: a list is one piece of memory, and it
//! comes from the arena of the worker that makes it, where it stays until the replay is over.
//!
//! # Layout
//! ```text
//! | len (u32) | capacity (u32) | PendingWord .. |
//! ```

use std::alloc::Layout;
use std::ptr::NonNull;

use bumpalo::Bump;
use ensilo_engine::Tid;
use ensilo_log::ReplayError;

use crate::record::RecordPtr;

/// One word that a patch has set.
#[derive(Copy, Clone, Debug)]
pub(super) struct PendingWord {
    pub(super) index: u32,
    pub(super) tid: Tid,
    pub(super) word: u64,
}

/// The pending words of one record, each index once, in their order.
#[repr(C, align(8))]
struct List {
    len: u32,
    capacity: u32,
}

const _: () = assert!(size_of::<List>().is_multiple_of(align_of::<PendingWord>()));

/// A record that the caller has locked, so that its pending words are the caller's.
pub(super) struct LockedRecord(RecordPtr);

impl LockedRecord {
    /// Wraps a record. It must be locked by the caller, or not yet known to anybody else, while this value lives, and the arenas of
    /// all workers must be there.
    pub(super) fn new(record: RecordPtr) -> Self {
        LockedRecord(record)
    }

    fn list(&self) -> Option<NonNull<List>> {
        NonNull::new(self.0.side().cast())
    }

    /// Returns whether a patch has ever reached it.
    pub(super) fn has_list(&self) -> bool {
        self.list().is_some()
    }

    /// Returns the pending words.
    pub(super) fn words(&self) -> &[PendingWord] {
        let Some(list) = self.list() else { return &[] };
        // SAFETY: a list that a record leads to was made by `begin`, in an arena that is still there, and its first `len` words were
        // written by `insert`; the lock keeps others from changing it.
        unsafe { std::slice::from_raw_parts(first(list), list.as_ref().len as usize) }
    }

    /// Makes an empty list with room for `capacity` words; there is none.
    pub(super) fn begin(&self, arena: &Bump, capacity: usize) -> Result<(), ReplayError> {
        debug_assert!(!self.has_list(), "a second list for one record");
        self.0.set_side(allocate(arena, capacity)?.as_ptr().cast());
        Ok(())
    }

    /// Sets a word, unless a later patch has set it; says whether it did. There is a list.
    pub(super) fn set(&self, arena: &Bump, word: PendingWord) -> Result<bool, ReplayError> {
        let at = match self.words().binary_search_by_key(&word.index, |pending| pending.index) {
            Ok(at) => at,
            Err(at) => return self.insert(arena, at, word).map(|()| true),
        };
        let is_later = self.words()[at].tid <= word.tid;
        if is_later {
            self.write(at, word);
        }
        Ok(is_later)
    }

    /// Takes out the words that a base with this TID has set as well.
    pub(super) fn forget_until(&self, tid: Tid) {
        let mut kept = 0;
        for at in 0..self.words().len() {
            let word = self.words()[at];
            if word.tid > tid {
                self.write(kept, word);
                kept += 1;
            }
        }
        self.set_len(kept);
    }

    /// Gives the list to a record that takes this one's place.
    pub(super) fn hand_to(&self, new: RecordPtr) {
        new.set_side(self.0.side());
        self.forget();
    }

    /// Ends what is pending.
    pub(super) fn forget(&self) {
        self.0.set_side(std::ptr::null_mut());
    }

    /// Puts a word in front of the one at a place, or behind the last one.
    fn insert(&self, arena: &Bump, at: usize, word: PendingWord) -> Result<(), ReplayError> {
        let len = self.words().len();
        let list = self.with_room(arena, len)?;
        assert!(at <= len, "a place within the list");
        // SAFETY: the list has room for a word more than the first `len`, which were written; the lock keeps others from it, and no
        // reference into it lives during this call.
        unsafe { std::ptr::copy(first(list).add(at), first(list).add(at + 1), len - at) };
        self.write(at, word);
        self.set_len(len + 1);
        Ok(())
    }

    /// Returns the list, which has `len` words, with room for one more.
    fn with_room(&self, arena: &Bump, len: usize) -> Result<NonNull<List>, ReplayError> {
        let list = self.list().expect("a list was begun");
        // SAFETY: see `words`.
        if unsafe { list.as_ref() }.capacity as usize > len {
            return Ok(list);
        }
        let larger = allocate(arena, (2 * len).max(1))?;
        // SAFETY: the larger list has room for more words, and is new.
        unsafe { std::ptr::copy_nonoverlapping(first(list), first(larger), len) };
        self.0.set_side(larger.as_ptr().cast());
        self.set_len(len);
        Ok(larger)
    }

    /// Writes the word at a place within the capacity.
    fn write(&self, at: usize, word: PendingWord) {
        let list = self.list().expect("a list was begun");
        // SAFETY: see `words`.
        assert!(at < unsafe { list.as_ref() }.capacity as usize, "a place within the list");
        // SAFETY: the list has that many places, and the lock keeps others from it; no reference into it lives during this call.
        unsafe { first(list).add(at).write(word) };
    }

    /// Says how many words there are, all of which were written.
    fn set_len(&self, len: usize) {
        let Some(mut list) = self.list() else { return };
        // SAFETY: see `write`.
        unsafe { list.as_mut() }.len = len as u32;
    }
}

fn allocate(arena: &Bump, capacity: usize) -> Result<NonNull<List>, ReplayError> {
    let words = Layout::array::<PendingWord>(capacity).expect("fewer words than a row has");
    let (layout, _) = Layout::new::<List>().extend(words).expect("fewer words than a row has");
    let list = arena.try_alloc_layout(layout).map_err(|_| ReplayError::OutOfMemory)?.cast::<List>();
    // SAFETY: the memory is new, and large and aligned enough.
    unsafe { list.write(List { len: 0, capacity: capacity as u32 }) };
    Ok(list)
}

/// Returns the first word's place.
fn first(list: NonNull<List>) -> *mut PendingWord {
    // SAFETY: the words begin behind the head, in the same piece of memory.
    unsafe { list.add(1) }.cast().as_ptr()
}
