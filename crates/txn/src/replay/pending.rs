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
        // written by `push`; the lock keeps others from changing it.
        unsafe { std::slice::from_raw_parts(first(list), list.as_ref().len as usize) }
    }

    /// Makes an empty list with room for `capacity` words; there is none.
    pub(super) fn begin(&self, arena: &Bump, capacity: usize) -> Result<(), ReplayError> {
        debug_assert!(!self.has_list(), "a second list for one record");
        self.0.set_side(allocate(arena, capacity)?.as_ptr().cast());
        Ok(())
    }

    /// Sets words, of each of which it tells `on_set`, but those that a later patch has set. There is a list.
    ///
    /// New words go behind the others, and to their places together: a patch of many moves each word of the list once.
    pub(super) fn set_words(
        &self,
        arena: &Bump,
        words: impl Iterator<Item = PendingWord>,
        mut on_set: impl FnMut(PendingWord),
    ) -> Result<(), ReplayError> {
        let mut sorted = self.words().len();
        for word in words {
            let is_out_of_order = self.words()[sorted..].last().is_some_and(|last| last.index >= word.index);
            if is_out_of_order {
                sorted = self.settle(sorted);
            }
            if self.set(arena, sorted, word)? {
                on_set(word);
            }
        }
        self.settle(sorted);
        Ok(())
    }

    /// Sets a word, unless a later patch has set it; says whether it did. The first `sorted` words are in their order, and those behind
    /// them are of smaller indexes than this one and of others than the first.
    fn set(&self, arena: &Bump, sorted: usize, word: PendingWord) -> Result<bool, ReplayError> {
        let Ok(at) = self.words()[..sorted].binary_search_by_key(&word.index, |pending| pending.index) else {
            return self.push(arena, word).map(|()| true);
        };
        let is_later = self.words()[at].tid <= word.tid;
        if is_later {
            self.write(at, word);
        }
        Ok(is_later)
    }

    /// Moves the words behind the first `sorted` ones to their places. Returns how many are in their order now: all.
    fn settle(&self, sorted: usize) -> usize {
        let Some(list) = self.list() else { return 0 };
        // SAFETY: as in `words`; the lock keeps others from the list, and no other reference into it lives during this call.
        let words = unsafe { std::slice::from_raw_parts_mut(first(list), list.as_ref().len as usize) };
        merge(words, sorted);
        words.len()
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

    /// Puts a word behind the last one.
    fn push(&self, arena: &Bump, word: PendingWord) -> Result<(), ReplayError> {
        let len = self.words().len();
        self.with_room(arena, len)?;
        self.write(len, word);
        self.set_len(len + 1);
        Ok(())
    }

    /// Sees to it that the list, which has `len` words, has room for one more.
    fn with_room(&self, arena: &Bump, len: usize) -> Result<(), ReplayError> {
        let list = self.list().expect("a list was begun");
        // SAFETY: see `words`.
        if unsafe { list.as_ref() }.capacity as usize > len {
            return Ok(());
        }
        let larger = allocate(arena, (2 * len).max(1))?;
        // SAFETY: the larger list has room for more words, and is new.
        unsafe { std::ptr::copy_nonoverlapping(first(list), first(larger), len) };
        self.0.set_side(larger.as_ptr().cast());
        self.set_len(len);
        Ok(())
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

/// Moves the words behind the first `sorted` ones to their places; each part is in its order, and no index is in both. Returns how many words
/// it has looked at to move them.
fn merge(words: &mut [PendingWord], sorted: usize) -> usize {
    let (before, added) = words.split_at(sorted);
    let (Some(first), Some(last)) = (added.first(), added.last()) else { return 0 };
    let from = before.partition_point(|word| word.index < first.index);
    if from == sorted {
        return 0;
    }
    let (is_one_piece, added_len) = (last.index < before[from].index, added.len());
    let words = &mut words[from..];
    if is_one_piece {
        words.rotate_right(added_len);
    } else {
        words.sort_unstable_by_key(|word| word.index);
    }
    words.len()
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn words(indexes: impl Iterator<Item = u32>) -> impl Iterator<Item = PendingWord> {
        indexes.map(|index| PendingWord { index, tid: Tid::from_raw(1), word: 0 })
    }

    /// Adds patches of these words, and returns how many words were moved for each.
    fn moved_for<I: Iterator<Item = u32>>(patches: impl Iterator<Item = I>) -> Vec<usize> {
        let mut list = Vec::new();
        let add = |patch: I| {
            let sorted = list.len();
            list.extend(words(patch));
            let moved = merge(&mut list, sorted);
            assert!(list.is_sorted_by_key(|word| word.index));
            moved
        };
        patches.map(add).collect()
    }

    #[test]
    fn a_patch_moves_the_words_behind_it_once() {
        let descending = moved_for((0..60).rev().map(|patch| patch * 1000..(patch + 1) * 1000));
        assert!(descending.iter().enumerate().all(|(before, &moved)| moved <= (before + 1) * 1000));
        let ascending = moved_for((0..60).map(|patch| patch * 1000..(patch + 1) * 1000));
        assert!(ascending.iter().all(|&moved| moved == 0));
        let interleaved = moved_for((0..60).rev().map(|patch| (0..1000).map(move |word| word * 60 + patch)));
        assert!(interleaved.iter().enumerate().all(|(before, &moved)| moved <= (before + 1) * 1000));
    }
}
