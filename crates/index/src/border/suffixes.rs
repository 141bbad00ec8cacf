//! The suffixes and paths of a border node's slots, in a bag that is replaced when it is full, or holds little any more.

use std::ptr::NonNull;

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};
use ensilo_sync::atomic::Ordering;

use super::Border;
use crate::WIDTH;
use crate::key::{KeyTail, has_bytes};
use crate::node::Node;
use crate::suffix::{Suffix, SuffixBag, words_for};
use crate::unlinked::{TreePart, Unlinked, check_is_allocated};

impl Border {
    /// Returns the bag of suffixes, if the node ever had one.
    #[inline]
    pub(crate) fn suffixes(&self) -> Option<SuffixBag<'_>> {
        // Acquire: [link] the bag is initialised, and has the suffixes of all slots of the permutation read before.
        let header = NonNull::new(self.suffixes.load(Ordering::Acquire))?;
        check_is_allocated(header.addr().get() as u64);
        // SAFETY: the node refers to this bag, or did when it was read, and it is retired only after it was replaced.
        Some(unsafe { SuffixBag::new(header) })
    }

    /// Returns the suffix of a slot of kind `SUFFIX`, or the path of one of kind `PATH`; none if it has changed meanwhile.
    #[inline]
    pub(crate) fn suffix(&self, slot: usize) -> Option<Suffix<'_>> {
        self.suffixes().map(|bag| bag.suffix(slot))
    }

    /// Returns whether the slot's suffix is that of the key, which goes on; false if there is no bag.
    #[inline]
    pub(crate) fn suffix_equals(&self, slot: usize, key: KeyTail<'_>) -> bool {
        self.suffixes().is_some_and(|bag| bag.suffix(slot).equals(key.suffix()))
    }

    /// Returns the length of the slot's path, if the key, which goes on, goes on along it and behind it.
    #[inline]
    pub(crate) fn path_before(&self, slot: usize, key: KeyTail<'_>) -> Option<u32> {
        let path = self.suffixes()?.suffix(slot);
        path.begins(key.suffix()).then_some(path.len() as u32)
    }

    /// Makes room for one more suffix. The caller holds the lock.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the node is as it was.
    pub(crate) fn reserve_suffix(
        &self,
        len_bytes: usize,
        guard: &Guard<'_>,
        account: AccountId,
    ) -> Result<(), OutOfMemory> {
        let old = self.suffixes();
        if old.is_some_and(|bag| bag.has_room_for(len_bytes)) {
            return Ok(());
        }
        let (words, count) = self.live_words();
        self.move_suffixes(bag_capacity(words + words_for(len_bytes), count + 1), guard, account)
    }

    /// Makes room for so many words in a node that was made just now: where they are many, for no more. The caller owns the node.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the node is as it was.
    pub(crate) fn reserve_words(
        &self,
        words: usize,
        guard: &Guard<'_>,
        account: AccountId,
    ) -> Result<(), OutOfMemory> {
        let capacity = if words < LONG_BAG_WORDS { bag_capacity(words, 1) } else { words };
        self.move_suffixes(capacity, guard, account)
    }

    /// Leaves a smaller bag where less of a long one is in use than when it was made. With no memory for it the node keeps the one that it
    /// has until the next time. The caller holds the lock.
    #[inline]
    pub(crate) fn trim_suffixes(&self, guard: &Guard<'_>, account: AccountId) {
        let capacity = self.suffixes().map_or(0, SuffixBag::capacity_words);
        if capacity >= LONG_BAG_WORDS {
            self.trim_long_bag(capacity, guard, account);
        }
    }

    #[cold]
    fn trim_long_bag(&self, capacity: usize, guard: &Guard<'_>, account: AccountId) {
        let (words, count) = self.live_words();
        let trimmed = bag_capacity(words, count);
        // An eighth less, so that a node is not moved for each key that goes: emptied key by key it is moved fewer than ten times.
        if trimmed + trimmed / 8 <= capacity {
            // An error says that there was no memory.
            let _ = self.move_suffixes(trimmed, guard, account);
        }
    }

    /// Gives the node another bag, of this capacity, with all that is in use. The caller holds the lock.
    fn move_suffixes(
        &self,
        capacity: usize,
        guard: &Guard<'_>,
        account: AccountId,
    ) -> Result<(), OutOfMemory> {
        let bag = SuffixBag::allocate(guard, account, capacity)?;
        for (slot, suffix) in self.live_suffixes() {
            bag.append_copy(slot, suffix);
        }
        if let Some(old) = self.replace_suffixes(bag, account) {
            old.retire(guard);
        }
        Ok(())
    }

    /// Lets the node refer to another bag, and returns the one before. The caller holds the lock; the tree has this account.
    fn replace_suffixes(&self, bag: SuffixBag<'_>, account: AccountId) -> Option<Unlinked<SuffixBag<'_>>> {
        let old = self.suffixes();
        // Release: [link].
        self.suffixes.store(bag.as_ptr(), Ordering::Release);
        // SAFETY: bags are made with the tree's account; this node was the only one that referred to it, and only the holder of the lock
        // replaces bags.
        old.map(|old| unsafe { Unlinked::new(old, account) })
    }

    /// Returns the slots that have a suffix or a path, with it. The caller holds the lock.
    fn live_suffixes(&self) -> impl Iterator<Item = (usize, Suffix<'_>)> {
        let slots = self.permuter().slots().filter(|&slot| has_bytes(self.kind(slot)));
        slots.filter_map(|slot| Some((slot, self.suffix(slot)?)))
    }

    /// Returns how many words these take, and how many they are. The caller holds the lock.
    fn live_words(&self) -> (usize, usize) {
        self.live_suffixes()
            .fold((0, 0), |(words, count), (_, suffix)| (words + words_for(suffix.len()), count + 1))
    }

    /// Leaves the slot the first bytes of what it has, in whole words. The caller holds the lock and readers wait.
    pub(super) fn shorten_bytes(&self, slot: usize, len_bytes: usize) {
        self.suffixes().unwrap_or_else(|| panic!("B7: a path is part of a suffix")).shorten(slot, len_bytes);
    }

    /// Gives the slot a suffix, for which room was reserved. The caller holds the lock.
    pub(crate) fn append_suffix(&self, slot: usize, bytes: &[u8]) {
        self.suffixes().unwrap_or_else(|| panic!("room was reserved")).append(slot, bytes);
    }

    /// Frees the node and its bag of suffixes, which nobody else has ever seen.
    ///
    /// # Safety
    /// The node came from [`Node::allocate`] with this account, was never published, and is not used again.
    pub(crate) unsafe fn free_with_suffixes(&self, guard: &Guard<'_>, account: AccountId) {
        let suffixes = self.suffixes();
        // SAFETY: the caller's promise; the bag was made with the same account and only this node refers to it.
        unsafe {
            if let Some(bag) = suffixes {
                bag.free(guard, account);
            }
            self.free(guard, account);
        }
    }
}

impl TreePart for &Border {
    fn has_left(&self) -> bool {
        self.version().is_of_a_deleted_node()
    }

    /// With its bag of suffixes.
    unsafe fn retire(self, guard: &Guard<'_>, account: AccountId) {
        let suffixes = self.suffixes();
        // SAFETY: the caller's promise; the bag was made with the same account, and only through this node readers come to it.
        unsafe {
            if let Some(bag) = suffixes {
                bag.retire(guard, account);
            }
            self.retire_node(guard, account);
        }
    }
}

/// A bag of so many words is long.
const LONG_BAG_WORDS: usize = 48;

/// Room for twice as many suffixes of the same mean length, at most for all that a node can have; for half as much again where they are
/// long, so that the room is in proportion to what the keys take.
fn bag_capacity(words: usize, count: usize) -> usize {
    let mean = words.div_ceil(count.max(1));
    let more = (count.max(2)).min(WIDTH.saturating_sub(count));
    words + (mean * more).min(words.div_ceil(2).max(LONG_BAG_WORDS / 2))
}
