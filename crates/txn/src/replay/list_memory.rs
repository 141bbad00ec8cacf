//! Memory for lists of pending words, which is used again.
//!
//! Each worker has an arena, and hands lists out with room for a power of two of words. Those that it gets back, from whatever worker's arena
//! they came, it hands out again: a replay needs as many as there are at once. Arenas go when the replay is over.
//!
//! # Layout
//! ```text
//! | len (u32) | capacity (u32) | PendingWord .. |
//! ```

use std::alloc::Layout;
use std::ptr::NonNull;

use bumpalo::Bump;
use ensilo_log::ReplayError;
use ensilo_sync::{LINE_BYTES, prefetch};

use super::pending::PendingWord;

/// What a list of pending words begins with: each index stands in it once, in their order.
#[repr(C, align(8))]
pub(super) struct PendingList {
    pub(super) len: u32,
    pub(super) capacity: u32,
}

const _: () = assert!(size_of::<PendingList>().is_multiple_of(align_of::<PendingWord>()));

/// A list is loaded so many lists before it is handed out.
const LISTS_AHEAD: usize = 16;

/// There is no memory for a list. It has no size, so that a result is no more than an address: one that is copied while stores wait for
/// memory waits for them.
pub(super) struct NoMemory;

impl From<NoMemory> for ReplayError {
    fn from(NoMemory: NoMemory) -> Self {
        ReplayError::OutOfMemory
    }
}

/// A list that no record leads to.
struct UnusedList(NonNull<PendingList>);

// SAFETY: nobody else knows the list, and the memory may be used by any thread while the arenas of all workers are there.
unsafe impl Send for UnusedList {}

/// Where a worker's lists come from.
#[derive(Default)]
pub(super) struct ListMemory {
    arena: Bump,
    /// By the logarithm of their capacity.
    unused: [Vec<UnusedList>; u32::BITS as usize],
}

impl ListMemory {
    /// Returns an empty list with room for `capacity` words or more.
    pub(super) fn take(&mut self, capacity: usize) -> Result<NonNull<PendingList>, NoMemory> {
        let capacity = capacity.next_power_of_two();
        let unused = &mut self.unused[capacity.ilog2() as usize];
        // Lists that were given back lie anywhere, and have left the caches: locks of records would wait for the stores to them.
        if let Some(UnusedList(soon)) = unused.len().checked_sub(LISTS_AHEAD).map(|at| &unused[at]) {
            let soon: *const u8 = soon.as_ptr().cast();
            prefetch(soon);
            prefetch(soon.wrapping_add(LINE_BYTES));
        }
        let list = match unused.pop() {
            Some(UnusedList(list)) => list,
            None => self.allocate(capacity)?,
        };
        // SAFETY: it is as large and aligned as a list of this capacity is, and nobody else knows it.
        unsafe { list.write(PendingList { len: 0, capacity: capacity as u32 }) };
        Ok(list)
    }

    fn allocate(&self, capacity: usize) -> Result<NonNull<PendingList>, NoMemory> {
        let words = Layout::array::<PendingWord>(capacity).expect("fewer words than a row has");
        let (layout, _) = Layout::new::<PendingList>().extend(words).expect("fewer words than a row has");
        self.arena.try_alloc_layout(layout).map(NonNull::cast).map_err(|_| NoMemory)
    }

    /// Takes a list back.
    ///
    /// # Safety
    /// It came from [`ListMemory::take`] of any worker of the same replay, and nobody uses it any more.
    pub(super) unsafe fn give_back(&mut self, list: NonNull<PendingList>) {
        // SAFETY: `take` has written it, and the arenas of all workers are there while the replay lasts.
        let capacity = unsafe { list.as_ref() }.capacity;
        self.unused[capacity.ilog2() as usize].push(UnusedList(list));
    }
}

/// Returns the place of a list's first word.
pub(super) fn first_word(list: NonNull<PendingList>) -> *mut PendingWord {
    // SAFETY: the words begin behind the head, in the same piece of memory.
    unsafe { list.add(1) }.cast().as_ptr()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn lists_are_used_again_by_whoever_gets_them_back() {
        let (mut one, mut other) = (ListMemory::default(), ListMemory::default());
        let lists: Vec<_> = [0, 1, 3, 4, 5, 1000].map(|capacity| one.take(capacity).ok().unwrap()).into();
        // SAFETY: they are lists that nobody uses.
        lists.iter().for_each(|&list| unsafe { other.give_back(list) });
        for (capacity, at) in [(600, 5), (7, 4), (3, 3), (4, 2), (1, 1), (1, 0)] {
            let list = other.take(capacity).ok().unwrap();
            assert_eq!(list, lists[at]);
            // SAFETY: `take` has written it.
            let list = unsafe { list.as_ref() };
            assert!(list.len == 0 && list.capacity as usize >= capacity);
        }
        assert_eq!(other.arena.allocated_bytes(), 0);
    }
}
