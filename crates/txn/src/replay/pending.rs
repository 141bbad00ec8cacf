//! The words of a record that patches have set, until they become part of the row ([`fold`](super::fold)).
//!
//! Those of patches that come in their order, to a row that is there, are part of it at once, and stand in a [`chain`](super::chain) instead. Each list is
//! looked at again for every later write, and short: it is one piece of [`memory`](super::list_memory) that is used again.
//!
//! # Layout
//! ```text
//! | len (u32) | capacity (u32) | PendingWord .. |
//! ```

use std::iter;
use std::ptr::NonNull;

use ensilo_engine::Tid;

use super::list_memory::{ListMemory, NoMemory, PendingList, first_word};
use super::side::Side;
use crate::record::RecordPtr;

/// One word that a patch has set.
#[derive(Copy, Clone, Debug)]
pub(super) struct PendingWord {
    pub(super) index: u32,
    pub(super) tid: Tid,
    pub(super) word: u64,
}

/// A record that the caller has locked, so that its pending words are the caller's.
pub(super) struct LockedRecord {
    record: RecordPtr,
    /// What its link leads to.
    list: Option<NonNull<PendingList>>,
}

impl LockedRecord {
    /// Wraps a record. It must be locked by the caller, or not yet known to anybody else, while this value lives, and the arenas of
    /// all workers must be there.
    pub(super) fn new(record: RecordPtr) -> Self {
        let list = if let Side::List(list) = Side::of(record) { Some(list) } else { None };
        LockedRecord { record, list }
    }

    /// Returns whether there is a list, which may be empty.
    pub(super) fn has_list(&self) -> bool {
        self.list.is_some()
    }

    /// Returns the pending words.
    pub(super) fn words(&self) -> &[PendingWord] {
        let Some(list) = self.list else { return &[] };
        // SAFETY: a list that a record leads to was made by `begin`, in an arena that is still there, and its first `len` words were
        // written by that or `push`; the lock keeps others from changing it.
        unsafe { std::slice::from_raw_parts(first_word(list), list.as_ref().len as usize) }
    }

    /// Sets words, of each of which it tells `on_set`, but those that a later patch has set. Makes a list if there is none.
    pub(super) fn set_words(
        &mut self,
        memory: &mut ListMemory,
        mut words: impl ExactSizeIterator<Item = PendingWord>,
        mut on_set: impl FnMut(PendingWord),
    ) -> Result<(), NoMemory> {
        if self.list.is_some() {
            return self.add_words(memory, words, on_set);
        }
        match self.begin(memory, &mut words, &mut on_set)? {
            None => Ok(()),
            Some(beyond) => self.add_words(memory, iter::once(beyond).chain(words), on_set),
        }
    }

    /// Makes a list, and sets words as long as their indexes rise. Returns the first one that does not follow. There is no list.
    fn begin(
        &mut self,
        memory: &mut ListMemory,
        words: &mut impl ExactSizeIterator<Item = PendingWord>,
        on_set: &mut impl FnMut(PendingWord),
    ) -> Result<Option<PendingWord>, NoMemory> {
        let capacity = words.len();
        let list = memory.take(capacity)?;
        self.lead_to(list);
        let (mut len, mut rises_from) = (0, 0u64);
        let beyond = words.find(|&word| {
            let index = u64::from(word.index);
            let is_next = len < capacity && index >= rises_from;
            if is_next {
                // SAFETY: the list has room for `capacity` words, and nobody else knows it.
                unsafe { first_word(list).add(len).write(word) };
                (len, rises_from) = (len + 1, index + 1);
                on_set(word);
            }
            !is_next
        });
        self.set_len(len);
        Ok(beyond)
    }

    /// Does what [`LockedRecord::set_words`] does. There is a list.
    ///
    /// New words go behind the others, and to their places together: a patch of many moves each word of the list once.
    fn add_words(
        &mut self,
        memory: &mut ListMemory,
        words: impl Iterator<Item = PendingWord>,
        mut on_set: impl FnMut(PendingWord),
    ) -> Result<(), NoMemory> {
        let mut sorted = self.words().len();
        for word in words {
            let is_out_of_order = self.words()[sorted..].last().is_some_and(|last| last.index >= word.index);
            if is_out_of_order {
                sorted = self.settle(sorted);
            }
            if self.set(memory, sorted, word)? {
                on_set(word);
            }
        }
        self.settle(sorted);
        Ok(())
    }

    /// Sets a word, unless a later patch has set it; says whether it did. The first `sorted` words are in their order, and those behind
    /// them are of smaller indexes than this one and of others than the first.
    fn set(&mut self, memory: &mut ListMemory, sorted: usize, word: PendingWord) -> Result<bool, NoMemory> {
        let Ok(at) = self.words()[..sorted].binary_search_by_key(&word.index, |pending| pending.index) else {
            return self.push(memory, word).map(|()| true);
        };
        let is_later = self.words()[at].tid <= word.tid;
        if is_later {
            self.write(at, word);
        }
        Ok(is_later)
    }

    /// Moves the words behind the first `sorted` ones to their places. Returns how many are in their order now: all.
    fn settle(&mut self, sorted: usize) -> usize {
        let Some(list) = self.list else { return 0 };
        // SAFETY: as in `words`; the lock keeps others from the list, and no other reference into it lives during this call.
        let words = unsafe { std::slice::from_raw_parts_mut(first_word(list), list.as_ref().len as usize) };
        merge(words, sorted);
        words.len()
    }

    /// Takes out all words but those of TIDs for which `is_kept` holds.
    pub(super) fn keep(&mut self, is_kept: impl Fn(Tid) -> bool) {
        let mut kept = 0;
        for at in 0..self.words().len() {
            let word = self.words()[at];
            if is_kept(word.tid) {
                self.write(kept, word);
                kept += 1;
            }
        }
        self.set_len(kept);
    }

    /// Gives the list, if there is one, to a record that takes this one's place.
    pub(super) fn hand_to(&mut self, new: RecordPtr) {
        if let Some(list) = self.list.take() {
            Side::List(list).put(new);
            Side::Chain(None).put(self.record);
        }
    }

    /// Ends what is pending.
    pub(super) fn end(&mut self, memory: &mut ListMemory) {
        let Some(list) = self.list.take() else { return };
        Side::Chain(None).put(self.record);
        // SAFETY: as in `with_room`.
        unsafe { memory.give_back(list) };
    }

    /// Has the link lead to a list.
    fn lead_to(&mut self, list: NonNull<PendingList>) {
        self.list = Some(list);
        Side::List(list).put(self.record);
    }

    /// Puts a word behind the last one.
    fn push(&mut self, memory: &mut ListMemory, word: PendingWord) -> Result<(), NoMemory> {
        let len = self.words().len();
        self.with_room(memory, len)?;
        self.write(len, word);
        self.set_len(len + 1);
        Ok(())
    }

    /// Sees to it that the list, which has `len` words, has room for one more.
    fn with_room(&mut self, memory: &mut ListMemory, len: usize) -> Result<(), NoMemory> {
        let list = self.list.expect("a list was begun");
        // SAFETY: see `words`.
        if unsafe { list.as_ref() }.capacity as usize > len {
            return Ok(());
        }
        let larger = memory.take(len + 1)?;
        // SAFETY: the larger list has room for more words, and is new.
        unsafe { std::ptr::copy_nonoverlapping(first_word(list), first_word(larger), len) };
        self.lead_to(larger);
        self.set_len(len);
        // SAFETY: it came from a worker's memory, the record was all that led to it, and no reference into it lives.
        unsafe { memory.give_back(list) };
        Ok(())
    }

    /// Writes the word at a place within the capacity.
    fn write(&mut self, at: usize, word: PendingWord) {
        let list = self.list.expect("a list was begun");
        // SAFETY: see `words`.
        assert!(at < unsafe { list.as_ref() }.capacity as usize, "a place within the list");
        // SAFETY: the list has that many places, and the lock keeps others from it; no reference into it lives during this call.
        unsafe { first_word(list).add(at).write(word) };
    }

    /// Says how many words there are, all of which were written.
    fn set_len(&mut self, len: usize) {
        let Some(mut list) = self.list else { return };
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
