//! Finding the extents of a heap that have no block in use, and taking them out of its lists.

use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;

use super::{FreeList, Local, REMOTE_BATCH};
use crate::chunk::{Extent, extent_bytes, extent_of, owner_of};
use crate::class::{CLASSES, Class};
use crate::remote::FreeBlock;

/// Blocks between two looks at whether the trim is interrupted.
const BLOCKS_PER_LOOK: usize = 1024;

/// The trim was interrupted.
pub(super) struct Interrupted;

impl Local {
    /// Takes out the extents with free blocks alone. Takes none when interrupted.
    pub(crate) fn trim(&self, is_interrupted: &dyn Fn() -> bool) -> Vec<NonNull<Extent>> {
        self.find_empty(is_interrupted)
            .and_then(|empty| self.take_out(empty, is_interrupted))
            .unwrap_or_default()
    }

    /// Moves all free blocks to another heap's lists, which need not be their owner, until interrupted.
    pub(crate) fn lend(&self, to: &Local, is_interrupted: &dyn Fn() -> bool) {
        while self.sort_returned(REMOTE_BATCH) > 0 && !is_interrupted() {}
        for (list, to) in self.lists.iter().zip(&to.lists) {
            let mut walked = 0;
            while let Some(block) = list.pop() {
                // SAFETY: the block has left our list, and is of the class of the other.
                unsafe { to.push(block.cast()) };
                walked += 1;
                if walked % BLOCKS_PER_LOOK == 0 && is_interrupted() {
                    return;
                }
            }
        }
    }

    /// Sends all free blocks, also those that are not cut from their span yet, back to their owners.
    pub(crate) fn return_lent(&self) {
        for (index, list) in self.lists.iter().enumerate() {
            let size = Class::at(index).size;
            while let Some(block) = list.pop().or_else(|| list.span.cut(size)) {
                // SAFETY: the block lies in an extent of its owner, whose shared part the pool keeps; it is given away.
                unsafe { (*owner_of(block)).remote.push(block, index) };
            }
        }
    }

    fn find_empty(&self, is_interrupted: &dyn Fn() -> bool) -> Result<HashSet<NonNull<Extent>>, Interrupted> {
        while self.sort_returned(REMOTE_BATCH) > 0 {
            go_on(is_interrupted)?;
        }
        let mut free = HashMap::new();
        for (index, list) in self.lists.iter().enumerate() {
            list.count_free(Class::at(index).size, &mut free, is_interrupted)?;
        }
        // SAFETY: an extent of this heap, which has a free block.
        let is_empty = |extent: NonNull<Extent>, bytes| unsafe { extent.as_ref() }.cut_bytes() == bytes;
        Ok(free
            .into_iter()
            .filter(|&(extent, bytes)| is_empty(extent, bytes))
            .map(|(extent, _)| extent)
            .collect())
    }

    /// Takes all blocks of these extents out of the lists.
    fn take_out(
        &self,
        extents: HashSet<NonNull<Extent>>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<NonNull<Extent>>, Interrupted> {
        if extents.is_empty() {
            return Ok(Vec::new());
        }
        let removed: [FreeList; CLASSES] = std::array::from_fn(|_| FreeList::new());
        for (list, of_class) in self.lists.iter().zip(&removed) {
            // SAFETY: a free block of this heap.
            let is_moved = |block| extents.contains(&unsafe { extent_of(block) });
            let outcome = list.move_blocks(of_class, is_moved, is_interrupted);
            if let Err(interrupted) = outcome {
                self.put_back(&removed);
                return Err(interrupted);
            }
        }
        let is_left = |start: *mut u8, left: usize| {
            // SAFETY: what is left of a range lies in an extent of this heap.
            left == 0
                || NonNull::new(start).is_none_or(|start| !extents.contains(&unsafe { extent_of(start) }))
        };
        for range in self.lists.iter().map(|list| &list.span).chain([&self.uncut]) {
            if !is_left(range.next.get(), range.left.get()) {
                range.left.set(0);
            }
        }
        let bytes: usize = extents.iter().map(|&extent| extent_bytes(extent)).sum();
        self.extended_bytes.set(self.extended_bytes.get() - bytes);
        Ok(extents.into_iter().collect())
    }

    fn put_back(&self, removed: &[FreeList; CLASSES]) {
        for (list, removed) in self.lists.iter().zip(removed) {
            while let Some(block) = removed.pop() {
                // SAFETY: the block was in this list, and is in no other now.
                unsafe { list.push(block.cast()) };
            }
        }
    }
}

impl FreeList {
    /// Adds the bytes of the free blocks, by extent.
    pub(super) fn count_free(
        &self,
        size: usize,
        free: &mut HashMap<NonNull<Extent>, usize>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Interrupted> {
        if let Some((start, left)) = self.uncut() {
            // SAFETY: what is left of the span lies in an extent of this heap.
            *free.entry(unsafe { extent_of(start) }).or_default() += left;
        }
        let mut run: Option<(NonNull<Extent>, usize)> = None;
        for (walked, block) in self.free_blocks().enumerate() {
            // SAFETY: a free block of this heap.
            let extent = unsafe { extent_of(block) };
            // Neighbours in the list are often neighbours in memory.
            match &mut run {
                Some((last, bytes)) if *last == extent => *bytes += size,
                _ => {
                    add_run(free, run.replace((extent, size)));
                }
            }
            if walked % BLOCKS_PER_LOOK == BLOCKS_PER_LOOK - 1 {
                go_on(is_interrupted)?;
            }
        }
        add_run(free, run);
        Ok(())
    }

    /// Moves some free blocks to another list.
    pub(super) fn move_blocks(
        &self,
        to: &FreeList,
        is_wanted: impl Fn(NonNull<u8>) -> bool,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Interrupted> {
        // What was walked over and stays.
        let kept = FreeList::new();
        let mut walked = 0;
        let mut outcome = Ok(());
        while let Some(block) = self.pop() {
            let is_moved = is_wanted(block);
            // SAFETY: the block has left this list, and goes into one other.
            unsafe { if is_moved { to.push(block.cast()) } else { kept.push(block.cast()) } };
            walked += 1;
            if walked % BLOCKS_PER_LOOK == 0 && is_interrupted() {
                outcome = Err(Interrupted);
                break;
            }
        }
        if outcome.is_ok() {
            self.free.set(kept.free.get());
            return outcome;
        }
        while let Some(block) = kept.pop() {
            // SAFETY: as above.
            unsafe { self.push(block.cast::<FreeBlock>()) };
        }
        outcome
    }
}

fn add_run(free: &mut HashMap<NonNull<Extent>, usize>, run: Option<(NonNull<Extent>, usize)>) {
    if let Some((extent, bytes)) = run {
        *free.entry(extent).or_default() += bytes;
    }
}

fn go_on(is_interrupted: &dyn Fn() -> bool) -> Result<(), Interrupted> {
    if is_interrupted() { Err(Interrupted) } else { Ok(()) }
}
